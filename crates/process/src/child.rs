//! One started program: spawn, wait, stop.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::error::Error;
use crate::group::{Group, any_alive, signal_each};

/// How long after `SIGKILL` a group may linger before it is given up.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What to run.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file to execute; see [`find_program`].
    pub program: PathBuf,
    /// What the program is told its own name is.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    pub directory: PathBuf,
    /// Changes to the inherited environment: set, or remove with `None`.
    pub environment: BTreeMap<OsString, Option<OsString>>,
    pub stdin: Stdin,
}

/// What the program reads from its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// End of file at once.
    Null,
    /// A pipe that stays open and silent until the program is stopped.
    Held,
    /// A pipe for the caller to write to; take it with [`Child::take_stdin`].
    Piped,
}

/// How to stop a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The gentle signal.
    pub signal: Signal,
    /// How long to wait for it to work before `SIGKILL`.
    pub grace: Duration,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            signal: Signal::TERM,
            grace: Duration::from_secs(5),
        }
    }
}

/// A started program, leader of a process group of its own.
#[derive(Debug)]
pub struct Child {
    leader: tokio::process::Child,
    group: Group,
    exit: Option<ExitStatus>,
}

/// The file that `name` means: absolute as it is, a bare name searched in `path`, anything else
/// relative to `base`.
pub fn find_program(name: &str, base: &Path, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    if name.contains('/') {
        return Ok(base.join(name));
    }
    let default = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    std::env::split_paths(path.unwrap_or(default))
        // An empty or relative entry of the path means a place below the base, never below
        // whatever directory this process happens to stand in.
        .map(|directory| base.join(directory).join(name))
        .find(|file| is_executable(file))
        .ok_or_else(|| Error::NotOnPath {
            name: name.to_owned(),
        })
}

/// Whether this user can run a file.
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

impl Spec {
    /// What starts the program in a group of its own; its streams are the caller's.
    pub(crate) fn command(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.program);
        command
            .arg0(&self.name)
            .args(&self.arguments)
            .current_dir(&self.directory)
            .process_group(0);
        for (key, value) in &self.environment {
            match value {
                Some(value) => command.env(key, value),
                None => command.env_remove(key),
            };
        }
        command
    }
}

/// Start a program in its own group, its output on pipes.
pub fn spawn(spec: &Spec) -> Result<Child, Error> {
    let mut command = Command::from(spec.command());
    command
        .stdin(match spec.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Held | Stdin::Piped => Stdio::piped(),
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let leader = command
        .spawn()
        .map_err(|cause| match std::fs::metadata(&spec.directory) {
            Ok(found) if found.is_dir() => Error::Start {
                program: spec.program.clone(),
                cause,
            },
            Ok(_) | Err(_) => Error::Directory {
                directory: spec.directory.clone(),
                cause,
            },
        })?;
    let group = leader
        .id()
        .and_then(Group::of)
        .expect("a child that was just started and not yet waited for has an id");
    Ok(Child {
        leader,
        group,
        exit: None,
    })
}

impl Child {
    /// The process id of the leader, which is also the id of the group.
    pub fn id(&self) -> u32 {
        self.group.id()
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.leader.stdin.take()
    }

    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.leader.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.leader.stderr.take()
    }

    /// Wait for the leader to end. May be dropped and called again. The standard input stays
    /// open meanwhile.
    pub async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        if let Some(exit) = self.exit {
            return Ok(exit);
        }
        // The library closes the input before it waits; a held one has to stay open.
        let held = self.leader.stdin.take();
        let keep = Keep {
            slot: &mut self.leader,
            held,
        };
        let exit = keep.slot.wait().await?;
        drop(keep);
        self.exit = Some(exit);
        Ok(exit)
    }

    /// Whether the leader has been waited for and nobody is left in its group.
    pub fn is_gone(&self) -> bool {
        self.exit.is_some() && self.group.is_empty()
    }

    /// End the whole group, and descendants that left it: the gentle signal, end of input, and
    /// after the grace `SIGKILL`. Complete when the leader is collected and the group is empty;
    /// false when even `SIGKILL` does not bring that about, as with a process stuck in the kernel.
    pub async fn stop(&mut self, how: Stop) -> bool {
        let mut strays = if self.is_gone() {
            Vec::new()
        } else {
            self.group.strays()
        };
        self.group.signal(how.signal);
        signal_each(&strays, how.signal);
        drop(self.leader.stdin.take());
        let deadline = Instant::now() + how.grace;
        let mut pause = Duration::from_millis(1);
        let mut killed = false;
        loop {
            if self.exit.is_none() && timeout(pause, self.wait()).await.is_err() {
                // The leader is still there; look again below.
            } else if self.is_gone() && !any_alive(&strays) {
                return true;
            } else {
                sleep(pause).await;
            }
            pause = (pause * 2).min(Duration::from_millis(20));
            if Instant::now() >= deadline + KILL_LIMIT {
                return false;
            }
            if Instant::now() >= deadline {
                if !killed {
                    strays.extend(self.group.strays());
                }
                killed = true;
                self.kill();
                signal_each(&strays, Signal::KILL);
            }
        }
    }

    /// `SIGKILL` to the group now, without waiting.
    pub fn kill(&self) {
        self.group.signal(Signal::KILL);
    }
}

/// Puts the held input back when a wait ends or is dropped.
struct Keep<'a> {
    slot: &'a mut tokio::process::Child,
    held: Option<ChildStdin>,
}

impl Drop for Keep<'_> {
    fn drop(&mut self) {
        self.slot.stdin = self.held.take();
    }
}
