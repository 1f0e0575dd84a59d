//! Names that become directories: ids of workspaces, names of daemon sessions.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use crate::StorageError;
use crate::encoding::sha256_hex;

const LONGEST_NAME: usize = 64;
/// Digits of the hash of a project's path that make its id.
const ID_DIGITS: usize = 12;

/// Which workspace: a hash of its project's path, or a name the user gave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspaceId(String);

impl WorkspaceId {
    /// The id of the project at a canonical absolute path.
    pub fn for_root(root: &Path) -> Result<Self, StorageError> {
        let text = root.to_str().ok_or_else(|| StorageError::NotUtf8 {
            path: root.to_owned(),
        })?;
        let mut digits = sha256_hex(text.as_bytes());
        digits.truncate(ID_DIGITS);
        Ok(Self(digits))
    }

    /// A name given by flag, or read back from the file system.
    pub fn named(name: &str) -> Result<Self, StorageError> {
        if !name.chars().all(is_name_character) {
            return Err(StorageError::InvalidName {
                name: name.to_owned(),
            });
        }
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(StorageError::NameLength { length: name.len() });
        }
        if is_shell_name(name) {
            return Err(StorageError::ReservedName {
                name: name.to_owned(),
            });
        }
        Ok(Self(name.to_owned()))
    }

    /// A name from the environment: an empty variable names nothing, and one that is no name is refused as a flag is.
    /// Repairing it would make one workspace of two names.
    pub fn from_environment(value: &OsStr) -> Result<Option<Self>, StorageError> {
        if value.is_empty() {
            return Ok(None);
        }
        let shown = value.to_string_lossy();
        Self::named(&shown)
            .map(Some)
            .map_err(|cause| StorageError::InvalidVariable {
                name: shown.into_owned(),
                cause: Box::new(cause),
            })
    }

    /// The workspace the user names: by flag, else by `BEAMTALK_WORKSPACE`, else not at all.
    pub fn explicit(flag: Option<&str>) -> Result<Option<Self>, StorageError> {
        if let Some(name) = flag {
            return Self::named(name).map(Some);
        }
        match std::env::var_os("BEAMTALK_WORKSPACE") {
            Some(value) => Self::from_environment(&value),
            None => Ok(None),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The name of the run directory of one daemon.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(String);

impl SessionName {
    /// The name a daemon gets: that of the workspace if the user named one, else of the terminal.
    pub fn choose(explicit: Option<&WorkspaceId>, parent_pid: u32) -> Self {
        match explicit {
            Some(id) => Self(id.0.clone()),
            None => Self(format!("shell-{parent_pid}")),
        }
    }

    /// A name read back from a record or a directory.
    pub fn parse(name: &str) -> Result<Self, StorageError> {
        // Twice the longest name and the `-` between: see `beside`.
        let is_name =
            !name.is_empty() && name.len() <= 2 * LONGEST_NAME + 1 && name.chars().all(is_name_character);
        if is_name {
            Ok(Self(name.to_owned()))
        } else {
            Err(StorageError::UnsafeName {
                name: name.to_owned(),
            })
        }
    }

    /// The name to use when a daemon of another workspace lives under this one.
    #[must_use]
    pub fn beside(&self, id: &WorkspaceId) -> Self {
        Self(format!("{}-{}", self.0, id.0))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
}

fn is_shell_name(name: &str) -> bool {
    name.strip_prefix("shell-")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests;
