use std::path::Path;

use proptest::prelude::*;

use super::*;

const STEP: &str = "steps = [{ action = \"log\", message = \"x\" }]";

fn checked(text: &str) -> Loaded {
    check(Path::new("/tmp/devloop.toml"), text, RemoteBind::Refuse)
}

fn errors(text: &str) -> Vec<String> {
    checked(text)
        .errors
        .into_iter()
        .map(|problem| problem.text)
        .collect()
}

fn warnings(text: &str) -> Vec<String> {
    let loaded = checked(text);
    assert_eq!(loaded.errors, []);
    loaded.warnings.into_iter().map(|problem| problem.text).collect()
}

fn base(more: &str) -> String {
    format!("{more}\n[watch.w]\npaths = [\"go\"]\n[workflow.w]\n{STEP}\n")
}

#[test]
fn defaults_are_as_documented() {
    let config = checked(&base("process.p.command = [\"x\"]\nhook.h.command = [\"x\"]"))
        .valid()
        .unwrap();
    assert_eq!(config.debounce_ms, 250);
    assert_eq!(config.root, Path::new("/tmp"));
    assert_eq!(config.state_file, Path::new("/tmp/.devloop/state.json"));
    assert_eq!(config.watcher.poll_interval_ms, 250);
    let process = &config.process["p"];
    assert!(process.autostart);
    assert_eq!(process.restart, Restart::Never);
    assert_eq!(process.stop_grace_ms, 5000);
    assert_eq!(process.output.body_style, BodyStyle::Plain);
    assert_eq!(config.hook["h"].output.body_style, BodyStyle::Dim);
    assert_eq!(config.watch["w"].workflow, "w");
}

#[test]
fn every_wrong_key_is_reported_with_its_place() {
    let text = "debounce_ms = -1\nroot = 3\n[watch.w]\npaths = \"x\"\n[process.p]\nrestart = \"often\"\n";
    assert_eq!(
        errors(text),
        [
            "failed to parse config at /tmp/devloop.toml: 2:8: 'root' must be a string, not an integer",
            "failed to parse config at /tmp/devloop.toml: 1:15: 'debounce_ms' must be a whole number from 0 \
             to 18446744073709551615",
            "failed to parse config at /tmp/devloop.toml: 4:9: 'watch.w.paths' must be a list of strings, \
             not a string",
            "failed to parse config at /tmp/devloop.toml: 5:1: missing key 'process.p.command'",
            "failed to parse config at /tmp/devloop.toml: 6:11: unknown value 'often' for \
             'process.p.restart', expected one of 'never', 'on_failure', 'always'",
        ]
    );
    let syntax = errors("watch = [");
    assert!(
        syntax[0].starts_with("failed to parse config at /tmp/devloop.toml: 1:"),
        "{syntax:?}"
    );
    assert!(errors("debounce_ms = 1.5")[0].contains("'debounce_ms' must be an integer, not a float"));
}

#[test]
fn every_validation_error_has_its_text() {
    let probe = |kind: &str| format!("process.p = {{ command = [\"x\"], readiness = {{ {kind} }} }}");
    let rule =
        |rule: &str| format!("process.p = {{ command = [\"x\"], output = {{ rules = [{{ {rule} }}] }} }}");
    let table = [
        (
            base("root = \"/nowhere\""),
            "config root '/nowhere' does not exist",
        ),
        (
            base("watch.g.paths = []\nworkflow.g.steps = [{ action = \"notify_reload\" }]"),
            "watch group 'g' must define at least one path",
        ),
        (
            base("process.p.command = []"),
            "invalid process 'p': process command must not be empty",
        ),
        (
            base("process.p.command = [\" \"]"),
            "invalid process 'p': process command must not be empty",
        ),
        (
            base(&probe("kind = \"http\"")),
            "invalid process 'p': http probe url must not be empty",
        ),
        (
            base(&probe("kind = \"state_key\", key = \" \"")),
            "invalid process 'p': state_key probe key must not be empty",
        ),
        (
            base(&rule("state_key = \"\"")),
            "invalid process 'p': output rule state_key must not be empty",
        ),
        (
            base(&rule("state_key = \"k\", pattern = \"(\"")),
            "invalid process 'p': invalid output rule regex '(': unclosed group",
        ),
        (
            base("hook.h.command = []"),
            "invalid hook 'h': hook command must not be empty",
        ),
        (
            base("hook.h = { command = [\"x\"], capture = \"text\" }"),
            "invalid hook 'h': text capture requires state_key",
        ),
        (
            base("hook.h = { command = [\"x\"], observe = { workflow = \"\" } }"),
            "invalid hook 'h': observed hook workflow must not be empty",
        ),
        (
            base("hook.h = { command = [\"x\"], observe = { workflow = \"w\", interval_ms = 0 } }"),
            "invalid hook 'h': observed hook interval_ms must be greater than zero",
        ),
        (
            base("hook.h = { command = [\"x\"], observe = { workflow = \"z\" } }"),
            "hook 'h' observes missing workflow 'z'",
        ),
        (
            base("browser_reload_server.bind = \"localhost:0\""),
            "browser_reload_server bind 'localhost:0' is not a valid socket address",
        ),
        (
            base("event_server.bind = \"0.0.0.0:0\""),
            "event_server bind '0.0.0.0:0' is not a loopback address; pass --allow-remote-bind to accept the risk",
        ),
        (
            base("watcher.poll_interval_ms = 0"),
            "watcher poll_interval_ms must be greater than zero",
        ),
        (
            base("event.e = { state_key = \"\", workflow = \"w\" }"),
            "invalid event 'e': event state_key must not be empty",
        ),
        (
            base("event.e = { state_key = \"k\", workflow = \"\" }"),
            "invalid event 'e': event workflow must not be empty",
        ),
        (
            base("event.e = { state_key = \"k\", workflow = \"w\", pattern = \"[\" }"),
            "invalid event 'e': invalid event regex '[': unclosed character class",
        ),
        (
            base("event.e = { state_key = \"k\", workflow = \"z\" }"),
            "event 'e' references missing workflow 'z'",
        ),
        (
            base("workflow.e.steps = []"),
            "invalid workflow 'e': workflow must contain at least one step",
        ),
        (
            base("workflow.e.steps = [{ action = \"start_process\", process = \"z\" }]"),
            "invalid workflow 'e': workflow references missing process 'z'",
        ),
        (
            base("workflow.e.steps = [{ action = \"run_hook\", hook = \"z\" }]"),
            "invalid workflow 'e': workflow references missing hook 'z'",
        ),
        (
            base("workflow.e = { steps = [{ action = \"notify_reload\" }], triggers = [\"z\"] }"),
            "invalid workflow 'e': workflow references missing workflow 'z'",
        ),
        (
            base("workflow.e = { steps = [{ action = \"notify_reload\" }], triggers = [\"e\"] }"),
            "invalid workflow 'e': workflow recursion detected: e -> e",
        ),
        (
            base("startup_workflows = [\"z\"]"),
            "startup workflow references missing workflow 'z'",
        ),
        (
            base("process.p = { command = [\"x\"], events = [\"zz\"] }"),
            "invalid process 'p': events references missing event 'zz'",
        ),
        (
            "workflow.w.steps = [{ action = \"notify_reload\" }]".into(),
            "config must define at least one watch group",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(errors(&text), [expected], "{text}");
    }
}

#[test]
fn a_remote_bind_can_be_accepted() {
    let loaded = check(
        Path::new("/tmp/d.toml"),
        &base("event_server.bind = \"0.0.0.0:0\""),
        RemoteBind::Allow,
    );
    assert_eq!(loaded.errors, []);
}

#[test]
fn ambiguity_depends_on_who_triggers() {
    let flow = |tail: &str| {
        base(&format!(
            "workflow.a = {{ steps = [{{ action = \"run_workflow\", workflow = \"b\" }}], triggers = [\"c\"] }}\n\
             workflow.b = {{ steps = [{{ action = \"notify_reload\" }}], triggers = [\"{tail}\"] }}\n\
             workflow.c.steps = [{{ action = \"notify_reload\" }}]\n\
             workflow.d.steps = [{{ action = \"notify_reload\" }}]"
        ))
    };
    assert_eq!(errors(&flow("d")), [""; 0]);
    assert_eq!(
        errors(&flow("c")),
        ["invalid workflow 'a': workflow 'c' would run both inline and as a trigger in one execution"]
    );
}

#[test]
fn doubtful_things_are_warned_about() {
    let table = [
        (
            base("process.p = { command = [\"x\"], comand = 1 }"),
            "unknown key 'process.p.comand', did you mean 'command'?",
        ),
        (base("colour = 1"), "unknown key 'colour'"),
        (
            base("watch.x = { paths = [\"/etc/x\"], workflow = \"w\" }"),
            "path '/etc/x' in watch group 'x' leaves root and never matches",
        ),
        (
            base("root = \"/\"\nwatch.x = { paths = [\"usr\"], workflow = \"w\" }"),
            "path 'usr' in watch group 'x' is a directory; write 'usr/' to watch what is inside",
        ),
        (
            base("process.p = { command = [\"x\"], output.rules = [{ state_key = \"k\" }] }"),
            "output rule for 'k' of process 'p' has no pattern and never matches",
        ),
        (
            base(
                "process.p = { command = [\"x\"], output.rules = [{ state_key = \"k\", pattern = \"x\" }] }",
            ),
            "output rule for 'k' of process 'p' asks for capture group 1, which the pattern lacks",
        ),
        (
            base("hook.h = { command = [\"x\"], observe = { workflow = \"w\" } }"),
            "hook 'h' is observed but captures nothing, so it can never fire",
        ),
        (
            base("event.e = { state_key = \"k\", workflow = \"w\", pattern = \"^x\" }"),
            "pattern '^x' of event 'e' is not anchored with ^ and $",
        ),
        (
            base(
                "event.a-b = { state_key = \"k\", workflow = \"w\" }\nevent.a_b = { state_key = \"k\", workflow = \"w\" }",
            ),
            "events 'a-b' and 'a_b' both map to DEVLOOP_EVENT_A_B_URL; 'a_b' wins",
        ),
        (
            base("browser_reload_server.bind = \"0.0.0.0:0\""),
            "browser_reload_server bind '0.0.0.0:0' is not a loopback address",
        ),
        (
            base(&format!("workflow.lost.{STEP}")),
            "nothing can reach workflow 'lost'",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(warnings(&text), [expected], "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_config_or_errors(text in "(?s).{0,200}") {
        let loaded = checked(&text);
        prop_assert!(loaded.config.is_some() || !loaded.errors.is_empty());
    }

    #[test]
    fn any_arrangement_of_known_keys_is_survived(
        lines in proptest::collection::vec(
            ("(root|watch\\.a\\.paths|process\\.p\\.command|process\\.p|hook\\.h|workflow\\.w\\.steps|event\\.e|watcher|ignore)",
             "(1|-1|\"x\"|true|\\[\\]|\\[\"a\"\\]|\\[\\{ action = \"log\" \\}\\]|\\{ kind = 1 \\}|1\\.5|1979-05-27)"),
            0..6),
    ) {
        let text = lines.iter().fold(String::new(), |text, (key, value)| text + &format!("{key} = {value}\n"));
        let loaded = checked(&text);
        prop_assert!(loaded.config.is_some() || !loaded.errors.is_empty());
    }
}
