//! Loading code into the image: files, sources, the project.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::definitions::Outline;
use beamtalk_wire::answers::{
    ClassInfo, Diagnostic, LoadAnswer, ReloadAnswer, Severity, SourceAnswer, SymbolInfo,
};
use beamtalk_wire::requests::{Info, LoadFile, LoadProject, LoadSource, Reload};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Caller;
use super::entries::defined;
use super::eval::refuse_errors;
use super::native;
use crate::changes::{Conflict, ConflictReason, Entry, Settled};
use crate::compile::job::{Job, SourceText, TextOrigin};
use crate::compile::{Compiled, Known};
use crate::project::{self, ProjectImage};
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn file(workspace: &Rc<Workspace>, request: &LoadFile) -> Result<LoadAnswer, ErrorBody> {
    let mut path = workspace.root.join(&request.path);
    // `../other` lies outside the project, although its text begins with the project's path.
    if path.components().any(|part| part == Component::ParentDir)
        && let Ok(real) = path.canonicalize()
    {
        path = real;
    }
    let files = sources_below(&path)?;
    if files.is_empty() {
        return Err(ErrorBody::new(
            "file_not_found",
            format!("there is no .bt file in {}", path.display()),
        ));
    }
    terms::typed(load_files(workspace, &files).await?)
}

pub(super) async fn source(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &LoadSource,
) -> Result<SourceAnswer, ErrorBody> {
    let job = Job::Input {
        code: request.source.clone(),
        bound: workspace.names(&caller.session),
        file: request.name.clone(),
        trace: false,
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    if compiled.outcome.expression.is_some() {
        return Err(
            ErrorBody::new("invalid_parameter", "'source' has statements outside of classes")
                .hint("use 'eval' to run statements"),
        );
    }
    let mut answer: SourceAnswer = terms::typed(install(workspace, &compiled).await?)?;
    if let Some(defined) = defined(workspace, caller, &compiled)? {
        answer.entries = Some(defined.entries);
        answer.classes = defined.classes;
    }
    Ok(answer)
}

pub(super) async fn project(
    workspace: &Rc<Workspace>,
    request: &LoadProject,
) -> Result<LoadAnswer, ErrorBody> {
    let root = workspace.root.join(request.path.as_deref().unwrap_or("."));
    if !root.join("beamtalk.toml").is_file() {
        return Err(ErrorBody::new(
            "file_not_found",
            format!("there is no beamtalk.toml in {}", root.display()),
        )
        .hint("beamtalk new NAME makes a project"));
    }
    let changed = workspace.files_changed_on_disk().await;
    let mut fields = load_project(workspace, &root, request.force == Some(true)).await?;
    fields.insert("disk_changed".to_owned(), changed.into());
    if request.include_tests == Some(true) {
        let tests = sources_below(&root.join("test")).unwrap_or_default();
        if !tests.is_empty() {
            let loaded = load_files(workspace, &tests).await?;
            for name in ["classes", "errors"] {
                if let (Some(Value::Array(all)), Some(Value::Array(more))) =
                    (fields.get_mut(name), loaded.get(name))
                {
                    all.extend(more.iter().cloned());
                }
            }
        }
    }
    terms::typed(fields)
}

/// Build the project and load what changed since the last time.
pub(crate) async fn load_project(
    workspace: &Rc<Workspace>,
    root: &Path,
    force: bool,
) -> Result<Map<String, Value>, ErrorBody> {
    match project::build(&workspace.program, root, false).await {
        Ok(Some(image)) => load_image(workspace, image, force).await,
        Ok(None) => Ok(Map::new()),
        Err(failure) => {
            let errors: Vec<Value> = failure.diagnostics.iter().map(load_error).collect();
            if errors.is_empty() {
                return Err(failure.error);
            }
            let summary = format!("Nothing loaded: {}", failure.error.message);
            Ok(Map::from_iter([
                ("classes".to_owned(), json!([])),
                ("errors".to_owned(), errors.into()),
                ("summary".to_owned(), summary.into()),
            ]))
        }
    }
}

/// Load those modules of a built project that differ from what was loaded before, or all.
pub(crate) async fn load_image(
    workspace: &Rc<Workspace>,
    image: ProjectImage,
    force: bool,
) -> Result<Map<String, Value>, ErrorBody> {
    let mut changed = Vec::new();
    let mut hashes = Vec::new();
    let mut notes = Notes::default();
    let mut merged = Vec::new();
    let left = follow_moved(workspace, &image.sources)?;
    for text in &image.sources {
        let merge = merge(workspace, text, &mut notes)?;
        let is_as_built = merge.as_ref() == Some(&text.text)
            && !left.contains(&text.path)
            && !is_emptied(workspace, &image, text);
        if !is_as_built {
            merged.push((text.clone(), merge));
        }
    }
    for module in &image.modules {
        let name = module.file_stem().and_then(|stem| stem.to_str());
        // What the image lacks is loaded as it is on disk first: other classes may need it.
        let is_left = |text: &SourceText, merged: Option<&String>| {
            let known = workspace.compiler.known.borrow();
            Some(text.module.as_str()) == name
                && (merged.is_none() || known.file(text.package.as_deref(), &text.path).is_some())
        };
        let is_merged = merged.iter().any(|(text, merged)| is_left(text, merged.as_ref()));
        let bytes = std::fs::read(module)
            .map_err(|cause| ErrorBody::new("read_error", format!("{}: {cause}", module.display())))?;
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        if !is_merged && (force || workspace.loaded.borrow().get(module) != Some(&hash)) {
            changed.push(Unit {
                code: Term::tuple([Term::atom("beam"), path_term(module)]),
                file: source_of(&image, module),
            });
        }
        hashes.push((module.clone(), hash));
    }
    let unchanged = image.modules.len() - changed.len();
    let mut errors: Vec<Value> = image.errors.iter().map(load_error).collect();
    let mut count = changed.len();
    let mut fields = Map::new();
    if count > 0 {
        let paths = image.paths.iter().map(|path| path_term(path));
        let packages = image.packages.iter();
        let packages = packages.map(|(name, package)| {
            let dependencies = package.dependencies.iter().map(Term::binary);
            let about = terms::map([
                ("root", path_term(&package.root)),
                ("version", Term::binary(&package.version)),
                ("dependencies", Term::list(dependencies)),
            ]);
            (Term::binary(name), about)
        });
        let name = image.name.as_deref().unwrap_or_default();
        let surroundings = vec![
            ("paths", Term::list(paths)),
            ("packages", Term::Map(packages.collect())),
            ("project", Term::binary(name)),
            (
                "applications",
                Term::list(image.applications.iter().map(Term::binary)),
            ),
        ];
        let loaded = load_units(workspace, changed, surroundings).await?;
        count -= loaded.refused.len();
        hashes.retain(|(module, _)| {
            let file = source_of(&image, module);
            !loaded.refused.iter().any(|(refused, _)| *refused == file)
        });
        errors.extend(loaded.errors());
        fields = loaded.fields;
    }
    let is_refused = |text: &SourceText| errors.iter().any(|error| error["path"] == text.path.as_str());
    let is_plain = |text: &&SourceText| !merged.iter().any(|(one, _)| one == *text) && !is_refused(text);
    let plain: Vec<SourceText> = image.sources.iter().filter(is_plain).cloned().collect();
    {
        let mut known = workspace.compiler.known.borrow_mut();
        known.set_packages(&image.uses);
        known.load(plain);
    }
    errors.extend(install_merged(workspace, merged, &mut fields, &mut notes).await?);
    loaded(workspace, &[], &notes)?;
    hashes.retain(|(module, _)| !notes.left.contains(&source_of(&image, module)));
    workspace.loaded.borrow_mut().extend(hashes);
    let total = image.modules.len() + image.broken.len();
    let deleted = workspace.project.borrow().as_ref().map_or(0, |before| {
        let is_gone = |text: &&SourceText| image.file_of(text).is_some_and(|file| !file.exists());
        before.sources.iter().filter(is_gone).count()
    });
    let mut summary = format!("Reloaded {count} of {total} files");
    if unchanged > 0 {
        summary.push_str(&format!(" ({unchanged} unchanged)"));
    }
    let is_left_out = |text: &SourceText| {
        notes.left.contains(&text.path) || errors.iter().any(|error| error["path"] == text.path.as_str())
    };
    let files = image.sources.iter().filter(|text| !is_left_out(text));
    let files = files.filter_map(|text| Some((image.file_of(text)?, text.text.as_str())));
    let directories = image.packages.values().map(|package| package.root.join("src"));
    workspace.disk.borrow_mut().replace(files, directories.collect());
    *workspace.project.borrow_mut() = Some(image);
    fields.entry("classes".to_owned()).or_insert_with(|| json!([]));
    fields.insert("errors".to_owned(), errors.into());
    if !notes.conflicts.is_empty() {
        fields.insert("conflicts".to_owned(), json!(notes.conflicts));
    }
    fields.insert("summary".to_owned(), summary.into());
    fields.insert("changed_count".to_owned(), count.into());
    fields.insert("unchanged_count".to_owned(), unchanged.into());
    fields.insert("deleted_count".to_owned(), deleted.into());
    Ok(fields)
}

/// Whether the image has something of a file from which a build makes no module any more.
fn is_emptied(workspace: &Workspace, image: &ProjectImage, text: &SourceText) -> bool {
    let is_of_text = |module: &PathBuf| module.file_stem().is_some_and(|stem| *stem == *text.module);
    let known = workspace.compiler.known.borrow();
    let loaded = known.file(text.package.as_deref(), &text.path);
    loaded.is_some_and(|loaded| loaded.text != text.text) && !image.modules.iter().any(is_of_text)
}

/// Load the files that have pending changes; what does not compile stays as it is and is answered.
async fn install_merged(
    workspace: &Rc<Workspace>,
    merged: Vec<(SourceText, Option<String>)>,
    fields: &mut Map<String, Value>,
    notes: &mut Notes,
) -> Result<Vec<Value>, ErrorBody> {
    let mut left = Vec::new();
    for (disk, text) in merged {
        let Some(text) = text else { continue };
        let has_it = |known: &Known| {
            known
                .file(disk.package.as_deref(), &disk.path)
                .is_some_and(|one| one.text == text)
        };
        if has_it(&workspace.compiler.known.borrow()) {
            loaded(workspace, std::slice::from_ref(&disk), &Notes::default())?;
        } else {
            left.push((disk, text));
        }
    }
    // A file may need another, such as the one that a method went to: all are tried as long as one more comes in.
    loop {
        let before = left.len();
        let mut refused = Vec::new();
        for (disk, text) in left {
            let image = SourceText {
                text: text.clone(),
                ..disk.clone()
            };
            match install_text(workspace, image).await {
                Ok(answer) => {
                    *fields = together(std::mem::take(fields), answer);
                    loaded(workspace, std::slice::from_ref(&disk), &Notes::default())?;
                }
                Err(error) => refused.push((disk, text, error)),
            }
        }
        if refused.is_empty() || refused.len() == before {
            return Ok(refused
                .into_iter()
                .filter_map(|(disk, _, error)| not_merged(workspace, &disk, error, notes))
                .collect());
        }
        left = refused.into_iter().map(|(disk, text, _)| (disk, text)).collect();
    }
}

/// The disk's version of a file and the image's changes do not go together: a conflict, and nothing of the file is
/// loaded. An error where the image changed nothing of the file.
fn not_merged(
    workspace: &Workspace,
    disk: &SourceText,
    error: ErrorBody,
    notes: &mut Notes,
) -> Option<Value> {
    let file = super::changes::project_file(workspace, disk);
    let is_of_file = |entry: &Entry| entry.is_pending() && entry.source_file == file;
    let entries = workspace.changes.borrow().select(is_of_file);
    let Some(file) = file.filter(|_| !entries.is_empty()) else {
        return Some(json!({
            "path": disk.path, "line": null, "message": error.message, "hint": error.hint, "kind": error.kind,
        }));
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
struct Unit {
    code: Term,
    file: String,
}

/// What became of code that was to be loaded.
struct Loaded {
    fields: Map<String, Value>,
    /// Files that the image refused, and why.
    refused: Vec<(String, ErrorBody)>,
}

impl Loaded {
    fn errors(&self) -> impl Iterator<Item = Value> {
        self.refused.iter().map(|(file, error)| {
            json!({
                "path": file, "line": null, "message": format!("not loaded: {}", error.message),
                "hint": error.hint, "kind": error.kind,
            })
        })
    }
}

/// Load code together. If the image refuses that, each piece is tried by itself as long as one more comes in: what
/// cannot be loaded, such as a class whose superclass has errors, leaves the others alone.
async fn load_units(
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
        workspace
            .image
            .call("", "load", Term::Map(arguments.collect()))
            .await
    };
    let is_gone = |error: &ErrorBody| matches!(error.kind, ErrorKind::NodeDown | ErrorKind::NodeStarting);
    let error = match load(units.iter().map(|unit| unit.code.clone()).collect()).await {
        Ok(fields) => {
            let refused = Vec::new();
            return Ok(Loaded { fields, refused });
        }
        Err(error) if units.len() == 1 || is_gone(&error) => return Err(error),
        Err(error) => error,
    };
    let mut fields = Map::new();
    let mut waiting: Vec<(Unit, ErrorBody)> = units.into_iter().map(|unit| (unit, error.clone())).collect();
    loop {
        let before = waiting.len();
        let mut refused = Vec::new();
        for (unit, _) in waiting {
            match load(vec![unit.code.clone()]).await {
                Ok(more) => fields = together(fields, more),
                Err(error) if is_gone(&error) => return Err(error),
                Err(error) => refused.push((unit, error)),
            }
        }
        waiting = refused;
        if waiting.is_empty() || waiting.len() == before {
            break;
        }
    }
    let refused = waiting.into_iter().map(|(unit, error)| (unit.file, error));
    Ok(Loaded {
        fields,
        refused: refused.collect(),
    })
}

/// Two answers of the image in one: lists are joined, counts are added.
fn together(mut fields: Map<String, Value>, more: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in more {
        match (fields.get_mut(&name), value) {
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (Some(Value::Number(sum)), Value::Number(more)) => {
                *sum = (sum.as_u64().unwrap_or(0) + more.as_u64().unwrap_or(0)).into();
            }
            (_, value) => {
                fields.insert(name, value);
            }
        }
    }
    fields
}

/// The file a compiled module of the project comes from.
fn source_of(image: &ProjectImage, module: &Path) -> String {
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    let found = image.sources.iter().find(|text| text.module == name);
    found.map_or_else(|| name.clone().into_owned(), |text| text.path.clone())
}

pub(super) fn path_term(path: &Path) -> Term {
    Term::binary(path.as_os_str().as_encoded_bytes())
}

fn load_error(found: &Value) -> Value {
    json!({
        "path": found["file"], "line": found["line"], "message": found["message"],
        "hint": found["hint"], "kind": found["category"].as_str().unwrap_or("compile_failed"),
    })
}

pub(super) async fn tests(workspace: &Rc<Workspace>) -> Result<LoadAnswer, ErrorBody> {
    let files = sources_below(&workspace.root.join("test")).unwrap_or_default();
    if files.is_empty() {
        return Ok(LoadAnswer {
            summary: Some("Reloaded 0 of 0 files".to_owned()),
            ..LoadAnswer::default()
        });
    }
    let mut fields = load_files(workspace, &files).await?;
    let broken: BTreeSet<&str> = fields["errors"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|error| error["path"].as_str())
        .collect();
    let summary = format!("Reloaded {} of {} files", files.len() - broken.len(), files.len());
    fields.insert("summary".to_owned(), summary.into());
    terms::typed(fields)
}

pub(super) async fn reload(
    workspace: &Rc<Workspace>,
    Reload { class }: &Reload,
) -> Result<ReloadAnswer, ErrorBody> {
    let path = source_file_of(workspace, class).await?;
    let before = selectors(workspace, class).await;
    let fields = load_files(workspace, &[path]).await?;
    let now = selectors(workspace, class).await;
    let gone: Vec<String> = before.into_iter().filter(|one| !now.contains(one)).collect();
    let findings = super::check::check_callers(workspace, class, None, &gone).await;
    let loaded: LoadAnswer = terms::typed(fields)?;
    Ok(ReloadAnswer {
        classes: loaded.classes,
        errors: loaded.errors,
        affected_actors: loaded.affected_actors.unwrap_or(0),
        migration_failures: loaded.migration_failures.unwrap_or_default(),
        findings,
        conflicts: loaded.conflicts,
    })
}

/// The selectors of both sides of a class.
async fn selectors(workspace: &Rc<Workspace>, class: &str) -> Vec<String> {
    let Ok(info) = class_info(workspace, class).await else {
        return Vec::new();
    };
    info.methods.into_iter().chain(info.class_methods).collect()
}

/// The file of a class of the project or of a dependency; the library has none.
pub(super) async fn source_file_of(workspace: &Rc<Workspace>, class: &str) -> Result<PathBuf, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let project = workspace.project.borrow();
    let packages = project.as_ref().map(|image| &image.packages);
    let root = info
        .package
        .as_deref()
        .and_then(|package| packages?.get(package))
        .map_or(&workspace.root, |package| &package.root);
    let path = info
        .source
        .filter(|_| info.package.as_deref() != Some("stdlib"))
        .map(|file| root.join(file))
        .filter(|path| path.is_file());
    path.ok_or_else(|| {
        ErrorBody::new("no_source_file", format!("{class} has no source file"))
            .hint("classes of the library and of the prompt have none")
    })
}

pub(super) async fn class_info(workspace: &Rc<Workspace>, class: &str) -> Result<ClassInfo, ErrorBody> {
    let symbol = Info {
        symbol: class.to_owned(),
    };
    match workspace.image.ask("", &symbol).await?.info {
        SymbolInfo::Class(info) => Ok(info),
        // A selector is found as well.
        SymbolInfo::Selector(_) | SymbolInfo::Unknown { .. } => Err(ErrorBody::new(
            ErrorKind::ClassNotFound,
            format!("there is no class '{class}'"),
        )),
    }
}

/// Load files. Of several, those with errors are left out and told; one alone fails.
async fn load_files(workspace: &Rc<Workspace>, files: &[PathBuf]) -> Result<Map<String, Value>, ErrorBody> {
    native::load(workspace, files).await?;
    let mut errors = Vec::new();
    let mut disk = Vec::new();
    for path in files {
        let text =
            source_text(workspace, path).and_then(|text| keep_pending(workspace, &text).map(|()| text));
        match text {
            Ok(text) => disk.push(text),
            Err(error) if files.len() == 1 => return Err(error),
            Err(error) => errors.push(json!({
                "path": path, "line": null, "message": error.message, "hint": error.hint, "kind": error.kind,
            })),
        }
    }
    let mut fields = if files.len() == 1 {
        load_texts(workspace, disk).await?
    } else {
        load_good_texts(workspace, disk, &mut errors).await?
    };
    fields.entry("classes".to_owned()).or_insert_with(|| json!([]));
    fields.insert("errors".to_owned(), errors.into());
    Ok(fields)
}

/// A class that has pending changes is not replaced by the class of that name in another file.
fn keep_pending(workspace: &Workspace, text: &SourceText) -> Result<(), ErrorBody> {
    let file = super::changes::project_file(workspace, text);
    let outline = Outline::of_file(&text.text);
    let has_class = |home: &String, class: &str| {
        let image = super::changes::image_text(workspace, home);
        workspace.root.join(home).exists()
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
    Err(ErrorBody::new("reload_failed", message)
        .hint(":flush or :discard them before loading the class from elsewhere"))
}

/// Load those of several files that have no errors.
async fn load_good_texts(
    workspace: &Rc<Workspace>,
    mut disk: Vec<SourceText>,
    errors: &mut Vec<Value>,
) -> Result<Map<String, Value>, ErrorBody> {
    // Without the files that have errors, the classes of others may be unknown that were known with them.
    let (compiled, notes) = loop {
        if disk.is_empty() {
            return Ok(Map::new());
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
        errors.extend(found.into_iter().map(|found| load_error(&json!(found))));
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
    let mut fields = Map::new();
    if !units.is_empty() {
        let outcome = load_units(workspace, units, Vec::new()).await?;
        errors.extend(outcome.errors());
        let is_in = |text: &SourceText| !outcome.refused.iter().any(|(file, _)| *file == text.path);
        disk.retain(&is_in);
        let declares = compiled.outcome.declares.iter().filter(|text| is_in(text));
        let mut known = workspace.compiler.known.borrow_mut();
        known.declare(declares.cloned().collect());
        fields = outcome.fields;
    }
    loaded(workspace, &disk, &notes)?;
    if !notes.conflicts.is_empty() {
        fields.insert("conflicts".to_owned(), json!(notes.conflicts));
    }
    Ok(fields)
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
) -> Result<Map<String, Value>, ErrorBody> {
    let (merged, mut notes) = merge_all(workspace, &disk)?;
    let mut fields = Map::from_iter([("classes".to_owned(), json!([]))]);
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
            fields.insert("conflicts".to_owned(), json!(notes.conflicts));
            return Ok(fields);
        }
        refuse_errors(&compiled)?;
        fields = install(workspace, &compiled).await?;
    }
    loaded(workspace, &disk, &notes)?;
    if !notes.conflicts.is_empty() {
        fields.insert("conflicts".to_owned(), json!(notes.conflicts));
    }
    Ok(fields)
}

/// What loading files met.
#[derive(Debug, Default)]
pub(super) struct Notes {
    conflicts: Vec<Conflict>,
    settled: Vec<u64>,
    /// Paths of files of which nothing is loaded.
    left: Vec<String>,
}

/// The text of a file for the image; `None` when nothing of it is to be loaded.
fn merge(workspace: &Workspace, disk: &SourceText, notes: &mut Notes) -> Result<Option<String>, ErrorBody> {
    let Some(file) = super::changes::project_file(workspace, disk) else {
        return Ok(Some(disk.text.clone()));
    };
    let log = workspace.changes.borrow();
    let merge = log.merge(&file, &disk.text).map_err(super::changes::failed)?;
    notes.conflicts.extend(merge.conflict);
    notes.settled.extend(merge.settled);
    if merge.text.is_none() {
        notes.left.push(disk.path.clone());
    }
    Ok(merge.text)
}

/// Changes of definitions that stand in another file by now belong to that file. Answers the files from which methods
/// went, which the image has to load again.
fn follow_moved(workspace: &Workspace, disk: &[SourceText]) -> Result<BTreeSet<String>, ErrorBody> {
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
fn loaded(workspace: &Workspace, disk: &[SourceText], notes: &Notes) -> Result<(), ErrorBody> {
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
) -> Result<Map<String, Value>, ErrorBody> {
    let compiled = workspace.compiler.run(Job::Files { files: vec![text] }).await?;
    refuse_errors(&compiled)?;
    install(workspace, &compiled).await
}

/// Load compiled modules into the image and let the compiler know of them.
pub(super) async fn install(
    workspace: &Rc<Workspace>,
    compiled: &Compiled,
) -> Result<Map<String, Value>, ErrorBody> {
    let modules = compiled
        .outcome
        .modules
        .iter()
        .map(|module| Term::tuple([Term::atom("forms"), Term::binary(compiled.bytes(module.forms))]));
    let arguments = terms::map([("modules", Term::list(modules))]);
    let fields = workspace.image.call("", "load", arguments).await?;
    let declares = compiled.outcome.declares.clone();
    workspace.compiler.known.borrow_mut().declare(declares);
    Ok(fields)
}

/// A file as the compiler gets it: of the project, of its tests, or of neither.
pub(super) fn source_text(workspace: &Workspace, path: &Path) -> Result<SourceText, ErrorBody> {
    let bytes = std::fs::read(path)
        .map_err(|cause| ErrorBody::new("read_error", format!("{}: {cause}", path.display())))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ErrorBody::new("read_error", format!("{} is not UTF-8 text", path.display())))?;
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
fn sources_below(path: &Path) -> Result<Vec<PathBuf>, ErrorBody> {
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
