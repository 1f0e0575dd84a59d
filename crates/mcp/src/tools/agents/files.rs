//! Files of the agents' tree. A write counts as the tool that does the same.

use super::{Context, Failure, Text};
use crate::data::Data;
use crate::host::{Host, HostError, failure};
use crate::settings::{LoopRight, Policy};
use crate::tools::parts::{input, output};

input! {
    TreePath {
        /// A path in the tree, such as `agents/list`.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
    }
}

output! {
    Names {
        names: Vec<Data>,
    }
}

/// A path in the tree: no way up, and none to tokens.
fn place(path: &str) -> Result<String, HostError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains('\0');
    let is_root = parts == [""];
    if (!is_root && parts.iter().any(is_odd)) || parts.contains(&"tokens") {
        return Err(denied(path));
    }
    Ok(parts.join("/"))
}

fn denied(path: &str) -> HostError {
    let shown = crate::escape(&path.chars().take(200).collect::<String>());
    failure("path_denied", format!("'{shown}' is not open to tools"))
}

pub(crate) async fn list_files<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Names, Failure> {
    let names = context.names(place(&input.path)?).await?;
    Ok(Names {
        names: names.iter().map(Data::new).collect(),
    })
}

pub(crate) async fn read_file<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Text, Failure> {
    Ok(Text {
        text: Data::new(context.read(place(&input.path)?).await?),
    })
}

input! {
    WriteFile {
        /// A path in the tree.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
        /// What is written.
        #[cfg_attr(feature = "schema", schemars(length(max = 524_288)))]
        text: String,
    }
}

output! {
    Written {
        written: u64,
    }
}

/// What a write to the tree counts as; what counts as no tool is denied.
fn may_write<H: Host>(context: &Context<'_, H>, path: &str, text: &str) -> Result<(), HostError> {
    let own = context.host.own_session();
    let parts: Vec<&str> = path.split('/').collect();
    let loses = |words: &[&str]| {
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().next().unwrap_or_default());
        lines.into_iter().any(|word| words.contains(&word))
    };
    match parts.as_slice() {
        ["agents", id, "state" | "out" | "mail"] if Some(*id) == own.as_deref() => Ok(()),
        ["agents", "user", "mail"] if own.is_none() => Ok(()),
        ["agents", "ctl"]
        | [
            "agents",
            _,
            "in" | "prompt" | "queue" | "alias" | "context" | "role",
        ] => Ok(()),
        ["agents", _, "ctl"] if loses(&["kill", "discard"]) => full(context, path),
        ["agents", _, "ctl"] => Ok(()),
        ["changes", "ctl"] if loses(&["discard", "clear", "take"]) => full(context, path),
        ["changes", "ctl"] | ["classes", ..] => Ok(()),
        ["loop", "events", _] => context.loop_right(LoopRight::Post),
        _ => Err(denied(path)),
    }
}

fn full<H: Host>(context: &Context<'_, H>, path: &str) -> Result<(), HostError> {
    if context.settings.policy == Policy::Full {
        return Ok(());
    }
    let message = format!(
        "the policy '{}' does not allow this line in '{path}'",
        context.settings.policy
    );
    Err(Box::new(
        failure("policy_denied", message).detail("policy", context.settings.policy.name()),
    ))
}

pub(crate) async fn write_file<H: Host>(
    context: &Context<'_, H>,
    input: WriteFile,
) -> Result<Written, Failure> {
    let path = place(&input.path)?;
    may_write(context, &path, &input.text)?;
    let written = input.text.len() as u64;
    context.write(path, input.text).await?;
    Ok(Written { written })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree_and_away_from_tokens() {
        assert_eq!(place("/agents/list").ok().as_deref(), Some("agents/list"));
        assert_eq!(place("").ok().as_deref(), Some(""));
        for odd in ["agents/../tokens", "agents/tokens", "tokens", "a//b", "./a"] {
            assert_eq!(
                place(odd)
                    .err()
                    .map(|error| error.kind.name().to_owned())
                    .as_deref(),
                Some("path_denied"),
                "{odd}"
            );
        }
    }
}
