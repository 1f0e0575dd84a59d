//! Packages and the packages they depend on.

use std::path::{Path, PathBuf};

use super::Scope;
use crate::exit::Fault;
use crate::files;
use crate::manifest::{FILE_NAME, Manifest, Source};
use crate::project::Project;
use crate::terminal::Network;

/// A package with its dependencies resolved.
#[derive(Clone, Debug)]
pub(crate) struct Package {
    pub(crate) project: Project,
    pub(crate) is_dependency: bool,
    /// Only this file, for a build of a single file.
    only: Option<PathBuf>,
    output: PathBuf,
    /// All packages below this one, in build order.
    dependencies: Vec<Package>,
}

impl Package {
    /// The package of a project, with its dependencies found.
    pub(crate) fn resolve(project: Project, network: Network) -> anyhow::Result<Self> {
        let output = project.output();
        let mut resolver = Resolver {
            root: project.root.clone(),
            network,
            found: Vec::new(),
            path: Vec::new(),
        };
        resolver.visit_dependencies(&project)?;
        Ok(Self {
            project,
            is_dependency: false,
            only: None,
            output,
            dependencies: resolver.found,
        })
    }

    /// One file outside any package; its modules go to `build/` beside it.
    pub(crate) fn single_file(path: &Path) -> anyhow::Result<Self> {
        let path = std::fs::canonicalize(path)
            .map_err(|_| Fault::usage("path_missing", format!("{} does not exist", path.display())))?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self {
            project: Project {
                root: directory.clone(),
                manifest: None,
            },
            is_dependency: false,
            only: Some(path),
            output: directory.join("build"),
            dependencies: Vec::new(),
        })
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.project.name()
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.output.clone()
    }

    /// Dependencies first, this package last.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &Package> {
        self.dependencies.iter().chain(std::iter::once(self))
    }

    pub(crate) fn sources(&self) -> anyhow::Result<Vec<PathBuf>> {
        match &self.only {
            Some(path) => Ok(vec![path.clone()]),
            None => self.project.sources(),
        }
    }

    /// Native Erlang files that are newer in content than what was built from them.
    pub(crate) fn native_sources(&self, scope: Scope) -> anyhow::Result<Vec<PathBuf>> {
        let directory = self.project.root.join("native");
        if self.only.is_some() || !directory.is_dir() {
            return Ok(Vec::new());
        }
        super::native::changed(&directory, &self.native_output(), scope)
    }

    pub(crate) fn native_output(&self) -> PathBuf {
        native_output(&self.output)
    }
}

/// Native modules stand beside the package's own.
pub(crate) fn native_output(output: &Path) -> PathBuf {
    output.parent().unwrap_or(output).join("native/ebin")
}

struct Resolver {
    root: PathBuf,
    network: Network,
    found: Vec<Package>,
    /// Names from the root package to the one being visited.
    path: Vec<String>,
}

impl Resolver {
    fn visit_dependencies(&mut self, project: &Project) -> anyhow::Result<()> {
        let Some(manifest) = &project.manifest else {
            return Ok(());
        };
        self.path.push(manifest.name.clone());
        for dependency in &manifest.dependencies {
            let directory = match &dependency.source {
                Source::Path(path) => project.root.join(path),
                Source::Git { .. } => crate::fetch::checkout(&self.root, dependency, self.network)?,
            };
            self.visit(&dependency.name, &directory, &manifest.name)?;
        }
        self.path.pop();
        Ok(())
    }

    fn visit(&mut self, name: &str, directory: &Path, user: &str) -> anyhow::Result<()> {
        let file = directory.join(FILE_NAME);
        if !file.is_file() {
            let message = format!(
                "dependency '{name}' of '{user}': no {FILE_NAME} in {}",
                directory.display()
            );
            return Err(Fault::usage("dependency_missing", message).into());
        }
        let root = std::fs::canonicalize(directory)?;
        if self.path.iter().any(|above| above == name) {
            let cycle = format!("{} -> {name}", self.path.join(" -> "));
            return Err(Fault::usage(
                "dependency_cycle",
                format!("packages depend on each other: {cycle}"),
            )
            .into());
        }
        if let Some(known) = self.found.iter().find(|package| package.name() == Some(name)) {
            if known.project.root != root {
                let message = format!(
                    "two packages named '{name}': {} and {} (used by '{user}')",
                    known.project.root.display(),
                    root.display()
                );
                return Err(Fault::usage("dependency_conflict", message).into());
            }
            return Ok(());
        }
        let manifest = Manifest::read(&file)?;
        if manifest.name != name {
            let message = format!("dependency '{name}' of '{user}' calls itself '{}'", manifest.name);
            return Err(Fault::usage("dependency_name", message)
                .with_hint("use the package's own name as key")
                .into());
        }
        let project = Project {
            root,
            manifest: Some(manifest),
        };
        self.visit_dependencies(&project)?;
        check_standard_names(&project, name)?;
        let output = self.root.join("_build/deps").join(name).join("ebin");
        self.found.push(Package {
            project,
            is_dependency: true,
            only: None,
            output,
            dependencies: Vec::new(),
        });
        Ok(())
    }
}

/// A dependency may not export the name of a standard class.
fn check_standard_names(project: &Project, name: &str) -> anyhow::Result<()> {
    for path in project.sources()? {
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        if beamtalk_node::library_sources().any(|(file, _)| file.strip_suffix(".bt") == Some(stem)) {
            let shown = files::shown(&path, &project.root);
            let message = format!(
                "error[E0303]: package '{name}' ({shown}) exports '{stem}', a class of the standard library"
            );
            return Err(Fault::failure("E0303", message).into());
        }
    }
    Ok(())
}
