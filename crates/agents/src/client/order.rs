//! A session to be made, as a line of `ctl`.

use beamtalk_ninep::Attachment;

use super::Failure;
use crate::clean_path;

/// A word of a `ctl` line.
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "''"))
}

/// Absolute against our own working directory.
pub fn absolute(directory: &str) -> Result<String, Failure> {
    if directory.starts_with('/') {
        return Ok(directory.to_owned());
    }
    Ok(clean_path(&format!(
        "{}/{directory}",
        std::env::current_dir()?.display()
    )))
}

/// A session to be made.
#[derive(Default)]
pub struct Order {
    pub backend: String,
    pub directory: Option<String>,
    pub sandbox: Option<String>,
    pub model: Option<String>,
    pub level: Option<String>,
    pub alias: Option<String>,
    pub role: Option<String>,
    pub context: Option<String>,
    /// A copy of the repository to work in; an empty name is for a branch of the daemon's choice.
    pub worktree: Option<String>,
    pub base: Option<String>,
}

impl Order {
    /// Create the session and answer its id.
    pub fn place(self, tree: &Attachment) -> Result<String, Failure> {
        let mut line = format!("new {}", quote(&self.backend));
        if let Some(directory) = &self.directory {
            line.push_str(&format!(" {}", quote(directory)));
        }
        for (name, value) in [
            ("sandbox", &self.sandbox),
            ("model", &self.model),
            ("level", &self.level),
            ("alias", &self.alias),
            ("role", &self.role),
            ("worktree", &self.worktree),
            ("base", &self.base),
        ] {
            if let Some(value) = value {
                line.push_str(&format!(" {name}={}", quote(value)));
            }
        }
        // A ctl line could not carry it to the server, which would say the same.
        if self.directory.is_some_and(|path| path.contains(char::is_control)) {
            return Err(Failure::plain("invalid path"));
        }
        // A line feed would begin a command of its own.
        if line.contains('\n') {
            return Err(Failure::plain("invalid argument: line feed"));
        }
        // A ctl line cannot hold line feeds; such a context is written afterwards.
        let later = self.context.filter(|context| {
            let long = context.contains('\n') || context.len() > 4096;
            if !long {
                line.push_str(&format!(" context={}", quote(context)));
            }
            long
        });
        let id = create(tree, &line)?;
        if let Some(context) = later {
            tree.write(&format!("{id}/context"), context.as_bytes())?;
        }
        Ok(id)
    }
}

/// Make a session; answers its id.
pub fn create(tree: &Attachment, line: &str) -> Result<String, Failure> {
    let answer = tree.rpc("ctl", line.as_bytes())?;
    Ok(String::from_utf8_lossy(&answer).trim().to_owned())
}
