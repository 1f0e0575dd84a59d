//! Programs that outlive whoever started them: in a session of their own, known by number and
//! start time.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::child::{Spec, Stop};
use crate::error::Error;
use crate::group::{entry_of, whole_table};

/// The first argument that makes the binary leave its session and become another program.
pub(crate) const DETACHED_ARGUMENT: &str = "__detached";

/// How often a program that is none of our children is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A program that may be nobody's child here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detached {
    id: u32,
    started: u64,
}

impl Detached {
    /// The program of that number, when it is alive and the one that started then.
    pub fn find(id: u32, started: u64) -> Option<Self> {
        let found = Self { id, started };
        found.is_alive().then_some(found)
    }

    pub fn id(self) -> u32 {
        self.id
    }

    pub fn started(self) -> u64 {
        self.started
    }

    pub fn is_alive(self) -> bool {
        entry_of(self.id).is_some_and(|entry| entry.started == self.started && !entry.is_zombie)
    }

    /// Resolves when it has ended.
    pub async fn ended(self) {
        while self.is_alive() {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// End it and its group: the gentle signal, and after the grace `SIGKILL`. False when it stays.
    pub async fn stop(self, how: Stop) -> bool {
        let deadline = Instant::now() + how.grace;
        self.signal(how.signal);
        while self.is_alive() {
            if Instant::now() >= deadline + crate::members::KILL_LIMIT {
                return false;
            }
            if Instant::now() >= deadline {
                self.signal(Signal::KILL);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        true
    }

    fn signal(self, signal: Signal) {
        let pid = i32::try_from(self.id).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.is_alive()) {
            // It leads its own group; one that changed that is signalled alone.
            if kill_process_group(pid, signal).is_err() {
                let _ = kill_process(pid, signal);
            }
        }
    }
}

/// Start a program that outlives this one: in a session of its own, without input, its output in
/// `output` or nowhere. Whoever calls this collects it in time by waiting in the background.
pub fn spawn_detached(spec: &Spec, output: Option<File>) -> Result<Detached, Error> {
    let failed = |cause| Error::Start {
        program: spec.program.clone(),
        cause,
    };
    let (out, errors) = match output {
        Some(file) => (Stdio::from(file.try_clone().map_err(failed)?), Stdio::from(file)),
        None => (Stdio::null(), Stdio::null()),
    };
    if !spec.directory.is_dir() {
        return Err(Error::Directory {
            directory: spec.directory.clone(),
            cause: io::ErrorKind::NotFound.into(),
        });
    }
    if !spec.program.exists() {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    let mut command = tokio::process::Command::new(std::env::current_exe().map_err(failed)?);
    command
        .arg(DETACHED_ARGUMENT)
        .arg(&spec.program)
        .arg(&spec.name)
        .args(&spec.arguments)
        .current_dir(&spec.directory)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors);
    for (key, value) in &spec.environment {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    let mut child = command.spawn().map_err(failed)?;
    let id = child.id().unwrap_or(0);
    let started = entry_of(id).map_or(0, |entry| entry.started);
    tokio::spawn(async move { drop(child.wait().await) });
    Ok(Detached { id, started })
}

/// Leave the session and become the program that was named.
pub(crate) fn become_detached(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let (Some(program), Some(name)) = (arguments.next(), arguments.next()) else {
        return ExitCode::FAILURE;
    };
    // One that leads a group already stays in its session, which is the best there is.
    let _ = rustix::process::setsid();
    let _error = Command::new(program).arg0(name).args(arguments).exec();
    ExitCode::from(127)
}

/// The living whose environment holds `variable=value`, except this process.
pub fn detached_with_mark(variable: &str, value: &str) -> Vec<Detached> {
    let mark = format!("{variable}={value}");
    living(|id| words_of(id, "environ").iter().any(|word| word == mark.as_bytes()))
}

/// The living whose own name begins with `name` and that were started with these words in a row.
pub fn detached_with_words(name: &str, words: &[&[u8]]) -> Vec<Detached> {
    living(|id| {
        std::fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|text| text.starts_with(name))
            && was_started_with(id, words)
    })
}

/// The living that were started with these words in a row and `variable=value` in their environment.
pub fn detached_with_words_and_mark(words: &[&[u8]], variable: &str, value: &str) -> Vec<Detached> {
    let mark = format!("{variable}={value}");
    living(|id| {
        let is_marked = |word: &Vec<u8>| word == mark.as_bytes();
        was_started_with(id, words) && words_of(id, "environ").iter().any(is_marked)
    })
}

fn was_started_with(id: u32, words: &[&[u8]]) -> bool {
    let found = words_of(id, "cmdline");
    found.windows(words.len()).any(|row| row == words)
}

/// The words of a file of `/proc/ID`, each ended by a zero byte.
fn words_of(id: u32, file: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
    bytes.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect()
}

fn living(is_wanted: impl Fn(u32) -> bool) -> Vec<Detached> {
    whole_table()
        .into_iter()
        .filter(|(id, entry)| !entry.is_zombie && *id != std::process::id() && is_wanted(*id))
        .map(|(id, entry)| Detached {
            id,
            started: entry.started,
        })
        .collect()
}
