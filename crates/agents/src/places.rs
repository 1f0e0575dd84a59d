//! Where things are: namespace, state, configuration.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use beamtalk_storage::sha256_hex;

/// This executable. One that was replaced while we run is found where it was: the new one does the
/// work of sessions that start now.
pub(crate) fn own_program() -> std::io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let name = path.as_os_str().as_bytes();
    Ok(match name.strip_suffix(b" (deleted)") {
        Some(before) if !path.exists() => PathBuf::from(OsStr::from_bytes(before)),
        _ => path,
    })
}

/// The directory of a namespace in which the doors of its sessions are.
pub(crate) const DOORS: &str = "doors";

/// Whether a namespace is the door of a session.
pub(crate) fn is_door(namespace: &Path) -> bool {
    namespace.parent().and_then(Path::file_name) == Some(OsStr::new(DOORS))
}

/// The directories of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    pub namespace: PathBuf,
    /// The Beamtalk home: state of workspaces and of agents.
    pub base: PathBuf,
    pub state: PathBuf,
    pub config: PathBuf,
    pub home: PathBuf,
}

impl Places {
    /// The places that belong to a namespace, by the environment of this process.
    pub fn of(namespace: &Path) -> Self {
        let home = home();
        let base = variable("BEAMTALK_HOME").map_or_else(|| home.join(".beamtalk"), PathBuf::from);
        let config = variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        Places {
            namespace: namespace.to_owned(),
            state: base.join("agents").join(key(namespace)),
            base,
            config: config.join("beamtalk/agents"),
            home,
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.namespace.join("agent")
    }

    /// The directory of the door of a session.
    pub fn door(&self, id: &str) -> PathBuf {
        self.namespace.join(DOORS).join(id)
    }

    /// The file that names the workspace the daemon serves; empty when it serves none.
    pub fn workspace(&self) -> PathBuf {
        self.state.join("workspace")
    }

    /// The file that names the sessions that could not be started again, one on a line with the reason.
    pub fn not_resumed(&self) -> PathBuf {
        self.state.join("not-resumed")
    }

    /// The copies of repositories that sessions work in.
    pub fn worktrees(&self) -> PathBuf {
        self.state.join("worktrees")
    }

    pub fn tmux_socket(&self) -> PathBuf {
        self.namespace.join("tmux.sock")
    }

    pub fn session(&self, id: &str) -> PathBuf {
        self.state.join("sessions").join(id)
    }

    pub fn exited(&self) -> PathBuf {
        self.state.join("sessions/.exited")
    }

    /// How many ended sessions still have a directory.
    pub fn exited_count(&self) -> usize {
        let exited = self.exited();
        crate::files::names(&exited)
            .iter()
            .filter(|name| exited.join(name).is_dir())
            .count()
    }

    pub fn secret(&self) -> PathBuf {
        self.state.join("secret")
    }
}

/// Last component, `-`, and 8 digits of the hash of the whole path.
fn key(namespace: &Path) -> String {
    let whole = namespace.as_os_str().as_encoded_bytes();
    let last = namespace
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{last}-{}", &sha256_hex(whole)[..8])
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The owner's home directory.
pub(crate) fn home() -> PathBuf {
    variable("HOME")
        .map(PathBuf::from)
        .or_else(|| passwd_entry(rustix::process::geteuid().as_raw()).map(|(_, home)| home))
        .unwrap_or_else(|| PathBuf::from("/"))
}

/// Name and home directory of a uid.
pub(crate) fn passwd_entry(uid: u32) -> Option<(String, PathBuf)> {
    let text = std::fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields.as_slice() {
            [name, _, number, _, _, home, ..] if number.parse() == Ok(uid) => {
                Some(((*name).to_owned(), PathBuf::from(home)))
            }
            _ => None,
        }
    })
}

/// The owner's user name.
pub(crate) fn user_name() -> String {
    let uid = rustix::process::geteuid().as_raw();
    passwd_entry(uid).map_or_else(|| uid.to_string(), |(name, _)| name)
}
