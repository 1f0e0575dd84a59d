//! Deciding what to compile, and compiling it to Erlang forms.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use beamtalk_compiler::{ClassTable, CompiledModule, Dependencies, Origin, Packages};
use beamtalk_syntax::ast::Item;

use super::graph::{Dialect, Package};
use super::index::{Entry, Index};
use super::interface::Interfaces;
use super::{Scope, native};
use crate::error::{At, Result};
use crate::files;
use crate::findings::FileFindings;
use crate::progress::Progress;
use crate::source::{self, Parsed, Text};
use crate::specs::Specs;

/// What is to be done for one package.
pub struct Plan {
    pub name: Option<String>,
    pub version: String,
    pub root: PathBuf,
    pub output: PathBuf,
    pub is_dependency: bool,
    /// The packages it uses, by name.
    pub dependencies: Vec<String>,
    /// Forms to compile; empty when nothing changed.
    pub modules: Vec<CompiledModule>,
    /// Native Erlang files to compile.
    pub native: Vec<PathBuf>,
    /// What they are compiled from, as the index of native output has it.
    pub native_index: Vec<u8>,
    /// The module of every class.
    pub classes: BTreeMap<String, String>,
    /// All modules of the package after the build.
    pub module_names: Vec<String>,
    pub findings: Vec<FileFindings>,
    /// Files with errors: they give no modules, and the next build looks at them again.
    pub broken: BTreeSet<String>,
    /// Files left out because another gives a module of the same name.
    pub doubles: Vec<Double>,
    pub native_applications: Vec<String>,
    /// The top supervisor of an application.
    pub supervisor: Option<String>,
    /// Modules whose source is gone.
    stale: Vec<String>,
    index: Option<Index>,
}

impl Plan {
    /// Whether a node has to compile something.
    pub fn needs_node(&self) -> bool {
        !self.modules.is_empty() || !self.native.is_empty()
    }

    /// Whether the directory is not what it was before.
    pub fn is_changed(&self) -> bool {
        self.index.is_some()
    }

    /// Bring directory and index in step with the compiled modules.
    pub fn settle(&self) -> Result<()> {
        native::remove_stale(self)?;
        let Some(index) = &self.index else { return Ok(()) };
        self.clean()?;
        index.write(&self.output)
    }

    /// Remove modules whose source is gone and describe the application.
    pub fn clean(&self) -> Result<()> {
        std::fs::create_dir_all(&self.output).at("cannot create", &self.output)?;
        for module in &self.stale {
            // Already gone is as good as removed.
            drop(std::fs::remove_file(self.output.join(format!("{module}.beam"))));
        }
        if let Some((path, content)) = self.application_file()
            && files::read_kept(&path).as_deref() != Some(content.as_bytes())
        {
            files::write_atomic(&path, content.as_bytes())?;
        }
        Ok(())
    }

    /// The index to put in place once the modules are written, for a node that does it itself.
    pub fn index_bytes(&self) -> Option<Vec<u8>> {
        self.index.as_ref().map(Index::to_bytes)
    }

    /// The source file of each module that is compiled.
    pub fn paths(&self) -> BTreeMap<&str, &str> {
        let files = self.index.iter().flat_map(|index| &index.files);
        files
            .flat_map(|(path, entry)| {
                entry
                    .modules
                    .iter()
                    .map(|module| (module.as_str(), path.as_str()))
            })
            .collect()
    }

    /// `<name>.app`.
    fn application_file(&self) -> Option<(PathBuf, String)> {
        let name = self.name.as_ref()?;
        let modules: Vec<String> = self
            .module_names
            .iter()
            .map(|module| format!("'{module}'"))
            .collect();
        let applications: Vec<String> = ["kernel", "stdlib"]
            .into_iter()
            .map(str::to_owned)
            .chain(self.native_applications.iter().cloned())
            .collect();
        // The runtime has the module that starts the supervisor of any package.
        let start = self.supervisor.as_ref().map_or_else(String::new, |supervisor| {
            format!("  {{mod, {{beamtalk_release, '{supervisor}'}}}},\n")
        });
        let content = format!(
            "{{application, '{name}',\n [{{description, \"{name}\"}},\n  {{vsn, \"{}\"}},\n  {{registered, []}},\n  \
             {{applications, [{}]}},\n{start}  {{modules, [{}]}}]}}.\n",
            self.version,
            applications.join(", "),
            modules.join(",\n             "),
        );
        Some((self.output.join(format!("{name}.app")), content))
    }
}

/// A file that cannot live together with another.
#[derive(Clone, Debug)]
pub struct Double {
    pub path: String,
    pub message: String,
}

/// The classes known to later files, made when the first file needs compiling.
struct Tables {
    table: Option<ClassTable>,
    packages: Packages,
    /// Parsed on demand: the sources of dependencies that were up to date.
    waiting: Vec<Parsed>,
}

impl Tables {
    fn get(&mut self) -> &mut ClassTable {
        let table = self.table.get_or_insert_with(|| {
            let mut table = source::library_table();
            table.set_packages(std::mem::take(&mut self.packages));
            table
        });
        for parsed in self.waiting.drain(..) {
            table.declare(&parsed.file);
        }
        table
    }
}

/// A package with its texts.
struct Sources<'a> {
    package: &'a Package,
    texts: Vec<Text>,
    /// Parsed already, if the names of several packages had to be known.
    parsed: Option<Vec<Parsed>>,
}

/// Plan a package after its dependencies. `begin` is called for each of them as soon as something in it will have to
/// be compiled, long before it is known what.
pub fn plan_all(
    progress: &mut dyn Progress,
    package: &Package,
    scope: Scope,
    erlang: &str,
    begin: &mut dyn FnMut() -> Result<()>,
) -> Result<Vec<Plan>> {
    let mut sources = Vec::new();
    for each in package.in_order() {
        let texts = each
            .sources()?
            .iter()
            .map(|path| Text::find(path, &each.project.root))
            .collect::<Vec<Text>>();
        let parsed = (!package.dependencies().is_empty()).then(|| parse_all(each, &texts));
        sources.push(Sources {
            package: each,
            texts,
            parsed,
        });
    }
    let packages = names(
        sources
            .iter()
            .map(|each| (each.package, each.parsed.as_deref().unwrap_or_default())),
    );
    let shared: Vec<&str> = packages.shared_names().collect();
    let shared = shared.join(" ");
    let mut tables = Tables {
        table: None,
        packages,
        waiting: Vec::new(),
    };
    let mut plans = Vec::new();
    let mut below = String::new();
    for each in sources {
        let package = each.package;
        let environment = environment(package, erlang, &format!("{shared}\n{below}"));
        let fingerprint: Vec<&str> = each.texts.iter().map(|text| text.hash.as_str()).collect();
        below = files::hash(format!("{below}{environment}{}", fingerprint.join("")).as_bytes());
        let plan = plan_one(each, scope, environment, erlang, &mut tables, begin)?;
        progress.detail(&format!(
            "{}: {} of {} modules to compile",
            package.name().unwrap_or("(no package)"),
            plan.modules.len(),
            plan.module_names.len()
        ));
        plans.push(plan);
    }
    native::check_names(&plans)?;
    Ok(plans)
}

/// Whom a package uses.
pub fn add_package(packages: &mut Packages, package: &Package) {
    if let Some(manifest) = &package.project.manifest {
        let uses = manifest
            .dependencies
            .iter()
            .map(|dependency| dependency.name.as_str());
        let dependencies = if manifest.has_strict_dependencies {
            Dependencies::Strict
        } else {
            Dependencies::Lenient
        };
        packages.add(&manifest.name, uses, dependencies);
    }
}

/// What each package declares, and whom it uses.
pub fn names<'a>(sources: impl Iterator<Item = (&'a Package, &'a [Parsed])>) -> Packages {
    let mut packages = Packages::default();
    for (package, parsed) in sources {
        add_package(&mut packages, package);
        for parsed in parsed {
            packages.declare(&parsed.file);
        }
    }
    packages
}

/// Everything that makes old output worthless as a whole.
fn environment(package: &Package, erlang: &str, below: &str) -> String {
    let manifest =
        files::read_kept(&package.project.root.join(crate::manifest::FILE_NAME)).unwrap_or_default();
    let parts = [
        package.dialect.name(),
        env!("CARGO_PKG_VERSION"),
        beamtalk_node::LIBRARY_HASH,
        &binary_stamp(),
        erlang,
        &files::hash(&manifest),
        below,
    ];
    files::hash(parts.join("\n").as_bytes())
}

/// What makes this program and its library different from any other.
pub fn program() -> Vec<String> {
    vec![
        env!("CARGO_PKG_VERSION").to_owned(),
        beamtalk_node::LIBRARY_HASH.to_owned(),
        binary_stamp(),
    ]
}

/// Size and time of the running binary: a new compiler builds everything again.
fn binary_stamp() -> String {
    use std::os::unix::fs::MetadataExt;
    std::env::current_exe()
        .and_then(std::fs::metadata)
        .map(|metadata| {
            format!(
                "{}-{}-{}",
                metadata.len(),
                metadata.mtime(),
                metadata.mtime_nsec()
            )
        })
        .unwrap_or_default()
}

fn plan_one(
    sources: Sources<'_>,
    scope: Scope,
    environment: String,
    erlang: &str,
    tables: &mut Tables,
    begin: &mut dyn FnMut() -> Result<()>,
) -> Result<Plan> {
    let Sources {
        package,
        texts,
        parsed,
    } = sources;
    let parsed = |texts: &[Text]| parsed.unwrap_or_else(|| parse_all(package, texts));
    let output = package.output();
    let old = Index::read(&output);
    let mut plan = Plan {
        name: package.name().map(str::to_owned),
        version: package
            .project
            .manifest
            .as_ref()
            .map_or_else(String::new, |manifest| manifest.version.clone()),
        root: package.project.root.clone(),
        output: output.clone(),
        is_dependency: package.is_dependency,
        dependencies: package
            .project
            .manifest
            .as_ref()
            .map_or_else(Vec::new, |manifest| {
                let names = manifest.dependencies.iter();
                names.map(|dependency| dependency.name.clone()).collect()
            }),
        modules: Vec::new(),
        native: Vec::new(),
        native_index: Vec::new(),
        classes: BTreeMap::new(),
        module_names: Vec::new(),
        findings: Vec::new(),
        broken: BTreeSet::new(),
        doubles: Vec::new(),
        native_applications: package
            .project
            .manifest
            .as_ref()
            .map_or_else(Vec::new, |manifest| manifest.native_applications.clone()),
        supervisor: package
            .project
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.supervisor.clone()),
        stale: Vec::new(),
        index: None,
    };
    let hashes = texts.iter().map(|text| (text.shown.as_str(), text.hash.as_str()));
    if scope == Scope::Changed && old.is_current(&environment, hashes, &output) {
        plan.module_names = old.modules().into_iter().map(str::to_owned).collect();
        plan.classes = old.classes();
        native::plan(package, &mut plan, scope, erlang)?;
        plan.findings = texts
            .iter()
            .filter_map(|text| {
                let entry = old
                    .files
                    .get(&text.shown)
                    .filter(|entry| !entry.findings.is_empty())?;
                let findings = entry.findings.clone();
                Some(FileFindings {
                    path: text.shown.clone(),
                    text: text.content.clone(),
                    findings,
                })
            })
            .collect();
        if package.is_dependency {
            tables.waiting.extend(parsed(&texts));
        }
        return Ok(plan);
    }
    begin()?;
    let parsed = parsed(&texts);
    compile_changed(package, parsed, &old, scope, environment, tables, &mut plan);
    native::plan(package, &mut plan, scope, erlang)?;
    Ok(plan)
}

fn compile_changed(
    package: &Package,
    parsed: Vec<Parsed>,
    old: &Index,
    scope: Scope,
    environment: String,
    tables: &mut Tables,
    plan: &mut Plan,
) {
    let table = tables.get();
    if package.dialect == Dialect::Primitives {
        table.allow_primitives();
    }
    let mut interfaces = Interfaces::default();
    for file in &parsed {
        table.declare(&file.file);
        interfaces.add(&file.file);
    }
    table.set_specs(Specs::of_package(package).table(parsed.iter()));
    let table = &*table;
    let mut index = Index {
        global: interfaces.global_hash(&library_selectors()),
        environment,
        ..Index::default()
    };
    let keeps_old =
        scope == Scope::Changed && old.environment == index.environment && old.global == index.global;
    let work: Vec<(&Parsed, Option<&Entry>)> = parsed
        .iter()
        .map(|file| {
            let entry = old.files.get(file.file.path.as_str()).filter(|entry| {
                keeps_old
                    && entry.hash == file.hash
                    && entry.uses == interfaces.used(&file.file.text)
                    && entry
                        .modules
                        .iter()
                        .all(|module| plan.output.join(format!("{module}.beam")).is_file())
            });
            (file, entry)
        })
        .collect();
    let compiled = source::parallel(&work, |(file, entry)| match entry {
        Some(_) => None,
        None => Some(beamtalk_compiler::compile_file(&file.file, table)),
    });
    let mut modules: Vec<(String, CompiledModule)> = Vec::new();
    for ((file, entry), compiled) in work.into_iter().zip(compiled) {
        let path = file.file.path.to_string();
        let entry = match (compiled, entry) {
            (Some(compiled), _) => {
                let findings = file.findings(&compiled.diagnostics);
                if findings.has_errors() {
                    plan.findings.push(findings);
                    plan.broken.insert(path);
                    continue;
                }
                let entry = Entry {
                    hash: file.hash.clone(),
                    modules: compiled
                        .modules
                        .iter()
                        .map(|module| module.name.to_string())
                        .collect(),
                    classes: compiled
                        .modules
                        .iter()
                        .filter_map(|module| {
                            Some((module.class.as_ref()?.to_string(), module.name.to_string()))
                        })
                        .collect(),
                    declares: interfaces.declared(&file.file),
                    uses: interfaces.used(&file.file.text),
                    findings: findings.findings.clone(),
                };
                let own = compiled.modules.into_iter();
                modules.extend(own.map(|module| (path.clone(), module)));
                plan.findings.push(findings);
                entry
            }
            (None, Some(entry)) => {
                plan.findings.push(FileFindings {
                    path: path.clone(),
                    text: file.file.text.to_string(),
                    findings: entry.findings.clone(),
                });
                entry.clone()
            }
            (None, None) => continue,
        };
        index.files.insert(path, entry);
    }
    plan.doubles = take_doubles(package, &mut index);
    modules.retain(|(path, _)| index.files.contains_key(path));
    plan.modules = modules.into_iter().map(|(_, module)| module).collect();
    let names: BTreeSet<&str> = index.modules();
    plan.stale = old
        .modules()
        .difference(&names)
        .map(|name| (*name).to_owned())
        .collect();
    plan.module_names = names.into_iter().map(str::to_owned).collect();
    plan.classes = index.classes();
    plan.index = Some(index);
}

/// Two files giving one module name cannot live together: the later one is left out.
fn take_doubles(package: &Package, index: &mut Index) -> Vec<Double> {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    let mut doubles: Vec<Double> = Vec::new();
    for (path, entry) in &index.files {
        for module in &entry.modules {
            let first = seen.entry(module.clone()).or_insert_with(|| path.clone());
            if first != path {
                let root = package.project.root.display();
                doubles.push(Double {
                    path: path.clone(),
                    message: format!("{first} and {path} in {root} both give the module '{module}'"),
                });
            }
        }
    }
    for double in &doubles {
        index.files.remove(&double.path);
    }
    doubles
}

pub fn parse_all(package: &Package, texts: &[Text]) -> Vec<Parsed> {
    let (name, origin) = match package.dialect {
        Dialect::Library => (Some("stdlib"), Origin::Library),
        Dialect::Package | Dialect::Primitives => (package.name(), Origin::Package),
    };
    source::parallel(texts, |text| {
        let module_path = module_path(&text.path, &package.project.root);
        text.clone().parse(name, &module_path, origin)
    })
}

/// The part of a path that gives the module its name: relative to `src/`, or the file name alone.
pub fn module_path(path: &Path, root: &Path) -> String {
    let below = path
        .strip_prefix(root.join("src"))
        .or_else(|_| path.strip_prefix(root))
        .unwrap_or(path);
    below.display().to_string()
}

/// Selectors that the library defines on its instances.
fn library_selectors() -> BTreeSet<String> {
    let mut selectors = BTreeSet::new();
    for (_, text) in beamtalk_node::library_sources() {
        for item in &beamtalk_syntax::parse_file(text).unit.items {
            if let Item::Class(class) = item {
                selectors.extend(
                    class
                        .methods
                        .iter()
                        .map(|method| method.head.selector.to_string()),
                );
            }
        }
    }
    selectors
}
