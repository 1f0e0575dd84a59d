//! Loading code into the image: what all ways to do so share.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::definitions::{Outline, class_changes};
use beamtalk_wire::answers::{ClassInfo, Diagnostic, LoadAnswer, LoadError, Severity, SymbolInfo};
use beamtalk_wire::requests::Info;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::eval::refuse_errors;
use super::native;
use crate::changes::{Conflict, ConflictReason, Entry, Settled};
use crate::compile::Compiled;
use crate::compile::job::{Job, SourceText, TextOrigin};
use crate::terms;
use crate::workspace::Workspace;

/// The disk's version of a file and the image's changes do not go together: a conflict, and nothing of the file is
/// loaded. An error where the image changed nothing of the file.
pub(super) fn not_merged(
    workspace: &Workspace,
    disk: &SourceText,
    error: ErrorBody,
    notes: &mut Notes,
) -> Option<LoadError> {
    let file = super::changes::project_file(workspace, disk);
    let is_of_file = |entry: &Entry| entry.is_pending() && entry.source_file == file;
    let entries = workspace.changes.borrow().select(is_of_file);
    let Some(file) = file.filter(|_| !entries.is_empty()) else {
        return Some(not_loaded(disk.path.clone(), error));
    };
    notes.left.push(disk.path.clone());
    let told = notes.conflicts.iter().position(|conflict| conflict.file == file);
    let earlier = told.and_then(|at| notes.conflicts.remove(at).detail);
    let titles = || entries.iter().map(Entry::title).collect::<Vec<_>>().join(", ");
    let what = earlier.unwrap_or_else(titles);
    notes.conflicts.push(Conflict {
        file,
        reason: ConflictReason::ExternalEdit,
        detail: Some(format!(
            "{what}; with the image's version it does not compile: {}",
            error.message
        )),
        seqs: entries.iter().map(|entry| entry.seq).collect(),
    });
    None
}

/// Code for the image, and the file it comes from as people know it.
pub(super) struct Unit {
    pub(super) code: Term,
    pub(super) file: String,
}

/// What became of code that was to be loaded.
pub(super) struct Loaded {
    pub(super) answer: LoadAnswer,
    /// Files that the image refused, and why.
    pub(super) refused: Vec<(String, ErrorBody)>,
}

impl Loaded {
    pub(super) fn errors(&self) -> impl Iterator<Item = LoadError> {
        self.refused.iter().map(|(file, error)| {
            let told = not_loaded(file.clone(), error.clone());
            LoadError {
                message: format!("not loaded: {}", error.message),
                ..told
            }
        })
    }
}

/// A file that is left out because of an error.
pub(super) fn not_loaded(path: String, error: ErrorBody) -> LoadError {
    LoadError {
        path: Some(path),
        line: None,
        message: error.message,
        hint: error.hint,
        kind: error.kind.to_string(),
    }
}

/// Load code together. What the image refuses is tried in halves, down to the pieces it refuses by themselves, as long
/// as one more comes in: what cannot be loaded, such as a class whose superclass has errors, leaves the others alone.
pub(super) async fn load_units(
    workspace: &Rc<Workspace>,
    units: Vec<Unit>,
    surroundings: Vec<(&'static str, Term)>,
) -> Result<Loaded, ErrorBody> {
    let load = async |codes: Vec<Term>| {
        let mut arguments = surroundings.clone();
        arguments.push(("modules", Term::List(codes)));
        let arguments = arguments
            .into_iter()
            .map(|(name, value)| (Term::binary(name), value));
        let answer = workspace
            .image
            .call("", "load", Term::Map(arguments.collect()))
            .await?;
        terms::typed::<LoadAnswer>(answer)
    };
    let is_gone = |error: &ErrorBody| matches!(error.kind, ErrorKind::NodeDown | ErrorKind::NodeStarting);
    let is_one = units.len() == 1;
    let mut answer = LoadAnswer::default();
    let mut refused: Vec<(Unit, ErrorBody)> = Vec::new();
    let mut waiting = units;
    loop {
        let before = waiting.len();
        let mut parts = vec![waiting];
        while let Some(mut part) = parts.pop() {
            match load(part.iter().map(|unit| unit.code.clone()).collect()).await {
                Ok(more) => answer.add(more),
                Err(error) if is_one || is_gone(&error) => return Err(error),
                Err(error) if part.len() == 1 => refused.extend(part.pop().map(|unit| (unit, error))),
                Err(_) => {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                }
            }
        }
        if refused.is_empty() || refused.len() == before {
            break;
        }
        waiting = refused.drain(..).map(|(unit, _)| unit).collect();
    }
    let refused = refused.into_iter().map(|(unit, error)| (unit.file, error));
    Ok(Loaded {
        answer,
        refused: refused.collect(),
    })
}

pub(super) fn path_term(path: &Path) -> Term {
    Term::binary(path.as_os_str().as_encoded_bytes())
}

/// A file that is left out because the compiler refuses it.
pub(super) fn load_error(found: Diagnostic) -> LoadError {
    LoadError {
        path: found.file,
        line: found.line,
        message: found.message,
        hint: found.hint,
        kind: found.category.unwrap_or_else(|| "compile_failed".to_owned()),
    }
}

pub(super) async fn class_info(workspace: &Rc<Workspace>, class: &str) -> Result<ClassInfo, ErrorBody> {
    let symbol = Info {
        symbol: class.to_owned(),
    };
    match workspace.image.ask("", &symbol).await?.info {
        SymbolInfo::Class(info) => Ok(*info),
        // A selector is found as well.
        SymbolInfo::Selector(_) | SymbolInfo::Unknown { .. } => Err(ErrorBody::new(
            ErrorKind::ClassNotFound,
            format!("there is no class '{class}'"),
        )
        .detail("class", class)),
    }
}

/// Load files. Of several, those with errors are left out and told; one alone fails.
pub(super) async fn load_files(
    workspace: &Rc<Workspace>,
    files: &[PathBuf],
) -> Result<LoadAnswer, ErrorBody> {
    native::load(workspace, files).await?;
    let mut errors = Vec::new();
    let mut disk = Vec::new();
    for path in files {
        let text =
            source_text(workspace, path).and_then(|text| keep_pending(workspace, &text).map(|()| text));
        match text {
            Ok(text) => disk.push(text),
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => errors.push(not_loaded(path.display().to_string(), error)),
        }
    }
    let mut answer = if files.len() == 1 {
        load_texts(workspace, disk).await?
    } else {
        load_good_texts(workspace, disk, &mut errors).await?
    };
    answer.errors = errors;
    Ok(answer)
}

/// Pending changes that are in no file of the project, of classes that a text defines.
pub(super) fn changed_outside(workspace: &Workspace, text: &SourceText) -> Vec<Entry> {
    let log = workspace.changes.borrow();
    // Most texts need not be read for this.
    let mut found = log.select(|entry| {
        entry.is_pending() && entry.source_file.is_none() && text.text.contains(&entry.class)
    });
    if !found.is_empty() {
        let outline = Outline::of_file(&text.text);
        found.retain(|entry| outline.class(&entry.class).is_some());
    }
    found
}

/// Those that were made to another class of the same name: typed at a prompt, or loaded from elsewhere.
fn of_namesakes(workspace: &Workspace, text: &SourceText) -> Vec<Entry> {
    let mut found = changed_outside(workspace, text);
    let known = workspace.compiler.known.borrow();
    let is_elsewhere = |class: &str| {
        let is_other = |one: &SourceText| (&one.package, &one.path) != (&text.package, &text.path);
        let has_class =
            |one: &SourceText| is_other(one) && Outline::of_file(&one.text).class(class).is_some();
        !known.files(has_class).is_empty()
    };
    found.retain(|entry| match known.session_class(&entry.class) {
        Some(typed) => !class_changes(&entry.class, &text.text, &typed).is_empty(),
        None => entry.not_flushable_reason.as_deref() == Some("dynamic") || is_elsewhere(&entry.class),
    });
    found
}

/// What was typed and stands in a text now, in the same words, is no change any more.
fn written_meanwhile(workspace: &Workspace, text: &SourceText) -> Vec<u64> {
    let mut found = changed_outside(workspace, text);
    let known = workspace.compiler.known.borrow();
    found.retain(|entry| {
        let typed = known.session_class(&entry.class);
        entry.is_durable()
            && typed.is_some_and(|typed| class_changes(&entry.class, &text.text, &typed).is_empty())
    });
    found.iter().map(|entry| entry.seq).collect()
}

/// A class that was changed and stands in no file of the project does not give way to one of the same name in a file.
pub(super) fn keep_namesakes(workspace: &Workspace, text: &SourceText) -> Result<(), ErrorBody> {
    let kept = of_namesakes(workspace, text);
    let Some(first) = kept.first() else {
        return Ok(());
    };
    let Entry { class, seq, .. } = first;
    let message = format!(
        "{class} has changes that are in no file (change {seq}: {}), so the {class} of {} is not loaded",
        first.title(),
        text.path
    );
    Err(ErrorBody::new(ErrorKind::ReloadFailed, message).hint(format!(
        ":discard {class} gives them up for the file's; or write them into the file, or rename one of the two"
    )))
}

/// A class that has pending changes is not replaced by the class of that name in another file.
fn keep_pending(workspace: &Workspace, text: &SourceText) -> Result<(), ErrorBody> {
    keep_namesakes(workspace, text)?;
    let file = super::changes::project_file(workspace, text);
    let outline = Outline::of_file(&text.text);
    // Into a file of the project a class may have moved.
    let is_inside = file.as_ref().is_some_and(|file| Path::new(file).is_relative());
    let has_class = |home: &String, class: &str| {
        let image = super::changes::image_text(workspace, home);
        (!is_inside || workspace.root.join(home).exists())
            && image.is_some_and(|image| Outline::of_file(&image.text).class(class).is_some())
    };
    let replaced = workspace.changes.borrow().select(|entry| {
        let home = entry
            .source_file
            .as_ref()
            .filter(|home| Some(*home) != file.as_ref());
        entry.is_pending()
            && outline.class(&entry.class).is_some()
            && home.is_some_and(|home| entry.is_whole_file || has_class(home, &entry.class))
    });
    let Some(first) = replaced.first() else {
        return Ok(());
    };
    let home = first.source_file.as_deref().unwrap_or_default();
    let message = format!(
        "{} has changes that are not in {home} yet: change {} ({})",
        first.class,
        first.seq,
        first.title()
    );
    Err(ErrorBody::new(ErrorKind::ReloadFailed, message)
        .hint(":flush or :discard them before loading the class from elsewhere"))
}

/// Load those of several files that have no errors.
async fn load_good_texts(
    workspace: &Rc<Workspace>,
    mut disk: Vec<SourceText>,
    errors: &mut Vec<LoadError>,
) -> Result<LoadAnswer, ErrorBody> {
    // Without the files that have errors, the classes of others may be unknown that were known with them.
    let (compiled, notes) = loop {
        if disk.is_empty() {
            return Ok(LoadAnswer::default());
        }
        let (texts, notes) = merge_all(workspace, &disk)?;
        let compiled = workspace.compiler.run(Job::Files { files: texts }).await?;
        if !compiled.outcome.has_errors {
            break (compiled, notes);
        }
        let found = compiled.outcome.diagnostics.iter();
        let found: Vec<&Diagnostic> = found.filter(|found| found.severity == Severity::Error).collect();
        let before = disk.len();
        disk.retain(|text| !found.iter().any(|found| found.file.as_ref() == Some(&text.path)));
        if disk.len() == before {
            refuse_errors(&compiled)?;
        }
        errors.extend(found.into_iter().map(|found| load_error(found.clone())));
    };
    let units = compiled.outcome.modules.iter().map(|module| {
        let definitions = compiled.outcome.definitions.iter();
        let own = definitions
            .filter(|definition| module.class.as_ref() == Some(&definition.class))
            .find_map(|definition| definition.file.clone());
        Unit {
            code: Term::tuple([Term::atom("forms"), Term::binary(compiled.bytes(module.forms))]),
            file: own.unwrap_or_else(|| module.name.clone()),
        }
    });
    let units: Vec<Unit> = units.collect();
    let mut answer = LoadAnswer::default();
    if !units.is_empty() {
        let outcome = load_units(workspace, units, Vec::new()).await?;
        errors.extend(outcome.errors());
        let is_in = |text: &SourceText| !outcome.refused.iter().any(|(file, _)| *file == text.path);
        disk.retain(&is_in);
        let declares = compiled.outcome.declares.iter().filter(|text| is_in(text));
        let mut known = workspace.compiler.known.borrow_mut();
        known.declare(declares.cloned().collect());
        answer = outcome.answer;
    }
    loaded(workspace, &disk, &notes)?;
    answer.conflicts = notes.told();
    Ok(answer)
}

/// What the image is to have of files as they are on disk.
fn merge_all(workspace: &Workspace, disk: &[SourceText]) -> Result<(Vec<SourceText>, Notes), ErrorBody> {
    let mut notes = Notes::default();
    let mut texts = Vec::new();
    let left = follow_moved(workspace, disk)?;
    let is_other = |file: &&String| !disk.iter().any(|text| text.path == **file);
    let others: Vec<SourceText> = left
        .iter()
        .filter(is_other)
        .filter_map(|file| source_text(workspace, &workspace.root.join(file)).ok())
        .collect();
    for text in disk.iter().chain(&others) {
        if let Some(image) = merge(workspace, text, &mut notes)? {
            texts.push(SourceText {
                text: image,
                ..text.clone()
            });
        }
    }
    Ok((texts, notes))
}

/// Load files as they are on disk, all or nothing; of what has pending changes the image keeps its own version.
pub(super) async fn load_texts(
    workspace: &Rc<Workspace>,
    disk: Vec<SourceText>,
) -> Result<LoadAnswer, ErrorBody> {
    let (merged, mut notes) = merge_all(workspace, &disk)?;
    let mut answer = LoadAnswer::default();
    if !merged.is_empty() {
        let is_merged = merged.iter().any(|text| !disk.contains(text));
        let compiled = workspace.compiler.run(Job::Files { files: merged }).await?;
        if let (true, Err(error)) = (is_merged, refuse_errors(&compiled)) {
            let files = disk.clone();
            refuse_errors(&workspace.compiler.run(Job::Files { files }).await?)?;
            let mut clashes = Vec::new();
            for text in &disk {
                clashes.extend(not_merged(workspace, text, error.clone(), &mut notes));
            }
            if !clashes.is_empty() {
                return Err(error);
            }
            answer.conflicts = notes.told();
            return Ok(answer);
        }
        refuse_errors(&compiled)?;
        answer = install(workspace, &compiled).await?;
    }
    loaded(workspace, &disk, &notes)?;
    answer.conflicts = notes.told();
    Ok(answer)
}

/// What loading files met.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) conflicts: Vec<Conflict>,
    pub(super) settled: Vec<u64>,
    /// Paths of files of which nothing is loaded.
    pub(super) left: Vec<String>,
}

impl Notes {
    /// Conflicts, if there are some.
    pub(super) fn told(&self) -> Option<Vec<Conflict>> {
        Some(self.conflicts.clone()).filter(|conflicts| !conflicts.is_empty())
    }
}

/// The text of a file for the image; `None` when nothing of it is to be loaded.
pub(super) fn merge(
    workspace: &Workspace,
    disk: &SourceText,
    notes: &mut Notes,
) -> Result<Option<String>, ErrorBody> {
    let Some(file) = super::changes::project_file(workspace, disk) else {
        return Ok(Some(disk.text.clone()));
    };
    let log = workspace.changes.borrow();
    let merge = log.merge(&file, &disk.text).map_err(super::changes::failed)?;
    notes.conflicts.extend(merge.conflict);
    notes.settled.extend(merge.settled);
    notes.settled.extend(written_meanwhile(workspace, disk));
    if merge.text.is_none() {
        notes.left.push(disk.path.clone());
    }
    Ok(merge.text)
}

/// Changes of definitions that stand in another file by now belong to that file. Answers the files from which methods
/// went, which the image has to load again.
pub(super) fn follow_moved(
    workspace: &Workspace,
    disk: &[SourceText],
) -> Result<BTreeSet<String>, ErrorBody> {
    let mut left = BTreeSet::new();
    for text in disk {
        let Some(file) = super::changes::project_file(workspace, text) else {
            continue;
        };
        let outline = Outline::of_file(&text.text);
        let is_moved = |class: &str, old: &str| {
            let known = workspace.compiler.known.borrow();
            let own = super::changes::own_package(workspace);
            let base = known.base(own.as_deref(), old).or_else(|| known.base(None, old));
            // A method of the class may have been in a file of its own: that is not where the class was.
            outline.class(class).is_some()
                && base.is_none_or(|base| Outline::of_file(base).class(class).is_some())
        };
        let moved = workspace
            .changes
            .borrow_mut()
            .follow_moved(&file, &outline, is_moved)
            .map_err(super::changes::failed)?;
        let mut known = workspace.compiler.known.borrow_mut();
        for class in &moved.classes {
            known.forget_class(class);
        }
        left.extend(moved.left);
    }
    Ok(left)
}

/// Files are loaded: they are the base of what is changed from now on, and what the disk has too is not pending.
pub(super) fn loaded(workspace: &Workspace, disk: &[SourceText], notes: &Notes) -> Result<(), ErrorBody> {
    let mut known = workspace.compiler.known.borrow_mut();
    let project = workspace.project.borrow();
    for text in disk.iter().filter(|text| !notes.left.contains(&text.path)) {
        known.set_base(text.package.as_deref(), &text.path, Some(text.text.clone()));
        let file = project.as_ref().and_then(|image| image.file_of(text));
        if let (Some(file), TextOrigin::Package) = (file, text.origin) {
            workspace.disk.borrow_mut().loaded(&file, text.text.as_bytes());
        }
    }
    let mut log = workspace.changes.borrow_mut();
    log.settle(&notes.settled, Settled::Flushed)
        .map_err(super::changes::failed)
}

/// Give the image another text of a file; its base stays.
pub(super) async fn install_text(
    workspace: &Rc<Workspace>,
    text: SourceText,
) -> Result<LoadAnswer, ErrorBody> {
    let compiled = workspace.compiler.run(Job::Files { files: vec![text] }).await?;
    refuse_errors(&compiled)?;
    install(workspace, &compiled).await
}

/// Load compiled modules into the image and let the compiler know of them.
pub(super) async fn install(workspace: &Rc<Workspace>, compiled: &Compiled) -> Result<LoadAnswer, ErrorBody> {
    let modules = compiled
        .outcome
        .modules
        .iter()
        .map(|module| Term::tuple([Term::atom("forms"), Term::binary(compiled.bytes(module.forms))]));
    let arguments = terms::map([("modules", Term::list(modules))]);
    let answer = terms::typed(workspace.image.call("", "load", arguments).await?)?;
    let declares = compiled.outcome.declares.clone();
    workspace.compiler.known.borrow_mut().declare(declares);
    Ok(answer)
}

/// A file as the compiler gets it: of the project, of its tests, or of neither.
pub(super) fn source_text(workspace: &Workspace, path: &Path) -> Result<SourceText, ErrorBody> {
    let bytes = beamtalk_storage::read_written(path)
        .map_err(|cause| ErrorBody::new(ErrorKind::ReadError, format!("{}: {cause}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        ErrorBody::new(
            ErrorKind::ReadError,
            format!("{} is not UTF-8 text", path.display()),
        )
    })?;
    let project = workspace.project.borrow();
    let home = project.as_ref().and_then(|image| image.package_of(path));
    let (package, below) = match home {
        Some((package, below)) => (Some(package.to_owned()), below),
        None => (None, path.strip_prefix(&workspace.root).unwrap_or(path)),
    };
    let shown = below.display().to_string();
    let (package, origin, module_path) = if below.starts_with("test") {
        (package, TextOrigin::Test, below)
    } else if let Ok(inside) = below.strip_prefix("src") {
        (package, TextOrigin::Package, inside)
    } else {
        (None, TextOrigin::Package, below)
    };
    let module = beamtalk_compiler::module_name(package.as_deref(), &module_path.display().to_string());
    Ok(SourceText {
        path: shown,
        text,
        package,
        module,
        origin,
    })
}

/// A text that is to become a file of the project.
pub(super) fn new_source(workspace: &Workspace, path: &str, source: &str) -> SourceText {
    let project = workspace.project.borrow();
    let package = project.as_ref().and_then(|image| image.name.clone());
    let below = path.strip_prefix("src/").unwrap_or(path);
    SourceText {
        path: path.to_owned(),
        text: source.to_owned(),
        module: beamtalk_compiler::module_name(package.as_deref(), below),
        package,
        origin: TextOrigin::Package,
    }
}

/// The `.bt` files at or below a path, in order.
pub fn sources_below(path: &Path) -> Result<Vec<PathBuf>, ErrorBody> {
    let missing = |cause: std::io::Error| {
        let kind = if cause.kind() == std::io::ErrorKind::NotFound {
            "file_not_found"
        } else {
            "read_error"
        };
        ErrorBody::new(kind, format!("{}: {cause}", path.display()))
    };
    let about = std::fs::metadata(path).map_err(missing)?;
    if about.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).map_err(missing)? {
            let entry = entry.map_err(missing)?;
            let kind = entry.file_type().map_err(missing)?;
            let path = entry.path();
            // A link to a directory may lead in a circle.
            if kind.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "bt") {
                found.push(path);
            }
        }
    }
    found.sort_unstable();
    Ok(found)
}
