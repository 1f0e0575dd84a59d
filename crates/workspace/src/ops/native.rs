//! Native code of packages that are not part of the project: it is built before their classes are loaded.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::answers::Diagnostic;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::load::path_term;
use crate::project;
use crate::terms;
use crate::workspace::Workspace;

/// Build the packages of these files that have native code and that the project did not build already, and let the image
/// find it.
pub(super) async fn load(workspace: &Rc<Workspace>, files: &[PathBuf]) -> Result<(), ErrorBody> {
    let mut roots: Vec<&Path> = Vec::new();
    for file in files {
        let is_built = workspace
            .project
            .borrow()
            .as_ref()
            .is_some_and(|image| image.package_of(file).is_some());
        let root = file
            .ancestors()
            .skip(1)
            .find(|above| above.join("beamtalk.toml").is_file());
        if let Some(root) = root.filter(|root| !is_built && root.join("native").is_dir())
            && !roots.contains(&root)
        {
            roots.push(root);
        }
    }
    for root in roots {
        let built = project::build(&workspace.program, root, false).await;
        let image = built.map_err(|failure| refused(root, &failure.error.message))?;
        let image = image.unwrap_or_default();
        // Classes with errors are told when they are loaded; without its native code nothing of a package works.
        let is_class = |error: &&Diagnostic| {
            let file = error.file.as_deref().map(Path::new);
            file.and_then(Path::extension).is_some_and(|kind| kind == "bt")
        };
        if let Some(error) = image.errors.iter().find(|error| !is_class(error)) {
            return Err(refused(root, &error.message));
        }
        let arguments = terms::map([
            ("modules", Term::list([])),
            (
                "paths",
                Term::list(image.paths.iter().map(|path| path_term(path))),
            ),
            (
                "applications",
                Term::list(image.applications.iter().map(Term::binary)),
            ),
        ]);
        workspace.image.call("", "load", arguments).await?;
    }
    Ok(())
}

fn refused(root: &Path, reason: &str) -> ErrorBody {
    let message = format!(
        "the package in {}, whose native code this needs, does not build: {reason}",
        root.display()
    );
    ErrorBody::new(ErrorKind::NativeCompileFailed, message)
        .hint(format!("run beamtalk build in {} to see why", root.display()))
}
