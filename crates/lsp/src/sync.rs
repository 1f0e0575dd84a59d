//! Documents as the client opens, changes and closes them, and files as they change on disk.

use std::path::PathBuf;
use std::sync::Arc;

use beamtalk_compiler::reads::Key;
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use gen_lsp_types::{TextDocumentContentChangeEvent, Uri};

use crate::fault::Fault;
use crate::position::Lines;
use crate::state::{Document, MAX_TEXT, State, canonical, key};
use crate::uri;
use crate::world::{Access, Draft, World};

/// What a change of documents leaves to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Todo {
    /// Packages to read.
    pub(crate) load: Vec<PathBuf>,
    /// Documents to look at again.
    pub(crate) diagnose: Vec<EcoString>,
}

impl State {
    pub(crate) fn open(&mut self, uri: Uri, version: i32, text: String) -> Todo {
        let key = key(&uri.0);
        let root = self.root_of(&key);
        let mut todo = Todo::default();
        if !self.worlds.contains_key(&root) {
            let is_alone = uri::to_path(&key).is_none_or(|path| path == root);
            let world = if is_alone {
                World::alone(&root)
            } else {
                todo.load.push(root.clone());
                World::coming(&root)
            };
            self.worlds.insert(root.clone(), Arc::new(world));
        }
        let world = self.world(&root);
        let is_foreign = world
            .files
            .get(&key)
            .is_some_and(|file| file.access == Access::Dependency);
        let is_virtual = matches!(uri::scheme(&uri.0), Some(uri::LIBRARY | uri::LIVE));
        let document = Document {
            uri,
            version,
            root,
            draft: Arc::new(empty()),
            saved: text.as_str().into(),
            is_too_long: false,
            is_read_only: is_foreign || is_virtual,
        };
        self.documents.insert(key.clone(), Arc::new(document));
        self.noted.forget(&key);
        let changed = self.put(&key, version, text);
        todo.diagnose = self.affected(&key, &changed);
        todo
    }

    /// Apply changes in their order. One that does not apply changes nothing: the text is then asked for anew by
    /// refusing, and stays what it was.
    pub(crate) fn change(
        &mut self,
        uri: &Uri,
        version: i32,
        changes: Vec<TextDocumentContentChangeEvent>,
    ) -> Result<Todo, Fault> {
        let key = key(&uri.0);
        let document = self
            .documents
            .get(&key)
            .ok_or_else(|| Fault::InvalidParams(format!("{uri} is not open")))?;
        let mut text = document.draft.source.text.to_string();
        let mut is_whole = false;
        for change in changes {
            match change {
                TextDocumentContentChangeEvent::TextDocumentContentChangeWholeDocument(whole) => {
                    text = whole.text;
                    is_whole = true;
                }
                TextDocumentContentChangeEvent::TextDocumentContentChangePartial(part) => {
                    if document.is_too_long && !is_whole {
                        return Err(Fault::Failed("the document is too long".to_owned()));
                    }
                    let span = Lines::new(&text).span(&text, part.range, self.encoding)?;
                    text.replace_range(span.start as usize..span.end as usize, &part.text);
                }
            }
        }
        let changed = self.put(&key, version, text);
        Ok(Todo {
            load: Vec::new(),
            diagnose: self.affected(&key, &changed),
        })
    }

    /// What is in the editor is on disk now.
    pub(crate) fn saved(&mut self, uri: &Uri) {
        if let Some(document) = self.documents.get_mut(&key(&uri.0)).map(Arc::make_mut) {
            document.saved = document.draft.source.text.clone();
        }
    }

    pub(crate) fn close(&mut self, uri: &Uri) -> Todo {
        let key = key(&uri.0);
        let Some(document) = self.documents.remove(&key) else {
            return Todo::default();
        };
        self.reread(&key);
        let is_alone = uri::to_path(&key).is_none_or(|path| path == document.root);
        if is_alone {
            self.worlds.remove(&document.root);
        }
        Todo {
            load: Vec::new(),
            diagnose: self.of_root(&document.root),
        }
    }

    /// Files changed on disk; what is open in the editor stays as the editor has it.
    pub(crate) fn changed_on_disk(&mut self, uris: &[Uri]) -> Todo {
        let mut todo = Todo::default();
        for uri in uris {
            let key = key(&uri.0);
            let Some(path) = uri::to_path(&key) else { continue };
            let is_package = path
                .file_name()
                .is_some_and(|name| name == "beamtalk.toml" || name == "beamtalk.lock");
            if is_package {
                let roots = self.worlds.keys().filter(|root| path.starts_with(root));
                todo.load.extend(roots.cloned());
            } else if !self.documents.contains_key(&key) {
                let root = self.root_of(&key);
                self.reread(&key);
                todo.diagnose.extend(self.of_root(&root));
            }
        }
        todo.load.dedup();
        todo.diagnose.sort();
        todo.diagnose.dedup();
        todo
    }

    /// A world was read: the editor's texts go over what is on disk.
    pub(crate) fn loaded(&mut self, mut world: World) -> Todo {
        let root = world.root.clone();
        let documents: Vec<(EcoString, Arc<Document>)> = self
            .documents
            .iter()
            .filter(|(_, document)| document.root == root)
            .map(|(key, document)| (key.clone(), document.clone()))
            .collect();
        for (key, document) in documents {
            let access = world.files.get(&key).map(|file| file.access);
            let is_read_only = access == Some(Access::Dependency);
            let mut document = (*document).clone();
            document.is_read_only |= is_read_only;
            if !document.is_too_long {
                document.draft = Arc::new(world.draft(&key, &document.draft.source.text));
                if !is_read_only {
                    world.put(&key, &document.uri, &document.draft);
                }
            }
            self.documents.insert(key, Arc::new(document));
        }
        self.worlds.insert(root.clone(), Arc::new(world));
        Todo {
            load: Vec::new(),
            diagnose: self.of_root(&root),
        }
    }

    /// A document has a new text. Answers what others may have known and is different now.
    fn put(&mut self, key: &EcoString, version: i32, text: String) -> Vec<Key> {
        let Some(document) = self.documents.get_mut(key).map(Arc::make_mut) else {
            return Vec::new();
        };
        document.version = version;
        document.is_too_long = text.len() > MAX_TEXT;
        if document.is_too_long {
            document.draft = Arc::new(too_long(text.len()));
            return Vec::new();
        }
        let Some(world) = self.worlds.get_mut(&document.root) else {
            return Vec::new();
        };
        document.draft = Arc::new(world.draft(key, &text));
        if document.is_read_only {
            return Vec::new();
        }
        Arc::make_mut(world).put(key, &document.uri, &document.draft)
    }

    /// What is on disk at a place that no editor holds.
    fn reread(&mut self, key: &EcoString) {
        let root = self.root_of(key);
        let Some(world) = self.worlds.get_mut(&root) else {
            return;
        };
        let Some(path) = uri::to_path(key) else {
            Arc::make_mut(world).remove(key);
            return;
        };
        let text = std::fs::metadata(&path)
            .ok()
            .filter(|file| file.is_file() && file.len() <= MAX_TEXT as u64)
            .and_then(|_| std::fs::read(&path).ok());
        match text {
            Some(bytes) if is_source(&path) => {
                let text = String::from_utf8_lossy(&bytes);
                let draft = world.draft(key, &text);
                Arc::make_mut(world).put(key, &uri::of_path(&canonical(&path)), &draft);
            }
            _ => Arc::make_mut(world).remove(key),
        }
    }

    /// A changed document first, then the others whose diagnostics rest on what it changed.
    fn affected(&self, key: &EcoString, changed: &[Key]) -> Vec<EcoString> {
        let Some(document) = self.documents.get(key) else {
            return Vec::new();
        };
        let mut keys = vec![key.clone()];
        keys.extend(
            self.of_root(&document.root)
                .into_iter()
                .filter(|other| other != key && self.noted.is_reached(other, changed)),
        );
        // Until they are looked at, every further change reaches them.
        keys.iter().for_each(|key| self.noted.forget(key));
        keys
    }

    pub(crate) fn of_root(&self, root: &std::path::Path) -> Vec<EcoString> {
        let documents = self.documents.iter();
        documents
            .filter(|(_, document)| document.root == root)
            .map(|(key, _)| key.clone())
            .collect()
    }
}

pub(crate) fn is_source(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|kind| kind == "bt")
}

fn empty() -> Draft {
    World::alone(std::path::Path::new("/")).draft("untitled:", "")
}

fn too_long(length: usize) -> Draft {
    let message = format!(
        "the file has {} MB; files of more than {} MB are not looked at",
        length.div_ceil(1024 * 1024),
        MAX_TEXT / 1024 / 1024
    );
    let mut draft = empty();
    draft.diagnostics = vec![Diagnostic::warning("W0902", Span::new(0, 0), message)];
    draft
}
