//! Classes and methods: what their files read as, and what writing or removing one does.

use std::sync::PoisonError;

use beamtalk_ninep::Refusal;
use beamtalk_wire::answers::{Diagnostic, Severity};
use beamtalk_wire::class_file::{declared, named_file, without_side};
use beamtalk_wire::requests::{LoadSource, RemoveClass, RemoveMethod, SaveClass, SaveMethod};
use beamtalk_wire::{ErrorBody, ErrorKind, Side};
use serde_json::json;

use super::{Spot, WorkspaceNode, text_of};
use crate::error::refusal;
use crate::link::{ClassText, Failure, Link};

/// The compiler's codes for a text that is not the method it should be.
const WRONG_SELECTOR: &str = "E0701";
const SEVERAL: &str = "expected a single method definition";
/// Of `class ` before a method of the class side.
const CLASS_SIDE_WIDTH: u32 = 6;

fn one_definition() -> Refusal {
    refusal("expected one method definition")
}

fn line(text: Option<&str>) -> String {
    match text {
        Some(text) if !text.is_empty() => format!("{}\n", text.trim_end_matches('\n')),
        _ => String::new(),
    }
}

impl Link {
    /// Diagnostics of the last failed commit in a class.
    pub(super) fn error(&self, class: &str) -> String {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.get(class).cloned().unwrap_or_default()
    }

    /// A new commit begins: what was told of the last one is over.
    pub(super) fn forget_error(&self, class: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        errors.remove(class);
    }

    /// Keep an error that nothing is known of yet.
    pub(super) fn note_error(&self, class: &str, text: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.contains_key(class) {
            return;
        }
        errors.insert(class.to_owned(), format!("{text}\n"));
        drop(errors);
        if let Some(live) = self.now() {
            live.known.forget_class(class);
        }
    }
}

impl WorkspaceNode {
    pub(super) fn class_content(&self, class: &str, name: &str, text: &ClassText) -> Vec<u8> {
        let told = &text.told;
        match name {
            ".definition" => line(Some(&told.definition)),
            ".doc" => line(told.comment.as_deref()),
            ".error" => self.link.error(class),
            ".info" => {
                let selectors = |side| -> Vec<&str> {
                    text.selectors(side)
                        .map(|method| method.selector.as_str())
                        .collect()
                };
                let info = json!({
                    "name": class, "superclass": told.superclass, "kind": told.kind, "file": told.source_file,
                    "package": told.package, "flushable": told.flushable,
                    "methods": selectors(Side::Instance), "class_methods": selectors(Side::Class),
                });
                format!("{info}\n")
            }
            _ => source(text),
        }
        .into_bytes()
    }

    /// A written document takes effect.
    pub(super) async fn change_class(&self, bytes: Vec<u8>) -> Result<(), Refusal> {
        let text = text_of(bytes)?;
        let class = match &self.spot {
            Spot::NewClass(_) => declared(&text).map(str::to_owned),
            spot => spot.class().map(str::to_owned),
        };
        let outcome = match &self.spot {
            Spot::Method {
                class,
                side,
                selector,
                ..
            } => self.save_method(class, *side, selector, &text).await,
            Spot::OfClass(class, _) => self.save_source(class, text).await,
            _ => self.new_class(text).await,
        };
        if let Some(class) = class {
            let mut errors = self.link.errors.lock().unwrap_or_else(PoisonError::into_inner);
            match &outcome {
                Ok(()) => errors.remove(&class),
                Err(fault) => errors.insert(class.clone(), fault.lines.clone()),
            };
            drop(errors);
            // Afterwards: whoever sees that something is new sees all of it.
            if let Some(live) = self.link.now() {
                live.known.forget_class(&class);
            }
        }
        outcome.map_err(|fault| fault.refused)
    }

    async fn save_method(
        &self,
        class: &str,
        side: Side,
        selector: &str,
        source: &str,
    ) -> Result<(), CommitFault> {
        // A body alone is a method for the workspace; a file has to say what it is.
        if !source.contains("=>") {
            return Err(one_definition().into());
        }
        let (source, moved) = match side {
            Side::Instance => (source.to_owned(), None),
            Side::Class => without_side(source),
        };
        let request = SaveMethod {
            class: class.to_owned(),
            selector: selector.to_owned(),
            source,
            side: Some(side),
            base_sha256: None,
        };
        let saved = self.link.ask(&request).await;
        saved
            .map(drop)
            .map_err(|failure| CommitFault::of(failure, Some(selector), moved))
    }

    async fn save_source(&self, class: &str, source: String) -> Result<(), CommitFault> {
        match declared(&source) {
            Some(other) if other != class => {
                let text = format!("invalid source: file is of {class}, source defines {other}");
                return Err(refusal(text).into());
            }
            None => return Err(refusal(format!("invalid source: no definition of {class}")).into()),
            Some(_) => {}
        }
        let request = LoadSource { source, name: None };
        let loaded = self.link.ask(&request).await;
        loaded
            .map(drop)
            .map_err(|failure| CommitFault::of(failure, None, None))
    }

    /// Load new or existing classes; the first line may name the file a flush makes.
    async fn new_class(&self, text: String) -> Result<(), CommitFault> {
        let loaded = match named_file(&text) {
            Some((path, source)) => {
                let request = SaveClass {
                    source: source.to_owned(),
                    path: path.to_owned(),
                };
                self.link.ask(&request).await.map(drop)
            }
            None => {
                let request = LoadSource {
                    source: text,
                    name: None,
                };
                self.link.ask(&request).await.map(drop)
            }
        };
        loaded.map_err(|failure| CommitFault::of(failure, None, None))
    }

    pub(super) async fn remove_definition(&self) -> Result<(), Refusal> {
        let Some(class) = self.spot.class() else {
            return Err(Refusal::REMOVE_NOT_SUPPORTED);
        };
        let outcome = match &self.spot {
            Spot::Method { side, selector, .. } => {
                let request = RemoveMethod {
                    class: class.to_owned(),
                    selector: selector.clone(),
                    side: Some(*side),
                };
                self.link.ask(&request).await.map(drop)
            }
            _ => {
                let request = RemoveClass {
                    class: class.to_owned(),
                };
                self.link.ask(&request).await.map(drop)
            }
        };
        if let Ok(live) = self.link.live().await {
            live.known.forget_class(class);
        }
        match outcome {
            Ok(()) => {
                self.link.forget(self.path());
                Ok(())
            }
            Err(Failure::Gone(refused)) => Err(refused),
            Err(Failure::Told(error)) => Err(not_removed(&error)),
        }
    }
}

fn not_removed(error: &ErrorBody) -> Refusal {
    match error.kind {
        ErrorKind::ClassNotFound | ErrorKind::SelectorNotFound => Refusal::NOT_FOUND,
        _ if error.message.contains("subclasses") => refusal("class has subclasses"),
        _ if error.message.contains("library") => Refusal::PERMISSION_DENIED,
        _ => refusal(format!("cannot compile: {}", error.message)),
    }
}

/// Why a commit failed: what its writer is told, and the lines of `.error`.
struct CommitFault {
    refused: Refusal,
    lines: String,
}

impl From<Refusal> for CommitFault {
    fn from(refused: Refusal) -> Self {
        CommitFault {
            lines: format!("{}\n", refused.text),
            refused,
        }
    }
}

/// Where a finding is in the text that was written: a word was taken out of line `moved`.
fn place(found: &Diagnostic, moved: Option<u32>) -> String {
    let line = found.line.unwrap_or(1);
    let shift = if moved == Some(line) { CLASS_SIDE_WIDTH } else { 0 };
    format!("{line}:{}", found.column.unwrap_or(1) + shift)
}

impl CommitFault {
    fn of(failure: Failure, selector: Option<&str>, moved: Option<u32>) -> Self {
        let error = match failure {
            Failure::Gone(refused) => return refused.into(),
            Failure::Told(error) => error,
        };
        if error.kind == ErrorKind::ClassNotFound {
            return Refusal::NOT_FOUND.into();
        }
        let mut found = error.diagnostics.iter();
        let Some(first) = found.find(|found| found.severity == Severity::Error) else {
            return refusal(format!("cannot compile: {}", error.message)).into();
        };
        if let (Some(selector), Some(WRONG_SELECTOR)) = (selector, first.code.as_deref())
            && let Some(other) = first.message.split('`').nth(1)
        {
            let text = format!("selector mismatch: file is {selector}, source defines {other}");
            return refusal(text).into();
        }
        if first.message.starts_with(SEVERAL) {
            return one_definition().into();
        }
        let lines = error
            .diagnostics
            .iter()
            .map(|found| format!("{}: {}\n", place(found, moved), found.message.replace('\n', " ")))
            .collect();
        CommitFault {
            refused: refusal(format!(
                "compile error: {}: {}",
                place(first, moved),
                first.message
            )),
            lines,
        }
    }
}

/// The whole class as a source file has it.
fn source(text: &ClassText) -> String {
    let mut out = String::new();
    for line in text.told.comment.iter().flat_map(|comment| comment.lines()) {
        out.push_str(format!("/// {line}").trim_end());
        out.push('\n');
    }
    out.push_str(&text.told.definition);
    out.push('\n');
    for method in &text.methods {
        let source = String::from_utf8_lossy(&method.source);
        if source.is_empty() {
            continue;
        }
        out.push('\n');
        let mut keyword = if method.side == Side::Class { "class " } else { "" };
        for line in source.lines() {
            if !line.is_empty() {
                out.push_str("  ");
            }
            if !line.trim_start().starts_with("//") && !line.is_empty() {
                out.push_str(std::mem::take(&mut keyword));
            }
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}
