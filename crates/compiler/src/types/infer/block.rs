//! Blocks: those that run where they stand, those that a method runs before it answers, and those that are kept.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind};
use rustc_hash::FxHashMap;

use super::flow::{Changes, Held, Origin, Place};
use super::{Infer, scan};
use crate::resolve::unparenthesized;
use crate::types::form::{Reason, Type};

/// Loops nested deeper than this inside others are not looked at twice.
pub(super) const MAX_LOOPS: usize = 3;

/// A literal block.
pub(crate) fn literal(node: &Expression) -> Option<&ast::Block> {
    match &unparenthesized(node).kind {
        ExpressionKind::Block(block) => Some(block),
        _ => None,
    }
}

impl Infer<'_, '_> {
    /// One path through a block: its value and what it changed, taken out again.
    pub(super) fn path(
        &mut self,
        block: &ast::Block,
        given: &[Type],
        facts: &[(Place, Held)],
    ) -> (Type, Changes) {
        let mark = self.flow.mark();
        for (place, held) in facts {
            self.flow.set(place.clone(), Some(held.clone()));
        }
        let of = self.run(block, given);
        (of, self.flow.take(mark))
    }

    /// The value of a block's statements, with what it changes.
    fn run(&mut self, block: &ast::Block, given: &[Type]) -> Type {
        self.scopes.push(FxHashMap::default());
        let class = self.declaration();
        for (index, parameter) in block.parameters.iter().enumerate() {
            if let Some(annotation) = &parameter.annotation {
                self.check_annotation(annotation);
            }
            let declared = parameter
                .annotation
                .as_ref()
                .map(|it| self.world.declared(it, class));
            let declared = declared.map(|it| self.in_own(it));
            self.parameter(parameter, declared, given.get(index).cloned());
        }
        let of = self.statements(&block.body);
        self.scopes.pop();
        of
    }

    /// A block that may be evaluated at any time, or never: variables that are assigned more than once have no certain
    /// value in it.
    pub(super) fn kept_block(&mut self, block: &ast::Block) -> Type {
        self.later(block, &[])
    }

    pub(super) fn later(&mut self, block: &ast::Block, given: &[Type]) -> Type {
        let mark = self.flow.mark();
        let unstable = self.assigned.counts.iter().filter(|(_, count)| **count > 1);
        let visible = unstable.flat_map(|(name, _)| self.scopes.iter().filter_map(|scope| scope.get(name)));
        let visible: Vec<usize> = visible.copied().collect();
        for at in visible {
            if let Some(local) = self.locals.get(at) {
                let of = local
                    .declared
                    .clone()
                    .unwrap_or_else(|| Type::dynamic(Reason::Flow));
                self.hold(Place::Local(at), of, Origin::Unknown);
            }
        }
        self.forget_slots();
        let result = self.run(block, given);
        self.flow.take(mark);
        self.block_type(block, given, result)
    }

    /// The type of a block that answers `result`.
    pub(super) fn block_type(&mut self, block: &ast::Block, given: &[Type], result: Type) -> Type {
        let class = self.declaration();
        let parameters = block.parameters.iter().enumerate().map(|(index, parameter)| {
            let declared = parameter
                .annotation
                .as_ref()
                .map(|it| self.world.declared(it, class));
            declared
                .or_else(|| given.get(index).cloned())
                .unwrap_or_else(|| Type::dynamic(Reason::Parameter))
        });
        Type::block(parameters.collect(), result)
    }

    /// A block that a method runs any number of times before it answers.
    pub(super) fn repeated(&mut self, block: &ast::Block, given: &[Type]) -> Type {
        self.looped(&[block], |infer| infer.run(block, given))
    }

    /// Statements that run any number of times: what they assign holds for the next round too. Answers the value of the
    /// last round.
    pub(super) fn looped(
        &mut self,
        blocks: &[&ast::Block],
        mut round: impl FnMut(&mut Self) -> Type,
    ) -> Type {
        let (mut names, mut slots) = (Vec::new(), Vec::new());
        for block in blocks {
            scan::assigned_in(&block.body, &mut names, &mut slots);
        }
        for slot in slots {
            self.flow.set(Place::Slot(slot), None);
        }
        let mut places: Vec<(Place, Option<Type>)> = names
            .iter()
            .filter_map(|name| {
                let at = self.local(name)?;
                Some((Place::Local(at), self.locals.get(at)?.declared.clone()))
            })
            .collect();
        places.retain(|(place, _)| self.flow.get(place).is_some_and(|held| !held.of.is_dynamic()));
        if !places.is_empty() {
            self.settle(&places, &mut round);
        }
        let mark = self.flow.mark();
        self.loops += 1;
        let of = round(self);
        self.loops -= 1;
        let changes = self.flow.take(mark);
        // Not one round may have been run.
        self.flow.join(vec![changes, Changes::new()]);
        of
    }

    /// Finds what holds in every round for the places that rounds assign.
    fn settle(&mut self, places: &[(Place, Option<Type>)], round: &mut impl FnMut(&mut Self) -> Type) {
        let held = |infer: &Self| -> Vec<Option<Type>> {
            places
                .iter()
                .map(|(place, _)| infer.flow.get(place).map(|held| held.of.clone()))
                .collect()
        };
        let rounds = if self.loops >= MAX_LOOPS { 0 } else { 2 };
        for _ in 0..rounds {
            let before = held(self);
            self.quiet += 1;
            self.loops += 1;
            let mark = self.flow.mark();
            let returns = self.returns.len();
            round(self);
            self.returns.truncate(returns);
            let changes = self.flow.take(mark);
            self.flow.join(vec![changes, Changes::new()]);
            self.loops -= 1;
            self.quiet -= 1;
            if held(self) == before {
                return;
            }
        }
        for (place, declared) in places {
            let of = declared.clone().unwrap_or_else(|| Type::dynamic(Reason::Flow));
            self.hold(place.clone(), of, Origin::Unknown);
        }
    }

    /// Slots of an actor and class variables may have changed.
    pub(super) fn forget_slots(&mut self) {
        let is_changing = self
            .own
            .as_ref()
            .is_some_and(|own| own.is_class || own.kind != crate::table::Kind::Value);
        if is_changing {
            for place in self.flow.slots() {
                self.flow.set(place, None);
            }
        }
    }
}
