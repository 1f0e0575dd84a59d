//! Packages and the packages they depend on.

use std::path::{Path, PathBuf};

use beamtalk_syntax::ast::Item;

use crate::error::Result;
use crate::fault::Fault;
use crate::fetch::{self, Wanted};
use crate::files;
use crate::lock::{Lock, Locking, Pin};
use crate::manifest::{Dependency, FILE_NAME, Manifest, Source};
use crate::progress::Progress;
use crate::project::Project;

/// A package with its dependencies resolved.
#[derive(Clone, Debug)]
pub struct Package {
    pub project: Project,
    pub is_dependency: bool,
    pub dialect: Dialect,
    /// How a dependency came into the graph; nothing for the package that is built.
    pub provenance: Option<Provenance>,
    /// Only this file, for a build of a single file.
    only: Option<PathBuf>,
    output: PathBuf,
    /// All packages below this one, in build order.
    dependencies: Vec<Package>,
}

/// By which rules a package is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Package,
    /// A primitive outside the standard library is a warning.
    Primitives,
    /// As part of the standard library: primitives are allowed, modules are `bt@stdlib@…`.
    Library,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Package => "package",
            Dialect::Primitives => "primitives",
            Dialect::Library => "library",
        }
    }
}

impl Package {
    /// The package of a project, with its dependencies found at the commits the lock file pins.
    pub fn resolve(progress: &mut dyn Progress, project: Project, locking: Locking) -> Result<Self> {
        Self::resolve_moving(progress, project, locking, Moving::Nothing)
    }

    /// The same, taking some pins anew.
    pub fn resolve_moving(
        progress: &mut dyn Progress,
        project: Project,
        locking: Locking,
        moving: Moving<'_>,
    ) -> Result<Self> {
        let old = Lock::read(&project.root)?;
        let mut resolver = Resolver {
            progress,
            build: project.build_directory(),
            old: &old,
            moving,
            pins: Vec::new(),
            found: Vec::new(),
            path: Vec::new(),
        };
        resolver.visit_dependencies(&project, None)?;
        let Resolver { pins, found, .. } = resolver;
        old.replace(&Lock::new(pins), &project.root, locking)?;
        Ok(Self {
            output: project.output(),
            project,
            is_dependency: false,
            dialect: Dialect::Package,
            provenance: None,
            only: None,
            dependencies: found,
        })
    }

    /// One file outside any package; its modules go to `build/` beside it.
    pub fn single_file(path: &Path) -> Result<Self> {
        let path = std::fs::canonicalize(path)
            .map_err(|_| Fault::usage("path_missing", format!("{} does not exist", path.display())))?;
        let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Self {
            project: Project {
                root: directory.clone(),
                manifest: None,
            },
            is_dependency: false,
            dialect: Dialect::Package,
            provenance: None,
            only: Some(path),
            output: directory.join("build"),
            dependencies: Vec::new(),
        })
    }

    pub fn name(&self) -> Option<&str> {
        self.project.name()
    }

    pub fn output(&self) -> PathBuf {
        self.output.clone()
    }

    /// All packages below this one, in build order.
    pub fn dependencies(&self) -> &[Package] {
        &self.dependencies
    }

    /// Dependencies first, this package last.
    pub fn in_order(&self) -> impl Iterator<Item = &Package> {
        self.dependencies.iter().chain(std::iter::once(self))
    }

    pub fn sources(&self) -> Result<Vec<PathBuf>> {
        match &self.only {
            Some(path) => Ok(vec![path.clone()]),
            None => self.project.sources(),
        }
    }

    /// Where native Erlang is, if this package can have any.
    pub fn native_directory(&self) -> Option<PathBuf> {
        let directory = self.project.root.join("native");
        (self.only.is_none() && directory.is_dir()).then_some(directory)
    }
}

/// Native modules stand beside the package's own.
pub fn native_output(output: &Path) -> PathBuf {
    output.parent().unwrap_or(output).join("native/ebin")
}

/// How a dependency came into the graph.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The package that asked for it first.
    pub user: String,
    pub source: Source,
    /// The commit of a git dependency.
    pub sha: Option<String>,
}

/// Which pins are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moving<'a> {
    Nothing,
    One(&'a str),
    Everything,
}

struct Resolver<'a> {
    progress: &'a mut dyn Progress,
    /// Where the root package is built.
    build: PathBuf,
    old: &'a Lock,
    moving: Moving<'a>,
    pins: Vec<Pin>,
    found: Vec<Package>,
    /// Names from the root package to the one being visited.
    path: Vec<String>,
}

impl Resolver<'_> {
    /// `fence` is the checkout that a fetched package may not reach out of.
    fn visit_dependencies(&mut self, project: &Project, fence: Option<&Path>) -> Result<()> {
        let Some(manifest) = &project.manifest else {
            return Ok(());
        };
        self.path.push(manifest.name.clone());
        for dependency in &manifest.dependencies {
            let name = &dependency.name;
            if self.path.contains(name) {
                let cycle = format!("{} -> {name}", self.path.join(" -> "));
                let message = format!("packages depend on each other: {cycle}");
                return Err(Fault::usage("dependency_cycle", message).into());
            }
            match &dependency.source {
                Source::Path(path) => {
                    let directory = project.root.join(path);
                    check_fence(&directory, fence, dependency, &manifest.name)?;
                    if !self.is_known(dependency, Some(&directory), &manifest.name)? {
                        self.visit(dependency, &directory, &manifest.name, None, fence)?;
                    }
                }
                Source::Git { .. } => {
                    if !self.is_known(dependency, None, &manifest.name)? {
                        let (directory, sha) = self.fetch(dependency)?;
                        let checkout = std::fs::canonicalize(&directory)?;
                        self.visit(dependency, &directory, &manifest.name, Some(sha), Some(&checkout))?;
                    }
                }
            }
        }
        self.path.pop();
        Ok(())
    }

    /// Whether the same package is in the graph already. Another one of its name is refused.
    fn is_known(&self, dependency: &Dependency, directory: Option<&Path>, user: &str) -> Result<bool> {
        let name = dependency.name.as_str();
        let known = self.found.iter().find(|package| package.name() == Some(name));
        let Some((known, first)) = known.and_then(|known| Some((known, known.provenance.as_ref()?))) else {
            return Ok(false);
        };
        let is_same = match directory.map(std::fs::canonicalize) {
            Some(Ok(directory)) => directory == known.project.root,
            Some(Err(_)) => false,
            None => first.source == dependency.source,
        };
        if is_same {
            return Ok(true);
        }
        let message = format!(
            "two versions of '{name}': '{}' uses {}, '{user}' uses {}",
            first.user, first.source, dependency.source
        );
        Err(Fault::usage("dependency_conflict", message)
            .with_hint("there can be one in a program: let both packages use the same")
            .into())
    }

    fn fetch(&mut self, dependency: &Dependency) -> Result<(PathBuf, String)> {
        let Source::Git { url, reference } = &dependency.source else {
            let message = format!("'{}' is not a git dependency", dependency.name);
            return Err(Fault::failure("not_git", message).into());
        };
        let name = dependency.name.as_str();
        let moves = match self.moving {
            Moving::Nothing => false,
            Moving::One(moving) => moving == name,
            Moving::Everything => true,
        };
        let pinned = self.old.find(name, url, reference).filter(|_| !moves);
        let wanted = Wanted {
            name,
            url,
            reference,
            pinned,
        };
        let (directory, sha) = fetch::checkout(self.progress, &self.build, &wanted)?;
        self.pins.push(Pin {
            name: name.to_owned(),
            url: url.clone(),
            reference: reference.shown(),
            sha: sha.clone(),
        });
        Ok((directory, sha))
    }

    fn visit(
        &mut self,
        dependency: &Dependency,
        directory: &Path,
        user: &str,
        sha: Option<String>,
        fence: Option<&Path>,
    ) -> Result<()> {
        let name = dependency.name.as_str();
        let file = directory.join(FILE_NAME);
        if !file.is_file() {
            let message = format!(
                "dependency '{name}' of '{user}': no {FILE_NAME} in {}",
                directory.display()
            );
            return Err(Fault::usage("dependency_missing", message).into());
        }
        let root = std::fs::canonicalize(directory)?;
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
        self.visit_dependencies(&project, fence)?;
        check_standard_names(&project, name)?;
        let output = self.build.join("deps").join(name).join("ebin");
        self.found.push(Package {
            project,
            is_dependency: true,
            dialect: Dialect::Package,
            provenance: Some(Provenance {
                user: user.to_owned(),
                source: dependency.source.clone(),
                sha,
            }),
            only: None,
            output,
            dependencies: Vec::new(),
        });
        Ok(())
    }
}

/// What was fetched may use other directories of its own repository, and nothing else of this machine.
fn check_fence(
    directory: &Path,
    fence: Option<&Path>,
    dependency: &Dependency,
    user: &str,
) -> Result<(), Fault> {
    let Some(fence) = fence else { return Ok(()) };
    // A directory that is not there is told later.
    match std::fs::canonicalize(directory) {
        Ok(directory) if !directory.starts_with(fence) => Err(Fault::usage(
            "dependency_outside",
            format!(
                "'{user}' was fetched, and its dependency '{}' ({}) is outside its repository",
                dependency.name, dependency.source
            ),
        )),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// A dependency may not export the name of a standard class.
fn check_standard_names(project: &Project, name: &str) -> Result<()> {
    let is_standard = |class: &str| {
        beamtalk_node::library_sources().any(|(file, _)| file.strip_suffix(".bt") == Some(class))
    };
    for path in project.sources()? {
        let text = files::read_source(&path)?;
        // Parsing is for the few files that look as if they declared one.
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let declared = words.clone().next().unwrap_or_default();
            let class: String = declared.chars().take_while(|c| c.is_alphanumeric()).collect();
            if !word.ends_with("subclass:") || !is_standard(&class) {
                continue;
            }
            let unit = beamtalk_syntax::parse_file(&text).unit;
            let is_declared = unit.items.iter().any(|item| {
                matches!(item, Item::Class(found) if found.name.text == class && !found.modifiers.is_internal)
            });
            if is_declared {
                let shown = files::shown(&path, &project.root);
                let message = format!(
                    "error[E0303]: package '{name}' ({shown}) exports '{class}', a class of the standard library"
                );
                return Err(Fault::failure("E0303", message).into());
            }
        }
    }
    Ok(())
}
