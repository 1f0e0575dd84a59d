//! What a user sees at a terminal.

use std::os::unix::fs::PermissionsExt;

use crate::screen::Screen;
use crate::support::Place;

/// What stands on the screen from the first line with this text on.
fn from(shown: &str, text: &str) -> String {
    let at = shown
        .find(text)
        .unwrap_or_else(|| panic!("{text:?} is not on:\n{shown}"));
    shown[at..].to_owned()
}

#[test]
fn the_greeting_warns_once_and_counts_actors_later() {
    let place = Place::with_project();
    place.write("src/Lamp.bt", "Actor subclass: Lamp\n  toggle => true\n");
    let screen = Screen::repl(&place);
    let shown = screen.shown();
    assert!(
        shown.starts_with("Beamtalk v0.1.0\n`:help` lists the commands, `:exit` leaves.\n\n  Workspace: ")
    );
    assert!(
        shown.contains(&format!("(auto-discovered from {})", place.directory().display())),
        "{shown}"
    );
    assert!(shown.contains("\n  Project:   work v0.1.0, "), "{shown}");
    assert!(
        shown.contains("\n  Security:  code runs with your user's rights; keep the workspace cookie private"),
        "{shown}"
    );
    assert!(!shown.contains("port"), "{shown}");
    screen.evaluate("Lamp spawn. Lamp spawn", "Actor(Lamp, ");
    let second = Screen::open(&place, "NO_COLOR=1 beamtalk repl");
    second.wait_for("\n  Project:   work v0.1.0, 2 classes\n  Running:   2 actors (Lamp 2)\n");
    assert!(!second.shown().contains("Security:"));
    second.line(":exit");
    second.wait_for("[exit 0]");
    screen.keys(&["C-d"]);
    screen.wait_for("[exit 0]");
    drop((screen, second));
    place.stop();
}

#[test]
fn a_class_is_typed_over_several_lines_and_patched() {
    let place = Place::with_project();
    place.write(
        "src/Lamp.bt",
        "Actor subclass: Lamp\n  state: on = false\n\n  isOn => self.on\n",
    );
    let screen = Screen::repl(&place);
    screen.evaluate("lamp := Lamp spawn", "Actor(Lamp, ");
    screen.line("Actor subclass: Fan");
    screen.wait_for_last("..> ");
    screen.line("  state: speed = 0");
    screen.wait_for_last("..> ");
    screen.line("  faster => self.speed := self.speed + 1");
    screen.wait_for_last("..> ");
    screen.keys(&["Enter"]);
    screen.wait_for_last("> ");
    assert_eq!(
        from(&screen.shown(), "> Actor subclass: Fan"),
        "> Actor subclass: Fan\n..>   state: speed = 0\n..>   faster => self.speed := self.speed + 1\n..>\nFan\n>"
    );
    screen.evaluate("Fan spawn faster", "\n1\n");
    screen.evaluate(
        "Fan >> slower => 0",
        "\nFan>>slower (no source file, not flushable)\n",
    );
    screen.evaluate(
        "Lamp >> isOn => \"patched\"",
        "\nLamp>>isOn (pending, :flush writes src/Lamp.bt)\n",
    );
    screen.evaluate("lamp isOn", "\n\"patched\"\n");
    screen.evaluate(":changes", "Lamp>>isOn (pending, :flush writes src/Lamp.bt)\n");
    screen.evaluate(":diff Lamp", "+  isOn => \"patched\"\n");
    screen.evaluate(":flush", "\nflushed 1 method across 1 file\n");
    assert_eq!(
        place.read("src/Lamp.bt"),
        "Actor subclass: Lamp\n  state: on = false\n\n  isOn => \"patched\"\n"
    );
    drop(screen);
    place.stop();
}

#[test]
fn a_conflict_is_shown_and_settled_at_the_prompt() {
    let place = Place::with_project();
    let lamp = "Actor subclass: Lamp\n  state: on = false\n\n  isOn => self.on\n";
    place.write("src/Lamp.bt", lamp);
    let screen = Screen::repl(&place);
    screen.evaluate("Lamp spawn isOn", "\nfalse\n");
    place.write("src/Lamp.bt", &lamp.replace("self.on", "#byHand"));
    screen.evaluate("Lamp >> isOn => 7", "(pending, :flush writes src/Lamp.bt)\n");
    screen.evaluate(":flush", "changed on disk and in the image (Lamp>>isOn)");
    screen.evaluate(":diff", "+isOn => #byHand");
    screen.evaluate(":sync", "changed on disk and in the image (Lamp>>isOn)");
    screen.evaluate("Lamp spawn isOn", "\n7\n");
    screen.evaluate(":take disk", "Lamp>>isOn (replaced)\n");
    screen.evaluate("Lamp spawn isOn", "\n#byHand\n");
    screen.evaluate(":changes", "\nNo changes\n");
    screen.evaluate("Lamp >> isOn => 8", "(pending, :flush writes src/Lamp.bt)\n");
    screen.line(":discard Lamp");
    screen.wait_for("load what is on disk? y/N");
    screen.evaluate("y", "Discarded    2  Lamp>>isOn\n");
    screen.evaluate("Lamp spawn isOn", "\n#byHand\n");
    screen.evaluate(":changes all", "Lamp>>isOn (discarded)\n");
    screen.line(":exit");
    screen.wait_for("[exit 0]");
    drop(screen);
    place.stop();
    assert!(place.read("src/Lamp.bt").contains("#byHand"));
}

#[test]
fn earlier_inputs_come_back_whole() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("40 + 2", "\n42\n");
    screen.line("#(1,");
    screen.wait_for_last("..> ");
    screen.evaluate("  2)", "\n#(1, 2)\n");
    screen.evaluate(" 7 * 191", "\n1337\n");
    screen.evaluate("5 + 5", "\n10\n");
    screen.line(":exit");
    screen.wait_for("[exit 0]");
    drop(screen);
    let files: Vec<_> = std::fs::read_dir(place.home().join("workspaces"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("repl_history"))
        .filter(|path| path.exists())
        .collect();
    assert_eq!(files.len(), 1);
    let mode = std::fs::metadata(&files[0]).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kept = std::fs::read_to_string(&files[0]).unwrap();
    assert_eq!(kept, "40 + 2\n#(1,\\n  2)\n5 + 5\n:exit\n");

    let screen = Screen::repl(&place);
    screen.keys(&["Up", "Up", "Up"]);
    screen.wait_for("> #(1,\n..>   2)");
    screen.keys(&["Enter"]);
    screen.wait_for("  2)\n#(1, 2)\n>");
    screen.keys(&["C-r"]);
    screen.text("40");
    screen.wait_for("(reverse-i-search)`40': 40 + 2");
    screen.keys(&["Enter"]);
    screen.wait_for("> 40 + 2\n42\n>");
    drop(screen);
    place.stop();
}

#[test]
fn earlier_lines_of_an_input_are_edited_in_place() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.line("x := #(1,");
    screen.wait_for_last("..> ");
    screen.line("  2,");
    screen.wait_for_last("..> ");
    screen.text("  3)");
    screen.wait_for("..>   3)");
    // Up twice, to the first line, where 1 becomes 10.
    screen.keys(&["Up", "Up", "End", "Left"]);
    screen.text("0");
    screen.wait_for("> x := #(10,\n..>   2,\n..>   3)");
    // A line taken in with the next, and a new one between them.
    screen.keys(&["Down", "Home", "BSpace"]);
    screen.wait_for("> x := #(10,  2,\n..>   3)");
    screen.keys(&["M-Enter"]);
    screen.wait_for("> x := #(10,\n..>   2,\n..>   3)");
    screen.keys(&["End"]);
    screen.text(" 7,");
    screen.wait_for("> x := #(10,\n..>   2, 7,\n..>   3)");
    screen.keys(&["Enter"]);
    screen.wait_for("> x := #(10,\n..>   2, 7,\n..>   3)\n#(10, 2, 7, 3)\n>");
    // The whole input comes back, and its lines can be edited too.
    screen.evaluate("5", "\n5\n");
    screen.keys(&["Up", "Up"]);
    screen.wait_for("\n5\n> x := #(10,\n..>   2, 7,\n..>   3)");
    screen.keys(&["Up", "Up", "End", "BSpace", "BSpace", "BSpace"]);
    screen.text("4,");
    screen.wait_for("\n5\n> x := #(4,\n..>   2, 7,\n..>   3)");
    screen.keys(&["Enter"]);
    screen.wait_for("..>   3)\n#(4, 2, 7, 3)\n>");
    // Past the oldest and back to what was typed.
    screen.text("6 *");
    screen.keys(&["Up"]);
    screen.wait_for("\n#(4, 2, 7, 3)\n> x := #(4,\n..>   2, 7,\n..>   3)");
    screen.keys(&["Down"]);
    screen.wait_for_last("> 6 *");
    screen.text(" 7");
    screen.keys(&["Enter"]);
    screen.wait_for("> 6 * 7\n42\n>");
    drop(screen);
    place.stop();
}

#[test]
fn long_lines_and_pasted_lines_are_edited_too() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    let long = "1234567890".repeat(15);
    screen.line(&format!("x := #({long},"));
    screen.wait_for_last("..> ");
    screen.text("  2)");
    screen.keys(&["Up", "Home"]);
    screen.text("y := ");
    screen.keys(&["Enter"]);
    screen.wait_for(&format!(
        "> y := x := #({long},\n..>   2)\n#(\n  {long},\n  2\n)\n>"
    ));
    let class = "Value subclass: Kettle\n  one => 1\n\n  two =>\n    2";
    screen.paste(class);
    let shown = "> Value subclass: Kettle\n..>   one => 1\n..>\n..>   two =>\n..>     2";
    screen.wait_for(shown);
    screen.keys(&["Up", "Up", "Up", "End"]);
    screen.text("1");
    screen.wait_for("..>   one => 11\n..>\n..>   two =>");
    screen.keys(&["Enter"]);
    screen.wait_for("..>     2\nKettle\n>");
    screen.evaluate("Kettle new one + Kettle new two", "\n13\n");
    drop(screen);
    place.stop();
}

#[test]
fn tab_completes_commands_classes_and_messages() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.text(":bi");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> :bindings");
    screen.keys(&["Enter"]);
    screen.wait_for("\nNo bindings\n>");
    screen.text("Transcr");
    screen.keys(&["Tab"]);
    screen.wait_for("\n> Transcript");
    screen.keys(&["C-c"]);
    screen.wait_for("\nCancelled\n>");
    screen.evaluate("kettle := 5", "\n5\n");
    screen.text("kett");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> kettle");
    screen.text(" isEv");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> kettle isEven");
    screen.keys(&["Enter"]);
    screen.wait_for("> kettle isEven\nfalse\n>");
    screen.text(":help Integ");
    screen.keys(&["Tab"]);
    screen.wait_for("> :help Integer");
    // What its objects understand, inherited too, and not what the class itself does.
    for (typed, completed) in [
        (" isEv", "> :help Integer isEven"),
        (":help List inje", "> :help List inject:into:"),
        (":help Workspace autof", "> :help Workspace autoflush"),
        (":help superv", "> :help supervisors"),
        (":help :flush-d", "> :help :flush-destructive"),
    ] {
        screen.text(typed);
        screen.keys(&["Tab"]);
        screen.wait_for(completed);
        screen.keys(&["C-c"]);
        screen.wait_for_last("> ");
    }
    drop(screen);
    place.stop();
}

#[test]
fn control_c_drops_typing_and_stops_evaluations() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    screen.line("x := [");
    screen.wait_for_last("..> ");
    screen.text("  2 +");
    screen.keys(&["C-c"]);
    screen.wait_for("\nCancelled\n>");
    screen.evaluate("x", "> x\n1\n");
    screen.line("Transcript show: \"turning\"; cr. [true] whileTrue: [x]");
    screen.wait_for("\nturning");
    screen.keys(&["C-c"]);
    screen.wait_for("Interrupted\n>");
    screen.evaluate("x + 41", "\n42\n");
    drop(screen);
    place.stop();
}

#[test]
fn the_transcript_of_others_appears_above_what_is_typed() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("Transcript show: \"own\"; cr. 7", "\nown\n7\n");
    let say = |text: &str| {
        place
            .run(&["eval", &format!("Transcript show: \"{text}\"; cr. nil")])
            .expect_code(0)
    };
    say("unseen");
    screen.evaluate(":transcript on", ":transcript on\n>");
    screen.text("6 * 7");
    screen.wait_for_last("> 6 * 7");
    say("hello");
    screen.wait_for("[transcript] hello\n> 6 * 7");
    screen.keys(&["Enter"]);
    screen.wait_for("> 6 * 7\n42\n>");
    screen.evaluate("Transcript show: \"mine\"; cr. 8", "\nmine\n8\n");
    screen.evaluate(":transcript off", ":transcript off\n>");
    say("silence");
    screen.evaluate("9", "\n9\n");
    let shown = screen.shown();
    for absent in ["unseen", "[transcript] mine", "silence"] {
        assert!(!shown.contains(absent), "{absent}:\n{shown}");
    }
    drop(screen);
    place.stop();
}

#[test]
fn colours_are_used_unless_refused() {
    let place = Place::new();
    let screen = Screen::open(&place, "beamtalk repl");
    screen.wait_for_last("> ");
    screen.line("#(1, \"a\", nil)");
    screen.wait_for("\n#(1, \"a\", nil)\n");
    screen.line("3 frobnicate");
    screen.wait_for("\nHint: ");
    let painted = screen.painted();
    for part in [
        "\x1b[33m1",
        "\x1b[32m\"a\"",
        "\x1b[1m\x1b[34mnil",
        "\x1b[1m\x1b[31mError: ",
    ] {
        assert!(painted.contains(part), "{part:?}:\n{painted:?}");
    }
    drop(screen);
    for refusal in [
        "NO_COLOR=1 beamtalk repl",
        "TERM=dumb beamtalk repl -e 3",
        "beamtalk repl --no-color -e 3",
    ] {
        let screen = Screen::open(&place, refusal);
        screen.wait_for("\n");
        if !refusal.contains("-e") {
            screen.wait_for_last("> ");
            screen.line("3");
        }
        screen.wait_for("3\n");
        assert!(!screen.painted().contains("\x1b[33m"), "{refusal}");
    }
    place.stop();
}

#[test]
fn a_plain_terminal_is_enough() {
    let place = Place::new();
    let screen = Screen::open(&place, "TERM=dumb beamtalk repl");
    screen.wait_for_last("> ");
    screen.line("#(1,");
    screen.wait_for_last("..> ");
    screen.line("2) size");
    screen.wait_for("2) size\n2\n>");
    screen.line("Transcript show: \"turning\"; cr. [true] whileTrue: [1]");
    screen.wait_for("\nturning");
    screen.keys(&["C-c"]);
    screen.wait_for("Interrupted\n>");
    assert!(!screen.painted().contains("\x1b[33m"));
    screen.keys(&["C-d"]);
    screen.wait_for("[exit 0]");
    drop(screen);
    place.stop();
}

#[test]
fn help_and_unknown_commands() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate(":help", "\n  :bindings ");
    screen.evaluate(
        ":bindigns",
        "\nUnknown command :bindigns. Did you mean :bindings?\n>",
    );
    screen.evaluate(":sync now", "\n:sync takes no argument\n>");
    screen.evaluate(":help Integer isEven", "isEven");
    screen.evaluate(
        "3 frobnicate",
        "\nError: Integer does not understand 'frobnicate'\nHint: ",
    );
    screen.evaluate(":error", "\nKind: does_not_understand\n");
    screen.evaluate(":time 6 * 7", "\n42\n");
    screen.wait_for(" ms\n>");
    screen.evaluate(":trace x := 2. x * 3", "\nx := 2 => 2\nx * 3 => 6\n>");
    screen.evaluate(":sessions", "▸ s-");
    screen.evaluate(":sc 1 + 2", "1 + 2\n");
    screen.evaluate(":interrupt", "\nNothing is running\n>");
    screen.evaluate(":clear", "\nCleared\n>");
    drop(screen);
    place.stop();
}

/// Tab on an empty line offers nothing and takes no key away from what is typed next.
#[test]
fn tab_on_an_empty_line_does_nothing() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.keys(&["Tab", "Tab"]);
    screen.evaluate("40 + 2", "> 40 + 2\n42\n");
    assert!(!screen.shown().contains("possibilities"), "{}", screen.shown());
    drop(screen);
    place.stop();
}

#[test]
fn values_are_looked_into() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("d := #{#a => #(1, 2), #b => 3}", "#a => ");
    screen.evaluate(":i d", "\nDictionary\n= #{#a => #(1, 2), #b => 3}\n▸ ");
    screen.evaluate(":i b", "\nInteger (d › b)\n= 3\n");
    screen.evaluate(":i ..", "> :i ..\nDictionary\n= #{");
    screen.evaluate(":i a", "\nList (d › a)\n= #(1, 2)\n  1  1\n");
    screen.evaluate(":i 2", "\nInteger (d › a › 2)\n= 2\n");
    screen.evaluate(":i ..", "> :i ..\nList (d › a)\n");
    screen.evaluate(":i ..", "> :i ..\nDictionary\n= #{");
    screen.line("Actor subclass: Lamp");
    screen.line("  state: bulbs = #(60, 40)");
    screen.line("  on => true");
    screen.evaluate("", "\nLamp\n");
    screen.evaluate(":i Lamp spawn", "\nLamp\n= Actor(Lamp, ");
    screen.wait_for("\n▸ bulbs  #(60, 40)\nunderstands ");
    drop(screen);
    place.stop();
}

#[test]
fn code_can_ask_the_user() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.line("\"Hello \" ++ (Console readLine: \"Name: \")");
    screen.wait_for_last("Name:");
    screen.line("Ada");
    // The line may be missing, of which one is warned.
    screen.wait_for("Name: Ada\n⚠ ");
    screen.wait_for("\n\"Hello Ada\"\n>");
    screen.line("Console readLine: \"Name: \"");
    screen.wait_for_last("Name:");
    screen.keys(&["C-d"]);
    screen.wait_for("Name:\nnil\n>");
    drop(screen);
    place.stop();
}
