//! The daemon: one live image behind one boundary.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

mod agents;
mod approvals;
pub mod audit;
mod broadcast;
pub mod certificate_files;
pub mod certificates;
pub mod changes;
mod cluster;
pub mod compile;
mod connection;
mod control;
mod daemon;
mod desk;
mod disk;
mod exposure;
pub mod gate;
mod handles;
mod hosted_loop;
mod image;
mod jobs;
mod kept;
mod mcp;
mod narrow;
mod news;
mod ops;
mod options;
mod project;
mod questions;
mod record;
mod sessions;
mod stops;
mod terms;
mod test_log;
mod told;
mod workspace;

pub use agents::{AgentsDoor, DoorFault};
pub use cluster::{BadNodeName, NodeName, check_peer};
pub use compile::job::{PackageUse, SourceText, TextOrigin};
pub use compile::run_worker as run_compiler_worker;
pub use daemon::{StartError, StartFailure, StartOrder, StartReport, run};
pub use mcp::{Answering, Inside, Link, MakeService, McpService};
pub use ops::sources_below;
pub use options::StartOptions;
pub use project::{LoadedPackage, ProjectImage};
