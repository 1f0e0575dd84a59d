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
    #[error("the workspace does not answer: {0}")]
    Broken(#[from] std::io::Error),
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
        stream.set_read_timeout(Some(ANSWER_TIME))?;
        stream.set_write_timeout(Some(ANSWER_TIME))?;
        Ok(Self { stream })
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
