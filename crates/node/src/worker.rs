//! A node that serves one command: it lives as long as this value and ends when its pipe closes.

use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use beamtalk_etf::{Limits, Term};

use crate::{Erlang, Error, Runtime, launch};

/// Longest reply a node may send.
const FRAME_LIMIT: usize = 256 * 1024 * 1024;

/// How long a node that closed its pipe may take to end, before we stop waiting for its status.
const GRACE: Duration = Duration::from_secs(2);

pub struct Worker {
    child: Child,
    requests: Option<BufWriter<ChildStdin>>,
    replies: BufReader<ChildStdout>,
}

impl Worker {
    /// Start a node. It boots while the caller goes on; requests wait in the pipe.
    pub fn start(
        erlang: &Erlang,
        runtime: &Runtime,
        current_directory: Option<&std::path::Path>,
    ) -> Result<Self, Error> {
        let mut command = launch::worker_command(erlang, runtime);
        if let Some(directory) = current_directory {
            command.current_dir(directory);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|cause| Error::ErlangBroken {
                program: erlang.program().to_owned(),
                cause,
            })?;
        let (Some(requests), Some(replies)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::NodeGone { status: None });
        };
        Ok(Self {
            child,
            requests: Some(BufWriter::new(requests)),
            replies: BufReader::with_capacity(1 << 16, replies),
        })
    }

    /// Send one request.
    pub fn send(&mut self, request: &Term) -> Result<(), Error> {
        let frame = beamtalk_etf::encode(request);
        let length = u32::try_from(frame.len()).map_err(|_| Error::FrameTooLong {
            length: frame.len(),
            limit: u32::MAX as usize,
        })?;
        let Some(requests) = &mut self.requests else {
            return Err(Error::NodeGone { status: None });
        };
        let written = requests
            .write_all(&length.to_be_bytes())
            .and_then(|()| requests.write_all(&frame))
            .and_then(|()| requests.flush());
        written.map_err(|cause| self.gone_or(cause))
    }

    /// Wait for the next reply or event.
    pub fn receive(&mut self) -> Result<Term, Error> {
        let mut header = [0; 4];
        self.replies
            .read_exact(&mut header)
            .map_err(|cause| self.gone_or(cause))?;
        let length = u32::from_be_bytes(header) as usize;
        if length > FRAME_LIMIT {
            return Err(Error::FrameTooLong {
                length,
                limit: FRAME_LIMIT,
            });
        }
        let mut frame = Vec::new();
        let read = (&mut self.replies).take(length as u64).read_to_end(&mut frame);
        let read = read.map_err(|cause| self.gone_or(cause))?;
        if read < length {
            return Err(Error::NodeGone {
                status: self.child.try_wait().ok().flatten(),
            });
        }
        Ok(beamtalk_etf::decode(
            &frame,
            Limits {
                bytes: FRAME_LIMIT,
                ..Limits::default()
            },
        )?)
    }

    /// Wait for the next reply or event, answering questions that the node asks meanwhile.
    pub fn receive_serving(&mut self, serve: &mut dyn FnMut(&Term) -> Term) -> Result<Term, Error> {
        loop {
            let message = self.receive()?;
            match &message {
                Term::Tuple(parts) => match parts.as_slice() {
                    [Term::Atom(tag), number, question] if tag == "request" => {
                        let answer = serve(question);
                        self.send(&Term::tuple([Term::atom("answer"), number.clone(), answer]))?;
                    }
                    _ => return Ok(message),
                },
                _ => return Ok(message),
            }
        }
    }

    /// The operating-system process id of the node.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A broken pipe means the node has ended; say how.
    fn gone_or(&mut self, cause: std::io::Error) -> Error {
        match cause.kind() {
            ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Error::NodeGone { status: self.wait() },
            _ => Error::Pipe(cause),
        }
    }

    fn wait(&mut self) -> Option<std::process::ExitStatus> {
        self.requests = None;
        let deadline = Instant::now() + GRACE;
        let mut pause = Duration::from_micros(200);
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        None
    }
}

impl Drop for Worker {
    /// A worker has nothing to save: it is killed at once, and reaped.
    fn drop(&mut self) {
        self.requests = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
