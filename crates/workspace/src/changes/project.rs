//! The source files of a project, as far as changes are concerned.

use std::io;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::plan::FileState;

/// The project's root, with symbolic links resolved.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    pub(crate) fn new(root: &Path) -> Self {
        Self {
            root: root.canonicalize().unwrap_or_else(|_| root.to_owned()),
        }
    }

    /// A path as entries have it: relative to the project, without detours. `None` when it does not lie below it.
    pub(crate) fn relative(&self, file: &str) -> Option<String> {
        let path = Path::new(file);
        let path = if path.is_absolute() {
            path.strip_prefix(&self.root).ok()?
        } else {
            path
        };
        let mut parts = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(part) => parts.push(part.to_str()?),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        (!parts.is_empty()).then(|| parts.join("/"))
    }

    /// The file itself behind links; `None` when that does not lie in the project.
    pub(crate) fn resolve(&self, file: &str) -> io::Result<Option<PathBuf>> {
        let Some(relative) = self.relative(file) else {
            return Ok(None);
        };
        let mut path = self.root.join(relative);
        let mut missing = Vec::new();
        // The nearest part that exists decides where the rest would be made.
        let resolved = loop {
            match path.canonicalize() {
                Ok(resolved) => break resolved,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A link to nowhere is no place to write to.
                    if path.symlink_metadata().is_ok() {
                        return Ok(None);
                    }
                    let Some(name) = path.file_name().map(ToOwned::to_owned) else {
                        return Ok(None);
                    };
                    missing.push(name);
                    path.pop();
                }
                Err(error) => return Err(error),
            }
        };
        if !resolved.starts_with(&self.root) {
            return Ok(None);
        }
        Ok(Some(
            missing.iter().rev().fold(resolved, |path, name| path.join(name)),
        ))
    }

    pub(crate) fn state(&self, file: &str) -> FileState {
        let path = match self.resolve(file) {
            Ok(Some(path)) => path,
            Ok(None) => return FileState::Outside,
            Err(error) => return FileState::Unreadable(error.to_string()),
        };
        match beamtalk_storage::read_written(&path) {
            Ok(bytes) => {
                let hash = hash(&bytes);
                match String::from_utf8(bytes) {
                    Ok(text) => FileState::Text { text, hash },
                    Err(_) => FileState::Unreadable("the file is not UTF-8".to_owned()),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => FileState::Missing,
            Err(error) => FileState::Unreadable(error.to_string()),
        }
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
