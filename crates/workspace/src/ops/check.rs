//! Checking the code of the image again after something it uses changed.

use std::rc::Rc;

use beamtalk_syntax::ast::Item;
use beamtalk_syntax::definitions::signature;
use beamtalk_wire::answers::{ChangedUse, Diagnostic, Finding, FindingSite, Severity, UseFinding};
use beamtalk_wire::requests::{NavKind, NavQuery};
use beamtalk_wire::{Event, ReloadCheckEvent};

use crate::compile::job::{Definition, FileName, Job, SourceText};
use crate::workspace::Workspace;

/// Check the callers of what was defined anew, after its answer.
pub(super) fn soon(workspace: &Rc<Workspace>, definitions: Vec<Definition>) {
    let workspace = workspace.clone();
    tokio::task::spawn_local(async move {
        for definition in definitions.iter().filter(|one| concerns_callers(one)) {
            let gone = vanished(definition);
            check_callers(
                &workspace,
                &definition.class,
                definition.selector.as_deref(),
                &gone,
            )
            .await;
        }
    });
}

/// Callers see a method's head and whether it exists, not its body.
pub(super) fn concerns_callers(definition: &Definition) -> bool {
    match (&definition.previous, &definition.selector) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(previous), Some(_)) => signature(previous) != signature(&definition.source),
    }
}

/// At most this many files are checked after a change, beside those that are known to rest on it.
const CALLERS: usize = 1000;

/// The selectors of methods that a definition took away.
fn vanished(definition: &Definition) -> Vec<String> {
    match (&definition.selector, &definition.previous) {
        (Some(selector), Some(_)) if definition.source.is_empty() => vec![selector.clone()],
        (None, Some(previous)) => {
            let now = selectors(&definition.source);
            let mut gone = selectors(previous);
            gone.retain(|selector| !now.contains(selector));
            gone
        }
        _ => Vec::new(),
    }
}

/// The selectors of the methods in the text of a class.
fn selectors(text: &str) -> Vec<String> {
    let items = beamtalk_syntax::parse_file(text).unit.items;
    let methods = items.iter().flat_map(|item| match item {
        Item::Class(class) => class.methods.as_slice(),
        _ => &[],
    });
    methods.map(|method| method.head.selector.to_string()).collect()
}

/// Hints about messages that nobody answers any more, as the image knows who sends what.
async fn unanswered(workspace: &Rc<Workspace>, class: &str, gone: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    for selector in gone {
        let sites = async |kind| {
            let query = NavQuery {
                kind,
                selector: Some(selector.clone()),
                class: None,
            };
            workspace.image.ask("", &query).await.map(|answer| answer.sites)
        };
        if sites(NavKind::Implementors)
            .await
            .map_or(true, |sites| !sites.is_empty())
        {
            continue;
        }
        for site in sites(NavKind::Senders).await.unwrap_or_default() {
            let hint = Diagnostic {
                file: site.source_file,
                line: site.line.and_then(|line| u32::try_from(line).ok()),
                code: None,
                severity: Severity::Hint,
                category: None,
                message: format!("nothing answers '{selector}' since it was removed from {class}"),
                hint: None,
                notes: Vec::new(),
                span_start: None,
                span_end: None,
                column: None,
                end_line: None,
                end_column: None,
                fix: None,
            };
            found.push(of_owner(hint, &site.class, class, Some(selector)));
        }
    }
    found
}

/// Check the callers of what changed; what is found replaces what was known of them. `gone` are the selectors of methods
/// that the change took away.
pub(super) async fn check_callers(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: Option<&str>,
    gone: &[String],
) -> Vec<Finding> {
    let mut checked = check(workspace, class, selector, Vec::new())
        .await
        .unwrap_or_default();
    for hint in unanswered(workspace, class, gone).await {
        if let Some(owner) = hint.owner()
            && !checked.owners.contains(owner)
        {
            checked.owners.push(owner.clone());
        }
        checked.findings.push(hint);
    }
    if checked.owners.is_empty() {
        return Vec::new();
    }
    for owner in &checked.owners {
        let own = checked
            .findings
            .iter()
            .filter(|finding| finding.owner() == Some(owner));
        let own: Vec<Finding> = own.cloned().collect();
        workspace.findings.borrow_mut().insert(owner.clone(), own);
    }
    workspace.publish(&Event::ReloadCheck(ReloadCheckEvent::Completed {
        changed_class: class.to_owned(),
        changed_selector: selector.map(str::to_owned),
        classification: CLASSIFICATION.to_owned(),
        checked: checked.owners.len() as u64,
        not_checked: checked.skipped as u64,
        checked_owners: checked.owners,
        findings: checked.findings.clone(),
    }));
    checked.findings
}

/// What callers are told of a change.
const CLASSIFICATION: &str = "changed";

/// What checking callers came to.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) owners: Vec<String>,
    /// How many callers were left out.
    pub(super) skipped: usize,
    pub(super) findings: Vec<Finding>,
}

/// Check the files that mention a class or send a selector, and those that are known to rest on what changed, as if
/// `texts` were installed. `None` when there are no such files.
pub(super) async fn check(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: Option<&str>,
    texts: Vec<SourceText>,
) -> Option<Checked> {
    let word = selector.and_then(|selector| selector.split(':').next());
    let word = word.filter(|word| word.starts_with(char::is_alphabetic));
    let callers = workspace.compiler.known.borrow().files(|text| {
        let is_given = texts.iter().any(|given| given.module == text.module);
        !is_given && (mentions(&text.text, class) || word.is_some_and(|word| mentions(&text.text, word)))
    });
    let skipped = callers.len().saturating_sub(CALLERS);
    let files: Vec<FileName> = callers.into_iter().take(CALLERS).collect();
    let job = Job::Recheck {
        installed: texts,
        files,
        texts: Vec::new(),
    };
    let compiled = workspace.compiler.run(job).await.ok()?;
    let owners = compiled.outcome.looked_at;
    if owners.is_empty() {
        return None;
    }
    let mut findings = Vec::new();
    for found in compiled.outcome.diagnostics {
        let Some((owner, _)) = owners.iter().find(|(_, path)| found.file.as_ref() == Some(path)) else {
            continue;
        };
        findings.push(of_owner(found, owner, class, selector));
    }
    Some(Checked {
        owners: owners.into_iter().map(|(owner, _)| owner).collect(),
        skipped,
        findings,
    })
}

/// A finding with the class it is in and the change that it is about.
fn of_owner(diagnostic: Diagnostic, owner: &str, class: &str, selector: Option<&str>) -> Finding {
    let changed = ChangedUse {
        owner: owner.to_owned(),
        changed_class: class.to_owned(),
        selector: selector.map(str::to_owned),
        classification: CLASSIFICATION.to_owned(),
        note: diagnostic.notes.first().map(|note| note.message.clone()),
        sites: vec![FindingSite {
            class: owner.to_owned(),
            file: diagnostic.file.clone(),
            line: diagnostic.line,
            column: diagnostic.column,
        }],
        start: diagnostic.span_start,
        end: diagnostic.span_end,
    };
    Finding::OfUse(UseFinding { diagnostic, changed })
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

    fn definition(selector: Option<&str>, previous: &str, source: &str) -> Definition {
        Definition {
            class: "Lamp".to_owned(),
            selector: selector.map(str::to_owned),
            is_class_side: false,
            source: source.to_owned(),
            previous: Some(previous.to_owned()),
            file: None,
            package: None,
            is_whole_file: false,
        }
    }

    #[test]
    fn a_new_body_concerns_no_caller() {
        let change =
            |previous: &str, source: &str| concerns_callers(&definition(Some("isOn"), previous, source));
        assert!(!change("isOn   =>   self.on", "isOn => 7"));
        assert!(change("isOn => self.on", "isOn -> Integer => 7"));
    }

    #[test]
    fn what_a_definition_took_away_is_known_by_its_texts() {
        let change = |selector: Option<&str>, previous: &str, source: &str| {
            vanished(&definition(selector, previous, source))
        };
        assert_eq!(change(Some("a"), "a => 1", ""), ["a"]);
        assert!(change(Some("a"), "a => 1", "a => 2").is_empty());
        let class = "Object subclass: Lamp\n  a => 1\n  class b: x => 2\n";
        assert_eq!(change(None, class, "Object subclass: Lamp\n  a => 1\n"), ["b:"]);
    }

    #[test]
    fn names_are_words() {
        assert!(mentions("Lamp spawn", "Lamp") && mentions("(Lamp)", "Lamp"));
        assert!(!mentions("Lamps new. MyLamp new", "Lamp"));
    }
}
