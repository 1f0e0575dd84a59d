//! The source of one method as somebody gives it: a whole definition, or the bare body of a unary method.

use super::extension_source;
use crate::ast::{Extension, Item, Method};
use crate::layout;

/// A method's source with its head.
#[derive(Clone, Debug)]
pub struct Definition {
    pub text: String,
    /// Where a bare body starts in the text, and where in it blanks were put before its lines; `None` when the source came
    /// with its head.
    bare: Option<(usize, Vec<usize>)>,
}

const INDENT: &str = "  ";

/// The source with a head; the lines of a bare body are moved to the right, those inside strings stay.
pub fn method_definition(selector: &str, source: &str) -> Definition {
    let source = source.trim();
    if crate::parse_method(source).0.is_some() {
        return Definition {
            text: source.to_owned(),
            bare: None,
        };
    }
    let (body, blanks) = layout::indented(source, INDENT);
    let head = format!("{selector} =>\n");
    Definition {
        bare: Some((head.len(), blanks)),
        text: head + &body,
    }
}

impl Definition {
    /// The place in the source, without the blanks around it, that a place of the text comes from.
    pub fn place_in_source(&self, at: usize) -> usize {
        match &self.bare {
            None => at,
            Some((head, blanks)) => {
                let inside = at.saturating_sub(*head);
                let put: usize = blanks
                    .iter()
                    .map(|blank| inside.saturating_sub(*blank).min(INDENT.len()))
                    .sum();
                inside - put
            }
        }
    }
}

/// What callers see of a method: its head and the type of its result. `None` when the source has no head.
pub fn signature(source: &str) -> Option<String> {
    let (method, _) = crate::parse_method(source.trim());
    let method = method?;
    let end = method
        .result
        .map_or(method.head.span.end, |result| result.span.end);
    let words = source.trim().get(method.span.start as usize..end as usize)?;
    Some(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The source of a method without the class that `Target >> method` names.
pub fn method_source(source: &str) -> String {
    target(source).map_or_else(|| source.to_owned(), |(_, source)| source)
}

/// The source of a method as `Target >> method`, for a file that is not the class's own.
pub fn as_extension(class: &str, is_class: bool, selector: &str, source: &str) -> String {
    let parts = parts(selector, is_class, source);
    let side = if is_class { " class" } else { "" };
    format!("{}{}{class}{side} >> {}", parts.comments, parts.doc, parts.rest)
}

/// `Target >> ` and the method's own source, of a source that has both.
fn target(source: &str) -> Option<(String, String)> {
    if !source.contains(">>") || crate::parse_method(source.trim()).0.is_some() {
        return None;
    }
    let items = crate::parse_input(source).unit.items;
    let [Item::Extension(extension)] = items.as_slice() else {
        return None;
    };
    let Extension { span, method, .. } = extension;
    let front = source.get(span.start as usize..method.head.span.start as usize)?;
    Some((front.to_owned(), extension_source(source, extension)))
}

/// The parts of a method's new source.
pub(super) struct Parts {
    /// `Target >> `, of a method that stands in a file which is not its class's.
    pub(super) target: Option<String>,
    /// Comments above the documentation or the head, as whole lines.
    pub(super) comments: String,
    /// Documentation, as whole lines.
    pub(super) doc: String,
    pub(super) modifiers: String,
    /// From the head on.
    pub(super) rest: String,
    /// How much of `rest` is the method itself; comments may follow.
    pub(super) length: usize,
}

pub(super) fn parts(selector: &str, is_class: bool, source: &str) -> Parts {
    let source = source.replace("\r\n", "\n");
    let (target, source) = target(&source).map_or((None, source), |(target, own)| (Some(target), own));
    let source = method_definition(selector, &source).text;
    let (method, _) = crate::parse_method(&source);
    let Some(method) = method else {
        return Parts {
            target,
            comments: String::new(),
            doc: String::new(),
            modifiers: String::new(),
            length: source.len(),
            rest: source,
        };
    };
    Parts {
        target,
        ..of_method(&source, &method, is_class)
    }
}

fn of_method(source: &str, method: &Method, is_class: bool) -> Parts {
    let (start, head) = (method.span.start as usize, method.head.span.start as usize);
    let mut modifiers = source.get(start..head).unwrap_or_default().to_owned();
    if !modifiers.is_empty() && is_class && !method.is_class {
        modifiers.push_str("class ");
    }
    let before = source.get(..start).unwrap_or_default();
    let (doc, comments): (Vec<&str>, Vec<&str>) = before.split_inclusive('\n').partition(|line| {
        super::lines::DOCUMENTATION
            .iter()
            .any(|mark| line.trim_start().starts_with(mark))
    });
    let rest = source.get(head..).unwrap_or_default().to_owned();
    Parts {
        target: None,
        comments: comments
            .into_iter()
            .filter(|line| !line.trim().is_empty())
            .collect(),
        doc: doc.concat(),
        modifiers,
        length: (method.span.end as usize - head).min(rest.len()),
        rest,
    }
}
