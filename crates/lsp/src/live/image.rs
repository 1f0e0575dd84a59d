//! What is known of a workspace: as it answered last, with what happened since.

use std::collections::BTreeMap;

use beamtalk_wire::answers::{ClassRow, Conflict, Finding};
use beamtalk_wire::{ActorsEvent, ChangeKind, EntryView, Event, ReloadCheckEvent};

#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) id: String,
    /// Pids by class.
    pub(crate) actors: BTreeMap<String, Vec<String>>,
    pub(crate) entries: Vec<EntryView>,
    pub(crate) conflicts: Vec<Conflict>,
    pub(crate) classes: Vec<ClassRow>,
    /// What re-checking found, by the class it is in.
    pub(crate) findings: BTreeMap<String, Vec<Finding>>,
}

/// What an event leaves to ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stale {
    Nothing,
    /// The picture changed, and is complete.
    Shown,
    Everything,
}

impl Image {
    pub(crate) fn note(&mut self, event: &Event) -> Stale {
        match event {
            Event::Actors(ActorsEvent::Spawned { pid, class, .. }) => {
                let pids = self.actors.entry(class.clone()).or_default();
                if !pids.contains(pid) {
                    pids.push(pid.clone());
                }
                Stale::Shown
            }
            Event::Actors(ActorsEvent::Stopped { pid, class, .. }) => {
                if let Some(pids) = self.actors.get_mut(class) {
                    pids.retain(|known| known != pid);
                }
                Stale::Shown
            }
            Event::ReloadCheck(ReloadCheckEvent::Completed {
                checked_owners,
                findings,
                ..
            }) => {
                for owner in checked_owners {
                    self.findings.remove(owner);
                }
                for finding in findings {
                    if let Finding::OfUse(found) = finding {
                        let owner = found.changed.owner.clone();
                        self.findings.entry(owner).or_default().push(finding.clone());
                    }
                }
                Stale::Everything
            }
            Event::Classes(_) | Event::Workspace(_) => Stale::Everything,
            // Events were lost: what is known may be wrong.
            Event::Actors(ActorsEvent::Dropped { .. } | ActorsEvent::Gap { .. })
            | Event::ReloadCheck(ReloadCheckEvent::Dropped { .. } | ReloadCheckEvent::Gap { .. }) => {
                Stale::Everything
            }
            Event::Transcript(_)
            | Event::Bindings(_)
            | Event::Supervision(_)
            | Event::Object(_)
            | Event::Logs(_)
            | Event::Changes(_)
            | Event::Tests(_)
            | Event::Desk(_)
            | Event::Audit(_)
            | Event::Approvals(_) => Stale::Nothing,
        }
    }

    /// Changes that are in the image and not in their files.
    pub(crate) fn unflushed(&self) -> impl Iterator<Item = &EntryView> {
        self.entries.iter().filter(|one| one.active && !one.shadowed)
    }

    /// Whether a method, or a class as a whole, has such a change.
    pub(crate) fn is_unflushed(&self, class: &str, selector: Option<&str>, is_class: bool) -> bool {
        self.unflushed().any(|one| {
            let entry = &one.entry;
            let is_side = entry.side == Some(beamtalk_wire::Side::Class);
            entry.class == class
                && match selector {
                    Some(selector) => entry.selector.as_deref() == Some(selector) && is_side == is_class,
                    None => matches!(entry.kind, ChangeKind::NewClass | ChangeKind::RemoveClass),
                }
        })
    }

    /// Classes that stand in no file.
    pub(crate) fn without_file(&self) -> impl Iterator<Item = &ClassRow> {
        self.classes
            .iter()
            .filter(|row| row.source_file.is_none() && row.origin == "runtime")
    }
}
