//! The guardrails of tools for those who write files at a session's door instead: otherwise the files would be a way
//! around the tools.

use beamtalk_wire::escape;
use beamtalk_wire::requests::ApprovalAsk;
use serde_json::json;

use crate::dispatch::{Holds, holds, may_be_rule};
use crate::settings::Settings;
use crate::tools::{Class, Tool};

/// Something that is done by a file: the tool that does the same, the file, and what was written to it.
#[derive(Clone, Copy, Debug)]
pub struct FileDeed<'a> {
    pub tool: &'static str,
    /// Something is lost by it, whatever the tool usually does.
    pub loses: bool,
    pub path: &'a str,
    /// Nothing for a removal.
    pub text: Option<&'a str>,
}

/// What the settings say to a deed.
#[derive(Debug)]
pub enum Counted {
    Allowed,
    /// A person is asked first.
    Held(Box<ApprovalAsk>),
    /// The same, where changes are written to their files by themselves.
    HeldIfFlushed(Box<ApprovalAsk>),
    /// Why not.
    Denied(String),
}

/// A deed counts as the tool that does the same.
pub fn count(settings: &Settings, deed: FileDeed<'_>) -> Counted {
    let Some(tool) = Tool::find(deed.tool) else {
        return Counted::Denied(format!("there is no tool '{}'", deed.tool));
    };
    if tool.is_denied(settings) {
        return Counted::Denied(format!("the tool '{}' is denied by the configuration", tool.name));
    }
    let class = if deed.loses { Class::Destroy } else { tool.class };
    if settings.policy < class.policy() {
        return Counted::Denied(format!(
            "the policy '{}' does not allow what '{}' does",
            settings.policy, tool.name
        ));
    }
    let is_destructive = class == Class::Destroy;
    let ask = || {
        let given = match deed.text {
            Some(text) => json!({"path": deed.path, "text": text}),
            None => json!({"path": deed.path}),
        };
        Box::new(ApprovalAsk {
            tool: tool.name.to_owned(),
            summary: format!("{} by {}", tool.title, escape(deed.path)),
            text: escape(&serde_json::to_string_pretty(&given).unwrap_or_default()),
            effect: None,
            diff: None,
            timeout_s: Some(settings.approval_timeout.as_secs()),
            may_be_rule: Some(!is_destructive && may_be_rule(tool)),
        })
    };
    match holds(settings.approval, tool, is_destructive) {
        Holds::No => Counted::Allowed,
        Holds::Yes => Counted::Held(ask()),
        Holds::IfFlushed => Counted::HeldIfFlushed(ask()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Approval, NarrowedBy, Policy};

    fn deed(tool: &'static str) -> FileDeed<'static> {
        FileDeed {
            tool,
            loses: false,
            path: "classes/Fan/faster",
            text: Some("faster => 1"),
        }
    }

    /// What a tool may not do a file may not do; who is asked about the one is asked about the other.
    #[test]
    fn a_file_is_no_way_around_a_tool() {
        let mut settings = Settings::default();
        assert!(matches!(count(&settings, deed("save_method")), Counted::Allowed));
        assert!(matches!(
            count(&settings, deed("remove_class")),
            Counted::Denied(_)
        ));
        let lost = FileDeed {
            loses: true,
            ..deed("flush")
        };
        assert!(matches!(count(&settings, lost), Counted::Denied(_)));
        settings.deny_tools = vec!["evaluate".to_owned()];
        assert!(matches!(count(&settings, deed("evaluate")), Counted::Denied(_)));
        settings.approval = Approval::Write;
        assert!(matches!(count(&settings, deed("flush")), Counted::Held(_)));
        assert!(matches!(
            count(&settings, deed("save_method")),
            Counted::HeldIfFlushed(_)
        ));
        settings.approval = Approval::Execute;
        let Counted::Held(ask) = count(&settings, deed("save_method")) else {
            panic!("it is not held");
        };
        assert!(
            ask.text.contains("faster => 1") && ask.may_be_rule == Some(true),
            "{ask:?}"
        );
        settings.narrow(Policy::ReadOnly, NarrowedBy::Project);
        assert!(matches!(
            count(&settings, deed("save_method")),
            Counted::Denied(_)
        ));
    }
}
