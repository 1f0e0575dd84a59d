//! `beamtalk workspace …`, `web` and `config.toml` through the real binary: output, exit codes, and what stays on disk.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "workspace_commands/cluster.rs"]
mod cluster;
#[path = "workspace_commands/desk.rs"]
mod desk;
#[path = "workspace_commands/disks.rs"]
mod disks;
#[path = "workspace_commands/life.rs"]
mod life;
#[path = "workspace_commands/reach.rs"]
mod reach;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "workspace_commands/secrets.rs"]
mod secrets;
#[path = "workspace_commands/settings.rs"]
mod settings;
#[path = "workspace_commands/tails.rs"]
mod tails;
