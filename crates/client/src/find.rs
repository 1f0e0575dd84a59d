//! From a workspace's name to a connection, for programs of its owner.

use beamtalk_storage::{Secret, StateDirectory, StorageError, WorkspaceId};
use serde_json::json;

use crate::{Connection, Control, ControlError, Endpoint, Error, Events, Greeting};

#[derive(Debug, thiserror::Error)]
pub enum FindError {
    #[error("the workspace is not running")]
    NotRunning,
    #[error("{0}")]
    Storage(#[from] StorageError),
    #[error("{0}")]
    Control(ControlError),
    #[error("{0}")]
    Connection(#[from] Error),
}

impl From<ControlError> for FindError {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::NotRunning => Self::NotRunning,
            error => Self::Control(error),
        }
    }
}

/// Where a running workspace is, and its secret. The control socket vouches for the record: a port alone may belong
/// to another program by now, which must not be shown the cookie.
fn whereabouts(state: &StateDirectory, id: &WorkspaceId) -> Result<(Endpoint, Secret), FindError> {
    let directory = state.workspace(id)?.ok_or(FindError::NotRunning)?;
    let info = directory.node_info()?.ok_or(FindError::NotRunning)?;
    let mut control = Control::connect(info.socket.as_ref())?;
    let hello = control.call(&json!({"op": "hello"}))?;
    if hello["workspace_id"] != id.as_str() || hello["nonce"] != info.nonce || hello["stopping"] == true {
        return Err(FindError::NotRunning);
    }
    let cookie = directory.cookie()?.ok_or(FindError::NotRunning)?;
    Ok((Endpoint::here(&info), cookie))
}

/// Connect to a workspace of this user, if it runs.
pub async fn reach(
    state: &StateDirectory,
    id: &WorkspaceId,
    greeting: Greeting<'_>,
) -> Result<(Connection, Events), FindError> {
    let (state, id) = (state.clone(), id.clone());
    let found = tokio::task::spawn_blocking(move || whereabouts(&state, &id)).await;
    let (endpoint, cookie) = found.map_err(|_| FindError::NotRunning)??;
    Ok(Connection::open(&endpoint, "cookie", cookie.expose(), greeting).await?)
}
