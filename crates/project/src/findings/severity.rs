//! Severity follows configuration: the package's `[diagnostics]` table, then the command's flags.

use std::collections::BTreeMap;

use super::{Finding, Level};

/// What `[diagnostics]` may say about a category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    Off,
    Level(Level),
}

impl Setting {
    pub const NAMES: &[&str] = &["off", "lint", "hint", "warn", "error"];

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "off" | "ignore" => Some(Setting::Off),
            "lint" => Some(Setting::Level(Level::Lint)),
            "hint" => Some(Setting::Level(Level::Hint)),
            "warn" => Some(Setting::Level(Level::Warning)),
            "error" => Some(Setting::Level(Level::Error)),
            _ => None,
        }
    }
}

/// How warnings count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Warnings {
    #[default]
    Shown,
    Hidden,
    AsErrors,
}

/// Decides the severity a finding is shown with, the same way in every command.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    pub settings: BTreeMap<String, Setting>,
    pub warnings: Warnings,
    /// Lint findings appear only in `lint`.
    pub shows_lint: bool,
}

/// Warnings that stay warnings under `--warnings-as-errors` unless the table names them.
const SPARED: &[&str] = &[
    "unresolved-class",
    "unresolved-ffi",
    "arity-mismatch",
    "deprecation",
];

impl Policy {
    /// `None` when the finding is not shown.
    pub fn apply(&self, finding: &Finding) -> Option<Finding> {
        let category = finding.category.as_deref();
        let setting = category.and_then(|category| self.settings.get(category)).copied();
        // The table never softens a structural error.
        let level = match setting {
            Some(_) if finding.severity == Level::Error => Level::Error,
            Some(Setting::Off) => return None,
            Some(Setting::Level(level)) => level,
            None => finding.severity,
        };
        let level = match (self.warnings, level) {
            (Warnings::AsErrors, Level::Warning | Level::Hint)
                if setting.is_some() || !category.is_some_and(|category| SPARED.contains(&category)) =>
            {
                Level::Error
            }
            (Warnings::Hidden, Level::Warning | Level::Hint) => return None,
            (_, level) => level,
        };
        if level == Level::Lint && !self.shows_lint {
            return None;
        }
        Some(Finding {
            severity: level,
            ..finding.clone()
        })
    }
}
