//! Diagnostics on their way to people and tools: severity after configuration, counting, and one file per format.

pub mod human;
pub mod json;
pub mod severity;

use std::collections::BTreeMap;
use std::io;

use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::{LineIndex, Position, Span};
use serde::{Deserialize, Serialize};

use crate::progress::Progress;

pub use severity::Policy;

/// One diagnostic with everything needed to show it, independent of the source text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub code: String,
    pub severity: Level,
    pub category: Option<String>,
    pub message: String,
    pub span: (u32, u32),
    pub hint: Option<String>,
    /// What cannot work.
    pub witness: Option<String>,
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub span: (u32, u32),
    pub text: String,
}

/// Severity in the order in which findings matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warning,
    Hint,
    Lint,
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Hint => "hint",
            Level::Lint => "lint",
        }
    }
}

impl From<Severity> for Level {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Error => Level::Error,
            Severity::Warning => Level::Warning,
            Severity::Hint => Level::Hint,
            Severity::Lint => Level::Lint,
        }
    }
}

impl From<&Diagnostic> for Finding {
    fn from(diagnostic: &Diagnostic) -> Self {
        let pair = |span: Span| (span.start, span.end);
        Self {
            code: diagnostic.code.to_owned(),
            severity: diagnostic.severity.into(),
            category: diagnostic.category.map(|category| category.name().to_owned()),
            message: diagnostic.message.to_string(),
            span: pair(diagnostic.span),
            hint: diagnostic.hint.as_ref().map(ToString::to_string),
            witness: diagnostic.witness.as_ref().map(ToString::to_string),
            notes: diagnostic
                .notes
                .iter()
                .map(|(span, text)| Note {
                    span: pair(*span),
                    text: text.to_string(),
                })
                .collect(),
        }
    }
}

/// All categories, for checking the manifest.
pub const CATEGORIES: &[&str] = &[
    "syntax",
    "dnu",
    "type",
    "type-annotation",
    "unused",
    "empty-body",
    "lint",
    "dead-assignment",
    "extension-conflict",
    "deprecation",
    "actor-new",
    "visibility",
    "unresolved-class",
    "unresolved-ffi",
    "arity-mismatch",
    "shadowed-class",
    "inheritance",
    "sendability",
    "dependency",
];

/// The findings of one file, with its text.
#[derive(Clone, Debug)]
pub struct FileFindings {
    /// Relative to the project root.
    pub path: String,
    pub text: String,
    pub findings: Vec<Finding>,
}

impl FileFindings {
    /// Whether the compiler refuses the file, whatever the project makes of its warnings.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|found| found.severity == Level::Error)
    }
}

/// Where a finding stands, in lines and columns.
pub fn places(index: &LineIndex, text: &str, span: (u32, u32)) -> (Position, Position) {
    (index.position(text, span.0), index.position(text, span.1))
}

/// At most this many errors are shown of one file.
const ERRORS_PER_FILE: usize = 50;

/// How many findings of which category and severity were shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub errors: usize,
    pub warnings: usize,
    pub lints: usize,
    by_category: BTreeMap<(String, Level), usize>,
}

impl Counts {
    fn add(&mut self, finding: &Finding) {
        match finding.severity {
            Level::Error => self.errors += 1,
            Level::Warning => self.warnings += 1,
            Level::Lint => self.lints += 1,
            Level::Hint => {}
        }
        let category = finding.category.clone().unwrap_or_else(|| "other".to_owned());
        *self.by_category.entry((category, finding.severity)).or_default() += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.by_category.is_empty()
    }

    /// One line for each category and severity.
    pub fn table(&self) -> String {
        let lines: Vec<String> = self
            .by_category
            .iter()
            .map(|((category, level), count)| format!("  {category:<20} {:<8} {count:>5}", level.name()))
            .collect();
        lines.join("\n")
    }

    pub fn to_json(&self) -> serde_json::Value {
        let rows: Vec<serde_json::Value> = self
            .by_category
            .iter()
            .map(|((category, level), count)| {
                serde_json::json!({"category": category, "severity": level.name(), "count": count})
            })
            .collect();
        serde_json::json!({"errors": self.errors, "warnings": self.warnings, "by_category": rows})
    }
}

/// Report the findings of one file and count them.
pub fn report(
    progress: &mut dyn Progress,
    file: &FileFindings,
    policy: &Policy,
    counts: &mut Counts,
) -> io::Result<()> {
    let index = LineIndex::new(&file.text);
    let mut errors = 0;
    let mut hidden = 0;
    for finding in &file.findings {
        let Some(finding) = policy.apply(finding) else {
            continue;
        };
        counts.add(&finding);
        if finding.severity == Level::Error {
            errors += 1;
            if errors > ERRORS_PER_FILE {
                hidden += 1;
                continue;
            }
        }
        progress.finding(file, &index, &finding)?;
    }
    if hidden > 0 {
        progress.more_errors(file, hidden);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
