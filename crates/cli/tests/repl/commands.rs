//! Commands that look at code, change it in an editor, and watch actors.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::screen::Screen;
use crate::support::Place;

const LAMP: &str = "/// A lamp.\nActor subclass: Lamp\n  state: on = false\n\n  /// Turns it.\n  toggle =>\n    self.on := self.on not\n\n  isOn => self.on\n\n  class make => Lamp spawn\n";
const ROOM: &str = "Object subclass: Room\n  class lit => Lamp make toggle\n";

fn place() -> Place {
    let place = Place::with_project();
    place.write("src/Lamp.bt", LAMP);
    place.write("src/Room.bt", ROOM);
    place
}

#[test]
fn sources_and_places_are_found() {
    let place = place();
    let screen = Screen::repl(&place);
    screen.evaluate(
        ":source Lamp toggle",
        "\n// Lamp>>toggle (src/Lamp.bt:6)\n/// Turns it.\ntoggle =>\n    self.on := self.on not\n>",
    );
    screen.evaluate(
        ":src Lamp class make",
        "\n// Lamp class>>make (src/Lamp.bt:11)\nmake => Lamp spawn\n>",
    );
    screen.evaluate(
        ":source Lamp",
        "\n// Lamp (src/Lamp.bt:2)\n/// A lamp.\nActor subclass: Lamp\n  state: on = false\n\n  /// Turns it.\n  toggle =>\n    \
         self.on := self.on not\n\n  isOn => self.on\n\n  class make => Lamp spawn\n>",
    );
    screen.evaluate("Lamp >> isOn => #patched", "Lamp>>isOn (pending");
    screen.evaluate(":source Lamp isOn", "\nisOn => #patched\n>");
    screen.evaluate(
        ":senders toggle",
        "\nsrc/Room.bt:2 Room class>>lit\n1 senders of toggle\n>",
    );
    screen.evaluate(":implementors #toggle", "\nsrc/Lamp.bt:6 Lamp>>toggle\n");
    screen.evaluate(
        ":references Lamp",
        "\nsrc/Lamp.bt:11 Lamp class>>make\nsrc/Room.bt:2 Room class>>lit\n",
    );
    screen.evaluate(":senders nobodySendsThis", "\nNo senders of nobodySendsThis\n>");
    screen.evaluate(":source Lmap", "\nError: no class named 'Lmap' is loaded\n");
    screen.evaluate(":source Lamp nope", "\nError: Lamp does not define 'nope'\n");
    screen.evaluate(":source a b c d", "\nUsage: :source Class [class] [selector]\n");
    screen.evaluate(":senders", "\nUsage: :senders selector\n");
    screen.evaluate(":references Nope", "\nError: no class named 'Nope' is loaded\n");
    screen.text(":source Lamp tog");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> :source Lamp toggle");
    screen.keys(&["C-c"]);
    screen.wait_for("\nCancelled\n>");
    screen.text(":implementors togg");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> :implementors toggle");
    screen.keys(&["C-c"]);
    screen.wait_for_count("\nCancelled\n>", 2);
    screen.text(":print sh");
    screen.keys(&["Tab"]);
    screen.wait_for_last("> :print short");
    screen.keys(&["Enter"]);
    screen.evaluate(":print some", "\nUsage: :print all|short\n");
    screen.evaluate(":status", "\n  Workspace     ");
    let shown = screen.shown();
    for part in [
        "  Address       127.0.0.1:",
        "  Session       s-",
        "  Project       work v0.1.0, 3 classes",
        "  Node          up for ",
    ] {
        assert!(shown.contains(part), "{part}:\n{shown}");
    }
    drop(screen);
    let done = place
        .run(&[
            "--json",
            "repl",
            "-e",
            ":status",
            "-e",
            ":senders toggle",
            "-e",
            ":top",
        ])
        .expect_code(0);
    let answers: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers[0]["project"]["name"], "work");
    assert_eq!(answers[0]["capabilities"]["fs"], "rw");
    assert_eq!(answers[1]["sites"][0]["class"], "Room");
    assert_eq!(answers[2]["total"], 0);
    let done = place.run(&["repl", "-e", ":edit Lamp"]).expect_code(1);
    assert_eq!(done.stderr.lines().last(), Some(":edit needs a terminal"));
    place.stop();
}

/// An editor that does what the test says: each call runs the next of these on the file.
fn editor(place: &Place, steps: &[&str]) -> String {
    for (number, step) in steps.iter().enumerate() {
        place.write(&format!("step{}", number + 1), step);
    }
    place.write("calls", "");
    let here = place.directory().display().to_string();
    place.write(
        "ed.sh",
        &format!("echo x >> {here}/calls\nfile=\"$1\"\n. {here}/step$(wc -l < {here}/calls | tr -d ' ')\n"),
    );
    let script = place.directory().join("ed.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!(
        "TMPDIR='{here}' NO_COLOR=1 VISUAL= EDITOR='sh {}' beamtalk repl",
        script.display()
    )
}

#[test]
fn a_method_is_edited_in_the_users_editor() {
    let place = place();
    let command = editor(
        &place,
        &[
            "sed -i 's/self.on not/7/' \"$file\"",
            "true",
            "sed -i 's/=>/=> ]/' \"$file\"",
            "grep -q '=> ]' \"$file\" && sed -i 's/=> ]/=> 8. /' \"$file\"",
            "sed -i 's/=>/=> ]/' \"$file\"",
            "exit 3",
            "sed -i 's/isOn => self.on/isOn => #edited/' \"$file\"",
        ],
    );
    let screen = Screen::open(&place, &command);
    screen.wait_for_last("> ");
    screen.evaluate("lamp := Lamp spawn", "Actor(Lamp, ");
    screen.evaluate(
        ":edit Lamp toggle",
        "\nLamp>>toggle (pending, :flush writes src/Lamp.bt)\n>",
    );
    screen.evaluate("lamp toggle", "\n7\n");
    screen.evaluate(":e Lamp toggle", "\nUnchanged\n>");
    // What does not compile comes back as it was left.
    screen.line(":e Lamp toggle");
    screen.wait_for("\nError: ");
    screen.wait_for_last("Edit again? Y/n");
    screen.keys(&["Enter"]);
    screen.wait_for_count("(pending, :flush writes src/Lamp.bt)\n", 2);
    screen.line(":e Lamp toggle");
    screen.wait_for_count("Edit again? Y/n", 2);
    screen.line("n");
    screen.wait_for("Nothing was changed; the text is in ");
    let shown = screen.shown();
    let kept = shown
        .rsplit("the text is in ")
        .next()
        .unwrap()
        .lines()
        .next()
        .unwrap();
    assert!(std::fs::read_to_string(kept).unwrap().contains("=> ]"), "{kept}");
    std::fs::remove_file(kept).unwrap();
    screen.evaluate(":e Lamp toggle", "ended with exit status: 3; the text is in ");
    screen.evaluate(":e Lamp", "\nLamp\n>");
    screen.evaluate("lamp isOn", "\n#edited\n");
    screen.evaluate(":e Nope", "\nError: no class named 'Nope' is loaded\n");
    drop(screen);
    place.stop();
}

#[test]
fn the_busiest_actors_are_watched() {
    let place = place();
    let screen = Screen::repl(&place);
    screen.evaluate(
        "1 to: 2000 do: [:n | Lamp spawn]. (Lamp spawnAs: #boiler) isOk",
        "\ntrue\n",
    );
    screen.line(":top");
    screen.wait_for("2,001 actors: Lamp 2,001\nby queue length; ");
    screen.text("n");
    screen.wait_for("by name; ");
    let shown = screen.shown();
    let row = shown.lines().find(|line| line.contains("boiler")).unwrap();
    assert!(row.starts_with("0.") && row.contains(" Lamp "), "{row}");
    screen.text("m");
    screen.wait_for("by memory; ");
    screen.text("q");
    screen.wait_for_last("> ");
    assert!(!screen.shown().contains("by memory"), "the screen is as before");
    screen.evaluate("6 * 7", "> 6 * 7\n42\n");
    screen.line(":top");
    screen.wait_for("by queue length; ");
    screen.keys(&["C-c"]);
    screen.wait_for_last("> ");
    screen.evaluate("1 + 1", "> 1 + 1\n2\n");
    drop(screen);
    place.stop();
}

#[test]
fn anything_is_inspected() {
    let place = place();
    let screen = Screen::repl(&place);
    for (code, head) in [
        ("3", "\nInteger\n= 3\nunderstands "),
        ("\"abc\"", "\nString\n= \"abc\"\nunderstands "),
        ("nil", "\nUndefinedObject\n= nil\nunderstands "),
        ("[:x | x]", "\nBlock\n= Block\nunderstands "),
        ("Lamp", "\nLamp class\n= Lamp\n"),
        ("Result ok: 3", "\nResult\n= Result ok: 3\n"),
        ("Lamp spawn", "\nLamp\n= Actor(Lamp, "),
        ("1.5", "\nFloat\n= 1.5\n"),
        ("#sym", "\nSymbol\n= #sym\n"),
    ] {
        screen.evaluate(&format!(":i {code}"), head);
    }
    screen.wait_for("  Object (");
    drop(screen);
    place.stop();
}

#[test]
fn results_are_laid_out_and_cut() {
    let place = place();
    let screen = Screen::repl(&place);
    screen.evaluate("(1 to: 3) asList", "\n#(1, 2, 3)\n>");
    screen.evaluate(
        "(1 to: 100000) asList",
        "\n  49,\n  50,\n  … 99,950 more (_ inspect)\n)\n>",
    );
    screen.evaluate(":print all", "> ");
    screen.evaluate("(1 to: 60) asList", ", 58, 59, 60)\n>");
    screen.evaluate(":print short", "> ");
    screen.evaluate("(1 to: 60) asList", "\n  … 10 more (_ inspect)\n)\n>");
    drop(screen);
    let done = place.run(&["eval", "(1 to: 20000) asList"]).expect_code(0);
    assert!(
        done.stdout.ends_with(", 19999, 20000)\n"),
        "everything is printed"
    );
    let rectangle = "Value subclass: Rect\n  field: w = 3\n  field: h = \"x\ny\"\n\nRect new\n#{#b => Rect new, #a => 1}\nRect new printString\n";
    let done = place.run_with_input(&["repl"], rectangle).expect_code(0);
    assert_eq!(
        done.stdout,
        "Rect\nRect(w: 3, h: \"x\\ny\")\n#{#a => 1, #b => Rect(w: 3, h: \"x\\ny\")}\n\"Rect(h: \"\"x\ny\"\", w: 3)\"\n"
    );
    place.stop();
}

#[test]
fn what_an_editor_leaves_unreadable_changes_nothing() {
    let place = place();
    let command = editor(
        &place,
        &[
            "rm -f \"$file\"",
            "printf '\\377\\376' > \"$file\"",
            "rm -f \"$file\"; mkdir \"$file\"",
        ],
    );
    let screen = Screen::open(&place, &command);
    screen.wait_for_last("> ");
    for number in 1..=3 {
        screen.line(":e Lamp toggle");
        screen.wait_for_count("what the editor left cannot be read", number);
        screen.wait_for_last("> ");
    }
    screen.evaluate("(Lamp spawn) toggle", "\ntrue\n");
    drop(screen);
    place.stop();
}

/// Values, errors and what is said about them are text, whatever letters they have.
#[test]
fn nothing_that_is_shown_steers_the_terminal() {
    let place = place();
    let screen = Screen::repl(&place);
    screen.evaluate("e := (Character value: 27) asString", "\n\"\\x1B\"\n");
    screen.evaluate(
        "e ++ \"]0;evil\" ++ (Character value: 7) asString",
        "\n\"\\x1B]0;evil\\x07\"\n",
    );
    screen.evaluate("Error signal: e ++ \"[31mred\"", "\nError: \\x1B[31mred\n");
    screen.evaluate(
        "\"a\" ++ (Character value: 13) asString ++ \"b\"",
        "\n\"a\\x0Db\"\n",
    );
    screen.evaluate("(Character value: 8238) asString", "\\x202E");
    screen.evaluate(":bindings", "e = \"\\x1B\"");
    drop(screen);
    place.stop();
}
