//! `beamtalk doctor`: is everything there that Beamtalk needs?

mod isolation;
mod storage;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, SystemTime};

use beamtalk_etf::{Term, read};
use beamtalk_node::{Erlang, INSTALL_COMMAND, Runtime, Worker};

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Check what is needed to work on Beamtalk itself as well.
    #[arg(long)]
    dev: bool,
    /// Repair file modes and remove stale files.
    #[arg(long)]
    fix: bool,
}

/// Whether the doctor may change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    Wanted,
    NotWanted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Good,
    Warning,
    Bad,
}

struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    fix: Option<String>,
}

impl Check {
    fn good(name: &'static str, detail: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Good,
            detail: detail.into(),
            fix: None,
        }
    }

    fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Bad,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }

    fn warning(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Warning,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Applications of OTP the runtime or its tools use.
const APPLICATIONS: &[&str] = &["compiler", "crypto", "public_key", "sasl", "ssl", "syntax_tools"];

/// Applications without which nothing runs.
const REQUIRED: &[&str] = &["compiler"];

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut checks = Vec::new();
    let erlang = check_erlang(&mut checks);
    let repair = if arguments.fix {
        Repair::Wanted
    } else {
        Repair::NotWanted
    };
    storage::check(&mut checks, repair);
    let runtime = check_runtime(&mut checks);
    checks.push(check_program("git", "git", "install git to use git dependencies"));
    checks.push(check_clock());
    if let (Some(erlang), Some(runtime)) = (&erlang, &runtime) {
        check_node(&mut checks, erlang, runtime);
    }
    if arguments.dev {
        checks.push(check_program("cargo", "cargo", "install Rust: https://rustup.rs"));
        checks.push(check_program("rustc", "rustc", "install Rust: https://rustup.rs"));
        checks.push(check_program("make", "make", "sudo apt-get install make"));
    }
    show(terminal, &checks)?;
    let is_bad = checks.iter().any(|check| check.status == Status::Bad);
    Ok(if is_bad { Exit::Failure } else { Exit::Success })
}

fn show(terminal: &mut Terminal, checks: &[Check]) -> anyhow::Result<()> {
    if terminal.is_json() {
        let rows: Vec<serde_json::Value> = checks
            .iter()
            .map(|check| {
                let status = match check.status {
                    Status::Good => "ok",
                    Status::Warning => "warning",
                    Status::Bad => "error",
                };
                serde_json::json!({"check": check.name, "status": status, "detail": check.detail, "fix": check.fix})
            })
            .collect();
        terminal.print(serde_json::Value::from(rows))?;
        return Ok(());
    }
    for check in checks {
        let mark = match check.status {
            Status::Good => "✅",
            Status::Warning => "⚠️ ",
            Status::Bad => "❌",
        };
        terminal.print(format_args!("{mark} {}: {}", check.name, check.detail))?;
        if let Some(fix) = &check.fix {
            terminal.print(format_args!("   {fix}"))?;
        }
    }
    Ok(())
}

fn check_erlang(checks: &mut Vec<Check>) -> Option<Erlang> {
    let erlang = match Erlang::find() {
        Ok(erlang) => erlang,
        Err(error) => {
            checks.push(Check::bad("erl", error.to_string(), INSTALL_COMMAND));
            return None;
        }
    };
    let detail = format!(
        "Erlang/OTP {} at {}",
        erlang.version(),
        erlang.program().display()
    );
    checks.push(Check::good("erl", detail));
    match erlang.erlc() {
        Some(path) => checks.push(Check::good("erlc", path.display().to_string())),
        None => checks.push(Check::warning("erlc", "not found", INSTALL_COMMAND)),
    }
    if let Some(directory) = erlang.library_directory() {
        for name in APPLICATIONS {
            checks.push(check_application(&directory, name));
        }
    }
    Some(erlang)
}

fn check_application(directory: &Path, name: &'static str) -> Check {
    let prefix = format!("{name}-");
    let found = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|entry| entry == name || entry.starts_with(&prefix));
    match found {
        Some(found) => Check::good(name, found),
        None if REQUIRED.contains(&name) => Check::bad(name, "application not found", INSTALL_COMMAND),
        None => {
            let fix = format!(
                "needed by programs that use it: sudo apt-get install erlang-{}",
                name.replace('_', "-")
            );
            Check::warning(name, "application not found", fix)
        }
    }
}

fn check_runtime(checks: &mut Vec<Check>) -> Option<Runtime> {
    let runtime = match Runtime::prepare() {
        Ok(runtime) => runtime,
        Err(error) => {
            checks.push(Check::bad(
                "runtime",
                error.to_string(),
                "check BEAMTALK_HOME and BEAMTALK_RUNTIME_DIR",
            ));
            return None;
        }
    };
    checks.push(Check::good("runtime", runtime.path().display().to_string()));
    let names: Vec<String> = std::fs::read_dir(runtime.ebin())
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let modules = names.iter().filter(|name| name.starts_with("bt@stdlib@")).count();
    for name in ["beamtalk.app", "beamtalk_bridge.beam", "beamtalk_dispatch.beam"] {
        if !names.iter().any(|found| found == name) {
            let fix = format!("rm -r {}", runtime.path().display());
            checks.push(Check::bad("runtime files", format!("{name} is missing"), fix));
        }
    }
    let expected = beamtalk_node::library_sources().count();
    let detail = format!("{modules} modules from {expected} files");
    if modules > 0 && runtime.image().is_file() {
        checks.push(Check::good("standard library", detail));
    } else {
        let fix = format!("rm -r {}", runtime.path().display());
        checks.push(Check::bad("standard library", detail, fix));
    }
    Some(runtime)
}

fn check_program(name: &'static str, program: &str, fix: &str) -> Check {
    let path = std::env::var_os("PATH");
    match beamtalk_process::find_program(program, Path::new(""), path.as_deref()) {
        Ok(found) => Check::good(name, found.display().to_string()),
        Err(_) => Check::warning(name, "not found", fix),
    }
}

/// The binary cannot have been built in the future.
fn check_clock() -> Check {
    let built = std::env::current_exe()
        .and_then(std::fs::metadata)
        .and_then(|metadata| metadata.modified());
    match built {
        Ok(built) if SystemTime::now() + Duration::from_mins(1) < built => {
            Check::warning("system time", "before the date of this binary", "set the clock")
        }
        _ => Check::good("system time", "plausible"),
    }
}

/// Start a node over pipes, look at what it opened, and have it evaluate something.
fn check_node(checks: &mut Vec<Check>, erlang: &Erlang, runtime: &Runtime) {
    let fix = "run with -v and report the output";
    let epmds = isolation::epmds();
    let mut worker = match Worker::start(erlang, runtime, None) {
        Ok(worker) => worker,
        Err(error) => {
            checks.push(Check::bad("node", error.to_string(), fix));
            return;
        }
    };
    let answer = worker
        .send(&Term::tuple([Term::atom("ping")]))
        .and_then(|()| worker.receive())
        .map(|reply| {
            read::tagged(&reply)
                .map(|(_, rest)| rest.to_vec())
                .unwrap_or_default()
        });
    match answer.as_deref() {
        Ok([printed, ports]) => {
            let printed = read::text(printed);
            if printed == "3" {
                checks.push(Check::good("node", "starts and evaluates 1 + 2"));
            } else {
                checks.push(Check::bad("node", format!("1 + 2 is {printed}"), fix));
            }
            let says_so = matches!(ports, Term::List(listening) if listening.is_empty());
            checks.push(check_isolation(worker.id(), says_so, &epmds));
        }
        Ok(_) => checks.push(Check::bad("node", "unexpected answer", fix)),
        Err(error) => checks.push(Check::bad("node", error.to_string(), fix)),
    }
}

/// The node opened no listening socket and started no epmd: by its own word, and by the system's.
fn check_isolation(node: u32, says_so: bool, epmds_before: &BTreeSet<u32>) -> Check {
    const NAME: &str = "isolation";
    let fix = "report this: a node must not listen";
    let listeners = isolation::listeners(node);
    if !says_so || listeners.as_ref().is_some_and(|found| !found.is_empty()) {
        let detail = format!(
            "the node listens on a socket: {}",
            listeners.unwrap_or_default().join(", ")
        );
        return Check::bad(NAME, detail, fix);
    }
    if !isolation::epmds().is_subset(epmds_before) {
        return Check::bad(NAME, "epmd was started", fix);
    }
    match listeners {
        Some(_) => Check::good(NAME, "no listening socket, no epmd started"),
        None => Check::good(
            NAME,
            "no listening socket by the node's own word, no epmd started",
        ),
    }
}
