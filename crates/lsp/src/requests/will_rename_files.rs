//! A file gets another name: the class that it is named after follows.

use gen_lsp_types::RenameFilesParams;
use serde_json::Value;

use crate::analysis::find;
use crate::analysis::references::{self, Subject};
use crate::edit::Edits;
use crate::fault::Fault;
use crate::state::Snapshot;
use crate::uri;

pub(crate) fn handle(snapshot: &Snapshot, params: RenameFilesParams) -> Result<Option<Value>, Fault> {
    let mut edits = Edits::new(snapshot, "");
    for file in &params.files {
        let stem = |uri: &str| {
            let path = uri::to_path(uri)?;
            let is_source = path.extension().is_some_and(|kind| kind == "bt");
            let stem = path.file_stem()?.to_str()?.to_owned();
            is_source.then_some(stem)
        };
        let (Some(old), Some(new)) = (stem(&file.old_uri.0), stem(&file.new_uri.0)) else {
            continue;
        };
        let is_name = new.starts_with(|c: char| c.is_ascii_uppercase())
            && new.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let Ok(view) = snapshot.view_of(&file.old_uri) else {
            continue;
        };
        let is_declared = find::named(&view.file, &old).next().is_some();
        let is_taken = view
            .all_files()
            .any(|file| find::named(file, &new).next().is_some());
        if old == new || !is_name || !is_declared || is_taken {
            continue;
        }
        let found = references::all(snapshot, &view, &Subject::Class(old.as_str().into()))?;
        for reference in found.iter().filter(|reference| references::is_own(reference)) {
            edits.replace(
                &reference.file,
                reference.name.span,
                new.as_str(),
                reference.certainty,
            )?;
        }
    }
    if edits.is_empty() {
        return Ok(None);
    }
    edits.finish().map(Some)
}
