//! `beamtalk docs`: the user guide, classes, methods and error codes, all from inside the binary.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

use beamtalk_project::library_pages as library;
use beamtalk_repl::{Manual, Palette, markdown, pager};
use beamtalk_syntax::nearest;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A page, a class, `classes`, a type alias, a command of the session (`:flush`), or an error code; without one, the
    /// list of pages.
    #[arg(value_parser = Topics, hide_possible_values = true)]
    topic: Option<String>,
    /// A selector of the class.
    selector: Option<String>,
    /// List all topics.
    #[arg(long)]
    list: bool,
    /// Show the pages that contain all these words.
    #[arg(long, value_name = "WORDS")]
    search: Option<String>,
}

/// Any word may be a topic; shells are told those that everybody has.
#[derive(Clone)]
struct Topics;

impl TypedValueParser for Topics {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let pages = PAGES.iter().map(|(name, _, _)| *name);
        let names = pages.chain(["classes"]).chain(library::names());
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// The user pages: topic, one line about it, text.
macro_rules! pages {
    ($($topic:literal $file:literal $summary:literal;)*) => {
        const PAGES: &[(&str, &str, &str)] =
            &[$(($topic, $summary, include_str!(concat!("../../../../docs/", $file))),)*];
    };
}

pages! {
    "tour" "tour.md" "ten minutes through the language";
    "language" "language.md" "messages, literals, classes, control flow";
    "types" "types.md" "types, narrowing, protocols, what the checker says";
    "values" "values.md" "data, constructors, look-ups and Result";
    "actors" "actors.md" "processes with state";
    "supervisors" "supervisors.md" "what happens when processes end";
    "concurrency" "concurrency.md" "patterns: parallel work, queues, timers, announcements";
    "errors" "errors.md" "raising, handling, Result";
    "data" "data.md" "JSON and files";
    "http" "http.md" "requests, downloads, options";
    "testing" "testing.md" "test classes, scripts and examples";
    "packages" "packages.md" "the manifest, building, dependencies";
    "repl" "repl.md" "the terminal session";
    "workspace" "workspace.md" "the live image: life, commands, files";
    "live-edit" "live-edit.md" "changing code while it runs, flush, conflicts";
    "browser" "browser.md" "the workspace in a browser: panes, keys, links";
    "mcp" "mcp.md" "AI clients in the workspace: setting up, tools, what is guarded";
    "lsp" "lsp.md" "the language server: what it does, options";
    "editors" "editors.md" "Neovim, Helix, Zed, Emacs and VS Code: blocks to paste";
    "loop" "loop.md" "watch files, supervise processes, run workflows";
    "agents" "agents.md" "sessions in tmux, everything as files";
    "files" "files.md" "the running image as files: classes, methods, actors, editors on a mount";
    "config" "config.md" "config.toml and variables";
    "cli" "cli.md" "commands, flags and exit codes";
    "remote" "remote.md" "reaching a workspace from elsewhere: ssh, tokens, TLS";
    "reliability" "reliability.md" "what ends when something goes wrong, and what stays";
    "protocol" "protocol.md" "the workspace protocol, for who writes a client";
    "security" "security.md" "what Beamtalk protects and what it does not";
    "threat-model" "security/threat-model.md" "who is trusted with what, the cookie, the operator's checklist";
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(words) = &arguments.search {
        return search(terminal, words);
    }
    let Some(topic) = arguments.topic.as_ref().filter(|_| !arguments.list) else {
        return list(terminal);
    };
    match page(topic, arguments.selector.as_deref()) {
        Some(text) => show(terminal, topic, &text),
        None => Err(unknown(topic, arguments.selector.as_deref()).into()),
    }
}

fn list(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        let topics: Vec<serde_json::Value> = PAGES
            .iter()
            .map(|(topic, summary, _)| serde_json::json!({"topic": topic, "summary": summary}))
            .collect();
        terminal.print(serde_json::Value::from(topics))?;
        return Ok(Exit::Success);
    }
    for (topic, summary, _) in PAGES {
        terminal.print(format_args!("{topic:<14} {summary}"))?;
    }
    terminal
        .print("\nAlso: all classes (docs classes), a class (docs Integer), a method (docs Integer +), a command of the\nsession (docs :flush), an error code (docs E0201); docs --search WORDS finds pages, classes and commands.")?;
    Ok(Exit::Success)
}

fn search(terminal: &mut Terminal, words: &str) -> anyhow::Result<Exit> {
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let mut found = Vec::new();
    for (topic, summary, text) in PAGES {
        let text = text.to_lowercase();
        if words.iter().all(|word| text.contains(word)) {
            found.push(((*topic).to_owned(), (*summary).to_owned()));
        }
    }
    for (code, about) in codes() {
        let lowered = format!("{code} {about}").to_lowercase();
        if words.iter().all(|word| lowered.contains(word)) {
            found.push((code.to_owned(), about.to_owned()));
        }
    }
    for entry in beamtalk_repl::COMMANDS {
        let name = format!(":{}", entry.name);
        let lowered = format!("{name} {}", entry.about).to_lowercase();
        if words.iter().all(|word| lowered.contains(word)) {
            found.push((name, entry.about.to_owned()));
        }
    }
    for (name, text) in beamtalk_node::library_sources() {
        let lowered = text.to_lowercase();
        if words.iter().all(|word| lowered.contains(word)) {
            found.push((name.trim_end_matches(".bt").to_owned(), "class".to_owned()));
        }
    }
    if found.is_empty() {
        return Err(Fault::failure("not_found", "nothing contains all these words").into());
    }
    for (topic, summary) in found {
        terminal.print(format_args!("{topic:<20} {summary}"))?;
    }
    Ok(Exit::Success)
}

/// The text of a topic, as Markdown.
pub(crate) fn page(topic: &str, selector: Option<&str>) -> Option<String> {
    if let Some((_, _, text)) = PAGES.iter().find(|(name, _, _)| *name == topic) {
        return Some((*text).to_owned());
    }
    if let Some((code, about)) = codes().find(|(code, _)| code.eq_ignore_ascii_case(topic)) {
        return Some(code_page(code, about));
    }
    if topic == "classes" && selector.is_none() {
        return Some(library::classes_page());
    }
    if let Some(entry) = topic.strip_prefix(':').and_then(beamtalk_repl::find) {
        return Some(format!("# :{}\n\n{}\n", entry.name, beamtalk_repl::about(entry)));
    }
    library::page(topic, selector)
}

/// The guide, for `:help` of a session.
pub(crate) struct Guide;

impl Manual for Guide {
    fn page(&self, topic: &str) -> Option<String> {
        page(topic, None)
    }

    fn topics(&self) -> Vec<(&'static str, &'static str)> {
        topics().collect()
    }

    fn codes(&self) -> Vec<&'static str> {
        codes().map(|(code, _)| code).collect()
    }

    fn singletons(&self) -> &'static [(&'static str, &'static str)] {
        library::SINGLETONS
    }

    fn subjects(&self) -> &'static [(&'static str, &'static str)] {
        library::TOPICS
    }
}

/// The pages of the guide, with one line about each.
pub(crate) fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|(name, about, _)| (*name, *about))
}

/// The pages of the guide with their texts.
pub(crate) fn pages() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PAGES.iter().copied()
}

/// Codes of what is found before or around compiling.
const TOOL_CODES: &[(&str, &str)] = &[
    ("E0303", "A dependency exports the name of a standard class."),
    ("E0901", "A source file is not UTF-8 text."),
    (
        "W0902",
        "A source file is so long that the language server does not look at it.",
    ),
];

/// Every code with one line about it.
pub(crate) fn codes() -> impl Iterator<Item = (&'static str, &'static str)> {
    beamtalk_syntax::codes::ALL
        .iter()
        .chain(beamtalk_compiler::codes::ALL)
        .chain(TOOL_CODES)
        .copied()
}

pub(crate) fn code_page(code: &str, about: &str) -> String {
    let severity = match code.chars().next() {
        Some('E') => "error",
        Some('W') => "warning",
        Some('H') => "hint",
        _ => "lint",
    };
    let mut letters = about.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let about = format!("{first}{}", letters.as_str());
    let about = about.trim_end_matches('.');
    let mut page = format!("# {code} ({severity})\n\n{about}.\n");
    if let Some(example) = beamtalk_compiler::codes::examples().find(|example| example.code == code) {
        // Writing to a String cannot fail.
        let _ = write!(
            page,
            "\n## Wrong\n\n```beamtalk\n{}\n```\n\n## Right\n\n```beamtalk\n{}\n```\n",
            example.wrong, example.right
        );
    }
    page
}

fn unknown(topic: &str, selector: Option<&str>) -> Fault {
    let message = match selector {
        Some(selector) => format!("{topic} has no method `{selector}`, or there is no such class"),
        None => format!("no page named `{topic}`"),
    };
    let names: Vec<&str> = PAGES
        .iter()
        .map(|(name, _, _)| *name)
        .chain(["classes"])
        .chain(library::names())
        .chain(codes().map(|(code, _)| code))
        .collect();
    let close = nearest(topic, names, 3);
    let hint = if close.is_empty() {
        "`beamtalk docs` lists the pages".to_owned()
    } else {
        format!("did you mean {}?", close.join(", "))
    };
    Fault::failure("not_found", message).with_hint(hint)
}

/// Print a page: on a terminal laid out for it, through the pager if it is longer; elsewhere as it is.
fn show(terminal: &mut Terminal, topic: &str, text: &str) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        terminal.print(serde_json::json!({"topic": topic, "markdown": text}))?;
        return Ok(Exit::Success);
    }
    if !std::io::stdout().is_terminal() {
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Exit::Success);
    }
    let (columns, rows) = pager::window();
    let palette = if terminal.has_color {
        Palette::Colored
    } else {
        Palette::Plain
    };
    pager::show(&markdown::render(text, usize::from(columns), palette), rows)?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    use super::{PAGES, codes, page};

    #[test]
    fn every_code_has_a_page() {
        for (code, _) in codes() {
            assert!(
                page(code, None).is_some_and(|text| text.len() > code.len() + 12),
                "{code}"
            );
        }
    }

    #[test]
    fn codes_are_unique() {
        let mut seen = std::collections::BTreeSet::new();
        for (code, _) in codes() {
            assert!(seen.insert(code), "{code} stands for two conditions");
        }
    }

    #[test]
    fn every_class_of_the_library_has_a_page() {
        for (name, _) in beamtalk_node::library_sources() {
            assert!(page(name.trim_end_matches(".bt"), None).is_some(), "{name}");
        }
    }

    /// Every page of `docs/` is shown, but for the two that are about the repository.
    #[test]
    fn every_page_of_the_guide_is_a_topic() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for entry in std::fs::read_dir(directory).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let Some(topic) = name.strip_suffix(".md") else {
                continue;
            };
            let is_internal = ["architecture", "calling-convention"].contains(&topic);
            assert_eq!(page(topic, None).is_none(), is_internal, "{topic}");
        }
    }

    #[test]
    fn the_security_page_says_what_is_protected() {
        let (_, _, text) = PAGES.iter().find(|(name, _, _)| *name == "security").unwrap();
        for part in [
            "your account's full rights",
            "other local users",
            "SSH private key",
        ] {
            assert!(text.contains(part), "{part}");
        }
    }
}
