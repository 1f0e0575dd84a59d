//! A client of a workspace: find it, connect, authenticate, send requests, receive answers and events; and the
//! control socket of the owner.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

mod connection;
mod control;
mod fault;
mod find;
mod place;
pub mod remotes;
mod tls;

pub use connection::{Answer, Connection, Endpoint, Error, Events, Greeting, Pending, Reply};
pub use control::{Control, ControlError};
pub use fault::{Exit, Fault};
pub use find::{FindError, reach};
pub use place::{Place, control_answer};
pub use tls::TlsTrust;
