//! What the kernel offers to sandboxes, found out by trying.

use std::io;

use rustix::mount::MountPropagationFlags;
use rustix::process::{WaitOptions, waitpid};
use rustix::thread::UnshareFlags;

use super::{apply, root};
use crate::places::own_program;
use crate::sys::{self, Forked};

/// What the kernel offers to sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    pub landlock_abi: u32,
    pub mount_namespace: bool,
    pub net_namespace: bool,
    /// With a `/proc` of its own; one without would show what it hides.
    pub pid_namespace: bool,
}

impl Kernel {
    /// Ask the kernel, trying namespaces in a process of its own.
    #[expect(clippy::disallowed_methods, reason = "this very program, asked")]
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
        let has = |word: &str| answer.split_whitespace().any(|got| got == word);
        Kernel {
            landlock_abi: sys::landlock_abi(),
            mount_namespace: has("mount"),
            net_namespace: has("net"),
            pid_namespace: has("pid"),
        }
    }

    /// The part of the probe that changes the process it runs in: which namespaces it got.
    pub fn try_namespaces() -> String {
        let mut got = Vec::new();
        if try_mount().is_ok() {
            got.push("mount");
            if sys::unshare(UnshareFlags::NEWNET).is_ok() {
                got.push("net");
            }
            if try_processes().unwrap_or(false) {
                got.push("pid");
            }
        }
        got.join(" ")
    }
}

/// A mount namespace is of use only where something can be mounted in it.
fn try_mount() -> io::Result<()> {
    apply::unshare(UnshareFlags::NEWNS | UnshareFlags::NEWIPC)?;
    let flags = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", flags)?;
    root::mount_empty(std::env::temp_dir())
}

fn try_processes() -> io::Result<bool> {
    let at = std::env::temp_dir().join("proc");
    std::fs::create_dir(&at)?;
    sys::unshare(UnshareFlags::NEWPID)?;
    match sys::fork()? {
        Forked::Child => {
            let mounted = root::mount_processes(&at);
            // The answer is how it ends; the parent tells.
            sys::leave(u8::from(mounted.is_err()));
        }
        Forked::Parent { child } => {
            let ended = waitpid(Some(child), WaitOptions::empty())?;
            Ok(ended.is_some_and(|(_, status)| status.exit_status() == Some(0)))
        }
    }
}

/// The switches of this system that keep users without privileges from making namespaces.
pub fn closed_switches() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let switches = [
        (
            "kernel.unprivileged_userns_clone",
            "/proc/sys/kernel/unprivileged_userns_clone",
            "0",
            "1",
        ),
        (
            "kernel.apparmor_restrict_unprivileged_userns",
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "0",
        ),
        (
            "user.max_user_namespaces",
            "/proc/sys/user/max_user_namespaces",
            "0",
            "10000",
        ),
    ];
    let mut closed: Vec<String> = switches
        .into_iter()
        .filter(|(_, path, off, _)| read(path).trim() == *off)
        .map(|(name, _, off, on)| format!("{name} is {off}; `sysctl {name}={on}` as root opens it"))
        .collect();
    let status = read("/proc/self/status");
    let filtered = status.lines().any(|line| {
        line.strip_prefix("Seccomp:")
            .is_some_and(|mode| mode.trim() == "2")
    });
    if filtered {
        closed.push(
            "a seccomp filter is in force; in a container its profile must allow unshare and mount"
                .to_owned(),
        );
    }
    closed
}
