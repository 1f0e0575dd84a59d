//! The keyword message that is being typed, and which argument is next.

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_syntax::ast::{Expression, ExpressionKind, Item, Message, Unit};
use beamtalk_syntax::walk;
use gen_lsp_types::SignatureHelpParams;
use serde_json::{Value, json};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning};
use crate::fault::Fault;
use crate::state::{Snapshot, View};
use crate::world::is_script;

/// Stands where the argument will be.
const MARKER: &str = "zzArgument";
/// Of a message to an unknown receiver at most this many methods are shown.
const MAX: usize = 10;

pub(crate) fn handle(snapshot: &Snapshot, params: SignatureHelpParams) -> Result<Option<Value>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let (before, after) = view.text().split_at(offset as usize);
    // Half a word is part of the argument; a name in its place lets the parser tell whose.
    let word = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
    let text = format!("{word}{MARKER} {after}");
    let parse = if is_script(&view.key) {
        beamtalk_syntax::parse_input(&text)
    } else {
        beamtalk_syntax::parse_file(&text)
    };
    let Some(asked) = asked(&parse.unit, word.len() as u32) else {
        return Ok(None);
    };
    let signatures = signatures(&view, &parse.unit, &asked);
    if signatures.is_empty() {
        return Ok(None);
    }
    Ok(Some(json!({
        "signatures": signatures,
        "activeSignature": 0,
        "activeParameter": asked.argument,
    })))
}

/// The message around the marker.
struct Asked {
    selector: String,
    argument: usize,
    /// Where its first part stands.
    at: u32,
}

/// The innermost keyword message that has the marker in an argument, outside of any block in between.
fn asked(unit: &Unit, marker: u32) -> Option<Asked> {
    let mut found = None;
    for item in &unit.items {
        let bodies = match item {
            Item::Class(class) => class.methods.iter().flat_map(|method| &method.body).collect(),
            Item::Extension(extension) => extension.method.body.iter().collect(),
            Item::Statement(statement) => vec![statement],
            Item::Protocol(_) | Item::TypeAlias(_) => Vec::new(),
        };
        for statement in bodies {
            look(&statement.expression, marker, &mut found);
        }
    }
    found
}

fn look(node: &Expression, marker: u32, found: &mut Option<Asked>) {
    if node.span.start > marker || node.span.end < marker {
        return;
    }
    let mut message = |message: &Message| {
        let is_keyword = message.selector.ends_with(':');
        let argument = message
            .arguments
            .iter()
            .position(|argument| argument.span.start <= marker && marker < argument.span.end);
        if let (true, Some(argument), Some(part)) = (is_keyword, argument, message.parts.first()) {
            *found = Some(Asked {
                selector: message.selector.to_string(),
                argument,
                at: part.start,
            });
        }
    };
    match &node.kind {
        ExpressionKind::Send(send) => message(&send.message),
        ExpressionKind::Cascade { messages, .. } => messages.iter().for_each(message),
        // Inside of a block something new begins.
        ExpressionKind::Block(_) => *found = None,
        _ => {}
    }
    walk::inner(node, &mut |inner| look(inner, marker, found));
}

fn signatures(view: &View, unit: &Unit, asked: &Asked) -> Vec<Value> {
    let lookup = Lookup::new(&view.world.table);
    let all = names::all(unit);
    let owner = all
        .iter()
        .find(|name| name.span.start == asked.at && matches!(name.meaning, Meaning::Message { .. }));
    let there = View {
        file: std::sync::Arc::new(crate::world::File::new(
            view.file.uri.clone(),
            std::sync::Arc::new(beamtalk_compiler::SourceFile {
                unit: unit.clone(),
                ..(*view.file.source).clone()
            }),
            view.file.access,
        )),
        ..view.clone()
    };
    let receiver = owner.and_then(|name| find::receiver(&there, &Inference::new(&lookup), name));
    let mut found = match &receiver {
        Some(receiver) => lookup.starting(receiver, &asked.selector),
        None => Vec::new(),
    };
    if found.is_empty() {
        found = anybody(view, &lookup, &asked.selector);
    }
    found
        .into_iter()
        .map(|answerer| {
            let doc = answerer.doc.as_deref().unwrap_or_default();
            json!({
                "label": answerer.signature.as_str(),
                "documentation": {"kind": "markdown", "value": format!("*{}*\n\n{doc}", answerer.class)},
                "parameters": parameters(&answerer.signature),
            })
        })
        .collect()
}

/// Methods of any class that begin with what is typed.
fn anybody(view: &View, lookup: &Lookup<'_>, selector: &str) -> Vec<beamtalk_compiler::complete::Answerer> {
    let part = find::first_part(selector);
    let mut found = Vec::new();
    for file in view.all_files().filter(|file| file.text().contains(part)) {
        for method in find::methods(file).filter(|one| one.method.head.selector.starts_with(selector)) {
            let receiver = Receiver {
                class: method.class.clone(),
                is_class: method.method.is_class,
            };
            found.extend(lookup.answerer(&receiver, &method.method.head.selector));
            if found.len() == MAX {
                return found;
            }
        }
    }
    found
}

/// Each keyword with what follows it.
fn parameters(signature: &str) -> Vec<Value> {
    let head = signature.split(" -> ").next().unwrap_or(signature);
    let mut labels: Vec<String> = Vec::new();
    for word in head.split(' ') {
        let is_keyword = word.ends_with(':') && !word.ends_with("::");
        match labels.last_mut() {
            Some(last) if !is_keyword => {
                last.push(' ');
                last.push_str(word);
            }
            _ => labels.push(word.to_owned()),
        }
    }
    labels
        .into_iter()
        .map(|label| json!({ "label": label }))
        .collect()
}
