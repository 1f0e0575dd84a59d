//! Colours that need to know what a name means.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use beamtalk_syntax::span::Span;
use beamtalk_syntax::{Paint, highlight};
use ecow::EcoString;
use gen_lsp_types::{SemanticTokensDeltaParams, SemanticTokensParams, SemanticTokensRangeParams};
use serde_json::{Value, json};

use crate::analysis::names::{self, Meaning, Occurrence, Role};
use crate::fault::Fault;
use crate::library::Library;
use crate::state::{Snapshot, View};

/// The order is the protocol's: tokens are numbers into these.
pub(crate) const TYPES: &[&str] = &[
    "namespace",
    "class",
    "typeParameter",
    "parameter",
    "variable",
    "property",
    "method",
    "keyword",
    "comment",
    "string",
    "number",
    "operator",
];
pub(crate) const MODIFIERS: &[&str] = &["declaration", "modification", "static", "defaultLibrary"];

const DECLARATION: u32 = 1;
const MODIFICATION: u32 = 2;
const STATIC: u32 = 4;
const LIBRARY: u32 = 8;

/// The tokens each client saw last, so that it can be told what changed.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    last: Mutex<HashMap<EcoString, (u64, Vec<u32>)>>,
}

impl Sent {
    /// Keep tokens and give them a number; the answer has those that were sent under another number.
    fn keep(&self, key: &EcoString, tokens: &[u32], known: Option<&str>) -> (u64, Option<Vec<u32>>) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.remove(key);
        let number = before.as_ref().map_or(1, |(number, _)| number + 1);
        last.insert(key.clone(), (number, tokens.to_vec()));
        let before = before
            .filter(|(number, _)| known == Some(number.to_string().as_str()))
            .map(|(_, tokens)| tokens);
        (number, before)
    }

    pub(crate) fn forget(&self, key: &str) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.remove(key);
    }
}

pub(crate) fn full(snapshot: &Snapshot, params: SemanticTokensParams) -> Result<Value, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let data = encode(&view, None);
    let (number, _) = snapshot.state.tokens.keep(&view.key, &data, None);
    Ok(json!({"resultId": number.to_string(), "data": data}))
}

pub(crate) fn range(snapshot: &Snapshot, params: SemanticTokensRangeParams) -> Result<Value, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let span = view.span(params.range)?;
    Ok(json!({"data": encode(&view, Some(span))}))
}

/// What changed since the tokens that the client names: one replacement between an equal beginning and end.
pub(crate) fn delta(snapshot: &Snapshot, params: SemanticTokensDeltaParams) -> Result<Value, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let data = encode(&view, None);
    let known = params.previous_result_id;
    let (number, before) = snapshot.state.tokens.keep(&view.key, &data, Some(&known));
    let id = number.to_string();
    let Some(before) = before else {
        return Ok(json!({"resultId": id, "data": data}));
    };
    let start = before
        .iter()
        .zip(&data)
        .take_while(|(one, other)| one == other)
        .count();
    let room = before.len().min(data.len()) - start;
    let end = before
        .iter()
        .rev()
        .zip(data.iter().rev())
        .take(room)
        .take_while(|(one, other)| one == other)
        .count();
    let edits = if start == before.len() && start == data.len() {
        json!([])
    } else {
        let inserted = data.get(start..data.len() - end).unwrap_or_default();
        json!([{"start": start, "deleteCount": before.len() - end - start, "data": inserted}])
    };
    Ok(json!({"resultId": id, "edits": edits}))
}

struct Token {
    span: Span,
    kind: usize,
    modifiers: u32,
}

/// Five numbers for each token: lines and columns since the one before, length, type, modifiers.
fn encode(view: &View, within: Option<Span>) -> Vec<u32> {
    let (text, lines) = (view.text(), &view.file.lines);
    let mut data = Vec::new();
    let (mut line, mut column) = (0, 0);
    for token in tokens(view) {
        if within.is_some_and(|span| token.span.end < span.start || token.span.start > span.end) {
            continue;
        }
        // A token may not reach over the end of a line.
        for piece in pieces(view, token.span) {
            let place = lines.position(text, piece.start, view.encoding);
            let since = if place.line == line {
                place.character - column
            } else {
                place.character
            };
            data.extend([
                place.line - line,
                since,
                view.encoding.length(piece.text(text)),
                token.kind as u32,
                token.modifiers,
            ]);
            (line, column) = (place.line, place.character);
        }
    }
    data
}

fn pieces(view: &View, span: Span) -> Vec<Span> {
    let (text, lines) = (view.text(), &view.file.lines);
    let numbers = lines.line(span.start)..=lines.line(span.end.max(span.start));
    numbers
        .filter_map(|line| {
            let start = lines.start(line);
            let end = start + lines.text(text, line).len() as u32;
            let piece = Span::new(span.start.max(start), span.end.min(end));
            (piece.end > piece.start).then_some(piece)
        })
        .collect()
}

/// In the order of the text, apart from each other.
fn tokens(view: &View) -> Vec<Token> {
    let names = names::all(&view.file.source.unit);
    let mut tokens: Vec<Token> = names.iter().filter_map(of_name).collect();
    for (span, paint) in highlight(view.text()) {
        let kind = match paint {
            Paint::String => "string",
            Paint::Number => "number",
            Paint::Constant => "keyword",
            Paint::ClassName => "class",
            Paint::Comment => "comment",
        };
        tokens.push(token(span, kind, 0));
    }
    // Names first: they know more than the colours of words do.
    tokens.sort_by_key(|token| token.span.start);
    let mut end = 0;
    tokens.retain(|token| {
        let is_free = token.span.start >= end && token.span.end > token.span.start;
        if is_free {
            end = token.span.end;
        }
        is_free
    });
    tokens
}

fn token(span: Span, kind: &str, modifiers: u32) -> Token {
    Token {
        span,
        kind: TYPES.iter().position(|one| *one == kind).unwrap_or_default(),
        modifiers,
    }
}

fn of_name(name: &Occurrence) -> Option<Token> {
    let mut modifiers = match name.role {
        Role::Declaration => DECLARATION,
        Role::Write => MODIFICATION,
        Role::Read => 0,
    };
    let kind = match &name.meaning {
        Meaning::Class(class) => {
            if Library::get().table.class(class).is_some() {
                modifiers |= LIBRARY;
            }
            "class"
        }
        Meaning::TypeParameter(_) => "typeParameter",
        Meaning::Package(_) => "namespace",
        Meaning::Local { .. } if name.is_parameter => "parameter",
        Meaning::Local { .. } => "variable",
        Meaning::Unbound(_) => return None,
        Meaning::Slot { .. } => "property",
        Meaning::Message { selector, .. } | Meaning::Method { selector, .. } => {
            if name.role == Role::Declaration && name.owner.as_ref().is_some_and(|owner| owner.is_class) {
                modifiers |= STATIC;
            }
            let is_word = selector.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if is_word { "method" } else { "operator" }
        }
        Meaning::Own => "keyword",
    };
    Some(token(name.span, kind, modifiers))
}
