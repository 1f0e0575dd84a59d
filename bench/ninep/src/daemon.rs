//! A daemon with a namespace of its own, and sessions that need no start.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context;

pub(crate) const SESSIONS: usize = 500;
const SEGMENT: u64 = 4 << 20;
pub(crate) const OUTPUT_BYTES: u64 = 15 * SEGMENT;

pub(crate) struct Daemon {
    directory: tempfile::TempDir,
    ids: Vec<String>,
}

impl Daemon {
    fn new() -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("btbench").tempdir_in("/tmp")?;
        std::fs::create_dir_all(directory.path().join("home/.config/beamtalk/agents"))?;
        std::fs::create_dir_all(directory.path().join("work"))?;
        Ok(Daemon {
            directory,
            ids: Vec::new(),
        })
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("ns/agent")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command(&self) -> anyhow::Result<Command> {
        let binary = std::env::current_exe()?.with_file_name("beamtalk");
        anyhow::ensure!(binary.exists(), "{} is not built", binary.display());
        let mut command = Command::new(binary);
        command
            .env("HOME", self.home())
            .env("NAMESPACE", self.directory.path().join("ns"))
            .current_dir(self.directory.path().join("work"));
        command
            .env_remove("BEAMTALK_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("AGENT_TOKEN");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    pub(crate) fn run(&self, words: &[&str]) -> anyhow::Result<()> {
        let status = self.command()?.args(words).status()?;
        anyhow::ensure!(status.success(), "{words:?}: {status}");
        Ok(())
    }

    /// A daemon with 500 stopped sessions, the first with much output.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let mut daemon = Daemon::new()?;
        let config = daemon.home().join(".config/beamtalk/agents/global.yaml");
        std::fs::File::create(config).and_then(|mut file| {
            std::io::Write::write_all(&mut file, b"limits: {sessions: 600, fids: 8192}\n")
        })?;
        // Once, so that the daemon names its state directory.
        daemon.run(&["agents", "start"])?;
        daemon.run(&["agents", "stop"])?;
        let state = daemon.state()?;
        for number in 0..SESSIONS {
            let id = format!("{:08x}", 0xbe00_0000_u32 + number as u32);
            let directory = state.join("sessions").join(&id);
            std::fs::create_dir_all(directory.join("output"))?;
            let record = format!(
                "{{\"id\":\"{id}\",\"backend\":\"echo\",\"state\":\"stopped\",\"sandbox\":\"default\",\"cwd\":\"/tmp\",\"created\":{number}}}"
            );
            write(&directory.join("session.json"), record.as_bytes())?;
            daemon.ids.push(id);
        }
        let output = state.join("sessions").join(daemon.first()).join("output");
        let segment: Vec<u8> = b"a line of output of some length, as programs print them\n"
            .iter()
            .copied()
            .cycle()
            .take(SEGMENT as usize)
            .collect();
        for number in 0..OUTPUT_BYTES / SEGMENT {
            write(&output.join(format!("{number:06}.log")), &segment)?;
        }
        daemon.run(&["agents", "start"])?;
        Ok(daemon)
    }

    /// A daemon with the workspace of a project.
    pub(crate) fn with_image(project: &[(String, String)]) -> anyhow::Result<Self> {
        let daemon = Daemon::new()?;
        let config = daemon.home().join(".config/beamtalk/agents/global.yaml");
        write(&config, b"limits: {fids: 8192}\n")?;
        for (name, text) in project {
            let path = daemon.path("work").join(name);
            std::fs::create_dir_all(path.parent().context("no directory")?)?;
            write(&path, text.as_bytes())?;
        }
        daemon.run(&["build"])?;
        daemon.run(&["workspace", "start"])?;
        daemon.run(&["agents", "start"])?;
        Ok(daemon)
    }

    pub(crate) fn with_live_sessions(count: usize) -> anyhow::Result<Self> {
        let daemon = Daemon::new()?;
        daemon.run(&["agents", "start"])?;
        for _ in 0..count {
            daemon.run(&["agents", "new", "echo", "/tmp", "--wait"])?;
        }
        // Let the last answers of the starting sessions pass.
        std::thread::sleep(Duration::from_secs(2));
        Ok(daemon)
    }

    fn state(&self) -> anyhow::Result<PathBuf> {
        let mut entries = std::fs::read_dir(self.home().join(".beamtalk/agents"))?;
        Ok(entries.next().context("no state directory")??.path())
    }

    pub(crate) fn first(&self) -> &str {
        self.ids.first().map_or("", String::as_str)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids.iter().any(|known| known == id)
    }

    fn pid(&self) -> anyhow::Result<String> {
        Ok(
            std::fs::read_to_string(self.directory.path().join("ns/anvilsrv.pid"))?
                .trim()
                .to_owned(),
        )
    }

    /// Processor time of all threads, and of the programs it has run.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let pid = self.pid()?;
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            nanoseconds += text.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
        }
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .map_or("", |(_, rest)| rest)
            .split_whitespace()
            .collect();
        let ticks: u64 = fields
            .iter()
            .skip(13)
            .take(2)
            .map(|field| field.parse::<u64>().unwrap_or(0))
            .sum();
        Ok(Duration::from_nanos(nanoseconds) + Duration::from_millis(ticks * 10))
    }

    pub(crate) fn resident_megabytes(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .context("no VmRSS")?;
        let kilobytes: f64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
        Ok(kilobytes / 1024.0)
    }
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::io::Write::write_all(&mut std::fs::File::create(path)?, bytes)?;
    Ok(())
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The temp folder goes too; a daemon that cannot be stopped is visible in the process list.
        drop(self.run(&["agents", "stop", "--kill-sessions"]));
        if self.path("work/beamtalk.toml").exists() {
            drop(self.run(&["workspace", "stop"]));
        }
    }
}
