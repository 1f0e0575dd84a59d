//! Sessions without a terminal: values, exit codes, objects, streams.

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Place, finish};

#[test]
fn expressions_are_evaluated_in_one_session() {
    let place = Place::new();
    let done = place
        .run(&[
            "repl",
            "-e",
            "x := 20",
            "-e",
            "x * 2 + 2",
            "-e",
            "Transcript show: \"hi\". 1",
        ])
        .expect_code(0);
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("20\n42\nhi\n1\n", "")
    );
    let done = place.run(&["eval", "x"]).expect_code(1);
    assert!(done.stderr.starts_with("Error: "), "{done:?}");
    place.stop();
}

#[test]
fn the_first_failure_ends_it() {
    let place = Place::new();
    let done = place
        .run(&["repl", "-e", "1", "-e", "3 frobnicate", "-e", "2"])
        .expect_code(1);
    assert_eq!(done.stdout, "1\n");
    assert!(
        done.stderr
            .contains("Error: Integer does not understand 'frobnicate'\nHint: "),
        "{done:?}"
    );
    let done = place.run(&["eval", "x := 1.\ny := x bar.\nx"]).expect_code(1);
    assert!(
        done.stderr
            .starts_with("Error: Integer does not understand 'bar'\nLine: 2\nHint: "),
        "{done:?}"
    );
    let done = place.run(&["eval", "x := 1.\nx := ]"]).expect_code(1);
    assert!(done.stderr.contains("\nLine: 2\n"), "{done:?}");
    place.run(&["eval", "1 +"]).expect_code(1);
    place.run(&["eval", "Program exit: 7"]).expect_code(7);
    for flags in [&["eval"][..], &["--json", "eval"]] {
        let done = place
            .run(&[flags, &["--timeout", "0.5", "[true] whileTrue: [1]"]].concat())
            .expect_code(124);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("raise it with --timeout"), "{told}");
    }
    place.run(&["eval", "--timeout", "0", "1"]).expect_code(2);
    place.run(&["eval"]).expect_code(2);
    place.run(&["eval", "2 + 3"]).expect_code(0);
    place.stop();
}

#[test]
fn objects_are_for_programs() {
    let place = Place::new();
    let done = place
        .run(&[
            "repl",
            "--json",
            "-e",
            "Transcript show: \"hi\". 42",
            "-e",
            "3 frobnicate",
        ])
        .expect_code(1);
    let objects: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [good, bad] = objects.as_slice() else {
        panic!("{done:?}")
    };
    assert_eq!(
        (&good["value"], &good["text"], &good["class"], &good["out"]),
        (&json!(42), &json!("42"), &json!("Integer"), &json!("hi"))
    );
    assert_eq!(good["status"], json!(["done"]));
    assert_eq!(bad["error"]["kind"], "does_not_understand");
    assert_eq!(bad["exit"], 1);
    assert_eq!(done.stderr, "");
    place.stop();
}

#[test]
fn a_stream_is_read_one_input_at_a_time() {
    let place = Place::new();
    let input = "x := 20\n\nActor subclass: Kettle\n  state: litres = 0\n\n  fill: n =>\n    self.litres := self.litres + n\n\n  \
                 litres => self.litres\n\nk := Kettle spawn\nk fill: x\nk litres\n:bindings\nConsole readLine\nthis is input\n:quit\n99\n";
    let done = place.run_with_input(&["repl"], input).expect_code(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(lines[..2], ["20", "Kettle"], "{done:?}");
    assert!(lines[2].starts_with("Actor(Kettle, "), "{done:?}");
    assert_eq!(lines[3..5], ["20", "20"], "{done:?}");
    assert!(lines[5].starts_with("k = Actor(Kettle, "), "{done:?}");
    assert_eq!(lines[6..], ["x = 20", "\"this is input\""], "{done:?}");
    let done = place
        .run_with_input(&["repl"], "1\n:nonsense\n2\n")
        .expect_code(1);
    assert_eq!(done.stdout, "1\n");
    assert!(done.stderr.starts_with("Unknown command :nonsense."), "{done:?}");
    place.stop();
}

/// Changes are named with one colon, differences say which side is disk and which image, times have parts of a millisecond, and
/// the classes of the image are checked with what was patched in.
#[test]
fn what_commands_say_about_a_changed_class() {
    let place = Place::with_project();
    place.write(
        "src/Account.bt",
        "Object subclass: Account\n  class deposit: amount => amount\n",
    );
    let input = "Account class >> deposit: amount => 3\n:diff\n:time Account deposit: 1\n:recheck image\n";
    let done = place.run_with_input(&["repl"], input).expect_code(0);
    let lines: Vec<&str> = done.stdout.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "Account class>>deposit: (pending, :flush writes src/Account.bt)",
            "--- src/Account.bt\tdisk",
            "+++ src/Account.bt\timage",
        ],
        "{done:?}"
    );
    assert!(lines.contains(&"+  class deposit: amount => 3"), "{done:?}");
    let [.., time, checked] = lines.as_slice() else {
        panic!("{done:?}")
    };
    let number = time.strip_suffix(" ms").unwrap();
    assert!(number.contains('.') && number.parse::<f64>().is_ok(), "{done:?}");
    assert!(checked.ends_with(", 1 finding"), "{done:?}");
    assert!(done.stderr.contains("Unused parameter `amount`"), "{done:?}");
    place.stop();
}

/// An input that means nothing says what is wrong with it: two parameters of one name, a class that is not there, a `^` whose
/// input is over. A loop that fails leaves its variables as they were when it failed.
#[test]
fn faults_of_inputs_name_their_reason() {
    let place = Place::new();
    let fails = |inputs: &[&str], reason: &str| {
        let words = inputs.iter().flat_map(|input| ["-e", *input]);
        let words: Vec<&str> = std::iter::once("repl").chain(words).collect();
        let done = place.run(&words).expect_code(1);
        assert!(done.stderr.starts_with(reason), "{done:?}");
    };
    fails(&["[:x :x | x]"], "Error: Two parameters are named `x`\n");
    fails(
        &["Intger parse: 3"],
        "Error: Class 'Intger' not found. Did you mean 'Integer'?\n",
    );
    fails(
        &["f := [:x | ^x]", "f value: 3"],
        "Error: '^' has nowhere to return to",
    );
    let input = "n := 0. left := 3. out := [1 to: 10 do: [:i | n := i. n := n * 10 / (left := left - 1)]] on: Error do: [:e | e kind]. \
                 #(n, left, out)";
    let done = place.run(&["eval", input]).expect_code(0);
    assert_eq!(done.stdout, "#(3, 0, #type_error)\n", "{done:?}");
    place.stop();
}

#[test]
fn an_ephemeral_workspace_ends_with_its_command() {
    let place = Place::new();
    assert_eq!(
        place.run(&["eval", "--ephemeral", "6 * 7"]).expect_code(0).stdout,
        "42\n"
    );
    place.expect_no_processes();
    for round in ["1", "2", "3"] {
        let done = place.run(&["eval", "--ephemeral", round]).expect_code(0);
        assert_eq!(
            done.stdout,
            format!("{round}\n"),
            "nobody meets the one that is stopping"
        );
    }
    place
        .run(&["repl", "--ephemeral", "--persistent", "-e", "1"])
        .expect_code(2);
    place.run(&["eval", "1"]).expect_code(0);
    place.run(&["eval", "--ephemeral", "2"]).expect_code(0);
    assert!(!place.processes().is_empty(), "it was running before");
    place.stop();
}

#[test]
fn an_interrupt_ends_the_command_and_the_evaluation() {
    let place = Place::new();
    place.run(&["eval", "1"]).expect_code(0);
    let mut child = place
        .command(&["eval", "Transcript show: \"go\"; cr. [true] whileTrue: [1]"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(&said, b"go\n");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let done = finish(child).expect_code(130);
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("", "Interrupted\n")
    );
    let done = place.run_with_input(&["repl"], ":sessions\n").expect_code(0);
    assert!(!done.stdout.replace("▸ ", "").contains("busy\n  "), "{done:?}");
    assert_eq!(done.stdout.matches("busy").count(), 0, "{done:?}");
    place.stop();
}

#[test]
fn a_wrong_cookie_is_exit_4() {
    let place = Place::new();
    place.run(&["eval", "1"]).expect_code(0);
    let workspaces = std::fs::read_dir(place.home().join("workspaces")).unwrap();
    let cookie = workspaces
        .map(|entry| entry.unwrap().path().join("cookie"))
        .find(|path| path.exists())
        .unwrap();
    let right = std::fs::read_to_string(&cookie).unwrap();
    let wrong: String = right
        .chars()
        .map(|character| {
            if character == 'A' {
                'B'
            } else if character == '\n' {
                '\n'
            } else {
                'A'
            }
        })
        .collect();
    std::fs::write(&cookie, &wrong).unwrap();
    let done = place.run(&["eval", "1"]).expect_code(4);
    assert!(!done.stderr.contains(wrong.trim()), "{done:?}");
    std::fs::write(&cookie, &right).unwrap();
    place.run(&["eval", "1"]).expect_code(0);
    place.stop();
}

#[test]
fn a_warm_evaluation_is_quick() {
    let place = Place::new();
    let median = |arguments: &[&str], rounds: usize| {
        let mut times: Vec<Duration> = (0..rounds)
            .map(|_| {
                let started = Instant::now();
                place.run(arguments).expect_code(0);
                started.elapsed()
            })
            .collect();
        times.sort_unstable();
        times[rounds / 2]
    };
    let cold = median(&["eval", "--ephemeral", "1 + 2"], 3);
    place.run(&["eval", "1 + 2"]).expect_code(0);
    let warm = median(&["repl", "-e", "1 + 2"], 9);
    // About a thirtieth on an idle machine: a running workspace must spare nearly all of a start, however slow that is.
    assert!(warm * 4 < cold, "warm {warm:?}, cold {cold:?}");
    place.stop();
}

/// What names stand for is not changed through a view of the variables either.
#[test]
fn names_of_classes_and_of_the_workspace_cannot_be_bound() {
    let place = Place::with_project();
    for name in ["Beamtalk", "Transcript", "Workspace", "Integer", "Work"] {
        let code = format!("Session current bindings at: #{name} put: 3");
        let refused = place.run(&["eval", &code]);
        assert!(
            refused.stderr.contains("cannot be bound again"),
            "{name}: {}",
            refused.stderr
        );
    }
    place
        .run(&["eval", "Session current bindings at: #free put: 3"])
        .expect_code(0);
    place.stop();
}

/// An input that was given before means what it would mean if it were new: classes come, change and go, and variables are the
/// session's own.
#[test]
fn the_same_input_again_means_what_it_means_now() {
    let place = Place::new();
    let asked = "[Later x] on: Error do: [:e | #none]";
    let define = |number: u32| format!("Object subclass: Later\n  class x => {number}");
    let (three, four) = (define(3), define(4));
    let patched = "Later class >> x => 5";
    let inputs = [
        asked,
        asked,
        &three,
        asked,
        asked,
        &four,
        asked,
        patched,
        asked,
        "Later removeFromSystem",
        asked,
    ];
    let words = inputs.iter().flat_map(|input| ["-e", *input]);
    let words: Vec<&str> = std::iter::once("repl").chain(words).collect();
    let done = place.run(&words).expect_code(0);
    let values: Vec<&str> = done
        .stdout
        .lines()
        .filter(|line| line.parse::<u32>().is_ok() || *line == "#none")
        .collect();
    assert_eq!(
        values,
        ["#none", "#none", "3", "3", "4", "5", "#none"],
        "{done:?}"
    );
    let own = ["repl", "-e", "v := 1", "-e", "v", "-e", "v := 2", "-e", "v"];
    assert_eq!(place.run(&own).expect_code(0).stdout, "1\n1\n2\n2\n");
    let done = place.run(&["repl", "-e", "v"]).expect_code(1);
    assert!(done.stderr.contains("Undefined variable: v"), "{done:?}");
    place.stop();
}

/// Where a fault left an actor's method, the place and what happened are apart by one colon.
#[test]
fn the_place_of_a_fault_has_one_colon() {
    let place = Place::new();
    let account = "Actor subclass: Account\n  state: balance = 0\n  deposit: amount => self.balance := self.balance + amount\n  \
                   total => #(1, \"x\") sum";
    for (input, start) in [
        (
            "Account spawn deposit: \"a\"",
            "Error: Account>>deposit: '+' on Integer wants",
        ),
        ("Account spawn total", "Error: Account>>total: "),
    ] {
        let done = place.run(&["repl", "-e", account, "-e", input]).expect_code(1);
        assert!(done.stderr.starts_with(start), "{done:?}");
    }
    place.stop();
}

/// A file that joins what is pending is counted among those that were loaded.
#[test]
fn a_merged_file_is_counted_by_sync() {
    let place = Place::with_project();
    let text =
        |watts: u32| format!("Object subclass: Lamp\n  class watts => {watts}\n\n  class volts => 230\n");
    place.write("src/Lamp.bt", &text(40));
    place
        .run(&["repl", "-e", "Lamp class >> volts => 110"])
        .expect_code(0);
    place.write("src/Lamp.bt", &text(60));
    let done = place
        .run(&[
            "repl",
            "-e",
            ":sync",
            "-e",
            "#(Lamp watts, Lamp volts)",
            "-e",
            ":sync",
        ])
        .expect_code(0);
    assert_eq!(
        done.stdout, "Reloaded 1 of 2 files (1 unchanged)\n#(60, 110)\nReloaded 0 of 2 files (2 unchanged)\n",
        "{done:?}"
    );
    place.stop();
}
