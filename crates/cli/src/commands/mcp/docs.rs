//! The built-in documentation as something to search: pages, their examples, classes, methods, codes.

use std::sync::LazyLock;

use beamtalk_mcp::DocHit;
use beamtalk_syntax::ast::Item;

use crate::commands::docs;

struct Entry {
    title: String,
    kind: &'static str,
    uri: String,
    text: String,
    /// The same in lower case, with the title.
    lowered: String,
}

fn entry(title: String, kind: &'static str, uri: String, text: String) -> Entry {
    let lowered = format!("{title}\n{text}").to_lowercase();
    Entry {
        title,
        kind,
        uri,
        text,
        lowered,
    }
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(entries);

fn entries() -> Vec<Entry> {
    let mut all = Vec::new();
    for (topic, summary, text) in docs::pages() {
        let uri = format!("beamtalk://doc/{topic}");
        for (heading, section) in sections(text) {
            let title = if heading.is_empty() {
                format!("{topic}: {summary}")
            } else {
                format!("{topic}: {heading}")
            };
            for example in examples(section) {
                all.push(entry(title.clone(), "example", uri.clone(), example.to_owned()));
            }
            all.push(entry(title, "topic", uri.clone(), section.to_owned()));
        }
    }
    for (name, text) in beamtalk_node::library_sources() {
        let name = name.trim_end_matches(".bt");
        let uri = format!("beamtalk://doc/{name}");
        for item in beamtalk_syntax::parse_file(text).unit.items {
            let Item::Class(class) = item else { continue };
            let about = class.doc.as_deref().unwrap_or_default();
            for example in examples(about) {
                all.push(entry(name.to_owned(), "example", uri.clone(), example.to_owned()));
            }
            all.push(entry(name.to_owned(), "class", uri.clone(), about.to_owned()));
            for method in &class.methods {
                let about = method.doc.as_deref().unwrap_or_default();
                let side = if method.is_class { " class" } else { "" };
                let title = format!("{name}{side}>>{}", method.head.selector);
                for example in examples(about) {
                    all.push(entry(title.clone(), "example", uri.clone(), example.to_owned()));
                }
                all.push(entry(title, "method", uri.clone(), about.to_owned()));
            }
        }
    }
    for (code, about) in docs::codes() {
        let uri = format!("beamtalk://doc/{code}");
        all.push(entry(code.to_owned(), "error", uri, about.to_owned()));
    }
    all
}

/// The parts of a page, each with its heading.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let (mut heading, mut start, mut place, mut is_code) = ("", 0, 0, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        if !is_code && line.starts_with("## ") {
            found.push((heading, text.get(start..place).unwrap_or_default()));
            heading = line.trim_start_matches('#').trim();
            start = place;
        }
        place += line.len();
    }
    found.push((heading, text.get(start..).unwrap_or_default()));
    found.retain(|(_, section)| !section.trim().is_empty());
    found
}

/// The code in a text.
fn examples(text: &str) -> impl Iterator<Item = &str> {
    text.split("```beamtalk\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
}

/// Words of questions that stand in every text.
const OF_QUESTIONS: [&str; 26] = [
    "a", "an", "and", "are", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it", "me", "my",
    "of", "on", "should", "the", "to", "what", "when", "which", "with", "you",
];

/// The words of a query that say what is asked for.
fn words_of(query: &str) -> Vec<String> {
    let plain = |word: &str| word.trim_end_matches(['?', '!', ',', '.']).to_lowercase();
    let words = query
        .split_whitespace()
        .map(plain)
        .filter(|word| !word.is_empty());
    let (empty, telling): (Vec<String>, Vec<String>) =
        words.partition(|word| OF_QUESTIONS.contains(&word.as_str()));
    if telling.is_empty() { empty } else { telling }
}

/// Those that contain the words, the best first.
pub(crate) fn search(query: &str, kind: Option<&str>, limit: usize) -> Vec<DocHit> {
    let words = words_of(query);
    let mut found: Vec<(u64, &Entry)> = ENTRIES
        .iter()
        .filter(|entry| kind.is_none_or(|kind| entry.kind == kind))
        .map(|entry| (score(entry, &words), entry))
        .filter(|(score, _)| *score > 0)
        .collect();
    found.sort_by_key(|(score, entry)| (std::cmp::Reverse(*score), entry.title.len()));
    let hit = |(score, entry): (u64, &Entry)| DocHit {
        title: entry.title.clone(),
        kind: entry.kind.to_owned(),
        uri: entry.uri.clone(),
        excerpt: excerpt(entry, &words),
        score,
    };
    found.into_iter().take(limit).map(hit).collect()
}

/// How well an entry fits: all words count more than one of them often, and a title more than a text.
fn score(entry: &Entry, words: &[String]) -> u64 {
    // On which side a method stands is no word about it.
    let title = entry.title.replace(" class>>", ">>").to_lowercase();
    let mut score = 0;
    let mut matched = 0;
    for word in words {
        let is_whole = title
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|part| matches!(part.strip_prefix(word.as_str()), Some("" | "s" | "es")));
        if is_whole {
            score += 40;
        } else if title.contains(word.as_str()) {
            score += 15;
        }
        if entry.lowered.contains(word.as_str()) {
            matched += 1;
            score += entry.lowered.matches(word.as_str()).take(8).count() as u64;
        }
    }
    if matched == words.len() {
        score += 30;
    }
    // Without a wish a page or a class is a better start than one of a thousand methods.
    match entry.kind {
        "topic" | "class" if score > 0 => score + 20,
        _ => score,
    }
}

/// The text around the first word that is found.
fn excerpt(entry: &Entry, words: &[String]) -> String {
    const AROUND: usize = 500;
    let lowered = entry.text.to_lowercase();
    let first = words
        .iter()
        .filter_map(|word| lowered.find(word.as_str()))
        .min()
        .unwrap_or(0);
    // Lower case may have other lengths; what is shown is near enough.
    let start = if entry.text.len() <= AROUND || first < AROUND / 2 {
        0
    } else {
        entry
            .text
            .floor_char_boundary((first - AROUND / 4).min(entry.text.len()))
    };
    let end = entry
        .text
        .floor_char_boundary((start + AROUND).min(entry.text.len()));
    entry.text.get(start..end).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newcomer_asks_for_is_found() {
        for (query, kind, wanted) in [
            ("language", None, "beamtalk://doc/language"),
            ("actors", None, "beamtalk://doc/actors"),
            ("supervisor", None, "beamtalk://doc/supervisors"),
            ("testing", Some("topic"), "beamtalk://doc/testing"),
            ("Integer", Some("class"), "beamtalk://doc/Integer"),
            ("E0201", None, "beamtalk://doc/E0201"),
            ("how do I make a class?", None, "beamtalk://doc/language"),
            ("what is an actor", None, "beamtalk://doc/actors"),
        ] {
            let hits = search(query, kind, 5);
            assert!(hits.iter().any(|hit| hit.uri == wanted), "{query}: {hits:?}");
        }
        assert!(search("zzqqxx", None, 5).is_empty());
        assert!(!search("collect", Some("example"), 3).is_empty());
    }

    #[test]
    fn a_page_is_cut_into_its_sections() {
        let text = "# A\nx\n## B\ny\n```sh\n## no\n```\n## C\n";
        let names: Vec<&str> = sections(text).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["", "B", "C"]);
    }
}
