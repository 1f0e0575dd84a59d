//! A namespace of its own for each test: temp folder, daemon, tmux server, all gone at the end.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::runtime::runtime;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_beamtalk");
const LIMIT: Duration = Duration::from_secs(90);

pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::Builder::new().prefix("bt").tempdir_in("/tmp").unwrap();
        std::fs::create_dir_all(directory.path().join("home")).unwrap();
        std::fs::create_dir_all(directory.path().join("work")).unwrap();
        World { directory }
    }

    /// A world whose daemon runs.
    pub(crate) fn started() -> Self {
        let world = World::new();
        world.check("beamtalk agents start", "anvilsrv started successfully\n");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn namespace(&self) -> PathBuf {
        self.path("ns")
    }

    /// The state directory of the daemon.
    pub(crate) fn state(&self) -> PathBuf {
        let base = self.path("home/.beamtalk/agents");
        std::fs::read_dir(base).unwrap().next().unwrap().unwrap().path()
    }

    pub(crate) fn config(&self, name: &str, text: &str) {
        let path = self.path("home/.config/beamtalk/agents").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let bin = Path::new(BINARY).parent().unwrap().display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", format!("{bin}:{path}"))
            .env("HOME", self.path("home"))
            .env("USER", "tester")
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .env("NAMESPACE", self.namespace())
            .env("W", self.directory.path())
            .env("SSH_AUTH_SOCK", "/tmp/never")
            .current_dir(self.path("work"));
        command
    }

    /// What a shell script prints (both streams) and its exit status, within the time limit.
    pub(crate) fn run(&self, script: &str) -> (String, i32) {
        let mut command = self.command("/bin/sh");
        command.args(["-c", &format!("exec 2>&1\n{script}")]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut text = Vec::new();
            stdout.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let limit = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > limit {
                child.kill().unwrap();
                panic!("not done within {LIMIT:?}: {script}\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        (reader.join().unwrap(), status.code().unwrap_or(-1))
    }

    pub(crate) fn log(&self) -> String {
        let base = self.path("home/.beamtalk/agents");
        let state = std::fs::read_dir(base)
            .ok()
            .and_then(|mut entries| entries.next()?.ok());
        let read = |name: &str| {
            state
                .as_ref()
                .and_then(|state| std::fs::read_to_string(state.path().join(name)).ok())
        };
        let (log, events) = (
            read("daemon.log").unwrap_or_default(),
            read("events.jsonl").unwrap_or_default(),
        );
        let events: Vec<&str> = events.lines().rev().take(15).collect();
        format!("{log}\nlast events, newest first:\n{}", events.join("\n"))
    }

    /// Run a script and compare; `…` in the expectation stands for anything on its line, and a
    /// last line `[n]` for the exit status.
    pub(crate) fn check(&self, script: &str, expected: &str) {
        let (mut text, status) = self.run(script);
        if status != 0 {
            text.push_str(&format!("[{status}]\n"));
        }
        let matches = text.lines().count() == expected.lines().count()
            && text
                .lines()
                .zip(expected.lines())
                .all(|(line, pattern)| line_matches(line, pattern));
        assert!(
            matches,
            "{script}\nexpected:\n{expected}\ngot:\n{text}\nlog:\n{}",
            self.log()
        );
    }

    /// Check what a terminal would show: each line after `$ ` is a script, the lines below it are what it prints.
    pub(crate) fn transcript(&self, text: &str) {
        let text = text.trim_end().replace("\n        ", "\n");
        for part in text.split("\n$ ").skip(1) {
            let (script, expected) = part.split_once('\n').unwrap_or((part, ""));
            self.check(script, expected);
        }
    }

    /// The output of a script that succeeds, trimmed.
    pub(crate) fn value(&self, script: &str) -> String {
        let (text, status) = self.run(script);
        assert_eq!(status, 0, "{script}\n{text}\n{}", self.log());
        text.trim().to_owned()
    }

    /// What runs with this world in its environment, as command lines.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = self.directory.path().display().to_string();
        let has = |text: &[u8]| String::from_utf8_lossy(text).contains(&mark);
        let read = |path: PathBuf| std::fs::read(path).unwrap_or_default();
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|process| has(&read(process.join("environ"))))
            .map(|process| String::from_utf8_lossy(&read(process.join("cmdline"))).replace('\0', " "))
            .collect()
    }

    /// Run a script until it succeeds.
    pub(crate) fn until(&self, script: &str) {
        let limit = Instant::now() + LIMIT;
        loop {
            let (text, status) = self.run(script);
            if status == 0 {
                return;
            }
            assert!(
                Instant::now() < limit,
                "never true: {script}\n{text}\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn line_matches(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    let mut parts = pattern.split('…').peekable();
    let Some(first) = parts.next() else {
        return line.is_empty();
    };
    let Some(after) = rest.strip_prefix(first) else {
        return false;
    };
    rest = after;
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl Drop for World {
    fn drop(&mut self) {
        // Panics while panicking help nobody: failures here are visible as leftover processes.
        for script in [
            "beamtalk agents stop --kill-sessions >/dev/null 2>&1",
            "beamtalk workspace stop --all --force >/dev/null 2>&1 || beamtalk workspace stop --force >/dev/null 2>&1",
            "test -f $NAMESPACE/anvilsrv.pid && kill -9 $(cat $NAMESPACE/anvilsrv.pid) 2>/dev/null",
            "tmux -S $NAMESPACE/tmux.sock kill-server 2>/dev/null",
        ] {
            let done = self
                .command("/bin/sh")
                .args(["-c", script])
                .stdin(Stdio::null())
                .status();
            drop(done);
        }
    }
}
