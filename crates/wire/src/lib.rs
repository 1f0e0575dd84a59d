//! The workspace protocol as data: operations, requests, answers, errors, events, limits, versions. No I/O.

pub mod answers;
mod call;
pub mod class_file;
mod commands;
mod entry;
mod error;
mod event;
pub mod file_name;
pub mod limits;
mod message;
mod op;
pub mod requests;
mod role;
#[cfg(feature = "schema")]
pub mod schema;
mod version;
mod visible;

pub use call::{BadRequest, Call};
pub use commands::{NEW_KEYS, commands, is_directory_of_new, split_words};
pub use entry::{AuthorKind, ChangeKind, Entry, EntryView, Intent, LoggedEntry, Settled, Side, State};
pub use error::{ErrorBody, ErrorKind, Frame, Location};
pub use event::{
    ActorsEvent, ApprovalsEvent, AuditEvent, BindingsEvent, ChangesEvent, Channel, ClassesEvent, DeskEvent,
    Event, LOG_LEVELS, LogsEvent, ObjectEvent, Push, ReloadCheckEvent, SupervisionEvent, TestsEvent,
    TranscriptEvent, WorkspaceEvent,
};
pub use message::{Flag, Head, object};
pub use op::{Access, Op, Operation, Request};
pub use role::{ClientKind, Role};
pub use version::{PROTOCOL, negotiate};
pub use visible::escape;
