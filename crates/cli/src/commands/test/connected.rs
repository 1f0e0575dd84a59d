//! `test --connect`: tests in the live workspace instead of a node of their own.
//!
//! Classes run by the workspace's own `test`; scripts and examples are evaluated input by input in a session whose
//! variables are cleared between them.

use std::path::Path;
use std::time::{Duration, Instant};

use beamtalk_client::{Connection, Reply};
use beamtalk_project::Project;
use beamtalk_testing::collect::Collection;
use beamtalk_testing::expectation::{Outcome as InputOutcome, Raised};
use beamtalk_testing::run::{self, Options, broken};
use beamtalk_testing::units::{CompiledScript, Outcome, Problem, Status, Test, Unit, Work};
use serde_json::{Map, Value, json};

use crate::commands::run::live::{call, in_workspace, object};
use crate::exit::Fault;
use crate::terminal::Terminal;
use crate::workspace_link::connection_fault;

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
                        let fields = json!({"class": class, "method": test.name});
                        slot.extend(class_tests(connection, unit, tests, fields).await?);
                    }
                }
                Work::Class { class, tests } => {
                    *slot = class_tests(connection, unit, tests, json!({"class": class})).await?;
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
        let answer = call(connection, "load-project", json!({})).await?;
        let errors = answer.get("errors").and_then(Value::as_array);
        if let Some(first) = errors.and_then(|errors| errors.first()) {
            let message = format!(
                "the project does not load: {}:{}: {}",
                text(first, "path"),
                first["line"],
                text(first, "message")
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
        call(connection, "load-file", json!({"path": file})).await?;
    }
    Ok(())
}

async fn class_tests(
    connection: &Connection,
    unit: &Unit,
    tests: &[Test],
    fields: Value,
) -> anyhow::Result<Vec<Outcome>> {
    let answer = connection.call("test", object(fields)).await;
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => {
            let fault = connection_fault(&error);
            return Ok(vec![broken(unit, fault.message)]);
        }
    };
    let found = answer
        .get("results")
        .and_then(|results| results["tests"].as_array());
    let line = |name: &str| {
        let test = tests.iter().find(|test| test.name == name);
        test.map_or(unit.line, |test| test.line)
    };
    Ok(found
        .into_iter()
        .flatten()
        .map(|result| test_outcome(line(&text(result, "name")), result))
        .collect())
}

fn test_outcome(line: usize, result: &Value) -> Outcome {
    let status = match text(result, "status").as_str() {
        "pass" => Status::Pass,
        "skip" => Status::Skip,
        "fail" => Status::Fail,
        _ => Status::Error,
    };
    let error = result.get("error").filter(|error| !error.is_null());
    let seconds = result["duration"].as_f64().unwrap_or_default().max(0.0);
    Outcome {
        name: text(result, "name"),
        line: result["line"].as_u64().map_or(line, |line| line as usize),
        status,
        duration: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        error: error.map(|error| Problem {
            kind: text(error, "kind"),
            message: text(error, "message"),
            expected: error["expected"].as_str().map(str::to_owned),
            actual: error["actual"].as_str().map(str::to_owned),
            ..Problem::default()
        }),
        output: if status.is_failure() {
            text(result, "output")
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
    call(connection, "clear", json!({})).await?;
    for path in &script.loads {
        call(connection, "load-file", json!({"path": path})).await?;
    }
    let mut outcomes = Vec::new();
    let mut output = String::new();
    for input in &script.inputs {
        if !input.is_run {
            outcomes.push(InputOutcome::NotRun(String::new()));
            continue;
        }
        let fields = json!({
            "code": input.text, "timeout_ms": timeout.as_millis() as u64, "file": unit.file, "line": input.line,
        });
        let failed = |error| connection_fault(&error);
        let mut pending = connection.request("eval", object(fields)).map_err(failed)?;
        let answer = loop {
            match pending.next().await.map_err(failed)? {
                Reply::Output(text) => output.push_str(&text),
                Reply::NeedsInput(_) => {}
                Reply::Done(answer) => break answer,
            }
        };
        outcomes.push(input_outcome(&answer));
    }
    call(connection, "clear", json!({})).await?;
    Ok(run::judged(unit, script, &outcomes, started.elapsed(), output))
}

fn input_outcome(answer: &Map<String, Value>) -> InputOutcome {
    let Some(error) = answer.get("error") else {
        let printed = answer.get("text").and_then(Value::as_str).unwrap_or_default();
        return InputOutcome::Shown {
            printed: printed.to_owned(),
            displayed: displayed(printed),
        };
    };
    let diagnostics = error["diagnostics"].as_array();
    let refused: Vec<String> = diagnostics
        .into_iter()
        .flatten()
        .map(|diagnostic| text(diagnostic, "message"))
        .collect();
    if !refused.is_empty() {
        return InputOutcome::Refused(refused);
    }
    let message = text(error, "message");
    let hint = error["hint"].as_str().map(str::to_owned);
    let printed = match &hint {
        Some(hint) => format!("{message}\nHint: {hint}"),
        None => message.clone(),
    };
    InputOutcome::Raised(Raised {
        kind: text(error, "kind"),
        tag: error["details"]["erlang_error"].as_str().map(str::to_owned),
        message,
        hint,
        printed,
        frames: Vec::new(),
    })
}

/// The human form of a printed String or Symbol.
fn displayed(printed: &str) -> Option<String> {
    if let Some(inner) = printed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        return Some(inner.replace("\"\"", "\""));
    }
    let symbol = printed.strip_prefix('#')?;
    if let Some(quoted) = symbol.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Some(quoted.replace("''", "'"));
    }
    let is_literal =
        symbol.starts_with(['(', '[', '{']) || symbol.contains(['<', ' ']) && symbol.ends_with('>');
    (!is_literal).then(|| symbol.to_owned())
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::displayed;

    #[test]
    fn text_and_symbols_have_a_human_form() {
        assert_eq!(displayed("\"a \"\"b\"\"\"").as_deref(), Some("a \"b\""));
        assert_eq!(displayed("#at:put:").as_deref(), Some("at:put:"));
        assert_eq!(displayed("#'two words'").as_deref(), Some("two words"));
        for other in ["#(1, 2)", "#[1]", "#{#a => 1}", "#Pid<0.1.0>", "42", "nil"] {
            assert_eq!(displayed(other), None, "{other}");
        }
    }
}
