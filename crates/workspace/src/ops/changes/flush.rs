//! From the image to the disk.

use std::collections::BTreeMap;
use std::rc::Rc;

use beamtalk_wire::answers::{FlushAnswer, FlushedFile};
use beamtalk_wire::requests::{Flush, OneOrMore};
use beamtalk_wire::{ChangesEvent, Entry, ErrorBody, ErrorKind, Event, WorkspaceEvent};
use serde_json::json;

use super::take::keep_image;
use super::{Selection, bases, disk_text, failed, may_write, set_base};
use crate::changes::{Conflict, Filter, hash};
use crate::ops::Caller;
use crate::ops::load::class_info;
use crate::terms;
use crate::workspace::Workspace;

pub(in crate::ops) async fn flush(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Flush,
) -> Result<FlushAnswer, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    if let Some(class) = &request.class {
        check_class(workspace, class).await?;
    }
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
    if let Some(expected) = &request.expect {
        check_expected(workspace, request, expected)?;
    }
    if let Some(file) = &request.force_file {
        force(workspace, file)?;
    }
    write_files(workspace, &filter, &caller.session.id)
}

/// A class that neither is there nor has changes that wait is a mistake: nothing to write would sound like success.
async fn check_class(workspace: &Rc<Workspace>, class: &str) -> Result<(), ErrorBody> {
    let has_changes = {
        let log = workspace.changes.borrow();
        !log.select(|entry| entry.is_open() && entry.class == class)
            .is_empty()
    };
    if has_changes {
        return Ok(());
    }
    class_info(workspace, class).await.map(drop)
}

/// Every change that somebody looked at is still what was shown.
fn check_expected(
    workspace: &Workspace,
    request: &Flush,
    expected: &BTreeMap<String, String>,
) -> Result<(), ErrorBody> {
    let log = workspace.changes.borrow();
    let is_chosen = |seq: u64| request.seqs.as_ref().is_none_or(|seqs| seqs.contains(&seq));
    for (number, wanted) in expected {
        let Some(seq) = number.parse().ok().filter(|seq| is_chosen(*seq)) else {
            continue;
        };
        let pending = log.select(|entry| entry.seq == seq && entry.is_pending());
        let now = match pending.first() {
            Some(entry) => Some(hash(
                log.source(entry).map_err(failed)?.unwrap_or_default().as_bytes(),
            )),
            None => None,
        };
        // A later change of the same definition is what would be written in its place.
        let is_replaced = pending.first().is_some_and(|entry| {
            !log.select(|later| later.is_pending() && later.shadows(entry))
                .is_empty()
        });
        if is_replaced || now.as_ref() != Some(wanted) {
            let title = log.select(|entry| entry.seq == seq);
            let title = title
                .first()
                .map_or_else(|| format!("change {seq}"), Entry::title);
            let message = format!("{title} changed since you looked");
            let error = ErrorBody::new(ErrorKind::VersionConflict, message);
            return Err(error.hint("look at it again, then flush").detail("seq", seq));
        }
    }
    Ok(())
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
    for conflict in &report.conflicts {
        workspace.publish(&Event::Changes(ChangesEvent::Conflict {
            file: conflict.file.clone(),
            reason: conflict.reason.name().to_owned(),
            seqs: conflict.seqs.clone(),
        }));
    }
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
