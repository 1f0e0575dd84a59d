//! Driving the private tmux server. Nothing here is passed through a shell, targets are window
//! ids, and every call has a time limit.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use beamtalk_process::{Detached, Stop, asked, detached_with_words, detached_with_words_and_mark};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::places::Places;

/// The oldest version that works.
pub const TMUX_MINIMUM: &str = "3.2";

const CALL_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum TmuxError {
    #[error("tmux: {0}")]
    Said(String),
    #[error("tmux did not answer")]
    TimedOut,
    #[error("tmux: {0}")]
    Io(#[from] std::io::Error),
}

/// A window as `list-windows` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) session_id: String,
    pub(crate) number: String,
    pub(crate) pid: Option<i32>,
    pub(crate) dead: bool,
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) piped: bool,
    pub(crate) options: WindowOptions,
}

/// What is written on a window so that it can be adopted without a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowOptions {
    pub(crate) backend: String,
    pub(crate) cwd: String,
    pub(crate) alias: String,
    pub(crate) role: String,
    pub(crate) model: String,
    pub(crate) sandbox: String,
}

pub(crate) struct Tmux {
    socket: PathBuf,
    program: PathBuf,
    environment: Vec<(String, String)>,
}

/// The version of the installed tmux, as `3.3a`.
#[expect(clippy::disallowed_methods, reason = "tmux, asked")]
pub fn version() -> Option<String> {
    let output = std::process::Command::new("tmux")
        .arg("-V")
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().strip_prefix("tmux ").map(str::to_owned)
}

/// Whether `found` is at least the minimum.
pub fn is_new_enough(found: &str) -> bool {
    let digits: String = found.chars().skip_while(|c| !c.is_ascii_digit()).collect();
    let mut parts = digits
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    (major, minor) >= (3, 2)
}

/// Every server that was started for a socket, reachable or not.
fn servers_of(socket: &Path) -> Vec<Detached> {
    detached_with_words("tmux: server", &[b"-S", socket.as_os_str().as_bytes()])
}

/// Everything of tmux that was started for the server of these places: servers, those that are about to be one, clients,
/// and what a server has run to tell us of its windows.
fn users_of(places: &Places) -> Vec<Detached> {
    let socket = places.tmux_socket();
    let mut found = detached_with_words("tmux", &[b"-S", socket.as_os_str().as_bytes()]);
    let namespace = places.namespace.display().to_string();
    for word in [&b"tick"[..], b"tap"] {
        let told = detached_with_words_and_mark(&[b"agents", word], "NAMESPACE", &namespace);
        found.extend(told);
    }
    found
}

/// How long they may take to see that their server is gone.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

/// End the private tmux server of these places and all it runs; resolves when nothing of it is left. A server that a
/// client is just starting is not one yet, so this goes on until no client is left either.
pub async fn end_servers(places: &Places) {
    let socket = places.tmux_socket();
    let limit = Instant::now() + LEAVE_LIMIT;
    loop {
        // Where there is no `/proc` this is all that can be done; no server is no fault.
        let mut asked = asked("tmux");
        asked.arg("-S").arg(&socket).arg("kill-server");
        asked.stderr(Stdio::null()).status().ok();
        for server in servers_of(&socket) {
            server.stop(Stop::default()).await;
        }
        let left = users_of(places);
        if left.is_empty() {
            break;
        }
        if Instant::now() > limit {
            for one in left {
                one.stop(Stop::default()).await;
            }
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // tmux leaves it behind; there is none where it never ran. The lock is left by a server that was killed at its start.
    std::fs::remove_file(socket.with_extension("sock.lock")).ok();
    std::fs::remove_file(socket).ok();
}

impl Tmux {
    pub(crate) fn new(socket: PathBuf, program: PathBuf, environment: Vec<(String, String)>) -> Self {
        Tmux {
            socket,
            program,
            environment,
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a call of tmux ends when its answer is read"
    )]
    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        // Whatever the locale: without -u control characters and accents come back as `_`.
        command
            .arg("-u")
            .arg("-S")
            .arg(&self.socket)
            .args(["-f", "/dev/null"]);
        command.env_remove("TMUX").kill_on_drop(true);
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn call(&self, words: &[&str]) -> Result<String, TmuxError> {
        self.call_with(words, None).await
    }

    async fn call_with(&self, words: &[&str], input: Option<&[u8]>) -> Result<String, TmuxError> {
        let mut command = self.command();
        command.args(words);
        if input.is_some() {
            command.stdin(Stdio::piped());
        }
        let run = async {
            let mut child = command.spawn()?;
            if let (Some(bytes), Some(mut stdin)) = (input, child.stdin.take()) {
                stdin.write_all(bytes).await?;
                stdin.shutdown().await?;
            }
            child.wait_with_output().await
        };
        let output = tokio::time::timeout(CALL_LIMIT, run)
            .await
            .map_err(|_| TmuxError::TimedOut)??;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(TmuxError::Said(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ))
    }

    /// Start the server if it does not run, and set its options.
    pub(crate) async fn prepare(&self) -> Result<(), TmuxError> {
        let program = quoted(&self.program);
        let tick = |event: &str| {
            // Window options are gone with the window; the name of the window is the session id.
            let id = if event == "pane-died" {
                "#{@bt_id}"
            } else {
                "#{hook_window_name}"
            };
            format!("run-shell -b \"exec {program} agents tick {id}\"")
        };
        let (died, unlinked) = (tick("pane-died"), tick("window-unlinked"));
        let mut words = vec!["start-server"];
        for option in [
            ["-s", "exit-empty", "off"],
            ["-s", "escape-time", "0"],
            ["-s", "set-clipboard", "off"],
            ["-g", "remain-on-exit", "on"],
            ["-g", "automatic-rename", "off"],
            ["-g", "allow-rename", "off"],
            ["-g", "history-limit", "50000"],
            ["-g", "window-size", "latest"],
            ["-g", "remain-on-exit-format", ""],
        ] {
            words.extend([";", "set-option"]);
            words.extend(option);
        }
        for (name, value) in &self.environment {
            words.extend([";", "set-environment", "-g", name, value]);
        }
        words.extend([
            ";",
            "set-hook",
            "-g",
            "pane-died",
            &died,
            ";",
            "set-hook",
            "-g",
            "window-unlinked",
            &unlinked,
        ]);
        self.call(&words).await?;
        self.end_strays().await;
        Ok(())
    }

    /// A server whose socket another one has taken is out of everybody's reach, and what it runs
    /// would go on beside the sessions that replaced it.
    async fn end_strays(&self) {
        let Ok(Some(reached)) = self.server_pid().await else {
            return;
        };
        for stray in servers_of(&self.socket) {
            if i32::try_from(stray.id()) != Ok(reached) {
                tracing::warn!(pid = stray.id(), "a tmux server that nobody reaches is ended");
                stray.stop(Stop::default()).await;
            }
        }
    }

    /// Make a window for a session that runs `agents run <id>`; its window id.
    pub(crate) async fn launch(
        &self,
        backend: &str,
        id: &str,
        cwd: &str,
        size: (u16, u16),
    ) -> Result<String, TmuxError> {
        let name = format!("agent-{backend}");
        let exact = format!("={name}");
        if self.call(&["has-session", "-t", &exact]).await.is_err() {
            self.prepare().await?;
            let (cols, rows) = (size.1.to_string(), size.0.to_string());
            self.call(&[
                "new-session",
                "-d",
                "-s",
                &name,
                "-n",
                "keep",
                "-x",
                &cols,
                "-y",
                &rows,
                "-c",
                "/",
                "--",
                "sleep",
                "infinity",
            ])
            .await?;
        }
        let target = format!("={name}:");
        let wanted = [
            "new-window",
            "-d",
            "-P",
            "-F",
            "#{window_id}",
            "-t",
            &target,
            "-n",
            id,
        ];
        let window = self.call_with_run(&wanted, id, cwd).await?;
        Ok(window.trim().to_owned())
    }

    /// Run `agents run <id>` again in the window it had.
    pub(crate) async fn respawn(&self, window: &str, id: &str, cwd: &str) -> Result<(), TmuxError> {
        let words = ["respawn-window", "-k", "-t", window];
        self.call_with_run(&words, id, cwd).await.map(drop)
    }

    /// A command of tmux that starts `agents run <id>` in a directory.
    async fn call_with_run(&self, words: &[&str], id: &str, cwd: &str) -> Result<String, TmuxError> {
        let (cwd, program) = (unexpanded(cwd), self.program.display().to_string());
        let run = ["-c", &cwd, "--", &program, "agents", "run", id];
        self.call(&[words, &run].concat()).await
    }

    /// Capture what the window prints.
    pub(crate) async fn capture(&self, window: &str, id: &str) -> Result<(), TmuxError> {
        let command = format!("exec {} agents tap {id}", quoted(&self.program)).replace('%', "%%");
        self.call(&["pipe-pane", "-O", "-t", window, &command])
            .await
            .map(drop)
    }

    pub(crate) async fn set_options(
        &self,
        window: &str,
        id: &str,
        options: &WindowOptions,
    ) -> Result<(), TmuxError> {
        let values = [
            ("@bt_id", id),
            ("@bt_backend", &options.backend),
            ("@bt_cwd", &options.cwd),
            ("@bt_alias", &options.alias),
            ("@bt_role", &options.role),
            ("@bt_model", &options.model),
            ("@bt_sandbox", &options.sandbox),
        ]
        .map(|(name, value)| (name, one_word(value)));
        let mut words: Vec<&str> = Vec::new();
        for (name, value) in &values {
            if !words.is_empty() {
                words.push(";");
            }
            words.extend(["set-option", "-w", "-t", window, name, value]);
        }
        self.call(&words).await.map(drop)
    }

    pub(crate) async fn pane_pid(&self, window: &str) -> Result<Option<i32>, TmuxError> {
        let text = self
            .call(&["display-message", "-p", "-t", window, "#{pane_pid}"])
            .await?;
        Ok(text.trim().parse().ok().filter(|pid| *pid > 0))
    }

    /// The process of the server; windows do not outlive it.
    pub(crate) async fn server_pid(&self) -> Result<Option<i32>, TmuxError> {
        let text = self.call(&["display-message", "-p", "#{pid}"]).await?;
        Ok(text.trim().parse().ok())
    }

    /// All windows that carry a session id; an error when no server runs.
    pub(crate) async fn windows(&self) -> Result<Vec<Window>, TmuxError> {
        const FORMAT: &str = "#{@bt_id}|#{window_id}|#{pane_pid}|#{pane_dead}|#{pane_dead_status}|\
            #{pane_dead_signal}|#{pane_pipe}|#{@bt_backend}|#{@bt_alias}|#{@bt_role}|#{@bt_model}|\
            #{@bt_sandbox}|#{@bt_cwd}";
        let text = self.call(&["list-windows", "-a", "-F", FORMAT]).await?;
        let mut windows: Vec<Window> = text.lines().filter_map(parse_window).collect();
        // Sessions grouped for attaching show the same window again.
        windows.sort_by(|one, other| one.number.cmp(&other.number));
        windows.dedup_by(|one, other| one.number == other.number);
        Ok(windows)
    }

    pub(crate) async fn keys(&self, window: &str, keys: &[String]) -> Result<(), TmuxError> {
        let mut words = vec!["send-keys", "-t", window, "--"];
        let keys: Vec<String> = keys.iter().map(|key| one_word(key)).collect();
        words.extend(keys.iter().map(String::as_str));
        self.call(&words).await.map(drop)
    }

    pub(crate) async fn literal(&self, window: &str, text: &str) -> Result<(), TmuxError> {
        self.call(&["send-keys", "-t", window, "-l", "--", &one_word(text)])
            .await
            .map(drop)
    }

    /// Insert text as a paste; it travels on standard input only.
    pub(crate) async fn paste(&self, window: &str, id: &str, text: &str) -> Result<(), TmuxError> {
        let buffer = format!("bt-{id}");
        self.call_with(&["load-buffer", "-b", &buffer, "-"], Some(text.as_bytes()))
            .await?;
        self.call(&["paste-buffer", "-d", "-p", "-r", "-b", &buffer, "-t", window])
            .await
            .map(drop)
    }

    pub(crate) async fn screen(&self, window: &str) -> Result<String, TmuxError> {
        let text = self.call(&["capture-pane", "-p", "-t", window]).await?;
        let mut out = String::new();
        for line in text.trim_end().lines() {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        Ok(out)
    }

    /// The last line of the screen that is not empty.
    pub(crate) async fn last_line(&self, window: &str) -> Result<String, TmuxError> {
        let text = self.screen(window).await?;
        Ok(text
            .lines()
            .rev()
            .find(|line| !line.is_empty())
            .unwrap_or_default()
            .to_owned())
    }

    pub(crate) async fn kill_window(&self, window: &str) -> Result<(), TmuxError> {
        self.call(&["kill-window", "-t", window]).await.map(drop)
    }
}

/// A path in a shell command of tmux, which expands formats in it first.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('#', "##");
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// An argument that stays one: at the end of a word tmux takes `;` for the end of the command.
fn one_word(text: &str) -> String {
    match text.strip_suffix(';') {
        Some(before) => format!("{before}\\;"),
        None => text.to_owned(),
    }
}

/// An argument tmux would expand: `#(…)` in it is a command to run.
fn unexpanded(text: &str) -> String {
    one_word(&text.replace('#', "##"))
}

fn parse_window(line: &str) -> Option<Window> {
    let mut fields = line.splitn(13, '|');
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let session_id = next();
    if session_id.is_empty() {
        return None;
    }
    Some(Window {
        session_id,
        number: next(),
        pid: next().parse().ok().filter(|pid| *pid > 0),
        dead: next() == "1",
        status: next().parse().ok(),
        signal: next().parse().ok(),
        piped: next() == "1",
        options: WindowOptions {
            backend: next(),
            alias: next(),
            role: next(),
            model: next(),
            sandbox: next(),
            cwd: next(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{is_new_enough, parse_window};

    #[test]
    fn versions_compare_by_number() {
        for (text, enough) in [
            ("3.2", true),
            ("3.3a", true),
            ("next-3.5", true),
            ("3.1c", false),
            ("2.9", false),
            ("4.0", true),
        ] {
            assert_eq!(is_new_enough(text), enough, "{text}");
        }
    }

    #[test]
    fn windows_of_others_are_skipped() {
        assert!(parse_window("|@0|12|0|||0||||||").is_none());
        let window = parse_window("5e1fa0c2|@4|12|1|3||1|echo|demo|||default|/tmp").unwrap();
        assert_eq!((window.dead, window.status, window.signal), (true, Some(3), None));
        assert_eq!(
            (window.options.alias.as_str(), window.options.cwd.as_str()),
            ("demo", "/tmp")
        );
    }
}
