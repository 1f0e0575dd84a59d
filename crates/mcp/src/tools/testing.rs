//! Tests, and messages that were recorded.

use beamtalk_wire::{answers, requests};

pub(crate) use super::parts::Nothing;
use super::parts::{FoundFault, input, load_faults, output, some};
use super::{Context, Failure};
use crate::data::{AnyData, Data};
use crate::host::{Host, failure};
use serde_json::{Value, json};

/// Failing tests that are listed.
const LISTED_FAILURES: usize = 100;

output! {
    TestClass {
        class: String,
        methods: Vec<String>,
        ;
        file: String,
    }
}

output! {
    TestList {
        tests: Vec<TestClass>,
    }
}

pub(crate) async fn list_tests<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<TestList, Failure> {
    let tests = context.ask(&requests::ListTests {}).await?.answer.tests;
    let one = |test: answers::TestClass| TestClass {
        class: test.class,
        methods: test.methods,
        file: test.file,
    };
    Ok(TestList {
        tests: tests.into_iter().map(one).collect(),
    })
}

input! {
    Test {
        ;
        /// A test class.
        class: String,
        /// One of its methods.
        method: String,
        /// A file of tests.
        file: String,
        /// How many at the same time.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 64)))]
        jobs: u64,
        /// How long one test may take, in seconds; 60 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
        timeout_s: u64,
        /// Only the tests that failed in your last run.
        failed_only: bool,
    }
}

output! {
    Reason {
        kind: String,
        message: Data,
        ;
        expected: Data,
        actual: Data,
        /// Innermost first, with file and line.
        stack: Vec<Data>,
    }
}

output! {
    Failed {
        class: String,
        name: String,
        /// `fail` or `error`.
        status: String,
        duration: f64,
        output: Data,
        ;
        file: String,
        line: u64,
        error: Reason,
    }
}

output! {
    Tests {
        total: u64,
        passed: u64,
        failed: u64,
        skipped: u64,
        /// Seconds.
        duration: f64,
        seed: u64,
        /// Those that failed; the whole is in `beamtalk://tests/last`.
        tests: Vec<Failed>,
        ;
        /// Files of tests that could not be loaded.
        load_errors: Vec<FoundFault>,
        /// Changed on disk and not loaded, so not tested: evaluate `Workspace sync`, then test again.
        disk_changed: Vec<String>,
    }
}

/// Classes with at most so many tests run as a whole; others in pieces, so that it can be told how far they are.
const PIECE: usize = 8;

/// A class, and one of its tests.
type Piece = (String, Option<String>);

/// Run pieces one after the other, counted for somebody who looks.
async fn counted<H: Host>(
    context: &Context<'_, H>,
    pieces: Vec<Piece>,
    total: u64,
    (jobs, test_timeout_ms): (Option<u64>, Option<u64>),
) -> Result<answers::TestResults, Failure> {
    let mut all = answers::TestResults::default();
    for (class, method) in pieces {
        context.progress.count("tests", all.total, total);
        let request = requests::Test {
            class: Some(class),
            method,
            file: None,
            jobs,
            test_timeout_ms,
            ..requests::Test::default()
        };
        let some = context.ask(&request).await?.answer.results;
        all.total += some.total;
        all.passed += some.passed;
        all.failed += some.failed;
        all.skipped += some.skipped;
        all.duration += some.duration;
        all.tests.extend(some.tests);
    }
    context.progress.count("tests", all.total, total);
    Ok(all)
}

/// The tests of a class, or of all, in pieces; and how many there are. None for what is no test class.
async fn pieces<H: Host>(
    context: &Context<'_, H>,
    class: Option<&String>,
) -> Result<Option<(Vec<Piece>, u64)>, Failure> {
    let listed = context.ask(&requests::ListTests {}).await?.answer.tests;
    let wanted: Vec<_> = listed
        .into_iter()
        .filter(|test| class.is_none_or(|class| *class == test.class))
        .collect();
    if class.is_some() && wanted.is_empty() {
        return Ok(None);
    }
    let total = wanted.iter().map(|test| test.methods.len() as u64).sum();
    let mut all = Vec::new();
    for test in wanted {
        if test.methods.len() > PIECE {
            all.extend(
                test.methods
                    .into_iter()
                    .map(|method| (test.class.clone(), Some(method))),
            );
        } else {
            all.push((test.class, None));
        }
    }
    Ok(Some((all, total)))
}

/// The tests that failed in the last run.
fn failed_last(last: Option<&Value>, is_meant: impl Fn(&str, &str) -> bool) -> Vec<Piece> {
    let tests = last.and_then(|last| last["tests"].as_array());
    let failed = |test: &Value| {
        let (class, name) = (test["class"].as_str()?, test["name"].as_str()?);
        let is_failed = matches!(test["status"].as_str(), Some("fail" | "error"));
        (is_failed && is_meant(class, name)).then(|| (class.to_owned(), Some(name.to_owned())))
    };
    tests.into_iter().flatten().filter_map(failed).collect()
}

async fn results<H: Host>(context: &Context<'_, H>, input: Test) -> Result<answers::TestResults, Failure> {
    let limits = (input.jobs, input.timeout_s.map(|seconds| seconds * 1_000));
    let file = input.file.map(|file| context.host.inside(&file)).transpose()?;
    if input.failed_only == Some(true) {
        let last = context.last_tests.borrow().clone();
        let is_meant = |class: &str, name: &str| {
            input.class.as_ref().is_none_or(|wanted| wanted == class)
                && input.method.as_ref().is_none_or(|wanted| wanted == name)
        };
        let failed = failed_last(last.as_ref(), is_meant);
        let total = failed.len() as u64;
        return counted(context, failed, total, limits).await;
    }
    if context.progress.is_wanted.get()
        && input.method.is_none()
        && file.is_none()
        // What is no test class is told by who knows why.
        && let Some((pieces, total)) = pieces(context, input.class.as_ref()).await?
    {
        return counted(context, pieces, total, limits).await;
    }
    let (jobs, test_timeout_ms) = limits;
    if input.class.is_none() && file.is_none() {
        let request = requests::TestAll {
            jobs,
            test_timeout_ms,
        };
        return Ok(context.ask(&request).await?.answer.results);
    }
    let request = requests::Test {
        class: input.class,
        method: input.method,
        file,
        jobs,
        test_timeout_ms,
        ..requests::Test::default()
    };
    let asked = context.ask(&request).await.map_err(|mut error| {
        let hint = || "list_tests shows the tests there are".to_owned();
        if error.kind.name() == "invalid_parameter" {
            error.hint.get_or_insert_with(hint);
        }
        error
    });
    Ok(asked?.answer.results)
}

fn failed(test: answers::TestOutcome) -> Failed {
    let reason = |error: answers::TestFailure| Reason {
        kind: error.kind,
        message: Data::named("", error.message),
        expected: error.expected.map(|text| Data::named("", text)),
        actual: error.actual.map(|text| Data::named("", text)),
        stack: error.stack.map(|frames| frames.iter().map(Data::new).collect()),
    };
    Failed {
        class: test.class,
        name: test.name,
        status: test.status,
        duration: test.duration,
        output: Data::output(&test.output),
        file: test.file,
        line: test.line,
        error: test.error.map(reason),
    }
}

pub(crate) async fn test<H: Host>(context: &Context<'_, H>, input: Test) -> Result<Tests, Failure> {
    if input.method.is_some() && input.class.is_none() {
        let error = failure("invalid_parameter", "'method' needs 'class'").detail("path", "/class");
        return Err(Failure::Error(Box::new(error)));
    }
    // What was written to test/ since the workspace started counts, too.
    let loaded = context.ask(&requests::LoadTests {}).await?.answer;
    let results = results(context, input).await?;
    let whole = serde_json::to_value(AnyData::new(json!(results)));
    *context.last_tests.borrow_mut() = whole.ok();
    let is_failed = |test: &answers::TestOutcome| matches!(test.status.as_str(), "fail" | "error");
    Ok(Tests {
        total: results.total,
        passed: results.passed,
        failed: results.failed,
        skipped: results.skipped,
        duration: results.duration,
        seed: results.seed,
        tests: results
            .tests
            .into_iter()
            .filter(is_failed)
            .take(LISTED_FAILURES)
            .map(failed)
            .collect(),
        load_errors: some(load_faults(context.host, &loaded.errors)),
        disk_changed: some(disk_changed(context).await),
    })
}

/// Files that are not what the image runs and may be named.
async fn disk_changed<H: Host>(context: &Context<'_, H>) -> Vec<String> {
    let request = requests::Changes {
        disk: Some(true),
        ..requests::Changes::default()
    };
    // Who cannot be told of them is told how the tests went.
    let Ok(changes) = context.ask(&request).await else {
        return Vec::new();
    };
    let mut files = changes.answer.disk_changed.unwrap_or_default();
    files.retain(|file| context.host.inside(file).is_ok());
    files
}

output! {
    Tracing {
        enabled: bool,
    }
}

pub(crate) async fn enable_tracing<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<Tracing, Failure> {
    context.ask(&requests::EnableTracing {}).await?;
    Ok(Tracing { enabled: true })
}

pub(crate) async fn disable_tracing<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<Tracing, Failure> {
    context.ask(&requests::DisableTracing {}).await?;
    Ok(Tracing { enabled: false })
}

input! {
    GetTraces {
        ;
        /// A pid.
        actor: String,
        /// A selector.
        selector: String,
        /// A class.
        class: String,
        /// `ok`, `error` or `timeout`.
        outcome: String,
        /// Only slower ones.
        min_duration_ns: u64,
        /// How many; 100 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
    }
}

output! {
    Trace {
        actor: String,
        selector: String,
        mode: String,
        outcome: String,
        duration_ns: u64,
        timestamp_ns: i64,
        ;
        class: String,
    }
}

output! {
    Traces {
        traces: Vec<Trace>,
    }
}

pub(crate) async fn get_traces<H: Host>(
    context: &Context<'_, H>,
    input: GetTraces,
) -> Result<Traces, Failure> {
    let request = requests::GetTraces {
        actor: input.actor,
        selector: input.selector,
        class: input.class,
        outcome: input.outcome,
        min_duration_ns: input.min_duration_ns,
        limit: input.limit,
    };
    let traces = context.ask(&request).await?.answer.traces;
    let one = |trace: answers::Trace| Trace {
        actor: trace.actor,
        selector: trace.selector,
        mode: trace.mode,
        outcome: trace.outcome,
        duration_ns: trace.duration_ns,
        timestamp_ns: trace.timestamp_ns,
        class: trace.class,
    };
    Ok(Traces {
        traces: traces.into_iter().map(one).collect(),
    })
}

input! {
    ActorStats {
        ;
        /// A pid.
        actor: String,
    }
}

output! {
    Stat {
        actor: String,
        selector: String,
        calls: u64,
        ok: u64,
        errors: u64,
        timeouts: u64,
        avg_duration_ns: u64,
        max_duration_ns: u64,
        ;
        class: String,
    }
}

output! {
    Stats {
        stats: Vec<Stat>,
    }
}

pub(crate) async fn actor_stats<H: Host>(
    context: &Context<'_, H>,
    input: ActorStats,
) -> Result<Stats, Failure> {
    let stats = context
        .ask(&requests::ActorStats { actor: input.actor })
        .await?
        .answer
        .stats;
    let one = |stat: answers::TraceStats| Stat {
        actor: stat.actor,
        selector: stat.selector,
        calls: stat.calls,
        ok: stat.ok,
        errors: stat.errors,
        timeouts: stat.timeouts,
        avg_duration_ns: stat.avg_duration_ns,
        max_duration_ns: stat.max_duration_ns,
        class: stat.class,
    };
    Ok(Stats {
        stats: stats.into_iter().map(one).collect(),
    })
}

input! {
    ExportTraces {
        ;
        /// A file of the project.
        path: String,
        /// A pid.
        actor: String,
        /// A selector.
        selector: String,
        /// A class.
        class: String,
        /// `ok`, `error` or `timeout`.
        outcome: String,
        /// Only slower ones.
        min_duration_ns: u64,
        /// How many; all if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
    }
}

output! {
    Exported {
        path: String,
        count: u64,
    }
}

pub(crate) async fn export_traces<H: Host>(
    context: &Context<'_, H>,
    input: ExportTraces,
) -> Result<Exported, Failure> {
    let path = input.path.map(|path| context.host.inside(&path)).transpose()?;
    let request = requests::ExportTraces {
        path,
        actor: input.actor,
        selector: input.selector,
        class: input.class,
        outcome: input.outcome,
        min_duration_ns: input.min_duration_ns,
        limit: input.limit,
    };
    let answer = context.ask(&request).await?.answer;
    Ok(Exported {
        path: answer.path,
        count: answer.count,
    })
}
