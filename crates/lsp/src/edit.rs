//! Changes of several files as one thing that a client can show, confirm and undo.

use std::collections::BTreeMap;

use beamtalk_syntax::span::Span;
use gen_lsp_types::{Range, Uri};
use serde_json::{Value, json};

use crate::analysis::references::Certainty;
use crate::fault::Fault;
use crate::state::{Snapshot, key, range_in};
use crate::world::{Access, File};

const POSSIBLE: &str = "possible";

struct Piece {
    range: Range,
    text: String,
    certainty: Certainty,
}

/// Edits under way.
pub(crate) struct Edits<'a> {
    snapshot: &'a Snapshot,
    files: BTreeMap<String, (Uri, Vec<Piece>)>,
    operations: Vec<Value>,
    why: &'static str,
}

impl<'a> Edits<'a> {
    /// `why` says what a person has to decide about edits that are only possible.
    pub(crate) fn new(snapshot: &'a Snapshot, why: &'static str) -> Self {
        Self {
            snapshot,
            files: BTreeMap::new(),
            operations: Vec::new(),
            why,
        }
    }

    pub(crate) fn replace(
        &mut self,
        file: &File,
        span: Span,
        text: impl Into<String>,
        certainty: Certainty,
    ) -> Result<(), Fault> {
        if file.access != Access::Own {
            let text = format!(
                "{} belongs to another package and is not changed",
                file.source.path
            );
            return Err(Fault::Failed(text));
        }
        let piece = Piece {
            range: range_in(file, span, self.snapshot.state.encoding),
            text: text.into(),
            certainty,
        };
        let entry = self.files.entry(file.uri.0.clone());
        let (_, pieces) = entry.or_insert_with(|| (file.uri.clone(), Vec::new()));
        pieces.push(piece);
        Ok(())
    }

    /// Replace a part of a text that is no source, such as the manifest.
    pub(crate) fn replace_text(&mut self, uri: Uri, range: Range, text: String) {
        let entry = self.files.entry(uri.0.clone());
        let (_, pieces) = entry.or_insert_with(|| (uri, Vec::new()));
        pieces.push(Piece {
            range,
            text,
            certainty: Certainty::Sure,
        });
    }

    /// A file gets another name; it is told after the edits.
    pub(crate) fn rename_file(&mut self, old: &Uri, new: &Uri) {
        self.operations
            .push(json!({"kind": "rename", "oldUri": old, "newUri": new}));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.operations.is_empty()
    }

    /// The edit as the client can take it. What is only possible must be confirmed, which not every client can ask.
    pub(crate) fn finish(self) -> Result<Value, Fault> {
        let client = &self.snapshot.state.client;
        let mut pieces = self.files.values().flat_map(|(_, pieces)| pieces);
        let asks = pieces.any(|piece| piece.certainty == Certainty::Possible);
        if asks && !client.annotates_changes {
            return Err(Fault::Failed(format!(
                "{}; this editor cannot ask about single changes, so nothing is changed",
                self.why
            )));
        }
        if !self.operations.is_empty() && !client.renames_files {
            let text = "the file must be renamed too, which this editor does not offer".to_owned();
            return Err(Fault::Failed(text));
        }
        if !client.annotates_changes && self.operations.is_empty() {
            let changes: BTreeMap<&String, Vec<Value>> = self
                .files
                .iter()
                .map(|(uri, (_, pieces))| (uri, pieces.iter().map(|piece| edit(piece, false)).collect()))
                .collect();
            return Ok(json!({ "changes": changes }));
        }
        let mut all: Vec<Value> = Vec::new();
        for (uri, pieces) in self.files.values() {
            let open = self.snapshot.state.documents.get(&key(&uri.0));
            let version = open.map(|document| document.version);
            let edits: Vec<Value> = pieces
                .iter()
                .map(|piece| edit(piece, client.annotates_changes))
                .collect();
            all.push(json!({"textDocument": {"uri": uri, "version": version}, "edits": edits}));
        }
        all.extend(self.operations);
        let mut whole = json!({ "documentChanges": all });
        if asks {
            let annotation = json!({
                "label": self.why, "needsConfirmation": true,
            });
            whole["changeAnnotations"] = json!({POSSIBLE: annotation});
        }
        Ok(whole)
    }
}

fn edit(piece: &Piece, annotates: bool) -> Value {
    let mut edit = json!({"range": piece.range, "newText": piece.text});
    if annotates && piece.certainty == Certainty::Possible {
        edit["annotationId"] = POSSIBLE.into();
    }
    edit
}
