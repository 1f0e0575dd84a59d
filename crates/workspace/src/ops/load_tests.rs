//! The files below `test/` loaded.

use std::collections::BTreeSet;
use std::rc::Rc;

use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::LoadAnswer;

use super::load::{load_files, sources_below};
use crate::workspace::Workspace;

pub(super) async fn load_tests(workspace: &Rc<Workspace>) -> Result<LoadAnswer, ErrorBody> {
    let files = sources_below(&workspace.root.join("test")).unwrap_or_default();
    if files.is_empty() {
        return Ok(LoadAnswer {
            summary: Some("Reloaded 0 of 0 files".to_owned()),
            ..LoadAnswer::default()
        });
    }
    let mut answer = load_files(workspace, &files).await?;
    let broken: BTreeSet<&String> = answer
        .errors
        .iter()
        .filter_map(|error| error.path.as_ref())
        .collect();
    let summary = format!("Reloaded {} of {} files", files.len() - broken.len(), files.len());
    answer.summary = Some(summary);
    Ok(answer)
}
