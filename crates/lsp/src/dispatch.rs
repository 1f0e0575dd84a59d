//! Which function answers which request.

use gen_lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;
use crate::requests;
use crate::state::Snapshot;

type Handler = fn(&Snapshot, Value) -> Result<Value, Fault>;

/// The function for a request; none for one that we do not know.
pub(crate) fn handler(method: &str) -> Option<Handler> {
    let handler: Handler = match method {
        "textDocument/hover" => |snapshot, params| answer(snapshot, params, requests::hover::handle),
        "textDocument/definition" => {
            |snapshot, params| answer(snapshot, params, requests::definition::handle)
        }
        "textDocument/completion" => {
            |snapshot, params| answer(snapshot, params, requests::completion::handle)
        }
        "textDocument/diagnostic" => {
            |snapshot, params| answer(snapshot, params, requests::diagnostic::handle)
        }
        _ => return None,
    };
    Some(handler)
}

fn answer<P: DeserializeOwned, R: Serialize>(
    snapshot: &Snapshot,
    params: Value,
    handle: impl FnOnce(&Snapshot, P) -> Result<R, Fault>,
) -> Result<Value, Fault> {
    let params = serde_json::from_value(params).map_err(|cause| Fault::InvalidParams(cause.to_string()))?;
    let result = handle(snapshot, params)?;
    serde_json::to_value(result).map_err(|cause| Fault::Internal(cause.to_string()))
}

/// The document a request is about.
pub(crate) fn document(params: &Value) -> Option<lsp::Uri> {
    let uri = params.get("textDocument")?.get("uri")?.as_str()?;
    Some(lsp::Uri(uri.to_owned()))
}
