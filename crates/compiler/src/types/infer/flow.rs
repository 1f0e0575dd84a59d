//! What is known about variables and slots on the path to the statement that is looked at.
//!
//! One map with a journal: a branch is looked at, its changes are taken out again, and what all branches agree on is
//! put back. So the cost is that of the changes, not that of the variables.

use beamtalk_syntax::ast::{Expression, ExpressionKind};
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::FxHashMap;

use crate::resolve::unparenthesized;
use crate::types::form::Type;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// The number of a local or parameter.
    Local(usize),
    /// `self.f`.
    Slot(EcoString),
    /// What a getter of a Value answers: the place of the Value, the assignment it comes from, the selector.
    Getter(Box<Place>, usize, EcoString),
}

/// What a place holds, and how that is known.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) of: Type,
    pub(crate) origin: Origin,
    /// The assignment it comes from: a test keeps it, another assignment does not.
    pub(crate) version: usize,
    /// What tests said that no type says: `respondsTo:`, `isOk`.
    pub(crate) notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    RespondsTo(EcoString),
    IsOk,
    IsError,
}

/// Where a type comes from, in the text that is looked at.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Declared(Span),
    Assigned(Span),
    /// Assigned from what this message answers: the selector and its first part.
    Answered(Span, EcoString),
    Tested(Span),
    Given(Span),
    Unknown,
}

impl Origin {
    pub(crate) fn assigned(value: &Expression) -> Self {
        match &unparenthesized(value).kind {
            ExpressionKind::Send(send) => {
                let message = &send.message;
                Self::Answered(
                    message.parts.first().copied().unwrap_or(message.span),
                    message.selector.clone(),
                )
            }
            _ => Self::Assigned(value.span),
        }
    }
}

pub(crate) type Changes = Vec<(Place, Option<Held>)>;

#[derive(Default)]
pub(crate) struct Flow {
    held: FxHashMap<Place, Held>,
    journal: Vec<(Place, Option<Held>)>,
    versions: usize,
}

impl Flow {
    pub(crate) fn get(&self, place: &Place) -> Option<&Held> {
        self.held.get(place)
    }

    pub(crate) fn next_version(&mut self) -> usize {
        self.versions += 1;
        self.versions
    }

    pub(crate) fn set(&mut self, place: Place, held: Option<Held>) {
        let before = match held {
            Some(held) => self.held.insert(place.clone(), held),
            None => self.held.remove(&place),
        };
        self.journal.push((place, before));
    }

    pub(crate) fn slots(&self) -> Vec<Place> {
        let places = self.held.keys();
        places
            .filter(|place| matches!(place, Place::Slot(_)))
            .cloned()
            .collect()
    }

    pub(crate) fn mark(&self) -> usize {
        self.journal.len()
    }

    /// Undo what happened since the mark and answer what it came to.
    pub(crate) fn take(&mut self, mark: usize) -> Changes {
        let mut changes: FxHashMap<Place, Option<Held>> = FxHashMap::default();
        let mut order = Vec::new();
        for (place, before) in self.journal.split_off(mark).into_iter().rev() {
            if !changes.contains_key(&place) {
                changes.insert(place.clone(), self.held.get(&place).cloned());
                order.push(place.clone());
            }
            match before {
                Some(before) => self.held.insert(place, before),
                None => self.held.remove(&place),
            };
        }
        order.reverse();
        order
            .into_iter()
            .map(|place| {
                let held = changes.remove(&place).flatten();
                (place, held)
            })
            .collect()
    }

    pub(crate) fn apply(&mut self, changes: Changes) {
        for (place, held) in changes {
            self.set(place, held);
        }
    }

    /// What holds after one of several paths was taken.
    pub(crate) fn join(&mut self, mut paths: Vec<Changes>) {
        if paths.len() <= 1 {
            if let Some(only) = paths.pop() {
                self.apply(only);
            }
            return;
        }
        let mut places: Vec<Place> = Vec::new();
        let paths: Vec<FxHashMap<Place, Option<Held>>> = paths
            .into_iter()
            .map(|changes| {
                places.extend(changes.iter().map(|(place, _)| place.clone()));
                changes.into_iter().collect()
            })
            .collect();
        let mut done = rustc_hash::FxHashSet::default();
        for place in places {
            if !done.insert(place.clone()) {
                continue;
            }
            let base = self.held.get(&place).cloned();
            let ends: Vec<Option<Held>> = paths
                .iter()
                .map(|path| path.get(&place).cloned().unwrap_or_else(|| base.clone()))
                .collect();
            let is_kept = base.as_ref().is_some_and(|base| {
                ends.iter()
                    .all(|end| end.as_ref().is_some_and(|end| end.version == base.version))
            });
            if is_kept {
                continue;
            }
            let Some(ends) = ends.into_iter().collect::<Option<Vec<Held>>>() else {
                self.set(place, None);
                continue;
            };
            let of = Type::union(ends.iter().map(|end| end.of.clone()));
            let origin = ends.last().map_or(Origin::Unknown, |end| end.origin.clone());
            let version = self.next_version();
            let held = Held {
                of,
                origin,
                version,
                notes: Vec::new(),
            };
            self.set(place, Some(held));
        }
    }
}
