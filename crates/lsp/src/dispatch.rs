//! Which function answers which request.

use gen_lsp_types as lsp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::fault::Fault;
use crate::requests;
use crate::state::Snapshot;

type Handler = fn(&Snapshot, Value) -> Result<Value, Fault>;

macro_rules! handlers {
    ($($method:literal => $handle:path,)*) => {
        /// The function for a request; none for one that we do not know.
        pub(crate) fn handler(method: &str) -> Option<Handler> {
            let handler: Handler = match method {
                $($method => |snapshot, params| answer(snapshot, params, $handle),)*
                #[cfg(test)]
                "test/panic" => |_, _| panic!("on purpose"),
                _ => return None,
            };
            Some(handler)
        }
    };
}

handlers! {
    "textDocument/hover" => requests::hover::handle,
    "textDocument/definition" => requests::definition::handle,
    "textDocument/references" => requests::references::handle,
    "textDocument/implementation" => requests::implementation::handle,
    "textDocument/completion" => requests::completion::handle,
    "textDocument/signatureHelp" => requests::signature_help::handle,
    "textDocument/documentSymbol" => requests::document_symbol::handle,
    "workspace/symbol" => requests::workspace_symbol::handle,
    "textDocument/prepareTypeHierarchy" => requests::type_hierarchy::prepare,
    "typeHierarchy/supertypes" => requests::type_hierarchy::supertypes,
    "typeHierarchy/subtypes" => requests::type_hierarchy::subtypes,
    "textDocument/prepareCallHierarchy" => requests::call_hierarchy::prepare,
    "callHierarchy/incomingCalls" => requests::call_hierarchy::incoming,
    "callHierarchy/outgoingCalls" => requests::call_hierarchy::outgoing,
    "textDocument/prepareRename" => requests::rename::prepare,
    "textDocument/rename" => requests::rename::handle,
    "textDocument/semanticTokens/full" => requests::semantic_tokens::full,
    "textDocument/semanticTokens/range" => requests::semantic_tokens::range,
    "textDocument/semanticTokens/full/delta" => requests::semantic_tokens::delta,
    "textDocument/foldingRange" => requests::folding_range::handle,
    "textDocument/selectionRange" => requests::selection_range::handle,
    "textDocument/documentHighlight" => requests::document_highlight::handle,
    "textDocument/inlayHint" => requests::inlay_hint::handle,
    "textDocument/codeLens" => requests::code_lens::handle,
    "textDocument/codeAction" => requests::code_action::handle,
    "codeLens/resolve" => requests::code_lens::resolve,
    "textDocument/diagnostic" => requests::diagnostic::handle,
    "textDocument/formatting" => requests::formatting::document,
    "textDocument/rangeFormatting" => requests::formatting::range,
    "textDocument/onTypeFormatting" => requests::formatting::on_type,
    "workspace/willRenameFiles" => requests::will_rename_files::handle,
    "workspace/textDocumentContent" => requests::fetch_content::handle,
    "workspace/executeCommand" => requests::execute_command::handle,
    "beamtalk/fetchContent" => requests::fetch_content::handle,
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
