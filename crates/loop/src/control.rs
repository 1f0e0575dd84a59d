//! The control socket: where it lies and what is said on it.
//!
//! One JSON object per line each way. The operations are [`Ask`]'s and nothing else; in
//! particular nothing here runs a workflow by name or writes a key.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beamtalk_storage::sha256_hex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longer paths do not fit the address of a socket everywhere.
const PATH_LIMIT: usize = 100;

/// A question to a running loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ask {
    Status,
    /// One key, or all of them.
    State {
        key: Option<String>,
    },
    /// Post a value to a declared event.
    Trigger {
        event: String,
        value: String,
        wait: bool,
    },
    Stop,
    /// The status, again and again, whenever it changes.
    Follow,
    /// Start, stop or restart one declared process.
    Process {
        process: String,
        operation: crate::core::Operation,
    },
    /// The last lines of a process, and with `follow` what it says from then on.
    Logs {
        process: String,
        tail: usize,
        follow: bool,
    },
    /// The last runs of workflows and why they ran, of all or of one.
    Why {
        workflow: Option<String>,
    },
    /// Who sets which workflow in motion.
    Graph {
        dot: bool,
    },
}

/// An answer of a running loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Status(Box<crate::core::Status>),
    State(serde_json::Map<String, Value>),
    /// What was asked for is done.
    Done,
    Accepted {
        changed: bool,
    },
    Finished {
        error: Option<String>,
    },
    Stopping,
    Log(crate::shell::Said),
    /// This many lines were left out for one who reads too slowly.
    Skipped(u64),
    /// No more lines, unless they are followed.
    Lines,
    Runs(Vec<crate::core::RunStatus>),
    Text(String),
    Error(String),
}

/// Where the control socket of a loop lies.
pub fn socket_path(state_file: &Path) -> PathBuf {
    let beside = state_file.with_file_name("loop.sock");
    if beside.as_os_str().len() <= PATH_LIMIT {
        return beside;
    }
    let hash = sha256_hex(state_file.as_os_str().as_encoded_bytes());
    let directory = match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(directory) => PathBuf::from(directory).join("beamtalk"),
        None => std::env::temp_dir().join(format!("beamtalk-{}", rustix::process::getuid().as_raw())),
    };
    directory.join(format!("loop-{}.sock", &hash[..16]))
}

/// A connection to a running loop.
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connect; none when no loop runs there.
    pub fn connect(state_file: &Path) -> Option<Self> {
        Self::connect_to(&socket_path(state_file))
    }

    /// Connect to a control socket; none when nobody listens there.
    pub fn connect_to(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        Some(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Give up waiting for an answer after this time.
    pub fn set_limit(&self, limit: Option<Duration>) -> std::io::Result<()> {
        self.stream.get_ref().set_read_timeout(limit)
    }

    pub fn ask(&mut self, ask: &Ask) -> std::io::Result<Answer> {
        let mut line = serde_json::to_vec(ask)?;
        line.push(b'\n');
        let answer = self
            .stream
            .get_mut()
            .write_all(&line)
            .and_then(|()| self.receive());
        match answer {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(unanswered()),
            Err(error) if is_closed(&error) => Err(unanswered()),
            Err(error) => Err(error),
        }
    }

    /// The next answer; none when the loop has closed the connection.
    pub fn receive(&mut self) -> std::io::Result<Option<Answer>> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        Ok(Some(serde_json::from_str(&line)?))
    }
}

/// The loop has closed the connection. Never a broken pipe, which is how a reader of our own
/// output says that it has read enough.
pub fn unanswered() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::ConnectionAborted,
        "the loop closed the connection without an answer; see whether it still runs with `beamtalk loop status`",
    )
}

fn is_closed(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_socket_lies_beside_the_state_unless_the_path_is_long() {
        assert_eq!(
            socket_path(Path::new("/a/.devloop/state.json")),
            Path::new("/a/.devloop/loop.sock")
        );
        let long = PathBuf::from(format!("/{}/state.json", "x".repeat(120)));
        let path = socket_path(&long);
        assert!(path.as_os_str().len() <= PATH_LIMIT, "{path:?}");
        assert_ne!(
            path,
            socket_path(Path::new(&format!("/{}/state.json", "y".repeat(120))))
        );
    }

    #[test]
    fn only_the_documented_operations_are_understood() {
        for text in [
            r#"{"op":"status"}"#,
            r#"{"op":"state","key":null}"#,
            r#"{"op":"trigger","event":"a","value":"b","wait":false}"#,
            r#"{"op":"stop"}"#,
            r#"{"op":"follow"}"#,
            r#"{"op":"process","process":"p","operation":"restart"}"#,
            r#"{"op":"logs","process":"p","tail":3,"follow":false}"#,
            r#"{"op":"why","workflow":null}"#,
            r#"{"op":"graph","dot":true}"#,
        ] {
            assert!(serde_json::from_str::<Ask>(text).is_ok(), "{text}");
        }
        for text in [
            r#"{"op":"run","workflow":"x"}"#,
            r#"{"op":"write","key":"x","value":"y"}"#,
            r#"{"op":"process","process":"p","operation":"run"}"#,
            r#"{"op":"process","process":"p","operation":"start","command":["x"]}"#,
            r#"{"op":"trigger","event":"a","value":"b","wait":false,"workflow":"w"}"#,
            r#"{"op":"trigger","event":"a","value":1,"wait":false}"#,
            "[]",
            "",
        ] {
            assert!(serde_json::from_str::<Ask>(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_a_question_or_an_error(line in ".{0,80}") {
            if let Ok(ask) = serde_json::from_str::<Ask>(&line) {
                prop_assert!(line.contains("op"), "{ask:?}");
            }
        }
    }
}
