//! The standard library: its classes, and its files as read-only documents. Read once for the whole program.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use beamtalk_compiler::{ClassTable, Origin, SourceFile, module_name};
use ecow::EcoString;

use crate::uri;
use crate::world::{Access, File};

/// Package of the library's classes.
const PACKAGE: &str = "stdlib";

#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) table: ClassTable,
    /// By file name, such as `Integer.bt`.
    pub(crate) files: BTreeMap<EcoString, Arc<File>>,
}

impl Library {
    /// The library of this binary.
    pub(crate) fn get() -> &'static Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        LIBRARY.get_or_init(Self::read)
    }

    fn read() -> Self {
        let sources: Vec<(&str, &str)> = beamtalk_project::source::library_sources().collect();
        let parsed = beamtalk_project::source::parallel(&sources, |(name, text)| SourceFile {
            path: EcoString::from(*name),
            text: EcoString::from(*text),
            unit: beamtalk_syntax::parse_file(text).unit,
            package: Some(EcoString::from(PACKAGE)),
            module: EcoString::from(module_name(Some(PACKAGE), name)),
            origin: Origin::Library,
        });
        let mut table = ClassTable::empty();
        let mut files = BTreeMap::new();
        for file in parsed {
            let kept = table.take(file);
            let name = kept.path.clone();
            let file = File::new(uri::of_library(&name), kept, Access::Library);
            files.insert(name, Arc::new(file));
        }
        Self { table, files }
    }
}
