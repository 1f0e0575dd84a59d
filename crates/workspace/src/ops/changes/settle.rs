//! A conflict decided by a merged text.

use std::rc::Rc;

use beamtalk_wire::answers::{DecideAnswer, FileChange, FlushedFile};
use beamtalk_wire::requests::Settle;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::flush::told;
use super::{check_shown, close, disk_text, failed, image_text, may_write, set_base, shown};
use crate::changes::{ConflictReason, Settled, hash};
use crate::compile::job::SourceText;
use crate::ops::load::install_text;
use crate::workspace::Workspace;

/// Write a text that somebody made of all sides, load it, and settle what is pending in its file.
pub(in crate::ops) async fn settle(
    workspace: &Rc<Workspace>,
    request: &Settle,
) -> Result<DecideAnswer, ErrorBody> {
    may_write(workspace, "Workspace>>settle")?;
    let file = workspace.changes.borrow().normal(&request.file);
    let text = request.text.as_str();
    let disk = disk_text(workspace, &file)?;
    check_shown(Some(&request.disk_sha256), disk.as_deref(), &file)?;
    let entries = workspace
        .changes
        .borrow()
        .select(|entry| entry.is_open() && entry.source_file.as_deref() == Some(file.as_str()));
    if let Some(expected) = &request.expect {
        let log = workspace.changes.borrow();
        for entry in entries.iter().filter(|entry| entry.is_pending()) {
            let source = log.source(entry).map_err(failed)?.unwrap_or_default();
            let wanted = expected.get(&entry.seq.to_string());
            if wanted != Some(&hash(source.as_bytes())) {
                let message = format!("change {} is not what it was when it was shown", entry.seq);
                return Err(
                    ErrorBody::new(ErrorKind::VersionConflict, message).hint("look at it again, then choose")
                );
            }
        }
    }
    // First the image: a text that does not compile changes nothing anywhere.
    let path = workspace.root.join(&file);
    let image = image_text(workspace, &file);
    let new = match &image {
        Some(image) => SourceText {
            text: text.to_owned(),
            ..image.clone()
        },
        None => crate::ops::load::new_source(workspace, &file, text),
    };
    let answer = install_text(workspace, new).await?;
    let old_hash = disk.as_ref().map(|disk| hash(disk.as_bytes()));
    let conflicts = workspace
        .changes
        .borrow_mut()
        .write_file(&file, text, old_hash)
        .map_err(failed)?;
    if let Some(conflict) = conflicts.first() {
        if let Some(image) = image {
            install_text(workspace, image).await?;
        }
        let detail = conflict.detail.clone().unwrap_or_default();
        return Err(match conflict.reason {
            ConflictReason::WriteFailed => {
                ErrorBody::new(ErrorKind::WriteFailed, format!("{}: {detail}", path.display()))
            }
            _ => ErrorBody::new(
                ErrorKind::FileChanged,
                format!("{file} is not what it was when it was shown"),
            )
            .hint("look at it again, then choose"),
        });
    }
    set_base(workspace, &file, Some(text.to_owned()));
    let seqs = close(workspace, &entries, Settled::Flushed)?;
    let kind = FileChange::Changed;
    told(workspace, &[FlushedFile { file, kind }]);
    Ok(DecideAnswer {
        entries: shown(workspace, &seqs),
        classes: answer.classes,
    })
}
