//! The state directory: `BEAMTALK_HOME`, or `.beamtalk` in the user's home.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// A state directory that exists, is ours, and nobody else can write.
#[derive(Clone, Debug)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Where the state directory is; it need not exist.
    pub fn location() -> Result<PathBuf, Error> {
        if let Some(path) = std::env::var_os("BEAMTALK_HOME").filter(|value| !value.is_empty()) {
            let path = PathBuf::from(path);
            return if path.is_absolute() {
                Ok(path)
            } else {
                Err(Error::RelativeHome { path })
            };
        }
        let home = std::env::var_os("HOME")
            .filter(|value| !value.is_empty())
            .ok_or(Error::NoHome)?;
        Ok(PathBuf::from(home).join(".beamtalk"))
    }

    /// Open the state directory, creating it if it is missing.
    pub fn open() -> Result<Self, Error> {
        let path = Self::location()?;
        create_private(&path)?;
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A private directory below the state directory, created if it is missing.
    pub fn directory(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        create_private(&path)?;
        Ok(path)
    }
}

/// Make sure of a directory with mode 0700 that belongs to us.
fn create_private(path: &Path) -> Result<(), Error> {
    if let Some(parent) = path.parent()
        && !parent.exists()
    {
        create_private(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(cause) => {
            return Err(Error::File {
                action: "create",
                path: path.to_owned(),
                cause,
            });
        }
    }
    let metadata = fs::metadata(path).map_err(Error::file("read", path))?;
    if !metadata.is_dir() {
        return Err(Error::NotADirectory {
            path: path.to_owned(),
        });
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::ForeignOwner {
            path: path.to_owned(),
        });
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(Error::WritableByOthers {
            path: path.to_owned(),
        });
    }
    if mode != 0o700 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(Error::file("protect", path))?;
    }
    Ok(())
}
