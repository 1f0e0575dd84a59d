//! A terminal, of 100 columns if nothing else is said, in a tmux server of its own, driven by keys and read back from its screen.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::runtime::runtime;
use crate::support::Place;

const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Screen {
    socket: PathBuf,
}

impl Screen {
    /// A terminal in which the command runs; its exit code is shown when it ends.
    pub(crate) fn open(place: &Place, command: &str) -> Self {
        Self::open_with(place, command, 100)
    }

    /// The same with so many columns.
    pub(crate) fn open_with(place: &Place, command: &str, columns: u16) -> Self {
        // A server that is told to end may still hold its socket when the next one starts.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let name = format!("tmux{}", OPENED.fetch_add(1, Ordering::Relaxed));
        let socket = place.directory().with_file_name(name);
        let screen = Self { socket };
        // Ctrl-C reaches the shell too, which must live on to tell the exit code.
        let script = format!("trap : INT; {command}; echo \"[exit $?]\"; cat");
        let status = Command::new("tmux")
            .arg("-S")
            .arg(&screen.socket)
            .args(["-f", "/dev/null", "new-session", "-d", "-y", "50"])
            .args(["-x", &columns.to_string()])
            .arg("sh")
            .args(["-c", &script])
            .current_dir(place.directory())
            .env_remove("TMUX")
            .env_remove("NO_COLOR")
            .env("TERM", "xterm-256color")
            .env("PATH", path())
            .env("BEAMTALK_HOME", place.home())
            .env("BEAMTALK_RUNTIME_DIR", runtime())
            .stdin(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "tmux does not start");
        screen
    }

    /// A session that has greeted.
    pub(crate) fn repl(place: &Place) -> Self {
        Self::repl_with(place, 100)
    }

    pub(crate) fn repl_with(place: &Place, columns: u16) -> Self {
        let screen = Self::open_with(place, "NO_COLOR=1 beamtalk repl", columns);
        screen.wait_for("`:exit` leaves.");
        screen.wait_for_last("> ");
        screen
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Type text as it is.
    pub(crate) fn text(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]);
    }

    /// Paste text as a terminal does, marked as pasted where the program asked for that.
    pub(crate) fn paste(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]);
        self.tmux(&["paste-buffer", "-p", "-r"]);
    }

    /// Press keys by name: `Enter`, `Up`, `C-c`.
    pub(crate) fn keys(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        self.tmux(&arguments);
    }

    /// Press a key until the screen ends in this line: pressed too early it means something else.
    #[track_caller]
    pub(crate) fn press_until(&self, key: &str, line: &str) {
        self.wait_until(line, |shown| {
            let is_there = shown.lines().last() == Some(line.trim_end());
            if !is_there {
                self.keys(&[key]);
            }
            is_there
        });
    }

    /// Type a line.
    pub(crate) fn line(&self, text: &str) {
        self.text(text);
        self.keys(&["Enter"]);
    }

    /// Type an input and wait for what it shows.
    #[track_caller]
    pub(crate) fn evaluate(&self, input: &str, shown: &str) {
        self.line(input);
        self.wait_for(shown);
        self.wait_for_last("> ");
    }

    /// End the command of this terminal without a chance to say goodbye.
    pub(crate) fn kill_command(&self) {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let status = Command::new("pkill")
            .args(["-KILL", "-P", shell.trim()])
            .status()
            .unwrap();
        assert!(status.success(), "the command is not a child of the shell");
        self.wait_for("[exit 137]");
    }

    /// Everything shown so far, without the blanks at line ends.
    pub(crate) fn shown(&self) -> String {
        let text = self.tmux(&["capture-pane", "-p", "-J", "-S", "-500"]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// The same with escape sequences for colours.
    pub(crate) fn painted(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-J", "-S", "-500"])
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text));
    }

    /// Wait until the text was shown so many times.
    #[track_caller]
    pub(crate) fn wait_for_count(&self, text: &str, count: usize) {
        self.wait_until(text, |shown| shown.matches(text).count() >= count);
    }

    /// Wait until the last line is this one, blanks at its end aside.
    #[track_caller]
    pub(crate) fn wait_for_last(&self, line: &str) {
        let wanted = line.trim_end();
        self.wait_until(line, |shown| shown.lines().last() == Some(wanted));
    }

    #[track_caller]
    fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let shown = self.shown();
            if is_so(&shown) {
                return;
            }
            assert!(Instant::now() < deadline, "waited in vain for {what:?}:\n{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// The search path with the binary under test first.
fn path() -> String {
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_beamtalk"));
    let directory = binary.parent().unwrap().display().to_string();
    format!("{directory}:{}", std::env::var("PATH").unwrap_or_default())
}
