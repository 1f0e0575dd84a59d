//! The loop as users meet it: the real binary in a temporary directory, loopback only.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; helpers are no exception"
)]

#[path = "loop_tests/amendments.rs"]
mod amendments;
#[path = "loop_tests/commands.rs"]
mod commands;
#[path = "loop_tests/control.rs"]
mod control;
#[path = "loop_tests/crashes.rs"]
mod crashes;
#[path = "loop_tests/faults.rs"]
mod faults;
#[path = "loop_tests/kills.rs"]
mod kills;
#[path = "loop_tests/lifecycle.rs"]
mod lifecycle;
#[path = "loop_tests/orphans.rs"]
mod orphans;
#[path = "loop_tests/processes.rs"]
mod processes;
#[path = "loop_tests/servers.rs"]
mod servers;
#[path = "loop_tests/support.rs"]
mod support;
#[path = "loop_tests/watching.rs"]
mod watching;
#[path = "loop_tests/workflows.rs"]
mod workflows;
