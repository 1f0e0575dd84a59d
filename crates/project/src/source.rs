//! Source files in memory: read, hashed, parsed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use beamtalk_compiler::{ClassTable, Origin, SourceFile};
use beamtalk_syntax::Parse;
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::EcoString;

use crate::error::{At, Result};
use crate::files;
use crate::findings::{FileFindings, Finding};

/// A file as it is on disk. Bytes that are no text are kept as a finding.
#[derive(Clone, Debug)]
pub struct Text {
    pub path: PathBuf,
    /// Relative to the project, for people.
    pub shown: String,
    pub content: String,
    pub hash: String,
    fault: Option<Diagnostic>,
}

impl Text {
    pub fn read(path: &Path, base: &Path) -> Result<Self> {
        let bytes = beamtalk_storage::read_written(path).at("cannot read", path)?;
        Ok(Self::new(bytes, path, base))
    }

    fn new(bytes: Vec<u8>, path: &Path, base: &Path) -> Self {
        let hash = files::hash(&bytes);
        let (content, fault) = match String::from_utf8(bytes) {
            Ok(content) => (content, None),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (text, Some(not_utf8(at)))
            }
        };
        Self {
            path: path.to_owned(),
            shown: files::shown(path, base),
            content,
            hash,
            fault,
        }
    }

    /// The same, where a file that cannot be read is one with a fault: a link that leads nowhere, or a file that is
    /// gone since it was listed, says nothing about the others.
    pub fn find(path: &Path, base: &Path) -> Self {
        match beamtalk_storage::read_written(path) {
            Ok(bytes) => Self::new(bytes, path, base),
            Err(cause) => {
                let message = format!("the file cannot be read: {cause}");
                Self {
                    path: path.to_owned(),
                    shown: files::shown(path, base),
                    content: String::new(),
                    hash: files::hash(message.as_bytes()),
                    fault: Some(Diagnostic::error("E0901", Span::new(0, 0), message)),
                }
            }
        }
    }

    /// Why the file is no text, if it is none.
    pub fn fault(&self) -> Option<&Diagnostic> {
        self.fault.as_ref()
    }

    /// Parse it as a file of classes.
    pub fn parse(self, package: Option<&str>, module_path: &str, origin: Origin) -> Parsed {
        let Parse {
            unit,
            mut diagnostics,
        } = beamtalk_syntax::parse_file(&self.content);
        diagnostics.splice(0..0, self.fault);
        let file = SourceFile {
            path: EcoString::from(self.shown.as_str()),
            text: EcoString::from(self.content),
            unit,
            package: package.map(EcoString::from),
            module: EcoString::from(beamtalk_compiler::module_name(package, module_path)),
            origin,
        };
        Parsed {
            path: self.path,
            hash: self.hash,
            file,
            diagnostics,
        }
    }
}

fn not_utf8(at: usize) -> Diagnostic {
    let at = u32::try_from(at).unwrap_or(u32::MAX);
    Diagnostic::error("E0901", Span::new(at, at), "the file is not UTF-8 text")
        .with_hint("Save the file in UTF-8.")
}

/// A parsed file with what the parser found.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub path: PathBuf,
    pub hash: String,
    pub file: SourceFile,
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Parser and compiler findings together, in source order.
    pub fn findings(&self, compiler: &[Diagnostic]) -> FileFindings {
        let mut findings: Vec<Finding> = self
            .diagnostics
            .iter()
            .chain(compiler)
            .map(Finding::from)
            .collect();
        findings.sort_by_key(|finding| finding.span);
        FileFindings {
            path: self.file.path.to_string(),
            text: self.file.text.to_string(),
            findings,
        }
    }
}

/// The sources of the standard library: file name and text, in name order.
pub use beamtalk_node::library_sources;

/// Package of the library's classes.
pub const LIBRARY_PACKAGE: &str = "stdlib";

/// A file of the library.
pub fn library_file(name: &str, text: &str) -> SourceFile {
    SourceFile {
        path: EcoString::from(name),
        text: EcoString::from(text),
        unit: beamtalk_syntax::parse_file(text).unit,
        package: Some(EcoString::from(LIBRARY_PACKAGE)),
        module: EcoString::from(beamtalk_compiler::module_name(Some(LIBRARY_PACKAGE), name)),
        origin: Origin::Library,
    }
}

/// The classes of the standard library.
pub fn library_table() -> ClassTable {
    let sources: Vec<(&str, &str)> = library_sources().collect();
    let mut table = ClassTable::empty();
    for file in parallel(&sources, |(name, text)| library_file(name, text)) {
        table.take(file);
    }
    table
}

/// Trees nest as deep as the parser allows, and walking them takes stack.
pub const STACK: usize = 256 * 1024 * 1024;

/// Each worker takes work so many times, when there is enough of it: one that was given more than others is not waited
/// for long.
const SHARES: usize = 32;

/// Do independent work on all items with every core, keeping their order.
pub fn parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism()
        .map_or(1, std::num::NonZero::get)
        .min(items.len());
    if workers <= 1 {
        return items.iter().map(work).collect();
    }
    // Many small items are taken by the dozen: asking for each would cost more than doing it.
    let share = (items.len() / (workers * SHARES)).max(1);
    let parts: Vec<&[T]> = items.chunks(share).collect();
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Vec<R>)>> = Mutex::new(Vec::with_capacity(parts.len()));
    let run = || {
        while let Some((at, part)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            parts.get(at).map(|part| (at, part))
        } {
            let results = part.iter().map(&work).collect();
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((at, results));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            // A thread that cannot be had leaves its share to the others.
            drop(
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, run),
            );
        }
        run();
    });
    let mut results = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().flat_map(|(_, results)| results).collect()
}
