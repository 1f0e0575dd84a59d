//! The workspace protocol as data: operations, requests, answers, errors, events, limits, versions. No I/O.

mod error;
mod event;
pub mod limits;
mod message;
mod op;
mod request;
mod role;
mod version;

pub use error::{ErrorBody, Frame, Location};
pub use event::{Channel, LOG_LEVELS, push};
pub use message::{answer, failure, needs_input, output};
pub use op::{Access, Op};
pub use request::{BadRequest, Request};
pub use role::{ClientKind, Role};
pub use version::{PROTOCOL, negotiate};
