//! A workspace of its own for one test: temporary state directory, real binary, nothing left behind.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use beamtalk_client::{Connection, Endpoint, Error, Events, Greeting};
use serde_json::{Map, Value, json};

use crate::runtime::runtime;

/// State directory and project of one test. Dropping it ends every process it started.
pub(crate) struct Home {
    directory: PathBuf,
}

impl Home {
    /// Short, because a socket's path is limited.
    pub(crate) fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("btw-{name}-{}", std::process::id()));
        drop(std::fs::remove_dir_all(&directory));
        std::fs::create_dir_all(directory.join("project")).expect("a directory");
        Self { directory }
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory.join("h")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.directory.join("project")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beamtalk"));
        command
            .args(words)
            .current_dir(self.project())
            .env("BEAMTALK_HOME", self.state())
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .env_remove("BEAMTALK_WORKSPACE")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the binary runs")
    }

    /// Start the workspace of the project.
    pub(crate) fn start(&self, flags: &[&str]) -> Value {
        let mut words = vec!["--json", "workspace", "start"];
        words.extend(flags);
        let output = self.run(&words);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).expect("the record of the workspace")
    }

    /// The one workspace's directory.
    pub(crate) fn workspace(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.state().join("workspaces")).expect("workspaces");
        let mut directories = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir());
        directories.next().expect("a workspace")
    }

    pub(crate) fn info(&self) -> Value {
        let text = std::fs::read(self.workspace().join("node.info")).expect("a running workspace");
        serde_json::from_slice(&text).expect("node.info")
    }

    pub(crate) fn cookie(&self) -> String {
        let text = std::fs::read_to_string(self.workspace().join("cookie")).expect("a cookie");
        text.trim().to_owned()
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            host: "127.0.0.1".to_owned(),
            port: u16::try_from(self.info()["port"].as_u64().expect("a port")).expect("a port"),
            tls: None,
        }
    }

    pub(crate) async fn try_connect(&self, client: &str) -> Result<(Connection, Events), Error> {
        let greeting = Greeting { client, resume: None };
        Connection::open(&self.endpoint(), "cookie", &self.cookie(), greeting).await
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.try_connect("repl").await.expect("a connection").0
    }

    /// The daemon and everything below it.
    pub(crate) fn processes(&self) -> BTreeSet<u32> {
        let daemon = u32::try_from(self.info()["pid"].as_u64().expect("a pid")).expect("a pid");
        let mut found = BTreeSet::new();
        let mut todo = vec![daemon];
        while let Some(pid) = todo.pop() {
            if !found.insert(pid) {
                continue;
            }
            let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
                continue;
            };
            for task in tasks.flatten() {
                let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
                todo.extend(
                    children
                        .split_whitespace()
                        .filter_map(|child| child.parse::<u32>().ok()),
                );
            }
        }
        found
    }
}

impl Drop for Home {
    #[expect(
        clippy::print_stderr,
        reason = "why a test failed may stand in the daemon's log"
    )]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let sessions = std::fs::read_dir(self.state().join("sessions"));
            for session in sessions.into_iter().flatten().flatten() {
                let log = std::fs::read_to_string(session.path().join("daemon.log"));
                eprintln!("{}", log.unwrap_or_default());
            }
        }
        let recorded = std::fs::read(self.workspace_if_any().join("node.info"));
        if let Ok(text) = recorded
            && let Ok(info) = serde_json::from_slice::<Value>(&text)
        {
            let _ = self.run(&["workspace", "stop", "--force"]);
            for field in ["pid", "node_pid"] {
                if let Some(pid) = info[field].as_u64() {
                    kill(u32::try_from(pid).unwrap_or(0));
                }
            }
        }
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

impl Home {
    fn workspace_if_any(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.state().join("workspaces"));
        let mut directories = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        directories.find(|path| path.is_dir()).unwrap_or_default()
    }
}

/// `SIGKILL`, to a process that may be gone.
pub(crate) fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// `SIGTERM`, to a process that may be gone.
pub(crate) fn terminate(pid: u32) {
    signal(pid, rustix::process::Signal::TERM);
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

/// Wait until something holds; panics when it does not in time.
pub(crate) fn wait_until(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The whole last message of an evaluation.
pub(crate) async fn eval(connection: &Connection, code: &str) -> Map<String, Value> {
    request(connection, "eval", json!({"code": code})).await
}

pub(crate) async fn request(connection: &Connection, op: &str, with: Value) -> Map<String, Value> {
    let pending = connection.request(op, fields(with)).expect("connected");
    let answer = tokio::time::timeout(Duration::from_mins(1), pending.done()).await;
    answer.expect("an answer in time").expect("an answer")
}

pub(crate) fn kind(answer: &Map<String, Value>) -> &str {
    answer
        .get("error")
        .and_then(|error| error["kind"].as_str())
        .unwrap_or("none")
}

/// Run a test's future on a runtime of its own.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

/// Every file below a directory.
pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.is_file() {
                found.push(path);
            }
        }
    }
    found
}
