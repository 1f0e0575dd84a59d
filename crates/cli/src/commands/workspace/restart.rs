//! `workspace restart`: the same flags again, and with `--clean` nothing else.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use super::life::flags_of_last_start;
use crate::config::Config;
use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::workspace_link::{Trust, find_place, start};

/// What `--clean` cannot undo.
const REMINDER: &str =
    "Whoever ran code in the workspace ran it as the user and may have changed files anywhere.";

pub(super) fn restart(
    terminal: &mut Terminal,
    name: Option<&str>,
    clean: bool,
    force: bool,
) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    place.require_directory()?;
    let options = match flags_of_last_start(&place)? {
        Some(options) => options,
        None => Config::of(&place.state)?.start,
    };
    place.stop("restart", force)?;
    let trust = if clean { Trust::Nothing } else { Trust::Everything };
    let found = start(&place, terminal, &options, trust)?;
    let changed = if clean { changed_files(&place.root) } else { None };
    if terminal.is_json() {
        let mut answer = json!(found.info);
        if clean {
            answer["reminder"] = REMINDER.into();
            answer["git_status"] = changed.into();
        }
        terminal.print(answer)?;
        return Ok(Exit::Success);
    }
    terminal.print(format_args!(
        "Workspace {} restarted on port {}.",
        place.id, found.info.port
    ))?;
    if clean {
        terminal.print("The cookie is new, all access tokens are revoked, _build/ was deleted and built again, pending changes are archived.")?;
        terminal.print(REMINDER)?;
        match changed {
            Some(changed) if changed.is_empty() => {
                terminal.print("git status --short: nothing differs from the last commit")?;
            }
            Some(changed) => {
                terminal.print("git status --short:")?;
                terminal.print(changed.trim_end())?;
            }
            None => {}
        }
    }
    Ok(Exit::Success)
}

/// What `git status --short` says of the project, if it is under git.
///
/// The repository's own settings could name a program to run; the one known to be run by `status` is switched off.
fn changed_files(root: &Path) -> Option<String> {
    let output = beamtalk_process::asked("git")
        .args(["-c", "core.fsmonitor=false", "status", "--short"])
        .current_dir(root)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
