//! From the image to the disk.

use std::rc::Rc;

use beamtalk_wire::{Channel, ErrorBody, Request};
use serde_json::{Value, json};

use super::take::keep_image;
use super::{Selection, bases, disk_text, failed, may_write, set_base};
use crate::changes::{AuthorKind, Conflict, Filter, Kind};
use crate::ops::{Answer, Caller};
use crate::terms;
use crate::workspace::Workspace;

pub(in crate::ops) fn flush(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    let texts = |field: &str| -> Result<Vec<String>, ErrorBody> {
        match request.fields.get(field) {
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            _ => request.texts(field),
        }
    };
    let filter = Filter {
        class: request.optional_text("class")?.map(str::to_owned),
        file: request.optional_text("file")?.map(str::to_owned),
        kinds: texts("kind")?
            .iter()
            .map(|name| Kind::named(name).ok_or_else(|| request.invalid("kind", "a kind of change")))
            .collect::<Result<_, _>>()?,
        author_kinds: texts("author_kind")?
            .iter()
            .map(|name| match name.as_str() {
                "human" => Ok(AuthorKind::Human),
                "agent" => Ok(AuthorKind::Agent),
                _ => Err(request.invalid("author_kind", "human or agent")),
            })
            .collect::<Result<_, _>>()?,
        confirm_destructive: request.flag("confirm_destructive")?,
    };
    if let Some(file) = request.optional_text("force_file")? {
        force(workspace, file)?;
    }
    Ok(write_files(workspace, &filter, &caller.session.id)?.into())
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
) -> Result<Value, ErrorBody> {
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
    let report = json!(report);
    told(workspace, &report["files"]);
    Ok(report)
}

pub(super) fn told(workspace: &Workspace, files: &Value) {
    workspace.publish(Channel::Workspace, "flush_completed", &json!({ "files": files }));
    if let Some(link) = workspace.image.link() {
        link.control("flushed", terms::from_json(&json!({ "files": files })));
    }
}
