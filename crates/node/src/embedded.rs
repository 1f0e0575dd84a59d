//! The runtime and the standard library, carried inside the binary and unpacked once per version.

use std::fs;
use std::path::{Path, PathBuf};

use beamtalk_storage::StateDirectory;

use crate::Error;

/// Records of (path, content), each as two little-endian `u32` lengths and the bytes themselves.
static BLOB: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.blob"));

/// Changes whenever anything in the runtime or the library does.
pub const LIBRARY_HASH: &str = env!("BEAMTALK_BLOB_HASH");

/// Written last, so a directory that has it is complete.
const MARKER: &str = "complete";

/// An unpacked runtime.
#[derive(Clone, Debug)]
pub struct Runtime {
    path: PathBuf,
}

impl Runtime {
    /// The runtime of this binary: `BEAMTALK_RUNTIME_DIR`, or unpacked below the state directory.
    pub fn prepare() -> Result<Self, Error> {
        if let Some(path) = std::env::var_os("BEAMTALK_RUNTIME_DIR").filter(|value| !value.is_empty()) {
            let path = PathBuf::from(path);
            return if path.join("ebin").is_dir() {
                Ok(Self { path })
            } else {
                Err(Error::NotADirectory {
                    path: path.join("ebin"),
                })
            };
        }
        Self::below(StateDirectory::open(None)?.directory("runtime")?.path())
    }

    /// The runtime of this binary, unpacked in a directory of the caller's.
    pub fn below(parent: &Path) -> Result<Self, Error> {
        let path = parent.join(format!("{}-{LIBRARY_HASH}", env!("CARGO_PKG_VERSION")));
        if !path.join(MARKER).is_file() {
            unpack(parent, &path)?;
        }
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The one directory of code: runtime and library modules together.
    pub fn ebin(&self) -> PathBuf {
        self.path.join("ebin")
    }

    /// The class tables as they are after loading the whole library.
    pub fn image(&self) -> PathBuf {
        self.path.join("image")
    }
}

/// The sources of the standard library: file name and text, in name order.
pub fn library_sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    records()
        .filter_map(|(path, content)| Some((path.strip_prefix("lib/")?, std::str::from_utf8(content).ok()?)))
}

/// Unpack beside the target and rename, so that concurrent starts never see half a runtime.
fn unpack(parent: &Path, target: &Path) -> Result<(), Error> {
    let staging = tempfile::Builder::new()
        .prefix(".unpack-")
        .tempdir_in(parent)
        .map_err(Error::file("create a directory in", parent))?;
    fs::create_dir(staging.path().join("ebin")).map_err(Error::file("create", staging.path()))?;
    for (path, content) in records().filter(|(path, _)| !path.starts_with("lib/")) {
        write(&staging.path().join(path), content)?;
    }
    write(&staging.path().join(MARKER), b"")?;
    match fs::rename(staging.path(), target) {
        Ok(()) => {
            // The directory has moved away; nothing is left to clean up.
            drop(staging.keep());
            Ok(())
        }
        // Someone else was faster, with the very same content.
        Err(_) if target.join(MARKER).is_file() => Ok(()),
        // Left over from a damaged copy: replace it.
        Err(_) if target.is_dir() => {
            let aside = staging.path().join("damaged");
            fs::rename(target, &aside).map_err(Error::file("replace", target))?;
            fs::remove_dir_all(&aside).map_err(Error::file("remove", &aside))?;
            fs::rename(staging.path(), target).map_err(Error::file("create", target))?;
            drop(staging.keep());
            Ok(())
        }
        Err(cause) => Err(Error::File {
            action: "create",
            path: target.to_owned(),
            cause,
        }),
    }
}

/// The whole directory is renamed into place once every file is written.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody reads before the directory is in place"
)]
fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    fs::write(path, content).map_err(Error::file("write", path))
}

fn records() -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let mut rest = BLOB;
    std::iter::from_fn(move || {
        let (name_length, after) = rest.split_first_chunk::<4>()?;
        let (content_length, after) = after.split_first_chunk::<4>()?;
        let (name, after) = after.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
        let (content, after) = after.split_at_checked(u32::from_le_bytes(*content_length) as usize)?;
        rest = after;
        Some((std::str::from_utf8(name).ok()?, content))
    })
}
