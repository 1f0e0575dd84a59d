//! Where a thing is used: in the files of the package and, to look at, in those of its dependencies.
//!
//! Files that do not have the name are left out by their index, methods that do not by their text; the others are walked
//! on every core. A message is certain where the class of its receiver is known, possible where it is not, and left out
//! where it is known to mean another method.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_compiler::types::{self, Types};
use beamtalk_project::source;
use beamtalk_syntax::ast;
use beamtalk_syntax::span::Span;
use ecow::EcoString;

use super::find::{self, Inference};
use super::names::{self, Meaning, Occurrence, Owner, Role, To};
use super::words::{self, Word};
use crate::fault::Fault;
use crate::state::{Snapshot, View};
use crate::world::{Access, File};

/// Types are worked out for at most so many methods that a quick look does not settle; messages of the others are
/// possible uses.
const MAX_TYPED: usize = 400;
/// Fewer files than this are walked faster than threads are started.
const FEW: usize = 24;

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
    let files = with_name(view, subject);
    let chunks = chunks(&files);
    let walked = source::parallel(&chunks, |files| walk(snapshot, view, subject, files));
    let mut sightings = Vec::new();
    for walked in walked {
        sightings.extend(walked?);
    }
    settle(snapshot, view, subject, &mut sightings)?;
    for (file, name, sight) in sightings {
        let certainty = match sight {
            Sight::Is(certainty) => certainty,
            Sight::Unsettled => Certainty::Possible,
            Sight::IsNot => continue,
        };
        found.push(Reference {
            file,
            name,
            certainty,
        });
    }
    Ok(found)
}

/// The files that have the name of a subject, in order.
fn with_name<'a>(view: &'a View, subject: &Subject) -> Vec<&'a Arc<File>> {
    let word = match subject {
        Subject::Class(name) => Word::Class(words::plain(name)),
        Subject::Slot { name, .. } => Word::Slot(name),
        Subject::Selector { selector, .. } => Word::Selector(selector),
        Subject::Inner(_) => return vec![&view.file],
    };
    // A text outside of every package is looked at too, as is the library when the question comes from there.
    let here = (!view.world.files.contains_key(&view.key)).then_some(&view.file);
    let all = view.world.files.values().chain(here);
    all.filter(|file| file.words().has(word)).collect()
}

/// As many parts as there are cores, in order.
fn chunks<T>(items: &[T]) -> Vec<&[T]> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let size = items.len().div_ceil(cores).max(FEW);
    items.chunks(size).collect()
}

/// What a name was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Is(Certainty),
    IsNot,
    /// A message whose receiver only types can tell.
    Unsettled,
}

type Sighting = (Arc<File>, Occurrence, Sight);

/// The places in some files where the name of the subject stands and may mean it.
fn walk(
    snapshot: &Snapshot,
    view: &View,
    subject: &Subject,
    files: &[&Arc<File>],
) -> Result<Vec<Sighting>, Fault> {
    let lookup = Lookup::new(&view.world.table);
    let word = match subject {
        Subject::Class(name) => words::plain(name),
        Subject::Slot { name, .. } => name,
        Subject::Selector { selector, .. } => find::first_part(selector),
        Subject::Inner(_) => "",
    };
    let mut found = Vec::new();
    for file in files {
        snapshot.go_on()?;
        let there = View {
            file: Arc::clone(file),
            ..view.clone()
        };
        let may_have = |method: &ast::Method| method.span.text(file.text()).contains(word);
        let is_wanted = |meaning: &Meaning| may_meet(subject, meaning);
        for name in names::within(&file.source.unit, &may_have, &is_wanted) {
            let sight = meets(&there, &lookup, subject, &name);
            if sight != Sight::IsNot {
                found.push((Arc::clone(file), name, sight));
            }
        }
    }
    Ok(found)
}

/// Work out the types of the methods in which messages are not settled yet.
fn settle(
    snapshot: &Snapshot,
    view: &View,
    subject: &Subject,
    sightings: &mut [Sighting],
) -> Result<(), Fault> {
    let Subject::Selector {
        selector,
        family: Some(family),
    } = subject
    else {
        return Ok(());
    };
    // The messages of one method stand together.
    let mut methods: Vec<(Arc<File>, Option<Span>, Vec<usize>)> = Vec::new();
    for (at, (file, name, sight)) in sightings.iter().enumerate() {
        if *sight != Sight::Unsettled {
            continue;
        }
        let around = method_around(file, name.span).map(|found| found.method.span);
        let is_full = methods.len() == MAX_TYPED;
        match methods.last_mut() {
            Some((known, method, places)) if Arc::ptr_eq(known, file) && *method == around => places.push(at),
            _ if is_full => break,
            _ => methods.push((Arc::clone(file), around, vec![at])),
        }
    }
    let chunks = chunks(&methods);
    let settled = source::parallel(&chunks, |methods| -> Result<Vec<(usize, Sight)>, Fault> {
        let lookup = Lookup::new(&view.world.table);
        let mut settled = Vec::new();
        for (file, _, places) in *methods {
            snapshot.go_on()?;
            let names = places.iter().filter_map(|at| Some((*at, &sightings.get(*at)?.1)));
            let mut types: Option<Types> = None;
            for (at, name) in names {
                let table = &view.world.table;
                let types =
                    types.get_or_insert_with(|| types::of_method(&file.source, table, name.span.start));
                if let Some(receiver) = find::typed_receiver(types, name) {
                    settled.push((at, sends(view, &lookup, family, &receiver, selector)));
                }
            }
        }
        Ok(settled)
    });
    for settled in settled {
        for (at, is) in settled? {
            if let Some((_, _, sight)) = sightings.get_mut(at) {
                *sight = is;
            }
        }
    }
    Ok(())
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
fn meets(view: &View, lookup: &Lookup<'_>, subject: &Subject, name: &Occurrence) -> Sight {
    match (subject, &name.meaning) {
        (Subject::Class(wanted), Meaning::Class(class)) => Sight::sure(wanted == class),
        (
            Subject::Slot {
                class,
                is_class,
                name: wanted,
            },
            Meaning::Slot { name: slot },
        ) => Sight::sure(name.owner.as_ref().is_some_and(|owner| {
            slot == wanted
                && owner.is_class == *is_class
                && view.world.table.inherits_from(&owner.class, class)
                && !redeclares(view, &owner.class, class, owner.is_class, slot)
        })),
        (Subject::Selector { selector, family }, Meaning::Method { selector: found, .. }) => {
            match (family, &name.owner) {
                _ if selector != found => Sight::IsNot,
                (_, None) => Sight::IsNot,
                (None, _) => Sight::Is(Certainty::Possible),
                (Some(family), Some(owner)) if family.is_class != owner.is_class => Sight::IsNot,
                (Some(family), Some(owner)) if family.classes.contains(&owner.class) => {
                    Sight::Is(Certainty::Sure)
                }
                // What a protocol asks for may be this method.
                (Some(_), Some(owner)) if view.world.table.class(&owner.class).is_none() => {
                    Sight::Is(Certainty::Possible)
                }
                (Some(_), Some(_)) => Sight::IsNot,
            }
        }
        (
            Subject::Selector { selector, family },
            Meaning::Message {
                selector: found, to, ..
            },
        ) if selector == found => {
            let Some(family) = family else {
                return Sight::Is(Certainty::Possible);
            };
            match find::quick_receiver(view, lookup, name) {
                Some(receiver) => sends(view, lookup, family, &receiver, selector),
                None if *to == To::Other => Sight::Unsettled,
                None => Sight::Is(Certainty::Possible),
            }
        }
        _ => Sight::IsNot,
    }
}

impl Sight {
    fn sure(is_meant: bool) -> Self {
        if is_meant {
            Self::Is(Certainty::Sure)
        } else {
            Self::IsNot
        }
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
fn sends(view: &View, lookup: &Lookup<'_>, family: &Family, receiver: &Receiver, selector: &str) -> Sight {
    if let Some(answerer) = lookup.answerer(receiver, selector)
        && answerer.is_class == family.is_class
        && family.classes.contains(&answerer.class)
    {
        return Sight::Is(Certainty::Sure);
    }
    // A subclass of what is declared may be one of the family.
    let is_above = receiver.is_class == family.is_class
        && family
            .classes
            .iter()
            .any(|class| view.world.table.inherits_from(class, &receiver.class));
    if is_above {
        Sight::Is(Certainty::Possible)
    } else {
        Sight::IsNot
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gen_lsp_types::Uri;

    use super::*;
    use crate::position::Encoding;
    use crate::state::State;
    use crate::world::World;

    fn view(texts: &[(&str, String)]) -> View {
        let mut world = World::alone(Path::new("/p"));
        let mut last = EcoString::new();
        for (name, text) in texts {
            let uri = Uri(format!("file:///p/src/{name}.bt"));
            last = uri.0.as_str().into();
            let draft = world.draft(&uri.0, text);
            world.put(&last, &uri, &draft);
        }
        View {
            file: world.files[&last].clone(),
            key: last,
            world: Arc::new(world),
            encoding: Encoding::default(),
            client: Arc::default(),
        }
    }

    /// Only the files that have the very name are walked, however many have its first word, and a file that gets or loses
    /// it is walked or left out at once.
    #[test]
    fn files_without_the_name_are_not_walked() {
        let mut texts: Vec<(&str, String)> = Vec::new();
        let names: Vec<String> = (0..50).map(|number| format!("Part{number}")).collect();
        for name in &names {
            let text = format!("Object subclass: {name}\n  class m: x => x at: 1 // at:put:\n");
            texts.push((name, text));
        }
        for at in [7, 30] {
            texts[at].1 = format!(
                "Object subclass: {}\n  class m: x => x at: 1 put: 2\n",
                texts[at].0
            );
        }
        let subject = Subject::Selector {
            selector: "at:put:".into(),
            family: None,
        };
        assert_eq!(with_name(&view(&texts), &subject).len(), 2);
        texts[7].1 = format!("Object subclass: {}\n  class m: x => x\n", texts[7].0);
        texts[9].1 = format!("Part3 subclass: {}\n  at: x put: y => #(x, y)\n", texts[9].0);
        let view = view(&texts);
        assert_eq!(with_name(&view, &subject).len(), 2);
        let class = Subject::Class("Part3".into());
        assert_eq!(
            with_name(&view, &class).len(),
            2,
            "its own file and that of its subclass"
        );
        let state = Arc::new(State::default());
        let found = all(&Snapshot::new(&state), &view, &subject).unwrap();
        let places: Vec<(String, u32)> = found
            .iter()
            .filter(|found| found.is_first())
            .map(|found| (found.file.source.path.to_string(), found.name.span.start))
            .collect();
        assert_eq!(places.len(), 2, "{places:?}");
    }

    /// Receivers that only types tell are settled in as many methods as there may be, whatever the threads do: the same
    /// question has the same answer.
    #[test]
    fn types_settle_receivers_in_many_files() {
        let mut texts: Vec<(&str, String)> = Vec::new();
        let names: Vec<String> = (0..80).map(|number| format!("Part{number:02}")).collect();
        texts.push((
            "Lamp",
            "Object subclass: Lamp\n  dim => 1\n  class all -> List(Lamp) => #()\n".into(),
        ));
        texts.push((
            "Tube",
            "Object subclass: Tube\n  dim => 1\n  class all -> List(Tube) => #()\n".into(),
        ));
        for (number, name) in names.iter().enumerate() {
            let class = if number % 2 == 0 { "Lamp" } else { "Tube" };
            texts.push((
                name,
                format!("Object subclass: {name}\n  class m => {class} all collect: [:x | x dim]\n"),
            ));
        }
        let view = view(&texts);
        let family = family(&view, "Lamp", false, "dim");
        let subject = Subject::Selector {
            selector: "dim".into(),
            family: Some(family),
        };
        let state = Arc::new(State::default());
        let found = all(&Snapshot::new(&state), &view, &subject).unwrap();
        let sure = found
            .iter()
            .filter(|found| found.certainty == Certainty::Sure)
            .count();
        assert_eq!((found.len(), sure), (41, 41), "the method and forty senders");
    }
}
