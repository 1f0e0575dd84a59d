//! The hash index: what each output was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;
use crate::findings::Finding;

pub(crate) const FILE_NAME: &str = ".beamtalk-index.json";

/// What the modules in a directory were built from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    /// Compiler, library, Erlang, manifest and dependencies: a change rebuilds everything.
    pub(crate) environment: String,
    /// What every file depends on without naming it: extensions of library classes and the like.
    pub(crate) global: String,
    pub(crate) files: BTreeMap<String, Entry>,
}

/// One source file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) hash: String,
    pub(crate) modules: Vec<String>,
    /// The module of each class.
    #[serde(default)]
    pub(crate) classes: BTreeMap<String, String>,
    /// Every declared name with the hash of what others can see of it.
    pub(crate) declares: BTreeMap<String, String>,
    /// Capitalised names in the text, and the hash each had when this file was compiled.
    pub(crate) uses: BTreeMap<String, String>,
    pub(crate) findings: Vec<Finding>,
}

impl Index {
    /// A missing or damaged index is an empty one: everything is built again.
    pub(crate) fn read(directory: &Path) -> Self {
        std::fs::read(directory.join(FILE_NAME))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    pub(crate) fn to_bytes(&self) -> anyhow::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    pub(crate) fn write(&self, directory: &Path) -> anyhow::Result<()> {
        files::write_atomic(&directory.join(FILE_NAME), &self.to_bytes()?)
    }

    pub(crate) fn modules(&self) -> BTreeSet<&str> {
        self.files
            .values()
            .flat_map(|entry| entry.modules.iter().map(String::as_str))
            .collect()
    }

    /// The module of every class.
    pub(crate) fn classes(&self) -> BTreeMap<String, String> {
        let all = self.files.values().flat_map(|entry| &entry.classes);
        all.map(|(class, module)| (class.clone(), module.clone()))
            .collect()
    }

    /// Whether these very texts are what the index was made from, and every module is still there.
    pub(crate) fn is_current<'a>(
        &self,
        environment: &str,
        hashes: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
        directory: &Path,
    ) -> bool {
        self.environment == environment
            && self.files.len() == hashes.len()
            && hashes
                .into_iter()
                .all(|(path, hash)| self.files.get(path).is_some_and(|entry| entry.hash == hash))
            && self
                .modules()
                .iter()
                .all(|module| directory.join(format!("{module}.beam")).is_file())
    }
}
