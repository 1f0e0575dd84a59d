//! Whether changes are written to their files at once.

use beamtalk_etf::Term;
use beamtalk_wire::answers::AutoflushAnswer;
use beamtalk_wire::requests::Autoflush;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::terms;
use crate::workspace::Workspace;

#[derive(Deserialize)]
struct Wanted {
    value: Option<bool>,
}

/// A client switches it, or asks.
pub(super) fn switch(workspace: &Workspace, request: &Autoflush) -> AutoflushAnswer {
    if let Some(on) = request.on {
        workspace.autoflush.set(on);
        remember(workspace, on);
    }
    let on = workspace.autoflush.get();
    AutoflushAnswer { on }
}

/// The image switches it, if wanted; answers how it is.
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
