//! `beamtalk port-helper`: runs programs for a node, which starts it as a port.
//!
//! The node's own ports have one output pipe and cannot end what a program started. This helper gives every program separate
//! pipes and a keeper, below which everything stays that the program ever makes, and which ends all of it when it is told to,
//! when the program ends, and when the node or this helper goes away. Frames are external terms behind a 4-byte length.
//! Commands are maps with `command` (`spawn`, `write_stdin`, `close_stdin`, `kill`) and `child_id`; events are `{spawned, N}`,
//! `{spawn_failed, N, Reason}`, `{stdout, N, Bytes}`, `{stderr, N, Bytes}` and, last, `{exit, N, Code}`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use beamtalk_etf::{Limits, Term, decode, encode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use crate::{Error, Happened, Keepers, Kept, Signal, Spec, Stdin, Stop};

/// How long a program may take to end after the gentle signal.
const GRACE: Duration = Duration::from_secs(2);
/// How long output may still come once everything that could write it was ended.
const LAST_OUTPUT: Duration = Duration::from_secs(5);
/// What a program is said to have ended with when nobody knows: it was killed.
const KILLED: i64 = 137;
/// Events on their way to the node; programs that write more wait.
const EVENTS: usize = 64;

/// Events, in the order they go to the node.
type Events = mpsc::Sender<Vec<Term>>;

/// Serve the node at standard input and output until it goes away.
pub fn run_port_helper() -> io::Result<()> {
    // An interrupt at the terminal is for the node, not for the programs it runs.
    let _ = rustix::process::setsid();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve())?;
    // A thread may still read or write; nobody waits for it.
    runtime.shutdown_background();
    Ok(())
}

async fn serve() -> io::Result<()> {
    let keepers = Keepers::start(None).map_err(io::Error::other)?;
    let directory = std::env::current_dir()?;
    let (commands, mut received) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(command)) = read_frame(&mut input) {
            if commands.send(command).is_err() {
                return;
            }
        }
    });
    let (events, mut outgoing) = mpsc::channel::<Vec<Term>>(EVENTS);
    thread::spawn(move || {
        while let Some(event) = outgoing.blocking_recv() {
            emit(&event);
        }
    });
    let mut programs: BTreeMap<i64, mpsc::UnboundedSender<Order>> = BTreeMap::new();
    let mut running = JoinSet::new();
    loop {
        let command = tokio::select! {
            command = received.recv() => command,
            // The node starts another helper, which has other keepers.
            () = keepers.ended() => None,
            Some(_) = running.join_next() => continue,
        };
        let Some(command) = command else { break };
        programs.retain(|_, orders| !orders.is_closed());
        let Some(request) = Request::new(&command) else {
            continue;
        };
        if request.name == "spawn" {
            let (orders, taken) = mpsc::unbounded_channel();
            programs.insert(request.child, orders);
            let started = request.spec(directory.clone()).map(|spec| keepers.spawn(spec));
            running.spawn(program(request.child, started, taken, events.clone()));
        } else if let (Some(orders), Some(order)) = (programs.get(&request.child), Order::of(&request)) {
            // A program that has ended takes no orders.
            drop(orders.send(order));
        }
    }
    keepers.dismiss().await;
    Ok(())
}

/// What the node wants of a running program.
enum Order {
    Write(Vec<u8>),
    CloseInput,
    Kill,
}

impl Order {
    fn of(request: &Request<'_>) -> Option<Self> {
        match (request.name, request.get("data")) {
            ("write_stdin", Some(Term::Binary(data))) => Some(Self::Write(data.clone())),
            ("close_stdin", _) => Some(Self::CloseInput),
            ("kill", _) => Some(Self::Kill),
            _ => None,
        }
    }
}

/// One program, from its start to the end of everything it made.
async fn program(
    number: i64,
    asked: io::Result<Result<Kept, Error>>,
    mut orders: mpsc::UnboundedReceiver<Order>,
    events: Events,
) {
    let started = async {
        let mut kept = asked
            .map_err(|error| reason(&error))?
            .map_err(|error| refusal(&error))?;
        kept.started().await.map_err(|error| refusal(&error))?;
        Ok(kept)
    };
    let mut kept = match started.await {
        Ok(kept) => kept,
        Err(reason) => {
            tell(&events, [atom("spawn_failed"), number.into(), atom(reason)]).await;
            return;
        }
    };
    tell(&events, [atom("spawned"), number.into()]).await;
    let outputs = [
        forward("stdout", number, kept.take_stdout(), &events),
        forward("stderr", number, kept.take_stderr(), &events),
    ];
    let mut input = kept.take_stdin().map(feed);
    let stop = Stop {
        signal: Signal::TERM,
        grace: GRACE,
    };
    let code = loop {
        let happened = tokio::select! {
            happened = kept.next() => happened,
            Some(order) = orders.recv() => {
                match order {
                    // A program that has closed its input reads no more.
                    Order::Write(bytes) => drop(input.as_ref().map(|input| input.send(bytes))),
                    Order::CloseInput => input = None,
                    Order::Kill => kept.stop(stop).await,
                }
                continue;
            }
        };
        match happened {
            Some(Happened::Exited { status, .. }) => break exit_code(status),
            Some(Happened::Gone | Happened::Stuck(_)) | None => break KILLED,
        }
    };
    orders.close();
    // Whoever is left of it goes, too.
    kept.stop(stop).await;
    let last = async {
        for output in outputs {
            drop(output.await);
        }
    };
    drop(timeout(GRACE + LAST_OUTPUT, last).await);
    tell(&events, [atom("exit"), number.into(), code.into()]).await;
    while let Some(Happened::Exited { .. }) = kept.next().await {}
}

/// Write what is sent to the program's input, which closes when there is no sender any more.
fn feed(mut pipe: pipe::Sender) -> mpsc::UnboundedSender<Vec<u8>> {
    let (sender, mut data) = mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        while let Some(bytes) = data.recv().await {
            if pipe.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
    sender
}

/// Pass output on as events, to its end.
fn forward(
    name: &'static str,
    number: i64,
    output: Option<pipe::Receiver>,
    events: &Events,
) -> JoinHandle<()> {
    let events = events.clone();
    tokio::spawn(async move {
        let Some(mut output) = output else { return };
        let mut buffer = vec![0; 65536];
        while let Ok(length @ 1..) = output.read(&mut buffer).await {
            let bytes = Term::binary(buffer.get(..length).unwrap_or_default());
            tell(&events, [atom(name), number.into(), bytes]).await;
        }
    })
}

/// With the node gone there is nobody to tell.
async fn tell<const N: usize>(events: &Events, event: [Term; N]) {
    drop(events.send(event.into()).await);
}

fn exit_code(status: ExitStatus) -> i64 {
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).map_or(KILLED, i64::from)
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

    /// What to run; without a directory of its own, in that of the node.
    fn spec(&self, directory: PathBuf) -> io::Result<Spec> {
        let program = self.text("executable")?;
        Ok(Spec {
            name: program.clone(),
            program: program.into(),
            arguments: self.texts("args"),
            directory: match self.get("dir") {
                Some(Term::Binary(own)) => directory.join(OsString::from_vec(own.clone())),
                _ => directory,
            },
            environment: self
                .pairs("env")
                .into_iter()
                .map(|(name, value)| (name, Some(value)))
                .collect(),
            stdin: Stdin::Piped,
        })
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

fn refusal(error: &Error) -> &'static str {
    match error {
        Error::Start { cause, .. } | Error::Directory { cause, .. } => reason(cause),
        _ => "io_error",
    }
}

fn reason(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "enoent",
        io::ErrorKind::PermissionDenied => "eacces",
        _ => "io_error",
    }
}

/// The next term, or none when the node has closed the pipe.
fn read_frame(input: &mut impl Read) -> Result<Option<Term>, beamtalk_etf::DecodeError> {
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
