//! Running collected tests in a node.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use beamtalk_etf::{Term, read};
use beamtalk_node::Worker;
use beamtalk_project::Progress;
use beamtalk_project::build::path_term;
use beamtalk_project::live::LiveCompiler;
use beamtalk_project::{Fault, Result};
use beamtalk_syntax::examples::expectation::{Outcome as InputOutcome, Raised};

use super::collect::Collection;
use super::units::{CompiledInput, CompiledScript, Outcome, Problem, Status, Unit, Work};

/// How a run is done.
#[derive(Clone, Debug)]
pub struct Options {
    /// 0 means one for each scheduler.
    pub jobs: usize,
    pub timeout: Duration,
    pub stops_at_failure: bool,
    pub seed: u64,
    /// Only these units, by their place; everything when `None`.
    pub only: Option<BTreeSet<usize>>,
}

impl Options {
    fn wants(&self, at: usize) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&at))
    }

    /// The places of the units, in the order of the seed.
    pub fn order(&self, units: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..units).filter(|at| self.wants(*at)).collect();
        shuffle(&mut order, self.seed);
        order
    }

    /// What is known of every wanted unit before it runs.
    pub fn known(&self, units: &[Unit]) -> Vec<Vec<Outcome>> {
        let known = |(at, unit): (usize, &Unit)| {
            if self.wants(at) {
                before_running(unit)
            } else {
                Vec::new()
            }
        };
        units.iter().enumerate().map(known).collect()
    }
}

/// Run everything; the outcomes stand in the order of the units.
pub fn run(
    progress: &mut dyn Progress,
    worker: &mut Worker,
    collection: &Collection,
    options: &Options,
) -> Result<Vec<Vec<Outcome>>> {
    let mut outcomes = options.known(&collection.units);
    if options.stops_at_failure
        && outcomes
            .iter()
            .flatten()
            .any(|outcome| outcome.status.is_failure())
    {
        return Ok(outcomes);
    }
    let mut compiler = LiveCompiler::new(collection.table.clone());
    worker.send(&request(collection, options))?;
    let mut done = 0;
    loop {
        let event = worker.receive_serving(&mut |question| compiler.answer(question))?;
        match read::tagged(&event) {
            Some((
                "test",
                [
                    Term::Integer(at),
                    name,
                    Term::Atom(status),
                    Term::Integer(micros),
                    report,
                    output,
                ],
            )) => {
                let Some((unit, slot)) = slot(collection, &mut outcomes, *at) else {
                    continue;
                };
                slot.push(test_outcome(
                    unit,
                    &read::text(name),
                    status,
                    *micros,
                    report,
                    read::text(output),
                ));
            }
            Some((
                "script",
                [
                    Term::Integer(at),
                    Term::List(results),
                    Term::Integer(micros),
                    output,
                ],
            )) => {
                let Some((unit, slot)) = slot(collection, &mut outcomes, *at) else {
                    continue;
                };
                if let Work::Script(script) = &unit.work {
                    slot.push(script_outcome(unit, script, results, *micros, read::text(output)));
                }
            }
            Some(("refused", [Term::Integer(at), text])) => {
                let Some((unit, slot)) = slot(collection, &mut outcomes, *at) else {
                    continue;
                };
                slot.push(broken(unit, read::text(text)));
            }
            Some(("unit", _)) => {
                done += 1;
                progress.step("Testing", done, collection.units.len(), "");
            }
            Some(("warning", [text])) => progress.error(&format!("warning: {}", read::text(text))),
            Some(("done", _)) => return Ok(outcomes),
            Some(("crashed", [reason])) => {
                let message = format!("the test run crashed: {}", read::text(reason));
                return Err(Fault::failure("test_run", message).into());
            }
            _ => return Err(beamtalk_node::Error::unexpected(&event).into()),
        }
    }
}

fn slot<'a, 'b>(
    collection: &'a Collection,
    outcomes: &'b mut [Vec<Outcome>],
    at: i64,
) -> Option<(&'a Unit, &'b mut Vec<Outcome>)> {
    let at = usize::try_from(at).ok()?;
    Some((collection.units.get(at)?, outcomes.get_mut(at)?))
}

/// What is known without running: files that do not compile.
fn before_running(unit: &Unit) -> Vec<Outcome> {
    match &unit.work {
        Work::Broken { message } => vec![broken(unit, message.clone())],
        Work::Class { .. } | Work::Script(_) | Work::Native { .. } => Vec::new(),
    }
}

pub fn broken(unit: &Unit, message: String) -> Outcome {
    Outcome {
        name: String::new(),
        line: unit.line,
        status: Status::Error,
        duration: Duration::ZERO,
        error: Some(Problem {
            kind: "compile_error".to_owned(),
            message,
            ..Problem::default()
        }),
        output: String::new(),
    }
}

fn request(collection: &Collection, options: &Options) -> Term {
    let pair = |key: &str, value: Term| (Term::atom(key), value);
    let settings = Term::Map(vec![
        pair("jobs", Term::Integer(options.jobs as i64)),
        pair("timeout", Term::Integer(options.timeout.as_millis() as i64)),
        pair("fail_fast", boolean(options.stops_at_failure)),
        pair(
            "modules",
            Term::list(
                collection
                    .modules
                    .iter()
                    .map(|module| Term::binary(&module.forms)),
            ),
        ),
    ]);
    let units = options
        .order(collection.units.len())
        .into_iter()
        .filter_map(|at| unit_term(at, collection.units.get(at)?))
        .collect();
    Term::tuple([Term::atom("test"), settings, Term::List(units)])
}

fn unit_term(at: usize, unit: &Unit) -> Option<Term> {
    let at = Term::Integer(at as i64);
    match &unit.work {
        Work::Class { tests, .. } if tests.is_empty() => None,
        Work::Class { class, tests } => Some(Term::tuple([
            Term::atom("class"),
            at,
            Term::atom(class.as_str()),
            Term::list(tests.iter().map(|test| Term::atom(test.name.as_str()))),
        ])),
        Work::Script(script) => Some(Term::tuple([
            Term::atom("script"),
            at,
            boolean(script.is_exclusive()),
            Term::list(script.preload.iter().map(|module| Term::binary(&module.forms))),
            Term::list(script.inputs.iter().map(input_term)),
        ])),
        Work::Native { path } => Some(Term::tuple([Term::atom("native"), at, native_path(path)])),
        Work::Broken { .. } => None,
    }
}

fn native_path(path: &Path) -> Term {
    path_term(path)
}

/// An input as the node evaluates it; one that did not compile or is not run is `skip`.
pub fn input_term(input: &CompiledInput) -> Term {
    if !input.is_run || !input.errors.is_empty() {
        return Term::atom("skip");
    }
    evaluation(&input.modules, input.expression.as_ref())
}

/// The node's form of an input: modules to load, and an expression.
pub fn evaluation(
    modules: &[beamtalk_compiler::CompiledModule],
    expression: Option<&beamtalk_compiler::CompiledExpression>,
) -> Term {
    let pair = |key: &str, value: Term| (Term::atom(key), value);
    Term::Map(vec![
        pair(
            "modules",
            Term::list(modules.iter().map(|module| Term::binary(&module.forms))),
        ),
        pair(
            "expression",
            expression.map_or(Term::atom("nil"), |expression| Term::binary(&expression.forms)),
        ),
        pair(
            "is_cast",
            boolean(expression.is_some_and(|expression| expression.is_cast)),
        ),
        pair(
            "is_character",
            boolean(expression.is_some_and(|expression| expression.is_character)),
        ),
    ])
}

fn boolean(value: bool) -> Term {
    Term::atom(if value { "true" } else { "false" })
}

/// A fixed order for each seed (xorshift and Fisher-Yates).
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(at, (state % (at as u64 + 1)) as usize);
    }
}

fn test_outcome(
    unit: &Unit,
    name: &str,
    status: &str,
    micros: i64,
    report: &Term,
    output: String,
) -> Outcome {
    let line = match &unit.work {
        Work::Class { tests, .. } => tests
            .iter()
            .find(|test| test.name == name)
            .map_or(unit.line, |test| test.line),
        Work::Script(_) | Work::Native { .. } | Work::Broken { .. } => unit.line,
    };
    let status = match status {
        "pass" => Status::Pass,
        "skip" => Status::Skip,
        "fail" => Status::Fail,
        _ => Status::Error,
    };
    let error = (status != Status::Pass).then(|| {
        let raised = raised(report);
        Problem {
            kind: raised.kind,
            message: raised.message,
            assertion: read::field(report, "selector").and_then(read::optional_text),
            expected: read::field(report, "expected").and_then(read::optional_text),
            actual: read::field(report, "actual").and_then(read::optional_text),
            hint: read::field(report, "hint").and_then(read::optional_text),
            frames: raised.frames,
        }
    });
    let failed_at = error
        .as_ref()
        .and_then(|problem| failing_line(unit, &problem.frames));
    Outcome {
        name: name.to_owned(),
        line: failed_at.unwrap_or(line),
        status,
        duration: Duration::from_micros(micros.unsigned_abs()),
        error,
        output: if status.is_failure() {
            output
        } else {
            String::new()
        },
    }
}

/// The innermost line of the test's own file on the stack, where a frame ends in `(OrbitTest.bt:14)`.
fn failing_line(unit: &Unit, frames: &[String]) -> Option<usize> {
    let name = Path::new(&unit.file).file_name()?.to_str()?;
    frames.iter().find_map(|frame| {
        let place = frame.rsplit_once('(')?.1.strip_suffix(')')?;
        let (file, line) = place.rsplit_once(':')?;
        (Path::new(file).file_name()?.to_str()? == name).then(|| line.parse().ok())?
    })
}

/// Judge a script that ran in a node of its own.
fn script_outcome(
    unit: &Unit,
    script: &CompiledScript,
    results: &[Term],
    micros: i64,
    output: String,
) -> Outcome {
    let missing = Term::atom("skip");
    let outcomes = script.inputs.iter().enumerate();
    let outcomes: Vec<InputOutcome> = outcomes
        .map(|(at, input)| input_outcome(input, results.get(at).unwrap_or(&missing)))
        .collect();
    judged(
        unit,
        script,
        &outcomes,
        Duration::from_micros(micros.unsigned_abs()),
        output,
    )
}

/// Judge a script: every input against its expectation.
pub fn judged(
    unit: &Unit,
    script: &CompiledScript,
    outcomes: &[InputOutcome],
    duration: Duration,
    output: String,
) -> Outcome {
    let mut problems: Vec<(usize, String)> = script.faults.clone();
    for (input, outcome) in script.inputs.iter().zip(outcomes) {
        if input.is_run {
            problems.extend(judge(input, outcome).map(|problem| (input.line, problem)));
        }
    }
    let line = problems.first().map_or(unit.line, |(line, _)| *line);
    let message: Vec<String> = problems
        .iter()
        .map(|(line, problem)| format!("{}:{line}: {problem}", unit.file))
        .collect();
    let is_failed = !message.is_empty();
    Outcome {
        name: String::new(),
        line,
        status: if is_failed { Status::Fail } else { Status::Pass },
        duration,
        error: is_failed.then(|| Problem {
            kind: "expectation_failed".to_owned(),
            message: message.join("\n"),
            ..Problem::default()
        }),
        output: if is_failed { output } else { String::new() },
    }
}

/// What the node says about one input.
fn input_outcome(input: &CompiledInput, result: &Term) -> InputOutcome {
    if !input.errors.is_empty() {
        return InputOutcome::Refused(input.errors.clone());
    }
    result_outcome(result, input.echo.as_deref())
}

pub fn result_outcome(result: &Term, echo: Option<&str>) -> InputOutcome {
    match read::tagged(result) {
        Some(("value", [printed, displayed])) => InputOutcome::Shown {
            printed: read::text(printed),
            displayed: read::optional_text(displayed),
        },
        Some(("nothing", _)) => InputOutcome::Shown {
            printed: echo.unwrap_or_default().to_owned(),
            displayed: None,
        },
        Some(("raised", [report])) => InputOutcome::Raised(raised(report)),
        Some(("refused", [text])) => InputOutcome::Refused(vec![read::text(text)]),
        Some(("timeout", _)) => InputOutcome::NotRun("timeout".to_owned()),
        _ => InputOutcome::NotRun("not run: the script ended before it".to_owned()),
    }
}

/// The problem with an input, if there is one.
fn judge(input: &CompiledInput, outcome: &InputOutcome) -> Option<String> {
    if outcome.is_right(input.expectation.as_ref(), &input.diagnostics) {
        return None;
    }
    let got = outcome.describe();
    Some(match &input.expectation {
        Some(expectation) => format!("expected {}\n    got {got}", expectation.shown()),
        None => got,
    })
}

/// An error as the node reports it.
fn raised(term: &Term) -> Raised {
    let text = |key| read::field(term, key).map(read::text).unwrap_or_default();
    Raised {
        kind: text("kind"),
        tag: read::field(term, "tag").and_then(read::optional_text),
        message: text("message"),
        told: text("told"),
        hint: read::field(term, "advice").and_then(read::optional_text),
        printed: text("printed"),
        frames: read::field(term, "frames").map(read::texts).unwrap_or_default(),
    }
}

/// A seed nobody chose.
pub fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::from(now.map_or(0, |now| now.subsec_nanos())) % 100_000
}

/// Wall-clock time of a run.
pub struct Stopwatch(Instant);

impl Stopwatch {
    pub fn start() -> Self {
        Self(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::shuffle;

    #[test]
    fn a_seed_gives_one_order_with_every_item() {
        let order = |seed| {
            let mut items: Vec<u32> = (0..50).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut sorted = order(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..50).collect::<Vec<u32>>());
    }
}
