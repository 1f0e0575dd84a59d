//! `beamtalk run`: a class method as a program, in a node of its own.
//!
//! The job goes to the node in a file; this process then becomes the node, so that signals, streams and
//! status are the program's own.

pub(crate) mod live;

use std::os::unix::process::CommandExt;
use std::path::Path;

use anyhow::Context;
use beamtalk_etf::Term;
use beamtalk_node::{Erlang, Runtime, script_command};
use beamtalk_project::Project;
use beamtalk_project::build::package::Entry;
use beamtalk_project::build::{self, Package, Plan, Scope, path_term, plan};
use beamtalk_project::findings::severity::Warnings;
use beamtalk_storage::StateDirectory;

use crate::exit::{Exit, Fault};
use crate::lock::LockArguments;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The class; `.` starts the application in the workspace.
    class: String,
    /// A unary selector, or one keyword such as `main:` that receives all further words.
    selector: Option<String>,
    /// Words for the program.
    #[arg(trailing_var_arg = true)]
    words: Vec<String>,
    /// Run inside the live workspace.
    #[arg(long)]
    connect: bool,
    #[command(flatten)]
    lock: LockArguments,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.class == "." {
        return live::serve(terminal);
    }
    let (entry, words) = entry(arguments)?;
    if arguments.connect {
        return live::run_entry(terminal, &entry, words);
    }
    let here = Path::new(".");
    let project = match Project::find(here)? {
        Some(project) => project,
        None => Project::loose(here)?,
    };
    let is_loose = project.manifest.is_none();
    let package = Package::resolve(terminal, project, arguments.lock.into())?;
    let erlang = Erlang::find()?;
    let scope = if is_loose {
        Scope::Everything
    } else {
        Scope::Changed
    };
    let plans = plan::plan_all(terminal, &package, scope, erlang.version(), &mut || Ok(()))?;
    let warnings = if terminal.is_quiet {
        Warnings::Hidden
    } else {
        Warnings::Shown
    };
    build::report_plans(terminal, &plans, &super::build::policy(&package, warnings))?;
    if plans.iter().any(|plan| !plan.native.is_empty()) {
        // Native code has to be compiled in a node first.
        build::build(
            terminal,
            &package,
            Scope::Changed,
            &super::build::policy(&package, Warnings::Hidden),
            0,
        )?;
        return run(terminal, arguments);
    }
    let runtime = Runtime::prepare()?;
    if !is_loose {
        plans.iter().try_for_each(build::native::remove_stale)?;
        plans
            .iter()
            .filter(|plan| plan.is_changed())
            .try_for_each(Plan::clean)?;
    }
    let job = job(&plans, &entry, words.as_deref(), is_loose);
    let mut file = tempfile::Builder::new()
        .prefix("run-")
        .tempfile_in(StateDirectory::open(None)?.directory("jobs")?.path())
        .context("cannot write the job file")?;
    std::io::Write::write_all(&mut file, &beamtalk_etf::encode(&job)).context("cannot write the job file")?;
    let (_, path) = file.keep().context("cannot write the job file")?;
    let mut command = script_command(&erlang, &runtime, &path);
    let cause = command.exec();
    drop(std::fs::remove_file(&path));
    Err(beamtalk_node::Error::ErlangBroken {
        program: erlang.program().to_owned(),
        cause,
    }
    .into())
}

/// Class, selector and words; shapes that cannot be sent are refused before anything starts.
fn entry(arguments: &Arguments) -> anyhow::Result<(Entry, Option<Vec<String>>)> {
    let Some(selector) = arguments.selector.clone() else {
        let message = format!(
            "which message shall {} receive? beamtalk run {0} SELECTOR",
            arguments.class
        );
        return Err(Fault::usage("bad_entry", message).into());
    };
    let entry = Entry::new(&arguments.class, &selector)?;
    let mut words = arguments.words.clone();
    if let Some(at) = words.iter().position(|word| word == "--") {
        words.remove(at);
    }
    if !entry.takes_words() && !words.is_empty() {
        let message = format!("'{selector}' takes no words; use a keyword such as {selector}:");
        return Err(Fault::usage("bad_entry", message).into());
    }
    let words = entry.takes_words().then_some(words);
    Ok((entry, words))
}

/// What the node has to do, as the term it reads.
fn job(plans: &[Plan], entry: &Entry, words: Option<&[String]>, is_loose: bool) -> Term {
    let mut compile = Vec::new();
    let mut load = Vec::new();
    let mut settle = Vec::new();
    let mut paths = Vec::new();
    let mut applications = Vec::new();
    for plan in plans {
        for module in &plan.modules {
            let path = plan.output.join(format!("{}.beam", module.name));
            let path = if is_loose {
                Term::atom("nil")
            } else {
                path_term(&path)
            };
            compile.push(Term::tuple([Term::binary(&module.forms), path]));
        }
        for name in &plan.module_names {
            if !plan.modules.iter().any(|module| module.name == *name) {
                load.push(path_term(&plan.output.join(format!("{name}.beam"))));
            }
        }
        if let (Some(index), false) = (plan.index_bytes(), is_loose) {
            let path = plan.output.join(build::index::FILE_NAME);
            settle.push(Term::tuple([path_term(&path), Term::Binary(index)]));
        }
        paths.push(path_term(&plan.output));
        paths.push(path_term(&build::graph::native_output(&plan.output)));
        applications.extend(
            plan.native_applications
                .iter()
                .map(|name| Term::atom(name.as_str())),
        );
    }
    let arguments = match words {
        Some(words) => vec![Term::list(words.iter().map(Term::binary))],
        None => Vec::new(),
    };
    let pair = |key: &str, value: Term| (Term::atom(key), value);
    Term::Map(vec![
        pair("compile", Term::List(compile)),
        pair("load", Term::List(load)),
        pair("settle", Term::List(settle)),
        pair("paths", Term::List(paths)),
        pair("packages", build::descriptions(plans)),
        pair("applications", Term::List(applications)),
        pair("program", Term::binary(program_name())),
        pair("class", Term::atom(entry.class.as_str())),
        pair("selector", Term::atom(entry.selector.as_str())),
        pair("arguments", Term::List(arguments)),
    ])
}

fn program_name() -> String {
    std::env::args_os()
        .next()
        .and_then(|name| {
            Path::new(&name)
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        })
        .unwrap_or_else(|| "beamtalk".to_owned())
}
