//! What the text of a body says before anything is inferred: which names are assigned, how often, and in which blocks.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Parameter, Statement, Target};
use beamtalk_syntax::walk::{self, Part};
use ecow::EcoString;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Messages that run the blocks they are given before they answer, and keep none of them.
const RUN_AT_ONCE: &[&str] = &[
    "ifTrue:",
    "ifFalse:",
    "ifTrue:ifFalse:",
    "ifFalse:ifTrue:",
    "and:",
    "or:",
    "ifNil:",
    "ifNotNil:",
    "ifNil:ifNotNil:",
    "ifNotNil:ifNil:",
    "whileTrue:",
    "whileFalse:",
    "repeat",
    "timesRepeat:",
    "to:do:",
    "to:by:do:",
    "do:",
    "collect:",
    "select:",
    "reject:",
    "detect:",
    "detect:ifNone:",
    "inject:into:",
    "anySatisfy:",
    "allSatisfy:",
    "noneSatisfy:",
    "count:",
    "eachWithIndex:",
    "do:separatedBy:",
    "doWithKey:",
    "keysAndValuesDo:",
    "on:do:",
    "ensure:",
    "sort:",
    "groupBy:",
    "partition:",
    "takeWhile:",
    "dropWhile:",
    "flatMap:",
    "at:ifAbsent:",
    "value",
    "map:",
    "andThen:",
    "ifOk:ifError:",
    "ifError:",
    "valueOrDo:",
    "removeKey:ifAbsent:",
    "should:raise:",
    "assert:",
];

pub(crate) fn runs_at_once(selector: &str) -> bool {
    RUN_AT_ONCE.contains(&selector)
}

/// What a body assigns. A parameter counts as assigned where it is declared.
#[derive(Default)]
pub(crate) struct Assigned {
    /// How often each name is.
    pub(crate) counts: Counts,
    /// Names that a block which may run later shares with what is around it.
    pub(crate) later: FxHashSet<EcoString>,
}

/// Ordered, for they are walked over.
type Counts = BTreeMap<EcoString, usize>;

impl Assigned {
    pub(crate) fn of<'s>(
        parameters: &[Parameter],
        statements: impl IntoIterator<Item = &'s Statement>,
        is_user: &dyn Fn(&str) -> bool,
    ) -> Self {
        let mut scan = Scan {
            is_user,
            counts: Counts::default(),
            kept: Vec::new(),
        };
        scan.parameters(parameters);
        statements
            .into_iter()
            .for_each(|statement| scan.expression(&statement.expression));
        let mut later = FxHashSet::default();
        for block in scan.kept {
            for (name, count) in block {
                if scan.counts.get(&name).is_some_and(|all| *all > count) {
                    later.insert(name);
                }
            }
        }
        Self {
            counts: scan.counts,
            later,
        }
    }
}

struct Scan<'a> {
    is_user: &'a dyn Fn(&str) -> bool,
    counts: Counts,
    /// What each block that may be kept assigns.
    kept: Vec<Counts>,
}

impl Scan<'_> {
    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            *self.counts.entry(parameter.name.text.clone()).or_default() += 1;
        }
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements
            .iter()
            .for_each(|statement| self.expression(&statement.expression));
    }

    fn expression(&mut self, node: &Expression) {
        let counts = &mut self.counts;
        let mut count = |name: &EcoString| *counts.entry(name.clone()).or_default() += 1;
        match &node.kind {
            ExpressionKind::Assign { target, .. } => match target {
                Target::Variable(name) => count(&name.text),
                Target::Pattern(pattern) => walk::bound_names(pattern, &mut count),
                Target::Field(_) => {}
            },
            ExpressionKind::Match { value, arms, .. } => {
                for arm in arms {
                    walk::bound_names(&arm.pattern, &mut count);
                }
                self.expression(value);
                for arm in arms {
                    arm.guard.iter().for_each(|guard| self.at_once(guard));
                    match &arm.body.kind {
                        ExpressionKind::Block(block) if block.parameters.is_empty() => {
                            self.statements(&block.body);
                        }
                        _ => self.expression(&arm.body),
                    }
                }
                return;
            }
            ExpressionKind::Block(block) => {
                let around = std::mem::take(&mut self.counts);
                self.parameters(&block.parameters);
                self.statements(&block.body);
                let inside = std::mem::replace(&mut self.counts, around);
                for (name, count) in &inside {
                    *self.counts.entry(name.clone()).or_default() += count;
                }
                self.kept.push(inside);
                return;
            }
            _ => {}
        }
        let messages = match &node.kind {
            ExpressionKind::Send(send) => std::slice::from_ref(&send.message),
            ExpressionKind::Cascade { messages, .. } => messages,
            _ => &[],
        };
        let is_at_once = !messages.is_empty()
            && messages
                .iter()
                .all(|message| runs_at_once(&message.selector) && !(self.is_user)(&message.selector));
        walk::parts(node, &mut |part| match part {
            Part::Expression(inner) if is_at_once => self.at_once(inner),
            Part::Expression(inner) => self.expression(inner),
            _ => {}
        });
    }

    /// A block here is run at once and not kept.
    fn at_once(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Block(block) => {
                self.parameters(&block.parameters);
                self.statements(&block.body);
            }
            ExpressionKind::Parenthesized(inner) => self.at_once(inner),
            _ => self.expression(node),
        }
    }
}

/// Adds the names and slots that statements assign, nested blocks included.
pub(crate) fn assigned_in(statements: &[Statement], names: &mut Vec<EcoString>, slots: &mut Vec<EcoString>) {
    for statement in statements {
        assigned(&statement.expression, names, slots);
    }
    names.sort();
    names.dedup();
    slots.sort();
    slots.dedup();
}

/// The names that blocks assign.
pub(crate) fn assigned_in_blocks<'s>(statements: impl Iterator<Item = &'s Statement>) -> Vec<EcoString> {
    let (mut names, mut slots) = (Vec::new(), Vec::new());
    for statement in statements {
        walk::all(&statement.expression, &mut |node| {
            if let ExpressionKind::Block(block) = &node.kind {
                assigned_in(&block.body, &mut names, &mut slots);
            }
        });
    }
    names
}

fn assigned(node: &Expression, names: &mut Vec<EcoString>, slots: &mut Vec<EcoString>) {
    if let ExpressionKind::Assign { target, .. } = &node.kind {
        match target {
            Target::Variable(name) => names.push(name.text.clone()),
            Target::Pattern(pattern) => walk::bound_names(pattern, &mut |name| names.push(name.clone())),
            Target::Field(name) => slots.push(name.text.clone()),
        }
    }
    walk::inner(node, &mut |inner| assigned(inner, names, slots));
}
