//! What a test says about variables and slots on either side of it (language reference 11.7).

use beamtalk_syntax::ast::{Expression, ExpressionKind, Message, Target};

use super::Infer;
use super::block::literal;
use super::flow::{Held, Note, Origin, Place};
use crate::resolve::unparenthesized;
use crate::types::form::{Form, Type};
use crate::types::world::What;

/// What holds when a condition is true, and when it is false.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) yes: Vec<(Place, Held)>,
    pub(super) no: Vec<(Place, Held)>,
}

impl Facts {
    fn swapped(self) -> Self {
        Self {
            yes: self.no,
            no: self.yes,
        }
    }
}

impl Infer<'_, '_> {
    /// The variable or slot that an expression reads.
    pub(in crate::types) fn place(&self, node: &Expression) -> Option<Place> {
        match &unparenthesized(node).kind {
            ExpressionKind::Variable(name) => self.local(name).map(Place::Local),
            ExpressionKind::Field(name) => Some(Place::Slot(name.text.clone())),
            ExpressionKind::Assign {
                target: Target::Variable(name),
                ..
            } => self.local(&name.text).map(Place::Local),
            ExpressionKind::Send(send) if send.message.arguments.is_empty() => {
                let place = self.place(&send.receiver)?;
                let held = self.held(&place)?;
                let selector = &send.message.selector;
                let name = held.of.class_name()?;
                let found = self.world.find(name, false, selector)?;
                matches!(found.what, What::Getter(_))
                    .then(|| Place::Getter(Box::new(place), held.version, selector.clone()))
            }
            _ => None,
        }
    }

    /// What is held at a place now.
    pub(in crate::types) fn held(&self, place: &Place) -> Option<Held> {
        if let Some(held) = self.flow.get(place) {
            return Some(held.clone());
        }
        let of = match place {
            Place::Local(_) => return None,
            Place::Slot(name) => self.declared_slot(name)?,
            Place::Getter(of, _, selector) => {
                let of = self.held(of)?.of;
                let (class, arguments) = of.class_and_arguments()?;
                self.world.slot_type(&class, arguments, false, selector)?
            }
        };
        Some(Held {
            of,
            origin: Origin::Unknown,
            version: 0,
            notes: Vec::new(),
        })
    }

    /// What a condition says; it was inferred just before.
    pub(super) fn facts(&mut self, node: &Expression) -> Facts {
        match &unparenthesized(node).kind {
            ExpressionKind::Send(send) => self.facts_of(&send.receiver, &send.message),
            _ => Facts::default(),
        }
    }

    fn facts_of(&mut self, receiver: &Expression, message: &Message) -> Facts {
        let argument = message.arguments.first();
        match (message.selector.as_str(), argument) {
            ("not", None) => self.facts(receiver).swapped(),
            ("and:", Some(other)) => {
                let first = self.facts(receiver);
                let second = self.inner_facts(&first.yes, other);
                Facts {
                    yes: first.yes.into_iter().chain(second.yes).collect(),
                    no: Vec::new(),
                }
            }
            ("or:", Some(other)) => {
                let first = self.facts(receiver);
                let second = self.inner_facts(&first.no, other);
                Facts {
                    yes: Vec::new(),
                    no: first.no.into_iter().chain(second.no).collect(),
                }
            }
            ("isNil", None) => self.tested(receiver, &Type::nil(), true),
            ("notNil", None) => self.tested(receiver, &Type::nil(), true).swapped(),
            ("isKindOf:", Some(class)) => {
                let ExpressionKind::ClassName(class) = &unparenthesized(class).kind else {
                    return Facts::default();
                };
                let name = &class.name.text;
                // A Character is an Integer when the program runs.
                if self.world.table.class(name).is_none() || name == "Character" {
                    return Facts::default();
                }
                self.tested(receiver, &Type::class(name.clone()), true)
            }
            ("=:=" | "==", Some(other)) => self.equality(receiver, other),
            ("=/=" | "/=", Some(other)) => self.equality(receiver, other).swapped(),
            ("respondsTo:", Some(selector)) => {
                let ExpressionKind::Symbol(selector) = &unparenthesized(selector).kind else {
                    return Facts::default();
                };
                self.noted(receiver, Note::RespondsTo(selector.clone()), None)
            }
            ("isOk" | "ok", None) => self.noted(receiver, Note::IsOk, Some(Note::IsError)),
            ("isError", None) => self.noted(receiver, Note::IsError, Some(Note::IsOk)),
            _ => Facts::default(),
        }
    }

    /// The facts of a block that runs when others hold.
    fn inner_facts(&mut self, held: &[(Place, Held)], block: &Expression) -> Facts {
        let Some(last) = literal(block).and_then(|block| block.body.last()) else {
            return Facts::default();
        };
        let mark = self.flow.mark();
        for (place, held) in held {
            self.flow.set(place.clone(), Some(held.clone()));
        }
        let facts = self.facts(&last.expression);
        self.flow.take(mark);
        facts
    }

    /// `x class =:= C`, `x =:= #a`, `x =:= nil`, either way round.
    fn equality(&mut self, one: &Expression, two: &Expression) -> Facts {
        let single = |node: &Expression| match &unparenthesized(node).kind {
            ExpressionKind::Symbol(name) => Some(Type::symbol(name.clone())),
            ExpressionKind::Nil => Some(Type::nil()),
            ExpressionKind::True => Some(Type::class("True")),
            ExpressionKind::False => Some(Type::class("False")),
            _ => None,
        };
        if let Some(of) = single(two) {
            return self.tested(one, &of, true);
        }
        if let Some(of) = single(one) {
            return self.tested(two, &of, true);
        }
        let class_of = |node: &Expression| match &unparenthesized(node).kind {
            ExpressionKind::ClassName(class) => Some(class.name.text.clone()),
            _ => None,
        };
        let (asked, class) = match (class_of(one), class_of(two)) {
            (None, Some(class)) => (one, class),
            (Some(class), None) => (two, class),
            _ => return Facts::default(),
        };
        match &unparenthesized(asked).kind {
            ExpressionKind::Send(send)
                if send.message.selector == "class"
                    && self.world.table.class(&class).is_some()
                    && class != "Character" =>
            {
                self.tested(&send.receiver, &Type::class(class), false)
            }
            _ => Facts::default(),
        }
    }

    fn tested(&mut self, node: &Expression, wanted: &Type, is_exact: bool) -> Facts {
        let Some(place) = self.place(node) else {
            return Facts::default();
        };
        let held = self.held(&place).unwrap_or_else(|| Held {
            of: Type::dynamic(crate::types::Reason::Slot),
            origin: Origin::Unknown,
            version: 0,
            notes: Vec::new(),
        });
        let make = |of: Type| Held {
            of,
            origin: Origin::Tested(node.span),
            ..held.clone()
        };
        let yes = self.world.narrow(&held.of, wanted);
        let no = self.world.subtract(&held.of, wanted);
        let mut facts = Facts::default();
        facts.yes.push((place.clone(), make(yes)));
        if is_exact && !held.of.is_dynamic() {
            facts.no.push((place, make(no)));
        }
        facts
    }

    fn noted(&mut self, node: &Expression, yes: Note, no: Option<Note>) -> Facts {
        let Some((place, held)) = self
            .place(node)
            .and_then(|place| Some((place.clone(), self.held(&place)?)))
        else {
            return Facts::default();
        };
        let make = |note: Note| {
            let mut held = held.clone();
            held.notes.push(note);
            held
        };
        let mut facts = Facts::default();
        facts.yes.push((place.clone(), make(yes)));
        if let Some(no) = no {
            facts.no.push((place, make(no)));
        }
        facts
    }

    /// A test said that the value of an expression has a method for this.
    pub(in crate::types) fn was_asked(&self, node: &Expression, selector: &str) -> bool {
        let held = self.place(node).and_then(|place| self.flow.get(&place).cloned());
        held.is_some_and(|held| {
            held.notes
                .iter()
                .any(|note| matches!(note, Note::RespondsTo(known) if known == selector))
        })
    }

    /// A value that no test leaves: what follows is not reached.
    pub(super) fn is_excluded(facts: &[(Place, Held)]) -> bool {
        facts
            .iter()
            .any(|(_, held)| matches!(held.of.form(), Form::Never))
    }
}
