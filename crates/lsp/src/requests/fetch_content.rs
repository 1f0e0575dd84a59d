//! The text of documents that are no files: sources of the library.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::library::Library;
use crate::state::Snapshot;
use crate::uri;

/// `beamtalk/fetchContent` and `workspace/textDocumentContent` ask alike.
#[derive(Deserialize)]
pub(crate) struct Params {
    uri: String,
}

pub(crate) fn handle(_: &Snapshot, params: Params) -> Result<Value, Fault> {
    let missing = || Fault::InvalidParams(format!("there is no document {}", params.uri));
    if uri::scheme(&params.uri) != Some(uri::LIBRARY) {
        return Err(missing());
    }
    let name = uri::name(&params.uri).ok_or_else(missing)?;
    let file = Library::get().files.get(name.as_str()).ok_or_else(missing)?;
    Ok(json!({"text": file.text(), "readOnly": true}))
}
