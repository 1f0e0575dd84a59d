//! `attach`: the terminal becomes a client of the private tmux server.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use beamtalk_agents::Places;
use serde_json::Value;

use super::context::{Client, Failure};
use crate::exit::Exit;

/// The tmux command that shows the window of a session in a tmux session of its own.
#[expect(clippy::disallowed_methods, reason = "this process becomes tmux")]
pub(super) fn tmux_command(client: &Client, name: &str, read_only: bool) -> Result<Command, Failure> {
    let (tree, id) = client.session(name)?;
    let record: Value = serde_json::from_str(&tree.read_text(&format!("{id}/info"))?)
        .map_err(|error| Failure::plain(error.to_string()))?;
    let text = |key: &str| {
        record
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (backend, window) = (text("backend"), text("window"));
    if window.is_empty() {
        return Err(Failure::plain("session has no window (use restart)"));
    }
    let mut command = Command::new("tmux");
    command
        .env_remove("TMUX")
        .arg("-S")
        .arg(Places::of(&client.living_namespace()).tmux_socket());
    command.args([
        "-f",
        "/dev/null",
        "new-session",
        "-t",
        &format!("=agent-{backend}"),
    ]);
    if read_only {
        // What `-r` of attach-session stands for: no keys, and no say in the size.
        command.args(["-f", "read-only,ignore-size"]);
    }
    command.args([
        ";",
        "set-option",
        "destroy-unattached",
        "on",
        ";",
        "select-window",
        "-t",
        &window,
    ]);
    Ok(command)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a window of the user's, which outlives this process"
)]
pub(super) fn attach(client: &Client, name: &str, read_only: bool, window: bool) -> Result<Exit, Failure> {
    if window {
        let terminal = std::env::var("BEAMTALK_TERMINAL").unwrap_or_else(|_| "foot".to_owned());
        let mut command = Command::new(&terminal);
        command
            .arg(std::env::current_exe()?)
            .args(["agents", "attach", name]);
        command.arg("--namespace").arg(client.living_namespace());
        if read_only {
            command.arg("--read-only");
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
            .spawn()
            .map_err(|error| Failure::plain(format!("{terminal}: {error}")))?;
        return client.done();
    }
    let error = tmux_command(client, name, read_only)?.exec();
    Err(Failure::plain(format!("tmux: {error}")))
}
