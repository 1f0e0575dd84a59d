//! Sources and places in them as text.

use beamtalk_wire::answers::{MethodText, Site};
use beamtalk_wire::{Side, answers::MethodPlace};

use super::super::paint::Palette;
use super::super::render::Rendered;
use super::grouped;

/// A class or one method of it, as a command names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) class: String,
    pub(crate) side: Side,
    pub(crate) selector: Option<String>,
}

impl Subject {
    /// `Class [class] [selector]`, also written `Class>>selector` or with a `#` before the selector.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let words = words.replace(">>", " ");
        let words: Vec<&str> = words.split_whitespace().collect();
        let (class, side, selector) = match *words.as_slice() {
            [class] => (class, Side::Instance, None),
            [class, "class"] => (class, Side::Class, None),
            [class, "class", selector] => (class, Side::Class, Some(selector)),
            [class, selector] => (class, Side::Instance, Some(selector)),
            _ => return None,
        };
        Some(Self {
            class: class.to_owned(),
            side,
            selector: selector.map(|selector| bare_selector(selector).to_owned()),
        })
    }

    /// `Lamp>>toggle`, `Lamp class>>make`, `Lamp`.
    pub(crate) fn title(&self) -> String {
        let side = if self.side == Side::Class { " class" } else { "" };
        match &self.selector {
            Some(selector) => format!("{}{side}>>{selector}", self.class),
            None => self.class.clone(),
        }
    }
}

/// `#at:put:` and `at:put:` mean the same.
pub(crate) fn bare_selector(word: &str) -> &str {
    match word.strip_prefix('#') {
        Some(rest) if !rest.is_empty() => rest.trim_matches('\''),
        _ => word,
    }
}

/// Where something is: `src/Lamp.bt:9`.
pub(crate) fn place(file: Option<&str>, line: Option<u64>) -> String {
    match (file, line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.to_owned(),
        (None, _) => "(no file)".to_owned(),
    }
}

/// One method in a class body: its documentation and text, indented.
pub(crate) fn member(method: &MethodText) -> Option<String> {
    let source = bare_source(method.source.as_deref()?);
    let mut text = documentation("  ", method.doc.as_deref());
    let mark = if method.side == Side::Class { "class " } else { "" };
    // The first line begins at the head of the method, the others stand as they did in their file.
    let rest: Vec<&str> = source.lines().skip(1).collect();
    let inside = rest.iter().filter(|line| !line.trim().is_empty());
    let margin = inside.map(|line| line.len() - line.trim_start().len()).min();
    let shift = 4usize.saturating_sub(margin.unwrap_or(4));
    text.push_str(&format!(
        "  {mark}{}\n",
        source.lines().next().unwrap_or_default()
    ));
    for line in rest {
        let moved = format!("{}{line}", " ".repeat(shift));
        text.push_str(moved.trim_end());
        text.push('\n');
    }
    Some(text)
}

/// A method of the class side has its mark or not, depending on where it came from.
pub(crate) fn bare_source(source: &str) -> &str {
    match source.strip_prefix("class ") {
        Some(rest) if !rest.trim_start().starts_with("=>") => rest.trim_start(),
        _ => source,
    }
}

/// A comment as it stands above what it is about.
pub(crate) fn documentation(margin: &str, text: Option<&str>) -> String {
    let lines = text.unwrap_or_default().lines();
    lines
        .map(|line| format!("{}\n", format!("{margin}/// {line}").trim_end()))
        .collect()
}

/// A whole class as text that defines it.
pub(crate) fn class_text(comment: Option<&str>, definition: &str, members: &[String]) -> String {
    let mut text = documentation("", comment);
    text.push_str(definition.trim_end());
    text.push('\n');
    for member in members {
        text.push('\n');
        text.push_str(member);
    }
    text
}

/// A source with its place above it.
pub(crate) fn source(title: &str, place: &str, text: &str, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    let place = place.trim_matches(['(', ')']);
    rendered.line(&palette.aside(&format!("// {title} ({place})")));
    rendered.line(&palette.code(text));
    rendered
}

/// Methods are told apart by side and selector.
pub(crate) fn line_of(methods: &[MethodPlace], subject: &Subject) -> Option<u64> {
    let selector = subject.selector.as_deref()?;
    let found = methods
        .iter()
        .find(|method| method.side == subject.side && method.selector == selector);
    found?.line
}

/// `src/Lamp.bt:9 Lamp>>toggle`, one place per line.
pub(crate) fn sites(what: &str, sites: &[Site], palette: Palette) -> Rendered {
    let mut lines: Vec<(String, u64, String)> = sites
        .iter()
        .map(|site| {
            let side = if site.class_side { " class" } else { "" };
            let method = site.method.as_deref().map(|method| format!(">>{method}"));
            (
                place(site.source_file.as_deref(), site.line),
                site.line.unwrap_or(0),
                format!("{}{side}{}", site.class, method.unwrap_or_default()),
            )
        })
        .collect();
    lines.sort_by(|a, b| {
        let file = |line: &(String, u64, String)| line.0.rsplit_once(':').map(|(file, _)| file.to_owned());
        (file(a), a.1, &a.2).cmp(&(file(b), b.1, &b.2))
    });
    // What has no file has no lines to tell two places in it apart.
    lines.dedup_by(|a, b| a.0 == b.0 && a.2 == b.2);
    if lines.is_empty() {
        return Rendered::out(format!("No {what}"));
    }
    let mut rendered = Rendered::default();
    for (place, _, name) in &lines {
        rendered.line(&format!("{place} {}", palette.code(name)));
    }
    rendered.line(&palette.aside(&format!("{} {what}", grouped(lines.len() as u64))));
    rendered
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::test_answers::answer;
    use super::*;

    #[test]
    fn subjects_are_read_as_they_are_written_elsewhere() {
        let title = |words: &str| Subject::parse(words).map(|subject| subject.title());
        assert_eq!(title("Lamp").as_deref(), Some("Lamp"));
        assert_eq!(title("Lamp toggle").as_deref(), Some("Lamp>>toggle"));
        assert_eq!(title("Lamp>>at:put:").as_deref(), Some("Lamp>>at:put:"));
        assert_eq!(title("Lamp class #make").as_deref(), Some("Lamp class>>make"));
        assert_eq!(title("Lamp >> #'odd one'"), None);
        assert_eq!(title("Lamp >> +").as_deref(), Some("Lamp>>+"));
        assert_eq!(title("a b c d"), None);
        assert_eq!(title(""), None);
    }

    #[test]
    fn a_class_is_put_together_from_its_parts() {
        let method = |side: &str, source: &str, doc: Option<&str>| {
            answer(
                json!({"selector": "it", "side": side, "source": source, "doc": doc, "source_status": "indexed"}),
            )
        };
        let members = [
            member(&method(
                "instance",
                "toggle =>\n    self.on := self.on not",
                Some("Turn.\nOr not."),
            )),
            member(&method("class", "make =>\n  self spawn", None)),
        ];
        let members: Vec<String> = members.into_iter().flatten().collect();
        let text = class_text(
            Some("A lamp."),
            "Actor subclass: Lamp\n  state: on = false",
            &members,
        );
        insta::assert_snapshot!(text);
    }

    #[test]
    fn places_are_listed_by_file_and_line() {
        let site = |class: &str, line: u64, file: Option<&str>| json!({"class": class, "class_side": class == "Fan", "method": "on", "line": line, "source_file": file});
        let found: Vec<Site> = answer(json!([
            site("Lamp", 12, Some("src/Lamp.bt")),
            site("Lamp", 9, Some("src/Lamp.bt")),
            site("Fan", 3, Some("src/Fan.bt")),
            site("Here", 1, None)
        ]));
        insta::assert_snapshot!(sites("senders of on", &found, Palette::Plain).out);
        assert_eq!(
            sites("senders of on", &[], Palette::Plain).out,
            "No senders of on\n"
        );
    }
}
