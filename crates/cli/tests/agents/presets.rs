//! The presets against stand-ins, one for each: small programs that behave as the command lines of other makers document
//! it. The real ones are not at hand.

use crate::support::World;

/// Prompts by line, slash commands, a permission question with numbered answers, hooks with the id of the conversation on
/// their input, the cost as `/cost` prints it.
const CLAUDE: &str = r#"#!/bin/sh
echo "claude $*" >> args.log
hook() { printf '{"hook_event_name":"%s","session_id":"0b5f-claude","cwd":"%s"}' "$1" "$PWD" | beamtalk agents hook; }
stty -echo
hook SessionStart > /dev/null
printf 'Welcome to Claude Code\n> '
while read -r line; do
  case $line in
  "") ;;
  /cost) printf 'Total cost:            $0.25\n> ' ;;
  /*) printf 'command %s\n> ' "$line" ;;
  ask*)
    hook UserPromptSubmit
    printf 'Bash command: rm x\nDo you want to proceed?\n 1. Yes\n 2. No, and tell Claude what to do differently (esc)\n'
    read -r key; printf 'answered <%s>\n' "$key"; hook Stop; printf '> ' ;;
  *) hook UserPromptSubmit
     printf '{"tokens_in":1200,"tokens_out":300,"cost":0.25}' | beamtalk agents hook usage
     echo "said $line"; hook Stop; printf '> ' ;;
  esac
done
"#;

/// A question that ends with `[y/n/t]`, answered by a line.
const KIRO: &str = r#"#!/bin/sh
echo "kiro-cli $*" >> args.log
hook() { beamtalk agents hook "$1" < /dev/null; }
stty -echo
printf 'kiro\n> '
while read -r line; do
  case $line in
  "") ;;
  /*|y) echo "command $line" ;;
  ask*)
    hook userPromptSubmit
    printf "Allow this action? Use 't' to trust (always allow) this tool for the session. [y/n/t]:\n"
    read -r key; printf 'answered <%s>\n' "$key"; hook stop; printf '> ' ;;
  *) hook userPromptSubmit; echo "said $line"; hook stop; printf '> ' ;;
  esac
done
"#;

/// A question that one key answers; when asked for its state it tells the id of the conversation and the tokens used.
const CODEX: &str = r#"#!/bin/sh
echo "codex $*" >> args.log
stty -echo
echo "codex"
while read -r line; do
  case $line in
  "") ;;
  /*) echo "command $line" ;;
  ask*)
    printf 'Would you like to run the following command?\n  1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)\n'
    stty -icanon min 1; key=$(dd bs=1 count=1 2>/dev/null); stty icanon
    printf 'answered <%s>\n' "$key" ;;
  *) echo "said $line"
     echo 'Token usage: total=1,500 input=1,200 (+ 800 cached) output=300'
     echo 'To continue this session, run codex resume 0199aa00-1111-2222-3333-444455556666' ;;
  esac
done
"#;

/// Asks nothing; with `/set verbose` it counts tokens.
const OLLAMA: &str = r#"#!/bin/sh
echo "ollama $*" >> args.log
stty -echo
printf '>>> '
while read -r line; do
  case $line in
  "") ;;
  /*) echo "command $line" ;;
  *) printf 'said %s\n\ntotal duration:       1s\nprompt eval count:    1200 token(s)\nprompt eval rate:     9 tokens/s\neval count:           300 token(s)\n>>> ' "$line" ;;
  esac
done
"#;

struct Preset {
    name: &'static str,
    program: &'static str,
    command: &'static str,
    clear: &'static str,
    resume: &'static str,
    /// What the program reads when its question is approved.
    approved: Option<&'static str>,
    conversation: &'static str,
    /// Tokens in and out and the cost of one turn.
    usage: [Option<f64>; 3],
}

const PRESETS: [Preset; 4] = [
    Preset {
        name: "claude",
        program: CLAUDE,
        command: "claude --dangerously-skip-permissions",
        clear: "/clear",
        resume: " -c",
        approved: Some("answered <>"),
        conversation: "0b5f-claude",
        usage: [Some(1200.0), Some(300.0), Some(0.25)],
    },
    Preset {
        name: "kiro-cli",
        program: KIRO,
        command: "kiro-cli chat --trust-all-tools",
        clear: "/clear",
        resume: " -r",
        approved: Some("answered <y>"),
        conversation: "",
        usage: [None, None, None],
    },
    Preset {
        name: "codex",
        program: CODEX,
        command: "codex",
        clear: "/new",
        resume: " resume --last",
        approved: Some("answered <y>"),
        conversation: "0199aa00-1111-2222-3333-444455556666",
        usage: [Some(1200.0), Some(300.0), None],
    },
    Preset {
        name: "ollama",
        program: OLLAMA,
        command: "ollama run qwen3:8b",
        clear: "/clear",
        resume: "",
        approved: None,
        conversation: "",
        usage: [Some(1200.0), Some(300.0), None],
    },
];

const START: &str = "PATH=$W/bin:$PATH; export PATH; beamtalk agents start > /dev/null";

fn with_programs() -> World {
    let world = World::new();
    std::fs::create_dir_all(world.path("bin")).unwrap();
    for preset in &PRESETS {
        let path = world.path("bin").join(preset.name);
        std::fs::write(&path, preset.program).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir_all(world.path(preset.name)).unwrap();
    }
    world.value(START);
    world
}

/// Start a session of a preset; `false` where the kernel cannot give the sandbox that presets insist on.
fn begin(world: &World, name: &str) -> bool {
    let (said, status) = world.run(&format!(
        "beamtalk agents new {name} $W/{name} --alias {name} --wait"
    ));
    assert!(status == 0 || said.contains("sandbox:"), "{name}: {said}");
    status == 0
}

/// Every preset is started with the documented flags, gets a prompt and answers it, has its question seen and answered,
/// understands its keys, tells what it used and how it calls its conversation, and goes on with it after a reboot.
#[test]
fn presets_drive_the_programs_they_are_for() {
    let world = with_programs();
    let mut begun = Vec::new();
    for preset in &PRESETS {
        let name = preset.name;
        if !begin(&world, name) {
            continue;
        }
        let answer = world.value(&format!("beamtalk agents prompt {name} hello --wait"));
        assert!(answer.contains("said hello"), "{name}: {answer}");
        let usage: serde_json::Value =
            serde_json::from_str(&world.value(&format!("beamtalk 9p read agent/{name}/usage"))).unwrap();
        let told = ["tokens_in", "tokens_out", "cost"].map(|key| usage[key].as_f64());
        assert_eq!(told, preset.usage, "{name}: {usage}");
        assert_eq!(
            world.value(&format!("beamtalk 9p read agent/{name}/conversation")),
            preset.conversation,
            "{name}"
        );
        if let Some(approved) = preset.approved {
            world.value(&format!("beamtalk agents prompt {name} 'ask me'"));
            world.until(&format!("beamtalk 9p read agent/{name}/state | grep -qx waiting"));
            world.until("beamtalk agents approvals | grep -q backend");
            world.value(
                "beamtalk agents approvals approve $(beamtalk agents approvals --json | grep -o 'ap-[0-9a-f]*' | head -1)",
            );
            world.until(&format!(
                "beamtalk agents output {name} --raw | grep -qF '{approved}'"
            ));
            world.value(&format!("beamtalk agents wait {name} --for idle"));
        }
        world.value(&format!("beamtalk agents ctl {name} clear"));
        world.until(&format!(
            "beamtalk agents output {name} --raw | grep -q 'command {}'",
            preset.clear
        ));
        let called = std::fs::read_to_string(world.path(name).join("args.log")).unwrap();
        assert_eq!(called.trim_end(), preset.command, "{name}");
        begun.push(preset);
    }
    world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid); tmux -S $NAMESPACE/tmux.sock kill-server; true");
    world.value(START);
    for preset in begun {
        let again = format!("{}{}", preset.command, preset.resume);
        world.until(&format!(
            "test \"$(sed -n '2s/ *$//p' $W/{}/args.log)\" = '{again}'",
            preset.name
        ));
    }
}

/// A program with a hook for permissions asks by it: the person's answer is the decision that the program reads.
#[test]
fn a_permission_hook_asks_the_person() {
    let world = World::started();
    world.value("beamtalk agents new echo . --alias demo --wait");
    let id = world.value("beamtalk agents show demo | sed -n 's/^id: //p'");
    world.value(&format!(
        "beamtalk agents token mint demo session {id} > $W/token"
    ));
    let own = format!("export AGENT_ID={id}; export AGENT_TOKEN=$(cat $W/token)");
    let told =
        r#"{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"rm 'x'"}}"#;
    std::fs::write(world.path("told"), told).unwrap();
    let ask = format!("{own}; beamtalk agents hook < $W/told > $W/said 2>&1; echo done >> $W/said");
    for (answer, decision) in [
        ("approve $id", r#""decision":{"behavior":"allow"}"#),
        (
            "reject $id too dangerous",
            r#""message":"not approved: too dangerous""#,
        ),
    ] {
        world.value(&format!("rm -f $W/said; ({ask}) > /dev/null 2>&1 &"));
        world.until("beamtalk agents approvals | grep -q \"rm 'x'\"");
        world.value(&format!(
            "id=$(beamtalk agents approvals --json | grep -o 'ap-[0-9a-f]*' | head -1); beamtalk agents approvals {answer} > /dev/null
             until grep -qs done $W/said; do :; done"
        ));
        let said = world.value("cat $W/said");
        assert!(said.contains(decision), "{said}");
    }
    // An input that stays open holds nobody up, and one that is no JSON neither.
    world.check(
        &format!("{own}
         mkfifo $W/open; exec 3<>$W/open; beamtalk agents hook Stop <&3; echo $?; echo nonsense | beamtalk agents hook; echo $?"),
        "0\n0\n",
    );
}
