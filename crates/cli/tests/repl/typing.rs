//! What is typed, pasted and typed ahead.

use crate::screen::Screen;
use crate::support::Place;

#[test]
fn a_class_with_several_methods_is_typed_and_indented() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    // Nobody types a blank before a line: they are there.
    for line in [
        "Actor subclass: Fan",
        "state: speed = 0",
        "faster =>",
        "self.speed := self.speed + 1",
        "self.speed",
    ] {
        screen.line(line);
        screen.wait_for_last("..> ");
    }
    // One step back, to the methods.
    screen.keys(&["BSpace"]);
    screen.line("rest => self.speed := 0");
    screen.wait_for_last("..> ");
    screen.keys(&["Enter"]);
    screen.wait_for("\nFan\n>");
    let shown = screen.shown();
    assert!(
        shown.contains(
            "> Actor subclass: Fan\n..>   state: speed = 0\n..>   faster =>\n..>     self.speed := self.speed + 1\n..>     \
             self.speed\n..>   rest => self.speed := 0\n..>\nFan\n>"
        ),
        "{shown}"
    );
    screen.evaluate("fan := Fan spawn. fan faster. fan faster", "\n2\n");
    screen.evaluate("fan rest", "\n0\n");
    // A line at column 0 begins a new input.
    screen.line("Value subclass: One");
    screen.line("value => 1");
    screen.wait_for("..>   value => 1\n..>");
    screen.keys(&["BSpace"]);
    screen.line("One new value");
    screen.wait_for("..> One new value\nOne\n1\n>");
    drop(screen);
    place.stop();
}

/// A string has just the blanks in it that were typed.
#[test]
fn a_string_of_several_lines_is_what_was_typed() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    for line in ["Object subclass: Hard", "class text => \"a ["] {
        screen.line(line);
        screen.wait_for_last("..> ");
    }
    screen.line("b");
    screen.wait_for_last("..>");
    screen.line("  c\"");
    screen.wait_for_last("..> ");
    screen.keys(&["Enter"]);
    screen.wait_for("\nHard\n>");
    screen.evaluate("Hard text size", "\n9\n");
    screen.line("x := \"a");
    screen.wait_for_last("..>");
    screen.line("b\"");
    screen.evaluate("x size", "\n3\n");
    drop(screen);
    place.stop();
}

#[test]
fn what_is_typed_ahead_waits_for_the_prompt() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    let go = place.directory().join("go");
    screen.line(&format!(
        "Transcript show: \"turning\"; cr. [File exists: \"{}\"] whileFalse: [Erlang timer sleep: 10]. 5",
        go.display()
    ));
    screen.wait_for("\nturning");
    screen.line("40 + 2");
    screen.text("7 * 19");
    // Nothing of it shows while the evaluation runs.
    let shown = screen.shown();
    assert!(shown.ends_with("\nturning"), "{shown}");
    place.write("go", "");
    screen.wait_for("\nturning\n5\n> 40 + 2\n42\n> 7 * 19");
    screen.text("1");
    screen.keys(&["Enter"]);
    screen.wait_for("> 7 * 191\n1337\n>");
    drop(screen);
    place.stop();
}

#[test]
fn a_long_paste_leaves_one_copy() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    let mut class = String::from("/// Many.\nValue subclass: Many\n");
    for number in 0..66 {
        class.push_str(&format!("\n  method{number} =>\n    {number} + 1\n"));
    }
    class.push_str("\nMany new method65\n");
    screen.paste(&class);
    screen.wait_for_last("..> ");
    screen.keys(&["Enter"]);
    screen.wait_for("\nMany\n66\n>");
    let shown = screen.shown();
    for number in 0..66 {
        assert_eq!(
            shown.matches(&format!("  method{number} =>\n")).count(),
            1,
            "{number}:\n{shown}"
        );
    }
    assert_eq!(shown.matches("subclass: Many").count(), 1, "{shown}");
    screen.evaluate("Many new method1 + Many new method2", "\n5\n");
    drop(screen);
    place.stop();
}

#[test]
fn terminals_share_their_history_also_when_they_are_killed() {
    let place = Place::with_project();
    let one = Screen::repl(&place);
    let two = Screen::repl(&place);
    one.evaluate("100 + 1", "\n101\n");
    two.evaluate("200 + 2", "\n202\n");
    one.evaluate("5", "\n5\n");
    one.keys(&["Up", "Up"]);
    one.wait_for_last("> 200 + 2");
    // The processes of the terminal, not those of the workspace.
    one.kill_command();
    drop((one, two));
    let three = Screen::repl(&place);
    three.keys(&["Up"]);
    three.wait_for_last("> 5");
    three.keys(&["Up", "Up"]);
    three.wait_for_last("> 100 + 1");
    drop(three);
    place.stop();
}
