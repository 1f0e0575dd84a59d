//! A fault that a person can do something about.

/// Who can do something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The task failed: code that does not compile, a dependency that is not there.
    Task,
    /// Wrong usage, a manifest or lock file that says nothing sensible.
    Usage,
    /// The machine: a program that is missing, a place that cannot be written.
    Environment,
    /// Beamtalk itself.
    Internal,
}

/// An error with its kind for tools and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Fault {
    pub blame: Blame,
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            blame: Blame::Usage,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub fn failure(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            blame: Blame::Task,
            ..Self::usage(kind, message)
        }
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
