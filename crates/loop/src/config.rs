//! The config file: reading, decoding, checking.
//!
//! [`load`] gives either a config that can be run or everything that is wrong with it, each
//! problem with its place. Nothing here touches more of the world than the config file itself,
//! the existence of `root`, and whether a watched name is a directory.

mod decode;
mod graph;
mod model;
#[cfg(test)]
mod tests;
mod validate;
mod warnings;

use std::path::{Path, PathBuf};

pub(crate) use graph::reachable;
pub use model::*;

/// Something wrong, or doubtful, in a config.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Problem {
    pub text: String,
    /// The table it is about, such as `workflow.css`; null when it is about the whole file.
    pub path: Option<String>,
}

impl Problem {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            path: Some(path.into()),
        }
    }

    pub(crate) fn whole(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            path: None,
        }
    }
}

/// What the command line says about checking a config.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteBind {
    /// The event server must bind to loopback.
    #[default]
    Refuse,
    /// The user accepts the risk.
    Allow,
}

/// The outcome of reading a config file.
#[derive(Debug)]
pub struct Loaded {
    /// The decoded config, when it could be decoded at all.
    pub config: Option<Config>,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl Loaded {
    fn failed(errors: Vec<Problem>) -> Self {
        Self {
            config: None,
            errors,
            warnings: Vec::new(),
        }
    }

    /// The config when nothing is wrong with it, else the errors.
    pub fn valid(self) -> Result<Config, Vec<Problem>> {
        match self.config {
            Some(config) if self.errors.is_empty() => Ok(config),
            _ => Err(self.errors),
        }
    }
}

/// Read and check a config: the named file, or `devloop.toml` in `directory`.
pub fn load(path: Option<&Path>, directory: &Path, remote: RemoteBind) -> Loaded {
    let file = directory.join(path.unwrap_or(Path::new("devloop.toml")));
    if path.is_none() && !file.exists() {
        return Loaded::failed(vec![Problem::whole(
            "no config given, and no devloop.toml in this directory",
        )]);
    }
    let file = clean(&file);
    match crate::files::read(&file) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => check(&file, &text, remote),
            Err(error) => {
                let (line, column) = place(error.as_bytes(), error.utf8_error().valid_up_to());
                Loaded::failed(vec![Problem::whole(format!(
                    "failed to parse config at {}: {line}:{column}: the file is not UTF-8",
                    file.display()
                ))])
            }
        },
        Err(error) => Loaded::failed(vec![Problem::whole(format!(
            "failed to read config at {}: {error}",
            file.display()
        ))]),
    }
}

/// The absolute path of a config: the named file, or `devloop.toml` in `directory`.
pub fn locate(path: Option<&Path>, directory: &Path) -> PathBuf {
    clean(&directory.join(path.unwrap_or(Path::new("devloop.toml"))))
}

/// Decode and check the text of a config that stands at `file`, an absolute path.
pub fn check(file: &Path, text: &str, remote: RemoteBind) -> Loaded {
    let decoded = decode::decode(file, text);
    let mut warnings = decoded.unknown;
    match decoded.result {
        Ok(config) => {
            let errors = validate::errors(&config, remote);
            warnings.extend(warnings::warnings(&config));
            Loaded {
                config: Some(config),
                errors,
                warnings,
            }
        }
        Err(errors) => Loaded {
            config: None,
            errors,
            warnings,
        },
    }
}

/// Line and column, both from 1, of a byte offset.
fn place(text: &[u8], offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    let line = before.split(|&byte| byte == b'\n').count();
    let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default())
        .chars()
        .count()
        + 1;
    (line, column)
}

/// A path without `.`; with `..` it is resolved when it exists.
pub(crate) fn clean(path: &Path) -> PathBuf {
    use std::path::Component;
    if path.components().any(|part| part == Component::ParentDir)
        && let Ok(real) = path.canonicalize()
    {
        return real;
    }
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}
