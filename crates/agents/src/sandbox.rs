//! The launcher: `agents run <id>` puts itself into a sandbox and becomes the backend.

mod apply;
pub(crate) mod hidden;
pub(crate) mod layout;
mod probe;
mod root;
pub(crate) mod view;
mod watch;

use std::ffi::CString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

pub use probe::{Kernel, closed_switches};

use crate::places::Places;
use crate::session::launch::Launch;
use crate::{files, tap};

/// Unprivileged users need a user namespace to get the others.
fn user_flag() -> UnshareFlags {
    if rustix::process::geteuid().is_root() {
        UnshareFlags::empty()
    } else {
        UnshareFlags::NEWUSER
    }
}

/// What the launcher leaves for the daemon when the backend is about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Started {
    /// The backend, as seen from outside.
    pub(crate) pid: i32,
}

pub(crate) const STARTED: &str = "started.json";

impl Started {
    /// What the launcher of the session in `directory` left last.
    pub(crate) fn read(directory: &Path) -> Option<Self> {
        let bytes = files::read_limited(&directory.join(STARTED), 4096).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

fn tell_started(directory: Option<&OwnedFd>, started: Started) -> std::io::Result<()> {
    let directory = directory.ok_or(std::io::ErrorKind::NotFound)?;
    root::leave_in(directory, STARTED, &serde_json::to_string(&started)?)
}

/// Become the backend of session `id`; returns only with an error, or with the status of a
/// backend that runs in a process namespace of its own.
pub fn run_session(places: &Places, id: &str) -> std::io::Result<u8> {
    let directory = places.session(id);
    let launch: Launch = files::read_limited(&directory.join("launch.json"), 1 << 20)
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(std::io::Error::from))?;
    wait_for_tap(&directory, launch.number);
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut held = Some(rustix::fs::open(&directory, flags, Mode::empty())?);
    match enter(&launch, &mut held) {
        Ok(watch::Role::Watched(status)) => return Ok(status),
        Ok(watch::Role::Backend) => {}
        Err(reason) => {
            let text = format!("sandbox: {reason}");
            // The daemon reads the reason from here; the terminal shows it too.
            if let Some(held) = &held {
                drop(root::leave_in(held, "launch.error", &text));
            }
            return Err(std::io::Error::other(text));
        }
    }
    let mut words = launch.argv.iter();
    let mut command = std::process::Command::new(&launch.program);
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    command
        .args(words)
        .env_clear()
        .envs(&launch.environment)
        .current_dir(&launch.cwd);
    let error = command.exec();
    drop(writeln!(
        std::io::stderr(),
        "{}: {error}",
        launch.program.display()
    ));
    Err(error)
}

/// Put this process into its sandbox, piece by piece; what it is then.
fn enter(launch: &Launch, held: &mut Option<OwnedFd>) -> Result<watch::Role, String> {
    rustix::thread::set_no_new_privs(true).map_err(|error| error.to_string())?;
    limit_files(launch.open_files);
    let terminal = terminal();
    if launch.mount {
        hidden::make_own(launch);
    }
    let closed = hidden::closed(launch);
    let view = if launch.mount {
        Some(view::view(launch, terminal.as_deref())?)
    } else {
        None
    };
    apply::namespaces(launch)?;
    let root = view
        .map(|view| root::Root::build(launch, &view).map_err(|error| format!("mount: {error}")))
        .transpose()?;
    match &root {
        Some(root) if launch.pid => match watch::over_a_namespace(root, held)? {
            watch::Role::Backend => {}
            watched @ watch::Role::Watched(_) => return Ok(watched),
        },
        root => {
            if let Some(root) = root {
                root.enter().map_err(|error| format!("root: {error}"))?;
            }
            apply::drop_privileges()?;
            let started = Started {
                pid: rustix::process::getpid().as_raw_pid(),
            };
            tell_started(held.as_ref(), started).map_err(|error| format!("start: {error}"))?;
        }
    }
    apply::without_keys(launch)?;
    apply::restrict(launch, terminal.as_deref(), &closed)?;
    Ok(watch::Role::Backend)
}

/// The daemon raised its own limit; programs get the usual one.
fn limit_files(usual: Option<u64>) {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    if usual.is_some() {
        limit = Rlimit {
            current: usual,
            maximum: limit.maximum,
        };
        // A limit that cannot be set back is wider than usual, which harms nobody.
        rustix::process::setrlimit(Resource::Nofile, limit).ok();
    }
}

/// The first byte is captured too: wait until the tap has opened its segment.
fn wait_for_tap(directory: &Path, number: u64) {
    let limit = Instant::now() + Duration::from_secs(2);
    while Instant::now() < limit {
        if tap::ready_number(directory) == Some(number) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The path of our terminal, to be granted.
fn terminal() -> Option<PathBuf> {
    let name: CString = rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()?;
    Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes())))
}
