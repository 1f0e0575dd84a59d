//! Watching: which files there are, and which of them changed.
//!
//! A [`tree::Tree`] knows the directories that can hold a match and the files that do match. A
//! backend tells it where to look: inotify on Linux, the system's own recursive notifications
//! elsewhere, or a clock. Everything runs in one thread of its own and ends up in one channel.

#[cfg(target_os = "linux")]
#[path = "watch/inotify.rs"]
mod native;
#[cfg(not(target_os = "linux"))]
#[path = "watch/notify.rs"]
mod native;
mod thread;
mod tree;

use std::path::{Path, PathBuf};

pub(crate) use thread::{Found, Teller, Watching, start};

use crate::config::Config;
use crate::pattern::Groups;

/// What a watcher has to say.
#[derive(Debug)]
pub(crate) enum Notice {
    /// What changed, and when that was seen.
    Changed(Vec<crate::core::Change>, std::time::Instant),
    ConfigChanged,
    Warning(String),
    /// The number of directories and files changed.
    Counted(Found),
    /// Watching has ended for good.
    Failed(String),
}

/// What to watch, and what of it never counts.
pub(crate) struct Scope {
    pub(crate) root: PathBuf,
    pub(crate) groups: Groups,
    pub(crate) config_file: PathBuf,
    own: OwnFiles,
}

impl Scope {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            root: config.root.clone(),
            groups: Groups::new(config),
            config_file: config.file.clone(),
            own: OwnFiles::new(config),
        }
    }

    /// Whether a change of this file, relative to root, counts.
    fn is_match(&self, path: &str) -> bool {
        !self.own.contains(path) && self.groups.is_match(path)
    }
}

/// The files the loop itself writes: the state file and its neighbours.
struct OwnFiles {
    /// The state file relative to root, when it lies there.
    state: Option<String>,
    /// The log files of processes, likewise.
    logs: Vec<String>,
}

impl OwnFiles {
    fn new(config: &Config) -> Self {
        let (root, state_file) = (config.root.as_path(), config.state_file.as_path());
        let inside = |root: &Path, file: &Path| {
            file.strip_prefix(root)
                .ok()
                .map(|path| path.to_string_lossy().into_owned())
        };
        let state = inside(root, state_file).or_else(|| {
            let directory = state_file.parent()?.canonicalize().ok()?;
            inside(
                &root.canonicalize().ok()?,
                &directory.join(state_file.file_name()?),
            )
        });
        let logs = config.process.values().filter_map(|process| {
            let path = crate::config::clean(&root.join(process.log.as_ref()?));
            inside(root, &path)
        });
        Self {
            state,
            logs: logs.collect(),
        }
    }

    fn contains(&self, path: &str) -> bool {
        let is_log = |log: &String| {
            let rest = path.strip_prefix(log.as_str());
            rest.is_some_and(|rest| matches!(rest, "" | ".1" | ".2" | ".3"))
        };
        if self.logs.iter().any(is_log) {
            return true;
        }
        let Some(state) = &self.state else { return false };
        if let Some(rest) = path.strip_prefix(state.as_str()) {
            return matches!(without_draft(rest), "" | ".lock");
        }
        let directory = crate::pattern::parent(state);
        crate::pattern::parent(path) == directory
            && matches!(
                path.rsplit('/').next().map(without_draft).unwrap_or_default(),
                "loop.sock" | "events.log" | "events.log.1" | "events.log.new" | "detached.json"
            )
    }
}

/// The name of the file that a draft will replace.
fn without_draft(name: &str) -> &str {
    name.split_once(".tmp-").map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests;
