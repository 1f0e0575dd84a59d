//! Tests, and messages that were recorded.

use beamtalk_wire::{answers, requests};

pub(crate) use super::parts::Nothing;
use super::parts::{input, output, some};
use super::{Context, Failure};
use crate::data::Data;
use crate::host::{Host, failure};

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
    }
}

output! {
    Failed {
        class: String,
        name: String,
        /// `fail` or `error`.
        status: String,
        duration: f64,
        ;
        message: Data,
        expected: Data,
        actual: Data,
        output: Data,
        file: String,
        line: u64,
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
        /// Those that failed.
        failures: Vec<Failed>,
        ;
        /// Files of tests that could not be loaded.
        load_errors: Vec<super::parts::LoadFault>,
    }
}

/// Classes with at most so many tests run as a whole; others in pieces, so that it can be told how far they are.
const PIECE: usize = 8;

/// The same tests one after the other, counted for somebody who looks.
async fn counted<H: Host>(
    context: &Context<'_, H>,
    class: Option<String>,
    jobs: Option<u64>,
) -> Result<answers::TestResults, Failure> {
    let listed = context.ask(&requests::ListTests {}).await?.answer.tests;
    let wanted: Vec<_> = listed
        .into_iter()
        .filter(|test| class.as_ref().is_none_or(|class| *class == test.class))
        .collect();
    if let (Some(class), true) = (&class, wanted.is_empty()) {
        // What is no test class is told by who knows why.
        let request = requests::Test {
            class: Some(class.clone()),
            jobs,
            ..requests::Test::default()
        };
        return Ok(context.ask(&request).await?.answer.results);
    }
    let total = wanted.iter().map(|test| test.methods.len() as u64).sum();
    let mut all = answers::TestResults::default();
    for test in wanted {
        let pieces: Vec<Option<String>> = if test.methods.len() > PIECE {
            test.methods.into_iter().map(Some).collect()
        } else {
            vec![None]
        };
        for method in pieces {
            context.progress.count("tests", all.total, total);
            let request = requests::Test {
                class: Some(test.class.clone()),
                method,
                file: None,
                jobs,
            };
            let some = context.ask(&request).await?.answer.results;
            all.total += some.total;
            all.passed += some.passed;
            all.failed += some.failed;
            all.skipped += some.skipped;
            all.duration += some.duration;
            all.tests.extend(some.tests);
        }
    }
    context.progress.count("tests", all.total, total);
    Ok(all)
}

pub(crate) async fn test<H: Host>(context: &Context<'_, H>, input: Test) -> Result<Tests, Failure> {
    if input.method.is_some() && input.class.is_none() {
        let error = failure("invalid_parameter", "'method' needs 'class'").detail("path", "/class");
        return Err(Failure::Error(Box::new(error)));
    }
    // What was written to test/ since the workspace started counts, too.
    let loaded = context.ask(&requests::LoadTests {}).await?.answer;
    let file = input.file.map(|file| context.host.inside(&file)).transpose()?;
    let results = if context.progress.is_wanted.get() && input.method.is_none() && file.is_none() {
        counted(context, input.class, input.jobs).await?
    } else if input.class.is_none() && file.is_none() {
        context
            .ask(&requests::TestAll { jobs: input.jobs })
            .await?
            .answer
            .results
    } else {
        let request = requests::Test {
            class: input.class,
            method: input.method,
            file,
            jobs: input.jobs,
        };
        context.ask(&request).await?.answer.results
    };
    let failed = |test: answers::TestOutcome| {
        let error = test.error;
        let part =
            |part: fn(&answers::TestFailure) -> Option<String>| error.as_ref().and_then(part).map(Data::new);
        Failed {
            message: part(|error| Some(error.message.clone())),
            expected: part(|error| error.expected.clone()),
            actual: part(|error| error.actual.clone()),
            class: test.class,
            name: test.name,
            status: test.status,
            duration: test.duration,
            output: Some(test.output)
                .filter(|output| !output.is_empty())
                .map(Data::new),
            file: test.file,
            line: test.line,
        }
    };
    let failures = results
        .tests
        .into_iter()
        .filter(|test| matches!(test.status.as_str(), "fail" | "error"))
        .take(LISTED_FAILURES)
        .map(failed)
        .collect();
    Ok(Tests {
        total: results.total,
        passed: results.passed,
        failed: results.failed,
        skipped: results.skipped,
        duration: results.duration,
        failures,
        load_errors: some(loaded.errors.iter().map(super::parts::LoadFault::from).collect()),
    })
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
        ..requests::ExportTraces::default()
    };
    let answer = context.ask(&request).await?.answer;
    Ok(Exported {
        path: answer.path,
        count: answer.count,
    })
}
