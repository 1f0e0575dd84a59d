//! A class of a package that the manifest does not name: the package is added as whoever brings it names it.

use beamtalk_project::manifest::{FILE_NAME, Manifest, edit};
use beamtalk_syntax::ast::Item;
use gen_lsp_types::{Position, Range};
use serde_json::Value;

use super::{Asked, action};
use crate::analysis::names::{self, Meaning};
use crate::edit::Edits;
use crate::fault::Fault;
use crate::position::Lines;
use crate::uri;
use crate::world::Access;

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let view = asked.view;
    let names = names::all(&view.file.source.unit);
    let class = names::at(&names, asked.span.start).and_then(|name| match &name.meaning {
        Meaning::Class(class) => Some(class.clone()),
        _ => None,
    });
    let Some(class) = class else { return Ok(Vec::new()) };
    let declares = |item: &Item| matches!(item, Item::Class(found) if found.name.text == class);
    let owner = view
        .world
        .files
        .values()
        .find(|file| file.access == Access::Dependency && file.source.unit.items.iter().any(declares))
        .and_then(|file| file.source.package.clone());
    let Some(owner) = owner else { return Ok(Vec::new()) };
    let path = view.world.root.join(FILE_NAME);
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(Vec::new());
    };
    let Ok(manifest) = Manifest::parse(&text, FILE_NAME) else {
        return Ok(Vec::new());
    };
    if manifest
        .dependencies
        .iter()
        .any(|known| known.name == owner.as_str())
    {
        return Ok(Vec::new());
    }
    let Some(dependency) = view.world.sources.get(&owner).cloned() else {
        return Ok(Vec::new());
    };
    let new = edit::add_dependency(&text, &dependency);
    let lines = Lines::new(&text);
    let mut edits = Edits::new(asked.snapshot, "");
    let range = Range {
        start: Position {
            line: 0,
            character: 0,
        },
        end: lines.position(&text, text.len() as u32, view.encoding),
    };
    edits.replace_text(uri::of_path(&path), range, new);
    let title = format!("Add '{owner}' to [dependencies]");
    Ok(vec![action(title, "quickfix", edits.finish()?)])
}
