//! The hash index: what each output was made from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::files;
use crate::findings::Finding;

pub const FILE_NAME: &str = ".beamtalk-index.json";

/// What the modules in a directory were built from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    /// Compiler, library, Erlang, manifest and dependencies: a change rebuilds everything.
    pub environment: String,
    /// What every file depends on without naming it: extensions of library classes and the like.
    pub global: String,
    pub files: BTreeMap<String, Entry>,
}

/// One source file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub hash: String,
    pub modules: Vec<String>,
    /// The module of each class.
    #[serde(default)]
    pub classes: BTreeMap<String, String>,
    /// Every declared name with the hash of what others can see of it.
    pub declares: BTreeMap<String, String>,
    /// Capitalised names in the text, and the hash each had when this file was compiled.
    pub uses: BTreeMap<String, String>,
    pub findings: Vec<Finding>,
}

impl Index {
    /// A missing or damaged index is an empty one: everything is built again.
    pub fn read(directory: &Path) -> Self {
        files::read_kept(&directory.join(FILE_NAME))
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an index is made of maps with text keys")
    }

    pub fn write(&self, directory: &Path) -> Result<()> {
        files::write_atomic(&directory.join(FILE_NAME), &self.to_bytes())
    }

    pub fn modules(&self) -> BTreeSet<&str> {
        self.files
            .values()
            .flat_map(|entry| entry.modules.iter().map(String::as_str))
            .collect()
    }

    /// The module of every class.
    pub fn classes(&self) -> BTreeMap<String, String> {
        let all = self.files.values().flat_map(|entry| &entry.classes);
        all.map(|(class, module)| (class.clone(), module.clone()))
            .collect()
    }

    /// Whether these very texts are what the index was made from, and every module is still there.
    pub fn is_current<'a>(
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

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::{FILE_NAME, Index};

    /// Whatever stands in the place of the index, reading it ends and finds none.
    #[test]
    fn odd_things_in_the_place_of_the_index_are_as_good_as_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join(FILE_NAME);
        mknodat(CWD, &place, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(Index::read(directory.path()), Index::default());
        std::fs::remove_file(&place).unwrap();
        std::fs::File::create(&place).unwrap().set_len(3 << 30).unwrap();
        assert_eq!(Index::read(directory.path()), Index::default());
        std::fs::remove_file(&place).unwrap();
        Index::default().write(directory.path()).unwrap();
        assert_eq!(Index::read(directory.path()), Index::default());
    }
}
