//! The text of documents that are no files: sources of the library, sources as the image has them.

use std::path::Path;

use beamtalk_wire::requests::{BrowseClassDefinition, BrowseMethodSource, Methods};
use serde::Deserialize;
use serde_json::{Value, json};

use super::execute_command::{difference, sides};
use crate::fault::Fault;
use crate::library::Library;
use crate::live::PATIENT;
use crate::state::Snapshot;
use crate::uri;

/// `beamtalk/fetchContent` and `workspace/textDocumentContent` ask alike.
#[derive(Deserialize)]
pub(crate) struct Params {
    uri: String,
}

pub(crate) fn handle(snapshot: &Snapshot, params: Params) -> Result<Value, Fault> {
    let missing = || Fault::InvalidParams(format!("there is no document {}", params.uri));
    let text = match uri::scheme(&params.uri) {
        Some(uri::LIBRARY) => {
            let name = uri::name(&params.uri).ok_or_else(missing)?;
            let file = Library::get().files.get(name.as_str()).ok_or_else(missing)?;
            file.text().to_owned()
        }
        Some(uri::LIVE) => live(snapshot, &params.uri)?.ok_or_else(missing)?,
        _ => return Err(missing()),
    };
    Ok(json!({"text": text, "readOnly": true}))
}

/// `beamtalk-live:/Lamp` is the source of a class, `beamtalk-live:/diff/src/Lamp.bt` how the image differs from the disk.
fn live(snapshot: &Snapshot, uri: &str) -> Result<Option<String>, Fault> {
    let Some((name, root)) = uri::of_image(uri) else {
        return Ok(None);
    };
    let first = || snapshot.state.images.keys().next().cloned();
    let Some(root) = root.or_else(first) else {
        let text = "no workspace runs for this project; `beamtalk repl` starts one".to_owned();
        return Err(Fault::Failed(text));
    };
    if let Some(file) = name.strip_prefix("diff/") {
        let sides = sides(snapshot, &root, file)?;
        return Ok(Some(difference(file, &sides)));
    }
    let image = snapshot.state.images.get(&root);
    let row = image.and_then(|image| image.classes.iter().find(|row| row.name == name));
    match row.and_then(|row| row.source_file.as_deref()) {
        Some(file) => Ok(sides(snapshot, &root, file)?.image),
        None => class(snapshot, &root, &name).map(Some),
    }
}

/// A class that stands in no file, put together from what the image knows of it.
fn class(snapshot: &Snapshot, root: &Path, name: &str) -> Result<String, Fault> {
    let links = &snapshot.state.links;
    let named = || name.to_owned();
    let head = links.ask(root, &BrowseClassDefinition { class: named() }, PATIENT)?;
    let mut text = format!("{}\n", head.definition.trim_end());
    for method in links.ask(root, &Methods { class: named() }, PATIENT)?.methods {
        let request = BrowseMethodSource {
            class: named(),
            selector: method.selector,
            side: Some(method.side),
        };
        if let Some(source) = links.ask(root, &request, PATIENT)?.source {
            text.push('\n');
            for line in source.lines() {
                text.push_str(&format!("  {line}\n"));
            }
        }
    }
    Ok(text)
}
