//! Evaluation.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{MigrationFailure, answer};
use crate::entry::LoggedEntry;

answer! {
    /// A statement and its value, as it is printed.
    TracedStep {
        src: String,
        text: String,
    }
}

/// The value of code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct EvalAnswer {
    /// As JSON; absent when the program ended.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", ts(optional, type = "unknown"))]
    pub value: Option<Value>,
    /// As it is printed.
    #[serde(default)]
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub class: Option<String>,
    /// With `hold`: what `inspect` finds the value by.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub reference: Option<String>,
    /// With `trace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub steps: Option<Vec<TracedStep>>,
    /// When the program ended, and of `run-entry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub exit_code: Option<i64>,
    /// What it defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub classes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub entries: Option<Vec<LoggedEntry>>,
    /// Actors that keep their old code and state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub migration_failures: Option<Vec<MigrationFailure>>,
}

/// `null` is a value as well.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

answer! {
    /// Whether there was something to do.
    ValueAnswer {
        value: bool,
    }
}

answer! {
    LoopRunAnswer {
        ;
        /// Why it failed, if its end was waited for.
        failure: String,
    }
}
