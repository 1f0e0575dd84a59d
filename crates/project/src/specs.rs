//! The types of Erlang modules, read from their `.beam` files: of OTP, and of the project's `native/`.
//!
//! What was read is kept by the hash of the file, so that a second run decodes nothing.

mod beam;
mod kept;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamtalk_compiler::ffi::{self, Function, Module, SpecTable};
use beamtalk_node::Erlang;

use crate::build::{Package, graph};
use crate::files;
use crate::source::{self, Parsed};

pub use beam::Fault;

/// Where modules are looked for, and where what was read is kept.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    directories: Vec<PathBuf>,
    /// Of modules that are compiled into the directories.
    sources: Vec<PathBuf>,
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
            ..Self::default()
        }
    }

    /// The same with the Erlang of this system, if there is one.
    pub fn installed(directories: Vec<PathBuf>) -> Self {
        Self::new(directories, Erlang::find().ok().as_ref())
    }

    /// Those of a package, with its dependencies and the installed OTP. What is read is kept in its output.
    pub fn of_package(package: &Package) -> Self {
        let outputs = package
            .in_order()
            .map(|each| graph::native_output(&each.output()));
        let mut specs = Self::new(outputs.collect(), Erlang::find().ok().as_ref());
        specs.sources = package.in_order().filter_map(Package::native_directory).collect();
        if package.project.manifest.is_some() {
            let output = package.output();
            specs.kept = Some(output.parent().unwrap_or(&output).join("specs"));
        }
        specs
    }

    /// The same, leaving no file behind.
    #[must_use]
    pub fn without_keeping(mut self) -> Self {
        self.kept = None;
        self
    }

    /// Without OTP nothing can be said about a module that is not there, nor when others are added to its path.
    fn is_complete(&self) -> bool {
        std::env::var_os("ERL_LIBS").is_none_or(|added| added.is_empty())
            && self.find("lists").is_some()
            && self.find("erlang").is_some()
    }

    /// A module that is not there yet, or is older than its source; those of the runtime come with it.
    fn is_open(&self, module: &str, found: Option<&Path>) -> bool {
        if module.starts_with("beamtalk_") || module.starts_with("bt@") {
            return true;
        }
        let changed = |path: &Path| path.metadata().and_then(|it| it.modified()).ok();
        let name = format!("{module}.erl");
        let mut sources = self.sources.iter().flat_map(|directory| {
            // Sources may lie in directories of their own.
            let below = files::find(directory, &["erl"]).unwrap_or_default();
            below.into_iter().filter(|path| path.ends_with(&name))
        });
        sources.any(|source| found.is_none_or(|found| changed(found) < changed(&source)))
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
            let path = self.find(name);
            if self.is_open(name, path.as_deref()) {
                return Looked::Open;
            }
            match path.map(|path| self.functions(name, &path)) {
                Some(Ok(functions)) => Looked::Found(functions),
                // A file that cannot be understood says nothing about the module.
                Some(Err(_)) => Looked::Open,
                None => Looked::Missing,
            }
        });
        for (name, found) in names.into_iter().zip(read) {
            match found {
                Looked::Found(functions) => table.add(name, Arc::new(Module::new(functions))),
                Looked::Missing => table.add_missing(name),
                Looked::Open => {}
            }
        }
        table
    }
}

enum Looked {
    Found(Vec<Function>),
    Missing,
    Open,
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
