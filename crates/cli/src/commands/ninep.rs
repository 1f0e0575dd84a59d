//! `beamtalk 9p`: a general 9P client.

mod listing;
mod people;

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use beamtalk_agents::{Door, Proof, Trust, candidates, connect, connect_to};
use beamtalk_ninep::{Attachment, Client, Error, File, NOTAG, Stat};
use beamtalk_repl::harmless::{Sink, harmless};
use clap::{Args, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Exit;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Skip authentication.
    #[arg(short = 'n')]
    no_auth: bool,
    /// Print messages to standard error.
    #[arg(short = 'D')]
    trace: bool,
    /// The server: `unix!/path` or an absolute path.
    #[arg(short = 'a', value_name = "ADDR")]
    address: Option<String>,
    /// The attach specifier.
    #[arg(short = 'A', value_name = "ANAME", default_value = "")]
    aname: String,
    /// A file with a capability token.
    #[arg(short = 'T', value_name = "TOKENFILE")]
    token_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Copy a file to standard output.
    Read { path: String },
    /// Write text or standard input to a file.
    Write {
        /// Create the file if it is missing.
        #[arg(short = 'c')]
        create: bool,
        /// One write per line.
        #[arg(short = 'l')]
        lines: bool,
        /// Without truncation.
        #[arg(short = 't')]
        keep: bool,
        path: String,
        text: Option<String>,
    },
    /// Write a request and read its answer on the same open file.
    Rpc { path: String, text: String },
    /// Line by line: print an answer, send a line of standard input.
    Rdwr { path: String },
    /// List directories.
    Ls {
        #[arg(short = 'l')]
        long: bool,
        /// The directory itself.
        #[arg(short = 'd')]
        directory: bool,
        /// Unsorted.
        #[arg(short = 'n')]
        unsorted: bool,
        /// By time.
        #[arg(short = 't')]
        by_time: bool,
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Show what is known about files.
    Stat {
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Create files.
    Create {
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Remove files.
    Rm {
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Copy a file; a path that begins with `./`, `../` or `/` is on this machine, and so is `-`.
    Cp { from: String, to: String },
    /// Print files.
    Cat {
        /// Go on with what is added.
        #[arg(short = 'f')]
        follow: bool,
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// Change a file with `$VISUAL` or `$EDITOR`.
    Edit { path: String },
    /// Show a directory and all below it.
    Tree {
        /// So many levels.
        #[arg(short = 'L', value_name = "N")]
        levels: Option<usize>,
        path: String,
    },
    /// Print the paths of files whose name fits; `*` and `?` stand for others.
    Find {
        path: String,
        #[arg(default_value = "*")]
        name: String,
    },
    /// Print the lines that match an expression, with their files.
    Grep {
        /// Small and capital letters are the same.
        #[arg(short = 'i')]
        ignore_case: bool,
        pattern: String,
        #[arg(required = true)]
        paths: Vec<String>,
    },
    /// What a shell completes a path with.
    #[command(hide = true)]
    Complete {
        #[arg(default_value = "")]
        begun: String,
    },
    /// A two-way terminal.
    Con {
        /// Keep carriage returns.
        #[arg(short = 'r')]
        raw: bool,
        path: String,
    },
}

/// Why a command failed.
enum Failure {
    Usage(String),
    Unreachable(String),
    Failed(String),
    BrokenPipe,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Failure::BrokenPipe
        } else {
            Failure::Failed(error.to_string())
        }
    }
}

/// Exit code when no server can be reached.
const UNREACHABLE: u8 = 3;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (text, exit) = match dispatch(arguments) {
        Ok(()) | Err(Failure::BrokenPipe) => return Ok(Exit::Success),
        Err(Failure::Usage(text)) => (text, Exit::Usage),
        Err(Failure::Unreachable(text)) => (text, Exit::Code(UNREACHABLE)),
        Err(Failure::Failed(text)) => (text, Exit::Failure),
    };
    let mut said = format!("beamtalk 9p: {text}");
    if std::io::stderr().is_terminal() {
        said = harmless(said.as_bytes());
    }
    writeln!(std::io::stderr(), "{said}")?;
    Ok(exit)
}

/// A connection and a path on it.
struct Remote {
    tree: Attachment,
    /// As the user wrote it.
    shown: String,
    path: String,
}

impl Remote {
    fn failed(&self, what: &str, error: &Error) -> Failure {
        Failure::Failed(format!("{what} {}: {error}", self.shown))
    }

    fn stat(&self) -> Result<Stat, Failure> {
        self.tree
            .stat(&self.path)
            .map_err(|error| self.failed("stat", &error))
    }

    fn open(&self, mode: u8) -> Result<File, Failure> {
        self.tree
            .open(&self.path, mode)
            .map_err(|error| self.failed("open", &error))
    }
}

fn reach(arguments: &Arguments, shown: &str) -> Result<Remote, Failure> {
    let proof = if arguments.no_auth {
        Proof::Nothing
    } else {
        Proof::from_environment(arguments.token_file.as_deref())?
    };
    let (stream, namespace, service, path) = match &arguments.address {
        Some(address) => {
            let socket = Path::new(address.strip_prefix("unix!").unwrap_or(address));
            if !socket.is_absolute() {
                let text = format!("bad address {address}: must be unix!/path or an absolute path");
                return Err(Failure::Usage(text));
            }
            let stream =
                connect_to(socket, Trust::Named).map_err(|door| Failure::Unreachable(door.to_string()))?;
            (
                stream,
                socket.parent().map(Path::to_owned),
                address.clone(),
                shown.to_owned(),
            )
        }
        None => {
            let (service, path) = shown.split_once('/').unwrap_or((shown, ""));
            if matches!(service, "" | "." | "..") {
                let text = format!("bad path '{shown}': must begin with a service, as in agent/list");
                return Err(Failure::Usage(text));
            }
            let (stream, namespace) =
                connect(&candidates(), service).map_err(|door| Failure::Unreachable(door.to_string()))?;
            (stream, Some(namespace), service.to_owned(), path.to_owned())
        }
    };
    let entered = Door::enter(
        stream,
        namespace.as_deref(),
        &proof,
        &arguments.aname,
        arguments.trace,
        None,
    );
    let tree = entered.map_err(|door| match door {
        Door::Auth(error) => Failure::Failed(format!("auth {service}: {error}")),
        Door::Attach(error) => Failure::Failed(format!("attach {service}: {error}")),
        other => Failure::Unreachable(other.to_string()),
    })?;
    Ok(Remote {
        tree,
        shown: shown.to_owned(),
        path,
    })
}

fn dispatch(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Command::Read { path } => {
            let remote = reach(arguments, path)?;
            let mut file = remote.open(0)?;
            copy(&remote, &mut file)
        }
        Command::Write {
            create,
            lines,
            keep,
            path,
            text,
        } => {
            let remote = reach(arguments, path)?;
            write(&remote, *create, *lines, *keep, text.as_deref())
        }
        Command::Rpc { path, text } => {
            let remote = reach(arguments, path)?;
            let mut file = remote.open(2)?;
            file.write_document(text.as_bytes())
                .map_err(|error| remote.failed("write", &error))?;
            copy(&remote, &mut file)
        }
        Command::Rdwr { path } => {
            let remote = reach(arguments, path)?;
            let mut file = remote.open(2)?;
            let mut out = Sink::stdout();
            let mut lines = std::io::stdin().lock().lines();
            loop {
                match file.read_next(None) {
                    Ok(piece) => out.piece(piece.as_ref())?,
                    Err(error) => out.piece(format!("{error}\n").as_bytes())?,
                }
                out.end()?;
                let Some(line) = lines.next().transpose()? else {
                    return Ok(());
                };
                if let Err(error) = file.write_document(line.as_bytes()) {
                    out.piece(format!("{error}\n").as_bytes())?;
                }
            }
        }
        Command::Ls {
            long,
            directory,
            unsorted,
            by_time,
            paths,
        } => {
            let order = listing::Order::of(*unsorted, *by_time);
            for path in paths {
                let remote = reach(arguments, path)?;
                let stat = remote.stat()?;
                let stats = if stat.is_directory() && !directory {
                    remote
                        .tree
                        .list(&remote.path)
                        .map_err(|error| remote.failed("open", &error))?
                } else {
                    vec![stat]
                };
                let mut lines = Vec::new();
                listing::print(&mut lines, stats, order, *long)?;
                print(&lines)?;
            }
            Ok(())
        }
        Command::Stat { paths } => {
            for path in paths {
                let remote = reach(arguments, path)?;
                let stat = remote.stat()?;
                print(format!("{}\n", listing::stat_line(&stat)).as_bytes())?;
            }
            Ok(())
        }
        Command::Create { paths } => {
            for path in paths {
                let remote = reach(arguments, path)?;
                let made = remote.tree.create(&remote.path, 0o600, 1);
                made.and_then(File::close)
                    .map_err(|error| remote.failed("create", &error))?;
            }
            Ok(())
        }
        Command::Rm { paths } => {
            for path in paths {
                let remote = reach(arguments, path)?;
                remote
                    .tree
                    .remove(&remote.path)
                    .map_err(|error| remote.failed("remove", &error))?;
            }
            Ok(())
        }
        Command::Cp { from, to } => people::cp(arguments, from, to),
        Command::Cat { follow, paths } => people::cat(arguments, paths, *follow),
        Command::Edit { path } => people::edit(arguments, path),
        Command::Tree { levels, path } => people::tree(arguments, path, *levels),
        Command::Find { path, name } => people::find(arguments, path, name),
        Command::Grep {
            ignore_case,
            pattern,
            paths,
        } => people::grep(arguments, pattern, paths, *ignore_case),
        Command::Complete { begun } => people::complete(arguments, begun),
        Command::Con { raw, path } => con(&reach(arguments, path)?, *raw),
    }
}

/// Copy until the end of the file, or until interrupted: the blocked read is flushed then.
fn copy(remote: &Remote, file: &mut File) -> Result<(), Failure> {
    let under_way = flush_when_interrupted(remote.tree.client().clone())?;
    let mut out = Sink::stdout();
    loop {
        let pending = file.start_read().map_err(|error| remote.failed("read", &error))?;
        under_way.store(pending.tag().into(), Ordering::Relaxed);
        let piece = match file.finish_read(pending, None) {
            Ok(piece) if piece.is_empty() => return Ok(out.end()?),
            Err(Error::Refused(refused)) if refused.text == "interrupted" => return Ok(out.end()?),
            outcome => outcome.map_err(|error| remote.failed("read", &error))?,
        };
        out.piece(piece.as_ref())?;
    }
}

/// Bytes that are there as a whole.
fn print(bytes: &[u8]) -> std::io::Result<()> {
    let mut out = Sink::stdout();
    out.piece(bytes)?;
    out.end()
}

/// The tag to flush on an interrupt, to be set by the reader.
fn flush_when_interrupted(client: Client) -> Result<Arc<AtomicU32>, Failure> {
    let under_way = Arc::new(AtomicU32::new(u32::from(NOTAG)));
    let tag = Arc::clone(&under_way);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    let mut interrupts = {
        let _inside = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    std::thread::spawn(move || {
        runtime.block_on(interrupts.recv());
        // Again if the reader was between two reads; the end of the program ends this too.
        while let Ok(tag) = u16::try_from(tag.load(Ordering::Relaxed)) {
            if client.interrupt(tag).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    });
    Ok(under_way)
}

fn write(remote: &Remote, create: bool, lines: bool, keep: bool, text: Option<&str>) -> Result<(), Failure> {
    let bytes = match text {
        Some(text) => text.as_bytes().to_vec(),
        None => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let mode = if keep { 1 } else { 0x11 };
    let opened = match remote.tree.open(&remote.path, mode) {
        Err(Error::Refused(refused)) if create && refused.text == "not found" => remote
            .tree
            .create(&remote.path, 0o600, 1)
            .map_err(|error| remote.failed("create", &error)),
        outcome => outcome.map_err(|error| remote.failed("open", &error)),
    };
    let mut file = opened?;
    let failed = |error: Error| remote.failed("write", &error);
    if lines {
        let mut offset = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            file.write_at(offset, line).map_err(failed)?;
            offset += line.len() as u64;
        }
    } else {
        file.write_document(&bytes).map_err(failed)?;
    }
    file.close().map_err(|error| remote.failed("close", &error))
}

/// Lines go out while answers come in, on one open file: a file that answers requests answers
/// here, and the first line to a stream says where it starts.
fn con(remote: &Remote, raw: bool) -> Result<(), Failure> {
    let mut reader = remote.open(2)?;
    let writer = reader.writer();
    let (sent, was_sent) = std::sync::mpsc::channel();
    let shown = remote.shown.clone();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if let Err(error) = writer.write_at(0, format!("{line}\n").as_bytes()) {
                // A closed standard error leaves nobody to tell.
                drop(writeln!(std::io::stderr(), "beamtalk 9p: write {shown}: {error}"));
            }
            if sent.send(()).is_err() {
                return;
            }
        }
    });
    let mut out = Sink::stdout();
    loop {
        let piece = reader.read_next(None);
        let piece = piece.map_err(|error| remote.failed("read", &error))?;
        if piece.is_empty() {
            // Nothing more, unless another line asks for it.
            match was_sent.recv() {
                Ok(()) => continue,
                Err(_) => return Ok(out.end()?),
            }
        }
        let kept: Vec<u8> = piece
            .as_ref()
            .iter()
            .copied()
            .filter(|byte| raw || *byte != b'\r')
            .collect();
        out.piece(&kept)?;
    }
}
