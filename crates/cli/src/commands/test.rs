//! `beamtalk test`, `test-script` and `test-docs`.

mod connected;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_compiler::ClassTable;
use beamtalk_etf::{Term, read};
use beamtalk_node::{Erlang, Runtime, Worker};
use beamtalk_project::build::{self, Built, Package, path_term};
use beamtalk_project::findings::severity::Warnings;
use beamtalk_project::lock::Locking;
use beamtalk_project::{Project, files, source};
use beamtalk_testing::collect::{self, Collection, Documentation, Selection};
use beamtalk_testing::filter::Filters;
use beamtalk_testing::report::Results;
use beamtalk_testing::run::{self, Options, Stopwatch};
use beamtalk_testing::watching::{self, Snapshot};

use super::build::policy;
use crate::exit::{Exit, Fault, Report};
use crate::lock::LockArguments;
use crate::terminal::Terminal;

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
    /// Run again whenever a file changes: affected tests first, then all.
    #[arg(long)]
    watch: bool,
    /// Run in the live workspace of the project instead of a fresh node.
    #[arg(long)]
    connect: bool,
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
    if arguments.watch {
        return watch(terminal, arguments, &selection);
    }
    once(terminal, arguments, &selection, &BTreeSet::new())
}

/// One run of everything; what the changed files may concern runs before it.
fn once(
    terminal: &mut Terminal,
    arguments: &Arguments,
    selection: &Selection,
    changed: &BTreeSet<PathBuf>,
) -> anyhow::Result<Exit> {
    let locking = arguments.settings.lock.into();
    let place = if arguments.connect {
        Where::Workspace
    } else {
        Where::Node
    };
    let mut session = Session::start(terminal, &arguments.paths, locking, place)?;
    let collection = collect::collect(&session.project, &arguments.paths, &session.table, selection)?;
    let is_filtered = !selection.filters.is_empty();
    let affected = watching::affected(&session.project, &collection.units, changed);
    if !affected.is_empty() && affected.len() < collection.units.len() {
        terminal.status("Affected tests:");
        session.finish(
            terminal,
            &collection,
            &arguments.settings,
            is_filtered,
            Some(affected),
        )?;
        terminal.status("All tests:");
    }
    session.finish(terminal, &collection, &arguments.settings, is_filtered, None)
}

/// Run, wait for a change, run again, until interrupted.
fn watch(terminal: &mut Terminal, arguments: &Arguments, selection: &Selection) -> anyhow::Result<Exit> {
    let root = project(&arguments.paths)?.root;
    let mut before = Snapshot::take(&root, &arguments.paths);
    let mut changed = BTreeSet::new();
    loop {
        if let Err(error) = once(terminal, arguments, selection, &changed) {
            // Nobody reads any more, or a fault of the moment: source that does not compile is mended next.
            let Some(report) = Report::new(&error) else {
                return Ok(Exit::Success);
            };
            if report.exit != Exit::Failure {
                return Err(error);
            }
            terminal.error(format_args!("error: {}", report.message));
        }
        terminal.status("Waiting for changes; Ctrl-C ends.");
        let now = watching::wait(&root, &arguments.paths, &before);
        changed = now.changed_since(&before);
        before = now;
    }
}

pub(crate) fn run_scripts(terminal: &mut Terminal, arguments: &ScriptArguments) -> anyhow::Result<Exit> {
    let locking = arguments.settings.lock.into();
    let mut session = Session::start(terminal, &arguments.paths, locking, Where::Node)?;
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
    session.finish(terminal, &collection, &arguments.settings, false, None)
}

pub(crate) fn run_docs(terminal: &mut Terminal, arguments: &DocsArguments) -> anyhow::Result<Exit> {
    let locking = arguments.settings.lock.into();
    let mut session = Session::start(terminal, &arguments.paths, locking, Where::Node)?;
    let collection = collect::collect_markdown(&session.project, &arguments.paths, &session.table)?;
    session.finish(terminal, &collection, &arguments.settings, false, None)
}

/// Where tests run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// In a fresh node without listeners.
    Node,
    Workspace,
}

/// A project, what the compiler knows about it, and a node with its package loaded.
struct Session {
    project: Project,
    table: ClassTable,
    /// None when tests run in the workspace.
    worker: Option<Worker>,
    watch: Stopwatch,
}

impl Session {
    fn start(
        terminal: &mut Terminal,
        paths: &[PathBuf],
        locking: Locking,
        place: Where,
    ) -> anyhow::Result<Self> {
        let watch = Stopwatch::start();
        let project = project(paths)?;
        if place == Where::Workspace {
            let mut table = source::library_table();
            if project.manifest.is_some() {
                let package = Package::resolve(terminal, project.clone(), locking)?;
                declare_package(&package, &mut table)?;
            }
            return Ok(Self {
                project,
                table,
                worker: None,
                watch,
            });
        }
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
            worker: Some(worker),
            watch,
        })
    }

    fn finish(
        &mut self,
        terminal: &mut Terminal,
        collection: &Collection,
        settings: &Settings,
        is_filtered: bool,
        only: Option<BTreeSet<usize>>,
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
            only,
        };
        terminal.status(format_args!("Seed: {}", options.seed));
        let outcomes = match &mut self.worker {
            Some(worker) => run::run(terminal, worker, collection, &options)?,
            None => connected::run(terminal, &self.project, collection, &options, is_filtered)?,
        };
        let results = Results {
            units: collection.units.iter().zip(outcomes).collect(),
            files: collection.files_of(options.only.as_ref()),
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
    let directory = match &root {
        Some(root) => root,
        None if start.starts_with(&here) => &here,
        None if start.is_dir() => &start,
        None => start.parent().unwrap_or(&start),
    };
    Ok(Project::loose(directory)?)
}

/// Make the classes of the package and its dependencies known to the compiler.
pub(crate) fn declare_package(package: &Package, table: &mut ClassTable) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for package in package.in_order() {
        let root = &package.project.root;
        let texts = package
            .sources()?
            .iter()
            .map(|path| source::Text::read(path, root))
            .collect::<Result<Vec<_>, _>>()?;
        all.push((package, build::plan::parse_all(package, &texts)));
    }
    table.set_packages(build::plan::names(
        all.iter().map(|(package, parsed)| (*package, parsed.as_slice())),
    ));
    for parsed in all.iter().flat_map(|(_, parsed)| parsed) {
        table.declare(&parsed.file);
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
        build::descriptions(&built.plans),
        Term::List(applications),
    ]))?;
    let reply = worker.receive()?;
    if !matches!(read::tagged(&reply), Some(("done", _))) {
        return Err(beamtalk_node::Error::unexpected(&reply).into());
    }
    worker.send(&Term::tuple([Term::atom("load"), Term::List(modules)]))?;
    let reply = worker.receive()?;
    match read::tagged(&reply) {
        Some(("loaded", [Term::Atom(_)])) => Ok(()),
        Some(("loaded", [outcome])) => match read::tagged(outcome) {
            Some((_, [reason])) => anyhow::bail!("cannot load the package: {}", read::text(reason)),
            _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
        },
        _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
    }
}
