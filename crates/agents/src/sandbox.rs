//! The launcher: `agents run <id>` puts itself into a sandbox and becomes the backend.

mod apply;
mod watch;

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::thread::UnshareFlags;

use crate::places::{Places, own_program};
use crate::session::launch::Launch;
use crate::{files, sys, tap};

/// What the kernel offers to sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub landlock_abi: u32,
    pub mount_namespace: bool,
    pub net_namespace: bool,
    pub pid_namespace: bool,
}

impl Kernel {
    /// Ask the kernel, trying namespaces in a process of its own.
    pub fn probe() -> Self {
        let answer = own_program().ok().and_then(|program| {
            let output = std::process::Command::new(program)
                .args(["agents", "probe"])
                .stdin(std::process::Stdio::null())
                .output()
                .ok()?;
            String::from_utf8(output.stdout).ok()
        });
        let answer = answer.unwrap_or_default();
        Kernel {
            landlock_abi: sys::landlock_abi(),
            mount_namespace: answer.contains("mount"),
            net_namespace: answer.contains("net"),
            pid_namespace: answer.contains("pid"),
        }
    }

    /// The part of the probe that changes the process it runs in: which namespaces it got.
    pub fn try_namespaces() -> String {
        let mut got = Vec::new();
        let user = user_flag();
        if sys::unshare(user | UnshareFlags::NEWNS | UnshareFlags::NEWIPC).is_ok() {
            got.push("mount");
        }
        if sys::unshare(UnshareFlags::NEWNET).is_ok() {
            got.push("net");
        }
        if sys::unshare(UnshareFlags::NEWPID).is_ok() {
            got.push("pid");
        }
        got.join(" ")
    }
}

/// Unprivileged users need a user namespace to get the others.
fn user_flag() -> UnshareFlags {
    if rustix::process::geteuid().is_root() {
        UnshareFlags::empty()
    } else {
        UnshareFlags::NEWUSER
    }
}

/// Become the backend of session `id`; returns only with an error, or with the status of a
/// backend that runs in a process namespace of its own.
pub fn run_session(places: &Places, id: &str) -> std::io::Result<u8> {
    let directory = places.session(id);
    let launch: Launch = files::read_limited(&directory.join("launch.json"), 1 << 20)
        .and_then(|bytes| serde_json::from_slice(&bytes).map_err(std::io::Error::from))?;
    wait_for_tap(&directory, launch.number);
    let entered = apply::prepare(&launch).and_then(|rules| {
        if launch.pid {
            match watch::over_a_namespace(&launch).map_err(|error| format!("namespaces: {error}"))? {
                watch::Role::Backend => {}
                watch::Role::Watched(status) => return Ok(Some(status)),
            }
        }
        apply::enter(&launch, rules).map(|()| None)
    });
    let failed = match entered {
        Ok(Some(status)) => return Ok(status),
        Ok(None) => None,
        Err(reason) => Some(reason),
    };
    if let Some(reason) = failed {
        let text = format!("sandbox: {reason}");
        // The daemon reads the reason from here; the terminal shows it too.
        drop(files::replace_quickly(
            &directory.join("launch.error"),
            text.as_bytes(),
        ));
        return Err(std::io::Error::other(text));
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
fn terminal() -> Option<CString> {
    rustix::termios::ttyname(std::io::stdin(), Vec::new()).ok()
}

fn path_of(text: &CString) -> &Path {
    Path::new(std::ffi::OsStr::from_bytes(text.as_bytes()))
}
