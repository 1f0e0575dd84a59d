//! The pages of the guide do what they say: every block marked `console` is run as it stands.
//!
//! `$ ` begins a command, the lines below it are what it prints; the lines of a session begin with `> `. `…` stands for
//! anything, alone in a line for any lines. The blocks of a page follow each other in one shell, in an empty directory.
#![cfg(target_os = "linux")]
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "shared/runtime.rs"]
mod runtime;

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use runtime::runtime;

const LIMIT: Duration = Duration::from_secs(90);

/// What stands before the output of each command.
const MARK: &str = "@@@ next";

#[derive(Debug, Default)]
struct Step {
    command: String,
    /// What is typed into a session, if the command is one.
    typed: Vec<String>,
    expected: Vec<String>,
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_console = false;
    let mut is_document = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_console = line == "```console";
            continue;
        }
        if !is_console {
            continue;
        }
        if let (true, Some(step)) = (is_document, steps.last_mut()) {
            is_document = line != "END";
            let _ = write!(step.command, "\n{line}");
        } else if let Some(command) = line.strip_prefix("$ ") {
            is_document = command.contains("<<'END'");
            steps.push(Step {
                command: command.to_owned(),
                ..Step::default()
            });
        } else {
            let step = steps.last_mut().expect("a block begins with a command");
            match line.strip_prefix("> ") {
                Some(typed) => step.typed.push(typed.to_owned()),
                None => step.expected.push(line.to_owned()),
            }
        }
    }
    steps
}

fn script(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        let _ = writeln!(text, "echo '{MARK}'");
        if step.typed.is_empty() {
            let _ = writeln!(text, "{}", step.command);
        } else {
            let _ = writeln!(
                text,
                "{} <<'INPUT'\n{}\nINPUT",
                step.command,
                step.typed.join("\n")
            );
        }
    }
    text
}

/// `…` in a line is anything; a line of it alone is any lines.
fn agrees(expected: &[String], got: &[&str]) -> bool {
    match (expected.split_first(), got.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            agrees(rest, got)
                || got
                    .split_first()
                    .is_some_and(|(_, below)| agrees(expected, below))
        }
        (Some((first, rest)), Some((line, below))) => line_agrees(first, line) && agrees(rest, below),
        _ => false,
    }
}

fn line_agrees(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Run a page and say what differs.
fn check(name: &str) {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(pages.join(name)).unwrap();
    let steps = steps(&page);
    assert!(steps.len() >= 3, "{name} has nothing to run");
    let root = tempfile::Builder::new().prefix("btg").tempdir().unwrap();
    let [home, work, bin] = ["home", "work", "bin"].map(|name| {
        let path = root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path
    });
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_beamtalk"), bin.join("beamtalk")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let shell = |text: &str| {
        let mut child = Command::new("timeout");
        child.args(["--signal=KILL", &LIMIT.as_secs().to_string(), "sh", "-c", text]);
        child
            .current_dir(&work)
            .env("PATH", &path)
            .env("HOME", &home)
            .env("BEAMTALK_HOME", home.join(".beamtalk"))
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .env("NAMESPACE", root.path().join("ns"))
            .env("NO_COLOR", "1")
            .env_remove("AGENT_ID")
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .unwrap()
    };
    let output = shell(&format!("exec 2>&1\n{}", script(&steps)));
    // Nothing of the page runs on.
    shell(
        "beamtalk agents stop --kill-sessions; for id in $(ls $BEAMTALK_HOME/workspaces 2>/dev/null); do beamtalk workspace stop $id; done; beamtalk loop stop",
    );
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let got: Vec<&str> = text.split(&format!("{MARK}\n")).skip(1).collect();
    let mut wrong = String::new();
    for (step, got) in steps.iter().zip(&got) {
        let lines: Vec<&str> = got.lines().collect();
        if !agrees(&step.expected, &lines) {
            let _ = writeln!(
                wrong,
                "$ {}\n--- the page says\n{}\n--- but it was\n{got}",
                step.command,
                step.expected.join("\n")
            );
        }
    }
    assert!(wrong.is_empty(), "{name}\n{wrong}");
    assert_eq!(got.len(), steps.len(), "{name}: the shell ended early\n{text}");
    let limit = Instant::now() + Duration::from_secs(10);
    while !left(root.path()).is_empty() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(left(root.path()), Vec::<String>::new());
}

/// Processes that still have the place of the test in their environment.
fn left(root: &Path) -> Vec<String> {
    let mark = root.display().to_string();
    let read = |path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| read(entry.path().join("environ")).contains(&mark))
        .map(|entry| read(entry.path().join("cmdline")).replace('\0', " "))
        .collect()
}

macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test]
        fn $test() {
            check($page);
        })*

        #[test]
        fn every_page_with_commands_is_run() {
            let run = [$($page),*];
            let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
            for entry in std::fs::read_dir(pages).unwrap().flatten() {
                let name = entry.file_name().into_string().unwrap();
                let is_page = entry.path().extension().is_some_and(|extension| extension == "md");
                if is_page && std::fs::read_to_string(entry.path()).unwrap().contains("```console") {
                    assert!(run.contains(&name.as_str()), "{name} is not run: add it to pages!");
                }
            }
        }
    };
}

pages! {
    agents: "agents.md",
    live_edit: "live-edit.md",
    the_loop: "loop.md",
    language_server: "lsp.md",
    packages: "packages.md",
    security: "security.md",
    testing: "testing.md",
}

#[test]
fn what_a_page_leaves_open_agrees() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(agrees(&lines("a\n…\nb … d"), &["a", "x", "y", "b c d"]));
    assert!(agrees(&lines("a\n…"), &["a"]));
    assert!(!agrees(&lines("a"), &["a", "b"]));
    assert!(!line_agrees("in … s", "in 3 ms, not more"));
}
