//! What every subcommand needs: the way to the daemon, and how to tell.

use std::io::Write;
use std::ops::Deref;

use beamtalk_repl::harmless::harmless;
use serde_json::Value;

pub(super) use beamtalk_agents::{Ending, Failure};

use super::Common;
use crate::exit::Exit;

/// The common options, put to use.
pub(super) struct Client {
    pub(super) json: bool,
    reach: beamtalk_agents::Client,
}

impl Deref for Client {
    type Target = beamtalk_agents::Client;

    fn deref(&self) -> &Self::Target {
        &self.reach
    }
}

impl Client {
    pub(super) fn new(common: &Common) -> Self {
        Client {
            json: common.json,
            reach: beamtalk_agents::Client::new(
                common.namespace.clone(),
                common.timeout,
                common.token_file.clone(),
            ),
        }
    }

    pub(super) fn into_reach(self) -> beamtalk_agents::Client {
        self.reach
    }

    /// Success without output.
    pub(super) fn done(&self) -> Result<Exit, Failure> {
        if self.json {
            self.print(&serde_json::json!({"ok": true}))?;
        }
        Ok(Exit::Success)
    }

    #[expect(clippy::unused_self, reason = "reads as something the client does")]
    pub(super) fn print(&self, value: &Value) -> Result<(), Failure> {
        say(&value.to_string())
    }
}

/// A line on standard output.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    emit(format!("{line}\n").as_bytes())
}

/// Text on standard output: as it is, or harmless where that is a terminal.
pub(super) fn emit(bytes: &[u8]) -> Result<(), Failure> {
    if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        emit_raw(harmless(bytes).as_bytes())
    } else {
        emit_raw(bytes)
    }
}

/// Bytes on standard output as they are, for who asks for exactly these.
pub(super) fn emit_raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}
