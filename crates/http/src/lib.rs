//! What the HTTP listeners share: limits on heads, bodies and time, the checks of `Host` and of the
//! page that asks, tokens, event streams, and seats that strangers cannot take from the admitted.
//!
//! `server` serves connections at a pace, `head` reads what strangers wrote, `answer` makes answers.
//! What a request means and who may ask for it is decided by those who listen.

mod answer;
mod head;
mod server;

pub use answer::{EventStream, PROTECTION, set, short};
pub use head::{
    BodyFault, bearer, cookies, hosts, is_host_allowed, is_json, is_own_site, is_same, read_body, values,
};
pub use server::{Limits, Pace, bind, serve};
