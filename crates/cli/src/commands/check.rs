//! `beamtalk check`: all diagnostics, no modules.

mod chain;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use beamtalk_compiler::{ClassTable, Origin};
use beamtalk_project::build::{Package, plan};
use beamtalk_project::checks;
use beamtalk_project::findings::severity::Warnings;
use beamtalk_project::findings::{self, Counts};
use beamtalk_project::lock::Locking;
use beamtalk_project::source::{self, Parsed, Text};
use beamtalk_project::specs::Specs;
use beamtalk_project::{Project, files};

use super::build::{package, policy};
use super::test::declare_package;
use crate::exit::{Exit, Fault};
use crate::lock::LockArguments;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory, a directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Warnings and hints fail the check.
    #[arg(long)]
    warnings_as_errors: bool,
    /// Say after the findings how their types came about and what each code means.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    lock: LockArguments,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let package = readable(terminal, &arguments.path, arguments.lock.into())?;
    let warnings = if arguments.warnings_as_errors {
        Warnings::AsErrors
    } else {
        Warnings::Shown
    };
    let policy = policy(&package, warnings);
    let findings = checks::check(&package, below(&package, &arguments.path)?.as_deref())?.findings;
    refuse_nothing(&package, &arguments.path, findings.len())?;
    let mut counts = Counts::default();
    for file in &findings {
        findings::report(terminal, file, &policy, &mut counts)?;
    }
    if arguments.explain && !terminal.is_json() {
        let sources = read(&package, &arguments.path)?;
        for file in &findings {
            chain::print(terminal, &sources, file)?;
        }
        explain(terminal, &findings)?;
    }
    summarise(terminal, &counts, findings.len())?;
    if counts.errors > 0 {
        return Err(beamtalk_project::build::compile_failed(&counts).into());
    }
    terminal.status(format_args!("Checked {} files", findings.len()));
    Ok(Exit::Success)
}

/// The page of each code that was found.
fn explain(terminal: &mut Terminal, files: &[findings::FileFindings]) -> anyhow::Result<()> {
    let found: BTreeSet<&str> = files
        .iter()
        .flat_map(|file| &file.findings)
        .map(|it| it.code.as_str())
        .collect();
    for (code, about) in super::docs::codes().filter(|(code, _)| found.contains(code)) {
        terminal.print(super::docs::code_page(code, about))?;
    }
    Ok(())
}

/// What was found, by category and severity.
pub(crate) fn summarise(terminal: &mut Terminal, counts: &Counts, files: usize) -> anyhow::Result<()> {
    if terminal.is_json() {
        terminal.print(serde_json::json!({"summary": {"files": files, "findings": counts.to_json()}}))?;
    } else if !counts.is_empty() {
        terminal.status(counts.table());
    }
    Ok(())
}

/// The package a path belongs to; a directory without a manifest is taken as it is.
pub(crate) fn readable(terminal: &mut Terminal, path: &Path, locking: Locking) -> anyhow::Result<Package> {
    if !path.exists() {
        return Err(Fault::usage("path_missing", format!("{} does not exist", path.display())).into());
    }
    if path.is_dir() && Project::find(path)?.is_none() {
        return Ok(Package::resolve(terminal, Project::loose(path)?, locking)?);
    }
    package(terminal, path, locking)
}

/// The sources of a package, parsed, with everything their compilation needs to know.
pub(crate) struct Sources {
    pub(crate) table: ClassTable,
    /// Of the package itself: sources and tests, as far as they lie below the path.
    pub(crate) files: Vec<Parsed>,
}

/// Where the files lie that are asked for, if it is not the whole project: the current directory stands for its project.
pub(crate) fn below(package: &Package, path: &Path) -> anyhow::Result<Option<PathBuf>> {
    if path == Path::new(".") {
        return Ok(None);
    }
    let path = std::fs::canonicalize(path)?;
    let root = std::fs::canonicalize(&package.project.root)?;
    Ok(Some(path).filter(|path| *path != root))
}

/// Where nothing was looked at, nothing is good.
pub(crate) fn refuse_nothing(package: &Package, path: &Path, files: usize) -> anyhow::Result<()> {
    if files == 0 && below(package, path)?.is_some() {
        let message = format!("{} has no Beamtalk files", path.display());
        return Err(Fault::usage("nothing_to_check", message).into());
    }
    Ok(())
}

/// Read what lies below a path of a package; all the rest is only declared.
pub(crate) fn read(package: &Package, path: &Path) -> anyhow::Result<Sources> {
    let mut table = source::library_table();
    declare_package(package, &mut table)?;
    let root = &package.project.root;
    let mut files = Vec::new();
    let mut paths: Vec<(PathBuf, Origin)> = package
        .sources()?
        .into_iter()
        .map(|path| (path, Origin::Package))
        .collect();
    let tests = root.join("test");
    if package.project.manifest.is_some() && tests.is_dir() {
        let found = files::find(&tests, &["bt"])?;
        paths.extend(found.into_iter().map(|path| (path, Origin::Test)));
    }
    let below = below(package, path)?;
    if let Some(below) = &below {
        let known: BTreeSet<&PathBuf> = paths.iter().map(|(path, _)| path).collect();
        let beside = checks::beside(below, &known)?;
        paths.extend(beside.into_iter().map(|path| (path, Origin::Test)));
    }
    for (path, origin) in paths {
        let module_path = plan::module_path(&path, root);
        let file = Text::read(&path, root)?.parse(package.name(), &module_path, origin);
        if origin == Origin::Test {
            table.declare(&file.file);
        }
        files.push(file);
    }
    if let Some(below) = &below {
        files.retain(|file| file.path.starts_with(below));
    }
    table.set_specs(Specs::of_package(package).table(files.iter()));
    Ok(Sources { table, files })
}
