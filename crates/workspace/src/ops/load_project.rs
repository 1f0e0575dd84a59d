//! The project built, and what changed of it loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::answers::{LoadAnswer, LoadError};
use beamtalk_wire::requests::LoadProject;
use beamtalk_wire::{ErrorBody, ErrorKind};
use sha2::{Digest, Sha256};

use super::changes::project_file;
use super::load::{
    Notes, Unit, changed_outside, follow_moved, install_text, keep_namesakes, load_error, load_files,
    load_units, loaded, merge, not_loaded, not_merged, path_term, sources_below,
};
use crate::compile::Known;
use crate::compile::job::SourceText;
use crate::project::{self, ProjectImage};
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn load(workspace: &Rc<Workspace>, request: &LoadProject) -> Result<LoadAnswer, ErrorBody> {
    let root = workspace.root.join(request.path.as_deref().unwrap_or("."));
    if !root.join("beamtalk.toml").is_file() {
        return Err(ErrorBody::new(
            ErrorKind::FileNotFound,
            format!("there is no beamtalk.toml in {}", root.display()),
        )
        .hint("beamtalk new NAME makes a project"));
    }
    let changed = workspace.files_changed_on_disk().await;
    let mut answer = load_project(workspace, &root, request.force == Some(true)).await?;
    answer.disk_changed = Some(changed);
    if request.include_tests == Some(true) {
        let tests = sources_below(&root.join("test")).unwrap_or_default();
        if !tests.is_empty() {
            let loaded = load_files(workspace, &tests).await?;
            answer.classes.extend(loaded.classes);
            answer.errors.extend(loaded.errors);
        }
    }
    Ok(answer)
}

/// Build the project and load what changed since the last time.
pub(crate) async fn load_project(
    workspace: &Rc<Workspace>,
    root: &Path,
    force: bool,
) -> Result<LoadAnswer, ErrorBody> {
    match project::build(&workspace.program, root, false).await {
        Ok(Some(image)) => load_image(workspace, image, force).await,
        Ok(None) => Ok(LoadAnswer::default()),
        Err(failure) => {
            if failure.diagnostics.is_empty() {
                return Err(failure.error);
            }
            Ok(LoadAnswer {
                errors: failure.diagnostics.into_iter().map(load_error).collect(),
                summary: Some(format!("Nothing loaded: {}", failure.error.message)),
                ..LoadAnswer::default()
            })
        }
    }
}

/// Load those modules of a built project that differ from what was loaded before, or all.
pub(crate) async fn load_image(
    workspace: &Rc<Workspace>,
    image: ProjectImage,
    force: bool,
) -> Result<LoadAnswer, ErrorBody> {
    let mut changed = Vec::new();
    let mut hashes = Vec::new();
    let mut notes = Notes::default();
    let mut merged = Vec::new();
    let mut kept = BTreeSet::new();
    let mut errors: Vec<LoadError> = image.errors.iter().cloned().map(load_error).collect();
    for text in &image.sources {
        let is_loaded = image_has(workspace, text);
        if let (false, Err(error)) = (is_loaded, keep_namesakes(workspace, text)) {
            kept.insert(text.module.as_str());
            notes.left.push(text.path.clone());
            errors.push(not_loaded(text.path.clone(), error));
        }
    }
    let rest: Vec<SourceText>;
    let sources = if kept.is_empty() {
        &image.sources
    } else {
        let is_kept = |text: &&SourceText| kept.contains(text.module.as_str());
        rest = image
            .sources
            .iter()
            .filter(|text| !is_kept(text))
            .cloned()
            .collect();
        &rest
    };
    let by_module: BTreeMap<&str, &SourceText> =
        sources.iter().map(|text| (text.module.as_str(), text)).collect();
    let left = follow_moved(workspace, sources)?;
    for text in sources {
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
        if name.is_some_and(|name| kept.contains(name)) {
            continue;
        }
        let is_merged = merged.iter().any(|(text, merged)| is_left(text, merged.as_ref()));
        let bytes = std::fs::read(module).map_err(|cause| {
            ErrorBody::new(ErrorKind::ReadError, format!("{}: {cause}", module.display()))
        })?;
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        // A module that was loaded once is not what the image has if its class was changed or removed since.
        let text = name.and_then(|name| by_module.get(name).copied());
        let is_loaded = workspace.loaded.borrow().get(module) == Some(&hash)
            && text.is_none_or(|text| image_has(workspace, text));
        if !is_merged && (force || !is_loaded) {
            changed.push(Unit {
                code: Term::tuple([Term::atom("beam"), path_term(module)]),
                file: source_of(&image, module),
            });
        }
        hashes.push((module.clone(), hash));
    }
    let mut unchanged = (image.modules.len() - changed.len()).saturating_sub(kept.len());
    let as_built: Vec<String> = changed.iter().map(|unit| unit.file.clone()).collect();
    let mut count = changed.len();
    let mut answer = LoadAnswer::default();
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
        answer = loaded.answer;
    }
    let is_refused = |text: &SourceText| errors.iter().any(|error| error.path.as_ref() == Some(&text.path));
    let is_plain = |text: &&SourceText| !merged.iter().any(|(one, _)| one == *text) && !is_refused(text);
    let is_patched = |text: &&SourceText| !as_built.contains(&text.path) && is_patched(workspace, text);
    let plain = sources.iter().filter(|text| is_plain(text) && !is_patched(text));
    let plain: Vec<SourceText> = plain.cloned().collect();
    {
        let mut known = workspace.compiler.known.borrow_mut();
        known.set_packages(&image.uses);
        known.load(plain);
        let before = workspace.project.borrow();
        let before: &[SourceText] = before.as_ref().map_or(&[], |before| &before.sources);
        let place = |text: &SourceText| (text.package.clone(), text.path.clone());
        let here: BTreeSet<_> = image.sources.iter().map(place).collect();
        let gone: BTreeSet<_> = before
            .iter()
            .map(place)
            .filter(|one| !here.contains(one))
            .collect();
        if !gone.is_empty() {
            known.leave_to_others(|text| gone.contains(&place(text)));
        }
    }
    let (installed, refused) = install_merged(workspace, merged, &mut answer, &mut notes).await?;
    errors.extend(refused);
    // A file that joined what is pending was loaded like any other.
    let joined = installed.iter().filter(|path| !as_built.contains(path)).count();
    count += joined;
    unchanged = unchanged.saturating_sub(joined);
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
        notes.left.contains(&text.path) || errors.iter().any(|error| error.path.as_ref() == Some(&text.path))
    };
    let files = image.sources.iter().filter(|text| !is_left_out(text));
    let files = files.filter_map(|text| Some((image.file_of(text)?, text.text.as_str())));
    let directories = image.packages.values().map(|package| package.root.join("src"));
    workspace.disk.borrow_mut().replace(files, directories.collect());
    *workspace.project.borrow_mut() = Some(image);
    Ok(LoadAnswer {
        errors,
        conflicts: notes.told(),
        summary: Some(summary),
        changed_count: Some(count as u64),
        unchanged_count: Some(unchanged as u64),
        deleted_count: Some(deleted as u64),
        ..answer
    })
}

/// Whether the image has what a file says. The changes of a class that is in no file of the project are the image's own.
fn image_has(workspace: &Workspace, text: &SourceText) -> bool {
    let known = workspace.compiler.known.borrow();
    let loaded = known.file(text.package.as_deref(), &text.path);
    loaded.is_some_and(|loaded| loaded.text == text.text || is_patched(workspace, text))
}

/// Whether a file of a dependency has classes with pending changes.
fn is_patched(workspace: &Workspace, text: &SourceText) -> bool {
    project_file(workspace, text).is_none() && !changed_outside(workspace, text).is_empty()
}

/// Whether the image has something of a file from which a build makes no module any more.
fn is_emptied(workspace: &Workspace, image: &ProjectImage, text: &SourceText) -> bool {
    let is_of_text = |module: &PathBuf| module.file_stem().is_some_and(|stem| *stem == *text.module);
    let known = workspace.compiler.known.borrow();
    let loaded = known.file(text.package.as_deref(), &text.path);
    loaded.is_some_and(|loaded| loaded.text != text.text) && !image.modules.iter().any(is_of_text)
}

/// Load the files that have pending changes: the answer is the paths of those that came in, and what does not compile and stays
/// as it is.
async fn install_merged(
    workspace: &Rc<Workspace>,
    merged: Vec<(SourceText, Option<String>)>,
    all: &mut LoadAnswer,
    notes: &mut Notes,
) -> Result<(Vec<String>, Vec<LoadError>), ErrorBody> {
    let mut left = Vec::new();
    let mut installed = Vec::new();
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
                    all.add(answer);
                    loaded(workspace, std::slice::from_ref(&disk), &Notes::default())?;
                    installed.push(disk.path);
                }
                Err(error) => refused.push((disk, text, error)),
            }
        }
        if refused.is_empty() || refused.len() == before {
            let refused = refused
                .into_iter()
                .filter_map(|(disk, _, error)| not_merged(workspace, &disk, error, notes))
                .collect();
            return Ok((installed, refused));
        }
        left = refused.into_iter().map(|(disk, text, _)| (disk, text)).collect();
    }
}

/// The file a compiled module of the project comes from.
fn source_of(image: &ProjectImage, module: &Path) -> String {
    let name = module.file_stem().unwrap_or_default().to_string_lossy();
    let found = image.sources.iter().find(|text| text.module == name);
    found.map_or_else(|| name.clone().into_owned(), |text| text.path.clone())
}
