//! A class taken out of the image.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::EntryAnswer;
use beamtalk_wire::requests::RemoveClass;

use super::Caller;
use super::entries::record;
use super::load::class_info;
use crate::changes::{Intent, Kind};
use crate::compile::job::Definition;
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn remove_class(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    RemoveClass { class }: &RemoveClass,
) -> Result<EntryAnswer, ErrorBody> {
    let definition = class_definition(workspace, class).await?;
    let arguments = terms::map([("class", Term::binary(class))]);
    workspace.image.call("", "remove-class", arguments).await?;
    workspace.forget_class(class);
    let entry = record(
        workspace,
        caller,
        Kind::RemoveClass,
        &definition,
        Intent::Durable,
        None,
    )?;
    Ok(EntryAnswer { entry: Some(entry) })
}

async fn class_definition(workspace: &Rc<Workspace>, class: &str) -> Result<Definition, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let known = workspace.compiler.known.borrow();
    let previous = match &info.source {
        Some(file) => known
            .file(info.package.as_deref(), file)
            .map(|file| file.text.clone()),
        None => known.session_class(class),
    };
    drop(known);
    Ok(Definition {
        class: class.to_owned(),
        selector: None,
        is_class_side: false,
        source: String::new(),
        previous,
        file: info.source,
        package: info.package,
        is_whole_file: false,
    })
}
