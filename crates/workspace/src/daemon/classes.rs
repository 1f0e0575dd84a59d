//! The record of the loaded classes in `metadata.json`, there for whoever looks while the workspace runs or after it was
//! killed.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_storage::LoadedClass;
use serde_json::Value;

use crate::workspace::Workspace;

/// Changes within this time are written together.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the node may take to list its classes.
const LIMIT: Duration = Duration::from_secs(1);

/// Write the record after every change, as long as the workspace lives. No request waits for it.
pub(super) async fn keep(workspace: Rc<Workspace>) {
    loop {
        workspace.classes_changed.notified().await;
        tokio::time::sleep(PAUSE).await;
        remember(&workspace).await;
    }
}

/// Write down which classes are loaded, with their files.
pub(super) async fn remember(workspace: &Workspace) {
    let known = workspace.image.call("", "modules", Term::Map(Vec::new()));
    let Ok(Ok(answer)) = tokio::time::timeout(LIMIT, known).await else {
        return;
    };
    let Ok(Some(mut metadata)) = workspace.directory.metadata() else {
        return;
    };
    let rows = answer.get("modules").and_then(Value::as_array);
    let classes: Vec<LoadedClass> = rows.into_iter().flatten().filter_map(class).collect();
    let autoflush = workspace.autoflush.get();
    if metadata.classes == classes && metadata.settings.autoflush == autoflush {
        return;
    }
    metadata.classes = classes;
    metadata.settings.autoflush = autoflush;
    if let Err(error) = workspace.directory.write_metadata(&metadata) {
        tracing::error!("{error}");
    }
}

/// A class of a file; those of the prompt have none.
fn class(row: &Value) -> Option<LoadedClass> {
    Some(LoadedClass {
        name: row["class"].as_str()?.to_owned(),
        source_file: Some(row["source_file"].as_str()?.to_owned()),
    })
}
