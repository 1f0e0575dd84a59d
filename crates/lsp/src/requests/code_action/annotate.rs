//! The type of a variable, parameter or method written where it is only known.

use beamtalk_compiler::complete::Lookup;
use beamtalk_syntax::span::Span;
use serde_json::Value;

use super::{Asked, action};
use crate::analysis::find::Inference;
use crate::analysis::names::{self, Role};
use crate::analysis::references::Certainty;
use crate::edit::Edits;
use crate::fault::Fault;

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let view = asked.view;
    let unit = &view.file.source.unit;
    let names = names::all(unit);
    let Some((name, variable, declared)) = names::local_at(&names, asked.span.start) else {
        return Ok(Vec::new());
    };
    let is_first = name.role == Role::Declaration && name.span == declared;
    let rest = view.text().get(declared.end as usize..).unwrap_or_default();
    if !is_first || rest.trim_start().starts_with("::") {
        return Ok(Vec::new());
    }
    let lookup = Lookup::new(&view.world.table);
    let inference = Inference::new(&lookup);
    let mut bindings = inference.types(view).bindings().iter();
    let known = bindings.find(|(span, of)| *span == declared && !of.is_dynamic() && !of.is_never());
    let Some((_, known)) = known else {
        return Ok(Vec::new());
    };
    let mut edits = Edits::new(asked.snapshot, "");
    let behind = Span::new(declared.end, declared.end);
    edits.replace(&view.file, behind, format!(" :: {known}"), Certainty::Sure)?;
    let title = format!("Write the type: {variable} :: {known}");
    Ok(vec![action(title, "refactor.rewrite", edits.finish()?)])
}
