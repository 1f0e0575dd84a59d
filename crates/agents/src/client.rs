//! A program of the daemon's user: where the daemon is, how to reach it, how to fail.
//!
//! The commands, the page and Assist are such programs; each is a few operations on files of the tree.

mod order;
mod status;

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use beamtalk_ninep::{Attachment, Error};
use serde_json::Value;

use crate::{Ages, Door, Fatal, Proof, candidates, connect};

pub use order::{Order, absolute, create, quote};
pub use status::{Kept, status_value, terminate};

/// How a command of `agents` ends when it does not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Failed = 1,
    Unreachable = 3,
    NoSession = 4,
    Denied = 5,
    TimedOut = 6,
    AlreadyRunning = 7,
}

#[derive(Debug)]
pub struct Failure {
    ending: Ending,
    message: String,
    broken_pipe: bool,
}

impl Failure {
    pub fn new(ending: Ending, message: impl Into<String>) -> Self {
        Failure {
            ending,
            message: message.into(),
            broken_pipe: false,
        }
    }

    pub fn plain(message: impl Into<String>) -> Self {
        Failure::new(Ending::Failed, message)
    }

    pub fn ending(&self) -> Ending {
        self.ending
    }

    pub fn code(&self) -> u8 {
        self.ending as u8
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn is_broken_pipe(&self) -> bool {
        self.broken_pipe
    }

    pub fn is_busy(&self) -> bool {
        self.message == "session busy"
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let ending = match &error {
            Error::Refused(refused) => match refused.text.as_ref() {
                text if text.starts_with("permission denied") || text.starts_with("auth") => Ending::Denied,
                "session not found" => Ending::NoSession,
                _ => Ending::Failed,
            },
            Error::TimedOut => Ending::TimedOut,
            Error::Closed | Error::Io(_) => Ending::Unreachable,
            Error::Malformed | Error::Unexpected { .. } | Error::Version { .. } => Ending::Failed,
        };
        Failure::new(ending, error.to_string())
    }
}

impl From<Door> for Failure {
    fn from(door: Door) -> Self {
        let ending = match &door {
            Door::Unreachable { .. } => Ending::Unreachable,
            Door::Protocol(Error::TimedOut) | Door::Auth(Error::TimedOut) | Door::Attach(Error::TimedOut) => {
                Ending::TimedOut
            }
            denial if denial.is_denial() => Ending::Denied,
            _ => Ending::Failed,
        };
        Failure::new(ending, door.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let broken_pipe = error.kind() == std::io::ErrorKind::BrokenPipe;
        Failure {
            ending: Ending::Failed,
            message: error.to_string(),
            broken_pipe,
        }
    }
}

impl From<Fatal> for Failure {
    fn from(fatal: Fatal) -> Self {
        let ending = match &fatal {
            Fatal::AlreadyRunning { .. } => Ending::AlreadyRunning,
            _ => Ending::Failed,
        };
        Failure::new(ending, fatal.to_string())
    }
}

/// How the daemon is reached.
pub struct Client {
    pub timeout: Option<Duration>,
    token_file: Option<PathBuf>,
    namespaces: Vec<PathBuf>,
    explicit: bool,
}

impl Client {
    /// Of the daemon in this namespace, else of the one that is found.
    pub fn new(namespace: Option<PathBuf>, timeout: Option<Duration>, token_file: Option<PathBuf>) -> Self {
        Client {
            timeout,
            token_file,
            explicit: namespace.is_some(),
            namespaces: namespace.map_or_else(candidates, |path| vec![path]),
        }
    }

    /// The namespace a daemon of this command would use.
    pub fn namespace(&self) -> PathBuf {
        self.namespaces.first().cloned().unwrap_or_default()
    }

    /// `--namespace` for commands started from here.
    pub fn namespace_option(&self) -> Option<PathBuf> {
        self.explicit.then(|| self.namespace())
    }

    pub fn token_file_option(&self) -> Option<&std::path::Path> {
        self.token_file.as_deref()
    }

    /// Whether the user said which namespace is meant.
    pub fn is_namespace_named(&self) -> bool {
        self.explicit || std::env::var_os("NAMESPACE").is_some_and(|path| !path.is_empty())
    }

    /// The namespace whose daemon answers, else the first.
    pub fn living_namespace(&self) -> PathBuf {
        connect(&self.namespaces, "agent").map_or_else(|_| self.namespace(), |(_, namespace)| namespace)
    }

    pub fn tree(&self) -> Result<Attachment, Failure> {
        self.tree_and_socket().map(|(tree, _)| tree)
    }

    /// A connection and a second handle on its socket, by which another thread can end it.
    pub fn tree_and_socket(&self) -> Result<(Attachment, UnixStream), Failure> {
        self.enter("agents", self.timeout)
    }

    /// The version of the classes that are seen without a token.
    pub fn ages(&self) -> Option<Ages> {
        let proof = Proof::from_environment(self.token_file.as_deref()).ok()?;
        (proof == Proof::AsNeeded).then(|| Ages::open(&self.living_namespace()))?
    }

    /// The whole tree, for as long as it takes.
    pub fn whole_tree(&self) -> Result<Attachment, Failure> {
        self.enter("", None).map(|(tree, _)| tree)
    }

    fn enter(&self, aname: &str, limit: Option<Duration>) -> Result<(Attachment, UnixStream), Failure> {
        let (stream, namespace) = connect(&self.namespaces, "agent")?;
        let socket = stream.try_clone()?;
        let proof = Proof::from_environment(self.token_file.as_deref())?;
        let tree = Door::enter(stream, Some(&namespace), &proof, aname, false, limit)?;
        Ok((tree, socket))
    }

    /// The id a name stands for: id, alias, or unique prefix of at least 4 digits.
    pub fn resolve(&self, tree: &Attachment, name: &str) -> Result<String, Failure> {
        let list = tree.read_text("list")?;
        let rows: Vec<Vec<&str>> = list.lines().map(|line| line.split('\t').collect()).collect();
        let id = |row: &Vec<&str>| row.first().map(|id| (*id).to_owned());
        let exact = rows.iter().find(|row| row.first() == Some(&name));
        let alias = || rows.iter().find(|row| row.get(3) == Some(&name) && name != "-");
        if let Some(found) = exact.or_else(alias).and_then(id) {
            return Ok(found);
        }
        if name.len() >= 4 {
            let matching: Vec<&Vec<&str>> = rows
                .iter()
                .filter(|row| row.first().is_some_and(|id| id.starts_with(name)))
                .collect();
            if let [only] = matching.as_slice()
                && let Some(found) = id(only)
            {
                return Ok(found);
            }
        }
        Err(Failure::new(Ending::NoSession, "session not found"))
    }

    /// A connection and the session a name stands for.
    pub fn session(&self, name: &str) -> Result<(Attachment, String), Failure> {
        let tree = self.tree()?;
        let id = self.resolve(&tree, name)?;
        Ok((tree, id))
    }
}

/// JSON as the tree has it.
pub fn parse(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::plain(error.to_string()))
}

/// Every message of a box.
pub fn messages(tree: &Attachment, directory: &str) -> Result<Vec<Value>, Failure> {
    let files = tree.list(directory)?.into_iter();
    files
        .map(|stat| parse(&tree.read_text(&format!("{directory}/{}", stat.name))?))
        .collect()
}
