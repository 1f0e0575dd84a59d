//! Messages to a client, each one text frame.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answers::Warning;
use crate::{ErrorBody, ErrorKind};

/// How a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// In the last message.
    Done,
    Error,
    Interrupted,
    NeedInput,
    TestError,
    Truncated,
    /// Of a later version.
    #[serde(other)]
    Unknown,
}

/// What every message that belongs to a request may have; what an operation answers is beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Head {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub status: Vec<Flag>,
    /// Of a session that keeps its frames: the number of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub n: Option<u64>,
    /// What the request was sent with, in its first and last kept frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub about: Option<String>,
    /// It is sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub replayed: Option<bool>,
    /// Of this request only the end is still known: so many bytes are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub lost_bytes: Option<u64>,
    /// A piece of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub out: Option<String>,
    /// What input is asked for with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub prompt: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub error: Option<ErrorBody>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", ts(as = "Option<_>", optional))]
    pub warnings: Vec<Warning>,
}

/// Something of the protocol as a JSON object.
pub fn object(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

#[derive(Serialize)]
struct Message<'a, T> {
    #[serde(flatten)]
    head: &'a Head,
    #[serde(flatten)]
    answer: &'a T,
}

impl Head {
    fn of(id: &str, session: &str) -> Self {
        Self {
            id: Some(id.to_owned()),
            session: Some(session.to_owned()),
            ..Self::default()
        }
    }

    /// Of the last message of a request that went well.
    pub fn done(id: &str, session: Option<&str>, flags: &[Flag], warnings: Vec<Warning>) -> Self {
        let mut status = vec![Flag::Done];
        status.extend(flags);
        Self {
            id: Some(id.to_owned()),
            session: session.map(str::to_owned),
            status,
            warnings,
            ..Self::default()
        }
    }

    /// The last message of a request that failed. Without `id` when the request's own could not be read.
    pub fn failure(id: Option<&str>, session: Option<&str>, error: ErrorBody) -> Self {
        let mut status = vec![Flag::Done, Flag::Error];
        if error.kind == ErrorKind::Interrupted {
            status.push(Flag::Interrupted);
        }
        Self {
            id: id.map(str::to_owned),
            session: session.map(str::to_owned),
            status,
            error: Some(error),
            ..Self::default()
        }
    }

    pub fn output(id: &str, session: &str, text: &str) -> Self {
        Self {
            out: Some(text.to_owned()),
            ..Self::of(id, session)
        }
    }

    pub fn needs_input(id: &str, session: &str, prompt: &str) -> Self {
        Self {
            status: vec![Flag::NeedInput],
            prompt: Some(prompt.to_owned()),
            ..Self::of(id, session)
        }
    }

    pub fn is_done(&self) -> bool {
        self.status.contains(&Flag::Done)
    }

    /// The message with what the operation answers.
    pub fn with<T: Serialize>(&self, answer: &T) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Message { head: self, answer })
    }
}
