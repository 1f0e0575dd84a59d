//! What the server tells a client it can do.

use serde_json::{Value, json};

use crate::position::Encoding;
use crate::requests::code_action::KINDS;
use crate::requests::execute_command::COMMANDS;
use crate::requests::semantic_tokens::{MODIFIERS, TYPES};
use crate::uri;

pub(crate) fn of_server(encoding: Encoding) -> Value {
    let sources = json!([{"scheme": "file", "pattern": {"glob": "**/*.bt", "matches": "file"}}]);
    json!({
        "positionEncoding": encoding.kind(),
        "textDocumentSync": {"openClose": true, "change": 1, "save": {"includeText": false}},
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "implementationProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "completionProvider": {"triggerCharacters": [".", ":"]},
        "signatureHelpProvider": {"triggerCharacters": [":"], "retriggerCharacters": [" "]},
        "renameProvider": {"prepareProvider": true},
        "typeHierarchyProvider": true,
        "callHierarchyProvider": true,
        "foldingRangeProvider": true,
        "selectionRangeProvider": true,
        "inlayHintProvider": true,
        "codeActionProvider": {"codeActionKinds": KINDS},
        "executeCommandProvider": {"commands": COMMANDS},
        "codeLensProvider": {"resolveProvider": true},
        "documentFormattingProvider": true,
        "documentRangeFormattingProvider": true,
        "documentOnTypeFormattingProvider": {"firstTriggerCharacter": "\n"},
        "semanticTokensProvider": {
            "legend": {"tokenTypes": TYPES, "tokenModifiers": MODIFIERS},
            "full": {"delta": true},
            "range": true,
        },
        "diagnosticProvider": {
            "identifier": "beamtalk",
            "interFileDependencies": true,
            "workspaceDiagnostics": false,
        },
        "workspace": {
            "workspaceFolders": {"supported": true, "changeNotifications": true},
            "fileOperations": {"willRename": {"filters": sources}},
            "textDocumentContent": {"schemes": [uri::LIBRARY, uri::LIVE]},
        },
    })
}
