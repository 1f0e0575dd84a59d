//! The gate, driven through real sockets on the loopback interface.

#![expect(clippy::disallowed_methods, reason = "tests set up what they look at")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod control;
mod flow;
mod handshake;
mod pages;
mod strangers;
mod support;
mod tls;
