//! A class with a file that is made when the change is flushed.

use std::rc::Rc;

use beamtalk_syntax::ast::Item;
use beamtalk_wire::answers::SaveClassAnswer;
use beamtalk_wire::requests::SaveClass;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use super::entries::log;
use super::eval::refuse_errors;
use super::load::{class_info, install, new_source};
use crate::changes::Intent;
use crate::compile::job::Job;
use crate::workspace::Workspace;

pub(super) async fn save_class(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    SaveClass { source, path }: &SaveClass,
) -> Result<SaveClassAnswer, ErrorBody> {
    let items = beamtalk_syntax::parse_file(source).unit.items;
    if items.iter().filter(|item| matches!(item, Item::Class(_))).count() > 1 {
        let message = "the source declares more than one class";
        return Err(
            ErrorBody::new(ErrorKind::MultipleClassesDeclared, message).hint("make one file for each class")
        );
    }
    let text = new_source(workspace, path, source);
    let compiled = workspace.compiler.run(Job::Files { files: vec![text] }).await?;
    refuse_errors(&compiled)?;
    let Some(definition) = compiled.outcome.definitions.first() else {
        return Err(ErrorBody::new(
            ErrorKind::NoClassDeclared,
            "the source declares no class",
        ));
    };
    let is_loaded = class_info(workspace, &definition.class).await.is_ok();
    workspace
        .changes
        .borrow()
        .check_new_class(&definition.class, path, is_loaded)
        .map_err(|fault| ErrorBody::new(fault.kind(), fault.to_string()))?;
    let loaded = install(workspace, &compiled).await?;
    let mut whole = definition.clone();
    source.clone_into(&mut whole.source);
    whole.is_whole_file = true;
    let entry = log(workspace, caller, &whole, Intent::Durable)?;
    Ok(SaveClassAnswer {
        classes: loaded.classes,
        entry,
        affected_actors: loaded.affected_actors,
        migration_failures: loaded.migration_failures,
    })
}
