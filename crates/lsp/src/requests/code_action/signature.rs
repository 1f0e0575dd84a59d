//! Another parameter, one less, or another order, in a method and all messages that mean it.

use beamtalk_syntax::ast::{Head, Message};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;
use serde_json::Value;

use super::{Asked, action, reorder};
use crate::analysis::find;
use crate::analysis::names::{self, Meaning, Owner};
use crate::analysis::references::{self, Certainty, Family, Reference, Subject};
use crate::edit::Edits;
use crate::fault::Fault;
use crate::world::{Access, File};

const WHY: &str = "it is not certain that this means the method";

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let view = asked.view;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, asked.span.start) else {
        return Ok(Vec::new());
    };
    let (Meaning::Method { selector, part }, Some(owner)) = (&name.meaning, &name.owner) else {
        return Ok(Vec::new());
    };
    let is_word = selector.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !is_word || view.world.table.class(&owner.class).is_none() {
        return Ok(Vec::new());
    }
    let family = references::family(view, &owner.class, owner.is_class, selector);
    if !is_ours(asked, &family, selector) {
        return Ok(Vec::new());
    }
    let subject = Subject::Selector {
        selector: selector.clone(),
        family: Some(family.clone()),
    };
    let found = references::all(asked.snapshot, view, &subject)?;
    let mut actions = Vec::new();
    // An editor that cannot ask about single changes gets no action that would need it.
    actions.extend(add(asked, &found, selector).ok());
    if selector.ends_with(':') {
        actions.extend(remove(asked, &found, selector, *part, owner).ok().flatten());
        actions.extend(reorder::actions(asked, &found, selector, *part, owner, &family));
    }
    Ok(actions)
}

/// Whether every definition may be changed.
fn is_ours(asked: &Asked<'_>, family: &Family, selector: &str) -> bool {
    let mut foreign = asked.view.all_files().filter(|file| file.access != Access::Own);
    !foreign.any(|file| {
        find::methods(file)
            .any(|found| found.method.head.selector == selector && family.classes.contains(found.class))
    })
}

/// `toggle` becomes `toggle: arg1`, `at: x` becomes `at: x with: arg2`; senders pass nil.
fn add(asked: &Asked<'_>, found: &[Reference], selector: &EcoString) -> Result<Value, Fault> {
    let count = selector.matches(':').count();
    let mut edits = Edits::new(asked.snapshot, WHY);
    for reference in found
        .iter()
        .filter(|one| one.is_first() && references::is_own(one))
    {
        let (name, end) = match &reference.name.meaning {
            Meaning::Method { .. } => {
                let Some(head) = head_end(&reference.file, reference.name.span) else {
                    continue;
                };
                (format!("arg{}", count + 1), head)
            }
            _ => match message_at(&reference.file, reference.name.span) {
                Some(message) => ("nil".to_owned(), message.span.end),
                None => continue,
            },
        };
        let text = if count == 0 {
            format!(": {name}")
        } else {
            format!(" with: {name}")
        };
        edits.replace(&reference.file, Span::new(end, end), text, reference.certainty)?;
    }
    let title = "Add a parameter (senders pass nil)".to_owned();
    Ok(action(title, "refactor.rewrite", edits.finish()?))
}

/// The parameter under the cursor goes, where no definition uses it.
fn remove(
    asked: &Asked<'_>,
    found: &[Reference],
    selector: &EcoString,
    part: usize,
    owner: &Owner,
) -> Result<Option<Value>, Fault> {
    let mut edits = Edits::new(asked.snapshot, WHY);
    let count = selector.matches(':').count();
    for reference in found
        .iter()
        .filter(|one| one.is_first() && references::is_own(one))
    {
        let file = &reference.file;
        if let Meaning::Method { .. } = &reference.name.meaning {
            let Some(method) =
                find::methods(file).find(|one| one.method.head.parts.first() == Some(&reference.name.span))
            else {
                // A protocol asks for it: whoever conforms would not any more.
                return Ok(None);
            };
            let head = &method.method.head;
            let (Some(parameter), Some(at)) = (head.parameters.get(part), head.parts.get(part)) else {
                return Ok(None);
            };
            let is_used = names::all(&file.source.unit).iter().any(|name| {
                matches!(&name.meaning, Meaning::Local { declared, .. } if *declared == parameter.name.span)
                    && name.span != parameter.name.span
            });
            if is_used {
                return Ok(None);
            }
            let end = parameter
                .annotation
                .as_ref()
                .map_or(parameter.name.span.end, |annotation| annotation.span.end);
            cut(&mut edits, file, *at, end, count, reference.certainty)?;
        } else if let Some(message) = message_at(file, reference.name.span) {
            let (Some(argument), Some(at)) = (message.arguments.get(part), message.parts.get(part)) else {
                return Ok(None);
            };
            cut(
                &mut edits,
                file,
                *at,
                argument.span.end,
                count,
                reference.certainty,
            )?;
        }
    }
    let title = format!("Remove parameter {} of {}>>{selector}", part + 1, owner.class);
    Ok(Some(action(title, "refactor.rewrite", edits.finish()?)))
}

/// Cut `part: argument`; of the only one the word stays.
fn cut(
    edits: &mut Edits<'_>,
    file: &File,
    part: Span,
    end: u32,
    count: usize,
    certainty: Certainty,
) -> Result<(), Fault> {
    let text = file.text();
    if count == 1 {
        return edits.replace(file, Span::new(part.end.saturating_sub(1), end), "", certainty);
    }
    let before = text.get(..part.start as usize).unwrap_or_default();
    let after = text.get(end as usize..).unwrap_or_default();
    let blank_after = after.len() - after.trim_start_matches(' ').len();
    // What follows keeps one blank to what stands before.
    let ends_line = after.len() == blank_after || after.trim_start_matches(' ').starts_with('\n');
    let span = if ends_line {
        let blank_before = before.len() - before.trim_end_matches(' ').len();
        Span::new(part.start - blank_before as u32, end + blank_after as u32)
    } else if before.ends_with(' ') {
        Span::new(part.start, end + blank_after as u32)
    } else {
        Span::new(part.start, end)
    };
    edits.replace(file, span, "", certainty)
}

/// Where the last parameter of a head ends.
fn head_end(file: &File, part: Span) -> Option<u32> {
    let head = head_at(file, part)?;
    let Some(last) = head.parameters.last() else {
        return head.parts.last().map(|part| part.end);
    };
    let annotation = last.annotation.as_ref();
    Some(annotation.map_or(last.name.span.end, |annotation| annotation.span.end))
}

/// The head whose first part stands here.
pub(super) fn head_at(file: &File, part: Span) -> Option<&Head> {
    let methods = find::methods(file).map(|found| &found.method.head);
    let signatures = find::signatures(file).map(|(_, signature)| &signature.head);
    methods
        .chain(signatures)
        .find(|head| head.parts.first() == Some(&part))
}

/// The message whose first part stands here.
pub(super) fn message_at(file: &File, part: Span) -> Option<&Message> {
    message_with(file, part, |message| message.parts.first() == Some(&part))
}

/// The message with this part that is wanted.
pub(super) fn message_with(
    file: &File,
    part: Span,
    is_wanted: impl Fn(&Message) -> bool,
) -> Option<&Message> {
    let mut found = None;
    for method in find::methods(file) {
        let whole = method.method.span;
        if part.start < whole.start || part.end > whole.end {
            continue;
        }
        for statement in &method.method.body {
            walk::all(&statement.expression, &mut |node| {
                if let Some(message) = node.kind.messages().iter().find(|one| is_wanted(one)) {
                    found = Some(message);
                }
            });
        }
    }
    found
}
