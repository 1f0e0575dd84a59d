//! The language server: answers about source texts for editors, over the Language Server Protocol.
//!
//! Works from files alone. `server` owns all state and hands snapshots of it to the functions in `requests/`, one file
//! per request, which run on threads of their own. What a name in a text means is decided in `analysis/`.

mod analysis;
mod capabilities;
mod check;
mod client;
mod dispatch;
mod edit;
mod erlang;
mod fault;
mod library;
mod live;
mod pool;
mod position;
mod requests;
mod server;
mod state;
mod sync;
mod transport;
mod uri;
mod world;

pub use check::{Feature, Report, check};
pub use live::{Reach, Workspaces};
pub use server::{Ended, Setup, serve};
pub use transport::{Stdio, stdio};
