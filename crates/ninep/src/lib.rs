//! 9P2000 and 9P2000.L: messages, a server over a tree of nodes, a blocking client.
//!
//! The server keeps the rules of the protocol (versions, fids, tags, flush, walks, directory
//! reads, limits) and asks a [`Node`] tree for everything else. It knows nothing of what the
//! files mean. Callers are the agents daemon, the `beamtalk 9p` client and the benchmarks.

#![deny(clippy::indexing_slicing)]

mod client;
mod codec;
mod error;
mod message;
mod server;
mod stat;
mod trace;

pub use client::{Attachment, Client, File, Pending};
pub use codec::{Cursor, DecodeFault, Field, frame_size};
pub use error::{Error, Refusal};
pub use message::{Dialect, Names, NumericUser, Payload, Reply, Request};
pub use server::{
    Answer, AuthFile, Change, Fault, Hangup, Limits, Need, Node, OpenFile, OpenRequest, Owner, Peer,
    ReadAnswer, Session, WriteAnswer, serve,
};
pub use stat::{DirectoryEntry, Qid, QidKind, Stat, mode};
pub use trace::{parse_request, quote};

/// The tag of `Tversion`.
pub const NOTAG: u16 = 0xffff;
/// "No fid", as the `afid` of an attach without authentication.
pub const NOFID: u32 = 0xffff_ffff;
/// The largest message the server agrees to.
pub const MSIZE: u32 = 131_096;
/// The smallest message size a client may ask for.
pub const MSIZE_MIN: u32 = 256;
