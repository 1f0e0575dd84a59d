//! From the image to the disk.

use std::rc::Rc;

use beamtalk_wire::answers::{FlushAnswer, FlushedFile};
use beamtalk_wire::requests::{Flush, OneOrMore};
use beamtalk_wire::{ErrorBody, Event, WorkspaceEvent};
use serde_json::json;

use super::take::keep_image;
use super::{Selection, bases, disk_text, failed, may_write, set_base};
use crate::changes::{Conflict, Filter};
use crate::ops::Caller;
use crate::terms;
use crate::workspace::Workspace;

pub(in crate::ops) fn flush(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Flush,
) -> Result<FlushAnswer, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    let kinds = request.kind.as_ref().map_or(&[][..], OneOrMore::as_slice);
    let author_kinds = request.author_kind.as_ref().map_or(&[][..], OneOrMore::as_slice);
    let filter = Filter {
        class: request.class.clone(),
        file: request.file.clone(),
        kinds: kinds.iter().map(|kind| kind.kind()).collect(),
        author_kinds: author_kinds.to_vec(),
        seqs: request.seqs.clone(),
        confirm_destructive: request.confirm_destructive == Some(true),
    };
    if let Some(file) = &request.force_file {
        force(workspace, file)?;
    }
    write_files(workspace, &filter, &caller.session.id)
}

/// The image's version of everything that is in conflict in a file.
fn force(workspace: &Rc<Workspace>, file: &str) -> Result<(), ErrorBody> {
    let file = workspace.changes.borrow().normal(file);
    let conflicts = workspace
        .changes
        .borrow()
        .conflicts(&bases(workspace))
        .map_err(failed)?;
    let is_of_file = |conflict: &&Conflict| conflict.file == file;
    let seqs: Vec<u64> = conflicts
        .iter()
        .filter(is_of_file)
        .flat_map(|conflict| conflict.seqs.clone())
        .collect();
    if seqs.is_empty() {
        return Ok(());
    }
    let entries = workspace
        .changes
        .borrow()
        .select(|entry| seqs.contains(&entry.seq));
    let selection = Selection {
        entries: Vec::new(),
        class: None,
        method: None,
        whole_file: Some(file.clone()),
        only: None,
    };
    let disk = disk_text(workspace, &file)?;
    keep_image(workspace, &selection, &file, disk.as_deref(), &entries)?;
    Ok(())
}

/// Write what is pending. Every flush comes here, by hand or by itself.
pub(in crate::ops) fn write_files(
    workspace: &Rc<Workspace>,
    filter: &Filter,
    author: &str,
) -> Result<FlushAnswer, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    let loaded = bases(workspace);
    let report = workspace
        .changes
        .borrow_mut()
        .flush(filter, author, &loaded)
        .map_err(failed)?;
    for (file, base) in &report.bases {
        set_base(workspace, file, base.clone());
    }
    let report = report.told();
    told(workspace, &report.files);
    Ok(report)
}

pub(super) fn told(workspace: &Workspace, files: &[FlushedFile]) {
    workspace.publish(&Event::Workspace(WorkspaceEvent::FlushCompleted {
        files: files.to_vec(),
    }));
    if let Some(link) = workspace.image.link() {
        link.control("flushed", terms::from_json(&json!({ "files": files })));
    }
}
