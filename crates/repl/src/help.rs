//! `:help`: commands, pages of the guide, classes, methods, codes, and looking for them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beamtalk_wire::Side;
use beamtalk_wire::answers::{BrowseClassesAnswer, NavSymbolsAnswer};
use beamtalk_wire::requests::{BrowseClasses, Docs, NavSymbols, SymbolScope};
use regex::{Regex, RegexBuilder};

use crate::manual::Manual;
use crate::markdown;
use crate::pager::{self, window};
use crate::render::Rendered;
use crate::session::{Ask, Mode, Outcome, Session, Trouble};
use crate::table::{self, Entry};

/// Places that a search lists.
const MOST_FOUND: usize = 200;

/// What is asked about.
#[derive(Debug)]
enum Topic {
    Overview,
    Classes,
    Search(Regex),
    Command(&'static Entry),
    /// A page of the guide or of a code, as Markdown.
    Page(String),
    Docs(Docs),
    Wrong(String),
}

fn topic(text: &str, manual: &dyn Manual) -> Topic {
    if let Some(pattern) = text.strip_prefix('~') {
        let pattern = pattern.trim();
        return match RegexBuilder::new(pattern).case_insensitive(true).build() {
            Ok(found) if !pattern.is_empty() => Topic::Search(found),
            Ok(_) => Topic::Wrong("Usage: :help ~PATTERN".to_owned()),
            Err(error) => {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default().trim();
                Topic::Wrong(format!(
                    "'{pattern}' is no pattern: {}",
                    why.trim_start_matches("error: ")
                ))
            }
        };
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let of_class = |name: &str, side, selector: Option<&&str>| {
        Topic::Docs(Docs {
            class: Some(class_of(name, manual).to_owned()),
            side,
            selector: selector.map(|selector| (*selector).to_owned()),
            ..Docs::default()
        })
    };
    match *words.as_slice() {
        [] => Topic::Overview,
        ["classes"] => Topic::Classes,
        [word] if table::find(word.trim_start_matches(':')).is_some() => {
            table::find(word.trim_start_matches(':')).map_or(Topic::Overview, Topic::Command)
        }
        // Classes of the image are asked for there: it may have others than the library.
        [word] if !word.starts_with(char::is_uppercase) || is_code(word, manual) => match manual.page(word) {
            Some(text) => Topic::Page(text),
            None => of_class(word, None, None),
        },
        ["Erlang", module, ref function @ ..] if function.len() < 2 => Topic::Docs(Docs {
            erlang_module: Some(module.to_owned()),
            selector: function.first().map(|function| (*function).to_owned()),
            ..Docs::default()
        }),
        [class, "class", ref selector @ ..] if selector.len() < 2 => {
            of_class(class, Some(Side::Class), selector.first())
        }
        [class, ref selector @ ..] if selector.len() < 2 => of_class(class, None, selector.first()),
        _ => Topic::Wrong("Usage: :help [topic]".to_owned()),
    }
}

impl Session {
    pub(super) fn help(&mut self, text: &str, ask: &mut dyn Ask) -> Result<Outcome, Trouble> {
        match topic(text, self.manual) {
            Topic::Wrong(why) => self.refuse("usage", &why),
            Topic::Overview => self.tell(table::overview(usize::from(window().0))),
            Topic::Command(entry) => self.tell(about(entry)),
            Topic::Page(page) => self.page(&page),
            Topic::Classes => {
                let subjects = self.manual.subjects();
                self.simple(ask, &BrowseClasses {}, |answer, _| {
                    Rendered::out(classes(answer, subjects, usize::from(window().0)))
                })
            }
            Topic::Search(pattern) => {
                let request = NavSymbols {
                    scope: Some(SymbolScope::All),
                };
                let pages = self.manual.topics();
                self.simple(ask, &request, |answer, _| {
                    Rendered::out(found(answer, pages, &pattern))
                })
            }
            Topic::Docs(request) => {
                let answer = self.call(&request, ask)?;
                match &answer.body {
                    Ok(body) if self.mode == Mode::Terminal && !self.screen.is_json() => {
                        let page = body.docs.clone();
                        self.page(&page)
                    }
                    _ => self.finish(answer, "", |answer, _| Rendered::out(answer.docs.as_str())),
                }
            }
        }
    }

    fn tell(&mut self, text: String) -> Result<Outcome, Trouble> {
        self.screen.show(&Rendered::out(text))?;
        Ok(Outcome::Done)
    }

    /// A page on the terminal is laid out for it, and paged when it is longer.
    fn page(&mut self, text: &str) -> Result<Outcome, Trouble> {
        if self.mode == Mode::Batch {
            return self.tell(text.to_owned());
        }
        let (columns, rows) = window();
        pager::show(
            &markdown::render(text, usize::from(columns), self.screen.palette),
            rows,
        )?;
        Ok(Outcome::Done)
    }
}

/// The pages, commands and codes that begin with this, and the objects everybody knows.
pub(crate) fn topics(prefix: &str, manual: &dyn Manual) -> Vec<String> {
    if prefix.starts_with(':') {
        let commands = table::COMMANDS.iter();
        return commands.map(|entry| format!(":{}", entry.name)).collect();
    }
    let pages = manual.topics().into_iter().map(|(name, _)| name);
    let commands = table::COMMANDS.iter().map(|entry| entry.name);
    let singletons = manual.singletons().iter().map(|(name, _)| *name);
    // Codes begin as classes do: offered once a digit is there.
    let codes = manual
        .codes()
        .into_iter()
        .filter(|_| prefix.contains(|letter: char| letter.is_ascii_digit()));
    let all = pages
        .chain(["classes"])
        .chain(commands)
        .chain(singletons)
        .chain(codes);
    all.filter(|name| name.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

/// The class whose methods are meant by a name.
pub(crate) fn class_of<'a>(name: &'a str, manual: &dyn Manual) -> &'a str {
    let known = manual
        .singletons()
        .iter()
        .find(|(singleton, _)| *singleton == name);
    known.map_or(name, |(_, class)| class)
}

fn is_code(word: &str, manual: &dyn Manual) -> bool {
    manual.codes().iter().any(|code| code.eq_ignore_ascii_case(word))
}

/// What the objects of a class understand, own and inherited, or the class itself.
pub(super) fn selectors<'a>(
    symbols: &'a NavSymbolsAnswer,
    classes: &'a BrowseClassesAnswer,
    class: &'a str,
    side: Side,
) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut next = Some(class);
    // No longer than all classes: what an image says of itself need not be a tree.
    for _ in 0..=classes.rows.len() {
        let Some(class) = next else { break };
        let own = symbols.classes.iter().filter(|known| known.name == class);
        let methods = own.flat_map(|known| &known.methods);
        found.extend(
            methods
                .filter(|method| method.side == side)
                .map(|method| method.selector.as_str()),
        );
        let row = classes.rows.iter().find(|row| row.name == class);
        next = row.and_then(|row| row.superclass.as_deref());
    }
    found
}

/// One command.
pub fn about(entry: &Entry) -> String {
    let mut text = format!(":{} {}", entry.name, entry.usage).trim_end().to_owned();
    let _ = write!(text, "\n  {}", entry.about);
    if !entry.shorts.is_empty() {
        let shorts: Vec<String> = entry.shorts.iter().map(|short| format!(":{short}")).collect();
        let _ = write!(text, "\n  Short: {}", shorts.join(", "));
    }
    text
}

/// Names by package, the project's own first.
fn classes(answer: &BrowseClassesAnswer, subjects: &[(&str, &str)], columns: usize) -> String {
    let mut packages: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for row in &answer.rows {
        let package = row.category.as_deref().unwrap_or("typed here");
        let is_library = matches!(package, "stdlib" | "beamtalk");
        packages.entry((is_library, package)).or_default().push(&row.name);
    }
    let mut text = String::new();
    for ((_, package), mut names) in packages {
        names.sort_unstable();
        let _ = writeln!(text, "{package}");
        if package == "stdlib" {
            text.push_str(&by_subject(&names, subjects, columns));
            continue;
        }
        for line in table::wrapped(&names.join(", "), columns.saturating_sub(2).max(20)) {
            let _ = writeln!(text, "  {line}");
        }
    }
    text
}

/// These names by what they are about, each subject with its names in lines of so many columns.
fn by_subject(names: &[&str], subjects: &[(&str, &str)], columns: usize) -> String {
    let mut text = String::new();
    let mut write = |subject: &str, names: &[&str]| {
        if !names.is_empty() {
            let _ = writeln!(text, "  {subject}");
            for line in table::wrapped(&names.join(", "), columns.saturating_sub(4).max(20)) {
                let _ = writeln!(text, "    {line}");
            }
        }
    };
    let mut left: Vec<&str> = names.to_vec();
    for (subject, known) in subjects {
        let own: Vec<&str> = known.split(' ').filter(|name| left.contains(name)).collect();
        left.retain(|name| !own.contains(name));
        write(subject, &own);
    }
    write("More", &left);
    text
}

/// Commands, pages, classes and methods whose name matches.
fn found(answer: &NavSymbolsAnswer, pages: Vec<(&str, &str)>, pattern: &Regex) -> String {
    let commands = table::COMMANDS
        .iter()
        .map(|entry| (format!(":{}", entry.name), entry.about));
    let pages = pages.into_iter().map(|(name, about)| (name.to_owned(), about));
    let mut lines: Vec<String> = commands
        .chain(pages)
        .filter(|(name, _)| pattern.is_match(name))
        .map(|(name, about)| format!("{name}  {about}"))
        .collect();
    for class in &answer.classes {
        if pattern.is_match(&class.name) {
            lines.push(class.name.clone());
        }
        for method in class
            .methods
            .iter()
            .filter(|method| pattern.is_match(&method.selector))
        {
            let side = if method.side == Side::Class { " class" } else { "" };
            lines.push(format!("{}{side}>>{}", class.name, method.selector));
        }
    }
    let more = lines.len().saturating_sub(MOST_FOUND);
    lines.truncate(MOST_FOUND);
    if lines.is_empty() {
        return "Nothing has such a name.".to_owned();
    }
    if more > 0 {
        lines.push(format!("… {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Manual as _, Side, Topic, about, by_subject, classes, found, selectors, topic, topics};
    use crate::manual::Small;
    use crate::test_answers::answer;

    #[test]
    fn a_topic_is_what_it_looks_like() {
        assert!(matches!(topic("", &Small), Topic::Overview));
        assert!(matches!(topic("classes", &Small), Topic::Classes));
        assert!(matches!(topic(":flush", &Small), Topic::Command(entry) if entry.name == "flush"));
        assert!(matches!(topic("fl", &Small), Topic::Docs(_)));
        assert!(matches!(topic("i", &Small), Topic::Command(entry) if entry.name == "inspect"));
        assert!(
            matches!(topic("supervisors", &Small), Topic::Page(text) if text.starts_with("# Supervisors"))
        );
        assert!(matches!(topic("E0201", &Small), Topic::Page(text) if text.starts_with("# E0201")));
        assert!(matches!(topic("~do$", &Small), Topic::Search(_)));
        assert!(matches!(topic("~(", &Small), Topic::Wrong(why) if why.starts_with("'(' is no pattern: ")));
        assert!(matches!(topic("a b c d", &Small), Topic::Wrong(_)));
        for (text, class, selector) in [
            ("Integer", "Integer", None),
            ("Integer +", "Integer", Some("+")),
            ("Workspace flush", "WorkspaceInterface", Some("flush")),
            ("Transcript", "TranscriptStream", None),
        ] {
            let Topic::Docs(docs) = topic(text, &Small) else {
                panic!("{text} is a class");
            };
            assert_eq!(
                (docs.class.as_deref(), docs.selector.as_deref()),
                (Some(class), selector)
            );
        }
    }

    #[test]
    fn a_command_tells_its_use() {
        let Topic::Command(entry) = topic("take", &Small) else {
            panic!("it is one");
        };
        assert!(
            about(entry).starts_with(":take image|disk [Class [selector]]\n  "),
            "{}",
            about(entry)
        );
    }

    #[test]
    fn classes_are_listed_by_package_the_own_ones_first() {
        let row = |name: &str, package: &str| {
            json!({"name": name, "superclass": "Object", "category": package, "comment": null, "sealed": false,
                "abstract": false, "internal": false, "source_file": null, "origin": "both", "is_test": false,
                "is_protocol": false})
        };
        let rows = json!({"rows": [row("Integer", "stdlib"), row("Lamp", "orbit"), row("Kettle", "orbit")]});
        assert_eq!(
            classes(&answer(rows), Small.subjects(), 80),
            "orbit\n  Kettle, Lamp\nstdlib\n  Numbers\n    Integer\n"
        );
    }

    #[test]
    fn names_without_a_subject_are_listed_too() {
        let subjects = &[("Numbers", "Number Integer Float")];
        assert_eq!(
            by_subject(&["Float", "Lamp", "Integer"], subjects, 80),
            "  Numbers\n    Integer, Float\n  More\n    Lamp\n"
        );
    }

    #[test]
    fn what_is_asked_about_is_completed() {
        assert_eq!(topics("sup", &Small), ["supervisors"]);
        assert_eq!(topics("cla", &Small), ["classes"]);
        assert!(topics(":fl", &Small).contains(&":flush".to_owned()));
        assert_eq!(topics("Work", &Small), ["Workspace"]);
        assert!(topics("E020", &Small).contains(&"E0201".to_owned()));
        let row = |name: &str, superclass: Option<&str>| {
            json!({"name": name, "superclass": superclass, "category": "demo", "comment": null, "sealed": false,
                "abstract": false, "internal": false, "source_file": null, "origin": "both", "is_test": false,
                "is_protocol": false})
        };
        let classes = json!({"rows": [row("Lamp", Some("Thing")), row("Thing", None)]});
        let class = |name: &str, selector: &str, side: &str| {
            json!({"name": name, "source_file": null, "line": null,
                "methods": [{"selector": selector, "side": side, "line": 1}]})
        };
        let symbols = json!({"classes": [class("Lamp", "toggle", "instance"), class("Thing", "name", "instance"),
            class("Lamp", "make", "class"), class("Other", "off", "instance")]});
        let (symbols, classes) = (answer(symbols), answer(classes));
        let of = |side| selectors(&symbols, &classes, "Lamp", side);
        assert_eq!(of(Side::Instance), ["toggle", "name"]);
        assert_eq!(of(Side::Class), ["make"]);
    }

    #[test]
    fn a_search_finds_names_of_every_kind() {
        let symbols = json!({"classes": [{"name": "Flusher", "source_file": null, "line": null,
            "methods": [{"selector": "flush:", "side": "class", "line": 3}, {"selector": "other", "side": "instance", "line": 4}]}]});
        let Topic::Search(pattern) = topic("~flush", &Small) else {
            panic!("it is one");
        };
        let found = found(&answer(symbols), Small.topics(), &pattern);
        let lines: Vec<&str> = found.lines().collect();
        assert!(
            lines.iter().any(|line| line.starts_with(":flush-destructive  ")),
            "{found}"
        );
        assert!(lines.ends_with(&["Flusher", "Flusher class>>flush:"]), "{found}");
    }
}
