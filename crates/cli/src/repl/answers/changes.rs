//! Answers about the change log: entries, differences, flush.

use serde_json::Value;

use super::super::render::{Rendered, list, method_name, note, objects, text};
use super::{Object, count, names, number};

/// What an entry is about: `Lamp>>isOn`, or `Lamp` for a class as a whole.
pub(crate) fn subject(entry: &Object) -> String {
    if text(entry, "selector").is_empty() {
        text(entry, "class").to_owned()
    } else {
        method_name(entry)
    }
}

pub(crate) fn entries(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in objects(answer, "entries") {
        rendered.line(&entry_line(entry));
    }
    let waiting = list(answer, "waiting").len() as u64;
    if list(answer, "entries").is_empty() && waiting == 0 {
        rendered.line("No changes");
    }
    if waiting > 0 {
        rendered.line(&waiting_sentence(waiting));
    }
    for entry in objects(answer, "waiting") {
        rendered.line(&waiting_line(entry));
    }
    rendered
}

/// What is said of changes that wait.
pub(crate) fn waiting_sentence(waiting: u64) -> String {
    let (were, them) = if waiting == 1 {
        ("was", "it")
    } else {
        ("were", "them")
    };
    format!(
        "{} of the last run {were} not flushed (:restore installs {them}, :discard forgets {them})",
        count(waiting, "change")
    )
}

/// One change that waits: its number, what it is about, who made it and when.
pub(crate) fn waiting_line(entry: &Object) -> String {
    let kind = match text(entry, "kind") {
        kind @ ("new-class" | "remove-method" | "remove-class") => format!(" {kind}"),
        _ => String::new(),
    };
    format!(
        "{:>4}  {}{kind} (by {} {}, {})",
        number(entry, "seq"),
        subject(entry),
        text(entry, "author_kind"),
        text(entry, "author"),
        text(entry, "ts")
    )
}

/// The fields that name changes: a number, a class, or `all`.
pub(crate) fn chosen(words: &str) -> Object {
    let (field, value) = match words.parse::<u64>() {
        Ok(seq) => ("seq", Value::from(seq)),
        Err(_) if words == "all" => ("all", Value::from(true)),
        Err(_) => ("class", Value::from(words)),
    };
    [(field.to_owned(), value)].into_iter().collect()
}

/// The answer of `restore`.
pub(crate) fn restored(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in objects(answer, "entries") {
        rendered.line(&format!("Installed {} {}", subject(entry), note(entry)));
    }
    for failure in objects(answer, "failed") {
        let why = failure.get("error").and_then(Value::as_object);
        rendered.complaint(&format!(
            "Error: change {} still waits: {}",
            number(failure, "seq"),
            why.map_or("", |why| text(why, "message"))
        ));
    }
    for conflict in objects(answer, "conflicts") {
        rendered.complaint(&format!(
            "{} waits on: {} (:restore {} takes it nevertheless)",
            subject(conflict),
            text(conflict, "detail"),
            number(conflict, "seq")
        ));
    }
    if rendered.out.is_empty() && rendered.err.is_empty() {
        rendered.line("Nothing waits");
    }
    rendered
}

/// The answer of `take`.
pub(crate) fn taken(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in objects(answer, "entries") {
        rendered.line(&entry_line(entry));
    }
    conflict_lines(&mut rendered, answer);
    rendered
}

/// The answer of `discard`.
pub(crate) fn discarded(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in objects(answer, "entries") {
        rendered.line(&format!(
            "Discarded {:>4}  {}",
            number(entry, "seq"),
            subject(entry)
        ));
    }
    if list(answer, "entries").is_empty() {
        rendered.line("Nothing to discard");
    }
    rendered
}

/// What is in conflict, a line for each file.
pub(crate) fn conflict_lines(rendered: &mut Rendered, answer: &Object) {
    for conflict in objects(answer, "conflicts") {
        rendered.complaint(&conflict_line(conflict));
    }
}

/// One entry: its number, what it is about, its kind where the name does not show it, what becomes of it.
pub(crate) fn entry_line(entry: &Object) -> String {
    let kind = match text(entry, "kind") {
        kind @ ("new-class" | "remove-method" | "remove-class") => format!(" {kind}"),
        _ => String::new(),
    };
    format!(
        "{:>4}  {}{kind} {}",
        number(entry, "seq"),
        subject(entry),
        note(entry)
    )
}

pub(crate) fn dirty(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    let dirty = answer.get("dirty").and_then(Value::as_object);
    let mut classes: Vec<(&String, &Value)> = dirty.map(|dirty| dirty.iter().collect()).unwrap_or_default();
    classes.sort_unstable_by_key(|(class, _)| class.as_str());
    for (class, selectors) in &classes {
        let selectors: Vec<&str> = selectors
            .as_array()
            .map(|selectors| selectors.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        rendered.line(&format!("{class}: {}", selectors.join(", ")));
    }
    if classes.is_empty() {
        rendered.line("Nothing differs from disk");
    }
    rendered
}

/// The answer of `flush`.
pub(crate) fn flushed(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    // Classes that went are told by name.
    let methods = number(answer, "flushed").saturating_sub(number(answer, "removed_classes"));
    let files = number(answer, "files");
    let merged = if list(answer, "merged").is_empty() {
        ""
    } else {
        ", merged with changes on disk (:sync loads them)"
    };
    if methods > 0 {
        rendered.line(&format!(
            "flushed {} across {}{merged}",
            count(methods, "method"),
            count(files, "file")
        ));
    }
    for (verb, field) in [("wrote", "new_classes"), ("deleted", "removed_classes")] {
        let classes = names(answer, field);
        if !classes.is_empty() {
            rendered.line(&format!("{verb} {}", classes.join(", ")));
        }
    }
    if rendered.out.is_empty() && list(answer, "conflicts").is_empty() {
        rendered.line("nothing to flush");
    }
    for skipped in objects(answer, "skipped") {
        let reason = match text(skipped, "reason") {
            "destructive" => "destructive, use :flush-destructive".to_owned(),
            "stdlib" => "standard library".to_owned(),
            "dynamic" => "no source file".to_owned(),
            reason => reason.strip_prefix("dependency:").map_or_else(
                || reason.to_owned(),
                |path| format!("belongs to the dependency {path}"),
            ),
        };
        let kind = match text(skipped, "kind") {
            "" => String::new(),
            kind => format!(" ({kind})"),
        };
        rendered.line(&format!("skipped: {}{kind} — {reason}", subject(skipped)));
    }
    conflict_lines(&mut rendered, answer);
    rendered
}

fn conflict_line(conflict: &Object) -> String {
    let file = match text(conflict, "file") {
        "" => text(conflict, "source_file"),
        file => file,
    };
    let (what, way) = match text(conflict, "reason") {
        "external_edit" => (
            "changed on disk and in the image",
            ":diff shows both, :take image or :take disk settles it",
        ),
        "file_missing" => (
            "was moved or deleted",
            "put it back, or :take image to write it anew",
        ),
        "target_exists" => (
            "exists already",
            ":take image, :take disk, or choose another path",
        ),
        "span_out_of_range" => (
            "no longer has the method",
            ":take image or :take disk, or edit it by hand, then :reload the class",
        ),
        "write_failed" => ("cannot be written", "repair that, then :flush again"),
        other => (other, ":changes lists what is pending"),
    };
    let detail = match text(conflict, "detail") {
        "" => String::new(),
        detail => format!(" ({detail})"),
    };
    format!("conflict: {file} {what}{detail} — {way}")
}

pub(crate) fn has_conflicts(answer: &Object) -> bool {
    !list(answer, "conflicts").is_empty()
}

/// What `:flush` narrows to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Class(String),
    Kind(String),
    File(String),
}

impl Filter {
    /// `Class`, `#'new-class'` or `#kind`, `#{#file => "path"}`. `None` when it is none of these.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let words = words.trim();
        if words.is_empty() {
            return Some(Self::All);
        }
        if let Some(inside) = words.strip_prefix("#{").and_then(|rest| rest.strip_suffix('}')) {
            let (key, value) = inside.split_once("=>")?;
            let file = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            return (key.trim() == "#file" && !file.is_empty()).then(|| Self::File(file.to_owned()));
        }
        if let Some(kind) = words.strip_prefix('#') {
            let kind = kind
                .strip_prefix('\'')
                .map_or(Some(kind), |kind| kind.strip_suffix('\''))?;
            return is_word(kind).then(|| Self::Kind(kind.to_owned()));
        }
        let is_class = words.starts_with(|first: char| first.is_uppercase()) && is_word(words);
        is_class.then(|| Self::Class(words.to_owned()))
    }

    /// The fields of the operation.
    pub(crate) fn fields(self) -> Object {
        let mut fields = Object::new();
        let (field, value) = match self {
            Self::All => return fields,
            Self::Class(class) => ("class", class),
            Self::Kind(kind) => ("kind", kind),
            Self::File(file) => ("file", file),
        };
        fields.insert(field.to_owned(), value.into());
        fields
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '@'))
}
