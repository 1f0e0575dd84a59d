//! Whether changes are written to their files at once: only the image may ask.

use beamtalk_etf::Term;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::terms;
use crate::workspace::Workspace;

#[derive(Deserialize)]
struct Wanted {
    value: Option<bool>,
}

/// Switch it, if wanted; answers how it is.
pub(crate) fn autoflush(workspace: &Workspace, args: &Term) -> Value {
    let wanted = terms::typed::<Wanted>(terms::to_object(args));
    if let Ok(Wanted { value: Some(on) }) = wanted {
        workspace.autoflush.set(on);
        remember(workspace, on);
    }
    json!({"value": workspace.autoflush.get()})
}

fn remember(workspace: &Workspace, on: bool) {
    if let Ok(Some(mut metadata)) = workspace.directory.metadata() {
        metadata.settings.autoflush = on;
        if let Err(error) = workspace.directory.write_metadata(&metadata) {
            tracing::error!("{error}");
        }
    }
}
