//! The project of a workspace: built by this binary in a process of its own, described to the daemon as data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_process::{Spec, Stdin};
use beamtalk_wire::answers::{Diagnostic, Severity};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::compile::job::{PackageUse, SourceText};

/// Building fetches and compiles; more than this is a fault.
const BUILD_TIME: Duration = Duration::from_mins(10);

/// A built project: what to load, in order, and what the compiler has to know.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProjectImage {
    pub name: Option<String>,
    pub version: String,
    pub root: PathBuf,
    /// The project and everything it depends on, by name.
    pub packages: BTreeMap<String, LoadedPackage>,
    /// The same with what each uses, dependencies first.
    pub uses: Vec<PackageUse>,
    /// The supervisor class of `[application]`.
    pub supervisor: Option<String>,
    /// Directories of code.
    pub paths: Vec<PathBuf>,
    /// OTP applications the code needs.
    pub applications: Vec<String>,
    /// Compiled modules, dependencies first.
    pub modules: Vec<PathBuf>,
    pub sources: Vec<SourceText>,
    /// Files that were left out because of their errors.
    pub broken: Vec<PathBuf>,
    /// What the compiler found in them.
    pub errors: Vec<Diagnostic>,
    /// Capabilities that the manifest switches off.
    pub disabled: Vec<String>,
}

/// What the image knows of a package beside its classes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedPackage {
    pub root: PathBuf,
    pub version: String,
    /// Those of its manifest, by name.
    pub dependencies: Vec<String>,
}

impl ProjectImage {
    /// Where a source text of the project or of a dependency stands.
    pub(crate) fn file_of(&self, text: &SourceText) -> Option<PathBuf> {
        let root = match &text.package {
            Some(package) => &self.packages.get(package)?.root,
            None => &self.root,
        };
        Some(root.join(&text.path))
    }

    /// The package a file belongs to, with the file's path in it.
    pub(crate) fn package_of<'a, 'b>(&'a self, file: &'b Path) -> Option<(&'a str, &'b Path)> {
        let inside = |(name, package): (&'a String, &LoadedPackage)| {
            let below = file.strip_prefix(&package.root).ok()?;
            Some((name.as_str(), below))
        };
        // A dependency may lie below the project.
        self.packages
            .iter()
            .filter_map(inside)
            .min_by_key(|(_, below)| below.as_os_str().len())
    }
}

/// A build that did not work: what the compiler found, and the last word.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BuildFailure {
    pub diagnostics: Vec<Diagnostic>,
    pub error: ErrorBody,
}

/// Build the project at `root` with `program`, which is this binary. `None` when there is no project.
pub(crate) async fn build(
    program: &Path,
    root: &Path,
    force: bool,
) -> Result<Option<ProjectImage>, BuildFailure> {
    let failed = |message: String| BuildFailure {
        diagnostics: Vec::new(),
        error: ErrorBody::new(ErrorKind::LoadFailed, message),
    };
    if !root.join("beamtalk.toml").exists() {
        return Ok(None);
    }
    let mut arguments = vec!["--json".into(), "project-image".into(), root.into()];
    if force {
        arguments.push("--force".into());
    }
    let mut child = beamtalk_process::spawn(&Spec {
        program: program.to_owned(),
        name: "beamtalk".into(),
        arguments,
        directory: root.to_owned(),
        environment: BTreeMap::new(),
        stdin: Stdin::Null,
    })
    .map_err(|cause| failed(cause.to_string()))?;
    let (Some(mut output), Some(mut errors)) = (child.take_stdout(), child.take_stderr()) else {
        return Err(failed("the build has no pipes".to_owned()));
    };
    let mut text = Vec::new();
    let mut noise = Vec::new();
    let reading = async {
        let (read, _) = tokio::join!(output.read_to_end(&mut text), errors.read_to_end(&mut noise));
        read?;
        child.wait().await
    };
    let Ok(ended) = timeout(BUILD_TIME, reading).await else {
        child.kill();
        return Err(failed("building the project took too long".to_owned()));
    };
    let status = ended.map_err(|cause| failed(cause.to_string()))?;
    let outcome = read_outcome(&String::from_utf8_lossy(&text));
    outcome.map(Some).map_err(|mut failure| {
        if failure.error.message.is_empty() {
            let noise = String::from_utf8_lossy(&noise);
            let last = noise.lines().last().unwrap_or("no reason given");
            failure.error.message = format!("building the project ended with {status}: {last}");
        }
        failure
    })
}

/// One JSON object in each line: findings, and last the image or an error.
fn read_outcome(text: &str) -> Result<ProjectImage, BuildFailure> {
    let mut failure = BuildFailure {
        diagnostics: Vec::new(),
        error: ErrorBody::new(ErrorKind::LoadFailed, ""),
    };
    for line in text.lines() {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        if let Some(image) = value.get("image") {
            let mut image: ProjectImage =
                serde_json::from_value(image.clone()).map_err(|cause| BuildFailure {
                    diagnostics: Vec::new(),
                    error: ErrorBody::new(
                        ErrorKind::InternalError,
                        format!("the build's answer is broken: {cause}"),
                    ),
                })?;
            let is_error = |found: &Diagnostic| found.severity == Severity::Error;
            image.errors = failure.diagnostics.into_iter().filter(is_error).collect();
            return Ok(image);
        }
        if value.get("code").is_some() {
            failure
                .diagnostics
                .extend(serde_json::from_value::<Diagnostic>(value));
        } else if let Some(error) = value.get("error") {
            let text = |field: &str| error.get(field).and_then(Value::as_str).map(str::to_owned);
            failure.error.message = text("message").unwrap_or_default();
            failure.error.hint = text("hint");
        }
    }
    Err(failure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_object_is_the_image() {
        let text = "{\"code\":\"W0101\",\"severity\":\"warning\",\"message\":\"x\"}\n{\"image\":{\"name\":\"orbit\",\"version\":\"0.3.0\"}}\n";
        let image = read_outcome(text).expect("an image");
        assert_eq!(
            (image.name.as_deref(), image.version.as_str()),
            (Some("orbit"), "0.3.0")
        );
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        let root = |name: &str, path: &str| {
            let package = LoadedPackage {
                root: PathBuf::from(path),
                ..LoadedPackage::default()
            };
            (name.to_owned(), package)
        };
        let image = ProjectImage {
            packages: BTreeMap::from([
                root("orbit", "/o"),
                root("parts", "/o/vendor/parts"),
                root("z", "/z"),
            ]),
            ..ProjectImage::default()
        };
        let package_of = |file: &'static str| image.package_of(Path::new(file));
        assert_eq!(package_of("/o/src/a.bt"), Some(("orbit", Path::new("src/a.bt"))));
        assert_eq!(
            package_of("/o/vendor/parts/src/b.bt"),
            Some(("parts", Path::new("src/b.bt")))
        );
        assert_eq!(package_of("/other/c.bt"), None);
    }

    #[test]
    fn a_failed_build_keeps_its_findings() {
        let text = "noise\n{\"code\":\"E0101\",\"severity\":\"error\",\"message\":\"x\"}\n{\"error\":{\"kind\":\"compile_error\",\"message\":\"1 error found\",\"hint\":null},\"exit\":1}\n";
        let failure = read_outcome(text).expect_err("failed");
        assert_eq!(
            (failure.diagnostics.len(), failure.error.message.as_str()),
            (1, "1 error found")
        );
    }
}
