//! A state directory and projects for one test of commands; every workspace in it ends with the test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::runtime::runtime;

/// Dropping it stops every workspace that was started in it.
pub(crate) struct Desk {
    directory: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

impl Desk {
    /// Short, because a socket's path is limited.
    pub(crate) fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("btc-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&directory));
        fs::create_dir_all(directory.join("orbit/src")).unwrap();
        let desk = Self {
            directory: directory.canonicalize().unwrap(),
        };
        desk.write(
            "beamtalk.toml",
            "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
        );
        desk.write("src/Lamp.bt", "Object subclass: Lamp\n  class color => \"red\"\n");
        desk
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("h")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.join("orbit")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::write(self.project().join(path), text).unwrap();
    }

    /// The user's configuration.
    pub(crate) fn configure(&self, text: &str) {
        self.run(&["workspace", "list"]).expect(0);
        fs::write(self.state().join("config.toml"), text).unwrap();
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beamtalk"));
        command
            .args(words)
            .current_dir(self.project())
            .env("BEAMTALK_HOME", self.state())
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .env_remove("BEAMTALK_WORKSPACE")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Done {
        done(&mut self.command(words))
    }

    /// Run with text on standard input.
    pub(crate) fn run_with_input(&self, words: &[&str], input: &str) -> Done {
        let mut child = self.command(words).stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses to go on does not read it.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        finished(&child.wait_with_output().unwrap())
    }

    /// The directory of the one workspace there is.
    pub(crate) fn workspace(&self) -> PathBuf {
        let mut found = self.workspaces();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    fn workspaces(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state().join("workspaces"));
        let entries = entries.into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    }

    pub(crate) fn info(&self) -> Value {
        read_json(&self.workspace().join("node.info"))
    }

    pub(crate) fn cookie(&self) -> String {
        let text = fs::read_to_string(self.workspace().join("cookie")).unwrap();
        text.trim().to_owned()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        let running: Vec<Value> = self
            .workspaces()
            .iter()
            .filter_map(|path| serde_json::from_slice(&fs::read(path.join("node.info")).ok()?).ok())
            .collect();
        if !running.is_empty() {
            drop(self.run(&["workspace", "stop", "--all", "--force"]));
        }
        for info in running {
            for field in ["pid", "node_pid"] {
                kill(info[field].as_u64().unwrap_or(0));
            }
        }
        drop(fs::remove_dir_all(&self.directory));
    }
}

pub(crate) fn done(command: &mut Command) -> Done {
    finished(&command.output().unwrap())
}

fn finished(output: &std::process::Output) -> Done {
    Done {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// `SIGKILL`, to a process that may be gone.
pub(crate) fn kill(pid: u64) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
