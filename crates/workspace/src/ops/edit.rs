//! Live editing: methods and classes changed in the image, logged, written back to files on request.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::definitions::{Key, Outline, class_changes, class_source, method_source};
use beamtalk_wire::{Channel, ErrorBody, Op, Request};
use serde_json::{Map, Value, json};

use super::changes::{change_image, drop_method, image_text, is_loaded, write_files};
use super::evaluate::refuse_errors;
use super::load::{class_info, install};
use super::{Answer, Caller, check};
use crate::changes::{AuthorKind, Entry, Filter, Intent, Kind, NewEntry, Side, hash};
use crate::compile::Compiled;
use crate::compile::job::{Definition, Job, Shape, SourceText};
use crate::terms;
use crate::workspace::Workspace;

/// Note what an input or a request defined: the compiler knows it and the change log has it. Listeners
/// hear of it from the node, as of every class that is loaded.
pub(super) fn defined(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    compiled: &Compiled,
    fields: &mut Map<String, Value>,
) -> Result<(), ErrorBody> {
    let outcome = &compiled.outcome;
    // Type aliases and protocols are no entries of the change log, but later inputs use them.
    workspace
        .compiler
        .known
        .borrow_mut()
        .declare(outcome.declares.clone());
    if outcome.definitions.is_empty() {
        return Ok(());
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
    fields.insert("entries".to_owned(), entries.into());
    fields.insert("classes".to_owned(), json!(classes));
    Ok(())
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
fn log(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    definition: &Definition,
    intent: Intent,
) -> Result<Value, ErrorBody> {
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

fn record(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    kind: Kind,
    definition: &Definition,
    intent: Intent,
    source: Option<String>,
) -> Result<Value, ErrorBody> {
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
                "flush_io_error",
                format!("the change is in the image but not logged: {cause}"),
            )
        })?;
    // The node tells of classes it loads and forgets; of a method it drops it does not.
    if kind == Kind::RemoveMethod {
        let data = json!({"class": definition.class, "source_file": definition.file});
        workspace.publish(Channel::Classes, "changed", &data);
    }
    let mut warning = definition
        .file
        .as_ref()
        .filter(|_| entry.not_flushable_reason.as_deref() == Some("dynamic"))
        .map(|file| format!("{file} cannot be read as it is: the change is in memory only until it can"));
    if workspace.autoflush.get() && intent == Intent::Durable {
        warning = warning.or_else(|| autoflush(workspace, caller, &definition.class));
    }
    // By now it may be in its file.
    let now = workspace.changes.borrow().entry(entry.seq).map(|now| json!(now));
    let mut entry = now.unwrap_or_else(|_| json!(entry));
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
        entry["warning"] = warning.into();
    }
    Ok(entry)
}

/// Write what was changed; answers why the image is ahead of the disk, if it is.
fn autoflush(workspace: &Rc<Workspace>, caller: &Caller, class: &str) -> Option<String> {
    let filter = Filter {
        class: Some(class.to_owned()),
        ..Filter::default()
    };
    let reason = match write_files(workspace, &filter, &caller.session.id) {
        Ok(report) => report["conflicts"][0]["reason"].as_str()?.to_owned(),
        Err(error) => error.message,
    };
    Some(format!("the image is ahead of the disk: {reason}"))
}

/// Warnings about entries of the change log are warnings of the request.
pub(super) fn tell_warnings(fields: &mut Map<String, Value>) {
    let one = fields.get("entry").into_iter();
    let many = fields
        .get("entries")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let found: Vec<Value> = one
        .chain(many)
        .filter_map(|entry| entry.get("warning"))
        .map(|message| json!({"severity": "warning", "message": message}))
        .collect();
    if found.is_empty() {
        return;
    }
    let warnings = fields.entry("warnings").or_insert_with(|| json!([]));
    if let Value::Array(warnings) = warnings {
        warnings.extend(found);
    }
}

/// Why a change cannot be written to a file, if it cannot.
fn not_flushable(workspace: &Workspace, definition: &Definition) -> Option<String> {
    if definition.package.as_deref() == Some("stdlib") {
        return Some("stdlib".to_owned());
    }
    let Some(file) = &definition.file else {
        return Some("dynamic".to_owned());
    };
    let project = workspace.project.borrow();
    let own = project.as_ref().and_then(|image| image.name.as_ref());
    let is_dependency = definition.package.is_some() && definition.package.as_ref() != own;
    let is_inside = !std::path::Path::new(file).is_absolute() && !file.starts_with("..");
    if is_inside && !is_dependency {
        return None;
    }
    let place = definition.package.as_ref().unwrap_or(file);
    Some(format!("dependency:{place}"))
}

pub(super) async fn method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let intent = if request.op == Op::TryMethod {
        Intent::Ephemeral
    } else {
        Intent::Durable
    };
    let compiled = compile_method(workspace, request).await?;
    refuse_errors(&compiled)?;
    check_version(request, &compiled)?;
    install(workspace, &compiled).await?;
    let mut entry = Value::Null;
    for definition in &compiled.outcome.definitions {
        let kind = if definition.is_class_side {
            Kind::Class
        } else {
            Kind::Instance
        };
        let source = Some(definition.source.clone());
        entry = record(workspace, caller, kind, definition, intent, source)?;
    }
    let mut findings = Vec::new();
    for changed in compiled
        .outcome
        .definitions
        .iter()
        .filter(|one| check::concerns_callers(one))
    {
        findings
            .extend(check::check_callers(workspace, &changed.class, changed.selector.as_deref(), &[]).await);
    }
    Ok(json!({"entry": entry, "findings": findings}).into())
}

/// A save that names the source it was made from is refused when the image has another by now.
fn check_version(request: &Request, compiled: &Compiled) -> Result<(), ErrorBody> {
    let Some(wanted) = request.optional_text("base_sha256")? else {
        return Ok(());
    };
    let definition = compiled.outcome.definitions.first();
    let now = definition.and_then(|definition| definition.previous.as_deref());
    // The image shows a method that stands elsewhere than its class as any other.
    let now = method_source(now.unwrap_or_default());
    if hash(now.as_bytes()) == wanted {
        return Ok(());
    }
    let error = ErrorBody::new(
        "version_conflict",
        "the method is not what this source was made from",
    )
    .hint("look at the source of now, then save again");
    Err(error.detail("source", now))
}

async fn compile_method(workspace: &Rc<Workspace>, request: &Request) -> Result<Compiled, ErrorBody> {
    let class = request.text("class")?;
    let shape = shape(workspace, class).await?;
    let job = Job::Method {
        class: class.to_owned(),
        is_class_side: is_class_side(request)?,
        selector: request.text("selector")?.to_owned(),
        source: request.text("source")?.to_owned(),
        shape,
    };
    workspace.compiler.run(job).await
}

/// What a class without a source text is made of.
async fn shape(workspace: &Rc<Workspace>, class: &str) -> Result<Option<Shape>, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let names = |field: &str| -> Vec<String> {
        let names = info.get(field).and_then(Value::as_array);
        let names = names.into_iter().flatten();
        names
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    Ok(Some(Shape {
        superclass: info.get("superclass").and_then(Value::as_str).map(str::to_owned),
        slots: names("slots"),
        class_slots: names("class_slots"),
    }))
}

fn is_class_side(request: &Request) -> Result<bool, ErrorBody> {
    match request.optional_text("side")? {
        None | Some("instance") => Ok(false),
        Some("class") => Ok(true),
        Some(_) => Err(request.invalid("side", "instance or class")),
    }
}

/// A class with a file that is made when the change is flushed.
pub(super) async fn class(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let source = request.text("source")?;
    let path = request.text("path")?;
    let items = beamtalk_syntax::parse_file(source).unit.items;
    if items.iter().filter(|item| matches!(item, Item::Class(_))).count() > 1 {
        let message = "the source declares more than one class";
        return Err(ErrorBody::new("multiple_classes_declared", message).hint("make one file for each class"));
    }
    let text = super::load::new_source(workspace, path, source);
    let compiled = workspace.compiler.run(Job::Files { files: vec![text] }).await?;
    refuse_errors(&compiled)?;
    let Some(definition) = compiled.outcome.definitions.first() else {
        return Err(ErrorBody::new(
            "no_class_declared",
            "the source declares no class",
        ));
    };
    let is_loaded = class_info(workspace, &definition.class).await.is_ok();
    workspace
        .changes
        .borrow()
        .check_new_class(&definition.class, path, is_loaded)
        .map_err(|fault| ErrorBody::new(fault.kind(), fault.to_string()))?;
    let mut fields = install(workspace, &compiled).await?;
    let mut whole = definition.clone();
    source.clone_into(&mut whole.source);
    whole.is_whole_file = true;
    let entry = log(workspace, caller, &whole, Intent::Durable)?;
    fields.insert("entry".to_owned(), entry);
    Ok(fields.into())
}

pub(super) async fn remove_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let class = request.text("class")?;
    let selector = request.text("selector")?.trim_start_matches('#');
    let is_class_side = is_class_side(request)?;
    class_info(workspace, class).await?;
    drop_method(workspace, class, selector, is_class_side).await?;
    let entry = removed_method(workspace, caller, class, selector, is_class_side).await?;
    Ok(json!({"entry": entry}).into())
}

/// The image has dropped a method: compile its class without it, and log that.
async fn removed_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    class: &str,
    selector: &str,
    is_class_side: bool,
) -> Result<Value, ErrorBody> {
    let job = Job::RemoveMethod {
        class: class.to_owned(),
        is_class_side,
        selector: selector.to_owned(),
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    if compiled.outcome.modules.is_empty() {
        let declares = compiled.outcome.declares.clone();
        workspace.compiler.known.borrow_mut().declare(declares);
    } else {
        install(workspace, &compiled).await?;
    }
    let Some(definition) = compiled.outcome.definitions.first() else {
        return Ok(Value::Null);
    };
    let entry = record(
        workspace,
        caller,
        Kind::RemoveMethod,
        definition,
        Intent::Durable,
        None,
    )?;
    check::soon(workspace, compiled.outcome.definitions.clone());
    Ok(entry)
}

pub(super) async fn remove_class(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let class = request.text("class")?;
    let definition = class_definition(workspace, class).await?;
    let arguments = terms::map([("class", Term::binary(class))]);
    workspace.image.call("", "remove-class", arguments).await?;
    let entry = removed_class(workspace, caller, &definition)?;
    Ok(json!({"entry": entry}).into())
}

fn removed_class(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    definition: &Definition,
) -> Result<Value, ErrorBody> {
    workspace.forget_class(&definition.class);
    record(
        workspace,
        caller,
        Kind::RemoveClass,
        definition,
        Intent::Durable,
        None,
    )
}

async fn class_definition(workspace: &Rc<Workspace>, class: &str) -> Result<Definition, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let file = info.get("source").and_then(Value::as_str).map(str::to_owned);
    let package = info.get("package").and_then(Value::as_str);
    let known = workspace.compiler.known.borrow();
    let previous = match &file {
        Some(file) => known.base(package, file).map(str::to_owned),
        None => known.session_class(class),
    };
    drop(known);
    Ok(Definition {
        class: class.to_owned(),
        selector: None,
        is_class_side: false,
        source: String::new(),
        previous,
        file,
        package: package.map(str::to_owned),
        is_whole_file: false,
    })
}

/// Give the image what it had before an entry.
pub(super) async fn put_back(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    previous: Option<String>,
) -> Result<(), ErrorBody> {
    match (entry.kind, previous) {
        (Kind::RemoveClass, Some(source)) => match &entry.source_file {
            Some(file) if entry.flushable => {
                let text = super::load::source_text(workspace, &workspace.root.join(file))?;
                super::load::load_texts(workspace, vec![text]).await.map(drop)
            }
            _ => define_class(workspace, &source).await,
        },
        (Kind::RemoveClass | Kind::RemoveMethod, None) => Err(ErrorBody::new(
            "revert_not_possible",
            format!("the source of {} is not known", entry.title()),
        )),
        (_, previous) => put_definition(workspace, entry, previous).await,
    }
}

/// Give the image what an entry gave it once.
pub(super) async fn put_again(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<String>,
) -> Result<(), ErrorBody> {
    if entry.kind == Kind::RemoveClass {
        return drop_class(workspace, &entry.class).await;
    }
    put_definition(workspace, entry, source).await
}

/// Give the image a definition, or take it out, where that definition stands.
async fn put_definition(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<String>,
) -> Result<(), ErrorBody> {
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    let image = file.and_then(|file| image_text(workspace, file));
    let is_class_side = entry.side == Some(Side::Class);
    match (&entry.selector, source, file, image) {
        (Some(selector), source, Some(file), Some(_)) => {
            let key = Key::method(&entry.class, is_class_side, selector);
            change_image(workspace, file, &[(key, source)]).await.map(drop)
        }
        (Some(selector), None, ..) => {
            if is_loaded(workspace, &entry.class).await {
                drop_method(workspace, &entry.class, selector, is_class_side).await?;
                let job = Job::RemoveMethod {
                    class: entry.class.clone(),
                    is_class_side,
                    selector: selector.clone(),
                };
                let compiled = workspace.compiler.run(job).await?;
                refuse_errors(&compiled)?;
                install(workspace, &compiled).await?;
            }
            Ok(())
        }
        (Some(selector), Some(source), ..) => {
            let job = Job::Method {
                class: entry.class.clone(),
                is_class_side,
                selector: selector.clone(),
                source: method_source(&source),
                shape: shape(workspace, &entry.class).await?,
            };
            let compiled = workspace.compiler.run(job).await?;
            refuse_errors(&compiled)?;
            install(workspace, &compiled).await.map(drop)
        }
        (None, None, Some(file), Some(image)) if entry.is_whole_file => {
            drop_file(workspace, file, image).await
        }
        (None, None, ..) => drop_class(workspace, &entry.class).await,
        (None, Some(source), Some(file), Some(image)) if !entry.is_whole_file => {
            let changes = class_changes(&entry.class, &image.text, &source);
            change_image(workspace, file, &changes).await.map(drop)
        }
        (None, Some(source), Some(file), _) => {
            let text = super::load::new_source(workspace, file, &source);
            super::load::install_text(workspace, text).await.map(drop)
        }
        (None, Some(source), None, _) => define_class(workspace, &source).await,
    }
}

async fn drop_class(workspace: &Rc<Workspace>, class: &str) -> Result<(), ErrorBody> {
    if is_loaded(workspace, class).await {
        let arguments = terms::map([("class", Term::binary(class))]);
        workspace.image.call("", "remove-class", arguments).await?;
    }
    workspace.forget_class(class);
    Ok(())
}

/// Take everything that a file defines out of the image.
async fn drop_file(workspace: &Rc<Workspace>, file: &str, image: SourceText) -> Result<(), ErrorBody> {
    let outline = Outline::of_file(&image.text);
    let classes: Vec<String> = outline
        .classes()
        .map(|class| class.name.text.to_string())
        .collect();
    for class in classes {
        drop_class(workspace, &class).await?;
    }
    // Methods of classes of other files are left.
    if let Some(rest) = image_text(workspace, file) {
        let nothing = SourceText {
            text: String::new(),
            ..rest
        };
        super::load::install_text(workspace, nothing).await?;
    }
    Ok(())
}

/// Define a class that has no file.
async fn define_class(workspace: &Rc<Workspace>, source: &str) -> Result<(), ErrorBody> {
    let job = Job::Input {
        code: source.to_owned(),
        bound: Vec::new(),
        file: None,
        trace: false,
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    install(workspace, &compiled).await.map(drop)
}

/// What only the image may ask for.
pub(crate) fn of_image(workspace: &Workspace, op: &str, args: &Term) -> Option<Result<Value, ErrorBody>> {
    let fields = terms::to_object(args);
    match op {
        "autoflush" => {
            if let Some(Value::Bool(on)) = fields.get("value") {
                workspace.autoflush.set(*on);
                remember_autoflush(workspace, *on);
            }
            Some(Ok(json!({"value": workspace.autoflush.get()})))
        }
        _ => None,
    }
}

/// The code of a method that is run once and installed nowhere (`Inspector evaluate:`).
pub(crate) async fn compile_evaluation(workspace: &Rc<Workspace>, args: &Term) -> Result<Term, ErrorBody> {
    let request = Request {
        op: Op::PrecheckMethod,
        id: "image".to_owned(),
        session: None,
        fields: terms::to_object(args),
    };
    let compiled = compile_method(workspace, &request).await?;
    refuse_errors(&compiled)?;
    let forms = compiled
        .outcome
        .modules
        .first()
        .map(|module| compiled.bytes(module.forms));
    let forms = Term::binary(forms.unwrap_or_default());
    Ok(terms::map([("forms", forms)]))
}

fn remember_autoflush(workspace: &Workspace, on: bool) {
    if let Ok(Some(mut metadata)) = workspace.directory.metadata() {
        metadata.settings.autoflush = on;
        if let Err(error) = workspace.directory.write_metadata(&metadata) {
            tracing::error!("{error}");
        }
    }
}

/// Findings of a method that is not installed, and those of its callers if it were.
pub(super) async fn precheck(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let compiled = compile_method(workspace, request).await?;
    if caller.connection.is_none() {
        refuse_errors(&compiled)?;
    }
    let mut findings = compiled.outcome.diagnostics;
    let mut checked = None;
    if !compiled.outcome.has_errors && compiled.outcome.definitions.iter().any(check::concerns_callers) {
        let (class, selector) = (request.text("class")?, request.text("selector")?);
        checked = check::check(workspace, class, Some(selector), compiled.outcome.declares).await;
    }
    let (owners, not_checked) = match checked {
        Some(checked) => {
            findings.extend(checked.findings);
            (checked.owners, checked.skipped)
        }
        None => (Vec::new(), 0),
    };
    let note = (not_checked > 0).then(|| format!("\u{2026} {not_checked} more not checked"));
    Ok(json!({
        "findings": findings,
        "checked": owners.len(),
        "not_checked": not_checked,
        "total_candidates": owners.len() + not_checked,
        "cap_note": note,
        "checked_owners": owners,
    })
    .into())
}
