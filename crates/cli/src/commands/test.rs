//! `beamtalk test`, `test-script` and `test-docs`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_compiler::ClassTable;
use beamtalk_etf::Term;
use beamtalk_node::{Erlang, Runtime, Worker};

use super::build::policy;
use crate::build::{self, Built, Package, path_term};
use crate::exit::{Exit, Fault};
use crate::files;
use crate::findings::severity::Warnings;
use crate::lock::{LockArguments, Locking};
use crate::project::Project;
use crate::source;
use crate::terminal::Terminal;
use crate::testing::collect::{self, Collection, Documentation, Selection};
use crate::testing::filter::Filters;
use crate::testing::report::Results;
use crate::testing::run::{self, Options, Stopwatch};
use crate::wire;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Files and directories; without any, `test/`, the examples in `src/`, and `native/test/`.
    paths: Vec<PathBuf>,
    /// Run only tests that match: a part of the name, `Class>>selector`, or `/regex/`.
    #[arg(long, value_name = "PATTERN")]
    filter: Vec<String>,
    /// Leave out the examples in documentation comments.
    #[arg(long, conflicts_with = "only_doc")]
    no_doc: bool,
    /// Run only the examples in documentation comments.
    #[arg(long)]
    only_doc: bool,
    #[command(flatten)]
    settings: Settings,
}

#[derive(clap::Args)]
pub(crate) struct Settings {
    /// How many classes run at once; 0 means one for each core.
    #[arg(long, short, value_name = "N", default_value = "0")]
    jobs: usize,
    /// Stop at the first failure.
    #[arg(long)]
    fail_fast: bool,
    /// Seconds a test may take.
    #[arg(long, value_name = "S", default_value = "60")]
    timeout: f64,
    /// Order in which classes run.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write the results as JUnit XML as well.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Warnings of the run fail it.
    #[arg(long)]
    warnings_as_errors: bool,
    #[command(flatten)]
    lock: LockArguments,
}

#[derive(clap::Args)]
pub(crate) struct ScriptArguments {
    /// `.btscript` files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(clap::Args)]
pub(crate) struct DocsArguments {
    /// Markdown files and directories.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let documentation = match (arguments.no_doc, arguments.only_doc) {
        (true, _) => Documentation::Excluded,
        (_, true) => Documentation::Only,
        _ => Documentation::Included,
    };
    let selection = Selection {
        filters: Filters::parse(&arguments.filter)?,
        documentation,
    };
    let mut session = Session::start(terminal, &arguments.paths, arguments.settings.lock.into())?;
    let collection = collect::collect(&session.project, &arguments.paths, &session.table, &selection)?;
    session.finish(
        terminal,
        &collection,
        &arguments.settings,
        !selection.filters.is_empty(),
    )
}

pub(crate) fn run_scripts(terminal: &mut Terminal, arguments: &ScriptArguments) -> anyhow::Result<Exit> {
    let mut session = Session::start(terminal, &arguments.paths, arguments.settings.lock.into())?;
    let selection = Selection {
        documentation: Documentation::Excluded,
        ..Selection::default()
    };
    let mut scripts = Vec::new();
    for path in &arguments.paths {
        if path.is_dir() {
            scripts.extend(files::find(path, &["btscript"])?);
        } else {
            scripts.push(path.clone());
        }
    }
    let collection = collect::collect(&session.project, &scripts, &session.table, &selection)?;
    session.finish(terminal, &collection, &arguments.settings, false)
}

pub(crate) fn run_docs(terminal: &mut Terminal, arguments: &DocsArguments) -> anyhow::Result<Exit> {
    let mut session = Session::start(terminal, &arguments.paths, arguments.settings.lock.into())?;
    let collection = collect::collect_markdown(&session.project, &arguments.paths, &session.table)?;
    session.finish(terminal, &collection, &arguments.settings, false)
}

/// A node with the package loaded, and what the compiler knows about it.
struct Session {
    project: Project,
    table: ClassTable,
    worker: Worker,
    watch: Stopwatch,
}

impl Session {
    fn start(terminal: &mut Terminal, paths: &[PathBuf], locking: Locking) -> anyhow::Result<Self> {
        let watch = Stopwatch::start();
        let project = project(paths)?;
        let erlang = Erlang::find()?;
        let runtime = Runtime::prepare()?;
        // The node boots while the sources are read.
        let mut worker = Worker::start(&erlang, &runtime, Some(&project.root))?;
        let mut table = source::library_table();
        if project.manifest.is_some() {
            let package = Package::resolve(terminal, project.clone(), locking)?;
            let policy = policy(&package, Warnings::Hidden);
            let built = build::build_with(terminal, &mut worker, &package, &policy, &erlang)?;
            declare_package(&package, &mut table)?;
            load_package(&mut worker, &built)?;
        }
        Ok(Self {
            project,
            table,
            worker,
            watch,
        })
    }

    fn finish(
        &mut self,
        terminal: &mut Terminal,
        collection: &Collection,
        settings: &Settings,
        is_filtered: bool,
    ) -> anyhow::Result<Exit> {
        for warning in &collection.warnings {
            terminal.status(format_args!("warning: {warning}"));
        }
        let options = Options {
            jobs: settings.jobs,
            timeout: Duration::try_from_secs_f64(settings.timeout)
                .map_err(|_| Fault::usage("bad_timeout", "--timeout must be a number of seconds"))?,
            stops_at_failure: settings.fail_fast,
            seed: settings.seed.unwrap_or_else(run::random_seed),
        };
        terminal.status(format_args!("Seed: {}", options.seed));
        let outcomes = run::run(terminal, &mut self.worker, collection, &options)?;
        let results = Results {
            units: collection.units.iter().zip(outcomes).collect(),
            files: collection.files,
            duration: self.watch.elapsed(),
            seed: options.seed,
        };
        if let Some(path) = &settings.junit {
            files::write_atomic(path, results.junit().as_bytes())?;
        }
        let totals = results.totals();
        if terminal.is_json() {
            terminal.print(results.json())?;
        } else if totals.total == 0 {
            terminal.print("No tests found")?;
        } else {
            terminal.print(results.text(terminal.is_quiet))?;
        }
        let has_warnings = settings.warnings_as_errors && !collection.warnings.is_empty();
        let is_empty = totals.total == 0 && is_filtered;
        Ok(if totals.failed > 0 || is_empty || has_warnings {
            Exit::Failure
        } else {
            Exit::Success
        })
    }
}

/// The project of the paths; without a manifest, the directory that contains `test/`, or the current one.
fn project(paths: &[PathBuf]) -> anyhow::Result<Project> {
    let first = paths.first().map_or(Path::new("."), PathBuf::as_path);
    if let Some(project) = Project::find(first)? {
        return Ok(project);
    }
    let start = std::fs::canonicalize(first)?;
    let root = start
        .ancestors()
        .find(|above| above.file_name().is_some_and(|name| name == "test"))
        .and_then(Path::parent)
        .map(Path::to_owned);
    let here = std::fs::canonicalize(".")?;
    match root {
        Some(root) => Project::loose(&root),
        None if start.starts_with(&here) => Project::loose(&here),
        None if start.is_dir() => Project::loose(&start),
        None => Project::loose(start.parent().unwrap_or(&start)),
    }
}

/// Make the classes of the package and its dependencies known to the compiler.
pub(crate) fn declare_package(package: &Package, table: &mut ClassTable) -> anyhow::Result<()> {
    for package in package.in_order() {
        let root = &package.project.root;
        for path in package.sources()? {
            let module_path = build::plan::module_path(&path, root);
            let text = source::Text::read(&path, root)?;
            table.declare(
                &text
                    .parse(package.name(), &module_path, beamtalk_compiler::Origin::Package)
                    .file,
            );
        }
    }
    Ok(())
}

/// Load the built modules into the node.
pub(crate) fn load_package(worker: &mut Worker, built: &Built) -> anyhow::Result<()> {
    let mut paths = Vec::new();
    let mut modules = Vec::new();
    let mut applications = Vec::new();
    for plan in &built.plans {
        paths.push(path_term(&plan.output));
        paths.push(path_term(&build::graph::native_output(&plan.output)));
        modules.extend(
            plan.module_names
                .iter()
                .map(|name| path_term(&plan.output.join(format!("{name}.beam")))),
        );
        applications.extend(
            plan.native_applications
                .iter()
                .map(|name| Term::atom(name.as_str())),
        );
    }
    worker.send(&Term::tuple([
        Term::atom("prepare"),
        Term::List(paths),
        Term::List(applications),
    ]))?;
    let reply = worker.receive()?;
    if !matches!(wire::tagged(&reply), Some(("done", _))) {
        return Err(wire::unexpected(&reply));
    }
    worker.send(&Term::tuple([Term::atom("load"), Term::List(modules)]))?;
    let reply = worker.receive()?;
    match wire::tagged(&reply) {
        Some(("loaded", [Term::Atom(_)])) => Ok(()),
        Some(("loaded", [outcome])) => match wire::tagged(outcome) {
            Some((_, [reason])) => anyhow::bail!("cannot load the package: {}", wire::text(reason)),
            _ => Err(wire::unexpected(&reply)),
        },
        _ => Err(wire::unexpected(&reply)),
    }
}
