//! Files of the image. Writing one is not only counted as the tool that does the same, it is that tool: what is closed to it stays
//! closed, its changes are the client's, and a person sees what would be written.

use beamtalk_wire::class_file::{declared, named_file, without_side};
use beamtalk_wire::file_name::decode;
use beamtalk_wire::{Side, requests};

use super::Context;
use super::files::denied;
use crate::host::{Host, HostError, failure};
use crate::tools::Failure;
use crate::tools::changes::{Flush, RevertChange, flush, revert_change};
use crate::tools::editing::{Method, SaveClass, save_class, save_method};

/// What one write does.
#[derive(Debug)]
pub(crate) enum Act {
    Class(SaveClass),
    /// A class without a file, or one that has its own.
    Source(String),
    Method(Method),
    /// All, or of one class.
    Flush(Option<String>),
    Revert(u64),
    Clear,
}

fn invalid(message: impl Into<String>) -> HostError {
    Box::new(failure("invalid_parameter", message).detail("path", "/text"))
}

/// What a write does in the image; `None` for files that are not its own.
pub(crate) fn acts(path: &str, text: &str) -> Option<Result<Vec<Act>, HostError>> {
    let parts: Vec<&str> = path.split('/').collect();
    Some(match parts.as_slice() {
        ["classes", ".new"] => Ok(vec![match named_file(text) {
            Some((path, source)) => Act::Class(SaveClass {
                source: source.to_owned(),
                path: path.to_owned(),
            }),
            None => Act::Source(text.to_owned()),
        }]),
        ["classes", class, ".source"] if declared(text) == Some(class) => {
            Ok(vec![Act::Source(text.to_owned())])
        }
        ["classes", class, ".source"] => Err(invalid(format!("the text does not define {class}"))),
        ["classes", class, ".class", file] => method(class, Side::Class, file, text),
        ["classes", class, file] if !file.starts_with('.') => method(class, Side::Instance, file, text),
        ["classes", ..] => Err(denied(path)),
        ["changes", "ctl"] => text.lines().map(change).collect(),
        _ => return None,
    })
}

fn method(class: &str, side: Side, file: &str, text: &str) -> Result<Vec<Act>, HostError> {
    let selector = decode(file).ok_or_else(|| denied(file))?;
    // A body alone is a method for the workspace; a file has to say what it is.
    if !text.contains("=>") {
        return Err(invalid("expected one method definition"));
    }
    Ok(vec![Act::Method(Method {
        class: class.to_owned(),
        selector,
        source: match side {
            Side::Instance => text.to_owned(),
            Side::Class => without_side(text).0,
        },
        side: Some(side),
    })])
}

fn change(line: &str) -> Result<Act, HostError> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let usage = || invalid("usage: flush [<Class>] | revert <seq> | clear");
    match words.as_slice() {
        ["flush"] => Ok(Act::Flush(None)),
        ["flush", class] => Ok(Act::Flush(Some((*class).to_owned()))),
        ["revert", seq] => seq.parse().map(Act::Revert).map_err(|_| usage()),
        ["clear"] => Ok(Act::Clear),
        _ => Err(usage()),
    }
}

/// The classes whose changes a write flushes: `None` for a write that flushes nothing, an empty list for all.
pub(crate) fn flushed(path: &str, text: &str) -> Option<Vec<String>> {
    let acts = acts(path.trim_matches('/'), text)?.ok()?;
    let mut flushes = acts.into_iter().filter_map(|act| match act {
        Act::Flush(class) => Some(class),
        _ => None,
    });
    let first = flushes.next()?;
    let all: Option<Vec<String>> = std::iter::once(first).chain(flushes).collect();
    Some(all.unwrap_or_default())
}

pub(crate) async fn perform<H: Host>(context: &Context<'_, H>, act: Act) -> Result<(), Failure> {
    match act {
        Act::Class(class) => save_class(context, class).await.map(drop),
        Act::Source(source) => {
            let request = requests::LoadSource { source, name: None };
            Ok(context.ask(&request).await.map(drop)?)
        }
        Act::Method(method) => save_method(context, method).await.map(drop),
        Act::Flush(class) => {
            let flushed = flush(
                context,
                Flush {
                    class,
                    ..Flush::default()
                },
            );
            flushed.await.map(drop)
        }
        Act::Revert(seq) => revert_change(context, RevertChange { seq }).await.map(drop),
        Act::Clear => Ok(context.ask(&requests::ClearChanges {}).await.map(drop)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_names_what_it_writes() {
        assert_eq!(flushed("changes/ctl", "flush\n"), Some(vec![]));
        assert_eq!(
            flushed("/changes/ctl", "flush Lamp\nrevert 3"),
            Some(vec!["Lamp".to_owned()])
        );
        assert_eq!(flushed("changes/ctl", "flush Lamp\nflush"), Some(vec![]));
        assert_eq!(flushed("changes/ctl", "revert 3"), None);
        assert_eq!(flushed("classes/Lamp/on", "on => 1"), None);
    }

    #[test]
    fn what_is_no_definition_or_command_is_refused() {
        for (path, text) in [
            ("classes/Lamp/on", "true"),
            ("classes/Lamp/.source", "Object subclass: Cup"),
            ("classes/Lamp/.info", "x"),
            ("changes/ctl", "take image"),
            ("changes/ctl", "revert all"),
        ] {
            assert!(matches!(acts(path, text), Some(Err(_))), "{path} {text}");
        }
        assert!(acts("agents/a1/ctl", "kill").is_none());
    }
}
