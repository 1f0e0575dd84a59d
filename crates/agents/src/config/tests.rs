//! Configuration files: defaults, merging, mistakes.

use std::path::Path;

use super::{Access, Backend, Config, IdleMode, Ready, RestartPolicy, Templates};

fn config(files: &[(&str, &str)]) -> (tempfile::TempDir, Config) {
    let base = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = base.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let config = Config::load(base.path()).unwrap();
    (base, config)
}

#[test]
fn shipped_presets_parse_and_built_in_backends_are_ready() {
    let (_base, config) = config(&[]);
    assert!(config.problems().is_empty(), "{:?}", config.problems());
    let lines = config.backend_lines();
    assert_eq!(lines.lines().count(), 6);
    assert!(
        lines.contains("echo\tready\t") && lines.contains("shell\tready\t"),
        "{lines}"
    );
    assert_eq!(config.backend("nothing").unwrap_err().text, "backend not found");
    assert_eq!(config.library.roles.len(), 10);
}

#[test]
fn the_example_of_the_guide_parses() {
    let text = "command: [\"/srv/tools/review-loop\", \"--color=never\"]\n\
        description: \"line based reviewer\"\n\
        start: {ready: regex, regex: '^review> $', timeout_ms: 8000}\n\
        idle:  {mode: regex, regex: '^review> $'}\n\
        restart: {policy: never}\n\
        filesystem: {rox: [\"/srv/tools\"], rw: [\"{CWD}\"]}\n\
        network: {enabled: true, connect_tcp: [\"443\"]}\n\
        env: [HOME, LANG, \"REVIEW_MODE=strict\"]\n";
    let (_base, config) = config(&[("backends/review.yaml", text)]);
    let backend = config.backend("review").unwrap();
    assert_eq!(
        (backend.ready, backend.idle, backend.restart.policy),
        (Ready::Regex, IdleMode::Regex, RestartPolicy::Never)
    );
    assert_eq!(backend.start_timeout_ms, 8000);
    let wanted = config.sandbox(backend, "default").unwrap();
    // The default profile grants more than the backend asked for; the most permissive wins.
    assert_eq!(wanted.paths.get("{CWD}"), Some(&Access::Rwx));
    assert!(wanted.connect_tcp.contains(&443) && wanted.network && !wanted.net);
    assert_eq!(
        config.sandbox(backend, "none").unwrap_err().text,
        "sandbox \"none\" not found"
    );
    assert_eq!(
        backend.program(&Templates::default()).unwrap_err().text,
        "backend command not found: /srv/tools/review-loop"
    );
}

#[test]
fn mistakes_name_file_line_and_key_and_stop_only_their_backend() {
    let (_base, config) = config(&[
        ("backends/typo.yaml", "command: [x]\nstrat: {ready: hook}\n"),
        ("backends/wrong.yaml", "command: [x]\nname: other\n"),
        ("backends/Bad.yaml", "command: [x]\n"),
    ]);
    let message = config.backend("typo").unwrap_err().text.into_owned();
    assert!(
        message.contains("typo.yaml") && message.contains("line 2") && message.contains("strat"),
        "{message}"
    );
    assert!(
        config
            .backend("wrong")
            .unwrap_err()
            .text
            .contains("must equal the file name")
    );
    assert_eq!(config.problems().len(), 3);
    assert!(config.backend("echo").is_ok());
}

#[test]
fn a_broken_global_file_is_fatal() {
    let base = tempfile::tempdir().unwrap();
    std::fs::write(base.path().join("global.yaml"), "limits:\n  sesions: 3\n").unwrap();
    let message = Config::load(base.path()).unwrap_err().to_string();
    assert!(
        message.contains("global.yaml") && message.contains("sesions"),
        "{message}"
    );
}

#[test]
fn levels_fall_to_the_next_lower_then_higher_then_default_model() {
    let parse =
        |models: &str| Backend::parse(Path::new("b.yaml"), "b", &format!("command: [b]\n{models}")).unwrap();
    let all = parse("models: {low: l, standard: s, high: h}\n");
    assert_eq!(all.model(None, Some("high")).unwrap().as_deref(), Some("h"));
    assert_eq!(all.model(Some("m"), Some("high")).unwrap().as_deref(), Some("m"));
    assert_eq!(all.model(None, None).unwrap(), None);
    let some = parse("models: {high: h}\ndefault_model: d\n");
    assert_eq!(some.model(None, Some("low")).unwrap().as_deref(), Some("h"));
    assert_eq!(some.model(None, None).unwrap().as_deref(), Some("d"));
    let message = some.model(None, Some("top")).unwrap_err().text.into_owned();
    assert_eq!(
        message,
        "invalid level: top (must be one of: low, standard, high)"
    );
}

#[test]
fn mistakes_are_told_in_one_line_and_stop_nobody_else() {
    let (base, config) = config(&[
        ("backends/syntax.yaml", "command: [x\nfoo: }\n"),
        ("backends/unknown.yaml", "command: [\"x\"]\nbogus: 3\n"),
        (
            "backends/pattern.yaml",
            "command: [\"x\"]\nidle: {mode: regex, regex: '('}\n",
        ),
        (
            "backends/fine.yaml",
            "command: [\"{HOME}/{NOT_SET_X}\"]\ndescription: |\n  two\n  lines\n",
        ),
        ("sandbox/wide.yaml", "filesystem: {rw: 3}\n"),
    ]);
    let problems: Vec<String> = config
        .problems()
        .iter()
        .map(|problem| problem.replace(&format!("{}/", base.path().display()), ""))
        .collect();
    let starts = [
        "backends/pattern.yaml: idle.regex: unclosed group",
        "backends/syntax.yaml: line 2 column 4: ",
        "backends/unknown.yaml: line 2 column 1: unknown field `bogus`, ",
        "sandbox/wide.yaml: line 1 column ",
    ];
    assert_eq!(problems.len(), starts.len(), "{problems:?}");
    for (problem, start) in problems.iter().zip(starts) {
        assert!(problem.starts_with(start) && !problem.contains('\n'), "{problem}");
    }
    let lines = config.backend_lines();
    assert!(lines.contains("fine\tmissing\ttwo lines\n"), "{lines}");
    assert!(lines.lines().all(|line| line.split('\t').count() == 3), "{lines}");
    let places = crate::places::Places::of(Path::new("/tmp/ns"));
    let templates = Templates::new(&places, "5e1fa0c2", "/tmp", None);
    assert_eq!(
        config
            .backend("fine")
            .unwrap()
            .program(&templates)
            .unwrap_err()
            .text,
        "undefined template {NOT_SET_X}"
    );
}
