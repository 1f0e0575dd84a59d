//! A temporary place with a config, and a loop running there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// How long anything may take on a busy machine before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Wait until `ready` gives something.
pub(crate) fn wait_for<T>(what: &str, ready: impl FnMut() -> Option<T>) -> T {
    wait_or_explain(what, ready, String::new)
}

/// Wait until `ready` gives something; when it does not, say what `explain` knows of it.
pub(crate) fn wait_or_explain<T>(
    what: &str,
    mut ready: impl FnMut() -> Option<T>,
    explain: impl Fn() -> String,
) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "gave up waiting for {what}\n{}",
            explain()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Who a process is: its number, line, parent, group and session, state, and the marks it carries.
pub(crate) fn describe(id: u32) -> String {
    let read = |name: &str| std::fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', " ");
    let stat = words(&read("stat"));
    let place = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let place: Vec<&str> = place.split(' ').take(4).collect();
    let environment = read("environ");
    let marks: Vec<String> = environment
        .split(|&byte| byte == 0)
        .map(words)
        .filter(|entry| ["BEAMTALK", "DEVLOOP"].iter().any(|mark| entry.starts_with(mark)))
        .collect();
    format!(
        "{id} `{}`, state, parent, group, session: {place:?}, marks: {marks:?}",
        words(&read("cmdline"))
    )
}

/// Check that something stays true for a while.
pub(crate) fn holds_for(time: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        assert!(holds(), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Numbers that look random and can be had again: the seed is printed.
pub(crate) struct Random(u64);

impl Random {
    /// Seeded by `BEAMTALK_SEED`, or anew.
    #[expect(clippy::print_stdout, reason = "a failure is found again by its seed")]
    pub(crate) fn from_environment() -> Self {
        let given = std::env::var("BEAMTALK_SEED")
            .ok()
            .and_then(|text| text.parse().ok());
        let fresh = || {
            let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
            now.as_nanos() as u64 ^ u64::from(std::process::id())
        };
        let seed: u64 = given.unwrap_or_else(fresh);
        println!("BEAMTALK_SEED={seed}");
        Self(seed | 1)
    }

    /// How many times, from the environment or as given.
    pub(crate) fn count(variable: &str, default: u64) -> u64 {
        std::env::var(variable)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// A directory of its own with a config. Dropping it checks that nobody is left there.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new(config: &str) -> Self {
        let place = Self {
            directory: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        };
        place.write("devloop.toml", config);
        place
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        // As written by the system, without links, so that it compares with what children see.
        self.directory.path().canonicalize().unwrap().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn write_program(&self, relative: &str, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        self.write(relative, text);
        std::fs::set_permissions(self.path(relative), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The text of a file; empty when there is none.
    pub(crate) fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    pub(crate) fn lines(&self, relative: &str) -> usize {
        self.read(relative).lines().count()
    }

    pub(crate) fn wait_lines(&self, relative: &str, count: usize) {
        wait_for(&format!("{count} lines in {relative}"), || {
            (self.lines(relative) >= count).then_some(())
        });
    }

    pub(crate) fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.read(".devloop/state.json")).unwrap_or(serde_json::Value::Null)
    }

    pub(crate) fn wait_state(&self, key: &str, expected: serde_json::Value) {
        wait_for(&format!("state {key} = {expected}"), || {
            (self.state()[key] == expected).then_some(())
        });
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beamtalk"));
        command.arg("loop").args(arguments).current_dir(self.path(""));
        // What a run leaves word of stays with it.
        command.env("BEAMTALK_HOME", self.home.path());
        for name in ["BEAMTALK_LOG", "RUST_LOG", "NO_COLOR"] {
            command.env_remove(name);
        }
        command
    }

    /// Run a command of the loop to its end.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// Start a command of the loop, its output on a pipe.
    pub(crate) fn spawn_cli(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Start a command of the loop in a terminal of its own.
    pub(crate) fn terminal(&self, arguments: &[&str]) -> Terminal {
        let mut command = Command::new("sh");
        command
            .args(["-c", "stty rows 40 cols 120; exec \"$@\"", "sh"])
            .args([env!("CARGO_BIN_EXE_beamtalk"), "loop"])
            .args(arguments)
            .env("BEAMTALK_HOME", self.home.path())
            .env("TERM", "xterm")
            .current_dir(self.path(""));
        let limit = u64::try_from(PATIENCE.as_millis()).unwrap();
        Terminal::new(rexpect::session::spawn_command(command, Some(limit)).unwrap())
    }

    pub(crate) fn start(&self) -> Loop {
        let run = self.begin(&[]);
        run.wait_log("loop ready");
        run
    }

    /// Start without waiting for it to be ready.
    pub(crate) fn begin(&self, arguments: &[&str]) -> Loop {
        let mut command = self.command(&["run"]);
        command.args(arguments);
        Loop::spawn(command, self)
    }

    /// Start through a shell line, in which `"$@"` is the loop.
    pub(crate) fn begin_in_shell(&self, line: &str) -> Loop {
        let mut command = Command::new("sh");
        command
            .args(["-c", line, "sh", env!("CARGO_BIN_EXE_beamtalk"), "loop", "run"])
            .env("BEAMTALK_HOME", self.home.path())
            .current_dir(self.path(""));
        Loop::spawn(command, self)
    }

    /// The processes that stand in this directory.
    pub(crate) fn inhabitants(&self) -> Vec<u32> {
        let here = self.path("");
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|id: &u32| {
                std::fs::read_link(format!("/proc/{id}/cwd")).is_ok_and(|cwd| cwd.starts_with(&here))
            })
            .collect()
    }
}

impl Place {
    /// Wait until nobody stands here; when somebody stays, say who, and what was done before.
    pub(crate) fn wait_empty(&self, history: &[String]) {
        let nobody = || self.inhabitants().is_empty().then_some(());
        wait_or_explain("nobody to be left", nobody, || {
            let left: Vec<String> = self.inhabitants().into_iter().map(describe).collect();
            format!("left:\n{}\nafter:\n{}", left.join("\n"), history.join("\n"))
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.inhabitants().is_empty() {
            assert!(
                Instant::now() < deadline,
                "processes were left behind: {:?}",
                self.inhabitants().into_iter().map(describe).collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A command in a terminal.
pub(crate) struct Terminal {
    session: rexpect::session::PtySession,
    /// What the screen shows: only what changes is sent to it.
    screen: vt100::Parser,
}

impl Terminal {
    fn new(session: rexpect::session::PtySession) -> Self {
        Self {
            session,
            screen: vt100::Parser::new(
                const { std::num::NonZero::new(60).unwrap() },
                const { std::num::NonZero::new(200).unwrap() },
                0,
            ),
        }
    }

    /// Wait until the screen shows a text.
    pub(crate) fn wait_for(&mut self, text: &str) {
        wait_for(&format!("{text:?} on the screen"), || {
            while let Some(character) = self.session.try_read() {
                let mut bytes = [0; 4];
                self.screen.process(character.encode_utf8(&mut bytes).as_bytes());
            }
            self.screen.screen().contents().contains(text).then_some(())
        });
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        self.session.send(keys).unwrap();
        self.session.flush().unwrap();
    }

    /// Wait for its end.
    pub(crate) fn ended(&mut self) -> bool {
        self.session.exp_eof().is_ok()
    }
}

/// A running loop.
pub(crate) struct Loop {
    child: Child,
    log: Arc<Mutex<String>>,
    out: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Loop {
    fn spawn(mut command: Command, _: &Place) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (log, out) = (Arc::default(), Arc::default());
        let readers = vec![
            collect(child.stderr.take().unwrap(), Arc::clone(&log)),
            collect(child.stdout.take().unwrap(), Arc::clone(&out)),
        ];
        Self {
            child,
            log,
            out,
            readers,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn out(&self) -> String {
        self.out.lock().unwrap().clone()
    }

    /// The texts of the loop's own lines, without part, level and time.
    pub(crate) fn said(&self) -> Vec<String> {
        let text = |line: &str| line.splitn(5, ' ').nth(4).map(str::to_owned);
        self.log()
            .lines()
            .filter(|line| line.starts_with("[loop "))
            .filter_map(text)
            .collect()
    }

    pub(crate) fn count(&self, text: &str) -> usize {
        self.said().iter().filter(|said| *said == text).count()
    }

    pub(crate) fn wait_log(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.log().contains(part) {
            assert!(
                Instant::now() < deadline,
                "gave up waiting for {part:?} in:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn wait_out(&self, part: &str) {
        wait_for(&format!("{part:?} in output"), || {
            self.out().contains(part).then_some(())
        });
    }

    /// Wait until a line was said `count` times.
    pub(crate) fn wait_count(&self, text: &str, count: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.count(text) < count {
            assert!(
                Instant::now() < deadline,
                "gave up waiting for {count} x {text:?} in:\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "the loop did not end:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        status
    }

    /// End it in order and check that it says so.
    pub(crate) fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let status = self.wait();
        assert_eq!(status.code(), Some(0), "{}", self.log());
        self.log()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A failed test must leave nothing either: the guard cleans up after this.
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

fn collect(stream: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).is_ok_and(|count| count > 0) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

/// Whether a process is alive (a dead one that nobody collected is not).
pub(crate) fn is_alive(id: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .trim_start()
        .chars()
        .next();
    !matches!(state, Some('Z' | 'X') | None)
}

/// One answer of a server.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Send raw bytes to an address such as `127.0.0.1:80` and read the answer to its end.
pub(crate) fn exchange(address: &str, request: &[u8]) -> Reply {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may answer and close before it has read everything.
    drop(stream.write_all(request));
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .unwrap_or(0);
    Reply {
        status,
        head: head.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

/// A request that posts to an event; headers may be replaced or, with an empty value, left out.
pub(crate) fn post(url: &str, token: &str, body: &str, headers: &[(&str, &str)]) -> Reply {
    let (address, path) = split_url(url);
    let mut all = vec![
        ("Host".to_owned(), address.clone()),
        ("Authorization".to_owned(), format!("Bearer {token}")),
        ("Content-Type".to_owned(), "application/json".to_owned()),
        ("Content-Length".to_owned(), body.len().to_string()),
        ("Connection".to_owned(), "close".to_owned()),
    ];
    let mut method = "POST";
    for (name, value) in headers {
        all.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        if *name == ":method" {
            method = value;
        } else if !value.is_empty() {
            all.push(((*name).to_owned(), (*value).to_owned()));
        }
    }
    let head = all.iter().fold(String::new(), |head, (name, value)| {
        head + &format!("{name}: {value}\r\n")
    });
    exchange(
        &address,
        format!("{method} {path} HTTP/1.1\r\n{head}\r\n{body}").as_bytes(),
    )
}

/// Address and path of an `http` URL.
pub(crate) fn split_url(url: &str) -> (String, String) {
    let rest = url.trim().strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap_or((rest, ""));
    (address.to_owned(), format!("/{path}"))
}

/// The value of a `NAME=VALUE` line in a file.
pub(crate) fn variable(text: &str, name: &str) -> Option<String> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .map(str::to_owned)
}

pub(crate) fn touch(path: &Path) {
    std::fs::write(path, format!("{:?}", Instant::now())).unwrap();
}
