//! What the workspace tells its clients without being asked: a type for each channel.

use serde::{Deserialize, Serialize};

use crate::answers::{Finding, FlushedFile, NotInstalled, TestOutcome};
use crate::entry::Entry;

#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Channel {
    Transcript,
    Actors,
    Classes,
    Bindings,
    Supervision,
    /// Of the actor named when subscribing.
    Object,
    ReloadCheck,
    Workspace,
    Logs,
    /// Of the change log.
    Changes,
    Tests,
    Desk,
    /// Of the audit trail; for owners.
    Audit,
    /// Calls that wait for a person: all for whoever may answer, one's own otherwise.
    Approvals,
}

impl Channel {
    pub const ALL: [Self; 14] = [
        Self::Transcript,
        Self::Actors,
        Self::Classes,
        Self::Bindings,
        Self::Supervision,
        Self::Object,
        Self::ReloadCheck,
        Self::Workspace,
        Self::Logs,
        Self::Changes,
        Self::Tests,
        Self::Desk,
        Self::Audit,
        Self::Approvals,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::Actors => "actors",
            Self::Classes => "classes",
            Self::Bindings => "bindings",
            Self::Supervision => "supervision",
            Self::Object => "object",
            Self::ReloadCheck => "reload_check",
            Self::Workspace => "workspace",
            Self::Logs => "logs",
            Self::Changes => "changes",
            Self::Tests => "tests",
            Self::Desk => "desk",
            Self::Audit => "audit",
            Self::Approvals => "approvals",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}

/// Levels of the log, the gravest first.
pub const LOG_LEVELS: [&str; 8] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug",
];

/// Declares the events of a channel. Each channel may tell how many were dropped.
macro_rules! channel {
    ($(#[$about:meta])* $name:ident { $($(#[$event_about:meta])* $event:ident { $($(#[$field_about:meta])* $field:ident: $type:ty,)* },)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
        #[serde(tag = "event", content = "data", rename_all = "snake_case")]
        pub enum $name {
            $($(#[$event_about])* $event { $($(#[$field_about])* $field: $type,)* },)*
            /// Older events than these went by unread.
            Dropped { count: u64 },
            /// Events that were asked for by `since` and are no longer kept.
            Gap { from: u64, to: u64 },
        }

        impl $name {
            /// The names of its events.
            pub const NAMES: &[&str] = &[$(stringify!($event),)*];
        }
    };
}

channel! {
    TranscriptEvent {
        Text {
            text: String,
            /// The `id` of the evaluation of this connection that caused it.
            r#for: Option<String>,
            /// For clients that keep: the session, `agent NAME` or the actor that wrote it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", ts(optional))]
            by: Option<String>,
        },
    }
}

channel! {
    ActorsEvent {
        Spawned { pid: String, class: String, spawned_at: u64, },
        Stopped {
            pid: String,
            class: String,
            /// `normal`, `shutdown` or `crashed`.
            reason: String,
        },
    }
}

channel! {
    ClassesEvent {
        Loaded { class: String, source_file: Option<String>, },
        Changed { class: String, source_file: Option<String>, },
        Removed { class: String, source_file: Option<String>, },
    }
}

channel! {
    /// A cue to ask again.
    BindingsEvent {
        Changed { session: String, },
    }
}

channel! {
    SupervisionEvent {
        ChildAdded { supervisor: String, child: String, pid: Option<String>, reason: Option<String>, },
        ChildCrashed { supervisor: String, child: String, pid: Option<String>, reason: Option<String>, },
        ChildRestarted { supervisor: String, child: String, pid: Option<String>, reason: Option<String>, },
        GaveUp { supervisor: String, child: Option<String>, pid: Option<String>, reason: Option<String>, },
    }
}

channel! {
    ObjectEvent {
        Changed { actor: String, fields: Vec<String>, },
    }
}

channel! {
    /// For every class in `checked_owners` a client replaces what it shows by these findings.
    ReloadCheckEvent {
        Completed {
            changed_class: String,
            changed_selector: Option<String>,
            classification: String,
            checked: u64,
            not_checked: u64,
            checked_owners: Vec<String>,
            findings: Vec<Finding>,
        },
    }
}

channel! {
    WorkspaceEvent {
        NodeExited { reason: String, },
        NodeStarted { reinstalled: u64, failed: Vec<NotInstalled>, waiting: u64, },
        FlushCompleted { files: Vec<FlushedFile>, },
        /// A change has just come into the image and into the log.
        Logged { entry: Box<Entry>, },
        DiskChanged { files: Vec<String>, },
        ChangesWaiting { count: u64, },
        ApprovalsWaiting { count: u64, },
        Stopping { reason: String, },
        Rotated {},
    }
}

channel! {
    LogsEvent {
        Entry {
            time: String,
            level: String,
            domain: String,
            class: Option<String>,
            selector: Option<String>,
            msg: String,
        },
    }
}

channel! {
    ChangesEvent {
        /// It is pending now.
        Added { seq: u64, class: String, selector: Option<String>, file: Option<String>, author: String, },
        /// It is not pending any more.
        Retired { seq: u64, class: String, selector: Option<String>, file: Option<String>, },
        /// A flush left a file alone.
        Conflict { file: String, reason: String, seqs: Vec<u64>, },
    }
}

channel! {
    TestsEvent {
        Started { class: Option<String>, method: Option<String>, session: String, },
        Result { test: Box<TestOutcome>, },
        Finished { total: u64, passed: u64, failed: u64, skipped: u64, session: String, },
    }
}

channel! {
    DeskEvent {
        /// The version is 0 when it was removed.
        Changed { name: String, version: u64, },
    }
}

channel! {
    AuditEvent {
        /// As it stands in the trail.
        Record { record: serde_json::Map<String, serde_json::Value>, },
    }
}

channel! {
    /// A cue to ask again.
    ApprovalsEvent {
        Changed { count: u64, },
    }
}

/// An event with its channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(tag = "channel", rename_all = "snake_case")]
pub enum Event {
    Transcript(TranscriptEvent),
    Actors(ActorsEvent),
    Classes(ClassesEvent),
    Bindings(BindingsEvent),
    Supervision(SupervisionEvent),
    Object(ObjectEvent),
    ReloadCheck(ReloadCheckEvent),
    Workspace(WorkspaceEvent),
    Logs(LogsEvent),
    Changes(ChangesEvent),
    Tests(TestsEvent),
    Desk(DeskEvent),
    Audit(AuditEvent),
    Approvals(ApprovalsEvent),
}

/// An event that every channel has.
macro_rules! of_channel {
    ($channel:expr, $event:ident $fields:tt) => {
        match $channel {
            Channel::Transcript => Event::Transcript(TranscriptEvent::$event $fields),
            Channel::Actors => Event::Actors(ActorsEvent::$event $fields),
            Channel::Classes => Event::Classes(ClassesEvent::$event $fields),
            Channel::Bindings => Event::Bindings(BindingsEvent::$event $fields),
            Channel::Supervision => Event::Supervision(SupervisionEvent::$event $fields),
            Channel::Object => Event::Object(ObjectEvent::$event $fields),
            Channel::ReloadCheck => Event::ReloadCheck(ReloadCheckEvent::$event $fields),
            Channel::Workspace => Event::Workspace(WorkspaceEvent::$event $fields),
            Channel::Logs => Event::Logs(LogsEvent::$event $fields),
            Channel::Changes => Event::Changes(ChangesEvent::$event $fields),
            Channel::Tests => Event::Tests(TestsEvent::$event $fields),
            Channel::Desk => Event::Desk(DeskEvent::$event $fields),
            Channel::Audit => Event::Audit(AuditEvent::$event $fields),
            Channel::Approvals => Event::Approvals(ApprovalsEvent::$event $fields),
        }
    };
}

impl Event {
    pub fn channel(&self) -> Channel {
        match self {
            Self::Transcript(_) => Channel::Transcript,
            Self::Actors(_) => Channel::Actors,
            Self::Classes(_) => Channel::Classes,
            Self::Bindings(_) => Channel::Bindings,
            Self::Supervision(_) => Channel::Supervision,
            Self::Object(_) => Channel::Object,
            Self::ReloadCheck(_) => Channel::ReloadCheck,
            Self::Workspace(_) => Channel::Workspace,
            Self::Logs(_) => Channel::Logs,
            Self::Changes(_) => Channel::Changes,
            Self::Tests(_) => Channel::Tests,
            Self::Desk(_) => Channel::Desk,
            Self::Audit(_) => Channel::Audit,
            Self::Approvals(_) => Channel::Approvals,
        }
    }

    /// As it is sent.
    pub fn text(&self) -> String {
        // Everything in an event has a form in JSON.
        serde_json::to_string(&Sent {
            seq: None,
            event: self,
        })
        .unwrap_or_default()
    }

    /// As it is sent on a channel that numbers its events.
    pub fn numbered_text(&self, seq: u64) -> String {
        let seq = Some(seq);
        serde_json::to_string(&Sent { seq, event: self }).unwrap_or_default()
    }

    /// That events of a channel went by unread.
    pub fn dropped(channel: Channel, count: u64) -> Self {
        of_channel!(channel, Dropped { count })
    }

    /// That events of a channel are no longer kept.
    pub fn gap(channel: Channel, from: u64, to: u64) -> Self {
        of_channel!(channel, Gap { from, to })
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "push")]
struct Sent<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(flatten)]
    event: &'a Event,
}

/// An event as it is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(tag = "type", rename = "push")]
pub struct Push {
    /// On channels that number their events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub seq: Option<u64>,
    #[serde(flatten)]
    pub event: Event,
}
