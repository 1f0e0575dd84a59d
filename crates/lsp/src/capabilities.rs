//! What the server tells a client it can do.

use serde_json::{Value, json};

use crate::position::Encoding;

pub(crate) fn of_server(encoding: Encoding) -> Value {
    json!({
        "positionEncoding": encoding.kind(),
        "textDocumentSync": {"openClose": true, "change": 1, "save": {"includeText": false}},
        "hoverProvider": true,
        "definitionProvider": true,
        "completionProvider": {"triggerCharacters": [".", ":"]},
        "diagnosticProvider": {
            "identifier": "beamtalk",
            "interFileDependencies": true,
            "workspaceDiagnostics": false,
        },
        "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
    })
}
