//! Examples in documentation as tests. They are found in the files of the project, as the image has them, and run input by
//! input in the image: each in a session of its own, so that its variables are nobody else's.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_syntax::examples::expectation::{Expectation, Outcome, Raised};
use beamtalk_syntax::examples::script::{self, Input, Load, Script, Style};
use beamtalk_syntax::examples::{blocks_in_source, markdown_script};
use beamtalk_wire::answers::{TestDocument, TestExample, TestFailure, TestOutcome, TestResults, Warning};
use beamtalk_wire::requests::{DocRead, Eval, Test};
use beamtalk_wire::{ErrorBody, ErrorKind, Role};
use serde_json::Value;

use super::changes::image_text;
use super::deadline::Deadline;
use super::eval::{Evaluated, eval};
use super::load::load_files;
use super::{Caller, Sink, documents};
use crate::changes::Entry;
use crate::sessions::{Newcomer, Session};
use crate::workspace::Workspace;

/// How long one example may take.
const TIME: Duration = Duration::from_mins(1);
/// How the one test of a Markdown file is called: its blocks share their variables.
const WHOLE: &str = "all blocks";

/// One test of a document.
struct Example {
    name: String,
    line: usize,
    script: Script,
}

/// The documents that have examples.
pub(super) async fn list(workspace: &Rc<Workspace>) -> Result<Vec<TestDocument>, ErrorBody> {
    let root = workspace.root.clone();
    let changed = changed(workspace);
    let looked = tokio::task::spawn_blocking(move || {
        let paths = documents::paths(&root, Role::Observer).into_iter();
        let found = paths.filter(|file| is_document(file)).filter_map(|file| {
            let on_disk = || documents::read_text(&root.join(&file), &file).ok().flatten();
            let text = changed.get(&file).cloned().or_else(on_disk)?;
            let examples: Vec<TestExample> = examples(&file, &text)
                .into_iter()
                .map(|Example { name, line, .. }| TestExample {
                    name,
                    line: line as u64,
                })
                .collect();
            (!examples.is_empty()).then_some(TestDocument { file, examples })
        });
        found.collect()
    });
    looked
        .await
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))
}

/// Files of the image that are not written yet, by path.
fn changed(workspace: &Workspace) -> BTreeMap<String, String> {
    let pending = workspace.changes.borrow().select(Entry::is_pending);
    let files: BTreeSet<String> = pending
        .into_iter()
        .filter_map(|entry| entry.source_file)
        .collect();
    files
        .into_iter()
        .filter_map(|file| {
            let text = image_text(workspace, &file)?.text;
            Some((file, text))
        })
        .collect()
}

fn is_markdown(file: &str) -> bool {
    documents::has_extension(Path::new(file), &["md"])
}

/// Sources of tests are tests already.
fn is_document(file: &str) -> bool {
    is_markdown(file) || file.starts_with("src/") && documents::has_extension(Path::new(file), &["bt"])
}

fn examples(file: &str, text: &str) -> Vec<Example> {
    // Most files have none, and need not be read any further.
    if !text.contains("// =>") || !text.contains("```") {
        return Vec::new();
    }
    if is_markdown(file) {
        let script = markdown_script(text);
        let first = script.inputs.first().map(|input| input.line);
        let whole = first.map(|line| Example {
            name: WHOLE.to_owned(),
            line,
            script,
        });
        return whole.into_iter().collect();
    }
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let blocks = blocks_in_source(text, &beamtalk_syntax::parse_file(text).unit);
    let named = blocks.into_iter().map(|block| {
        let count = names.entry(block.name.clone()).or_default();
        *count += 1;
        // One comment may have several.
        let name = match *count {
            1 => block.name,
            more => format!("{} {more}", block.name),
        };
        Example {
            name,
            line: block.line,
            script: script::parse(&block.text, Style::Documentation, block.line),
        }
    });
    named.collect()
}

pub(super) async fn run(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Test,
) -> Result<TestResults, ErrorBody> {
    let path = request.document.clone().unwrap_or_default();
    let file = workspace.changes.borrow().normal(&path);
    let text = match changed(workspace).remove(&file) {
        Some(text) => text,
        None => documents::read(workspace, Role::Observer, &DocRead { path })?.text,
    };
    let is_wanted = |example: &Example| request.line.is_none_or(|line| example.line as u64 == line);
    let wanted: Vec<Example> = examples(&file, &text).into_iter().filter(is_wanted).collect();
    if wanted.is_empty() {
        let message = format!("{file} has no example with an expectation there");
        return Err(ErrorBody::new(ErrorKind::FileNotFound, message));
    }
    let time = request.test_timeout_ms.map_or(TIME, Duration::from_millis);
    let started = Instant::now();
    let mut results = TestResults::default();
    for example in &wanted {
        let outcome = run_one(workspace, caller, (&file, example), time).await?;
        results.total += 1;
        if outcome.error.is_none() {
            results.passed += 1;
        } else {
            results.failed += 1;
        }
        results.tests.push(outcome);
    }
    results.duration = started.elapsed().as_secs_f64();
    Ok(results)
}

/// What an input did that it should not have done.
struct Problem {
    line: usize,
    message: String,
    expected: Option<String>,
    actual: Option<String>,
}

async fn run_one(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    (file, example): (&str, &Example),
    time: Duration,
) -> Result<TestOutcome, ErrorBody> {
    let started = Instant::now();
    let deadline = Deadline::after(time);
    let own = OwnSession::open(workspace, caller)?;
    let caller = Caller {
        session: own.session.clone(),
        ..caller.clone()
    };
    let output = Rc::new(RefCell::new(String::new()));
    let sink = Sink::Text(output.clone());
    let mut problems = Vec::new();
    for load in &example.script.loads {
        problems.extend(fixture(workspace, file, load).await);
    }
    for input in &example.script.inputs {
        let request = Eval {
            code: input.text.clone(),
            file: Some(file.to_owned()),
            line: Some(input.line as u64),
            ..Eval::default()
        };
        let evaluated = eval(workspace, &caller, &own.session.id, &request, &deadline, &sink).await;
        problems.extend(judge(input, evaluated));
    }
    let output = output.take();
    Ok(TestOutcome {
        class: file.to_owned(),
        name: example.name.clone(),
        file: Some(file.to_owned()),
        line: Some(problems.first().map_or(example.line, |problem| problem.line) as u64),
        status: if problems.is_empty() { "pass" } else { "fail" }.to_owned(),
        duration: started.elapsed().as_secs_f64(),
        output: if problems.is_empty() {
            String::new()
        } else {
            output
        },
        error: failure(file, problems),
        reason: None,
    })
}

fn failure(file: &str, problems: Vec<Problem>) -> Option<TestFailure> {
    let messages: Vec<String> = problems
        .iter()
        .map(|problem| format!("{file}:{}: {}", problem.line, problem.message))
        .collect();
    let first = problems.into_iter().next()?;
    Some(TestFailure {
        kind: "expectation_failed".to_owned(),
        message: messages.join("\n"),
        expected: first.expected,
        actual: first.actual,
        stack: None,
    })
}

fn judge(input: &Input, evaluated: Result<Evaluated, ErrorBody>) -> Option<Problem> {
    let (outcome, diagnostics) = read(evaluated);
    let expectation = input.expectation.as_ref();
    if outcome.is_right(expectation, &diagnostics) {
        return None;
    }
    let got = outcome.describe();
    Some(Problem {
        line: input.line,
        message: match expectation {
            Some(expectation) => format!("expected {}, got {got}", expectation.shown()),
            None => got.clone(),
        },
        expected: expectation.map(Expectation::shown),
        actual: expectation.map(|_| got),
    })
}

/// What an evaluation came to, and the messages of the compiler.
fn read(evaluated: Result<Evaluated, ErrorBody>) -> (Outcome, Vec<String>) {
    match evaluated {
        Ok(evaluated) => {
            let found = evaluated
                .warnings
                .into_iter()
                .filter_map(|warning| match warning {
                    Warning::Found(found) => Some(found.message),
                    Warning::Said { .. } => None,
                });
            (Outcome::printed(evaluated.answer.text), found.collect())
        }
        Err(error) if !error.diagnostics.is_empty() => {
            let messages: Vec<String> = error.diagnostics.into_iter().map(|found| found.message).collect();
            (Outcome::Refused(messages.clone()), messages)
        }
        Err(error) => {
            let detail = |name| error.details.get(name).and_then(Value::as_str);
            let (standard, tag) = (detail("standard_message"), detail("erlang_error"));
            let raised = Raised::answered(error.kind.to_string(), error.message, standard, error.hint, tag);
            (Outcome::Raised(raised), Vec::new())
        }
    }
}

/// A class that a document wants to have loaded.
async fn fixture(workspace: &Rc<Workspace>, document: &str, load: &Load) -> Option<Problem> {
    let problem = |message: String| Problem {
        line: load.line,
        message,
        expected: None,
        actual: None,
    };
    let Some(path) = place(&workspace.root, document, &load.path) else {
        return Some(problem(format!("cannot load {}: no such file", load.path)));
    };
    // Sources of the project are loaded anyway, and may have changes that are nowhere else.
    if path.starts_with(workspace.root.join("src")) {
        return None;
    }
    let told = match load_files(workspace, &[path]).await {
        Ok(answer) => answer.errors.into_iter().next().map(|error| error.message),
        Err(error) => Some(error.message),
    };
    told.map(|told| problem(format!("cannot load {}: {told}", load.path)))
}

/// Relative to the project, then to the directory of the document and each one above it; never outside.
fn place(root: &Path, document: &str, path: &str) -> Option<PathBuf> {
    let root = std::fs::canonicalize(root).ok()?;
    let above = Path::new(document).ancestors().skip(1);
    std::iter::once(Path::new(""))
        .chain(above)
        .map(|directory| root.join(directory).join(path))
        .filter_map(|candidate| std::fs::canonicalize(candidate).ok())
        .find(|found| found.is_file() && found.starts_with(&root))
}

/// A session that ends with whoever runs something in it, also when that is given up.
struct OwnSession {
    workspace: Rc<Workspace>,
    session: Rc<Session>,
}

impl OwnSession {
    fn open(workspace: &Rc<Workspace>, caller: &Caller) -> Result<Self, ErrorBody> {
        let connection = u64::MAX;
        let session = workspace.sessions.add(Newcomer {
            client: caller.session.client,
            role: caller.session.role,
            auth: caller.session.auth.borrow().clone(),
            peer: caller.session.peer.borrow().clone(),
            connection,
            keeps: false,
            taken: Vec::new(),
        })?;
        session.leave(connection);
        session.has_no_input.set(true);
        Ok(Self {
            workspace: workspace.clone(),
            session,
        })
    }
}

impl Drop for OwnSession {
    fn drop(&mut self) {
        let (workspace, session) = (self.workspace.clone(), self.session.clone());
        tokio::task::spawn_local(async move { workspace.end_session(&session).await });
    }
}
