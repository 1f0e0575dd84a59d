//! Native code of packages that are not part of the project: it is built before their classes are loaded.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use beamtalk_wire::ErrorBody;

use crate::project;
use crate::workspace::Workspace;

/// What the code of a package needs beside its classes.
#[derive(Default)]
pub(super) struct Native {
    /// Directories of Erlang modules.
    pub(super) paths: Vec<PathBuf>,
    /// OTP applications.
    pub(super) applications: Vec<String>,
}

/// Build the packages of these files that have native code and that the project did not build already.
pub(super) async fn of_files(workspace: &Rc<Workspace>, files: &[PathBuf]) -> Result<Native, ErrorBody> {
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
    let mut native = Native::default();
    for root in roots {
        let built = project::build(&workspace.program, root, false).await;
        let image = built.map_err(|failure| refused(root, &failure))?;
        let image = image.unwrap_or_default();
        native.paths.extend(image.paths);
        native.applications.extend(image.applications);
    }
    Ok(native)
}

fn refused(root: &Path, failure: &project::BuildFailure) -> ErrorBody {
    let message = format!(
        "the package in {}, whose native code this needs, does not build: {}",
        root.display(),
        failure.error.message
    );
    ErrorBody::new("native_compile_failed", message)
        .hint(format!("run beamtalk build in {} to see why", root.display()))
}
