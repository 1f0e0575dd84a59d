//! The guard and its keepers, as the supervisor sees them.
//!
//! The guard is a second, tiny process. For every start it makes a keeper, a process below which
//! everything stays that the start ever makes (see `members`), and which ends it all when it is
//! told to, when the supervisor dies and when the guard dies. When a keeper dies, what it kept
//! falls to the guard, which ends it. Above the guard stands a sentry, to which everything falls
//! when the guard dies (see `sentry`). They may hold a lock file, which thereby stays locked
//! until everything is gone.

use std::fs::File;
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::child::{Spec, Stdin, Stop};
use crate::error::Error;
use crate::wire::{KILL, Record, START, Word, encode_spec, encode_stop};

/// The first argument that makes the binary a guard of keepers. See [`crate::run_guard_if_asked`].
pub const KEEPERS_ARGUMENT: &str = "__keepers";

/// The running guard. Dropping it ends everything that was started through it.
#[derive(Debug)]
pub struct Keepers {
    /// Leads to the guard, which never says anything on it.
    socket: UnixStream,
    /// The sentry, the last to go.
    process: tokio::process::Child,
}

/// One start: a program and everything it makes.
#[derive(Debug)]
pub struct Kept {
    control: UnixStream,
    /// What has arrived of the next report.
    received: Vec<u8>,
    /// The spec, until it is sent.
    spec: Option<Spec>,
    stdin: Option<OwnedFd>,
    stdout: Option<pipe::Receiver>,
    stderr: Option<pipe::Receiver>,
    stuck: Vec<u32>,
    has_exited: bool,
}

/// What happens to a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The program ended; `alone` when nobody else is left of the start.
    Exited { status: ExitStatus, alone: bool },
    /// Nobody is left. The last word.
    Gone,
    /// These do not end, by no means.
    Stuck(Vec<u32>),
}

impl Keepers {
    /// Start the guard and wait until it is in a session of its own. It keeps `lock` open, and
    /// with it any lock on that file, until it ends.
    pub fn start(lock: Option<&File>) -> Result<Self, Error> {
        Self::try_start(lock).map_err(Error::Guard)
    }

    fn try_start(lock: Option<&File>) -> io::Result<Self> {
        let (socket, theirs) = pair()?;
        let (mut hello, ready) = io::pipe()?;
        let held = match lock {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        };
        let process = tokio::process::Command::new(std::env::current_exe()?)
            .arg(KEEPERS_ARGUMENT)
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::from(ready))
            .stderr(held)
            .spawn()?;
        hello.read_exact(&mut [0])?;
        Ok(Self {
            socket: asynchronous(socket)?,
            process,
        })
    }

    /// The process id of the sentry, below which all of them are.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Resolves when guard or sentry have ended, which they should not do before they are
    /// dismissed. What was started may be there until [`Keepers::dismiss`] returns.
    pub async fn ended(&self) {
        // All there ever is to read is the end.
        drop(self.socket.readable().await);
    }

    /// End what is still there, and wait until guard, sentry and their lock are gone.
    pub async fn dismiss(self) {
        let Self { socket, mut process } = self;
        drop(socket);
        drop(process.wait().await);
    }

    /// `SIGKILL` to everything that was started, now, without waiting.
    pub fn kill_all(&self) {
        // Without a guard the keepers end what they keep anyway.
        let _ = rustix::net::send(&self.socket, &[KILL], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Ask for a start. Whether it came about is told by [`Kept::started`].
    pub fn spawn(&self, spec: Spec) -> Result<Kept, Error> {
        self.try_spawn(spec).map_err(Error::Guard)
    }

    fn try_spawn(&self, spec: Spec) -> io::Result<Kept> {
        let (control, their_control) = pair()?;
        let (their_input, stdin) = match spec.stdin {
            Stdin::Null => (OwnedFd::from(File::open("/dev/null")?), None),
            Stdin::Held | Stdin::Piped => {
                let (reader, writer) = io::pipe()?;
                (OwnedFd::from(reader), Some(OwnedFd::from(writer)))
            }
        };
        let (stdout, their_output) = io::pipe()?;
        let (stderr, their_errors) = io::pipe()?;
        let handed = [
            their_control.as_fd(),
            their_input.as_fd(),
            their_output.as_fd(),
            their_errors.as_fd(),
        ];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&handed));
        // A guard that takes nothing any more must not stop the supervisor.
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.socket, &[IoSlice::new(&[START])], &mut ancillary, flags)?;
        Ok(Kept {
            control: asynchronous(control)?,
            received: Vec::new(),
            spec: Some(spec),
            stdin,
            stdout: Some(pipe::Receiver::from_owned_fd(stdout.into())?),
            stderr: Some(pipe::Receiver::from_owned_fd(stderr.into())?),
            stuck: Vec::new(),
            has_exited: false,
        })
    }
}

fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn asynchronous(socket: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(socket);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

impl Kept {
    /// The standard input of a program with [`Stdin::Piped`]; it closes when this is dropped.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        pipe::Sender::from_owned_fd(self.stdin.take()?).ok()
    }

    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    pub fn take_stderr(&mut self) -> Option<pipe::Receiver> {
        self.stderr.take()
    }

    /// Say what to run, and wait until it runs: gives the id of the program.
    pub async fn started(&mut self) -> Result<u32, Error> {
        let lost = || Error::Guard(io::ErrorKind::BrokenPipe.into());
        let spec = self.spec.take().ok_or_else(lost)?;
        self.control
            .write_all(&encode_spec(&spec))
            .await
            .map_err(Error::Guard)?;
        match self.word().await {
            Some(Word::Started(id)) => Ok(id),
            Some(Word::Refused(error)) => Err(Error::Start {
                program: spec.program,
                cause: io::Error::from_raw_os_error(error),
            }),
            Some(Word::NoDirectory(error)) => Err(Error::Directory {
                directory: spec.directory,
                cause: io::Error::from_raw_os_error(error),
            }),
            Some(_) | None => Err(lost()),
        }
    }

    /// What happens next; none when the guard is gone. May be dropped and called again.
    pub async fn next(&mut self) -> Option<Happened> {
        loop {
            return Some(match self.word().await? {
                Word::EndedAlone(status) => self.exited(status, true),
                Word::EndedLeaving(status) => self.exited(status, false),
                Word::Lost if !self.has_exited => {
                    // How it ended nobody knows; it was ended, and nothing is left.
                    let last = Word::Gone.encode();
                    self.received.splice(0..0, last);
                    self.exited(Signal::KILL.as_raw(), true)
                }
                Word::Gone | Word::Lost => Happened::Gone,
                Word::StopFailed => Happened::Stuck(std::mem::take(&mut self.stuck)),
                Word::Stuck(id) => {
                    self.stuck.push(id);
                    continue;
                }
                Word::Started(_) | Word::Refused(_) | Word::NoDirectory(_) => continue,
            });
        }
    }

    fn exited(&mut self, status: i32, alone: bool) -> Happened {
        self.has_exited = true;
        Happened::Exited {
            status: ExitStatus::from_raw(status),
            alone,
        }
    }

    async fn word(&mut self) -> Option<Word> {
        loop {
            if let Some((record, rest)) = self.received.split_first_chunk::<5>() {
                let record: Record = *record;
                self.received = rest.to_vec();
                return Word::decode(record);
            }
            if self.control.read_buf(&mut self.received).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// End the program and everything it made: the gentle signal, end of input, and after the
    /// grace `SIGKILL`. [`Kept::next`] tells how it went.
    pub async fn stop(&mut self, how: Stop) {
        drop(self.stdin.take());
        // A keeper that is gone has nothing left to stop, and the guard says so.
        drop(self.control.write_all(&encode_stop(how)).await);
    }
}
