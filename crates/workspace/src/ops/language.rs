//! Questions about code that run nothing.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::{ErrorBody, Request};
use serde_json::{Map, Value, json};

use super::evaluate::refuse_errors;
use super::load::class_info;
use super::{Answer, Caller, session_of};
use crate::compile::Compiled;
use crate::compile::job::{CheckMode, Job, Variable};
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn complete(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let (code, cursor) = place(request)?;
    let bound = variables(workspace, caller, request).await?;
    let compiled = workspace
        .compiler
        .run(Job::Complete { code, cursor, bound })
        .await?;
    let mut answer = Answer::from(compiled.outcome.data);
    // Names of Erlang are known to the node only.
    if let Some(Value::Object(wanted)) = answer.fields.remove("erlang") {
        let found = workspace
            .image
            .call(&caller.session.id, "erlang-complete", terms::from_object(&wanted))
            .await?;
        answer
            .fields
            .extend(found.into_iter().filter(|(key, _)| key == "completions"));
    }
    Ok(answer)
}

pub(super) async fn hover(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let (code, cursor) = place(request)?;
    let bound = variables(workspace, caller, request).await?;
    let compiled = workspace.compiler.run(Job::Hover { code, cursor, bound }).await?;
    Ok(compiled.outcome.data.into())
}

/// Documentation of what the image has; a type alias exists for the compiler only.
pub(super) async fn docs(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let refused = match super::in_node(workspace, caller, request).await {
        Err(error) if error.kind == "class_not_found" => error,
        other => return other,
    };
    let Some(name) = request.optional_text("class")?.map(str::to_owned) else {
        return Err(refused);
    };
    if request.optional_text("selector")?.is_some() || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
        return Err(refused);
    }
    let job = Job::Hover {
        cursor: name.len(),
        code: name,
        bound: Vec::new(),
    };
    let found = workspace.compiler.run(job).await?.outcome.data;
    match found["contents"].as_str() {
        Some(contents) if found["kind"] == "alias" => Ok(json!({ "docs": contents }).into()),
        _ => Err(refused),
    }
}

fn place(request: &Request) -> Result<(String, usize), ErrorBody> {
    let code = request.text("code")?.to_owned();
    let cursor = match request.number("cursor")? {
        None => code.len(),
        Some(cursor) => usize::try_from(cursor).unwrap_or(usize::MAX),
    };
    if !code.is_char_boundary(cursor) {
        return Err(request.invalid("cursor", "the byte offset of a character in 'code'"));
    }
    Ok((code, cursor))
}

/// The session's variables with their classes; without a node just their names.
async fn variables(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Vec<Variable>, ErrorBody> {
    let session = session_of(workspace, caller, request)?;
    let answer = workspace
        .image
        .call(&session.id, "bindings", Term::Map(Vec::new()))
        .await
        .unwrap_or_default();
    let known = answer.get("bindings").and_then(Value::as_object);
    let class_of = |name: &str| {
        let class = known.and_then(|known| known.get(name)?.get("class")?.as_str());
        class.map(str::to_owned)
    };
    Ok(workspace
        .names(&session)
        .into_iter()
        .map(|name| Variable {
            class: class_of(&name),
            name,
        })
        .collect())
}

pub(super) async fn diagnostics(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let mode = match request.optional_text("mode")? {
        None | Some("expression") => CheckMode::Expression,
        Some("method") => CheckMode::Method,
        Some("class") => CheckMode::Class,
        Some(_) => return Err(request.invalid("mode", "expression, method or class")),
    };
    let job = Job::Check {
        code: request.text("code")?.to_owned(),
        bound: workspace.names(&caller.session),
        mode,
    };
    let compiled = workspace.compiler.run(job).await?;
    Ok(json!({"diagnostics": compiled.outcome.diagnostics}).into())
}

/// Generated code as text: the compiler makes forms, a node of their own prints them. The image hears nothing of it.
pub(super) async fn show_codegen(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let (form, field) = match request.optional_text("form")? {
        None | Some("erlang") => ("erlang", "erlang"),
        Some("core") => ("core", "core_erlang"),
        Some(_) => return Err(request.invalid("form", "erlang or core")),
    };
    let mut arguments = vec![(Term::binary("form"), Term::binary(form))];
    match (request.optional_text("code")?, request.optional_text("class")?) {
        (Some(code), _) => {
            let job = Job::Input {
                code: code.to_owned(),
                bound: workspace.names(&caller.session),
                file: None,
                trace: false,
            };
            let compiled = workspace.compiler.run(job).await?;
            refuse_errors(&compiled)?;
            let modules = compiled.outcome.modules.iter();
            let modules = modules.map(|module| Term::binary(compiled.bytes(module.forms)));
            arguments.push((Term::binary("modules"), Term::list(modules)));
            if let Some(expression) = &compiled.outcome.expression {
                let forms = Term::binary(compiled.bytes(expression.forms));
                arguments.push((Term::binary("expression"), forms));
            }
        }
        (None, Some(class)) => {
            let compiled = compile_class(workspace, class).await?;
            let modules = compiled.outcome.modules.iter();
            let modules = modules.map(|module| Term::binary(compiled.bytes(module.forms)));
            arguments.push((Term::binary("modules"), Term::list(modules)));
            if let Some(selector) = request.optional_text("selector")? {
                arguments.push((Term::binary("selector"), Term::binary(selector)));
            }
        }
        (None, None) => {
            return Err(ErrorBody::new(
                "missing_parameter",
                "'show-codegen' needs the field 'code' or 'class'",
            ));
        }
    }
    let text = workspace.image.print(&Term::Map(arguments)).await?;
    Ok(Map::from_iter([(field.to_owned(), text.into())]).into())
}

/// The file of a class compiled again, for looking at.
async fn compile_class(workspace: &Rc<Workspace>, class: &str) -> Result<Compiled, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let file = info.get("source").and_then(Value::as_str).unwrap_or_default();
    let package = info.get("package").and_then(Value::as_str);
    let text = workspace.compiler.known.borrow().file(package, file).cloned();
    let Some(text) = text else {
        return Err(ErrorBody::new(
            "no_source_file",
            format!("{class} has no source file, so its generated code is not kept"),
        ));
    };
    let compiled = workspace.compiler.run(Job::Files { files: vec![text] }).await?;
    refuse_errors(&compiled)?;
    Ok(compiled)
}
