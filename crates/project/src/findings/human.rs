//! One finding as a snippet of source for people.

use annotate_snippets::{AnnotationKind, Level as Title, Renderer, Snippet};

use super::{Finding, Level};

pub fn render(path: &str, text: &str, finding: &Finding, has_color: bool) -> String {
    // A tab is one byte and is shown as one space, so spans stay right.
    let text = text.replace('\t', " ");
    let title = match finding.severity {
        Level::Error => Title::ERROR,
        Level::Warning => Title::WARNING,
        Level::Hint => Title::INFO.with_name("hint"),
        Level::Lint => Title::NOTE.with_name("lint"),
    };
    let notes = finding.notes.iter().map(|note| {
        AnnotationKind::Context
            .span(clip(&text, note.span))
            .label(note.text.as_str())
    });
    let snippet = Snippet::source(text.as_str())
        .path(path)
        .annotation(AnnotationKind::Primary.span(clip(&text, finding.span)))
        .annotations(notes);
    let mut group = title
        .primary_title(finding.message.as_str())
        .id(finding.code.as_str())
        .element(snippet);
    if let Some(hint) = &finding.hint {
        group = group.element(Title::HELP.message(hint.as_str()));
    }
    let renderer = if has_color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    renderer.render(&[group])
}

/// A span that fits the text and stands on character boundaries.
fn clip(text: &str, span: (u32, u32)) -> std::ops::Range<usize> {
    let floor = |offset: u32| {
        let mut at = (offset as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.0);
    start..floor(span.1).max(start)
}
