//! The interactive terminal client.

use super::context::{Client, Failure};
use super::daemon::ensure_started;
use crate::exit::Exit;

pub(super) fn run(client: &Client, no_start: bool) -> Result<Exit, Failure> {
    ensure_started(client, no_start)?;
    Ok(Exit::Success)
}
