//! Where a thing is used: in the files of the package and, to look at, in those of its dependencies.
//!
//! There is no index: files whose text does not contain the name are left out, the others are walked. A message is
//! certain where the class of its receiver is known, possible where it is not, and left out where it is known to mean
//! another method.

use std::collections::BTreeSet;
use std::sync::Arc;

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_syntax::span::Span;
use ecow::EcoString;

use super::find::{self, Inference};
use super::names::{self, Meaning, Occurrence, Owner, Role};
use crate::fault::Fault;
use crate::state::{Snapshot, View};
use crate::world::{Access, File};

/// The types of at most so many files are worked out for one question.
const MAX_INFERRED: usize = 40;

/// A thing that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Class(EcoString),
    /// A variable or type parameter: its file holds all there is.
    Inner(Meaning),
    Slot {
        class: EcoString,
        is_class: bool,
        name: EcoString,
    },
    Selector {
        selector: EcoString,
        family: Option<Family>,
    },
}

/// The classes that share a method: the topmost that defines it, and those below that define it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) classes: BTreeSet<EcoString>,
    pub(crate) is_class: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    Sure,
    /// The class of the receiver is not known.
    Possible,
}

#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) file: Arc<File>,
    pub(crate) name: Occurrence,
    pub(crate) certainty: Certainty,
}

impl Reference {
    /// The first part of a selector stands for all of it.
    pub(crate) fn is_first(&self) -> bool {
        match &self.name.meaning {
            Meaning::Message { part, .. } | Meaning::Method { part, .. } => *part == 0,
            _ => true,
        }
    }
}

/// What a name stands for.
pub(crate) fn subject(view: &View, name: &Occurrence) -> Option<Subject> {
    let owner = name.owner.as_ref();
    Some(match &name.meaning {
        Meaning::Class(class) => Subject::Class(class.clone()),
        Meaning::Own => Subject::Class(owner?.class.clone()),
        Meaning::Local { .. } | Meaning::TypeParameter(_) | Meaning::Unbound(_) => {
            Subject::Inner(name.meaning.clone())
        }
        Meaning::Package(_) => return None,
        Meaning::Slot { name: slot } => {
            let owner = owner?;
            let declaring = find::slot(view, owner, slot).map(|(_, class, _)| class.name.text.clone());
            Subject::Slot {
                class: declaring.unwrap_or_else(|| owner.class.clone()),
                is_class: owner.is_class,
                name: slot.clone(),
            }
        }
        Meaning::Method { selector, .. } => Subject::Selector {
            family: owner.map(|owner| family(view, &owner.class, owner.is_class, selector)),
            selector: selector.clone(),
        },
        Meaning::Message { selector, .. } => {
            let lookup = Lookup::new(&view.world.table);
            let answerer = find::receiver(view, &Inference::new(&lookup), name)
                .and_then(|receiver| lookup.answerer(&receiver, selector));
            Subject::Selector {
                family: answerer.map(|answerer| family(view, &answerer.class, answerer.is_class, selector)),
                selector: selector.clone(),
            }
        }
    })
}

/// The family of a method that a class has.
pub(crate) fn family(view: &View, class: &str, is_class: bool, selector: &str) -> Family {
    let table = &view.world.table;
    let defines = |name: &str| defines(view, name, is_class, selector);
    let topmost = table
        .chain(class)
        .iter()
        .rev()
        .find(|entry| defines(&entry.name))
        .map_or_else(|| EcoString::from(class), |entry| entry.name.clone());
    let below = table
        .class_names()
        .filter(|name| table.inherits_from(name, &topmost) && defines(name));
    let mut classes: BTreeSet<EcoString> = below.cloned().collect();
    classes.insert(topmost);
    Family { classes, is_class }
}

fn defines(view: &View, class: &str, is_class: bool, selector: &str) -> bool {
    let table = &view.world.table;
    let own = table.class(class).is_some_and(|entry| {
        let methods = if is_class {
            &entry.class_methods
        } else {
            &entry.methods
        };
        methods.contains_key(selector)
    });
    own || table.extension_file(class, is_class, selector).is_some()
}

/// Every use of a subject, in the order of files and places. `view` is where it was asked.
pub(crate) fn all(snapshot: &Snapshot, view: &View, subject: &Subject) -> Result<Vec<Reference>, Fault> {
    let mut found = Vec::new();
    if let Subject::Inner(meaning) = subject {
        let names = names::all(&view.file.source.unit);
        let meant = names.into_iter().filter(|name| name.meaning == *meaning);
        found.extend(meant.map(|name| Reference {
            file: view.file.clone(),
            name,
            certainty: Certainty::Sure,
        }));
        return Ok(found);
    }
    let word = match subject {
        Subject::Class(name) => name.rsplit('@').next().unwrap_or(name),
        Subject::Slot { name, .. } => name,
        Subject::Selector { selector, .. } => find::first_part(selector),
        Subject::Inner(_) => "",
    };
    let lookup = Lookup::new(&view.world.table);
    let mut inferred = 0;
    let own = view.world.files.values();
    // A text outside of every package is looked at too, as is the library when the question comes from there.
    let here = (!view.world.files.contains_key(&view.key)).then_some(&view.file);
    for file in own.chain(here).filter(|file| file.text().contains(word)) {
        snapshot.go_on()?;
        let there = View {
            file: file.clone(),
            ..view.clone()
        };
        let inference = if inferred < MAX_INFERRED {
            Inference::new(&lookup)
        } else {
            Inference::quick(&lookup)
        };
        for name in names::those(&file.source.unit, &|meaning| may_meet(subject, meaning)) {
            if let Some(certainty) = meets(&there, &inference, subject, &name) {
                found.push(Reference {
                    file: file.clone(),
                    name,
                    certainty,
                });
            }
        }
        inferred += usize::from(inference.has_types());
    }
    Ok(found)
}

/// Whether a name may be a use of the subject, by what the text alone says.
fn may_meet(subject: &Subject, meaning: &Meaning) -> bool {
    match (subject, meaning) {
        (Subject::Class(wanted), Meaning::Class(found)) => wanted == found,
        (Subject::Slot { name: wanted, .. }, Meaning::Slot { name: found }) => wanted == found,
        (
            Subject::Selector { selector: wanted, .. },
            Meaning::Method { selector: found, .. } | Meaning::Message { selector: found, .. },
        ) => wanted == found,
        _ => false,
    }
}

/// Whether a name is a use of the subject.
fn meets(view: &View, inference: &Inference<'_>, subject: &Subject, name: &Occurrence) -> Option<Certainty> {
    let sure = |is_meant: bool| is_meant.then_some(Certainty::Sure);
    match (subject, &name.meaning) {
        (Subject::Class(wanted), Meaning::Class(class)) => sure(wanted == class),
        (
            Subject::Slot {
                class,
                is_class,
                name: wanted,
            },
            Meaning::Slot { name: slot },
        ) => {
            let owner = name.owner.as_ref()?;
            let is_meant = slot == wanted
                && owner.is_class == *is_class
                && view.world.table.inherits_from(&owner.class, class)
                && !redeclares(view, &owner.class, class, owner.is_class, slot);
            sure(is_meant)
        }
        (Subject::Selector { selector, family }, Meaning::Method { selector: found, .. }) => {
            let owner = name.owner.as_ref()?;
            let Some(family) = family else {
                return (selector == found).then_some(Certainty::Possible);
            };
            if selector != found || family.is_class != owner.is_class {
                return None;
            }
            if family.classes.contains(&owner.class) {
                return Some(Certainty::Sure);
            }
            // What a protocol asks for may be this method.
            let is_protocol = view.world.table.class(&owner.class).is_none();
            is_protocol.then_some(Certainty::Possible)
        }
        (Subject::Selector { selector, family }, Meaning::Message { selector: found, .. })
            if selector == found =>
        {
            let receiver = find::receiver(view, inference, name);
            match (family, receiver) {
                (Some(family), Some(receiver)) => sends(view, inference.lookup, family, &receiver, selector),
                (Some(_) | None, _) => Some(Certainty::Possible),
            }
        }
        _ => None,
    }
}

/// Whether a class between the declaring one and the one that uses a slot declares it again.
fn redeclares(view: &View, user: &str, declaring: &str, is_class: bool, slot: &str) -> bool {
    let owner = Owner {
        class: user.into(),
        is_class,
    };
    find::slot(view, &owner, slot).is_some_and(|(_, class, _)| class.name.text != declaring)
}

/// Whether a message to this receiver means a method of the family.
fn sends(
    view: &View,
    lookup: &Lookup<'_>,
    family: &Family,
    receiver: &Receiver,
    selector: &str,
) -> Option<Certainty> {
    if let Some(answerer) = lookup.answerer(receiver, selector)
        && answerer.is_class == family.is_class
        && family.classes.contains(&answerer.class)
    {
        return Some(Certainty::Sure);
    }
    // A subclass of what is declared may be one of the family.
    let is_above = receiver.is_class == family.is_class
        && family
            .classes
            .iter()
            .any(|class| view.world.table.inherits_from(class, &receiver.class));
    is_above.then_some(Certainty::Possible)
}

/// Only what may be changed.
pub(crate) fn is_own(reference: &Reference) -> bool {
    reference.file.access == Access::Own
}

pub(crate) fn is_declaration(reference: &Reference) -> bool {
    reference.name.role == Role::Declaration
}

/// The method around a place: its class, its head, all of it.
pub(crate) fn method_around(file: &File, span: Span) -> Option<find::Found<'_>> {
    find::methods(file).find(|found| {
        let whole = found.method.span;
        whole.start <= span.start && span.end <= whole.end
    })
}
