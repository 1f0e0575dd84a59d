//! Standard input and output of the server. What the system can tell us about, such as a pipe, is read and written in the one
//! thread that works: handing a line to another thread takes longer than most answers.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use beamtalk_mcp::{Line, LineReader};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

/// What is read at once.
const PIECE: usize = 64 * 1024;
/// Pieces that a thread reads ahead.
const AHEAD: usize = 4;
/// What a pipe takes as a whole once it takes anything; longer lines may have to wait for their reader.
const AT_ONCE: usize = 4_096;

pub(super) struct Input {
    source: Source,
    lines: LineReader,
    ready: VecDeque<Line>,
    is_over: bool,
}

enum Source {
    Told {
        input: AsyncFd<OwnedFd>,
        piece: Vec<u8>,
    },
    /// A thread that waits, for files and devices.
    Read(mpsc::Receiver<Vec<u8>>),
}

impl Input {
    pub(super) fn open() -> Self {
        let source = match registered() {
            Some(input) => Source::Told {
                input,
                piece: vec![0; PIECE],
            },
            None => Source::Read(read_apart()),
        };
        Self {
            source,
            lines: LineReader::default(),
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            let read;
            let bytes = match &mut self.source {
                Source::Told { input, piece } => told(input, piece).await,
                Source::Read(pieces) => {
                    read = pieces.recv().await.unwrap_or_default();
                    &read
                }
            };
            self.is_over = bytes.is_empty();
            self.ready.extend(self.lines.take(bytes));
            if self.is_over {
                self.ready.extend(self.lines.end());
            }
        }
    }
}

/// Standard input, if the system tells when there is something to read.
fn registered() -> Option<AsyncFd<OwnedFd>> {
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    #[expect(unsafe_code, reason = "a descriptor must stay open while it is watched")]
    // SAFETY: the descriptor is owned by what is returned and by nobody else.
    unsafe { AsyncFd::register_with_interest(input, Interest::READABLE) }.ok()
}

/// The next bytes; none at the end.
async fn told<'a>(input: &AsyncFd<OwnedFd>, piece: &'a mut [u8]) -> &'a [u8] {
    let length = loop {
        let Ok(mut told) = input.readable().await else {
            break 0;
        };
        // The stream belongs to others too and is not switched to one that never waits, so it is asked first.
        if !is_ready(input.get_ref().as_fd(), PollFlags::IN) {
            told.clear_ready();
            continue;
        }
        match rustix::io::read(input.get_ref(), &mut *piece) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            read => break read.unwrap_or(0),
        }
    };
    piece.get(..length).unwrap_or_default()
}

fn is_ready(stream: BorrowedFd<'_>, flags: PollFlags) -> bool {
    let mut streams = [PollFd::new(&stream, flags)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut streams, Some(&now)).is_ok_and(|found| found > 0)
}

fn read_apart() -> mpsc::Receiver<Vec<u8>> {
    let (sender, pieces) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut piece = vec![0; PIECE];
        loop {
            match rustix::io::read(std::io::stdin(), &mut piece) {
                Err(Errno::INTR) => {}
                Err(_) | Ok(0) => break,
                Ok(length) => {
                    let read = piece.get(..length).unwrap_or_default().to_vec();
                    if sender.blocking_send(read).is_err() {
                        break;
                    }
                }
            }
        }
    });
    pieces
}

pub(super) struct Output {
    answers: mpsc::UnboundedReceiver<String>,
    /// To a thread that writes, so that a client that does not read holds up nobody else; it tells what was written.
    apart: mpsc::UnboundedSender<(Vec<u8>, usize)>,
    told: mpsc::UnboundedReceiver<usize>,
    /// Bytes the thread has not written yet.
    behind: usize,
}

impl Output {
    pub(super) fn open(answers: mpsc::UnboundedReceiver<String>) -> Self {
        let (apart, told) = write_apart();
        Self {
            answers,
            apart,
            told,
            behind: 0,
        }
    }

    /// How many bytes of answers were written next; `None` when nobody reads any more.
    pub(super) async fn written(&mut self) -> Option<usize> {
        loop {
            tokio::select! {
                text = self.answers.recv() => {
                    let text = text?;
                    let bytes = text.len();
                    if self.write(text)? {
                        return Some(bytes);
                    }
                }
                lines = self.told.recv() => {
                    let bytes = lines?;
                    self.behind = self.behind.saturating_sub(bytes);
                    return Some(bytes);
                }
            }
        }
    }

    /// Write a line at once if that needs no waiting; says whether it did.
    fn write(&mut self, text: String) -> Option<bool> {
        let bytes = text.len();
        let mut line = text.into_bytes();
        line.push(b'\n');
        let output = std::io::stdout();
        if self.behind == 0 && line.len() <= AT_ONCE && is_ready(output.as_fd(), PollFlags::OUT) {
            match rustix::io::write(&output, &line) {
                Ok(length) if length == line.len() => return Some(true),
                Ok(length) => drop(line.drain(..length)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return None,
            }
        }
        self.behind += bytes;
        self.apart.send((line, bytes)).ok()?;
        Some(false)
    }
}

/// Write all of it, however long that takes. Whoever shares the stream may have switched it to one that never waits.
fn write_whole(mut line: &[u8]) -> Result<(), Errno> {
    let output = std::io::stdout();
    while !line.is_empty() {
        match rustix::io::write(&output, line) {
            Ok(length) => line = line.get(length..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(poll(&mut [PollFd::new(&output, PollFlags::OUT)], None)),
            Err(cause) => return Err(cause),
        }
    }
    Ok(())
}

fn write_apart() -> (
    mpsc::UnboundedSender<(Vec<u8>, usize)>,
    mpsc::UnboundedReceiver<usize>,
) {
    let (apart, mut lines) = mpsc::unbounded_channel::<(Vec<u8>, usize)>();
    let (sender, told) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        while let Some((line, bytes)) = lines.blocking_recv() {
            if write_whole(&line).is_err() || sender.send(bytes).is_err() {
                break;
            }
        }
    });
    (apart, told)
}
