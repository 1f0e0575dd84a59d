//! A package with everything its files can name: the library, its dependencies, its own files as the editor has them.
//!
//! A world is what requests look at. It is a value: whoever changes it works on a copy, which shares all files that did
//! not change.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use beamtalk_compiler::reads::{Key, Outline};
use beamtalk_compiler::{ClassTable, Dependencies, Origin, Packages, SourceFile, module_name};
use beamtalk_project::build::{Package, plan};
use beamtalk_project::findings::Policy;
use beamtalk_project::lock::Locking;
use beamtalk_project::manifest::{Dependency, Source};
use beamtalk_project::source::{self, Parsed, Text};
use beamtalk_project::specs::Specs;
use beamtalk_project::{Project, Silent, files};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::diagnostic::Diagnostic;
use ecow::EcoString;
use gen_lsp_types::Uri;

use crate::analysis::words::Words;
use crate::library::Library;
use crate::position::Lines;
use crate::uri;

/// What may be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Of the package itself, or open without one.
    Own,
    /// Of another package: looked at, never changed.
    Dependency,
    Library,
}

/// A parsed text.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) uri: Uri,
    /// With its names resolved.
    pub(crate) source: Arc<SourceFile>,
    pub(crate) lines: Lines,
    pub(crate) access: Access,
    words: OnceLock<Words>,
}

impl File {
    pub(crate) fn new(uri: Uri, source: Arc<SourceFile>, access: Access) -> Self {
        Self {
            uri,
            lines: Lines::new(&source.text),
            source,
            access,
            words: OnceLock::new(),
        }
    }

    /// The names it has.
    pub(crate) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::of(&self.source.unit))
    }

    pub(crate) fn text(&self) -> &str {
        &self.source.text
    }
}

/// A text before its names are resolved.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) source: SourceFile,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// A package below another, as far as names go.
#[derive(Clone, Debug)]
struct Used {
    name: EcoString,
    uses: Vec<EcoString>,
    dependencies: Dependencies,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    /// The directory of the package, or of a file without one.
    pub(crate) root: PathBuf,
    pub(crate) package: Option<EcoString>,
    /// What the manifest makes of findings.
    pub(crate) policy: Policy,
    pub(crate) table: ClassTable,
    /// All files of the package and of its dependencies, by their canonical URI.
    pub(crate) files: BTreeMap<EcoString, Arc<File>>,
    /// What is wrong with the package as a whole.
    pub(crate) problem: Option<String>,
    /// Everything was read; until then an unknown name means nothing.
    pub(crate) is_complete: bool,
    /// How dependencies are named by whoever brings them.
    pub(crate) sources: BTreeMap<EcoString, Dependency>,
    packages: Vec<Used>,
}

impl World {
    /// A file alone, with the library.
    pub(crate) fn alone(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            package: None,
            policy: Policy::default(),
            table: Library::get().table.clone(),
            files: BTreeMap::new(),
            problem: None,
            is_complete: true,
            sources: BTreeMap::new(),
            packages: Vec::new(),
        }
    }

    /// A package that could not be read.
    pub(crate) fn failed(root: &Path, problem: String) -> Self {
        Self {
            problem: Some(problem),
            ..Self::alone(root)
        }
    }

    /// A package that is being read.
    pub(crate) fn coming(root: &Path) -> Self {
        Self {
            is_complete: false,
            ..Self::alone(root)
        }
    }

    /// The package at a root, read from its files. What cannot be read is left out and told.
    pub(crate) fn read(root: &Path, limit: usize) -> Self {
        let (package, mut problem) = match resolve(root) {
            Ok(found) => found,
            Err(fault) => {
                return Self::failed(root, fault);
            }
        };
        let mut world = Self {
            package: package.name().map(EcoString::from),
            policy: policy(&package),
            ..Self::alone(root)
        };
        let mut drafts: Vec<(Parsed, Access)> = Vec::new();
        let mut left = limit;
        for each in package.in_order() {
            if let Some(manifest) = &each.project.manifest {
                let sources = manifest.dependencies.iter();
                let sources =
                    sources.map(|one| (EcoString::from(one.name.as_str()), seen_from(one, each, root)));
                world.sources.extend(sources);
                world.packages.push(Used {
                    name: EcoString::from(manifest.name.as_str()),
                    uses: manifest
                        .dependencies
                        .iter()
                        .map(|dependency| EcoString::from(dependency.name.as_str()))
                        .collect(),
                    dependencies: if manifest.has_strict_dependencies {
                        Dependencies::Strict
                    } else {
                        Dependencies::Lenient
                    },
                });
            }
            let access = if each.is_dependency {
                Access::Dependency
            } else {
                Access::Own
            };
            let mut paths = paths_of(each);
            if paths.len() > left {
                problem = Some(format!(
                    "only the first {limit} files of the project are known (initializationOptions.maxPreloadFiles)"
                ));
                paths.truncate(left);
            }
            left -= paths.len();
            let parsed = source::parallel(&paths, |(path, origin)| {
                let module_path = plan::module_path(path, &each.project.root);
                Text::find(path, &each.project.root).parse(each.name(), &module_path, *origin)
            });
            drafts.extend(parsed.into_iter().map(|parsed| (parsed, access)));
        }
        world.problem = problem;
        world
            .table
            .set_packages(world.names(drafts.iter().map(|(parsed, _)| &parsed.file)));
        let specs = Specs::of_package(&package).without_keeping();
        let own = drafts.iter().filter(|(_, access)| *access == Access::Own);
        world.table.set_specs(specs.table(own.map(|(parsed, _)| parsed)));
        for (parsed, access) in drafts {
            let uri = uri::of_path(&parsed.path);
            let kept = world.table.take(parsed.file);
            let key = EcoString::from(uri.0.as_str());
            let file = File::new(uri, kept, access);
            world.files.insert(key, Arc::new(file));
        }
        // The first search through the project finds the names of all files.
        let files: Vec<&Arc<File>> = world
            .files
            .values()
            .chain(Library::get().files.values())
            .collect();
        source::parallel(&files, |file| {
            file.words();
        });
        world
    }

    /// How a text at this place would be compiled.
    pub(crate) fn draft(&self, uri: &str, text: &str) -> Draft {
        let path = uri::to_path(uri);
        let is_script = is_script(uri);
        let parse = if is_script {
            beamtalk_syntax::parse_input(text)
        } else {
            beamtalk_syntax::parse_file(text)
        };
        let shown = path
            .as_deref()
            .map_or_else(|| uri.to_owned(), |path| files::shown(path, &self.root));
        let is_test = path
            .as_deref()
            .is_some_and(|path| path.starts_with(self.root.join("test")));
        let package = self.package.as_deref().filter(|_| !is_script);
        let module = path.as_deref().map_or_else(
            || "untitled".to_owned(),
            |path| plan::module_path(path, &self.root),
        );
        Draft {
            source: SourceFile {
                path: shown.into(),
                text: text.into(),
                unit: parse.unit,
                package: package.map(EcoString::from),
                module: module_name(package, &module).into(),
                origin: match (is_script, is_test) {
                    (true, _) => Origin::Session,
                    (false, true) => Origin::Test,
                    (false, false) => Origin::Package,
                },
            },
            diagnostics: parse.diagnostics,
        }
    }

    /// Put a text in the place of what was there. Answers what others may have known and is different now.
    pub(crate) fn put(&mut self, key: &EcoString, uri: &Uri, draft: &Draft) -> Vec<Key> {
        let before = self.files.remove(key);
        let names = declared(&draft.source);
        let old_names = before
            .as_ref()
            .map_or_else(BTreeSet::new, |file| declared(&file.source));
        if let Some(before) = &before {
            self.table.withdraw(&before.source);
        }
        if names != old_names {
            self.rename_packages(Some(&draft.source));
        }
        let kept = if draft.source.origin == Origin::Session {
            // What a script declares is its own business.
            Arc::new(draft.source.clone())
        } else {
            self.table.keep(&draft.source)
        };
        let access = before.as_ref().map_or(Access::Own, |file| file.access);
        let outline = |file: &SourceFile| {
            if file.origin == Origin::Session {
                return Outline::default();
            }
            Outline::of(file)
        };
        let old = before.map_or_else(Outline::default, |file| outline(&file.source));
        let changed = old.changed(&outline(&kept));
        let file = File::new(uri.clone(), kept, access);
        self.files.insert(key.clone(), Arc::new(file));
        self.restore(key, &old_names, &names);
        changed
    }

    /// A file is gone.
    pub(crate) fn remove(&mut self, key: &str) {
        if let Some(before) = self.files.remove(key) {
            self.table.withdraw(&before.source);
            self.rename_packages(None);
            self.restore(key, &declared(&before.source), &BTreeSet::new());
        }
    }

    /// Names that one file lost and another has too.
    fn restore(&mut self, key: &str, old: &BTreeSet<EcoString>, new: &BTreeSet<EcoString>) {
        let lost: Vec<&EcoString> = old.difference(new).collect();
        if lost.is_empty() {
            return;
        }
        let others = self
            .files
            .iter()
            .filter(|(other, _)| other.as_str() != key)
            .filter(|(_, file)| {
                let names = declared(&file.source);
                lost.iter().any(|name| names.contains(*name))
            });
        let others: Vec<Arc<File>> = others.map(|(_, file)| file.clone()).collect();
        for file in others {
            self.table.declare(&file.source);
        }
    }

    /// The names of all packages after a change of what is declared.
    fn rename_packages(&mut self, changed: Option<&SourceFile>) {
        if self.packages.is_empty() {
            return;
        }
        let kept = self.files.values().map(|file| file.source.as_ref());
        let packages = self.names(kept.chain(changed));
        self.table.set_packages(packages);
    }

    fn names<'a>(&self, files: impl Iterator<Item = &'a SourceFile>) -> Packages {
        let mut packages = Packages::default();
        for used in &self.packages {
            packages.add(
                &used.name,
                used.uses.iter().map(EcoString::as_str),
                used.dependencies,
            );
        }
        files.for_each(|file| packages.declare(file));
        packages
    }
}

/// An expression script, whose statements stand outside of classes.
pub(crate) fn is_script(uri: &str) -> bool {
    uri.ends_with(".btscript")
}

/// What a file gives names to.
fn declared(file: &SourceFile) -> BTreeSet<EcoString> {
    let names = file.unit.items.iter().filter_map(|item| match item {
        Item::Class(class) => Some(class.name.text.clone()),
        Item::Protocol(protocol) => Some(protocol.name.text.clone()),
        Item::TypeAlias(alias) => Some(alias.name.text.clone()),
        Item::Extension(_) | Item::Statement(_) => None,
    });
    names.collect()
}

/// The package at a root with its dependencies as they are on disk: nothing is fetched, no lock file is written. When
/// the dependencies cannot be had, the package goes without them.
fn resolve(root: &Path) -> Result<(Package, Option<String>), String> {
    let project = match Project::at(root) {
        Ok(Some(project)) => project,
        Ok(None) => Project::loose(root).map_err(|fault| fault.to_string())?,
        Err(fault) => return Err(fault.to_string()),
    };
    match Package::resolve(&mut Silent, project.clone(), Locking::Frozen) {
        Ok(package) => Ok((package, None)),
        Err(fault) => {
            let mut bare = project;
            if let Some(manifest) = &mut bare.manifest {
                manifest.dependencies.clear();
            }
            let package =
                Package::resolve(&mut Silent, bare, Locking::Frozen).map_err(|fault| fault.to_string());
            package.map(|package| (package, Some(fault.to_string())))
        }
    }
}

fn policy(package: &Package) -> Policy {
    Policy {
        settings: package
            .project
            .manifest
            .as_ref()
            .map_or_else(BTreeMap::new, |manifest| manifest.diagnostics.clone()),
        shows_lint: true,
        ..Policy::default()
    }
}

/// A dependency as another package would name it: paths are relative to whoever names them.
fn seen_from(dependency: &Dependency, user: &Package, root: &Path) -> Dependency {
    let mut seen = dependency.clone();
    if let Source::Path(path) = &dependency.source {
        let there = user.project.root.join(path);
        let there = std::fs::canonicalize(&there).unwrap_or(there);
        seen.source = Source::Path(relative(&there, root).display().to_string());
    }
    seen
}

fn relative(path: &Path, base: &Path) -> PathBuf {
    let shared = path
        .components()
        .zip(base.components())
        .take_while(|(one, other)| one == other)
        .count();
    let up = base.components().skip(shared).map(|_| Path::new(".."));
    let down = path
        .components()
        .skip(shared)
        .map(|part| Path::new(part.as_os_str()));
    up.chain(down).collect()
}

/// The sources of a package, and the tests of the one that is edited.
fn paths_of(package: &Package) -> Vec<(PathBuf, Origin)> {
    let sources = package.sources().unwrap_or_default();
    let mut paths: Vec<(PathBuf, Origin)> = sources.into_iter().map(|path| (path, Origin::Package)).collect();
    let tests = package.project.root.join("test");
    if !package.is_dependency && package.project.manifest.is_some() && tests.is_dir() {
        let found = files::find(&tests, &["bt"]).unwrap_or_default();
        paths.extend(found.into_iter().map(|path| (path, Origin::Test)));
    }
    paths
}
