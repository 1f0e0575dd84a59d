//! `beamtalk build`: compile a project, or a single file.

use std::path::{Path, PathBuf};

use beamtalk_project::build::graph::Dialect;
use beamtalk_project::build::package::Entry;
use beamtalk_project::build::{self, Package, Scope};
use beamtalk_project::findings::Policy;
use beamtalk_project::findings::severity::Warnings;
use beamtalk_project::lock::Locking;
use beamtalk_project::{Project, files};

use crate::exit::Exit;
use crate::lock::LockArguments;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A project directory or a `.bt` file.
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Build everything again.
    #[arg(long)]
    force: bool,
    /// Do not show warnings.
    #[arg(long, conflicts_with = "warnings_as_errors")]
    no_warnings: bool,
    /// Warnings and hints fail the build.
    #[arg(long)]
    warnings_as_errors: bool,
    #[command(flatten)]
    lock: LockArguments,
    /// How many modules to compile at once; 0 means one for each core.
    #[arg(long, value_name = "N", default_value = "0")]
    jobs: usize,
    /// Make a release of an application in `_build/prod/rel/`, which needs no Erlang.
    #[arg(long, conflicts_with = "escript")]
    release: bool,
    /// Make one executable file that needs only `erl`.
    #[arg(long, requires = "entry")]
    escript: bool,
    /// What the executable runs: "Class selector".
    #[arg(long, value_name = "ENTRY", requires = "escript")]
    entry: Option<String>,
    /// Name of the executable; the package name if not given.
    #[arg(short, value_name = "NAME", requires = "escript")]
    output: Option<PathBuf>,
    /// Compile as part of the standard library; also a directory without a manifest.
    #[arg(long, conflicts_with_all = ["release", "escript"])]
    stdlib_mode: bool,
    /// A primitive outside the standard library is a warning.
    #[arg(long)]
    allow_primitives: bool,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let entry = arguments.entry.as_deref().map(Entry::parse).transpose()?;
    let is_loose =
        arguments.stdlib_mode && arguments.path.is_dir() && Project::find(&arguments.path)?.is_none();
    let mut package = if is_loose {
        Package::resolve(terminal, Project::loose(&arguments.path)?, Locking::Follow)?
    } else {
        package(terminal, &arguments.path, arguments.lock.into())?
    };
    package.dialect = match (arguments.stdlib_mode, arguments.allow_primitives) {
        (true, _) => Dialect::Library,
        (_, true) => Dialect::Primitives,
        _ => Dialect::Package,
    };
    if arguments.release {
        build::release::check(&package)?;
    }
    let warnings = match (arguments.no_warnings, arguments.warnings_as_errors) {
        (true, _) => Warnings::Hidden,
        (_, true) => Warnings::AsErrors,
        _ => Warnings::Shown,
    };
    let policy = policy(&package, warnings);
    let scope = if arguments.force {
        Scope::Everything
    } else {
        Scope::Changed
    };
    let built = build::build(terminal, &package, scope, &policy, arguments.jobs)?;
    if let Some(entry) = &entry {
        let name = PathBuf::from(package.name().unwrap_or("program"));
        build::package::escript(&built, entry, arguments.output.as_ref().unwrap_or(&name))?;
    }
    let release = arguments
        .release
        .then(|| build::release::make(&built, &package.project.root))
        .transpose()?;
    let modules = built.module_count();
    let directory = files::shown(&package.output(), &package.project.root);
    if terminal.is_json() {
        let summary = serde_json::json!({"summary": {
            "modules": modules,
            "directory": directory,
            "findings": built.counts.to_json(),
            "release": release,
        }});
        terminal.print(summary)?;
    } else {
        if !built.counts.is_empty() {
            terminal.status(built.counts.table());
        }
        if let Some(release) = release {
            terminal.status(format_args!("Release in {release}/"));
        }
        if !terminal.is_quiet {
            terminal.print(format_args!("Build complete: {modules} modules in {directory}/"))?;
        }
    }
    Ok(Exit::Success)
}

/// The package a path stands for: a single file outside any project, or the project around it.
pub(crate) fn package(terminal: &mut Terminal, path: &Path, locking: Locking) -> anyhow::Result<Package> {
    if path.is_file() && files::has_extension(path, &["bt"]) && Project::find(path)?.is_none() {
        return Ok(Package::single_file(path)?);
    }
    Ok(Package::resolve(terminal, Project::require(path)?, locking)?)
}

pub(crate) fn policy(package: &Package, warnings: Warnings) -> Policy {
    let settings = package
        .project
        .manifest
        .as_ref()
        .map(|manifest| manifest.diagnostics.clone());
    Policy {
        settings: settings.unwrap_or_default(),
        warnings,
        shows_lint: false,
    }
}
