use std::io::Write;
use std::process::Stdio;

use crate::support::{Place, finish, wait_until};

fn with_main(body: &str) -> Place {
    let place = Place::with_project();
    place.write("src/Main.bt", &format!("Object subclass: Main\n\n{body}"));
    place
}

#[test]
fn words_reach_the_program() {
    let place = with_main("  class main: words => Console printLine: words\n");
    let done = place
        .run(&["run", "Main", "main:", "Ada", "Grace", "--", "-x"])
        .expect_code(0);
    assert_eq!(done.stdout, "#(\"Ada\", \"Grace\", \"-x\")\n");
    assert_eq!(done.stderr, "");
}

#[test]
fn a_raised_error_is_told_without_raw_terms() {
    let place = with_main("  class run =>\n    x := 3 frobnicate\n    x + 1\n");
    let done = place.run(&["run", "Main", "run"]).expect_code(1);
    assert_eq!(done.stdout, "");
    assert!(
        done.stderr.contains("Integer does not understand 'frobnicate'"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("Hint: "), "{}", done.stderr);
    assert!(done.stderr.contains("src/Main.bt:4"), "{}", done.stderr);
    for raw in ["{beamtalk_error", "#{", "<0."] {
        assert!(!done.stderr.contains(raw), "{raw} in {}", done.stderr);
    }
}

#[test]
fn the_program_decides_its_status() {
    let place = with_main("  class run => Program exit: 7\n");
    place.run(&["run", "Main", "run"]).expect_code(7);
}

#[test]
fn shapes_that_cannot_be_sent_are_wrong_usage() {
    let place = with_main("  class run => nil\n");
    for arguments in [
        &["run", "main", "run"] as &[&str],
        &["run", "Main"],
        &["run", "Main", "at:put:"],
        &["run", "Main", "run", "word"],
    ] {
        place.run(arguments).expect_code(2);
    }
    let done = place.run(&["run", "Nowhere", "run"]).expect_code(1);
    assert!(done.stderr.contains("Nowhere"), "{}", done.stderr);
}

#[test]
fn standard_input_is_the_programs_own() {
    let place = with_main("  class run => Console printLine: \"got {Console readLine}\"\n");
    let done = place
        .run_with_input(&["run", "Main", "run"], "Größe\n")
        .expect_code(0);
    assert_eq!(done.stdout, "got Größe\n");
}

#[test]
fn a_running_program_listens_on_nothing_and_an_interrupt_ends_it() {
    let place = with_main(
        "  class run =>\n    Console printLine: \"ready\"\n    Console readLine\n    Console readLine\n",
    );
    let mut child = place
        .command(&["run", "Main", "run"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"first\n").unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    for id in place.processes() {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        assert_ne!(name.trim(), "epmd");
        let descriptors = std::fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten();
        for descriptor in descriptors.filter_map(Result::ok) {
            let target = std::fs::read_link(descriptor.path()).unwrap_or_default();
            assert!(
                !is_listening(id, &target.to_string_lossy()),
                "{name} listens: {}",
                target.display()
            );
        }
    }
    let id = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    drop(input);
    let done = finish(child);
    assert_ne!(done.code, Some(0));
}

/// Whether a descriptor is an internet socket (the node needs none at all).
pub(crate) fn is_listening(id: u32, target: &str) -> bool {
    let Some(inode) = target
        .strip_prefix("socket:[")
        .and_then(|rest| rest.strip_suffix(']'))
    else {
        return false;
    };
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let text = std::fs::read_to_string(format!("/proc/{id}/net/{table}")).unwrap_or_default();
        text.lines()
            .any(|line| line.split_whitespace().nth(9) == Some(inode))
    })
}

#[test]
fn the_transcript_of_a_program_is_its_standard_output() {
    let place = Place::with_project();
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run =>\n    Transcript show: \"one \"\n    Transcript showLine: 2\n    \
         Console printLine: TranscriptStream current isNil\n",
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "one 2\ntrue\n");
}

/// Compiled code names the globals of a workspace; without one they answer what they can.
#[test]
fn the_globals_of_a_workspace_are_there_without_one() {
    let place = Place::with_project();
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run =>\n    worker := Worker spawn\n    worker say: \"actor\"\n    \
         Timer sleep: 0\n    [:text | Transcript showLine: text] value: \"block\"\n    \
         Console printLine: Transcript recent size\n    Console printLine: Transcript class name\n    \
         Console printLine: WorkspaceInterface current isNil\n    \
         Console printLine: (Workspace actorsOf: Worker) size\n    \
         Console printLine: (Beamtalk classNamed: #Main) name\n    \
         #(#sync, #flush, #changes, #recheckImage, #autoflush, #sessions, #supervisors) do: [:each |\n      \
           [Workspace perform: each. Console printLine: each] on: Error do: [:e | Console printLine: e kind]]\n",
    );
    place.write(
        "src/Worker.bt",
        "Actor subclass: Worker\n\n  say: text => Transcript showLine: text\n",
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    let expected = format!(
        "actor\nblock\n2\nTranscriptStream\ntrue\n1\nMain\n{}",
        "no_workspace\n".repeat(7)
    );
    assert_eq!(done.stdout, expected, "{}", done.stderr);
    // In a test it is part of what the test wrote.
    place.write(
        "test/LoudTest.bt",
        "TestCase subclass: LoudTest\n\n  testLoud =>\n    Worker spawn say: \"from the actor\"\n    \
         Transcript show: \"from the test\"; cr\n    self assert: TranscriptStream current isNil\n    \
         self assert: 1 equals: 2\n\n  testQuiet => self assert: true\n",
    );
    let done = place.run(&["test"]).expect_code(1);
    let output = format!("{}{}", done.stdout, done.stderr);
    for text in ["from the actor", "from the test"] {
        assert_eq!(output.matches(text).count(), 1, "{text} in {output}");
    }
    assert!(output.contains("1 failed"), "{output}");
}

#[test]
fn the_node_ends_when_its_command_is_killed() {
    let place = Place::with_project();
    place.write(
        "test/SlowTest.bt",
        "TestCase subclass: SlowTest\n\n  testForever =>\n    [true] whileTrue: [Erlang timer sleep: 100]\n",
    );
    let mut child = place
        .command(&["test"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(
        wait_until(|| place.processes().len() >= 2),
        "the node has not started"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    place.expect_no_processes();
}

/// Whoever compiles a class for a project leaves the same bytes, and the program knows its package.
#[test]
fn a_run_leaves_what_a_build_leaves() {
    let place = Place::with_project();
    let modules = place.directory().join("_build/dev/ebin");
    let read = || std::fs::read(modules.join("bt@work@work.beam")).expect("the module");
    place.run(&["build"]).expect_code(0);
    let built = read();
    std::fs::remove_dir_all(place.directory().join("_build")).expect("removed");
    std::fs::write(
        place.directory().join("test/PackageTest.bt"),
        "TestCase subclass: PackageTest\n  testVersion => self assert: (Package named: \"work\") version equals: \"0.1.0\"\n",
    )
    .expect("written");
    place.run(&["run", "Work", "greet:", "Ada"]);
    assert_eq!(read(), built);
    place.run(&["test"]).expect_code(0);
}

/// One fault has one form: at the prompt, in a program, in the workspace and in a test.
#[test]
fn a_fault_is_told_alike_wherever_it_happens() {
    let place = Place::with_project();
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n  class run => self wrong printString\n\n  class wrong => 3 + \"a\"\n\n  class far => 3 frobnicateIt\n\n  class late => self plus: \"a\"\n\n  class plus: x => 3 + x\n\n  class none => self over: 0\n\n  class over: n => 1 / n\n",
    );
    place.write(
        "test/MainTest.bt",
        "TestCase subclass: MainTest\n  testFar => Main far\n\n  testRun => Main run\n",
    );
    for (selector, told) in [
        (
            "run",
            "'+' on Integer wants a Number, got \"a\" (a String)\n  at Main class>>wrong (src/Main.bt:4)\n  at Main class>>run (src/Main.bt:2)\n",
        ),
        (
            "far",
            "Integer does not understand 'frobnicateIt'\nHint: Check the spelling, or ask: Integer respondsTo: #frobnicateIt\n  at Main class>>far (src/Main.bt:6)\n",
        ),
        (
            "late",
            "'+' on Integer wants a Number, got \"a\" (a String)\n  at Main class>>plus: (src/Main.bt:10)\n  at Main class>>late (src/Main.bt:8)\n",
        ),
        (
            "none",
            "Division by zero: 1 / 0\n  at Main class>>over: (src/Main.bt:14)\n  at Main class>>none (src/Main.bt:12)\n",
        ),
    ] {
        let error = format!("Error: {told}");
        for words in [
            &["eval", &format!("Main {selector}")][..],
            &["run", "Main", selector],
            &["run", "--connect", "Main", selector],
        ] {
            let done = place.run(words).expect_code(1);
            assert!(done.stderr.ends_with(&error), "{words:?}: {}", done.stderr);
        }
    }
    let done = place.run(&["test", "--no-doc"]).expect_code(1);
    for part in [
        "  '+' on Integer wants a Number, got \"a\" (a String)\n  at Main class>>wrong (src/Main.bt:4)\n  at Main class>>run (src/Main.bt:2)\n",
        "  Integer does not understand 'frobnicateIt'\n  Hint: Check the spelling, or ask: Integer respondsTo: #frobnicateIt\n  at Main class>>far (src/Main.bt:6)\n",
    ] {
        assert!(done.stdout.contains(part), "{part}\n{}", done.stdout);
    }
    place.stop();
}

/// What the limit is, without starting a million of them.
#[test]
fn a_program_may_have_a_million_actors() {
    let limit = "Erlang beamtalk_guard max_processes";
    let place = with_main(&format!("  class run => Console printLine: {limit} > 1000000\n"));
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "true\n");
}
