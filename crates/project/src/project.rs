//! Where a project is and what belongs to it.

use std::path::{Path, PathBuf};

use beamtalk_storage::StateDirectory;

use crate::error::{At, Result};
use crate::fault::Fault;
use crate::files;
use crate::manifest::{FILE_NAME, Manifest};

/// A directory of Beamtalk code, with its manifest if it has one.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    pub manifest: Option<Manifest>,
}

impl Project {
    /// The project a path belongs to: the nearest directory upwards that has a manifest.
    pub fn find(path: &Path) -> Result<Option<Self>> {
        let start = std::fs::canonicalize(path).map_err(|_| missing(path))?;
        let start = if start.is_dir() {
            start
        } else {
            start.parent().unwrap_or(&start).to_owned()
        };
        for directory in start.ancestors() {
            if let Some(project) = Self::at(directory)? {
                return Ok(Some(project));
            }
        }
        Ok(None)
    }

    /// The project whose manifest is in this very directory.
    pub fn at(directory: &Path) -> Result<Option<Self>> {
        let manifest = directory.join(FILE_NAME);
        if !manifest.is_file() {
            return Ok(None);
        }
        Ok(Some(Self {
            root: directory.to_owned(),
            manifest: Some(Manifest::read(&manifest)?),
        }))
    }

    /// The project of a path, which must have a manifest.
    pub fn require(path: &Path) -> Result<Self> {
        Self::find(path)?.ok_or_else(|| {
            let message = format!("no {FILE_NAME} in {} or above", path.display());
            Fault::usage("no_project", message)
                .with_hint("`beamtalk new NAME` makes a project; a single file can be given by its path")
                .into()
        })
    }

    /// A directory without a manifest, taken as it is.
    pub fn loose(root: &Path) -> Result<Self> {
        let root = std::fs::canonicalize(root).map_err(|_| missing(root))?;
        Ok(Self { root, manifest: None })
    }

    pub fn name(&self) -> Option<&str> {
        self.manifest.as_ref().map(|manifest| manifest.name.as_str())
    }

    /// `src/**/*.bt`; without a manifest and without `src/`, the `.bt` files of the directory itself.
    pub fn sources(&self) -> Result<Vec<PathBuf>> {
        let directory = self.root.join("src");
        if directory.is_dir() {
            return files::find(&directory, &["bt"]);
        }
        if self.manifest.is_some() {
            return Ok(Vec::new());
        }
        let entries = std::fs::read_dir(&self.root).at("cannot read", &self.root)?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.is_file() && files::has_extension(path, &["bt"]))
            .collect();
        found.sort();
        Ok(found)
    }

    pub fn output(&self) -> PathBuf {
        self.build_directory().join("dev/ebin")
    }

    /// Where what is built goes: below the project or, where nothing can be written there, below the user's own state.
    pub fn build_directory(&self) -> PathBuf {
        let own = self.root.join("_build");
        let written = if own.exists() { &own } else { &self.root };
        if !StateDirectory::is_read_only(written) {
            return own;
        }
        StateDirectory::open(None).map_or(own, |state| state.build_of(&self.root))
    }
}

fn missing(path: &Path) -> Fault {
    Fault::usage("path_missing", format!("{} does not exist", path.display()))
}
