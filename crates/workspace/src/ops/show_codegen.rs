//! Generated code as text: the compiler makes forms, a node of their own prints them. The image hears nothing of it.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::answers::ShowCodegenAnswer;
use beamtalk_wire::requests::{CodeForm, ShowCodegen};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use super::eval::refuse_errors;
use super::load::class_info;
use crate::compile::Compiled;
use crate::compile::job::Job;
use crate::workspace::Workspace;

pub(super) async fn show_codegen(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &ShowCodegen,
) -> Result<ShowCodegenAnswer, ErrorBody> {
    let form = request.form.unwrap_or_default();
    let compiled = match (&request.code, &request.class) {
        (Some(code), _) => {
            let job = Job::Input {
                code: code.clone(),
                bound: workspace.names(&caller.session),
                file: None,
                trace: false,
            };
            workspace.compiler.run(job).await?
        }
        (None, Some(class)) => compile_class(workspace, class).await?,
        (None, None) => {
            return Err(ErrorBody::new(
                ErrorKind::MissingParameter,
                "'show-codegen' needs the field 'code' or 'class'",
            ));
        }
    };
    refuse_errors(&compiled)?;
    let modules = compiled.outcome.modules.iter();
    let modules = modules.map(|module| Term::binary(compiled.bytes(module.forms)));
    let name = match form {
        CodeForm::Erlang => "erlang",
        CodeForm::Core => "core",
    };
    let mut arguments = vec![
        (Term::binary("form"), Term::binary(name)),
        (Term::binary("modules"), Term::list(modules)),
    ];
    if request.code.is_some() {
        if let Some(expression) = &compiled.outcome.expression {
            let forms = Term::binary(compiled.bytes(expression.forms));
            arguments.push((Term::binary("expression"), forms));
        }
    } else if let Some(selector) = &request.selector {
        arguments.push((Term::binary("selector"), Term::binary(selector)));
    }
    let text = workspace.image.print(&Term::Map(arguments)).await?;
    Ok(match form {
        CodeForm::Erlang => ShowCodegenAnswer {
            erlang: Some(text),
            ..ShowCodegenAnswer::default()
        },
        CodeForm::Core => ShowCodegenAnswer {
            core_erlang: Some(text),
            ..ShowCodegenAnswer::default()
        },
    })
}

/// The file of a class compiled again, for looking at.
async fn compile_class(workspace: &Rc<Workspace>, class: &str) -> Result<Compiled, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let file = info.source.unwrap_or_default();
    let text = workspace
        .compiler
        .known
        .borrow()
        .file(info.package.as_deref(), &file)
        .cloned();
    let Some(text) = text else {
        return Err(ErrorBody::new(
            ErrorKind::NoSourceFile,
            format!("{class} has no source file, so its generated code is not kept"),
        ));
    };
    workspace.compiler.run(Job::Files { files: vec![text] }).await
}
