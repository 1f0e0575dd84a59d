//! The guard and its keepers, from the inside: what runs in those processes.
//!
//! The sentry forks the guard and outlasts it (see `sentry`).
//! The guard has one thread and never runs a program: it forks keepers. A keeper runs the program
//! and ends everything below it. Nobody below a keeper can leave it, since the kernel gives the
//! children of the dead to the nearest subreaper above them; so a keeper without children keeps
//! nobody, which the kernel tells without a race.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, WaitOptions, wait};

use crate::child::Spec;
use crate::members::{Ending, alive, members};
use crate::wire::{KILL, Word, decode_spec, decode_stop};

/// What is left when the supervisor, the guard or a keeper dies gets this much time.
const GRACE: Duration = Duration::from_secs(2);
/// How often those that are being ended are looked for.
const LOOK: Duration = Duration::from_millis(10);
/// How often dead keepers are looked for where the system does not tell of them.
const LOOK_FOR_KEEPERS: Duration = Duration::from_millis(50);
/// The longest spec; far above what a program may be given.
const SPEC_LIMIT: usize = 64 * 1024 * 1024;

/// What one start was given: its line to the supervisor and its standard streams.
struct Handed {
    control: OwnedFd,
    streams: [OwnedFd; 3],
}

/// What the supervisor wants of the guard.
enum Request {
    Start(Handed),
    /// `SIGKILL` to everybody, now.
    Kill,
}

/// A keeper as the guard knows it.
struct Keeper {
    /// Readable once the keeper has ended, where there is such a thing.
    handle: Option<OwnedFd>,
    /// To tell the supervisor on behalf of a keeper that died.
    control: OwnedFd,
}

/// Those without whom the guard ends everything.
struct Above {
    /// Leads to the supervisor.
    socket: OwnedFd,
    /// Closes when the sentry dies.
    sentry: PipeReader,
}

/// What the guard has to look at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    /// The supervisor has something to say.
    Request,
    /// The sentry is dead.
    NoSentry,
    /// Keepers, or nothing.
    Other,
}

/// What keepers left when they died, and who has to hear that it is gone.
struct Orphans {
    ending: Ending,
    lost: Vec<OwnedFd>,
    quiet: u8,
}

enum Loop {
    /// The guard has nothing left to do.
    Done,
    /// This process is a keeper now.
    Keep(Handed),
}

/// Be the sentry, the guard it forks, or one of the keepers that one forks, to the end. `socket`
/// leads to the supervisor.
pub(crate) fn run(socket: OwnedFd, mut ready: impl Write) -> ExitCode {
    become_subreaper();
    let Ok((sentry, held)) = io::pipe() else {
        return ExitCode::FAILURE;
    };
    match fork() {
        Ok(None) => drop(held),
        Ok(Some(guard)) => {
            // The supervisor sees the guard end by the line that only the guard holds.
            drop((socket, sentry));
            let_go_of_streams();
            crate::sentry::stand(guard, GRACE);
            return ExitCode::SUCCESS;
        }
        Err(_) => return ExitCode::FAILURE,
    }
    // A copy is none.
    become_subreaper();
    let Ok((alive, lifeline)) = io::pipe() else {
        return ExitCode::FAILURE;
    };
    if ready.write_all(b"\n").and_then(|()| ready.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    drop(ready);
    let_go_of_streams();
    match watch(Above { socket, sentry }, lifeline) {
        Loop::Done => ExitCode::SUCCESS,
        Loop::Keep(handed) => keep(handed, &alive),
    }
}

/// Nobody here has business with what the first of them was started with; the lock all of them
/// hold.
fn let_go_of_streams() {
    if let Ok(nothing) = std::fs::File::open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
}

/// Without it, as on systems that have none, only those that stay in their place are found.
fn become_subreaper() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// The guard. `lifeline` is held by nobody else, so that keepers see it close.
fn watch(above: Above, lifeline: PipeWriter) -> Loop {
    let mut above = Some(above);
    let mut lifeline = Some(lifeline);
    let mut keepers: BTreeMap<u32, Keeper> = BTreeMap::new();
    let mut orphans: Option<Orphans> = None;
    let mut is_killing = false;
    loop {
        if is_killing {
            kill_everybody(&keepers);
        }
        let lost = reap(&mut keepers);
        if !lost.is_empty() {
            let found = orphans.get_or_insert_with(|| Orphans {
                ending: Ending::new(Signal::TERM, GRACE),
                lost: Vec::new(),
                quiet: 0,
            });
            found.lost.extend(lost);
            found.quiet = 0;
        }
        if let Some(found) = &mut orphans
            && found.are_gone(&keepers)
        {
            orphans = None;
        }
        if above.is_none() && keepers.is_empty() && orphans.is_none() {
            return Loop::Done;
        }
        let news = wait_for_news(above.as_ref(), &keepers, orphans.is_some() || is_killing);
        if news == News::NoSentry {
            (above, lifeline) = (None, None);
        }
        let Some(open) = above.as_ref().filter(|_| news == News::Request) else {
            continue;
        };
        match receive(open.socket.as_fd()) {
            Ok(Some(Request::Kill)) => is_killing = true,
            Ok(Some(Request::Start(handed))) => match fork() {
                Ok(None) => {
                    // From here on a keeper: nothing of the guard's stays open in it.
                    drop((above, keepers, orphans, lifeline));
                    return Loop::Keep(handed);
                }
                Ok(Some(id)) => {
                    let Handed { control, .. } = handed;
                    keepers.insert(
                        id.as_raw_nonzero().get().unsigned_abs(),
                        Keeper {
                            handle: handle_of(id),
                            control,
                        },
                    );
                }
                Err(error) => say(
                    handed.control.as_fd(),
                    Word::Refused(error.raw_os_error().unwrap_or(0)),
                ),
            },
            Ok(None) => {}
            // The supervisor has ended: so does every keeper, whoever still holds its line.
            Err(_) => (above, lifeline) = (None, None),
        }
    }
}

/// Wait until something happened.
fn wait_for_news(above: Option<&Above>, keepers: &BTreeMap<u32, Keeper>, is_ending: bool) -> News {
    let mut all: Vec<PollFd<'_>> = above
        .map(|above| [above.sentry.as_fd(), above.socket.as_fd()])
        .into_iter()
        .flatten()
        .chain(
            keepers
                .values()
                .filter_map(|keeper| keeper.handle.as_ref())
                .map(AsFd::as_fd),
        )
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let is_blind = keepers.values().any(|keeper| keeper.handle.is_none());
    let limit = if is_ending {
        Some(LOOK)
    } else {
        is_blind.then_some(LOOK_FOR_KEEPERS)
    };
    // Interrupted or not: everything is looked at again.
    let _ = poll_for(&mut all, limit);
    let has_news =
        |index: usize| above.is_some() && all.get(index).is_some_and(|one| !one.revents().is_empty());
    if has_news(0) {
        News::NoSentry
    } else if has_news(1) {
        News::Request
    } else {
        News::Other
    }
}

fn poll_for(all: &mut [PollFd<'_>], limit: Option<Duration>) -> Result<usize, Errno> {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    poll(all, limit.as_ref())
}

#[cfg(target_os = "linux")]
fn handle_of(id: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn handle_of(_: Pid) -> Option<OwnedFd> {
    None
}

/// Collect the dead. Gives the lines of keepers that died before their time.
fn reap(keepers: &mut BTreeMap<u32, Keeper>) -> Vec<OwnedFd> {
    let mut lost = Vec::new();
    while let Ok(Some((id, status))) = wait(WaitOptions::NOHANG) {
        if let Some(keeper) = keepers.remove(&id.as_raw_nonzero().get().unsigned_abs())
            && status.exit_status() != Some(0)
        {
            lost.push(keeper.control);
        }
    }
    lost
}

impl Orphans {
    /// End them; true when none is found twice in a row, or none can be ended, and it was told.
    fn are_gone(&mut self, keepers: &BTreeMap<u32, Keeper>) -> bool {
        let kept: BTreeSet<u32> = keepers.keys().copied().collect();
        let left = alive(&members(&kept));
        self.ending.step(&left);
        self.quiet = if left.is_empty() { self.quiet + 1 } else { 0 };
        let stuck = self.ending.stuck(&left);
        let is_over = self.quiet >= 2 || !left.is_empty() && !stuck.is_empty();
        if is_over {
            for line in &self.lost {
                for &id in &stuck {
                    say(line.as_fd(), Word::Stuck(id));
                }
                say(
                    line.as_fd(),
                    if stuck.is_empty() {
                        Word::Lost
                    } else {
                        Word::StopFailed
                    },
                );
            }
        }
        is_over
    }
}

/// Everything below the keepers; they go by themselves when nobody is left.
fn kill_everybody(keepers: &BTreeMap<u32, Keeper>) {
    let mut everybody = members(&BTreeSet::new());
    everybody.retain(|member| !keepers.contains_key(&member.id));
    Ending::new(Signal::KILL, Duration::ZERO).step(&everybody);
}

/// Take what the supervisor wants: none when it makes no sense, an error when it is gone.
fn receive(socket: BorrowedFd<'_>) -> io::Result<Option<Request>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = match recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    ) {
        Ok(received) => received,
        Err(Errno::INTR | Errno::AGAIN) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if received.bytes == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let mut handed = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => rights.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let mut next = || handed.next();
    Ok(match byte {
        [KILL] => Some(Request::Kill),
        _ => (|| {
            Some(Request::Start(Handed {
                control: next()?,
                streams: [next()?, next()?, next()?],
            }))
        })(),
    })
}

/// Make a second process of this one. Gives its id here, and nothing there.
#[expect(
    unsafe_code,
    reason = "a keeper is a copy of the guard; starting the binary anew for each would cost more than the program it keeps"
)]
fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: sentry and guard have a single thread, so the copy is complete: no lock is held by a thread
    // that does not exist in it.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        id if id > 0 => Ok(Pid::from_raw(id)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn say(line: BorrowedFd<'_>, word: Word) {
    // A supervisor that is gone needs to hear nothing.
    let _ = rustix::io::write(line, &word.encode());
}

/// What the thread that collects the dead has seen.
enum Seen {
    Leader { status: i32, alone: bool },
    Empty,
}

/// The keeper: run the program, end what is below when it is time, go when nobody is left.
fn keep(handed: Handed, guard: &PipeReader) -> ExitCode {
    become_subreaper();
    name_keeper();
    let Handed { control, streams } = handed;
    let mut control = UnixStream::from(control);
    let Some(spec) = read_spec(&mut control) else {
        return ExitCode::SUCCESS;
    };
    let leader = match start(&spec, streams) {
        Ok(leader) => leader,
        Err(error) => {
            let number = error.raw_os_error().unwrap_or(0);
            let is_directory = std::fs::metadata(&spec.directory).is_ok_and(|found| found.is_dir());
            let word = if is_directory {
                Word::Refused(number)
            } else {
                Word::NoDirectory(number)
            };
            say(control.as_fd(), word);
            return ExitCode::SUCCESS;
        }
    };
    say(control.as_fd(), Word::Started(leader));
    let Ok((woken, waker)) = io::pipe() else {
        // Dying lets the guard end the program.
        return ExitCode::FAILURE;
    };
    let (seen, sight) = channel();
    let collector = std::thread::Builder::new()
        .stack_size(128 * 1024)
        .spawn(move || collect(leader, &seen, waker));
    if collector.is_err() {
        return ExitCode::FAILURE;
    }
    Keeping {
        control,
        commands: Vec::new(),
        is_alone: false,
        ending: None,
        has_failed: false,
    }
    .run(guard, woken, &sight)
}

fn name_keeper() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"beamtalk-keeper");
}

fn read_spec(control: &mut UnixStream) -> Option<Spec> {
    let mut length = [0; 4];
    control.read_exact(&mut length).ok()?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    if length > SPEC_LIMIT {
        return None;
    }
    let mut body = vec![0; length];
    control.read_exact(&mut body).ok()?;
    decode_spec(&body)
}

fn start(spec: &Spec, streams: [OwnedFd; 3]) -> io::Result<u32> {
    let [stdin, stdout, stderr] = streams;
    let mut command = spec.command();
    command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    // Collected by the thread that collects everybody.
    Ok(command.spawn()?.id())
}

/// Collect children until there are none. A subreaper without children has no descendants.
fn collect(leader: u32, seen: &Sender<Seen>, mut waker: PipeWriter) {
    let mut tell = |what| {
        // The other thread lives as long as the process.
        drop(seen.send(what));
        drop(waker.write_all(b"."));
    };
    let mut last = None;
    loop {
        // The leader's end is told together with whether others are left.
        let options = if last.is_some() {
            WaitOptions::NOHANG
        } else {
            WaitOptions::empty()
        };
        match wait(options) {
            Ok(Some((id, status))) if id.as_raw_nonzero().get().unsigned_abs() == leader => {
                last = Some(status.as_raw());
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => {
                if let Some(status) = last.take() {
                    tell(Seen::Leader { status, alone: false });
                }
            }
            Err(_) => {
                if let Some(status) = last.take() {
                    tell(Seen::Leader { status, alone: true });
                }
                tell(Seen::Empty);
                return;
            }
        }
    }
}

/// A keeper at work.
struct Keeping {
    control: UnixStream,
    /// What has arrived of the next command.
    commands: Vec<u8>,
    /// Supervisor or guard are gone: everything is ended, then this process.
    is_alone: bool,
    ending: Option<Ending>,
    /// The stop was reported as failed.
    has_failed: bool,
}

impl Keeping {
    fn run(mut self, guard: &PipeReader, mut woken: PipeReader, sight: &Receiver<Seen>) -> ExitCode {
        loop {
            let (told, ordered, orphaned) = {
                let mut all = vec![PollFd::new(&woken, PollFlags::IN)];
                if !self.is_alone {
                    // Lines that are closed would keep this awake.
                    all.push(PollFd::new(&self.control, PollFlags::IN));
                    all.push(PollFd::new(guard, PollFlags::IN));
                }
                let _ = poll_for(&mut all, self.ending.is_some().then_some(LOOK));
                let has_news = |index: usize| all.get(index).is_some_and(|one| !one.revents().is_empty());
                (has_news(0), has_news(1), has_news(2))
            };
            if told {
                let mut bytes = [0; 16];
                drop(woken.read(&mut bytes));
                while let Ok(seen) = sight.try_recv() {
                    match seen {
                        Seen::Leader { status, alone: true } => self.say(Word::EndedAlone(status)),
                        Seen::Leader { status, alone: false } => self.say(Word::EndedLeaving(status)),
                        Seen::Empty => {
                            self.say(Word::Gone);
                            return ExitCode::SUCCESS;
                        }
                    }
                }
            }
            if ordered {
                self.obey();
            }
            if orphaned {
                self.is_alone = true;
            }
            if self.is_alone {
                self.end(Signal::TERM, GRACE);
            }
            if let Some(ending) = &mut self.ending {
                let left = members(&BTreeSet::new());
                ending.step(&left);
                let stuck = ending.stuck(&left);
                if !stuck.is_empty() && !left.is_empty() {
                    if self.is_alone {
                        return ExitCode::SUCCESS;
                    }
                    if !std::mem::replace(&mut self.has_failed, true) {
                        for id in stuck {
                            self.say(Word::Stuck(id));
                        }
                        self.say(Word::StopFailed);
                    }
                }
            }
        }
    }

    fn say(&self, word: Word) {
        say(self.control.as_fd(), word);
    }

    /// Take what the supervisor wants. Its end is a wish, too.
    fn obey(&mut self) {
        let mut bytes = [0; 64];
        match self.control.read(&mut bytes) {
            Ok(0) => self.is_alone = true,
            Ok(count) => self
                .commands
                .extend_from_slice(bytes.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_alone = true,
        }
        while let Some((command, rest)) = self.commands.split_first_chunk::<8>() {
            let stop = decode_stop(*command);
            self.commands = rest.to_vec();
            self.has_failed = false;
            self.end(stop.signal, stop.grace);
        }
    }

    fn end(&mut self, signal: Signal, grace: Duration) {
        match &mut self.ending {
            Some(ending) => ending.hurry(grace),
            None => self.ending = Some(Ending::new(signal, grace)),
        }
    }
}
