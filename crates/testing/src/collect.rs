//! Finding the tests of a run and compiling everything they need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beamtalk_compiler::{ClassTable, CompiledModule, Origin};
use beamtalk_project::findings::human;
use beamtalk_project::findings::{Level, Policy};
use beamtalk_project::source::{self, Parsed, Text};
use beamtalk_project::{Fault, Project, Result, files};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::examples;
use beamtalk_syntax::examples::script::{self, Style};

use super::filter::Filters;
use super::units::{Test, Unit, Work};

mod scripts;

pub use scripts::ScriptCompiler;

/// What to look for.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub filters: Filters,
    pub documentation: Documentation,
}

/// Which part documentation has in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Documentation {
    #[default]
    Included,
    Excluded,
    Only,
}

/// The tests of a run with the code they need.
pub struct Collection {
    pub units: Vec<Unit>,
    /// Test and fixture modules, to be loaded before anything runs.
    pub modules: Vec<CompiledModule>,
    /// The files they come from, fixtures first.
    pub class_files: Vec<PathBuf>,
    /// Things to tell that are no failure.
    pub warnings: Vec<String>,
    /// Every class that is loaded before anything runs.
    pub table: ClassTable,
}

impl Collection {
    /// How many files the units come from, or only those at some places.
    pub fn files_of(&self, only: Option<&BTreeSet<usize>>) -> usize {
        let units = self.units.iter().enumerate();
        units
            .filter(|(at, _)| only.is_none_or(|only| only.contains(at)))
            .map(|(_, unit)| unit.file.as_str())
            .collect::<BTreeSet<_>>()
            .len()
    }
}

/// The files of a run, by role.
#[derive(Default)]
struct Sources {
    tests: Vec<PathBuf>,
    fixtures: BTreeSet<PathBuf>,
    scripts: Vec<PathBuf>,
    /// Sources of the package, searched for documentation only.
    documented: Vec<PathBuf>,
    native: Vec<PathBuf>,
}

/// Find and compile the tests below the paths; none means the defaults of the project. `package` holds the
/// already compiled sources of the package.
pub fn collect(
    project: &Project,
    paths: &[PathBuf],
    table: &ClassTable,
    selection: &Selection,
) -> Result<Collection> {
    let sources = find_sources(project, paths, selection)?;
    let mut collection = Collection {
        units: Vec::new(),
        modules: Vec::new(),
        class_files: Vec::new(),
        warnings: Vec::new(),
        table: ClassTable::empty(),
    };
    let mut table = table.clone();
    let parsed = compile_classes(project, &sources, &mut table, &mut collection)?;
    collection.table = table.clone();
    add_test_classes(&parsed, &table, selection, &mut collection);
    let known: BTreeSet<PathBuf> = parsed
        .iter()
        .map(|file| file.path.clone())
        .chain(project.sources()?)
        .collect();
    let compiler = ScriptCompiler::new(project, &table, known);
    add_scripts(&compiler, &sources.scripts, selection, &mut collection)?;
    if selection.documentation != Documentation::Excluded {
        add_documentation(&compiler, project, &sources, selection, &mut collection)?;
    }
    for path in &sources.native {
        let file = files::shown(path, &project.root);
        let name = path
            .file_stem()
            .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        if selection.filters.selects(&name, "") {
            collection.units.push(Unit {
                name,
                file,
                line: 1,
                work: Work::Native { path: path.clone() },
            });
        }
    }
    collection
        .units
        .sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(collection)
}

fn find_sources(project: &Project, paths: &[PathBuf], selection: &Selection) -> Result<Sources> {
    let mut sources = Sources::default();
    let defaults = [project.root.join("test")];
    let given: Vec<PathBuf> = if paths.is_empty() {
        if project.root.join("src").is_dir() {
            sources.documented = project.sources()?;
        }
        let native = project.root.join("native/test");
        if native.is_dir() {
            sources.native = files::find(&native, &["erl"])?;
        }
        defaults.into_iter().filter(|path| path.is_dir()).collect()
    } else {
        paths.to_vec()
    };
    for path in &given {
        let path = std::fs::canonicalize(path)
            .map_err(|_| Fault::usage("path_missing", format!("{} does not exist", path.display())))?;
        let found = if path.is_dir() {
            files::find(&path, &["bt", "btscript"])?
        } else {
            vec![path.clone()]
        };
        for file in found {
            sources.add(file, &path, project);
        }
    }
    let directories: BTreeSet<PathBuf> = sources
        .tests
        .iter()
        .chain(&sources.scripts)
        .filter_map(|path| path.parent().map(Path::to_owned))
        .collect();
    for directory in directories {
        for above in directory
            .ancestors()
            .take_while(|above| above.starts_with(&project.root))
        {
            let fixtures = above.join("fixtures");
            if fixtures.is_dir() {
                sources.fixtures.extend(files::find(&fixtures, &["bt"])?);
            }
        }
    }
    // Without a manifest nobody has built the sources beside `test/`.
    if project.manifest.is_none() && project.root.join("src").is_dir() && project.root.join("test").is_dir() {
        sources.fixtures.extend(project.sources()?);
    }
    if selection.documentation == Documentation::Only {
        sources.scripts.clear();
        sources.native.clear();
    }
    Ok(sources)
}

impl Sources {
    fn add(&mut self, file: PathBuf, given: &Path, project: &Project) {
        let is_fixture = file != *given
            && file
                .ancestors()
                .skip(1)
                .any(|above| above.file_name().is_some_and(|name| name == "fixtures"));
        if files::has_extension(&file, &["btscript"]) {
            self.scripts.push(file);
        } else if is_fixture {
            self.fixtures.insert(file);
        } else if file.starts_with(project.root.join("src")) || is_library_file(&file) {
            self.documented.push(file);
        } else {
            self.tests.push(file);
        }
    }
}

/// Whether a file is a source of the standard library this binary carries.
fn is_library_file(path: &Path) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    beamtalk_node::library_sources()
        .any(|(file, text)| file == name && std::fs::read_to_string(path).is_ok_and(|found| found == text))
}

/// Compile test and fixture files together. Files with errors become failed units.
fn compile_classes(
    project: &Project,
    sources: &Sources,
    table: &mut ClassTable,
    collection: &mut Collection,
) -> Result<Vec<Parsed>> {
    let paths: Vec<&PathBuf> = sources.fixtures.iter().chain(&sources.tests).collect();
    collection.class_files = paths.iter().map(|path| (*path).clone()).collect();
    let texts = paths
        .iter()
        .map(|path| Text::read(path, &project.root))
        .collect::<Result<Vec<Text>, _>>()?;
    let parsed: Vec<Parsed> = source::parallel(&texts, |text| parse_test_file(project, text.clone()));
    for file in &parsed {
        table.declare(&file.file);
    }
    let shared = &*table;
    let compiled = source::parallel(&parsed, |file| {
        beamtalk_compiler::compile_file(&file.file, shared)
    });
    let mut good = Vec::new();
    let policy = Policy::default();
    for (file, compiled) in parsed.into_iter().zip(compiled) {
        let findings = file.findings(&compiled.diagnostics);
        let errors: Vec<String> = findings
            .findings
            .iter()
            .filter_map(|finding| policy.apply(finding))
            .filter(|finding| finding.severity == Level::Error)
            .map(|finding| human::render(&findings.path, &findings.text, &finding, false))
            .collect();
        if errors.is_empty() {
            collection.modules.extend(compiled.modules);
            good.push(file);
        } else {
            collection.units.push(Unit {
                name: findings.path.clone(),
                file: findings.path,
                line: 1,
                work: Work::Broken {
                    message: errors.join("\n"),
                },
            });
        }
    }
    good.retain(|file| !sources.fixtures.contains(&file.path));
    Ok(good)
}

/// A test or fixture file. Without a manifest its class gets an unpackaged module name.
pub fn parse_test_file(project: &Project, text: Text) -> Parsed {
    let shown = text.shown.clone();
    text.parse(project.name(), &shown, Origin::Test)
}

fn add_test_classes(
    parsed: &[Parsed],
    table: &ClassTable,
    selection: &Selection,
    collection: &mut Collection,
) {
    if selection.documentation == Documentation::Only {
        return;
    }
    for file in parsed {
        let index = beamtalk_syntax::span::LineIndex::new(&file.file.text);
        for item in &file.file.unit.items {
            let Item::Class(class) = item else { continue };
            let name = class.name.text.as_str();
            if class.modifiers.is_abstract || name == "TestCase" || !table.inherits_from(name, "TestCase") {
                continue;
            }
            let class_line = index.line(class.header.start) as usize;
            let tests = test_selectors(table, name)
                .into_iter()
                .filter(|selector| selection.filters.selects(name, selector))
                .map(|selector| {
                    let own = class
                        .methods
                        .iter()
                        .find(|method| !method.is_class && method.head.selector == selector);
                    let line = own.map_or(class_line, |method| index.line(method.head.span.start) as usize);
                    Test { name: selector, line }
                })
                .collect();
            collection.units.push(Unit {
                name: name.to_owned(),
                file: file.file.path.to_string(),
                line: class_line,
                work: Work::Class {
                    class: name.to_owned(),
                    tests,
                },
            });
        }
    }
}

/// Unary selectors that start with `test`, inherited ones included, in alphabetical order.
fn test_selectors(table: &ClassTable, class: &str) -> BTreeSet<String> {
    table
        .chain(class)
        .iter()
        .flat_map(|entry| entry.methods.keys())
        .filter(|selector| selector.starts_with("test") && !selector.contains(':'))
        .map(ToString::to_string)
        .collect()
}

fn add_scripts(
    compiler: &ScriptCompiler<'_>,
    scripts: &[PathBuf],
    selection: &Selection,
    collection: &mut Collection,
) -> Result<()> {
    let mut wanted = Vec::new();
    for path in scripts {
        let text = Text::read(path, &compiler.project.root)?;
        if selection.filters.selects(&text.shown, "") {
            let parsed = script::parse(&text.content, Style::Script, 1);
            wanted.push((path.clone(), text.shown, parsed));
        }
    }
    let compiled = source::parallel(&wanted, |(path, shown, script)| {
        compiler.compile(path, shown, script, Style::Script)
    });
    for ((_, shown, _), script) in wanted.into_iter().zip(compiled) {
        for input in script.inputs.iter().filter(|input| !input.is_run) {
            collection.warnings.push(format!(
                "{shown}:{}: input without expectation is not run",
                input.line
            ));
        }
        collection.units.push(Unit {
            name: shown.clone(),
            file: shown,
            line: 1,
            work: Work::Script(script),
        });
    }
    Ok(())
}

fn add_documentation(
    compiler: &ScriptCompiler<'_>,
    project: &Project,
    sources: &Sources,
    selection: &Selection,
    collection: &mut Collection,
) -> Result<()> {
    let mut wanted = Vec::new();
    for path in &sources.documented {
        let text = Text::read(path, &project.root)?;
        let unit = beamtalk_syntax::parse_file(&text.content).unit;
        for block in examples::blocks_in_source(&text.content, &unit) {
            if selection.filters.selects(&block.name, "") {
                let parsed = script::parse(&block.text, Style::Documentation, block.line);
                wanted.push((path.clone(), text.shown.clone(), block, parsed));
            }
        }
    }
    let compiled = source::parallel(&wanted, |(path, shown, _, script)| {
        compiler.compile(path, shown, script, Style::Documentation)
    });
    for ((_, file, block, _), script) in wanted.into_iter().zip(compiled) {
        collection.units.push(Unit {
            name: block.name,
            file,
            line: block.line,
            work: Work::Script(script),
        });
    }
    Ok(())
}

/// The Markdown files below the paths, each as one script.
pub fn collect_markdown(project: &Project, paths: &[PathBuf], table: &ClassTable) -> Result<Collection> {
    let mut collection = Collection {
        units: Vec::new(),
        modules: Vec::new(),
        class_files: Vec::new(),
        warnings: Vec::new(),
        table: table.clone(),
    };
    let compiler = ScriptCompiler::new(project, table, project.sources()?.into_iter().collect());
    for path in paths {
        let path = std::fs::canonicalize(path)
            .map_err(|_| Fault::usage("path_missing", format!("{} does not exist", path.display())))?;
        let found = if path.is_dir() {
            files::find(&path, &["md", "bt"])?
        } else {
            vec![path]
        };
        for path in found {
            let text = Text::read(&path, &project.root)?;
            if files::has_extension(&path, &["bt"]) {
                let unit = beamtalk_syntax::parse_file(&text.content).unit;
                for block in examples::blocks_in_source(&text.content, &unit) {
                    let parsed = script::parse(&block.text, Style::Documentation, block.line);
                    let work =
                        Work::Script(compiler.compile(&path, &text.shown, &parsed, Style::Documentation));
                    collection.units.push(Unit {
                        name: block.name,
                        file: text.shown.clone(),
                        line: block.line,
                        work,
                    });
                }
                continue;
            }
            let whole = examples::markdown_script(&text.content);
            if whole.inputs.is_empty() {
                continue;
            }
            let compiled = compiler.compile(&path, &text.shown, &whole, Style::Documentation);
            collection.units.push(Unit {
                name: text.shown.clone(),
                file: text.shown,
                line: 1,
                work: Work::Script(compiled),
            });
        }
    }
    Ok(collection)
}
