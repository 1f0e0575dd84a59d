//! What the workspace tells, taken in and told on as events of the daemon.

use std::sync::Arc;

use beamtalk_wire::answers::Actor;
use beamtalk_wire::requests::Approvals;
use beamtalk_wire::{
    ActorsEvent, ChangeKind, ClassesEvent, Entry, Event, Intent, Push, Side, TranscriptEvent, WorkspaceEvent,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::known::bare;
use super::{Link, Live};
use crate::tree::names;

#[derive(Serialize)]
struct EntryLine<'a> {
    seq: u64,
    class: &'a str,
    selector: Option<&'a str>,
    side: Option<&'static str>,
    kind: &'static str,
    intent: Intent,
    author: &'static str,
    flushable: bool,
    file: Option<&'a str>,
    active: bool,
    ts: &'a str,
}

/// An entry of the change log as `changes/log` and `changes/follow` show it.
pub(crate) fn entry_line(entry: &Entry, active: bool) -> String {
    let line = EntryLine {
        seq: entry.seq,
        class: &entry.class,
        selector: entry.selector.as_deref(),
        side: entry.side.map(Side::name),
        kind: entry.kind.as_str(),
        intent: entry.intent,
        author: entry.author_kind.name(),
        flushable: entry.flushable,
        file: entry.source_file.as_deref(),
        active,
        ts: &entry.ts,
    };
    // Everything in it has a form in JSON.
    let text = serde_json::to_string(&line).unwrap_or_default();
    format!("{text}\n")
}

impl Link {
    pub(super) fn told(&self, live: &Arc<Live>, push: Push) {
        match push.event {
            Event::Transcript(TranscriptEvent::Text { text, .. }) => {
                live.known.transcript.push(text.as_bytes());
                live.signal.bump();
            }
            Event::Classes(ClassesEvent::Loaded { class, .. } | ClassesEvent::Changed { class, .. }) => {
                live.known.forget_class(&class);
            }
            Event::Classes(ClassesEvent::Removed { class, .. }) => {
                live.known.forget_class(&class);
                self.forget(&format!("/classes/{class}"));
            }
            Event::Classes(ClassesEvent::Dropped { .. }) => live.known.forget_all(),
            Event::Actors(ActorsEvent::Spawned {
                pid,
                class,
                spawned_at,
            }) => {
                self.emit("ActorSpawned", json!({"class": class, "pid": bare(&pid)}));
                live.known.actor_came(Actor {
                    pid,
                    class,
                    module: None,
                    spawned_at: Some(spawned_at),
                    name: None,
                    queue_len: None,
                    memory: None,
                    reductions: None,
                    message: None,
                });
            }
            Event::Actors(ActorsEvent::Stopped { pid, class, reason }) => {
                live.known.actor_went(&pid);
                self.forget(&format!("/actors/{}", bare(&pid)));
                let data = json!({"class": class, "pid": bare(&pid), "reason": reason});
                self.emit("ActorStopped", data);
            }
            Event::Actors(ActorsEvent::Dropped { .. }) => {
                live.known.forget_actors();
                live.know_actors();
            }
            Event::Workspace(WorkspaceEvent::Logged { entry }) => {
                live.known.forget_class(&entry.class);
                if let (ChangeKind::RemoveMethod, Some(selector)) = (entry.kind, &entry.selector) {
                    let side = if entry.side == Some(Side::Class) {
                        ".class/"
                    } else {
                        ""
                    };
                    self.forget(&format!(
                        "/classes/{}/{side}{}",
                        entry.class,
                        names::encode(selector)
                    ));
                }
                live.known.log.push(entry.seq, entry_line(&entry, true));
                live.signal.bump();
                self.emit_change(&entry);
            }
            Event::Workspace(WorkspaceEvent::ApprovalsWaiting { .. }) => self.look_at_held(),
            Event::Workspace(WorkspaceEvent::NodeExited { .. } | WorkspaceEvent::NodeStarted { .. }) => {
                live.known.forget_all();
            }
            _ => {}
        }
    }

    fn emit_change(&self, entry: &Entry) {
        let kind = match entry.kind {
            ChangeKind::Instance | ChangeKind::Class => "MethodChanged",
            ChangeKind::RemoveMethod => "MethodRemoved",
            ChangeKind::NewClass => "ClassLoaded",
            ChangeKind::RemoveClass | ChangeKind::Unknown => return,
        };
        let data = json!({"class": entry.class, "selector": entry.selector, "side": entry.side.map(Side::name),
            "author": entry.author_kind.name()});
        self.emit(kind, data);
    }

    /// Calls that the workspace holds for a person are shown with the other questions.
    pub(super) fn look_at_held(&self) {
        if !self.key.is_empty() {
            return;
        }
        let (Some(live), Some(hub)) = (self.now(), self.hub.upgrade()) else {
            return;
        };
        tokio::spawn(async move {
            if let Ok(told) = live.ask(&Approvals::default()).await {
                for id in hub.approvals.sync_held(&told.approvals) {
                    hub.events
                        .emit("workspace", "ApprovalAsked", json!({"kind": "tool", "id": id}));
                }
                hub.touch();
            }
        });
    }

    /// Only the owner's link tells: the others hear the same.
    fn emit(&self, kind: &str, data: Value) {
        if !self.key.is_empty() {
            return;
        }
        if let Some(hub) = self.hub.upgrade() {
            hub.events.emit("workspace", kind, data);
        }
    }
}
