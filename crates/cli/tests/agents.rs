//! Agents, against the real binary and real tmux.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "agents/acceptance.rs"]
mod acceptance;
#[path = "agents/approvals.rs"]
mod approvals;
#[path = "agents/assist.rs"]
mod assist;
#[path = "agents/bad_input.rs"]
mod bad_input;
#[path = "agents/commands.rs"]
mod commands;
#[path = "agents/directions.rs"]
mod directions;
#[path = "agents/doors.rs"]
mod doors;
#[path = "agents/faults.rs"]
mod faults;
#[path = "agents/image.rs"]
mod image;
#[path = "agents/kills.rs"]
mod kills;
#[path = "agents/loops.rs"]
mod loops;
#[path = "agents/mcp.rs"]
mod mcp;
#[path = "agents/mounted.rs"]
mod mounted;
#[path = "agents/policy.rs"]
mod policy;
#[path = "agents/presets.rs"]
mod presets;
#[path = "agents/rules.rs"]
mod rules;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "agents/support.rs"]
mod support;
#[path = "agents/team.rs"]
mod team;
#[path = "agents/team_examples.rs"]
mod team_examples;
#[path = "agents/web.rs"]
mod web;
