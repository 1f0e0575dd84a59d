//! Control flow: messages whose literal blocks run where they stand.

use beamtalk_syntax::ast::{self, Expression, Message};
use ecow::eco_format;

use super::Infer;
use super::block::literal;
use super::flow::{Changes, Held, Place};
use crate::codes;
use crate::types::form::Type;

/// A way through a conditional: its value and what it changed.
type Way = (Type, Changes);

impl Infer<'_, '_> {
    /// The value of a control-flow message whose blocks are literal; none for any other message.
    pub(super) fn control(&mut self, receiver: &Expression, message: &Message) -> Option<Type> {
        let selector = message.selector.as_str();
        let arguments = message.arguments.as_slice();
        match (selector, arguments) {
            ("whileTrue:" | "whileFalse:", [body]) => {
                let (condition, body) = (literal(receiver)?, literal(body)?);
                return Some(self.while_loop(condition, body, selector == "whileTrue:"));
            }
            ("repeat", []) => {
                let body = literal(receiver)?;
                self.looped(&[body], |infer| infer.path_in_place(body, &[]));
                return Some(Type::never());
            }
            _ => {}
        }
        if self.world.table.is_user_selector(selector) {
            return None;
        }
        let is_block = |count: usize| {
            move |node: &Expression| literal(node).is_some_and(|it| it.parameters.len() <= count)
        };
        match (selector, arguments) {
            ("ifTrue:ifFalse:" | "ifFalse:ifTrue:", [one, two]) if is_block(0)(one) && is_block(0)(two) => {
                let (yes, no) = if selector == "ifTrue:ifFalse:" {
                    (one, two)
                } else {
                    (two, one)
                };
                Some(self.conditional(receiver, message, literal(yes), literal(no)))
            }
            ("ifTrue:" | "and:", [yes]) if is_block(0)(yes) => {
                Some(self.conditional(receiver, message, literal(yes), None))
            }
            ("ifFalse:" | "or:", [no]) if is_block(0)(no) => {
                Some(self.conditional(receiver, message, None, literal(no)))
            }
            ("ifNil:", [nil]) if is_block(0)(nil) => Some(self.nil_test(receiver, literal(nil), None)),
            ("ifNotNil:", [other]) if is_block(1)(other) => {
                Some(self.nil_test(receiver, None, literal(other)))
            }
            ("ifNil:ifNotNil:", [nil, other]) | ("ifNotNil:ifNil:", [other, nil])
                if is_block(0)(nil) && is_block(1)(other) =>
            {
                Some(self.nil_test(receiver, literal(nil), literal(other)))
            }
            ("timesRepeat:", [body]) if is_block(0)(body) => {
                let of = self.expression(receiver);
                self.check_understood(receiver, &of, message);
                let body = literal(body)?;
                self.looped(&[body], |infer| infer.path_in_place(body, &[]));
                Some(Type::nil())
            }
            ("to:do:", [_, body]) | ("to:by:do:", [_, _, body]) if is_block(1)(body) => {
                let from = self.expression(receiver);
                self.check_understood(receiver, &from, message);
                let mut given = from.clone();
                for (index, bound) in arguments.iter().enumerate().take(arguments.len() - 1) {
                    let of = self.expression(bound);
                    let text = eco_format!(
                        "Argument {} of '{selector}' on {from} expects Number, got {of}",
                        index + 1
                    );
                    self.check_value(
                        codes::WRONG_ARGUMENT,
                        bound,
                        &of,
                        &Type::class("Number"),
                        text,
                        None,
                    );
                    given = given.or(&of);
                }
                let is_integer = given.members().iter().all(|member| member.is_class("Integer"));
                // A Float bound or step makes Floats.
                let given = if is_integer { given } else { from };
                let body = literal(body)?;
                let given = if is_integer {
                    vec![given]
                } else {
                    vec![widened(&given)]
                };
                self.looped(&[body], |infer| infer.path_in_place(body, &given));
                Some(Type::nil())
            }
            _ => None,
        }
    }

    /// A round of a loop, with its changes left in place.
    fn path_in_place(&mut self, block: &ast::Block, given: &[Type]) -> Type {
        let (of, changes) = self.path(block, given, &[]);
        self.flow.apply(changes);
        of
    }

    fn while_loop(&mut self, condition: &ast::Block, body: &ast::Block, is_while: bool) -> Type {
        self.looped(&[condition, body], |infer| {
            let of = infer.path_in_place(condition, &[]);
            if let Some(last) = condition.body.last() {
                let selector = if is_while { "whileTrue:" } else { "whileFalse:" };
                infer.check_condition(&last.expression, &of, selector);
            }
            let facts = condition
                .body
                .last()
                .map(|last| infer.facts(&last.expression))
                .unwrap_or_default();
            let held = if is_while { facts.yes } else { facts.no };
            let (of, changes) = infer.path(body, &[], &held);
            infer.flow.apply(changes);
            of
        });
        let facts = condition
            .body
            .last()
            .map(|last| self.facts(&last.expression))
            .unwrap_or_default();
        self.learn(if is_while { facts.no } else { facts.yes });
        Type::nil()
    }

    /// From here on these hold.
    fn learn(&mut self, facts: Vec<(Place, Held)>) {
        if Self::is_excluded(&facts) {
            return;
        }
        for (place, held) in facts {
            self.flow.set(place, Some(held));
        }
    }

    fn conditional(
        &mut self,
        receiver: &Expression,
        message: &Message,
        yes: Option<&ast::Block>,
        no: Option<&ast::Block>,
    ) -> Type {
        let condition = self.expression(receiver);
        self.check_understood(receiver, &condition, message);
        let facts = self.facts(receiver);
        let selector = message.selector.as_str();
        // What the message answers on the side that has no block: the receiver.
        let rest = |side: &str| Type::class(side);
        let yes_way = self.way(yes, &facts.yes, rest("True"));
        let no_way = self.way(no, &facts.no, rest("False"));
        let of = self.ways(vec![yes_way, no_way]);
        match selector {
            "and:" | "or:" if condition.is_dynamic() && of.is_class("Boolean") => Type::boolean(),
            _ => of,
        }
    }

    /// One side of a conditional.
    fn way(&mut self, block: Option<&ast::Block>, facts: &[(Place, Held)], rest: Type) -> Way {
        match block {
            Some(block) => self.path(block, &[], facts),
            None => {
                let changes = facts
                    .iter()
                    .map(|(place, held)| (place.clone(), Some(held.clone())));
                (rest, changes.collect())
            }
        }
    }

    /// The value of a conditional; a side that does not come back contributes nothing.
    fn ways(&mut self, ways: Vec<Way>) -> Type {
        let mut values = Vec::new();
        let mut paths = Vec::new();
        for (of, changes) in ways {
            if !of.is_never() {
                values.push(of);
                paths.push(changes);
            }
        }
        self.flow.join(paths);
        Type::union(values)
    }

    fn nil_test(
        &mut self,
        receiver: &Expression,
        nil: Option<&ast::Block>,
        other: Option<&ast::Block>,
    ) -> Type {
        let of = self.expression(receiver);
        let without = self.world.subtract(&of, &Type::nil());
        let (mut when_nil, mut otherwise) = (Vec::new(), Vec::new());
        if let Some(place) = self.place(receiver)
            && let Some(held) = self.held(&place)
        {
            let narrowed = |of: Type| Held { of, ..held.clone() };
            when_nil.push((place.clone(), narrowed(Type::nil())));
            if !without.is_dynamic() && !without.is_never() {
                otherwise.push((place, narrowed(without.clone())));
            }
        }
        // Of something that is never nil, or never anything else, one side is dead.
        let nil_way = self.way(nil, &when_nil, Type::nil());
        let other_way = match other {
            Some(block) => self.path(block, std::slice::from_ref(&without), &otherwise),
            None => {
                let changes = otherwise
                    .iter()
                    .map(|(place, held)| (place.clone(), Some(held.clone())));
                (without.clone(), changes.collect())
            }
        };
        if of.is_dynamic() || of.members().iter().any(Type::is_nil) {
            return self.ways(vec![nil_way, other_way]);
        }
        // Nothing else says that it may be nil: the test may be about what a type does not say.
        let (value, _) = &other_way;
        let value = value.clone();
        let both = self.ways(vec![nil_way, other_way]);
        if value.is_never() { both } else { value }
    }
}

/// The loop variable of a range of which not all parts are Integers.
fn widened(from: &Type) -> Type {
    if from.is_dynamic() {
        from.clone()
    } else {
        Type::class("Number")
    }
}
