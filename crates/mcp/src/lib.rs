//! The Model Context Protocol over a workspace: messages of both eras, tools, resources, prompts, guardrails.
//!
//! This crate knows neither sockets nor files. A host gives it lines and takes lines (`Session`), and answers for the
//! workspace through the trait `Host`; every tool is a thin call of one or two operations of the protocol in `wire`.

mod arguments;
mod capabilities;
mod completion;
mod confirmation;
mod data;
mod dispatch;
pub mod door;
mod fit;
mod fixture;
mod guard;
mod hints;
mod host;
mod http;
mod lines;
mod message;
mod named_secrets;
mod passing_id;
mod progress;
mod prompts;
mod record;
mod resources;
#[cfg(feature = "schema")]
pub mod schema;
mod secrets;
mod session;
mod settings;
mod strange;
mod tools;
mod views;
mod watch;

pub use data::Data;
pub use dispatch::{Rate, shown_diff, work};
#[doc(hidden)]
pub use fixture::{Fixture, Given, Giving, Seen, Talk};
pub use guard::{Counted, FileDeed, count};
pub use host::{Asked, DocHit, Host, HostError, LoopCommand, PackageClass, PackageRow, Program, TreeAct};
pub use http::{Endpoint, HttpAnswer, HttpRequest, admits};
pub use lines::{Line, LineReader};
pub use message::{LINE_LIMIT, VERSIONS};
pub use progress::Progress;
pub use secrets::Secrets;
pub use session::{Outgoing, Session};
pub use settings::{Approval, LoopRight, NarrowedBy, Policy, Settings, Toolset, Way};
#[doc(hidden)]
pub use strange::read_strange_lines;
pub use tools::{listing, names};
