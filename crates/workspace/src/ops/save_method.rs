//! A method changed in the image: `save-method`, `try-method`.

use std::rc::Rc;

use beamtalk_syntax::definitions::method_source;
use beamtalk_wire::answers::SaveMethodAnswer;
use beamtalk_wire::requests::{PrecheckMethod, SaveMethod, TryMethod};
use beamtalk_wire::{ErrorBody, ErrorKind, Side};

use super::entries::record;
use super::eval::refuse_errors;
use super::load::{class_info, install};
use super::{Caller, check};
use crate::changes::{Intent, Kind, hash};
use crate::compile::Compiled;
use crate::compile::job::{Job, Shape};
use crate::workspace::Workspace;

/// The text of a method, and where it belongs.
pub(super) struct MethodText<'a> {
    pub(super) class: &'a str,
    pub(super) selector: &'a str,
    pub(super) source: &'a str,
    pub(super) side: Side,
}

macro_rules! method_text {
    ($($request:ident),*) => {
        $(impl<'a> From<&'a $request> for MethodText<'a> {
            fn from(request: &'a $request) -> Self {
                Self {
                    class: &request.class,
                    selector: &request.selector,
                    source: &request.source,
                    side: request.side.unwrap_or_default(),
                }
            }
        })*
    };
}

method_text!(SaveMethod, TryMethod, PrecheckMethod);

/// Install a method. One whose base is named is refused when the image has another by now.
pub(super) async fn save_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    method: MethodText<'_>,
    base_sha256: Option<&str>,
    intent: Intent,
) -> Result<SaveMethodAnswer, ErrorBody> {
    let compiled = compile_method(workspace, &method).await?;
    refuse_errors(&compiled)?;
    check_version(base_sha256, &compiled)?;
    install(workspace, &compiled).await?;
    let mut entry = None;
    for definition in &compiled.outcome.definitions {
        let kind = if definition.is_class_side {
            Kind::Class
        } else {
            Kind::Instance
        };
        let source = Some(definition.source.clone());
        entry = Some(record(workspace, caller, kind, definition, intent, source)?);
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
    Ok(SaveMethodAnswer { entry, findings })
}

fn check_version(base_sha256: Option<&str>, compiled: &Compiled) -> Result<(), ErrorBody> {
    let Some(wanted) = base_sha256 else {
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
        ErrorKind::VersionConflict,
        "the method is not what this source was made from",
    )
    .hint("look at the source of now, then save again");
    Err(error.detail("source", now))
}

pub(super) async fn compile_method(
    workspace: &Rc<Workspace>,
    method: &MethodText<'_>,
) -> Result<Compiled, ErrorBody> {
    let job = Job::Method {
        class: method.class.to_owned(),
        is_class_side: method.side == Side::Class,
        selector: method.selector.to_owned(),
        source: method.source.to_owned(),
        shape: shape(workspace, method.class).await?,
    };
    workspace.compiler.run(job).await
}

/// What a class without a source text is made of.
pub(super) async fn shape(workspace: &Rc<Workspace>, class: &str) -> Result<Option<Shape>, ErrorBody> {
    let info = class_info(workspace, class).await?;
    Ok(Some(Shape {
        superclass: info.superclass,
        slots: info.slots,
        class_slots: info.class_slots,
    }))
}
