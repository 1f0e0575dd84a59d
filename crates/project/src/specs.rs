//! The types of Erlang modules, read from their `.beam` files: of OTP, and of the project's `native/`.
//!
//! What was read is kept by the hash of the file, so that a second run decodes nothing.

mod beam;
mod kept;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamtalk_compiler::ffi::{self, Function, Module, SpecTable};
use beamtalk_node::Erlang;

use crate::files;
use crate::source::{self, Parsed};

pub use beam::Fault;

/// Where modules are looked for, and where what was read is kept.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    directories: Vec<PathBuf>,
    kept: Option<PathBuf>,
}

impl Specs {
    /// These directories first, then the applications of OTP.
    pub fn new(directories: Vec<PathBuf>, erlang: Option<&Erlang>) -> Self {
        let mut all = directories;
        if let Some(library) = erlang.and_then(Erlang::library_directory) {
            all.extend(applications(&library));
        }
        Self {
            directories: all,
            kept: None,
        }
    }

    /// The same with the Erlang of this system, if there is one.
    pub fn installed(directories: Vec<PathBuf>) -> Self {
        Self::new(directories, Erlang::find().ok().as_ref())
    }

    /// Keep what is read in this directory.
    #[must_use]
    pub fn keep_in(mut self, directory: PathBuf) -> Self {
        self.kept = Some(directory);
        self
    }

    /// Without OTP nothing can be said about a module that is not there.
    fn is_complete(&self) -> bool {
        self.find("lists").is_some() && self.find("erlang").is_some()
    }

    /// The file of a module.
    pub fn find(&self, module: &str) -> Option<PathBuf> {
        let name = format!("{module}.beam");
        let mut paths = self.directories.iter().map(|directory| directory.join(&name));
        paths.find(|path| path.is_file())
    }

    /// The exported functions of a module's file.
    pub fn functions(&self, module: &str, path: &Path) -> Result<Vec<Function>, Fault> {
        let bytes = std::fs::read(path)?;
        let hash = files::hash(&bytes);
        if let Some(functions) = self.kept.as_ref().and_then(|kept| kept::read(kept, &hash)) {
            return Ok(functions);
        }
        let functions = beam::read(module, &bytes)?;
        if let Some(kept) = &self.kept {
            kept::write(kept, &hash, &functions);
        }
        Ok(functions)
    }

    /// Everything that some files need to know about Erlang.
    pub fn table<'a>(&self, files: impl Iterator<Item = &'a Parsed>) -> SpecTable {
        let mut names: Vec<_> = files.flat_map(|file| ffi::modules(&file.file)).collect();
        names.sort_unstable();
        names.dedup();
        let mut table = SpecTable::default();
        if names.is_empty() || !self.is_complete() {
            return table;
        }
        let read = source::parallel(&names, |name| {
            let path = self.find(name)?;
            Some(self.functions(name, &path))
        });
        for (name, found) in names.into_iter().zip(read) {
            match found {
                Some(Ok(functions)) => table.add(name, Arc::new(Module::new(functions))),
                // A file that cannot be understood says nothing about the module.
                Some(Err(_)) => {}
                None => table.add_missing(name),
            }
        }
        table
    }
}

/// `lib/stdlib-4.2/ebin` and its like.
fn applications(library: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(library) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join("ebin")))
        .filter(|path| path.is_dir())
        .collect();
    // Of two versions the newer one is loaded.
    found.sort();
    found.reverse();
    found
}
