//! `beamtalk port-helper`: runs programs for a node, which starts it as a port.
//!
//! The node's own ports have one output pipe and no process groups. This helper gives every program a group of its
//! own and separate pipes, and ends the group when it is told to, when the program ends, or when the
//! node goes away. A guard does it when this helper itself is killed. Frames are external terms behind a 4-byte length. Commands are maps with `command`
//! (`spawn`, `write_stdin`, `close_stdin`, `kill`) and `child_id`; events are `{spawned, N}`,
//! `{spawn_failed, N, Reason}`, `{stdout, N, Bytes}`, `{stderr, N, Bytes}` and, last, `{exit, N, Code}`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use beamtalk_etf::{Limits, Term, decode, encode};
use beamtalk_process::{Group, Guard, GuardLink, announce_before_exec};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::exit::Exit;
use crate::terminal::Terminal;

/// How long a group may take to end after the gentle signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long output may still come after its program has ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(_terminal: &mut Terminal, _arguments: &Arguments) -> anyhow::Result<Exit> {
    // An interrupt at the terminal is for the node, not for the programs it runs.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let guard = {
        let _context = runtime.enter();
        Guard::start(None)?
    };
    let (link, (ended, endings)) = (guard.link(), channel());
    let forgetful = link.clone();
    thread::spawn(move || reap(&endings, &forgetful));
    let mut children: BTreeMap<i64, Program> = BTreeMap::new();
    while let Some(command) = read_frame(&mut io::stdin().lock())? {
        children.retain(|_, child| !child.ending.has(Stage::Collected));
        let Some(request) = Request::new(&command) else {
            continue;
        };
        match request.name {
            "spawn" => match start(&request, &link, &ended) {
                Ok(child) => {
                    children.insert(request.child, child);
                }
                Err(error) => emit(&[atom("spawn_failed"), request.child.into(), atom(reason(&error))]),
            },
            name => {
                if let Some(child) = children.get_mut(&request.child) {
                    child.command(name, &request);
                }
            }
        }
    }
    for child in children.values() {
        child.end_group();
    }
    let collected: Vec<bool> = children
        .values()
        .map(|child| child.ending.wait(Stage::Collected, GRACE + GRACE))
        .collect();
    // What has not ended by now is left to the guard.
    if collected.iter().all(|is_collected| *is_collected) {
        runtime.block_on(guard.dismiss());
    }
    Ok(Exit::Success)
}

/// How far the end of a program has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Stage {
    Running,
    /// The program has ended; others of its group may not have.
    Ended,
    /// Nobody is left of its group.
    Collected,
}

struct Ending {
    stage: Mutex<Stage>,
    changed: Condvar,
}

impl Ending {
    fn lock(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, stage: Stage) -> bool {
        *self.lock() >= stage
    }

    fn reach(&self, stage: Stage) {
        *self.lock() = stage;
        self.changed.notify_all();
    }

    /// Wait for a stage, and answer whether it came in time.
    fn wait(&self, stage: Stage, limit: Duration) -> bool {
        let waiting = self
            .changed
            .wait_timeout_while(self.lock(), limit, |now| *now < stage);
        let (now, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        *now >= stage
    }
}

/// A running program, seen from the thread that reads commands.
struct Program {
    group: Pid,
    input: Input,
    ending: Arc<Ending>,
}

/// The program's standard input. A thread writes to it once there is something to write.
enum Input {
    Unused(ChildStdin),
    Fed(Sender<Vec<u8>>),
    Closed,
}

impl Input {
    fn write(&mut self, bytes: &[u8]) {
        if let Input::Unused(_) = self {
            let (sender, receiver) = channel();
            if let Input::Unused(pipe) = std::mem::replace(self, Input::Fed(sender)) {
                thread::spawn(move || feed(pipe, &receiver));
            }
        }
        if let Input::Fed(sender) = self {
            // A program that has closed its input reads no more.
            drop(sender.send(bytes.to_vec()));
        }
    }
}

impl Program {
    fn command(&mut self, name: &str, request: &Request<'_>) {
        match name {
            "write_stdin" => {
                if let Some(Term::Binary(data)) = request.get("data") {
                    self.input.write(data);
                }
            }
            "close_stdin" => self.input = Input::Closed,
            "kill" => self.end_group(),
            _ => {}
        }
    }

    /// The gentle signal now, the other one when it did not help.
    fn end_group(&self) {
        if self.ending.has(Stage::Ended) {
            return;
        }
        signal(self.group, Signal::TERM);
        let (group, ending) = (self.group, Arc::clone(&self.ending));
        thread::spawn(move || {
            if !ending.wait(Stage::Ended, GRACE) {
                signal(group, Signal::KILL);
            }
        });
    }
}

fn start(request: &Request<'_>, guard: &GuardLink, ended: &Sender<Ended>) -> io::Result<Program> {
    let mut command = Command::new(request.text("executable")?);
    command.args(request.texts("args"));
    command.envs(request.pairs("env"));
    if let Some(Term::Binary(directory)) = request.get("dir") {
        command.current_dir(OsString::from_vec(directory.clone()));
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0);
    announce_before_exec(&mut command, guard);
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let number = request.child;
    emit(&[atom("spawned"), number.into()]);
    let ending = Arc::new(Ending {
        stage: Mutex::new(Stage::Running),
        changed: Condvar::new(),
    });
    let input = child.stdin.take().map_or(Input::Closed, Input::Unused);
    let (finished, pipes) = channel();
    if let Some(output) = child.stdout.take() {
        forward("stdout", number, output, finished.clone());
    }
    if let Some(output) = child.stderr.take() {
        forward("stderr", number, output, finished);
    }
    let (watched, ended) = (Arc::clone(&ending), ended.clone());
    thread::spawn(move || collect(child, number, &pipes, watched, &ended));
    Ok(Program { group, input, ending })
}

/// Write what is sent to the program's input, which closes when there is no sender any more.
fn feed(mut input: impl Write, data: &Receiver<Vec<u8>>) {
    for bytes in data {
        if input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Pass output on as events; `finished` is dropped at its end.
fn forward(name: &'static str, number: i64, mut output: impl Read + Send + 'static, finished: Sender<()>) {
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => emit(&[atom(name), number.into(), Term::binary(&buffer[..length])]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        drop(finished);
    });
}

/// A program that has ended, of whose group there may be others.
struct Ended {
    child: Child,
    ending: Arc<Ending>,
    since: Instant,
}

/// Wait for the program, then for its output, and end what is left of its group.
fn collect(child: Child, number: i64, pipes: &Receiver<()>, ending: Arc<Ending>, ended: &Sender<Ended>) {
    let group = Pid::from_child(&child);
    let code = exit_code(group);
    ending.reach(Stage::Ended);
    signal(group, Signal::TERM);
    let is_open = |limit| pipes.recv_timeout(limit) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    if is_open(LAST_OUTPUT) && is_open(GRACE) {
        signal(group, Signal::KILL);
        is_open(GRACE);
    }
    emit(&[atom("exit"), number.into(), code.into()]);
    let since = Instant::now();
    // The receiver lives as long as this process.
    drop(ended.send(Ended { child, ending, since }));
}

/// Give every group its time to end, then end it.
///
/// A program is not collected before its group has been signalled for the last time, so the number of the group
/// cannot have passed to another one.
fn reap(endings: &Receiver<Ended>, guard: &GuardLink) {
    for mut ended in endings {
        thread::sleep(GRACE.saturating_sub(ended.since.elapsed()));
        let group = Pid::from_child(&ended.child);
        signal(group, Signal::KILL);
        if let Some(group) = Group::of(ended.child.id()) {
            guard.forget(group);
        }
        drop(ended.child.wait());
        ended.ending.reach(Stage::Collected);
    }
}

fn exit_code(pid: Pid) -> i64 {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                return status.exit_status().or(signal).map_or(0, i64::from);
            }
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return 0,
        }
    }
}

/// A group that is gone already is fine.
fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// One command of the node.
struct Request<'a> {
    name: &'a str,
    child: i64,
    fields: &'a [(Term, Term)],
}

impl<'a> Request<'a> {
    fn new(term: &'a Term) -> Option<Self> {
        let Term::Map(fields) = term else { return None };
        match (find(fields, "command"), find(fields, "child_id")) {
            (Some(Term::Atom(name)), Some(Term::Integer(child))) => Some(Request {
                name,
                child: *child,
                fields,
            }),
            _ => None,
        }
    }

    fn get(&self, key: &str) -> Option<&'a Term> {
        find(self.fields, key)
    }

    fn text(&self, key: &str) -> io::Result<OsString> {
        match self.get(key) {
            Some(Term::Binary(bytes)) => Ok(OsString::from_vec(bytes.clone())),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn texts(&self, key: &str) -> Vec<OsString> {
        let Some(Term::List(elements)) = self.get(key) else {
            return Vec::new();
        };
        elements.iter().filter_map(bytes).collect()
    }

    fn pairs(&self, key: &str) -> Vec<(OsString, OsString)> {
        let Some(Term::Map(pairs)) = self.get(key) else {
            return Vec::new();
        };
        pairs
            .iter()
            .filter_map(|(name, value)| Some((bytes(name)?, bytes(value)?)))
            .collect()
    }
}

fn find<'a>(fields: &'a [(Term, Term)], key: &str) -> Option<&'a Term> {
    let is_key = |name: &Term| matches!(name, Term::Atom(name) if name == key);
    fields
        .iter()
        .find(|(name, _)| is_key(name))
        .map(|(_, value)| value)
}

fn bytes(term: &Term) -> Option<OsString> {
    match term {
        Term::Binary(bytes) => Some(OsString::from_vec(bytes.clone())),
        _ => None,
    }
}

fn atom(name: &str) -> Term {
    Term::atom(name)
}

fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "enoent",
        io::ErrorKind::PermissionDenied => "eacces",
        _ => "io_error",
    }
}

/// The next term, or none when the node has closed the pipe.
fn read_frame(input: &mut impl Read) -> anyhow::Result<Option<Term>> {
    let mut length = [0; 4];
    if input.read_exact(&mut length).is_err() {
        return Ok(None);
    }
    let mut frame = Vec::new();
    let length = u64::from(u32::from_be_bytes(length));
    if input.take(length).read_to_end(&mut frame).is_err() || frame.len() as u64 != length {
        return Ok(None);
    }
    Ok(Some(decode(
        &frame,
        Limits {
            bytes: usize::MAX,
            ..Limits::default()
        },
    )?))
}

/// Write an event. When the node is gone there is nobody to tell, and the closed input ends the helper.
fn emit(elements: &[Term]) {
    let term = encode(&Term::tuple(elements.iter().cloned()));
    let mut output = io::stdout().lock();
    let length = (term.len() as u32).to_be_bytes();
    drop(
        output
            .write_all(&length)
            .and_then(|()| output.write_all(&term))
            .and_then(|()| output.flush()),
    );
}
