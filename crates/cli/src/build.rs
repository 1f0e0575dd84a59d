//! Building packages: which files a change reaches, compiling them, and keeping the output in step.
//!
//! `plan` decides and compiles to Erlang forms without touching the disk; `finish` has a node turn the
//! forms into modules and then brings directory and index up to date. `beamtalk run` uses the plan alone
//! and lets its own node do the rest.

pub(crate) mod graph;
pub(crate) mod index;
pub(crate) mod interface;
pub(crate) mod native;
pub(crate) mod package;
pub(crate) mod plan;
pub(crate) mod release;

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use beamtalk_etf::Term;
use beamtalk_node::{Erlang, Runtime, Worker};

use crate::exit::Fault;
use crate::findings::{self, Counts, Policy};
use crate::terminal::Terminal;
use crate::wire;

pub(crate) use graph::Package;
pub(crate) use plan::Plan;

/// What must be built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Changed,
    Everything,
}

/// A built package and its dependencies, dependencies first.
pub(crate) struct Built {
    pub(crate) plans: Vec<Plan>,
    pub(crate) counts: Counts,
}

impl Built {
    /// The modules of the package itself.
    pub(crate) fn module_count(&self) -> usize {
        self.plans.last().map_or(0, |plan| plan.module_names.len())
    }
}

/// Build a package with its dependencies and write everything. A node is started only when something changed.
pub(crate) fn build(
    terminal: &mut Terminal,
    package: &Package,
    scope: Scope,
    policy: &Policy,
    jobs: usize,
) -> anyhow::Result<Built> {
    let erlang = Erlang::find()?;
    let plans = plan::plan_all(terminal, package, scope, erlang.version())?;
    let counts = report_plans(terminal, &plans, policy)?;
    if plans.iter().any(Plan::needs_node) {
        let started = Instant::now();
        let runtime = Runtime::prepare()?;
        let mut worker = Worker::start(&erlang, &runtime, None)?;
        finish_all(terminal, &mut worker, &plans, jobs)?;
        terminal.status(format_args!("Done in {:.1} s", started.elapsed().as_secs_f64()));
    } else {
        plans.iter().try_for_each(Plan::settle)?;
    }
    Ok(Built { plans, counts })
}

/// Build all that compiles: a file with errors leaves the others alone. Errors are shown; those that belong to no file
/// of classes are in the answer.
pub(crate) fn build_what_compiles(
    terminal: &mut Terminal,
    package: &Package,
    scope: Scope,
    policy: &Policy,
) -> anyhow::Result<(Built, Vec<String>)> {
    let erlang = Erlang::find()?;
    let plans = plan::plan_all(terminal, package, scope, erlang.version())?;
    let counts = show_findings(terminal, &plans, policy)?;
    let mut faults: Vec<String> = plans
        .iter()
        .flat_map(|plan| plan.doubles.iter().map(|double| double.message.clone()))
        .collect();
    let mut worker = if plans.iter().any(Plan::needs_node) {
        let runtime = Runtime::prepare()?;
        Some(Worker::start(&erlang, &runtime, None)?)
    } else {
        None
    };
    for plan in &plans {
        match &mut worker {
            Some(worker) if plan.needs_node() => {
                let native = finish_native(terminal, worker, plan);
                let modules = finish_modules(terminal, worker, plan, 0);
                let failed = [native, modules].into_iter().filter_map(Result::err);
                faults.extend(failed.map(|error| format!("{error:#}")));
            }
            Some(_) | None => plan.settle()?,
        }
    }
    Ok((Built { plans, counts }, faults))
}

/// The same with a node that is already there.
pub(crate) fn build_with(
    terminal: &mut Terminal,
    worker: &mut Worker,
    package: &Package,
    policy: &Policy,
    erlang: &Erlang,
) -> anyhow::Result<Built> {
    let plans = plan::plan_all(terminal, package, Scope::Changed, erlang.version())?;
    let counts = report_plans(terminal, &plans, policy)?;
    finish_all(terminal, worker, &plans, 0)?;
    Ok(Built { plans, counts })
}

fn finish_all(
    terminal: &mut Terminal,
    worker: &mut Worker,
    plans: &[Plan],
    jobs: usize,
) -> anyhow::Result<()> {
    for plan in plans {
        if plan.needs_node() {
            finish(terminal, worker, plan, jobs)?;
        } else {
            plan.settle()?;
        }
    }
    Ok(())
}

/// Show all findings; an error when there is any of that severity.
pub(crate) fn report_plans(
    terminal: &mut Terminal,
    plans: &[Plan],
    policy: &Policy,
) -> anyhow::Result<Counts> {
    let counts = show_findings(terminal, plans, policy)?;
    if let Some(double) = plans.iter().flat_map(|plan| &plan.doubles).next() {
        return Err(Fault::failure("module_conflict", double.message.clone()).into());
    }
    if counts.errors > 0 {
        return Err(compile_failed(&counts).into());
    }
    Ok(counts)
}

fn show_findings(terminal: &mut Terminal, plans: &[Plan], policy: &Policy) -> anyhow::Result<Counts> {
    let mut counts = Counts::default();
    for plan in plans {
        // The rules of one package do not apply to the code of another.
        let dependency_policy = Policy {
            warnings: findings::severity::Warnings::Hidden,
            ..Policy::default()
        };
        let policy = if plan.is_dependency {
            &dependency_policy
        } else {
            policy
        };
        for file in &plan.findings {
            findings::report(terminal, file, policy, &mut counts)?;
        }
    }
    Ok(counts)
}

pub(crate) fn compile_failed(counts: &Counts) -> Fault {
    let plural = if counts.errors == 1 { "" } else { "s" };
    Fault::failure("compile_error", format!("{} error{plural} found", counts.errors))
}

/// Compile the forms of one plan in a node and bring its directory up to date.
fn finish(terminal: &mut Terminal, worker: &mut Worker, plan: &Plan, jobs: usize) -> anyhow::Result<()> {
    finish_native(terminal, worker, plan)?;
    finish_modules(terminal, worker, plan, jobs)
}

fn finish_native(terminal: &mut Terminal, worker: &mut Worker, plan: &Plan) -> anyhow::Result<()> {
    std::fs::create_dir_all(&plan.output)
        .with_context(|| format!("cannot create {}", plan.output.display()))?;
    native::compile(terminal, worker, plan)
}

fn finish_modules(
    terminal: &mut Terminal,
    worker: &mut Worker,
    plan: &Plan,
    jobs: usize,
) -> anyhow::Result<()> {
    if !plan.modules.is_empty() {
        let plural = if plan.modules.len() == 1 { "" } else { "s" };
        terminal.phase(format_args!("Compiling {} file{plural}", plan.modules.len()));
        compile_modules(terminal, worker, plan, jobs)?;
    }
    plan.settle()
}

fn compile_modules(
    terminal: &mut Terminal,
    worker: &mut Worker,
    plan: &Plan,
    jobs: usize,
) -> anyhow::Result<()> {
    worker.send(&compile_request(plan, jobs))?;
    let paths = plan.paths();
    let mut done = 0;
    let mut failures = Vec::new();
    loop {
        let reply = worker.receive()?;
        match wire::tagged(&reply) {
            Some(("compiled", [Term::Integer(at), outcome])) => {
                done += 1;
                let name = usize::try_from(*at)
                    .ok()
                    .and_then(|at| plan.modules.get(at))
                    .map(|m| m.name.as_str());
                let path = name.and_then(|name| paths.get(name)).copied();
                terminal.progress("Compiling", done, plan.modules.len(), path.unwrap_or_default());
                if let Some(("error", [text])) = wire::tagged(outcome) {
                    failures.push(format!(
                        "{}: {}",
                        name.unwrap_or_default(),
                        wire::text(text).trim_end()
                    ));
                }
            }
            Some(("done", _)) => break,
            _ => return Err(wire::unexpected(&reply)),
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(Fault {
        exit: crate::exit::Exit::Internal,
        kind: "code_generation",
        message: format!(
            "the Erlang compiler refused generated code:\n{}",
            failures.join("\n")
        ),
        hint: Some("this is a fault of Beamtalk; please report it with the source file".to_owned()),
    }
    .into())
}

/// `{compile, Jobs, [{Index, Forms, Path}]}`.
pub(crate) fn compile_request(plan: &Plan, jobs: usize) -> Term {
    let modules = plan.modules.iter().enumerate().map(|(at, module)| {
        Term::tuple([
            Term::Integer(at as i64),
            Term::binary(&module.forms),
            path_term(&plan.output.join(format!("{}.beam", module.name))),
        ])
    });
    Term::tuple([
        Term::atom("compile"),
        Term::Integer(jobs as i64),
        Term::list(modules),
    ])
}

pub(crate) fn path_term(path: &Path) -> Term {
    Term::binary(path.as_os_str().as_encoded_bytes())
}
