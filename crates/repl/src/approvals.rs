//! Calls of AI clients that wait for a person, as they are shown.

use beamtalk_storage::time::now_seconds;
use beamtalk_wire::answers::{Approval, ApprovalRule};
use beamtalk_wire::escape;

pub fn list(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "Nothing waits.".to_owned();
    }
    let texts: Vec<String> = approvals.iter().map(one).collect();
    texts.join("\n\n")
}

/// Everything that the hash is made of, and how long there is.
pub fn one(approval: &Approval) -> String {
    let left = approval.expires.saturating_sub(now_seconds());
    let shown = |text: &str| escape(text).replace('\n', "\n  ");
    let mut text = format!(
        "{} {} of {}, {left} s left\n  {}\n  {}",
        approval.id,
        approval.tool,
        shown(&approval.who),
        shown(&approval.summary),
        shown(&approval.text),
    );
    for (name, part) in [("would", &approval.effect), ("diff", &approval.diff)] {
        if let Some(part) = part {
            text.push_str(&format!("\n  {name}: {}", shown(part)));
        }
    }
    text.push_str(&format!("\n  sha256 {}", approval.sha256));
    text
}

pub fn rules(rules: &[ApprovalRule]) -> String {
    if rules.is_empty() {
        return "There are no rules.".to_owned();
    }
    let one = |rule: &ApprovalRule| format!("{} {} {}", rule.id, rule.tool, escape(&rule.text));
    rules.iter().map(one).collect::<Vec<_>>().join("\n")
}
