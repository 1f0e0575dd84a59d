//! Documents and sources of the project as texts: `doc-list`, `doc-read`, `doc-write`.

use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::UNIX_EPOCH;

use beamtalk_wire::answers::{DocListAnswer, DocReadAnswer, DocWriteAnswer, DocumentInfo, LoadError};
use beamtalk_wire::requests::{DocList, DocRead, DocWrite};
use beamtalk_wire::{ErrorBody, ErrorKind, Role};

use super::changes::{failed, image_text, may_write};
use super::load::{load_files, not_loaded};
use crate::changes::{ConflictReason, Entry, hash};
use crate::image::Phase;
use crate::workspace::Workspace;

/// A text is read and written as a whole.
const LARGEST: u64 = 1 << 20;
const LISTED: usize = 200;
const MOST_LISTED: usize = 1_000;
/// A directory tree with more files than this is not looked through to its end.
const SEEN: usize = 50_000;
/// The tour of this binary.
const TOUR: (&str, &str) = ("beamtalk:tour", include_str!("../../../../docs/tour.md"));

const WRITTEN: &[&str] = &["md", "bt", "btscript"];
/// Settings may hold a password.
const OWNERS: &[&str] = &["erl", "toml"];

pub(super) async fn list(
    workspace: &Workspace,
    role: Role,
    request: &DocList,
) -> Result<DocListAnswer, ErrorBody> {
    let root = workspace.root.clone();
    let find = request.find.clone().unwrap_or_default().to_lowercase();
    let limit = request.limit.map_or(LISTED, |limit| {
        usize::try_from(limit).unwrap_or(MOST_LISTED).min(MOST_LISTED)
    });
    let looked = tokio::task::spawn_blocking(move || look(&root, role, &find, limit));
    let documents = looked
        .await
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
    Ok(DocListAnswer { documents })
}

fn look(root: &Path, role: Role, find: &str, limit: usize) -> Vec<DocumentInfo> {
    let found = paths(root, role)
        .into_iter()
        .filter_map(|path| document(root, path, find));
    found.take(limit).collect()
}

/// What is there, by path. Links are not followed: what they lead to is listed where it is.
pub(super) fn paths(root: &Path, role: Role) -> Vec<String> {
    let mut paths = Vec::new();
    let mut directories = vec![root.to_owned()];
    let mut seen = 0;
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.filter_map(Result::ok) {
            seen += 1;
            let path = entry.path();
            let Ok(below) = path.strip_prefix(root) else {
                continue;
            };
            match entry.file_type() {
                _ if seen > SEEN || !is_open(below) => {}
                Ok(kind) if kind.is_dir() => directories.push(path),
                Ok(kind) if kind.is_file() && may_read(below, role) => {
                    paths.extend(below.to_str().map(str::to_owned));
                }
                _ => {}
            }
        }
    }
    paths.sort_unstable();
    paths
}

/// A document as it is listed, if its path or its title has the text in it.
fn document(root: &Path, path: String, find: &str) -> Option<DocumentInfo> {
    let file = root.join(&path);
    let about = file.metadata().ok()?;
    let is_found = path.to_lowercase().contains(find);
    let is_markdown = has_extension(Path::new(&path), &["md"]);
    let text = is_markdown
        .then(|| read_text(&file, &path).ok().flatten())
        .flatten();
    let name = || path.rsplit('/').next().unwrap_or_default().to_owned();
    let title = text.as_deref().and_then(heading).unwrap_or_else(name);
    let changed = about
        .modified()
        .ok()
        .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    (is_found || title.to_lowercase().contains(find)).then(|| DocumentInfo {
        title,
        cells: text.map_or(0, |text| beamtalk_syntax::fences::in_markdown(&text).len() as u64),
        bytes: about.len(),
        changed_at: changed.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        path,
    })
}

fn heading(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("# "))?;
    Some(line.trim().to_owned())
}

pub(super) fn read(workspace: &Workspace, role: Role, request: &DocRead) -> Result<DocReadAnswer, ErrorBody> {
    if request.path == TOUR.0 {
        return Ok(DocReadAnswer {
            text: TOUR.1.to_owned(),
            sha256: hash(TOUR.1.as_bytes()),
            writable: false,
        });
    }
    let (file, path) = place(workspace, &request.path)?;
    if !may_read(Path::new(&file), role) {
        return Err(if may_read(Path::new(&file), Role::Owner) {
            ErrorBody::new(ErrorKind::Forbidden, format!("an observer may not read {file}"))
        } else {
            outside(&file, "is not a document or a source")
        });
    }
    let text = read_text(&path, &file)?.ok_or_else(|| missing(&file))?;
    let is_open = role == Role::Owner && !workspace.options.read_only_fs;
    let may_change = path.metadata().is_ok_and(|about| !about.permissions().readonly());
    Ok(DocReadAnswer {
        sha256: hash(text.as_bytes()),
        writable: is_open && may_change && has_extension(Path::new(&file), WRITTEN),
        text,
    })
}

pub(super) async fn write(
    workspace: &Rc<Workspace>,
    request: &DocWrite,
) -> Result<DocWriteAnswer, ErrorBody> {
    let (file, path) = place(workspace, &request.path)?;
    if !has_extension(Path::new(&file), WRITTEN) {
        return Err(outside(&file, "is not written here: .md, .bt and .btscript are"));
    }
    if request.text.len() as u64 > LARGEST {
        let message = format!("{file} would be over 1 MiB");
        return Err(ErrorBody::new(ErrorKind::InvalidParameter, message));
    }
    may_write(workspace, "doc-write")?;
    // What the image has of a source is not known before the node has it again.
    let is_starting = matches!(workspace.image.phase(), Phase::Starting | Phase::Down);
    if is_starting && has_extension(Path::new(&file), &["bt"]) {
        return Err(workspace.image.down());
    }
    refuse_pending(workspace, &file)?;
    let now = read_text(&path, &file)?;
    let base = now.as_ref().map(|text| hash(text.as_bytes()));
    if base != request.base_sha256 {
        return Err(changed(&file, now));
    }
    let written = workspace
        .changes
        .borrow_mut()
        .write_file(&file, &request.text, base)
        .map_err(failed)?;
    if let Some(conflict) = written.first() {
        let detail = conflict.detail.clone().unwrap_or_default();
        return Err(match conflict.reason {
            ConflictReason::WriteFailed => {
                ErrorBody::new(ErrorKind::WriteFailed, format!("{file}: {detail}"))
            }
            _ => changed(&file, read_text(&path, &file)?),
        });
    }
    let (classes, errors) = load(workspace, &file, path).await;
    Ok(DocWriteAnswer {
        sha256: hash(request.text.as_bytes()),
        classes,
        errors,
    })
}

/// A file of the image is loaded; one that cannot be leaves the image as it is.
async fn load(workspace: &Rc<Workspace>, file: &str, path: PathBuf) -> (Vec<String>, Vec<LoadError>) {
    let is_source = has_extension(Path::new(file), &["bt"]);
    if !is_source || !file.starts_with("src/") && image_text(workspace, file).is_none() {
        return (Vec::new(), Vec::new());
    }
    match load_files(workspace, &[path]).await {
        Ok(answer) => (answer.classes, answer.errors),
        Err(error) => (Vec::new(), vec![not_loaded(file.to_owned(), error)]),
    }
}

/// The image's version of a file would be lost.
fn refuse_pending(workspace: &Workspace, file: &str) -> Result<(), ErrorBody> {
    let is_of_file = |entry: &Entry| entry.is_pending() && entry.source_file.as_deref() == Some(file);
    let entries = workspace.changes.borrow().select(is_of_file);
    if entries.is_empty() {
        return Ok(());
    }
    let mut classes: Vec<&str> = entries.iter().map(|entry| entry.class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    let noun = if entries.len() == 1 { "change" } else { "changes" };
    let message = format!(
        "flush or revert {} {noun} of {} first",
        entries.len(),
        classes.join(", ")
    );
    Err(ErrorBody::new(ErrorKind::PendingChanges, message))
}

fn changed(file: &str, now: Option<String>) -> ErrorBody {
    let message = match &now {
        Some(_) => format!("{file} is not what it was when it was read"),
        None => format!("{file} is gone from disk"),
    };
    let sha256 = now.as_ref().map(|text| hash(text.as_bytes()));
    ErrorBody::new(ErrorKind::FileChanged, message)
        .detail("text", now)
        .detail("sha256", sha256)
}

fn missing(file: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::FileNotFound, format!("there is no {file}"))
}

fn outside(path: &str, why: &str) -> ErrorBody {
    ErrorBody::new(ErrorKind::TargetOutsideProject, format!("{path} {why}"))
}

/// A path of a request: relative to the project, and where that really is.
fn place(workspace: &Workspace, path: &str) -> Result<(String, PathBuf), ErrorBody> {
    let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || path.contains('\0') || !Path::new(path).components().all(is_plain) {
        return Err(outside(path, "is not in the project"));
    }
    let log = workspace.changes.borrow();
    let file = log.normal(path);
    let unreadable = |cause: std::io::Error| ErrorBody::new(ErrorKind::ReadError, format!("{file}: {cause}"));
    let real = log.resolve(&file).map_err(unreadable)?;
    let real = real.ok_or_else(|| outside(path, "leads out of the project"))?;
    // A link must not make a document of what is none.
    let root = workspace
        .root
        .canonicalize()
        .unwrap_or_else(|_| workspace.root.clone());
    let below = real.strip_prefix(&root).unwrap_or(&real);
    if !is_open(Path::new(&file)) || !is_open(below) || below.extension() != Path::new(&file).extension() {
        return Err(outside(path, "is not a document of the project"));
    }
    Ok((file, real))
}

/// Nothing hidden, and nothing that is made by a build.
fn is_open(below: &Path) -> bool {
    let mut parts = below.components().map(|part| part.as_os_str().to_string_lossy());
    parts.all(|part| !part.starts_with('.') && part != "_build")
}

fn may_read(file: &Path, role: Role) -> bool {
    has_extension(file, WRITTEN) || role == Role::Owner && has_extension(file, OWNERS)
}

pub(super) fn has_extension(file: &Path, wanted: &[&str]) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| wanted.contains(&extension))
}

/// The text of a file, if there is one. Only of a regular one: a pipe would not end.
pub(super) fn read_text(path: &Path, file: &str) -> Result<Option<String>, ErrorBody> {
    let unreadable = |cause: &str| ErrorBody::new(ErrorKind::ReadError, format!("{file}: {cause}"));
    let about = match path.metadata() {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        about => about.map_err(|cause| unreadable(&cause.to_string()))?,
    };
    if !about.is_file() {
        return Err(unreadable("it is not a file"));
    }
    let mut bytes = Vec::new();
    let opened =
        std::fs::File::open(path).and_then(|opened| opened.take(LARGEST + 1).read_to_end(&mut bytes));
    opened.map_err(|cause| unreadable(&cause.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(unreadable("it is over 1 MiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text"))?;
    Ok(Some(text))
}
