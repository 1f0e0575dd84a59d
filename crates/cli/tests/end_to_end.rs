//! The real binary on a real node, each test in a home and a directory of its own.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "end_to_end/checking.rs"]
mod checking;
#[path = "end_to_end/dependencies.rs"]
mod dependencies;
#[path = "end_to_end/documenting.rs"]
mod documenting;
#[path = "end_to_end/environment.rs"]
mod environment;
#[path = "end_to_end/findings.rs"]
mod findings;
#[path = "end_to_end/formatting.rs"]
mod formatting;
#[path = "end_to_end/housekeeping.rs"]
mod housekeeping;
#[path = "end_to_end/linting.rs"]
mod linting;
#[path = "end_to_end/names.rs"]
mod names;
#[path = "end_to_end/packaging.rs"]
mod packaging;
#[path = "end_to_end/permissions.rs"]
mod permissions;
#[path = "end_to_end/project.rs"]
mod project;
#[path = "end_to_end/running.rs"]
mod running;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "end_to_end/support.rs"]
mod support;
#[path = "end_to_end/testing.rs"]
mod testing;
#[path = "end_to_end/tls.rs"]
mod tls;
#[path = "end_to_end/watching.rs"]
mod watching;
