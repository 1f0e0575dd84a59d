//! Classes and methods of all packages by a part of their name.

use beamtalk_syntax::ast::Item;
use beamtalk_syntax::span::Span;
use gen_lsp_types::WorkspaceSymbolParams;
use serde_json::{Value, json};

use crate::analysis::find::{self, selector_span};
use crate::fault::Fault;
use crate::library::Library;
use crate::state::{Snapshot, range_in};
use crate::uri;
use crate::world::File;

/// More than this many help nobody.
const MAX: usize = 500;

pub(crate) fn handle(snapshot: &Snapshot, params: WorkspaceSymbolParams) -> Result<Value, Fault> {
    let mut found: Vec<(u8, String, Value)> = Vec::new();
    for world in snapshot.state.worlds.values() {
        for file in world.files.values() {
            snapshot.go_on()?;
            symbols(snapshot, file, &params.query, &mut found);
        }
    }
    for (root, image) in &snapshot.state.images {
        for row in image.without_file() {
            if let Some(rank) = rank(&row.name, &params.query) {
                let zero = json!({"line": 0, "character": 0});
                let location = json!({
                    "uri": uri::of_live_class(root, &row.name),
                    "range": {"start": zero, "end": zero},
                });
                let name = format!("{} (no source file)", row.name);
                let symbol = json!({"name": name, "kind": 5, "location": location});
                found.push((rank, row.name.clone(), symbol));
            }
        }
    }
    // The library is too large to be listed unasked.
    if params.query.chars().count() >= 2 {
        for file in Library::get().files.values() {
            symbols(snapshot, file, &params.query, &mut found);
        }
    }
    found.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    found.truncate(MAX);
    Ok(found.into_iter().map(|(_, _, symbol)| symbol).collect())
}

fn symbols(snapshot: &Snapshot, file: &File, query: &str, found: &mut Vec<(u8, String, Value)>) {
    let mut add = |name: &str, container: Option<&str>, kind: u8, span: Span| {
        if let Some(rank) = rank(name, query) {
            let location = json!({
                "uri": file.uri,
                "range": range_in(file, span, snapshot.state.encoding),
            });
            let symbol = json!({
                "name": name, "kind": kind, "location": location, "containerName": container,
            });
            found.push((rank, name.to_owned(), symbol));
        }
    };
    for item in &file.source.unit.items {
        match item {
            Item::Class(class) => add(&class.name.text, None, 5, class.name.span),
            Item::Protocol(protocol) => add(&protocol.name.text, None, 11, protocol.name.span),
            Item::TypeAlias(alias) => add(&alias.name.text, None, 26, alias.name.span),
            Item::Extension(_) | Item::Statement(_) => {}
        }
    }
    for method in find::methods(file) {
        let head = &method.method.head;
        let span = selector_span(&head.parts, head.span);
        add(&head.selector, Some(method.class), 6, span);
    }
}

/// How well a name fits: it starts so, it contains it, or it has its letters in this order.
fn rank(name: &str, query: &str) -> Option<u8> {
    let (name, query) = (name.to_lowercase(), query.to_lowercase());
    if name.starts_with(&query) {
        return Some(0);
    }
    if name.contains(&query) {
        return Some(1);
    }
    let mut letters = name.chars();
    query
        .chars()
        .all(|wanted| letters.any(|letter| letter == wanted))
        .then_some(2)
}
