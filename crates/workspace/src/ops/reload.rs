//! The file of a class loaded again.

use std::path::PathBuf;
use std::rc::Rc;

use beamtalk_wire::answers::ReloadAnswer;
use beamtalk_wire::requests::Reload;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::load::{class_info, load_files};
use crate::workspace::Workspace;

pub(super) async fn reload(
    workspace: &Rc<Workspace>,
    Reload { class }: &Reload,
) -> Result<ReloadAnswer, ErrorBody> {
    let path = source_file_of(workspace, class).await?;
    let before = selectors(workspace, class).await;
    let loaded = load_files(workspace, &[path]).await?;
    let now = selectors(workspace, class).await;
    let gone: Vec<String> = before.into_iter().filter(|one| !now.contains(one)).collect();
    let findings = super::check::check_callers(workspace, class, None, &gone).await;
    Ok(ReloadAnswer {
        classes: loaded.classes,
        errors: loaded.errors,
        affected_actors: loaded.affected_actors.unwrap_or(0),
        migration_failures: loaded.migration_failures.unwrap_or_default(),
        findings,
        conflicts: loaded.conflicts,
    })
}

/// The selectors of both sides of a class.
async fn selectors(workspace: &Rc<Workspace>, class: &str) -> Vec<String> {
    let Ok(info) = class_info(workspace, class).await else {
        return Vec::new();
    };
    info.methods.into_iter().chain(info.class_methods).collect()
}

/// The file of a class of the project or of a dependency; the library has none.
async fn source_file_of(workspace: &Rc<Workspace>, class: &str) -> Result<PathBuf, ErrorBody> {
    let info = class_info(workspace, class).await?;
    let project = workspace.project.borrow();
    let packages = project.as_ref().map(|image| &image.packages);
    let root = info
        .package
        .as_deref()
        .and_then(|package| packages?.get(package))
        .map_or(&workspace.root, |package| &package.root);
    let path = info
        .source
        .filter(|_| info.package.as_deref() != Some("stdlib"))
        .map(|file| root.join(file))
        .filter(|path| path.is_file());
    path.ok_or_else(|| {
        ErrorBody::new(ErrorKind::NoSourceFile, format!("{class} has no source file"))
            .hint("classes of the library and of the prompt have none")
    })
}
