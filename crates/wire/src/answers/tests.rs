//! Tests.

use super::answer;

answer! {
    TestClass {
        class: String,
        methods: Vec<String>,
        file: Option<String>,
    }
}

answer! {
    TestExample {
        name: String,
        /// Where its first input is.
        line: u64,
    }
}

answer! {
    /// A file whose documentation has examples with expectations.
    TestDocument {
        file: String,
        examples: Vec<TestExample>,
    }
}

answer! {
    ListTestsAnswer {
        tests: Vec<TestClass>,
        documents: Vec<TestDocument>,
    }
}

answer! {
    TestFailure {
        kind: String,
        message: String,
        ;
        expected: String,
        actual: String,
        /// Innermost first: `Lamp>>on (src/Lamp.bt:4)`.
        stack: Vec<String>,
    }
}

answer! {
    TestOutcome {
        class: String,
        name: String,
        file: Option<String>,
        line: Option<u64>,
        /// `pass`, `fail`, `error` or `skip`.
        status: String,
        /// Seconds.
        duration: f64,
        output: String,
        ;
        error: TestFailure,
        reason: String,
    }
}

answer! {
    #[derive(Default)]
    TestResults {
        total: u64,
        passed: u64,
        failed: u64,
        skipped: u64,
        duration: f64,
        seed: u64,
        tests: Vec<TestOutcome>,
    }
}

answer! {
    LastOutcome {
        /// When it ended, in milliseconds since 1970.
        at: u64,
        test: TestOutcome,
    }
}

answer! {
    /// Tests that run.
    RunningTests {
        /// The session that asked for them.
        session: String,
        class: Option<String>,
        /// When they began, in milliseconds since 1970.
        since: u64,
        /// How many have ended.
        ended: u64,
    }
}

answer! {
    LastResultsAnswer {
        results: Vec<LastOutcome>,
        running: Vec<RunningTests>,
    }
}

answer! {
    TestAnswer {
        results: TestResults,
    }
}
