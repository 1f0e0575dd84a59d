//! Entries of the change log for what was changed in the image.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Key, Outline, class_source};
use beamtalk_wire::{ClassesEvent, ErrorBody, ErrorKind, Event, LoggedEntry, WorkspaceEvent};

use super::changes::write_files;
use super::{Caller, check};
use crate::changes::{AuthorKind, Filter, Intent, Kind, NewEntry, Side};
use crate::compile::Compiled;
use crate::compile::job::{Definition, SourceText};
use crate::workspace::Workspace;

/// What an input or a request defined.
pub(super) struct Defined {
    pub(super) entries: Vec<LoggedEntry>,
    pub(super) classes: Vec<String>,
}

/// Note what an input or a request defined: the compiler knows it and the change log has it. Listeners
/// hear of it from the node, as of every class that is loaded.
pub(super) fn defined(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    compiled: &Compiled,
) -> Result<Option<Defined>, ErrorBody> {
    let outcome = &compiled.outcome;
    // Type aliases and protocols are no entries of the change log, but later inputs use them.
    workspace
        .compiler
        .known
        .borrow_mut()
        .declare(outcome.declares.clone());
    if outcome.definitions.is_empty() {
        return Ok(None);
    }
    let mut entries = Vec::new();
    let mut classes = Vec::new();
    for definition in &outcome.definitions {
        let definition = &with_whole_file(workspace, definition, &outcome.declares);
        entries.push(log(workspace, caller, definition, Intent::Durable)?);
        if !classes.contains(&definition.class) {
            classes.push(definition.class.clone());
        }
    }
    check::soon(workspace, outcome.definitions.clone());
    Ok(Some(Defined { entries, classes }))
}

/// A class whose file is not written yet: the file as a whole is what a flush has to write.
fn with_whole_file(workspace: &Workspace, definition: &Definition, texts: &[SourceText]) -> Definition {
    let mut definition = definition.clone();
    let file = definition.file.as_ref().filter(|_| definition.selector.is_none());
    let text = file
        .filter(|file| !workspace.root.join(file).exists())
        .and_then(|file| texts.iter().find(|text| text.path == *file));
    if let Some(text) = text {
        definition.source.clone_from(&text.text);
        definition.is_whole_file = true;
    }
    definition
}

/// The text that the image loaded or last flushed for a definition.
fn base_of(workspace: &Workspace, definition: &Definition, kind: Kind) -> Option<String> {
    let file = definition.file.as_ref()?;
    let known = workspace.compiler.known.borrow();
    let base = known.base(definition.package.as_deref(), file)?;
    let outline = Outline::of_file(base);
    match (&definition.selector, kind) {
        (Some(selector), _) => outline.text_of(&Key::method(
            &definition.class,
            definition.is_class_side,
            selector,
        )),
        (None, Kind::RemoveClass) => Some(base.to_owned()),
        (None, _) => outline
            .class(&definition.class)
            .map(|class| class_source(base, class).to_owned()),
    }
}

/// One entry of the change log, as clients see it.
pub(super) fn log(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    definition: &Definition,
    intent: Intent,
) -> Result<LoggedEntry, ErrorBody> {
    let kind = match (&definition.selector, definition.is_class_side) {
        (None, _) => Kind::NewClass,
        (Some(_), false) => Kind::Instance,
        (Some(_), true) => Kind::Class,
    };
    record(
        workspace,
        caller,
        kind,
        definition,
        intent,
        Some(definition.source.clone()),
    )
}

pub(super) fn record(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    kind: Kind,
    definition: &Definition,
    intent: Intent,
    source: Option<String>,
) -> Result<LoggedEntry, ErrorBody> {
    let reason = not_flushable(workspace, definition);
    let side = if definition.is_class_side {
        Side::Class
    } else {
        Side::Instance
    };
    // What was read from files does not know a method of a class without a text; the log does.
    let previous = definition.previous.clone().or_else(|| {
        let selector = definition.selector.as_deref()?;
        let changes = workspace.changes.borrow();
        changes.last_source(&definition.class, selector, side)
    });
    let base = base_of(workspace, definition, kind);
    let is_whole_file = kind == Kind::NewClass && definition.file.is_some() && definition.is_whole_file;
    let entry = workspace
        .changes
        .borrow_mut()
        .record(NewEntry {
            kind,
            class: definition.class.clone(),
            selector: definition.selector.clone(),
            side: definition.selector.is_some().then_some(side),
            intent,
            source,
            prev_source: previous,
            base,
            is_whole_file,
            source_file: definition.file.clone().filter(|_| reason.is_none()),
            not_flushable_reason: reason,
            author: caller.session.id.clone(),
            author_kind: if caller.session.client.is_agent() {
                AuthorKind::Agent
            } else {
                AuthorKind::Human
            },
        })
        .map_err(|cause| {
            ErrorBody::new(
                ErrorKind::FlushIoError,
                format!("the change is in the image but not logged: {cause}"),
            )
        })?;
    workspace.publish(&Event::Workspace(WorkspaceEvent::Logged {
        entry: Box::new(entry.clone()),
    }));
    // The node tells of classes it loads and forgets; of a method it drops it does not.
    if kind == Kind::RemoveMethod {
        workspace.publish(&Event::Classes(ClassesEvent::Changed {
            class: definition.class.clone(),
            source_file: definition.file.clone(),
        }));
    }
    let mut warning = definition
        .file
        .as_ref()
        .filter(|_| entry.not_flushable_reason.as_deref() == Some("dynamic"))
        .map(|file| format!("{file} cannot be read as it is: the change is in memory only until it can"));
    if workspace.autoflush.get() && intent == Intent::Durable {
        warning = warning.or_else(|| autoflush(workspace, caller, &definition.class));
    }
    if let Some(warning) = &warning {
        tracing::warn!("{warning}");
    }
    // By now it may be in its file.
    let now = workspace.changes.borrow().entry(entry.seq).ok().cloned();
    Ok(LoggedEntry {
        entry: now.unwrap_or(entry),
        warning,
    })
}

/// Write what was changed; answers why the image is ahead of the disk, if it is.
fn autoflush(workspace: &Rc<Workspace>, caller: &Caller, class: &str) -> Option<String> {
    let filter = Filter {
        class: Some(class.to_owned()),
        ..Filter::default()
    };
    let reason = match write_files(workspace, &filter, &caller.session.id) {
        Ok(report) => report.conflicts.first()?.reason.name().to_owned(),
        Err(error) => error.message,
    };
    Some(format!("the image is ahead of the disk: {reason}"))
}

/// Why a change cannot be written to a file, if it cannot.
fn not_flushable(workspace: &Workspace, definition: &Definition) -> Option<String> {
    cannot_be_flushed(
        workspace,
        definition.package.as_deref(),
        definition.file.as_deref(),
    )
}

/// Why what is in this file of this package is not written by a flush, if it is not.
pub(super) fn cannot_be_flushed(
    workspace: &Workspace,
    package: Option<&str>,
    file: Option<&str>,
) -> Option<String> {
    if package == Some("stdlib") {
        return Some("stdlib".to_owned());
    }
    let Some(file) = file else {
        return Some("dynamic".to_owned());
    };
    let project = workspace.project.borrow();
    let own = project.as_ref().and_then(|image| image.name.as_deref());
    let is_dependency = package.is_some() && package != own;
    let is_inside = !std::path::Path::new(file).is_absolute() && !file.starts_with("..");
    if is_inside && !is_dependency {
        return None;
    }
    Some(format!("dependency:{}", package.unwrap_or(file)))
}
