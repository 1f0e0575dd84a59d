//! Findings of the compiler.

use serde::{Deserialize, Serialize};

use super::answer;
use crate::Location;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    Lint,
    Hint,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Lint => "lint",
            Self::Hint => "hint",
        }
    }
}

answer! {
    /// Another place that a finding speaks of.
    Note {
        message: String,
        line: u32,
        column: u32,
    }
}

answer! {
    /// One change of the text that a finding is about.
    TextEdit {
        /// Byte offsets, like those of the finding.
        start: u32,
        end: u32,
        /// What stands there instead.
        text: String,
    }
}

answer! {
    /// A finding of the compiler.
    Diagnostic {
        file: Option<String>,
        line: Option<u32>,
        code: Option<String>,
        severity: Severity,
        category: Option<String>,
        message: String,
        hint: Option<String>,
        #[serde(default)]
        notes: Vec<Note>,
        ;
        /// Byte offsets.
        span_start: u32,
        span_end: u32,
        column: u32,
        end_line: u32,
        end_column: u32,
        /// What mends it without changing what the code does: all of it or nothing. Absent when only a person can
        /// decide.
        fix: Vec<TextEdit>,
    }
}

impl Diagnostic {
    pub fn location(&self) -> Option<Location> {
        Some(Location {
            file: self.file.clone()?,
            line: self.line?,
            column: self.column,
            end_line: self.end_line,
            end_column: self.end_column,
        })
    }
}

answer! {
    FindingSite {
        class: String,
        file: Option<String>,
        line: Option<u32>,
        column: Option<u32>,
    }
}

answer! {
    /// What a finding has to do with a change.
    ChangedUse {
        /// The class that the finding is in.
        owner: String,
        changed_class: String,
        selector: Option<String>,
        classification: String,
        note: Option<String>,
        sites: Vec<FindingSite>,
        start: Option<u32>,
        end: Option<u32>,
    }
}

/// A finding about one of those who use what was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct UseFinding {
    #[serde(flatten)]
    pub diagnostic: Diagnostic,
    #[serde(flatten)]
    pub changed: ChangedUse,
}

/// A finding about a change, or about those who use what was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum Finding {
    OfUse(UseFinding),
    Own(Diagnostic),
}

impl Finding {
    pub fn diagnostic(&self) -> &Diagnostic {
        match self {
            Self::OfUse(finding) => &finding.diagnostic,
            Self::Own(diagnostic) => diagnostic,
        }
    }

    /// The class that it is in, if that is another than what was changed.
    pub fn owner(&self) -> Option<&String> {
        match self {
            Self::OfUse(finding) => Some(&finding.changed.owner),
            Self::Own(_) => None,
        }
    }
}

/// Something that was done is not quite as it was meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum Warning {
    Found(Diagnostic),
    Said { severity: Severity, message: String },
}

impl Warning {
    pub fn said(message: impl Into<String>) -> Self {
        Self::Said {
            severity: Severity::Warning,
            message: message.into(),
        }
    }

    pub fn message(&self) -> &str {
        match self {
            Self::Found(diagnostic) => &diagnostic.message,
            Self::Said { message, .. } => message,
        }
    }
}
