//! The standard layout: of a document, of a part of it, and of a new line.

use beamtalk_syntax::span::Span;
use beamtalk_syntax::{FormatError, diff, format, format_input};
use gen_lsp_types::{
    DocumentFormattingParams, DocumentOnTypeFormattingParams, DocumentRangeFormattingParams, TextEdit,
};

use crate::fault::Fault;
use crate::state::{Snapshot, View};
use crate::world::is_script;

/// One step of indentation.
const STEP: &str = "  ";

pub(crate) fn document(
    snapshot: &Snapshot,
    params: DocumentFormattingParams,
) -> Result<Vec<TextEdit>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    edits(&view, None)
}

pub(crate) fn range(
    snapshot: &Snapshot,
    params: DocumentRangeFormattingParams,
) -> Result<Vec<TextEdit>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let span = view.span(params.range)?;
    edits(&view, Some(span))
}

/// The changes that format a text, line by line; those that touch a range, if one is given.
fn edits(view: &View, within: Option<Span>) -> Result<Vec<TextEdit>, Fault> {
    let text = view.text();
    // Scripts are reported and never rewritten.
    if is_script(&view.key) {
        return Ok(Vec::new());
    }
    let formatted = match format(text) {
        Ok(formatted) => formatted,
        Err(FormatError::Syntax(_)) if view.key.starts_with("untitled:") => {
            format_input(text).map_err(refusal)?
        }
        Err(fault) => return Err(refusal(fault)),
    };
    let changes = diff::changes(text, &formatted).into_iter();
    let wanted = changes
        .filter(|(span, _)| within.is_none_or(|within| span.start <= within.end && within.start <= span.end));
    let edits = wanted.map(|(span, new_text)| TextEdit {
        range: view.range(span),
        new_text,
    });
    Ok(edits.collect())
}

fn refusal(fault: FormatError) -> Fault {
    Fault::Failed(format!("not formatted: {fault}"))
}

/// A new line is indented as the one above: one step deeper after `=>` and inside of brackets that it opened.
pub(crate) fn on_type(
    snapshot: &Snapshot,
    params: DocumentOnTypeFormattingParams,
) -> Result<Option<Vec<TextEdit>>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let offset = view.offset(params.position)?;
    let (text, lines) = (view.text(), &view.file.lines);
    let line = lines.line(offset);
    let Some(above) = line.checked_sub(1).filter(|_| params.ch == "\n") else {
        return Ok(None);
    };
    let before = lines.text(text, above);
    let indent: String = before.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
    let code = before.split("//").next().unwrap_or_default().trim_end();
    let opens = code.ends_with("=>")
        || code.ends_with(['[', '(', '{'])
        || code.ends_with(":=")
        || (code.ends_with('|') && code.contains('['));
    let is_header = code.contains("subclass:") || code.starts_with("Protocol define:");
    let wanted = if opens || is_header {
        format!("{indent}{STEP}")
    } else {
        indent
    };
    let here = lines.text(text, line);
    let blank = here.len() - here.trim_start_matches([' ', '\t']).len();
    if here.get(..blank) == Some(wanted.as_str()) {
        return Ok(None);
    }
    let start = lines.start(line);
    Ok(Some(vec![TextEdit {
        range: view.range(Span::new(start, start + blank as u32)),
        new_text: wanted,
    }]))
}
