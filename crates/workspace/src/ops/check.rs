//! Checking the code of the image again after something it uses changed.

use std::rc::Rc;

use beamtalk_syntax::ast::Item;
use beamtalk_wire::{Channel, ErrorBody};
use serde_json::{Value, json};

use super::Answer;
use crate::compile::job::{Definition, Job, SourceText};
use crate::workspace::Workspace;

/// Check all live classes of the project again.
pub(super) async fn recheck(workspace: &Rc<Workspace>) -> Result<Answer, ErrorBody> {
    let files = workspace.compiler.known.borrow().files(|_| true);
    let checked = files.len();
    let compiled = workspace.compiler.run(Job::Files { files }).await?;
    let findings = compiled.outcome.diagnostics;
    Ok(json!({"checked": checked, "stale": 0, "findings": findings}).into())
}

pub(super) fn findings(workspace: &Workspace) -> Answer {
    let findings = workspace.findings.borrow();
    let mut classes: Vec<&String> = findings.keys().collect();
    classes.sort_unstable();
    let all: Vec<&Value> = classes
        .iter()
        .filter_map(|class| findings.get(*class))
        .flatten()
        .collect();
    json!({"checked": findings.len(), "stale": 0, "findings": all}).into()
}

/// Check the callers of what was defined anew, after its answer.
pub(super) fn soon(workspace: &Rc<Workspace>, definitions: Vec<Definition>) {
    let workspace = workspace.clone();
    tokio::task::spawn_local(async move {
        for definition in definitions.iter().filter(|one| concerns_callers(one)) {
            check_callers(&workspace, &definition.class, definition.selector.as_deref()).await;
        }
    });
}

/// Callers see a method's head and whether it exists, not its body.
pub(super) fn concerns_callers(definition: &Definition) -> bool {
    let head = |source: &str| -> String {
        let head = source.split("=>").next().unwrap_or_default();
        head.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    match (&definition.previous, &definition.selector) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(previous), Some(_)) => head(previous) != head(&definition.source),
    }
}

/// At most this many files are checked after a change.
const CALLERS: usize = 100;

/// Check the files that mention a class after it changed; what is found replaces what was known of them.
pub(super) async fn check_callers(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: Option<&str>,
) -> Vec<Value> {
    let callers = workspace
        .compiler
        .known
        .borrow()
        .files(|text| mentions(&text.text, class));
    let not_checked = callers.len().saturating_sub(CALLERS);
    let files: Vec<_> = callers.into_iter().take(CALLERS).collect();
    if files.is_empty() {
        return Vec::new();
    }
    let owners: Vec<(String, String)> = files
        .iter()
        .map(|file| (owner(file), file.path.clone()))
        .collect();
    let Ok(compiled) = workspace.compiler.run(Job::Files { files }).await else {
        return Vec::new();
    };
    let found = compiled.outcome.diagnostics;
    for (owner, path) in &owners {
        let own = found.iter().filter(|finding| finding["file"] == path.as_str());
        let own: Vec<Value> = own.cloned().collect();
        workspace.findings.borrow_mut().insert(owner.clone(), own);
    }
    let owners: Vec<&String> = owners.iter().map(|(owner, _)| owner).collect();
    let data = json!({
        "changed_class": class,
        "changed_selector": selector,
        "classification": "changed",
        "checked": owners.len(),
        "not_checked": not_checked,
        "checked_owners": owners,
        "findings": found,
    });
    workspace.publish(Channel::ReloadCheck, "completed", &data);
    found
}

/// The class of a file; a file of extensions only stands for itself.
fn owner(file: &SourceText) -> String {
    let parse = beamtalk_syntax::parse_file(&file.text);
    let class = parse.unit.items.iter().find_map(|item| match item {
        Item::Class(class) => Some(class.name.text.to_string()),
        _ => None,
    });
    class.unwrap_or_else(|| file.path.clone())
}

/// Whether a text has the class's name as a word.
fn mentions(text: &str, class: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(class).any(|(at, _)| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text
            .get(at + class.len()..)
            .and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_body_concerns_no_caller() {
        let change = |previous: &str, source: &str| {
            concerns_callers(&Definition {
                class: "Lamp".to_owned(),
                selector: Some("isOn".to_owned()),
                is_class_side: false,
                source: source.to_owned(),
                previous: Some(previous.to_owned()),
                file: None,
                package: None,
            })
        };
        assert!(!change("isOn   =>   self.on", "isOn => 7"));
        assert!(change("isOn => self.on", "isOn -> Integer => 7"));
    }

    #[test]
    fn names_are_words() {
        assert!(mentions("Lamp spawn", "Lamp") && mentions("(Lamp)", "Lamp"));
        assert!(!mentions("Lamps new. MyLamp new", "Lamp"));
    }
}
