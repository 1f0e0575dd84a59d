//! The types of Erlang modules, read from their `.beam` files: of OTP, and of the project's `native/`.
//!
//! What was read is kept by the hash of the file, so that a second run decodes nothing.

mod beam;
mod kept;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beamtalk_compiler::ffi::{self, Function, Looked, Module, SpecTable};
use beamtalk_node::Erlang;
use beamtalk_storage::read_regular;
use ecow::EcoString;

use crate::build::{Package, graph};
use crate::source::Parsed;
use crate::{Project, files};

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

    /// Those of a project's scripts. Where there are dependencies, nothing is said: their modules may be anywhere.
    pub fn of_scripts(project: &Project) -> Self {
        let manifest = project.manifest.as_ref();
        if manifest.is_some_and(|manifest| !manifest.dependencies.is_empty()) {
            return Self::default();
        }
        let mut specs = Self::installed(Vec::new());
        specs.sources = ["native", "test"].map(|name| project.root.join(name)).into();
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
        let bytes = read_regular(path, beam::MAX_BYTES)?;
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
        self.later(files.flat_map(|file| ffi::modules(&file.file)).collect())
    }

    /// What is known about these modules; each is read when somebody asks for it.
    pub fn later(&self, names: BTreeSet<EcoString>) -> SpecTable {
        if names.is_empty() || !self.is_complete() {
            return SpecTable::default();
        }
        let specs = self.clone();
        SpecTable::later(names, move |name| specs.look(name))
    }

    fn look(&self, name: &str) -> Looked {
        let path = self.find(name);
        if self.is_open(name, path.as_deref()) {
            return Looked::Open;
        }
        match path.map(|path| self.functions(name, &path)) {
            Some(Ok(functions)) => Looked::Found(Module::new(functions)),
            // A file that cannot be understood says nothing about the module.
            Some(Err(_)) => Looked::Open,
            None => Looked::Missing,
        }
    }

    /// Changes with everything that is read here: the installed applications, and the modules of packages.
    pub fn fingerprint(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for directory in &self.directories {
            parts.push(directory.display().to_string());
        }
        let native = self.directories.iter().filter(|it| it.ends_with("native/ebin"));
        for directory in native.chain(&self.sources) {
            for path in files::find(directory, &["beam", "erl"]).unwrap_or_default() {
                let seen = path.metadata().and_then(|it| Ok((it.len(), it.modified()?)));
                parts.push(format!("{} {seen:?}", path.display()));
            }
        }
        parts.push(format!("{:?}", std::env::var_os("ERL_LIBS")));
        files::hash(parts.join("\n").as_bytes())
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
