//! `test --connect`: tests in the live workspace instead of a node of their own.
//!
//! Classes run by the workspace's own `test`; scripts and examples are evaluated input by input in a session whose
//! variables are cleared between them.

use std::path::Path;
use std::time::{Duration, Instant};

use beamtalk_client::{Answer, Connection, Reply};
use beamtalk_project::Project;
use beamtalk_syntax::examples::expectation::{Outcome as InputOutcome, Raised};
use beamtalk_testing::collect::Collection;
use beamtalk_testing::run::{self, Options, broken};
use beamtalk_testing::units::{CompiledScript, Outcome, Problem, Status, Test, Unit, Work};
use beamtalk_wire::answers::{EvalAnswer, TestOutcome};
use beamtalk_wire::requests::{self, Clear, Eval, LoadFile, LoadProject};
use serde_json::Value;

use crate::commands::run::live::{ask, in_workspace};
use crate::exit::Fault;
use crate::terminal::Terminal;

/// Run everything; the outcomes stand in the order of the units.
pub(crate) fn run(
    terminal: &mut Terminal,
    project: &Project,
    collection: &Collection,
    options: &Options,
    is_filtered: bool,
) -> anyhow::Result<Vec<Vec<Outcome>>> {
    in_workspace(terminal, async |terminal, connection, _| {
        load(connection, project, collection).await?;
        let mut outcomes = options.known(&collection.units);
        for at in options.order(collection.units.len()) {
            let (Some(unit), Some(slot)) = (collection.units.get(at), outcomes.get_mut(at)) else {
                continue;
            };
            match &unit.work {
                Work::Class { tests, .. } if tests.is_empty() => {}
                Work::Class { class, tests } if is_filtered => {
                    for test in tests {
                        let one = requests::Test {
                            class: Some(class.clone()),
                            method: Some(test.name.clone()),
                            ..requests::Test::default()
                        };
                        slot.extend(class_tests(connection, unit, tests, &one).await?);
                    }
                }
                Work::Class { class, tests } => {
                    let all = requests::Test {
                        class: Some(class.clone()),
                        ..requests::Test::default()
                    };
                    *slot = class_tests(connection, unit, tests, &all).await?;
                }
                Work::Script(script) => {
                    slot.push(script_test(connection, unit, script, options.timeout).await?);
                }
                Work::Native { .. } => terminal.error(format_args!(
                    "warning: {}: native tests do not run in a workspace",
                    unit.file
                )),
                Work::Broken { .. } => {}
            }
            let has_failed = slot.iter().any(|outcome| outcome.status.is_failure());
            if options.stops_at_failure && has_failed {
                break;
            }
        }
        Ok(outcomes)
    })
}

/// Bring the workspace in step with the files: the project, then test classes and fixtures.
async fn load(connection: &Connection, project: &Project, collection: &Collection) -> anyhow::Result<()> {
    if project.manifest.is_some() {
        let answer = ask(connection, &LoadProject::default()).await?;
        if let Some(first) = answer.errors.first() {
            let line = first.line.map_or_else(String::new, |line| format!("{line}:"));
            let message = format!(
                "the project does not load: {}:{line} {}",
                first.path.as_deref().unwrap_or_default(),
                first.message
            );
            return Err(Fault::failure("compile_error", message).into());
        }
    }
    let is_broken = |file: &Path| {
        let broken = collection
            .units
            .iter()
            .filter(|unit| matches!(unit.work, Work::Broken { .. }));
        broken
            .map(|unit| project.root.join(&unit.file))
            .any(|path| path == file)
    };
    for file in collection.class_files.iter().filter(|file| !is_broken(file)) {
        let path = file.display().to_string();
        ask(connection, &LoadFile { path, except: None }).await?;
    }
    Ok(())
}

async fn class_tests(
    connection: &Connection,
    unit: &Unit,
    tests: &[Test],
    request: &requests::Test,
) -> anyhow::Result<Vec<Outcome>> {
    let answer = match connection.ask(request).await {
        Ok(answer) => answer,
        Err(error) => {
            let fault = Fault::from(error);
            return Ok(vec![broken(unit, fault.message)]);
        }
    };
    let line = |name: &str| {
        let test = tests.iter().find(|test| test.name == name);
        test.map_or(unit.line, |test| test.line)
    };
    let outcome = |result: TestOutcome| test_outcome(line(&result.name), result);
    Ok(answer.results.tests.into_iter().map(outcome).collect())
}

fn test_outcome(line: usize, result: TestOutcome) -> Outcome {
    let status = match result.status.as_str() {
        "pass" => Status::Pass,
        "skip" => Status::Skip,
        "fail" => Status::Fail,
        _ => Status::Error,
    };
    Outcome {
        name: result.name,
        line: result.line.map_or(line, |line| line as usize),
        status,
        duration: Duration::try_from_secs_f64(result.duration.max(0.0)).unwrap_or_default(),
        error: result.error.map(|error| Problem {
            kind: error.kind,
            message: error.message,
            expected: error.expected,
            actual: error.actual,
            ..Problem::default()
        }),
        output: if status.is_failure() {
            result.output
        } else {
            String::new()
        },
    }
}

async fn script_test(
    connection: &Connection,
    unit: &Unit,
    script: &CompiledScript,
    timeout: Duration,
) -> anyhow::Result<Outcome> {
    let started = Instant::now();
    ask(connection, &Clear {}).await?;
    for path in &script.loads {
        let path = path.display().to_string();
        ask(connection, &LoadFile { path, except: None }).await?;
    }
    let mut outcomes = Vec::new();
    let mut output = String::new();
    for input in &script.inputs {
        if !input.is_run {
            outcomes.push(InputOutcome::NotRun(String::new()));
            continue;
        }
        let eval = Eval {
            code: input.text.clone(),
            timeout_ms: Some(timeout.as_millis() as u64),
            file: Some(unit.file.clone()),
            line: Some(input.line as u64),
            ..Eval::default()
        };
        let failed = Fault::from;
        let mut pending = connection.send(&eval).map_err(failed)?;
        let answer = loop {
            match pending.next().await.map_err(failed)? {
                Reply::Output(text) => output.push_str(&text),
                Reply::NeedsInput(_) => {}
                Reply::Done(message) => break Answer::read(message),
            }
        };
        outcomes.push(input_outcome(answer));
    }
    ask(connection, &Clear {}).await?;
    Ok(run::judged(unit, script, &outcomes, started.elapsed(), output))
}

fn input_outcome(answer: Answer<EvalAnswer>) -> InputOutcome {
    let error = match answer.body {
        Ok(EvalAnswer { text, .. }) => return InputOutcome::printed(text),
        Err(error) => error,
    };
    if !error.diagnostics.is_empty() {
        let refused = error.diagnostics.into_iter().map(|found| found.message);
        return InputOutcome::Refused(refused.collect());
    }
    let detail = |name| error.details.get(name).and_then(Value::as_str);
    let (standard, tag) = (detail("standard_message"), detail("erlang_error"));
    InputOutcome::Raised(Raised::answered(
        error.kind.to_string(),
        error.message,
        standard,
        error.hint,
        tag,
    ))
}
