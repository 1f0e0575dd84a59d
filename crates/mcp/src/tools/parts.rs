//! What inputs and outputs are made of.

use beamtalk_wire::answers::{Conflict, Diagnostic, Finding, LoadError, MigrationFailure, Severity, Warning};
use beamtalk_wire::{AuthorKind, ChangeKind, Entry, EntryView, Intent, LoggedEntry, Side, State};
use serde::Serialize;

use crate::data::Data;
use crate::host::Host;

/// Declares what a tool takes: what it needs, then what may be left out.
macro_rules! input {
    (
        $name:ident {
            $($(#[$need_about:meta])* $need:ident: $need_type:ty,)*
            $(; $($(#[$take_about:meta])* $take:ident: $take_type:ty,)*)?
        }
    ) => {
        #[derive(Debug, Default, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$need_about])* pub(crate) $need: $need_type,)*
            $($($(#[$take_about])*
            #[serde(default)]
            pub(crate) $take: Option<$take_type>,)*)?
        }
    };
}
pub(crate) use input;

/// Declares what a tool gives: what it always has, then what it may have.
macro_rules! output {
    (
        $name:ident {
            $($(#[$has_about:meta])* $has:ident: $has_type:ty,)*
            $(; $($(#[$may_about:meta])* $may:ident: $may_type:ty,)*)?
        }
    ) => {
        #[derive(Debug, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[allow(clippy::struct_field_names, reason = "fields are named as on the wire")]
        pub(crate) struct $name {
            $($(#[$has_about])* pub(crate) $has: $has_type,)*
            $($($(#[$may_about])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) $may: Option<$may_type>,)*)?
        }
    };
}
pub(crate) use output;

/// Declares what a tool gives as somebody else wrote it: an object whose fields have names and types, all of it data. What has
/// another type, such as nothing, is left out.
macro_rules! passed_on {
    ($(#[$about:meta])* $name:ident { $($field:ident: $kind:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, serde::Serialize)]
        #[serde(transparent)]
        pub(crate) struct $name(crate::data::Fields);

        impl From<crate::data::Fields> for $name {
            fn from(fields: crate::data::Fields) -> Self {
                Self(fields.of(&[$((stringify!($field), $kind)),*]))
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut properties = serde_json::Map::new();
                $(properties.insert(
                    stringify!($field).to_owned(),
                    serde_json::json!({"type": $kind, "x-beamtalk-origin": "data"}),
                );)*
                schemars::json_schema!({
                    "type": "object",
                    "properties": properties,
                    "additionalProperties": false,
                    "x-beamtalk-origin": "data",
                })
            }
        }
    };
}
pub(crate) use passed_on;

input! { Nothing {} }

/// Who wrote a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Author {
    Human,
    Agent,
}

impl From<Author> for AuthorKind {
    fn from(author: Author) -> Self {
        match author {
            Author::Human => Self::Human,
            Author::Agent => Self::Agent,
        }
    }
}

output! {
    FoundFault {
        severity: Severity,
        message: Data,
        ;
        code: String,
        hint: Data,
        /// The class it is in, if it is another than the one that was changed.
        class: String,
        file: String,
        line: u32,
        column: u32,
    }
}

impl From<&Diagnostic> for FoundFault {
    fn from(found: &Diagnostic) -> Self {
        Self {
            severity: found.severity,
            message: Data::new(&found.message),
            code: found.code.clone(),
            hint: found.hint.as_ref().map(Data::new),
            class: None,
            file: found.file.clone(),
            line: found.line,
            column: found.column,
        }
    }
}

impl From<&Finding> for FoundFault {
    fn from(found: &Finding) -> Self {
        Self {
            class: found.owner().cloned(),
            ..Self::from(found.diagnostic())
        }
    }
}

pub(crate) fn faults(found: impl IntoIterator<Item: Into<FoundFault>>) -> Vec<FoundFault> {
    found.into_iter().map(Into::into).collect()
}

/// What was found, but nothing of files that the client may not name.
pub(crate) fn open_faults(
    host: &impl Host,
    found: impl IntoIterator<Item: Into<FoundFault>>,
) -> Vec<FoundFault> {
    let mut all = faults(found);
    all.retain(|one| !one.is_closed(host));
    all
}

/// What stopped something from being loaded; of a file that the client may not name only that it did.
pub(crate) fn load_faults(
    host: &impl Host,
    found: impl IntoIterator<Item: Into<FoundFault>>,
) -> Vec<FoundFault> {
    let mut all = faults(found);
    for one in all.iter_mut().filter(|one| one.is_closed(host)) {
        one.message = Data::new("it does not load; what is in it is closed to clients");
        (one.hint, one.line, one.column) = (None, None, None);
    }
    all
}

impl FoundFault {
    fn is_closed<H: Host>(&self, host: &H) -> bool {
        self.file
            .as_deref()
            .is_some_and(|file| host.inside(file).is_err())
    }
}

pub(crate) fn warnings(warnings: &[Warning]) -> Option<Vec<Data>> {
    let texts: Vec<Data> = warnings
        .iter()
        .map(|warning| Data::new(warning.message()))
        .collect();
    Some(texts).filter(|texts| !texts.is_empty())
}

output! {
    Change {
        /// Its number, for diff_change and revert_change.
        seq: u64,
        /// Such as `Lamp>>toggle`.
        title: String,
        kind: ChangeKind,
        class: String,
        intent: Intent,
        state: State,
        author_kind: AuthorKind,
        /// Whether flush can write it.
        flushable: bool,
        ;
        selector: String,
        side: Side,
        file: String,
        warning: Data,
        /// A later change took its place.
        shadowed: bool,
        /// Its file has the same already.
        clean: bool,
    }
}

impl From<&Entry> for Change {
    fn from(entry: &Entry) -> Self {
        Self {
            seq: entry.seq,
            title: entry.title(),
            kind: entry.kind,
            class: entry.class.clone(),
            intent: entry.intent,
            state: entry.state,
            author_kind: entry.author_kind,
            flushable: entry.flushable,
            selector: entry.selector.clone(),
            side: entry.side,
            file: entry.source_file.clone(),
            warning: entry.not_flushable_reason.as_ref().map(Data::new),
            shadowed: None,
            clean: None,
        }
    }
}

impl From<&LoggedEntry> for Change {
    fn from(logged: &LoggedEntry) -> Self {
        let warning = logged.warning.as_ref().map(Data::new);
        let change = Self::from(&logged.entry);
        Self {
            warning: warning.or(change.warning),
            ..change
        }
    }
}

impl From<&EntryView> for Change {
    fn from(view: &EntryView) -> Self {
        let not_installed = view.not_installed.as_ref().map(|error| Data::new(&error.message));
        let change = Self::from(&view.entry);
        Self {
            warning: not_installed.or(change.warning),
            shadowed: Some(true).filter(|_| view.shadowed),
            clean: Some(true).filter(|_| view.clean),
            ..change
        }
    }
}

output! {
    FileConflict {
        file: String,
        reason: String,
        /// The changes that stay pending.
        seqs: Vec<u64>,
        ;
        detail: Data,
    }
}

impl From<&Conflict> for FileConflict {
    fn from(conflict: &Conflict) -> Self {
        Self {
            file: conflict.file.clone(),
            reason: conflict.reason.name().to_owned(),
            seqs: conflict.seqs.clone(),
            detail: conflict.detail.as_ref().map(Data::new),
        }
    }
}

pub(crate) fn conflicts<'a>(all: impl IntoIterator<Item = &'a Conflict>) -> Vec<FileConflict> {
    all.into_iter().map(FileConflict::from).collect()
}

impl From<&LoadError> for FoundFault {
    fn from(error: &LoadError) -> Self {
        Self {
            severity: Severity::Error,
            message: Data::new(&error.message),
            code: Some(error.kind.clone()),
            hint: error.hint.as_ref().map(Data::new),
            class: None,
            file: error.path.clone(),
            line: error.line,
            column: None,
        }
    }
}

output! {
    LeftBehind {
        actor: String,
        reason: Data,
    }
}

/// Actors that keep their old code and state.
pub(crate) fn left_behind(failures: &[MigrationFailure]) -> Vec<LeftBehind> {
    let one = |failure: &MigrationFailure| LeftBehind {
        actor: failure.actor.clone(),
        reason: Data::new(&failure.reason),
    };
    failures.iter().map(one).collect()
}

/// A value that is cut to so many elements.
pub(crate) fn page<T>(mut all: Vec<T>, limit: Option<u64>, usual: u64) -> Vec<T> {
    all.truncate(usize::try_from(limit.unwrap_or(usual)).unwrap_or(usize::MAX));
    all
}

/// Something that is not empty.
pub(crate) fn some<T: Serialize>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}
