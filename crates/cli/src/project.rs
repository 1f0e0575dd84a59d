//! Where a project is and what belongs to it.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exit::Fault;
use crate::files;
use crate::manifest::{FILE_NAME, Manifest};

/// A directory of Beamtalk code, with its manifest if it has one.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    pub(crate) manifest: Option<Manifest>,
}

impl Project {
    /// The project a path belongs to: the nearest directory upwards that has a manifest.
    pub(crate) fn find(path: &Path) -> anyhow::Result<Option<Self>> {
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
    pub(crate) fn at(directory: &Path) -> anyhow::Result<Option<Self>> {
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
    pub(crate) fn require(path: &Path) -> anyhow::Result<Self> {
        Self::find(path)?.ok_or_else(|| {
            let message = format!("no {FILE_NAME} in {} or above", path.display());
            Fault::usage("no_project", message)
                .with_hint("`beamtalk new NAME` makes a project; a single file can be given by its path")
                .into()
        })
    }

    /// A directory without a manifest, taken as it is.
    pub(crate) fn loose(root: &Path) -> anyhow::Result<Self> {
        let root = std::fs::canonicalize(root).map_err(|_| missing(root))?;
        Ok(Self { root, manifest: None })
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.manifest.as_ref().map(|manifest| manifest.name.as_str())
    }

    /// `src/**/*.bt`; without a manifest and without `src/`, the `.bt` files of the directory itself.
    pub(crate) fn sources(&self) -> anyhow::Result<Vec<PathBuf>> {
        let directory = self.root.join("src");
        if directory.is_dir() {
            return files::find(&directory, &["bt"]);
        }
        if self.manifest.is_some() {
            return Ok(Vec::new());
        }
        let entries =
            std::fs::read_dir(&self.root).with_context(|| format!("cannot read {}", self.root.display()))?;
        let mut found: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.is_file() && files::has_extension(path, &["bt"]))
            .collect();
        found.sort();
        Ok(found)
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.root.join("_build/dev/ebin")
    }
}

fn missing(path: &Path) -> Fault {
    Fault::usage("path_missing", format!("{} does not exist", path.display()))
}
