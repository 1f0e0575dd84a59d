//! Building packages: which files a change reaches, compiling them, and keeping the output in step.
//!
//! `plan` decides and compiles to Erlang forms without touching the disk; `finish` has a node turn the
//! forms into modules and then brings directory and index up to date. `beamtalk run` uses the plan alone
//! and lets its own node do the rest.

pub mod graph;
pub mod index;
pub mod interface;
pub mod native;
pub mod package;
pub mod plan;
pub mod release;

use std::path::Path;
use std::time::Instant;

use beamtalk_etf::{Term, read};
use beamtalk_node::{Erlang, Runtime, Worker};

use crate::error::{At, Result};
use crate::fault::Fault;
use crate::findings::{self, Counts, Policy};
use crate::progress::Progress;

pub use graph::Package;
pub use plan::Plan;

/// What must be built again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Changed,
    Everything,
}

/// A built package and its dependencies, dependencies first.
pub struct Built {
    pub plans: Vec<Plan>,
    pub counts: Counts,
}

impl Built {
    /// The modules of the package itself.
    pub fn module_count(&self) -> usize {
        self.plans.last().map_or(0, |plan| plan.module_names.len())
    }
}

/// The node that compiles. It is started when a plan finds that it will be needed, and boots while the plan is made.
struct Node {
    erlang: Erlang,
    worker: Option<Worker>,
}

impl Node {
    fn new() -> Result<Self> {
        Ok(Self {
            erlang: Erlang::find()?,
            worker: None,
        })
    }

    fn plan(&mut self, progress: &mut dyn Progress, package: &Package, scope: Scope) -> Result<Vec<Plan>> {
        let version = self.erlang.version().to_owned();
        plan::plan_all(progress, package, scope, &version, &mut || {
            if self.worker.is_none() {
                self.worker()?.send(&Term::tuple([Term::atom("warm_up")]))?;
            }
            Ok(())
        })
    }

    fn worker(&mut self) -> Result<&mut Worker> {
        if self.worker.is_none() {
            self.worker = Some(Worker::start(&self.erlang, &Runtime::prepare()?, None)?);
        }
        self.worker
            .as_mut()
            .ok_or_else(|| beamtalk_node::Error::NodeGone { status: None }.into())
    }
}

/// Build a package with its dependencies and write everything. A node is started only when something changed.
pub fn build(
    progress: &mut dyn Progress,
    package: &Package,
    scope: Scope,
    policy: &Policy,
    jobs: usize,
) -> Result<Built> {
    let mut node = Node::new()?;
    let plans = node.plan(progress, package, scope)?;
    let counts = report_plans(progress, &plans, policy)?;
    if plans.iter().any(Plan::needs_node) {
        let started = Instant::now();
        finish_all(progress, node.worker()?, &plans, jobs)?;
        progress.status(&format!("Done in {:.1} s", started.elapsed().as_secs_f64()));
    } else {
        plans.iter().try_for_each(Plan::settle)?;
    }
    Ok(Built { plans, counts })
}

/// Build all that compiles: a file with errors leaves the others alone. Errors are shown; those that belong to no file
/// of classes are in the answer.
pub fn build_what_compiles(
    progress: &mut dyn Progress,
    package: &Package,
    scope: Scope,
    policy: &Policy,
) -> Result<(Built, Vec<String>)> {
    let mut node = Node::new()?;
    let plans = node.plan(progress, package, scope)?;
    let counts = show_findings(progress, &plans, policy)?;
    let mut faults: Vec<String> = plans
        .iter()
        .flat_map(|plan| plan.doubles.iter().map(|double| double.message.clone()))
        .collect();
    for plan in &plans {
        if plan.needs_node() {
            let worker = node.worker()?;
            let native = finish_native(progress, worker, plan);
            let modules = finish_modules(progress, worker, plan, 0);
            let failed = [native, modules].into_iter().filter_map(Result::err);
            faults.extend(failed.map(|error| format!("{error:#}")));
        } else {
            plan.settle()?;
        }
    }
    Ok((Built { plans, counts }, faults))
}

/// The same with a node that is already there.
pub fn build_with(
    progress: &mut dyn Progress,
    worker: &mut Worker,
    package: &Package,
    policy: &Policy,
    erlang: &Erlang,
) -> Result<Built> {
    let plans = plan::plan_all(
        progress,
        package,
        Scope::Changed,
        erlang.version(),
        &mut || Ok(()),
    )?;
    let counts = report_plans(progress, &plans, policy)?;
    finish_all(progress, worker, &plans, 0)?;
    Ok(Built { plans, counts })
}

fn finish_all(progress: &mut dyn Progress, worker: &mut Worker, plans: &[Plan], jobs: usize) -> Result<()> {
    for plan in plans {
        if plan.needs_node() {
            finish(progress, worker, plan, jobs)?;
        } else {
            plan.settle()?;
        }
    }
    Ok(())
}

/// Show all findings; an error when there is any of that severity.
pub fn report_plans(progress: &mut dyn Progress, plans: &[Plan], policy: &Policy) -> Result<Counts> {
    let counts = show_findings(progress, plans, policy)?;
    if let Some(double) = plans.iter().flat_map(|plan| &plan.doubles).next() {
        return Err(Fault::failure("module_conflict", double.message.clone()).into());
    }
    if counts.errors > 0 {
        return Err(compile_failed(&counts).into());
    }
    Ok(counts)
}

fn show_findings(progress: &mut dyn Progress, plans: &[Plan], policy: &Policy) -> Result<Counts> {
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
            findings::report(progress, file, policy, &mut counts)?;
        }
    }
    Ok(counts)
}

pub fn compile_failed(counts: &Counts) -> Fault {
    let plural = if counts.errors == 1 { "" } else { "s" };
    Fault::failure("compile_error", format!("{} error{plural} found", counts.errors))
}

/// Compile the forms of one plan in a node and bring its directory up to date.
fn finish(progress: &mut dyn Progress, worker: &mut Worker, plan: &Plan, jobs: usize) -> Result<()> {
    finish_native(progress, worker, plan)?;
    finish_modules(progress, worker, plan, jobs)
}

fn finish_native(progress: &mut dyn Progress, worker: &mut Worker, plan: &Plan) -> Result<()> {
    std::fs::create_dir_all(&plan.output).at("cannot create", &plan.output)?;
    native::compile(progress, worker, plan)
}

fn finish_modules(progress: &mut dyn Progress, worker: &mut Worker, plan: &Plan, jobs: usize) -> Result<()> {
    if !plan.modules.is_empty() {
        let plural = if plan.modules.len() == 1 { "" } else { "s" };
        progress.phase(&format!("Compiling {} file{plural}", plan.modules.len()));
        compile_modules(progress, worker, plan, jobs)?;
    }
    plan.settle()
}

fn compile_modules(progress: &mut dyn Progress, worker: &mut Worker, plan: &Plan, jobs: usize) -> Result<()> {
    worker.send(&compile_request(plan, jobs))?;
    let paths = plan.paths();
    let mut done = 0;
    let mut failures = Vec::new();
    loop {
        let reply = worker.receive()?;
        match read::tagged(&reply) {
            Some(("compiled", [Term::Integer(at), outcome])) => {
                done += 1;
                let name = usize::try_from(*at)
                    .ok()
                    .and_then(|at| plan.modules.get(at))
                    .map(|m| m.name.as_str());
                let path = name.and_then(|name| paths.get(name)).copied();
                progress.step("Compiling", done, plan.modules.len(), path.unwrap_or_default());
                if let Some(("error", [text])) = read::tagged(outcome) {
                    failures.push(format!(
                        "{}: {}",
                        name.unwrap_or_default(),
                        read::text(text).trim_end()
                    ));
                }
            }
            Some(("done", _)) => break,
            _ => return Err(beamtalk_node::Error::unexpected(&reply).into()),
        }
    }
    if failures.is_empty() {
        return Ok(());
    }
    Err(Fault {
        blame: crate::fault::Blame::Internal,
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
pub fn compile_request(plan: &Plan, jobs: usize) -> Term {
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

/// What the image is told of packages beside their classes.
pub fn descriptions(plans: &[Plan]) -> Term {
    let pair = |key: &str, value: Term| (Term::atom(key), value);
    let described = plans.iter().filter_map(|plan| {
        let name = plan.name.as_ref()?;
        let is_project = if plan.is_dependency { "false" } else { "true" };
        Some(Term::Map(vec![
            pair("name", Term::binary(name)),
            pair("version", Term::binary(&plan.version)),
            pair(
                "dependencies",
                Term::list(plan.dependencies.iter().map(Term::binary)),
            ),
            pair("source", path_term(&plan.root)),
            pair("is_project", Term::atom(is_project)),
        ]))
    });
    Term::list(described)
}

pub fn path_term(path: &Path) -> Term {
    Term::binary(path.as_os_str().as_encoded_bytes())
}
