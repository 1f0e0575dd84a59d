//! A file, or all files below a directory, loaded.

use std::path::Component;
use std::rc::Rc;

use beamtalk_wire::answers::LoadAnswer;
use beamtalk_wire::requests::LoadFile;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::load::{load_files, sources_below};
use crate::workspace::Workspace;

pub(super) async fn load_file(
    workspace: &Rc<Workspace>,
    request: &LoadFile,
) -> Result<LoadAnswer, ErrorBody> {
    let mut path = workspace.root.join(&request.path);
    // `../other` lies outside the project, although its text begins with the project's path.
    if path.components().any(|part| part == Component::ParentDir)
        && let Ok(real) = path.canonicalize()
    {
        path = real;
    }
    let mut files = sources_below(&path)?;
    let except = request.except.iter().flatten();
    let except: Vec<_> = except.map(|file| workspace.root.join(file)).collect();
    files.retain(|file| !except.contains(file));
    if files.is_empty() {
        return Err(ErrorBody::new(
            ErrorKind::FileNotFound,
            format!("there is no .bt file in {}", path.display()),
        ));
    }
    load_files(workspace, &files).await
}
