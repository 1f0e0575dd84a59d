//! A place for one test: temporary home and directory, commands with a time limit, no process left behind.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::runtime::runtime;

/// No command of a test takes longer.
const LIMIT: Duration = Duration::from_mins(1);

/// How long processes may take to end after their parent did.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Place {
    root: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(
            self.code,
            Some(code),
            "stdout: {}\nstderr: {}",
            self.stdout,
            self.stderr
        );
        self
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("beamtalk-e2e-")
            .tempdir()
            .unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    /// A place with a new library project named `demo` as its directory.
    pub(crate) fn with_project() -> Self {
        let place = Self::new();
        fs::remove_dir(place.directory()).unwrap();
        place
            .command_in(place.root.path(), &["new", "work"])
            .output()
            .unwrap();
        place
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.directory().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.directory().join(path)).unwrap()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_in(&self.directory(), arguments)
    }

    fn command_in(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beamtalk"));
        command
            .args(arguments)
            .current_dir(directory)
            .env("BEAMTALK_HOME", self.home())
            .env_remove("BEAMTALK_ERL")
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .env_remove("PAGER")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    /// Run to the end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        finish(
            self.command(arguments)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Run to the end with text on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Done {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        finish(child)
    }

    /// Process ids that were started in this place and still live: they carry its home in their environment.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let marker = format!("BEAMTALK_HOME={}", self.home().display());
        let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id: &u32| {
                let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                let is_dead =
                    fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
                !is_dead
                    && environment
                        .split(|byte| *byte == 0)
                        .any(|entry| entry == marker.as_bytes())
            })
            .collect()
    }

    /// Stop the workspace of this place.
    #[track_caller]
    pub(crate) fn stop(&self) {
        self.run(&["workspace", "stop", "--force"]).expect_code(0);
        self.expect_no_processes();
    }

    /// Wait until nothing started here lives any more.
    #[track_caller]
    pub(crate) fn expect_no_processes(&self) {
        assert!(
            wait_until(|| self.processes().is_empty()),
            "still alive: {:?}",
            self.processes()
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.expect_no_processes();
            return;
        }
        // A test that failed leaves nothing behind either.
        for id in self.processes() {
            if let Some(id) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
            }
        }
    }
}

/// Ask until it is so, at most for the grace period.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + GRACE;
    while Instant::now() < deadline {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    is_so()
}

/// Collect the output of a child, killing it at the time limit.
pub(crate) fn finish(mut child: Child) -> Done {
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stream) = stream {
                stream.read_to_end(&mut text).unwrap();
            }
            String::from_utf8_lossy(&text).into_owned()
        })
    };
    let stdout = read(
        child
            .stdout
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    );
    let stderr = read(
        child
            .stderr
            .take()
            .map(|stream| Box::new(stream) as Box<dyn Read + Send>),
    );
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let done = Done {
        code: status.and_then(|status| status.code()),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    };
    assert!(status.is_some(), "over the time limit: {done:?}");
    done
}
