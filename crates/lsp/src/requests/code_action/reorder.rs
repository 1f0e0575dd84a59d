//! The parameter under the cursor changes its place with a neighbour, in a method and all messages that mean it.

use beamtalk_syntax::ast::{Expression, ExpressionKind};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;
use serde_json::Value;

use super::signature::{head_at, message_at};
use super::{Asked, action};
use crate::analysis::names::{Meaning, Owner};
use crate::analysis::references::{self, Certainty, Family, Reference};
use crate::edit::Edits;
use crate::fault::Fault;

const WHY: &str = "it is not certain that this means the method, or that both arguments may be evaluated in the other order";

/// Two parts of a selector, each with its argument, that change places.
struct Swap {
    first: Span,
    second: Span,
    certainty: Certainty,
}

impl Swap {
    fn whole(&self) -> Span {
        self.first.to(self.second)
    }
}

/// The actions for a part of a selector: to the right, and to the left.
pub(super) fn actions(
    asked: &Asked<'_>,
    found: &[Reference],
    selector: &EcoString,
    part: usize,
    owner: &Owner,
    family: &Family,
) -> Vec<Value> {
    let count = selector.matches(':').count();
    let right = (part + 1 < count).then_some((part, "right"));
    let left = part.checked_sub(1).map(|before| (before, "left"));
    let moves = right.into_iter().chain(left);
    moves
        .filter(|(first, _)| !is_taken(asked, family, &swapped(selector, *first)))
        .filter_map(|(first, way)| {
            let title = format!(
                "Move parameter {} of {}>>{selector} to the {way}",
                part + 1,
                owner.class
            );
            let edits = edits(asked, found, first).ok()?;
            Some(action(title, "refactor.rewrite", edits.finish().ok()?))
        })
        .collect()
}

/// `at:put:` is `put:at:` when its first part changes places with the next.
fn swapped(selector: &str, first: usize) -> String {
    let mut parts: Vec<&str> = selector.split_inclusive(':').collect();
    if first + 1 < parts.len() {
        parts.swap(first, first + 1);
    }
    parts.concat()
}

/// Whether the new selector means something already.
fn is_taken(asked: &Asked<'_>, family: &Family, selector: &str) -> bool {
    let table = &asked.view.world.table;
    family.classes.iter().any(|class| {
        table.chain(class).iter().any(|entry| {
            let methods = if family.is_class {
                &entry.class_methods
            } else {
                &entry.methods
            };
            methods.contains_key(selector)
                || table
                    .extension_file(&entry.name, family.is_class, selector)
                    .is_some()
        })
    })
}

fn edits<'a>(asked: &'a Asked<'_>, found: &[Reference], first: usize) -> Result<Edits<'a>, Fault> {
    let mut edits = Edits::new(asked.snapshot, WHY);
    let mut own = found
        .iter()
        .filter(|one| one.is_first() && references::is_own(one))
        .peekable();
    while let Some(reference) = own.next() {
        let file = &reference.file;
        let mut swaps: Vec<Swap> = swap(reference, first).into_iter().collect();
        while let Some(next) = own.next_if(|next| next.file.uri == file.uri) {
            swaps.extend(swap(next, first));
        }
        // Messages inside the arguments of others go with them.
        for outer in outermost(&swaps, None) {
            let whole = outer.whole();
            let inside = swaps.iter().filter(|one| is_within(one.whole(), whole));
            let is_sure = inside.into_iter().all(|one| one.certainty == Certainty::Sure);
            let certainty = if is_sure {
                Certainty::Sure
            } else {
                Certainty::Possible
            };
            let text = exchanged(file.text(), outer, &swaps);
            edits.replace(file, whole, text, certainty)?;
        }
    }
    Ok(edits)
}

fn swap(reference: &Reference, first: usize) -> Option<Swap> {
    let (file, part) = (&reference.file, reference.name.span);
    if let Meaning::Method { .. } = &reference.name.meaning {
        let head = head_at(file, part)?;
        let span = |at: usize| {
            let parameter = head.parameters.get(at)?;
            let annotation = parameter.annotation.as_ref();
            let end = annotation.map_or(parameter.name.span.end, |annotation| annotation.span.end);
            Some(Span::new(head.parts.get(at)?.start, end))
        };
        return Some(Swap {
            first: span(first)?,
            second: span(first + 1)?,
            certainty: reference.certainty,
        });
    }
    let message = message_at(file, part)?;
    let span = |at: usize| {
        let argument = message.arguments.get(at)?;
        Some(Span::new(message.parts.get(at)?.start, argument.span.end))
    };
    // Arguments are evaluated from left to right: where both do something, the order may matter.
    let acting = |at: usize| message.arguments.get(at).is_some_and(acts);
    let is_sure = !(acting(first) && acting(first + 1));
    Some(Swap {
        first: span(first)?,
        second: span(first + 1)?,
        certainty: if is_sure {
            reference.certainty
        } else {
            Certainty::Possible
        },
    })
}

/// Whether evaluating an expression may do something; a block does nothing yet.
fn acts(node: &Expression) -> bool {
    match &node.kind {
        ExpressionKind::Block(_) => false,
        ExpressionKind::Send(_)
        | ExpressionKind::Cascade { .. }
        | ExpressionKind::Assign { .. }
        | ExpressionKind::Match { .. }
        | ExpressionKind::Return(_) => true,
        _ => {
            let mut found = false;
            walk::inner(node, &mut |inner| found |= acts(inner));
            found
        }
    }
}

fn is_within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// The swaps that lie in no other, of all or of those in a span.
fn outermost(swaps: &[Swap], span: Option<Span>) -> Vec<&Swap> {
    let inside = |one: &&Swap| span.is_none_or(|span| is_within(one.whole(), span));
    let all: Vec<&Swap> = swaps.iter().filter(inside).collect();
    let is_outer = |one: &&&Swap| {
        let whole = one.whole();
        !all.iter()
            .any(|other| other.whole() != whole && is_within(whole, other.whole()))
    };
    let mut outer: Vec<&Swap> = all.iter().filter(is_outer).copied().collect();
    outer.sort_by_key(|one| one.first.start);
    outer
}

/// The text of a swap after it, and after those inside it.
fn exchanged(text: &str, swap: &Swap, swaps: &[Swap]) -> String {
    let between = Span::new(swap.first.end, swap.second.start);
    format!(
        "{}{}{}",
        rendered(text, swap.second, swaps),
        between.text(text),
        rendered(text, swap.first, swaps)
    )
}

/// A span with the swaps inside it done.
fn rendered(text: &str, span: Span, swaps: &[Swap]) -> String {
    let mut out = String::new();
    let mut at = span.start;
    for inner in outermost(swaps, Some(span)) {
        let whole = inner.whole();
        out.push_str(Span::new(at, whole.start).text(text));
        out.push_str(&exchanged(text, inner, swaps));
        at = whole.end;
    }
    out.push_str(Span::new(at, span.end).text(text));
    out
}
