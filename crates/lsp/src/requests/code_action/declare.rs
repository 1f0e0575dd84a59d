//! A method that a class does not have: `lamp dim: 3` makes `dim: arg1 => self notImplemented`.

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_syntax::ast::ExpressionKind;
use beamtalk_syntax::span::Span;
use serde_json::Value;

use super::signature::message_with;
use super::{Asked, action};
use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning};
use crate::analysis::references::Certainty;
use crate::edit::Edits;
use crate::fault::Fault;
use crate::world::Access;

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let view = asked.view;
    let unit = &view.file.source.unit;
    let names = names::all(unit);
    let Some(name) = names::at(&names, asked.span.start) else {
        return Ok(Vec::new());
    };
    let Meaning::Message { selector, .. } = &name.meaning else {
        return Ok(Vec::new());
    };
    let lookup = Lookup::new(&view.world.table);
    let Some(receiver) = find::receiver(view, &Inference::new(&lookup), name) else {
        return Ok(Vec::new());
    };
    if lookup.answerer(&receiver, selector).is_some() {
        return Ok(Vec::new());
    }
    let Some((file, class)) = find::class_file(view, &receiver.class) else {
        return Ok(Vec::new());
    };
    if file.access != Access::Own {
        return Ok(Vec::new());
    }
    let text = method(selector, &arguments(asked, name.span), &receiver);
    let end = class
        .methods
        .iter()
        .map(|method| method.span.end)
        .chain(class.slots.iter().map(|slot| slot.span.end))
        .max()
        .unwrap_or(class.header.end);
    let mut edits = Edits::new(asked.snapshot, "");
    edits.replace(file, Span::new(end, end), format!("\n\n{text}"), Certainty::Sure)?;
    let title = format!("Declare '{selector}' in {}", receiver.text());
    Ok(vec![action(title, "quickfix", edits.finish()?)])
}

fn method(selector: &str, arguments: &[String], receiver: &Receiver) -> String {
    let side = if receiver.is_class { "class " } else { "" };
    let mut head = String::new();
    if arguments.is_empty() {
        head.push_str(selector);
    } else if selector.ends_with(':') {
        let parts = selector.split_inclusive(':').zip(arguments);
        let words: Vec<String> = parts
            .map(|(part, argument)| format!("{part} {argument}"))
            .collect();
        head.push_str(&words.join(" "));
    } else {
        head = format!("{selector} {}", arguments.join(" "));
    }
    format!("  {side}{head} =>\n    self notImplemented")
}

/// Names for the parameters: those of the variables that are passed, else `arg1`.
fn arguments(asked: &Asked<'_>, part: Span) -> Vec<String> {
    let found = message_with(&asked.view.file, part, |message| message.parts.contains(&part));
    let arguments = found.map_or(&[][..], |message| &message.arguments);
    let mut names: Vec<String> = Vec::new();
    for (number, argument) in arguments.iter().enumerate() {
        let name = match &argument.kind {
            ExpressionKind::Variable(name) if name != "_" && !names.iter().any(|one| one == name) => {
                name.to_string()
            }
            _ => format!("arg{}", number + 1),
        };
        names.push(name);
    }
    names
}
