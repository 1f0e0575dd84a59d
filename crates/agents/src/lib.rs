//! Agent sessions in tmux and the file tree that serves them over 9P.
//!
//! The daemon owns a private tmux server, one window per session, and answers file operations on
//! a Unix socket. What a session may do next is decided by a pure core (`session::core`); the
//! rest performs effects. The image of a workspace is part of the tree, asked over `link`.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

mod access;
mod ages;
mod approvals;
mod assist;
mod audit;
mod bytelog;
pub mod client;
mod config;
mod daemon;
mod door;
mod driver;
mod error;
mod events;
mod files;
mod helpers;
mod hooks;
mod ids;
mod link;
mod logging;
mod mail;
mod mount;
mod namespace;
mod output;
mod page;
mod pidfile;
mod places;
mod sandbox;
mod secrets;
mod session;
mod sys;
mod tap;
mod text;
mod tmux;
pub mod tools;
mod tree;
mod worktree;

pub use ages::Ages;
pub use assist::{Keeper, assist};
pub use client::{Client, Ending, Failure};
#[doc(hidden)]
pub use config::read_strange_config;
pub use config::{AuthMode, Backend, Config, Layers, Library};
pub use daemon::{DaemonOptions, NAME, serve};
pub use door::{Door, Proof, Trust, connect, connect_to, enter};
pub use driver::drive;
pub use error::{Fatal, errno_of, refusal};
pub use hooks::{HookEvent, report_hook};
pub use ids::directory_alias;
pub use link::{DoorRules, DoorSettings, LinkTarget};
pub use logging::start_logging;
pub use mail::MESSAGE_TYPES;
pub use mount::{Mount, is_signalled};
pub use namespace::{Namespace, candidates};
pub use page::serve_page;
pub use pidfile::{Instance, probe_instance};
pub use places::Places;
pub use sandbox::{Kernel, closed_switches, run_session};
pub use session::State;
pub use tap::{tap, tick};
pub use text::{check_directory, clean, clean_path};
pub use tmux::{TMUX_MINIMUM, end_servers, is_new_enough as is_tmux_new_enough, version as tmux_version};
