//! A session whose workspace is taken away from under it.

use serde_json::Value;

use crate::screen::Screen;
use crate::support::Place;

fn node_info(place: &Place) -> Value {
    let workspaces = std::fs::read_dir(place.home().join("workspaces")).unwrap();
    let file = workspaces
        .map(|entry| entry.unwrap().path().join("node.info"))
        .find(|path| path.exists())
        .unwrap();
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn kill(place: &Place, field: &str) {
    let id = i32::try_from(node_info(place)[field].as_i64().unwrap()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_killed_node_comes_back_under_the_session() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    screen.text("6 * 7");
    screen.wait_for_last("> 6 * 7");
    kill(&place, "node_pid");
    screen.wait_for("[workspace] the node ended");
    screen.wait_for("[workspace] the node is up again\n> 6 * 7");
    screen.keys(&["Enter"]);
    screen.wait_for("> 6 * 7\n42\n>");
    screen.evaluate("Erlang erlang halt: 0", "\nError: ");
    screen.wait_for_count("[workspace] the node is up again", 2);
    screen.evaluate("5 + 5", "\n10\n");
    drop(screen);
    place.stop();
}

#[test]
fn a_killed_daemon_is_started_again_and_half_typed_input_comes_back() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    let before = node_info(&place);
    screen.text("6 * 7");
    screen.wait_for_last("> 6 * 7");
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    screen.wait_for(
        "The workspace had stopped; started again.\nReconnected (new session; bindings are gone).\n> 6 * 7",
    );
    assert_ne!(node_info(&place)["nonce"], before["nonce"]);
    screen.keys(&["Enter"]);
    screen.wait_for("> 6 * 7\n42\n>");
    drop(screen);
    place.stop();
}

#[test]
fn an_input_given_without_a_connection_waits_for_the_next() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    screen.line("6 * 7");
    screen.wait_for("The workspace had stopped; started again.");
    screen.wait_for("\n42\n>");
    kill(&place, "pid");
    screen.wait_for_count("Connection lost, reconnecting…", 2);
    screen.line("8 * 8");
    screen.wait_for("> 8 * 8");
    screen.press_until("C-c", ">");
    screen.evaluate("9 * 9", "\n81\n");
    assert!(!screen.shown().contains("\n64\n"), "{}", screen.shown());
    drop(screen);
    place.stop();
}

#[test]
fn several_half_typed_lines_come_back() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.line("y := #(1,");
    screen.wait_for_last("..> ");
    screen.line("  2,");
    screen.wait_for_last("..> ");
    screen.text("  3");
    screen.wait_for_last("..>   3");
    kill(&place, "pid");
    screen.wait_for("The workspace had stopped; started again.");
    screen.wait_for("Reconnected (new session; bindings are gone).");
    screen.text(")");
    screen.keys(&["Enter"]);
    screen.wait_for("..>   3)\n#(1, 2, 3)\n>");
    drop(screen);
    place.stop();
}

/// A question that waits for an empty line does not draw the line that is being typed again and again.
#[test]
fn what_is_half_typed_rests_while_a_question_waits() {
    let place = Place::with_project();
    let screen = Screen::repl(&place);
    screen.evaluate("Work >> half => 1", "Work>>half");
    screen.keys(&["1", "Space", "+", "Space", "4", "1"]);
    screen.wait_for_last("> 1 + 41");
    kill(&place, "pid");
    screen.wait_for("Reconnected (new session; bindings are gone).");
    // Time in which the prompt would have been woken twenty times.
    place.run(&["eval", "Timer sleep: 2000"]).expect_code(0);
    let shown = screen.shown();
    assert!(shown.matches("> 1 + 41").count() <= 3, "{shown}");
    screen.keys(&["Enter"]);
    screen.wait_for("\n42\n");
    drop(screen);
    place.stop();
}

#[test]
fn an_evaluation_that_lost_its_daemon_is_not_sent_again() {
    let place = Place::with_project();
    let mark = place.directory().join("mark");
    let screen = Screen::repl(&place);
    let code = format!(
        "(File appendBinary: \"{}\" contents: \"once\"). [true] whileTrue: [1]",
        mark.display()
    );
    screen.line(&code);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::fs::read_to_string(&mark).unwrap_or_default() != "once" {
        assert!(std::time::Instant::now() < deadline, "{}", screen.shown());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill(&place, "pid");
    screen.wait_for("The workspace had stopped; started again.");
    screen.wait_for("Reconnected (new session; bindings are gone).\n>");
    screen.evaluate("5 + 5", "\n10\n");
    assert_eq!(std::fs::read_to_string(&mark).unwrap(), "once");
    drop(screen);
    place.stop();
}

#[test]
fn a_stopped_workspace_is_started_again_with_its_flags() {
    let place = Place::new();
    place.run(&["workspace", "start", "--no-ffi"]).expect_code(0);
    let screen = Screen::repl(&place);
    place.run(&["workspace", "stop"]).expect_code(0);
    screen.wait_for("The workspace had stopped; started again.");
    screen.wait_for("Reconnected (new session; bindings are gone).");
    assert_eq!(node_info(&place)["capabilities"]["ffi"], false);
    screen.evaluate(":reconnect", "\nReconnected (session resumed).\n");
    drop(screen);
    place.stop();
}

#[test]
fn one_that_is_attached_gives_up_with_3_and_keeps_what_was_typed() {
    let place = Place::new();
    place.run(&["workspace", "start"]).expect_code(0);
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk workspace attach");
    screen.wait_for_last("> ");
    screen.text("6 * 7");
    screen.wait_for_last("> 6 * 7");
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    screen.wait_for("The workspace cannot be reached.");
    screen.wait_for("[exit 3]");
    drop(screen);
    place.expect_no_processes();
}

#[test]
fn one_without_a_terminal_gives_up_with_3() {
    let place = Place::new();
    place.run(&["workspace", "start"]).expect_code(0);
    let mut child = place
        .command(&["eval", "[true] whileTrue: [1]"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let sessions = place.run(&["eval", "Workspace sessions size"]).expect_code(0);
        if sessions.stdout.trim() == "2" {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{sessions:?}");
    }
    kill(&place, "pid");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(3));
    place.expect_no_processes();
}

#[test]
fn a_new_daemon_is_found_again() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    place.run(&["workspace", "start"]).expect_code(0);
    screen.wait_for("Reconnected (new session; bindings are gone).");
    assert!(!screen.shown().contains("started again"), "{}", screen.shown());
    screen.evaluate("2 + 3", "\n5\n");
    drop(screen);
    place.stop();
}

#[test]
fn a_session_is_resumed() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 41", "\n41\n");
    screen.evaluate(":reconnect", "\nReconnected (session resumed).\n");
    screen.evaluate("x + 1", "\n42\n");
    drop(screen);
    place.stop();
}

/// A project whose last run left two changes that were not flushed.
fn left_behind() -> Place {
    let place = Place::with_project();
    place.write("src/Lamp.bt", "Object subclass: Lamp\n  class watt => 4\n");
    for code in ["Lamp class >> watt => 40", "Lamp class >> volt => 12"] {
        place.run(&["eval", code]).expect_code(0);
    }
    kill(&place, "pid");
    place
}

const SENTENCE: &str =
    "2 changes of the last run were not flushed (:restore installs them, :discard forgets them)";

#[test]
fn changes_that_wait_are_asked_about_once() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for(SENTENCE);
    screen.wait_for("Lamp class>>watt (by human s-");
    screen.wait_for_last("install, later, discard?");
    screen.keys(&["Enter"]);
    screen.wait_for_last("> ");
    screen.evaluate("Lamp watt", "> Lamp watt\n4\n");
    screen.evaluate(":changes", SENTENCE);
    screen.evaluate(":reconnect", "\nReconnected (session resumed).\n");
    screen.evaluate(
        ":restore Lamp",
        "\nInstalled Lamp class>>watt (pending, :flush writes src/Lamp.bt)\n",
    );
    screen.evaluate("Lamp watt + Lamp volt", "\n52\n");
    assert_eq!(screen.shown().matches("install, later, discard?").count(), 1);
    screen.line(":exit");
    screen.wait_for("[exit 0]");
    assert!(!screen.shown().contains("Connection lost"), "{}", screen.shown());
    drop(screen);
    place.stop();
}

/// A yes is for what was shown, not for what was put off before.
#[test]
fn only_what_is_shown_is_installed() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for_last("install, later, discard?");
    screen.line("later");
    screen.evaluate("Lamp class >> lux => 9", "Lamp class>>lux (pending");
    kill(&place, "pid");
    screen.wait_for("3  Lamp class>>lux (by human s-");
    screen.wait_for_last("install, later, discard?");
    screen.line("install");
    screen.wait_for("Installed Lamp class>>lux");
    screen.evaluate("#(Lamp watt, Lamp lux)", "\n#(4, 9)\n");
    assert!(
        !screen.shown().contains("Installed Lamp class>>watt"),
        "{}",
        screen.shown()
    );
    drop(screen);
    place.stop();
}

/// What is no answer was typed ahead, for the prompt; a letter may be a variable.
#[test]
fn lines_typed_ahead_do_not_answer_the_question() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for_last("install, later, discard?");
    screen.line("d := #(1,");
    screen.wait_for_last("..> ");
    screen.line("  2)");
    screen.wait_for("\n#(1, 2)\n>");
    screen.evaluate("d", "\n#(1, 2)\n");
    screen.evaluate(":changes", SENTENCE);
    drop(screen);
    place.stop();
}

#[test]
fn a_workspace_started_again_gives_the_typed_lines_back_and_asks_when_they_are_done() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for_last("install, later, discard?");
    screen.line("install");
    screen.wait_for("Installed Lamp class>>volt");
    screen.wait_for_last("> ");
    screen.line("z := #(Lamp watt,");
    screen.wait_for_last("..> ");
    screen.text("  Lamp vo");
    screen.wait_for_last("..>   Lamp vo");
    kill(&place, "pid");
    screen.wait_for("The workspace had stopped; started again.");
    // Whoever is typing is told and goes on typing.
    screen.wait_for_count(SENTENCE, 2);
    screen.wait_for_last("..>   Lamp vo");
    screen.text("lt) size");
    screen.keys(&["Enter"]);
    screen.wait_for_last("install, later, discard?");
    screen.line("install");
    screen.wait_for("Installed Lamp class>>watt");
    screen.wait_for_last("> ");
    screen.evaluate("#(Lamp watt, Lamp volt)", "\n#(40, 12)\n");
    // The one who says no loses nothing else.
    screen.evaluate(":flush", "\nflushed 2 methods across 1 file\n");
    screen.evaluate("Lamp class >> lux => 9", "Lamp class>>lux (pending");
    screen.text("Lamp wa");
    screen.wait_for_last("> Lamp wa");
    kill(&place, "pid");
    // The last of what is said above the line that is being typed; later it could come between the line and its answer.
    screen.wait_for_count("Reconnected (new session; bindings are gone).", 2);
    screen.wait_for_last("> Lamp wa");
    screen.text("tt");
    screen.keys(&["Enter"]);
    screen.wait_for("> Lamp watt\n40\n");
    screen.wait_for_last("install, later, discard?");
    screen.line("discard");
    screen.wait_for("Discarded");
    screen.wait_for_last("> ");
    screen.evaluate(":changes", "No changes");
    drop(screen);
    place.stop();
}

/// What was pasted counts on what stood before it: in another session nothing of the rest is evaluated.
#[test]
fn the_rest_of_a_paste_is_not_evaluated_in_another_session() {
    let place = Place::with_project();
    let screen = Screen::repl(&place);
    let marks = ["one", "two"].map(|name| place.directory().join(name));
    let write =
        |mark: &std::path::Path| format!("(File writeAll: \"{}\" contents: \"ran\") isOk", mark.display());
    screen.paste(&format!(
        "Work >> half => 1\n{}. Timer sleep: 60000\n{}\n7 * 7\n",
        write(&marks[0]),
        write(&marks[1])
    ));
    screen.wait_for_last("..> ");
    screen.keys(&["Enter"]);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !marks[0].exists() {
        assert!(std::time::Instant::now() < deadline, "{}", screen.shown());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill(&place, "pid");
    screen.wait_for("2 pasted inputs were not evaluated");
    screen.wait_for_last("install, later, discard?");
    screen.keys(&["C-c"]);
    screen.wait_for("Cancelled");
    screen.evaluate("6 * 7", "\n42\n");
    assert!(
        !marks[1].exists() && !screen.shown().contains("\n49\n"),
        "{}",
        screen.shown()
    );
    drop(screen);
    place.stop();
}

/// The other terminal: what it changes while a question is open here was not shown here.
fn beside(place: &Place, code: &str) {
    place.run(&["eval", code]).expect_code(0);
}

fn with_classes(names: &[&str]) -> Place {
    let place = Place::with_project();
    for name in names {
        place.write(
            &format!("src/{name}.bt"),
            &format!("Object subclass: {name}\n  class v => 1\n"),
        );
    }
    place
}

#[test]
fn a_yes_to_deleting_is_for_the_files_that_were_shown() {
    let place = with_classes(&["First", "Second"]);
    let screen = Screen::repl(&place);
    screen.evaluate("First v + Second v", "\n2\n");
    beside(&place, "First removeFromSystem");
    screen.line(":flush-destructive");
    screen.wait_for("src/First.bt is deleted (First was removed)");
    screen.wait_for("This may delete source text. Go on? y/N");
    beside(&place, "Second removeFromSystem");
    screen.evaluate("y", "deleted First");
    assert!(!place.directory().join("src/First.bt").exists());
    assert!(place.directory().join("src/Second.bt").exists());
    // Of a file that holds more only the class goes, and that is what is asked.
    let text = "Object subclass: Third\n  class v => 1\n\nInteger >> thrice => self * 3\n";
    place.write("src/Third.bt", text);
    screen.evaluate(":sync", "Reloaded");
    beside(&place, "Third removeFromSystem");
    screen.line(":changes");
    screen.wait_for("Third remove-class (pending, :flush cuts it out of src/Third.bt)");
    screen.line(":flush-destructive Third");
    screen.wait_for("Third is cut out of src/Third.bt, the rest of the file stays\nThis may delete source text. Go on? y/N");
    screen.evaluate("y", "deleted Third");
    assert_eq!(place.read("src/Third.bt"), "\nInteger >> thrice => self * 3\n");
    drop(screen);
    place.stop();
}

#[test]
fn a_yes_to_discarding_is_for_the_changes_that_were_shown() {
    let place = with_classes(&["Lamp"]);
    let screen = Screen::repl(&place);
    screen.evaluate("Lamp class >> one => 1", "(pending, :flush writes src/Lamp.bt)");
    screen.evaluate("Lamp class >> two => 2", "(pending, :flush writes src/Lamp.bt)");
    screen.line(":discard all");
    screen.wait_for("Lamp class>>one (by human");
    screen.wait_for("load what is on disk? y/N");
    beside(&place, "Lamp class >> three => 3");
    screen.evaluate("y", "Lamp class>>one\n");
    screen.evaluate("Lamp three", "\n3\n");
    screen.evaluate(
        "(Lamp class respondsTo: #one) or: [Lamp class respondsTo: #two]",
        "\nfalse\n",
    );
    drop(screen);
    place.stop();
}

#[test]
fn discarding_what_waits_leaves_what_somebody_installed_meanwhile() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for_last("install, later, discard?");
    place.run(&["repl", "-e", ":restore 1"]).expect_code(0);
    screen.line("discard");
    screen.wait_for("Discarded    2  Lamp class>>volt");
    screen.wait_for_last("> ");
    screen.evaluate("Lamp watt", "> Lamp watt\n40\n");
    drop(screen);
    place.stop();
}

#[test]
fn what_is_pasted_at_a_question_is_one_input_after_the_other() {
    let place = left_behind();
    let screen = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    screen.wait_for_last("install, later, discard?");
    screen.paste("#first\n#second foo\n#third\n");
    screen.keys(&["Enter"]);
    screen.wait_for("\n#first\n");
    screen.wait_for("does not understand 'foo'");
    screen.wait_for("\n#third\n");
    drop(screen);
    place.stop();
}

#[test]
fn whoever_looked_at_a_conflict_decides_about_what_was_shown() {
    let place = with_classes(&["Lamp"]);
    let screen = Screen::repl(&place);
    screen.evaluate("Lamp class >> v => 2", "(pending, :flush writes src/Lamp.bt)");
    let disk = |value: u32| {
        place.write(
            "src/Lamp.bt",
            &format!("Object subclass: Lamp\n  class v => {value}\n"),
        );
    };
    disk(3);
    screen.evaluate(":diff", "=> 3");
    disk(999);
    for take in [":take image", ":take image Lamp", ":take image Lamp class v"] {
        screen.line(take);
        screen.wait_for(&format!(
            "> {take}\nError: src/Lamp.bt is not what it was when it was shown"
        ));
    }
    assert!(place.read("src/Lamp.bt").contains("v => 999"));
    screen.evaluate(":diff", "=> 999");
    screen.evaluate(":take image", "Lamp class>>v");
    screen.evaluate(":flush", "flushed 1 method");
    assert!(place.read("src/Lamp.bt").contains("v => 2"));
    // A class that was removed here and changed there is in conflict too.
    screen.line(":remove-class Lamp");
    screen.wait_for("Its file stays. y/N");
    screen.evaluate("y", "Removed Lamp");
    disk(5);
    screen.line(":flush-destructive");
    screen.wait_for("Go on? y/N");
    screen.evaluate("y", "conflict");
    screen.evaluate(":take disk", "Lamp");
    screen.evaluate("Lamp v", "\n5\n");
    drop(screen);
    place.stop();
}
