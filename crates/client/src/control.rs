//! The control socket: the kernel vouches for the user, so no secret is needed.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use beamtalk_wire::limits::CONTROL_FRAME;
use serde_json::Value;

/// How long the daemon may take to answer. Stopping waits for evaluations and supervisors.
const ANSWER_TIME: Duration = Duration::from_mins(1);

#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nobody listens: the workspace is not running.
    #[error("the workspace is not running")]
    NotRunning,
    #[error("the socket {path} belongs to someone else")]
    NotOurs { path: String },
    /// It is there, and busy with something that does not end.
    #[error("the workspace does not answer; `beamtalk workspace stop --force` ends it")]
    Silent,
    #[error("the workspace does not answer: {0}")]
    Broken(std::io::Error),
}

impl From<std::io::Error> for ControlError {
    fn from(cause: std::io::Error) -> Self {
        match cause.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Silent,
            _ => Self::Broken(cause),
        }
    }
}

/// A connection to the control socket, used by one command at a time.
#[derive(Debug)]
pub struct Control {
    stream: UnixStream,
}

impl Control {
    pub fn connect(path: &Path) -> Result<Self, ControlError> {
        let stream = UnixStream::connect(path).map_err(|cause| match cause.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => ControlError::NotRunning,
            ErrorKind::PermissionDenied => ControlError::NotOurs {
                path: path.display().to_string(),
            },
            _ => ControlError::Broken(cause),
        })?;
        let control = Self { stream };
        control.answers_within(ANSWER_TIME)?;
        Ok(control)
    }

    /// The same as [`Self::call`], for what is answered soon or not at all.
    pub fn call_within(&mut self, request: &Value, limit: Duration) -> Result<Value, ControlError> {
        self.answers_within(limit)?;
        let answer = self.call(request);
        self.answers_within(ANSWER_TIME)?;
        answer
    }

    /// How long the daemon may take for each answer from now on.
    fn answers_within(&self, limit: Duration) -> Result<(), ControlError> {
        self.stream.set_read_timeout(Some(limit))?;
        Ok(self.stream.set_write_timeout(Some(limit))?)
    }

    /// Send one request and read one answer.
    pub fn call(&mut self, request: &Value) -> Result<Value, ControlError> {
        self.send(request)?;
        self.receive()?
            .ok_or_else(|| ControlError::Broken(ErrorKind::UnexpectedEof.into()))
    }

    pub fn send(&mut self, request: &Value) -> Result<(), ControlError> {
        let body = request.to_string();
        let length = u32::try_from(body.len())
            .ok()
            .filter(|length| *length as usize <= CONTROL_FRAME)
            .ok_or_else(|| std::io::Error::new(ErrorKind::InvalidInput, "the request is too long"))?;
        let mut frame = Vec::with_capacity(body.len() + 4);
        frame.extend(length.to_be_bytes());
        frame.extend(body.as_bytes());
        Ok(self.stream.write_all(&frame)?)
    }

    /// The next answer; `None` when the daemon closed the connection.
    pub fn receive(&mut self) -> Result<Option<Value>, ControlError> {
        let mut header = [0; 4];
        match self.stream.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let length = u32::from_be_bytes(header) as usize;
        if length > CONTROL_FRAME {
            return Err(std::io::Error::new(ErrorKind::InvalidData, "the answer is too long").into());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        let answer = serde_json::from_slice(&body).map_err(std::io::Error::from)?;
        Ok(Some(answer))
    }

    /// Wait without limit for further answers, as `--follow` does.
    pub fn wait_for_ever(&self) -> Result<(), ControlError> {
        Ok(self.stream.set_read_timeout(None)?)
    }
}
