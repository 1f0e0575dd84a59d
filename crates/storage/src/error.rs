//! What can be wrong with stored state, how a command ends because of it, and what repairs it.

use std::io;
use std::path::{Path, PathBuf};

/// How a command that meets the error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The user asked for something that cannot be: exit 2.
    Usage,
    /// Storage or its owner is not acceptable: exit 5.
    Environment,
}

impl Class {
    pub fn exit_code(self) -> u8 {
        match self {
            Class::Usage => 2,
            Class::Environment => 5,
        }
    }
}

/// Why a file is not accepted as a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretFault {
    #[error("it is a symbolic link")]
    Symlink,
    #[error("it is not a regular file")]
    NotRegular,
    #[error("it belongs to another user")]
    ForeignOwner,
    #[error("it has {0} names (hard links)")]
    Links(u64),
    #[error("its mode {0:04o} lets others in")]
    Mode(u32),
    #[error("its content is not a secret of ours")]
    Malformed,
}

#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    #[error("no home directory: set HOME, or BEAMTALK_HOME to an absolute path")]
    NoHome,
    #[error("BEAMTALK_HOME must be an absolute path, not {}", path.display())]
    RelativeHome { path: PathBuf },
    #[error("{} is not a state directory of Beamtalk; nothing was changed", path.display())]
    NotAHome { path: PathBuf },
    #[error("the path of the project is not valid UTF-8: {}", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("Workspace name must contain only letters, numbers, '-' or '_'")]
    InvalidName { name: String },
    #[error("Workspace name must have 1 to 64 characters, not {length}")]
    NameLength { length: usize },
    #[error("Workspace name must not be '{name}': names of that form belong to terminals")]
    ReservedName { name: String },
    #[error("BEAMTALK_WORKSPACE is '{name}'. {cause}")]
    InvalidVariable { name: String, cause: Box<StorageError> },
    #[error("'{name}' is not a name for a file below the state directory")]
    UnsafeName { name: String },
    #[error("there is no workspace '{id}'")]
    NoWorkspace { id: String },
    #[error("{} is a symbolic link", path.display())]
    Symlink { path: PathBuf },
    #[error("{} is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("{} is not a regular file", path.display())]
    NotRegular { path: PathBuf },
    #[error("{} belongs to another user", path.display())]
    ForeignOwner { path: PathBuf },
    #[error("{} may be written by others (mode {mode:04o})", path.display())]
    WritableByOthers { path: PathBuf, mode: u32 },
    #[error("{} is not acceptable: {fault}", path.display())]
    Secret { path: PathBuf, fault: SecretFault },
    #[error("the socket path {} has {length} bytes, over the limit of {limit}", path.display())]
    SocketPathTooLong {
        path: PathBuf,
        length: usize,
        limit: usize,
    },
    #[error("workspace metadata file is empty or corrupt: {}", path.display())]
    CorruptMetadata { path: PathBuf },
    #[error("{} is empty or corrupt", path.display())]
    CorruptRecord { path: PathBuf },
    #[error("process {pid} of {} belongs to another user", path.display())]
    ForeignProcess { pid: u32, path: PathBuf },
    #[error("{} may not be connected to: it is another user's", path.display())]
    ForeignSocket { path: PathBuf },
    #[error("the system gives no random bytes: {0}")]
    Random(io::Error),
    /// Told with its cause: nobody can act on the one without the other.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
}

impl StorageError {
    pub fn class(&self) -> Class {
        match self {
            Self::NoHome
            | Self::RelativeHome { .. }
            | Self::NotUtf8 { .. }
            | Self::InvalidName { .. }
            | Self::NameLength { .. }
            | Self::ReservedName { .. }
            | Self::InvalidVariable { .. }
            | Self::NoWorkspace { .. } => Class::Usage,
            _ => Class::Environment,
        }
    }

    /// A stable name for tools.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NoHome | Self::RelativeHome { .. } | Self::NotAHome { .. } => "bad_home",
            Self::NotUtf8 { .. } => "bad_path",
            Self::InvalidName { .. }
            | Self::NameLength { .. }
            | Self::ReservedName { .. }
            | Self::InvalidVariable { .. } => "bad_name",
            Self::NoWorkspace { .. } => "no_such_workspace",
            Self::SocketPathTooLong { .. } => "socket_path_too_long",
            Self::CorruptMetadata { .. } | Self::CorruptRecord { .. } => "corrupt_state",
            _ => "storage",
        }
    }

    /// What the user can do about it.
    pub fn repair(&self) -> Option<String> {
        match self {
            Self::NotAHome { .. } => {
                Some("set BEAMTALK_HOME to a directory that is empty or does not exist yet".to_owned())
            }
            Self::WritableByOthers { path, .. } => Some(format!("chmod 700 {}", path.display())),
            Self::Symlink { path } | Self::NotADirectory { path } | Self::NotRegular { path } => {
                Some(format!("rm {}", path.display()))
            }
            Self::ForeignOwner { path } => Some(format!("sudo chown -R \"$(id -un)\" {}", path.display())),
            Self::Secret { .. } => Some("beamtalk workspace rotate-cookie".to_owned()),
            Self::SocketPathTooLong { .. } => {
                Some("set BEAMTALK_HOME to a shorter path, such as /tmp/bt-$(id -u)".to_owned())
            }
            Self::InvalidVariable { .. } => {
                Some("set BEAMTALK_WORKSPACE to a valid name, or unset it".to_owned())
            }
            Self::CorruptMetadata { path } => Some(format!(
                "look at {}, then remove the workspace with `beamtalk workspace rm` or repair the file",
                path.display()
            )),
            Self::ForeignProcess { path, .. } | Self::ForeignSocket { path } => Some(format!(
                "make sure that no workspace runs there, then rm {}",
                path.display()
            )),
            Self::File { path, cause, .. } => repair_of(path, cause),
            _ => None,
        }
    }

    /// Wraps an I/O error with what was being done to which path.
    pub fn file<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |cause| Self::File {
            action,
            path,
            cause: cause.into(),
        }
    }
}

/// For those who name the path themselves: the cause alone, as the system gave it.
impl From<StorageError> for io::Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::File { cause, .. } | StorageError::Random(cause) => cause,
            other => io::Error::other(other),
        }
    }
}

/// What helps against an error of the system.
pub fn repair_of(path: &Path, cause: &io::Error) -> Option<String> {
    let path = path.display();
    let elsewhere = "or set BEAMTALK_HOME to a directory elsewhere";
    match cause.kind() {
        io::ErrorKind::StorageFull => Some(format!(
            "make room on the disk that holds {path} (df shows what is left), {elsewhere}"
        )),
        io::ErrorKind::QuotaExceeded => Some(format!(
            "your quota on the disk that holds {path} is used up: remove files of yours there, {elsewhere}"
        )),
        io::ErrorKind::ReadOnlyFilesystem => Some(format!(
            "the file system that holds {path} is mounted read-only: mount it for writing, {elsewhere}"
        )),
        io::ErrorKind::PermissionDenied => Some(format!(
            "{path} and the directories above it must be yours to write (ls -ld shows whose they are), {elsewhere}"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_names_path_cause_and_way_out() {
        for (number, cause, way_out) in [
            (28, "No space left on device", "make room on the disk"),
            (30, "Read-only file system", "mounted read-only"),
            (122, "quota", "your quota on the disk"),
            (13, "Permission denied", "must be yours to write"),
        ] {
            let error = StorageError::file("write", "/h/cookie")(io::Error::from_raw_os_error(number));
            let text = error.to_string();
            assert!(text.starts_with("cannot write /h/cookie: "), "{text}");
            assert!(text.to_lowercase().contains(&cause.to_lowercase()), "{text}");
            let repair = error.repair().unwrap();
            assert!(
                repair.contains(way_out) && repair.contains("/h/cookie"),
                "{repair}"
            );
            assert!(repair.contains("BEAMTALK_HOME"), "{repair}");
        }
    }
}
