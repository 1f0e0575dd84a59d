//! External events: who may post, what a request must look like, the server, the audit log.

pub(crate) mod audit;
pub(crate) mod gate;
pub(crate) mod server;
