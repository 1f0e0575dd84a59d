//! The fields of requests: what is wanted of each, and what is said when it is something else.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::entry::{AuthorKind, Side};
use crate::event::Channel;

/// A field of a request.
pub struct Field {
    identifier: &'static str,
    pub is_optional: bool,
    /// What it must be, for people.
    pub wanted: &'static str,
    pub(crate) fits: fn(&Value) -> bool,
}

impl Field {
    pub(crate) const fn of<T: Wanted + DeserializeOwned>(
        identifier: &'static str,
        is_optional: bool,
    ) -> Self {
        Self {
            identifier,
            is_optional,
            wanted: T::WANTED,
            fits: |value| T::deserialize(value).is_ok(),
        }
    }

    /// Without what makes a keyword of Rust an identifier.
    pub fn name(&self) -> &'static str {
        self.identifier.trim_start_matches("r#").trim_end_matches('_')
    }
}

/// A request that knows its fields.
pub(crate) trait Fields {
    const FIELDS: &'static [Field];
}

/// What a field of this type must be, for people.
pub(crate) trait Wanted {
    const WANTED: &'static str;
}

macro_rules! wanted {
    ($($type:ty: $wanted:literal;)*) => {
        $(impl $crate::requests::Wanted for $type {
            const WANTED: &'static str = $wanted;
        })*
    };
}
pub(crate) use wanted;

wanted! {
    String: "a string";
    bool: "true or false";
    u64: "a whole number that is not negative";
    Vec<String>: "a list of strings";
    Vec<u64>: "a list of numbers";
    BTreeMap<String, String>: "an object of strings";
    BTreeMap<String, u64>: "an object of whole numbers";
    Side: "instance or class";
    OneOrMore<AuthorKind>: "human or agent, or a list of such";
    Vec<Channel>: "a list made of these: transcript, actors, classes, bindings, supervision, object, reload_check, workspace, logs, changes, tests, desk, audit, approvals";
}

/// One, or a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub fn as_slice(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::More(more) => more,
        }
    }
}

/// Declares a request: what it needs, then what it takes.
macro_rules! request {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$need_about:meta])* $need:ident: $need_type:ty,)*
            $(; $($(#[$take_about:meta])* $take:ident: $take_type:ty,)*)?
        }
    ) => {
        $(#[$about])*
        #[derive(std::clone::Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
        pub struct $name {
            $($(#[$need_about])* pub $need: $need_type,)*
            $($($(#[$take_about])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", ts(optional))]
            pub $take: Option<$take_type>,)*)?
        }

        impl $crate::requests::Fields for $name {
            const FIELDS: &'static [$crate::requests::Field] = &[
                $($crate::requests::Field::of::<$need_type>(stringify!($need), false),)*
                $($($crate::requests::Field::of::<$take_type>(stringify!($take), true),)*)?
            ];
        }
    };
}
pub(crate) use request;

/// Declares the words that a field may be.
macro_rules! words {
    (
        $(#[$about:meta])*
        $name:ident: $wanted:literal { $($(#[$word_about:meta])* $word:ident $text:literal,)* }
    ) => {
        $(#[$about])*
        #[derive(std::clone::Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
        pub enum $name {
            $($(#[$word_about])* #[serde(rename = $text)] $word,)*
        }

        $crate::requests::field::wanted! { $name: $wanted; }
    };
}
pub(crate) use words;
