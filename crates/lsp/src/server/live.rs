//! The part of the server that deals with running workspaces: following them, loading what is saved, showing what they say.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use gen_lsp_types::Uri;
use lsp_server::Notification;
use serde_json::{Value, json};

use super::{Report, Server};
use crate::client::Saving;
use crate::live::{Image, News};
use crate::pool::guarded;
use crate::position::Lines;
use crate::requests::execute_command;
use crate::state::{Snapshot, key};
use crate::sync::is_source;
use crate::uri;

impl Server {
    /// Look for the workspace of a project from now on.
    pub(super) fn follow(&self, root: &Path) {
        if let Some(workspaces) = &self.workspaces {
            let reports = self.reports.clone();
            let news = move |news| drop(reports.send(Report::Live(news)));
            self.state.links.follow(root, workspaces, news);
        }
    }

    /// Load a saved file into the image, if there is one and the person wants it.
    pub(super) fn save(&self, uri: &Uri) {
        let key = key(&uri.0);
        let Some(document) = self.state.documents.get(&key) else {
            return;
        };
        let is_wanted = self.state.client.settings.live == Saving::Loads
            && self.state.images.contains_key(&document.root)
            && !document.is_read_only;
        let Some(path) = uri::to_path(&key).filter(|path| is_wanted && is_source(path)) else {
            return;
        };
        let file = path.strip_prefix(&document.root).unwrap_or(&path);
        let file = file.display().to_string();
        let (root, reports) = (document.root.clone(), self.reports.clone());
        let snapshot = Snapshot::new(&self.state);
        self.pool.run(Arc::default(), move || {
            let text = match guarded(|| execute_command::load(&snapshot, &root, &file)) {
                Ok(answer) if answer.errors.is_empty() => format!("{file}: loaded into the image"),
                Ok(answer) => {
                    let errors = answer.errors.iter().map(|error| error.message.as_str());
                    format!("{file}: not loaded: {}", errors.collect::<Vec<_>>().join("; "))
                }
                Err(fault) => format!("{file}: not loaded: {fault}"),
            };
            drop(reports.send(Report::Told(text)));
        });
    }

    pub(super) fn live(&mut self, news: News) {
        match news {
            News::Image(root, image) => {
                let state = Arc::make_mut(&mut self.state);
                let image: Option<Arc<Image>> = image.map(Arc::from);
                let old = match &image {
                    Some(image) => state.images.insert(root.clone(), image.clone()),
                    None => state.images.remove(&root),
                };
                let says = |image: &Option<Arc<Image>>| {
                    let image = image.as_ref();
                    image.map(|image| (image.conflicts.clone(), image.findings.clone()))
                };
                // Actors come and go without a word about any text.
                let is_told = says(&old).unwrap_or_default() != says(&image).unwrap_or_default();
                if is_told {
                    let keys = state.of_root(&root);
                    let now = Instant::now();
                    self.due.extend(keys.into_iter().map(|key| (key, now)));
                }
                self.show_image(&root, is_told);
            }
            News::Transcript(text) => {
                if self.state.client.follows_workspace {
                    let params = json!({ "text": text });
                    self.send(Notification::new("beamtalk/transcript".to_owned(), params));
                }
            }
            News::Flushed(root, files) => files.iter().for_each(|file| self.flushed(&root.join(file))),
        }
    }

    /// What a client shows of a workspace is out of date.
    fn show_image(&mut self, root: &Path, is_told: bool) {
        if self.state.client.follows_workspace {
            let status = execute_command::status(&Snapshot::new(&self.state), root);
            self.send(Notification::new("beamtalk/status".to_owned(), status));
        }
        if self.state.client.refreshes_lenses {
            self.ask("workspace/codeLens/refresh", Value::Null);
        }
        if is_told && self.state.client.pulls_diagnostics && self.state.client.refreshes_diagnostics {
            self.ask("workspace/diagnostic/refresh", Value::Null);
        }
    }

    /// A flush has written a file. An editor that has it open unchanged gets the change; over unsaved text nothing is put.
    fn flushed(&mut self, path: &Path) {
        let written = uri::of_path(path);
        let Some(document) = self.state.documents.get(&key(&written.0)).cloned() else {
            let todo = Arc::make_mut(&mut self.state).changed_on_disk(&[written]);
            return self.todo(todo);
        };
        let text = &document.draft.source.text;
        let Ok(new) = std::fs::read_to_string(path) else {
            return;
        };
        if *text == new {
            return;
        }
        if *text != document.saved {
            let path = path.display();
            return self.tell(&format!(
                "{path}: a flush has written this file; the editor has unsaved text, which is left alone"
            ));
        }
        let lines = Lines::new(text);
        let edits: Vec<Value> = beamtalk_syntax::diff::changes(text, &new)
            .into_iter()
            .map(|(span, new)| json!({"range": lines.range(text, span, self.state.encoding), "newText": new}))
            .collect();
        let named = json!({"uri": document.uri, "version": document.version});
        let edit = json!({"documentChanges": [{"textDocument": named, "edits": edits}]});
        let params = json!({"label": "Flush of the workspace", "edit": edit});
        self.ask("workspace/applyEdit", params);
    }
}
