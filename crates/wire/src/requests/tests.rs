//! Tests.

use super::field::request;

request! {
    /// The tests that are loaded, and the documents that have examples.
    ListTests {}
}

request! {
    /// Run tests. The flag `test-error` says that one failed.
    Test {
        ;
        class: String,
        method: String,
        file: String,
        /// A source or Markdown file whose examples are run.
        document: String,
        /// Only the example of the document that begins in this line.
        line: u64,
        /// How many at the same time.
        jobs: u64,
        /// How long one test may take; 60000 if absent.
        test_timeout_ms: u64,
    }
}

request! {
    /// What came of each test when it last ran, and what runs now.
    LastResults {}
}

request! {
    /// Run all tests.
    TestAll {
        ;
        jobs: u64,
        test_timeout_ms: u64,
    }
}
