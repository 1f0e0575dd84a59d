//! What the server knows at one moment: open documents and the worlds they belong to. Requests get a snapshot, which
//! nothing changes any more.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_compiler::reads::Key;
use beamtalk_project::Project;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use gen_lsp_types::{Location, Position, Range, TextDocumentIdentifier, TextDocumentPositionParams, Uri};

use crate::client::Client;
use crate::fault::Fault;
use crate::library::Library;
use crate::live::{Image, Links};
use crate::position::Encoding;
use crate::requests::semantic_tokens::Sent;
use crate::uri;
use crate::world::{Access, Draft, File, World};

/// A text longer than this is kept by the editor alone.
pub(crate) const MAX_TEXT: usize = 4 * 1024 * 1024;

/// An open document.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    /// As the client writes it.
    pub(crate) uri: Uri,
    pub(crate) version: i32,
    /// The root of its world.
    pub(crate) root: PathBuf,
    pub(crate) draft: Arc<Draft>,
    /// The text when it was opened or saved last.
    pub(crate) saved: EcoString,
    pub(crate) is_too_long: bool,
    /// Belongs to somebody else: the library, a dependency, the image.
    pub(crate) is_read_only: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// By canonical URI.
    pub(crate) documents: BTreeMap<EcoString, Arc<Document>>,
    /// By root.
    pub(crate) worlds: BTreeMap<PathBuf, Arc<World>>,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) encoding: Encoding,
    pub(crate) client: Arc<Client>,
    pub(crate) tokens: Arc<Sent>,
    /// What running workspaces know, by root.
    pub(crate) images: BTreeMap<PathBuf, Arc<Image>>,
    pub(crate) links: Links,
    pub(crate) noted: Arc<Noted>,
}

/// What the diagnostics of documents rest on, as they were sent last.
#[derive(Debug, Default)]
pub(crate) struct Noted(Mutex<BTreeMap<EcoString, Vec<Key>>>);

impl Noted {
    pub(crate) fn note(&self, key: &str, reads: Vec<Key>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key.into(), reads);
    }

    /// Whether the diagnostics of a document may be different now that these changed, in ascending order.
    pub(crate) fn is_reached(&self, key: &str, changed: &[Key]) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reads = all.get(key);
        reads.is_none_or(|reads| changed.iter().any(|key| reads.binary_search(key).is_ok()))
    }

    pub(crate) fn forget(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// One name for each document, however a client spells it.
pub(crate) fn key(uri: &str) -> EcoString {
    match uri::to_path(uri) {
        Some(path) => uri::of_path(&canonical(&path)).0.into(),
        None => uri.into(),
    }
}

/// A path without links, as far as it exists.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    if let Ok(path) = std::fs::canonicalize(path) {
        return path;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => canonical(parent).join(name),
        _ => path.to_owned(),
    }
}

impl State {
    /// The root of the world a document belongs to.
    pub(crate) fn root_of(&self, key: &str) -> PathBuf {
        let known = self.worlds.values().find(|world| world.files.contains_key(key));
        if let Some(world) = known {
            return world.root.clone();
        }
        let Some(path) = uri::to_path(key) else {
            return PathBuf::from("/");
        };
        let directories = || path.ancestors().skip(1);
        let has_manifest = |directory: &&Path| matches!(Project::at(directory), Ok(Some(_)) | Err(_));
        if let Some(root) = directories().find(has_manifest) {
            return root.to_owned();
        }
        let folder = self.folders.iter().find(|folder| {
            let own = Project::loose(folder).and_then(|project| project.sources());
            own.is_ok_and(|sources| sources.contains(&path))
        });
        // Without a project a file is alone in a world of its own.
        folder.cloned().unwrap_or(path)
    }

    pub(crate) fn world(&self, root: &Path) -> Arc<World> {
        let known = self.worlds.get(root).cloned();
        known.unwrap_or_else(|| Arc::new(World::alone(root)))
    }
}

/// The state for one request, and whether anybody still wants its answer.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) state: Arc<State>,
    pub(crate) is_cancelled: Arc<AtomicBool>,
}

/// A file with the world it is looked at in.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) key: EcoString,
    pub(crate) file: Arc<File>,
    pub(crate) world: Arc<World>,
    pub(crate) encoding: Encoding,
    pub(crate) client: Arc<Client>,
}

impl Snapshot {
    pub(crate) fn new(state: &Arc<State>) -> Self {
        Self {
            state: state.clone(),
            is_cancelled: Arc::default(),
        }
    }

    /// Long work asks this between its steps.
    pub(crate) fn go_on(&self) -> Result<(), Fault> {
        if self.is_cancelled.load(Ordering::Relaxed) {
            return Err(Fault::Cancelled);
        }
        Ok(())
    }

    pub(crate) fn view(&self, document: &TextDocumentIdentifier) -> Result<View, Fault> {
        self.view_of(&document.uri)
    }

    /// The file of a URI: open, on disk, or of the library.
    pub(crate) fn view_of(&self, uri: &Uri) -> Result<View, Fault> {
        let unknown = || Fault::InvalidParams(format!("there is no document {uri}"));
        if uri::scheme(&uri.0).is_none() {
            return Err(Fault::InvalidParams(format!("'{uri}' is not a URI")));
        }
        let key = key(&uri.0);
        let (encoding, client) = (self.state.encoding, self.state.client.clone());
        if uri::scheme(&key) == Some(uri::LIBRARY) {
            let name = uri::name(&key).ok_or_else(unknown)?;
            let library = Library::get();
            let file = library.files.get(name.as_str()).ok_or_else(unknown)?.clone();
            let world = self.any_world();
            return Ok(View {
                key,
                file,
                world,
                encoding,
                client,
            });
        }
        let document = self.state.documents.get(&key);
        let root = match document {
            Some(document) if document.is_too_long => {
                return Err(Fault::Failed(
                    "the document is too long to be looked at".to_owned(),
                ));
            }
            Some(document) => document.root.clone(),
            None => self.state.root_of(&key),
        };
        let world = self.state.world(&root);
        let file = world.files.get(&key).cloned();
        let file = match file {
            Some(file) => file,
            None => Arc::new(read(&world, &key).ok_or_else(unknown)?),
        };
        Ok(View {
            key,
            file,
            world,
            encoding,
            client,
        })
    }

    fn any_world(&self) -> Arc<World> {
        let first = self.state.worlds.values().next().cloned();
        first.unwrap_or_else(|| Arc::new(World::alone(Path::new("/"))))
    }

    /// A file and the offset of a position in it.
    pub(crate) fn at(&self, place: &TextDocumentPositionParams) -> Result<(View, u32), Fault> {
        let view = self.view(&place.text_document)?;
        let offset = view.offset(place.position)?;
        Ok((view, offset))
    }
}

/// A file that nobody opened and that belongs to no package that was read.
fn read(world: &World, key: &str) -> Option<File> {
    let path = uri::to_path(key)?;
    let found = std::fs::metadata(&path).ok()?;
    // Reading a pipe would not end.
    if !found.is_file() || found.len() > MAX_TEXT as u64 {
        return None;
    }
    let text = String::from_utf8_lossy(&std::fs::read(&path).ok()?).into_owned();
    let draft = world.draft(key, &text);
    Some(File::new(
        uri::of_path(&path),
        Arc::new(draft.source),
        Access::Own,
    ))
}

impl View {
    pub(crate) fn text(&self) -> &str {
        self.file.text()
    }

    pub(crate) fn offset(&self, position: Position) -> Result<u32, Fault> {
        Ok(self.file.lines.offset(self.text(), position, self.encoding)?)
    }

    pub(crate) fn span(&self, range: Range) -> Result<Span, Fault> {
        Ok(self.file.lines.span(self.text(), range, self.encoding)?)
    }

    pub(crate) fn range(&self, span: Span) -> Range {
        range_in(&self.file, span, self.encoding)
    }

    /// All files whose names this one can mean, the library included.
    pub(crate) fn all_files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.world.files.values().chain(Library::get().files.values())
    }

    pub(crate) fn location(&self, file: &File, span: Span) -> Location {
        let directory = self.client.settings.library_directory.as_deref();
        let uri = match (file.access, directory) {
            // Whoever has the library's sources in a directory wants to see them there.
            (Access::Library, Some(directory)) => {
                uri::of_path(&Path::new(directory).join(file.source.path.as_str()))
            }
            _ => file.uri.clone(),
        };
        Location {
            uri,
            range: range_in(file, span, self.encoding),
        }
    }
}

pub(crate) fn range_in(file: &File, span: Span, encoding: Encoding) -> Range {
    file.lines.range(file.text(), span, encoding)
}
