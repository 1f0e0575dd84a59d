//! Every command on the screen of a terminal, 80 and 120 columns wide, with and without colours, as it was recorded.
//!
//! `INSTA_UPDATE=always` records again. A colour stands in `⟦…⟧` before what it paints.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

use regex::Regex;

use crate::support::Place;

const LIMIT: Duration = Duration::from_mins(1);
const ROWS: u16 = 300;

const LAMP: &str = "/// A lamp.\nActor subclass: Lamp\n  state: on = false\n\n  /// Turns it.\n  toggle =>\n    self.on := self.on not\n\n  isOn => self.on\n\n  class make => Lamp spawn\n";
const ROOM: &str = "/// Where lamps are.\nValue subclass: Room\n  field: name :: String = \"hall\"\n  field: lamps :: Integer = 1\n\n  class lit => Lamp make toggle\n\n  describe -> String => \"{self.name} with {self.lamps}\"\n";
const TESTS: &str = "TestCase subclass: LampTest\n  testStartsOff => self assert: Lamp spawn isOn equals: false\n\n  testWrong => self assert: 1 equals: 2\n";
const EXTRA: &str = "Object subclass: Extra\n  class three => 3\n";

/// What happens in a session, one after the other.
enum Step {
    /// What is typed from here on belongs to this command.
    Of(&'static str),
    /// An input, until the next prompt.
    Type(&'static str),
    /// An input that asks: the question, and what is answered.
    Ask(&'static str, &'static str, &'static str),
    /// An input that ends in a list of numbers which are never the same.
    Count(&'static str),
    /// A live view: it is left with `q` once it shows this.
    Watch(&'static str, &'static str),
    /// An input about the first actor that was shown.
    AboutActor(&'static str),
    /// A file changes behind the session's back.
    Write(&'static str, &'static str),
    /// The end of the session.
    End(&'static str),
}

use Step::{AboutActor, Ask, Count, End, Of, Type, Watch, Write};

const STEPS: &[Step] = &[
    Of("help"),
    Type(":help"),
    Type(":help Room"),
    Type(":help Lamp toggle"),
    Type(":help :take"),
    Type(":help classes"),
    Type(":help ~^isE"),
    Type(":help E0101"),
    Type(":help Nobody"),
    Of("bindings"),
    Type(":bindings"),
    Type("lamp := (Lamp spawnAs: #boiler) unwrap"),
    Type("names := #(\"a\", 2.0, nil, #b, $c)"),
    Type("room := Room new"),
    Type("long := (1 to: 60) collect: [:each | \"number {each}\"]"),
    Type(":bindings"),
    Of("actors"),
    Type(":actors"),
    Of("inspect"),
    Type(":inspect lamp"),
    Type(":i on"),
    Type(":inspect room"),
    Type(":inspect 3"),
    Type(":inspect \"text\""),
    Of("print"),
    Type(":print all"),
    Type("(1 to: 60) asList"),
    Type(":print short"),
    Type("(1 to: 60) asList"),
    Of("source"),
    Type(":source Lamp toggle"),
    Type(":source Room"),
    Of("senders"),
    Type(":senders toggle"),
    Of("implementors"),
    Type(":implementors toggle"),
    Of("references"),
    Type(":references Lamp"),
    Of("test"),
    Type(":test LampTest"),
    Of("time"),
    Type(":time 6 * 7"),
    Of("trace"),
    Type(":trace x := 2. x * 3"),
    Of("show-codegen"),
    Type(":show-codegen x := 3. x + 2"),
    Type(":sc core 1 + 2"),
    Of("error"),
    Type("lamp frobnicate"),
    Type("lamp togle"),
    Type("#(1, 2) colect: [:x | ]"),
    Type("3 + \"a\""),
    Type(":error"),
    Of("status"),
    Count(":status"),
    Of("sessions"),
    Type(":sessions"),
    Of("top"),
    Watch(":top", "boiler"),
    Of("transcript"),
    Type(":transcript on"),
    Type(":transcript off"),
    Of("edit"),
    Type(":edit Lamp isOn"),
    Of("changes"),
    Type(":changes"),
    Type(":changes all"),
    Of("dirty"),
    Type(":dirty"),
    Of("diff"),
    Type(":diff"),
    Of("flush"),
    Type(":flush Lamp"),
    Of("revert"),
    Type("Lamp >> toggle => #patched"),
    Type(":revert 2"),
    Of("take"),
    Type("Lamp >> isOn => #image"),
    Write(
        "src/Lamp.bt",
        "/// A lamp.\nActor subclass: Lamp\n  state: on = false\n\n  /// Turns it.\n  toggle =>\n    self.on := self.on not\n\n  isOn => #disk\n\n  class make => Lamp spawn\n",
    ),
    Type(":sync"),
    Type(":diff"),
    Type(":take disk Lamp isOn"),
    Of("sync"),
    Write(
        "src/Room.bt",
        "/// Where lamps are.\nValue subclass: Room\n  field: name :: String = \"hall\"\n\n  class lit => Lamp make toggle\n",
    ),
    Type(":sync"),
    Type(":sync"),
    Of("discard"),
    Type("Room >> more => 3"),
    Ask(":discard all", "y/N", "y"),
    Of("remove-method"),
    Type(":remove-method Lamp isOn"),
    Of("restore"),
    Type(":restore all"),
    Of("load"),
    Write("Extra.bt", EXTRA),
    Type(":load Extra.bt"),
    Type(":load nowhere.bt"),
    Of("reload"),
    Type(":reload"),
    Type(":reload Room"),
    Of("unload"),
    Type(":unload Extra"),
    Type(":unload Integer"),
    Of("recheck"),
    Type(":recheck image"),
    Of("remove-class"),
    Ask(":remove-class Room", "y/N", "y"),
    Of("flush-destructive"),
    Ask(":flush-destructive", "y/N", "y"),
    Of("approvals"),
    Type(":approvals"),
    Of("interrupt"),
    Type(":interrupt"),
    Of("kill"),
    AboutActor(":kill"),
    Of("clear"),
    Type(":clear"),
    Of("reconnect"),
    Type(":reconnect"),
    Of("exit"),
    End(":exit"),
];

struct Terminal {
    session: rexpect::session::PtySession,
    screen: vt100::Parser,
}

impl Terminal {
    fn open(place: &Place, columns: u16, is_plain: bool) -> Self {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &format!("stty rows {ROWS} cols {columns}; exec \"$0\" repl"),
            ])
            .arg(env!("CARGO_BIN_EXE_beamtalk"))
            .current_dir(place.directory())
            .env("BEAMTALK_HOME", place.home())
            .env("TERM", "xterm-256color")
            .env("EDITOR", format!("sh {}/ed.sh", place.directory().display()))
            .env_remove("VISUAL")
            .env_remove("PAGER")
            .env_remove("NO_COLOR");
        if is_plain {
            command.env("NO_COLOR", "1");
        }
        let limit = u64::try_from(LIMIT.as_millis()).unwrap();
        let session = rexpect::session::spawn_command(command, Some(limit)).unwrap();
        let size = |count| NonZero::new(count).unwrap();
        Self {
            session,
            screen: vt100::Parser::new(size(ROWS), size(columns), 0),
        }
    }

    fn read(&mut self) {
        while let Some(character) = self.session.try_read() {
            // What is read is bytes, each as a character of its own.
            self.screen.process(&[u8::try_from(character).unwrap()]);
        }
    }

    fn send(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
        self.session.flush().unwrap();
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + LIMIT;
        loop {
            self.read();
            let shown = self.screen.screen().contents();
            if is_so(&shown) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what}:\n{shown}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Wait for the prompt below what was typed.
    #[track_caller]
    fn wait_for_prompt(&mut self, what: &str) {
        self.wait_until(what, |shown| {
            let mut lines = shown.trim_end().lines().rev();
            lines.next().map(str::trim_end) == Some(">") && lines.next().is_some()
        });
    }

    /// An empty screen with a prompt.
    fn clear(&mut self) {
        self.send("\x0c");
        self.wait_until("an empty screen", |shown| {
            shown.trim_end().trim_start_matches('\n') == ">"
        });
    }

    /// What is shown, line by line: rows that one line fills are one, colours are told.
    fn shown(&self, has_prompt: bool) -> Vec<String> {
        let screen = self.screen.screen();
        let (_, columns) = screen.size();
        let mut lines: Vec<String> = vec![String::new()];
        let mut paint = String::new();
        for row in 0..ROWS {
            for column in 0..columns.get() {
                let Some(cell) = screen.cell(row, column) else {
                    continue;
                };
                let line = lines.last_mut().unwrap();
                let now = if cell.has_contents() {
                    colour(cell)
                } else {
                    String::new()
                };
                if now != paint {
                    *line += &format!("⟦{now}⟧");
                    paint = now;
                }
                if !cell.is_wide_continuation() {
                    line.push_str(if cell.has_contents() { cell.contents() } else { " " });
                }
            }
            if !screen.row_wrapped(row) {
                lines.push(String::new());
            }
        }
        let mut lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        if has_prompt {
            lines.pop();
        }
        lines
    }
}

fn colour(cell: &vt100::Cell) -> String {
    let mut words = Vec::new();
    match cell.fgcolor() {
        vt100::Color::Default => {}
        vt100::Color::Idx(index) => {
            const NAMES: [&str; 9] = [
                "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "grey",
            ];
            let index = usize::from(index);
            words.push(
                NAMES
                    .get(index)
                    .map_or_else(|| index.to_string(), |name| (*name).to_owned()),
            );
        }
        vt100::Color::Rgb(red, green, blue) => words.push(format!("{red},{green},{blue}")),
    }
    for (is_so, word) in [
        (cell.bold(), "bold"),
        (cell.dim(), "dim"),
        (cell.inverse(), "inverse"),
        (cell.underline(), "underlined"),
    ] {
        if is_so {
            words.push(word.to_owned());
        }
    }
    words.join(" ")
}

/// What is never the same twice.
fn stable(line: &str, place: &Place) -> String {
    let root = place.directory().parent().unwrap().display().to_string();
    let mut line = line.replace(&root, "/place");
    for (pattern, instead) in [
        (r"\b0\.\d{2,}\.0\b", "0.NNN.0"),
        (r"\bs-[0-9a-f]{8}\b", "s-00000000"),
        (r"\b[0-9a-f]{12}\b", "000000000000"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?", "DATE"),
        (r"\b\d\d:\d\d(:\d\d)?\b", "TIME"),
        (r"\b[\d.]+ (µs|ms|s)\b", "N $1"),
        (r"\(\d+\.\ds\)", "(N s)"),
    ] {
        line = Regex::new(pattern)
            .unwrap()
            .replace_all(&line, instead)
            .into_owned();
    }
    line
}

/// Numbers and the room they take are left out.
fn without_numbers(line: &str) -> String {
    let line = Regex::new(r"\d[\d.,]*( ([KMG]iB|B|µs|ms|s|min)\b)?")
        .unwrap()
        .replace_all(line, "N")
        .into_owned();
    Regex::new(" {2,}").unwrap().replace_all(&line, "  ").into_owned()
}

/// What each command showed.
fn record(columns: u16, is_plain: bool) -> BTreeMap<&'static str, Vec<String>> {
    let place = Place::with_project();
    std::fs::remove_dir_all(place.directory().join("src")).unwrap();
    std::fs::remove_dir_all(place.directory().join("test")).unwrap();
    place.write("src/Lamp.bt", LAMP);
    place.write("src/Room.bt", ROOM);
    place.write("test/LampTest.bt", TESTS);
    place.write("ed.sh", "sed -i 's/self.on$/self.on =:= true/' \"$1\"\n");
    let script = place.directory().join("ed.sh");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut terminal = Terminal::open(&place, columns, is_plain);
    terminal.wait_for_prompt("the greeting");
    let greeting = terminal.shown(true);
    let mut recorded = BTreeMap::from([("(the greeting)", greeting)]);
    let mut command = "";
    let mut actor = String::new();
    let process = Regex::new(r"0\.\d+\.0").unwrap();
    for step in STEPS {
        if let Write(path, text) = step {
            place.write(path, text);
            continue;
        }
        if let Of(name) = step {
            command = name;
            continue;
        }
        terminal.clear();
        let mut counts = false;
        let mut is_prompt = true;
        match step {
            Of(_) | Write(..) => {}
            Type(input) | Count(input) => {
                terminal.send(&format!("{input}\r"));
                terminal.wait_for_prompt(input);
                counts = matches!(step, Count(_));
            }
            Ask(input, question, answer) => {
                terminal.send(&format!("{input}\r"));
                terminal.wait_until(question, |shown| shown.contains(question));
                terminal.send(&format!("{answer}\r"));
                terminal.wait_for_prompt(input);
            }
            Watch(input, shown) => {
                terminal.send(&format!("{input}\r"));
                terminal.wait_until(shown, |screen| screen.contains(shown));
                counts = true;
                is_prompt = false;
            }
            AboutActor(input) => {
                terminal.send(&format!("{input} {actor}\r"));
                terminal.wait_for_prompt(input);
            }
            End(input) => {
                terminal.send(&format!("{input}\r"));
                let rest = terminal.session.exp_eof().unwrap();
                terminal.screen.process(rest.as_bytes());
                is_prompt = false;
            }
        }
        let shown = terminal.shown(is_prompt);
        if actor.is_empty() {
            let text = shown.join("\n");
            actor = process
                .find(&text)
                .map(|found| found.as_str().to_owned())
                .unwrap_or_default();
        }
        let lines = shown.iter().map(|line| stable(line, &place));
        let lines: Vec<String> = if counts {
            lines.map(|line| without_numbers(&line)).collect()
        } else {
            lines.collect()
        };
        recorded.entry(command).or_default().extend(lines);
        if matches!(step, Watch(..)) {
            terminal.send("q");
            terminal.wait_for_prompt("the end of the view");
        }
    }
    drop(terminal);
    place.stop();
    let greeting = recorded.get_mut("(the greeting)").unwrap();
    *greeting = greeting.iter().map(|line| stable(line, &place)).collect();
    recorded
}

/// The names of the commands, as a session without a terminal lists them.
fn commands() -> BTreeSet<String> {
    let place = Place::new();
    let done = place.run(&["repl", "-e", ":help"]).expect_code(0);
    place.stop();
    let name = Regex::new(r"(?m)^  :([a-z-]+)").unwrap();
    name.captures_iter(&done.stdout)
        .map(|found| found[1].to_owned())
        .collect()
}

#[test]
fn every_command_is_recorded() {
    let kinds = [(80, true), (80, false), (120, true), (120, false)];
    let sessions: Vec<_> = kinds
        .into_iter()
        .map(|(columns, is_plain)| std::thread::spawn(move || record(columns, is_plain)))
        .collect();
    let sessions: Vec<_> = sessions
        .into_iter()
        .map(|session| session.join().unwrap())
        .collect();
    let recorded: BTreeSet<String> = sessions[0].keys().map(|name| (*name).to_owned()).collect();
    let missing: Vec<String> = commands().difference(&recorded).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "each command is recorded");
    for name in sessions[0].keys() {
        let mut text = String::new();
        for ((columns, is_plain), session) in kinds.iter().zip(&sessions) {
            let kind = if *is_plain { "no colour" } else { "colour" };
            text += &format!("━━━ {columns} columns, {kind}\n");
            let shown = &session[name];
            match kinds
                .iter()
                .zip(&sessions)
                .find(|(_, earlier)| &earlier[name] == shown)
            {
                Some(((first, was_plain), _)) if (first, was_plain) != (columns, is_plain) => {
                    text += &format!(
                        "the same as {first} columns, {}\n",
                        if *was_plain { "no colour" } else { "colour" }
                    );
                }
                _ => text += &format!("{}\n", shown.join("\n")),
            }
        }
        insta::assert_snapshot!(name.trim_matches(['(', ')']).replace(' ', "_"), text);
    }
}
