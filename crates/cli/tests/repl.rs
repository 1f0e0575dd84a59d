//! The terminal session against a real workspace: at a real terminal (tmux), and without one.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "repl/batch.rs"]
mod batch;
#[path = "repl/commands.rs"]
mod commands;
#[path = "repl/faults.rs"]
mod faults;
#[path = "repl/pages.rs"]
mod pages;
#[path = "repl/recorded.rs"]
mod recorded;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "repl/screen.rs"]
mod screen;
#[path = "end_to_end/support.rs"]
mod support;
#[path = "repl/terminal.rs"]
mod terminal;
#[path = "repl/typing.rs"]
mod typing;
