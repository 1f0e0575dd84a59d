//! Types that are known and not written: of variables and of parameters of blocks.

use beamtalk_compiler::complete::Lookup;
use beamtalk_syntax::span::Span;
use gen_lsp_types::InlayHintParams;
use serde_json::{Value, json};

use crate::analysis::names::{self, Meaning, Role};
use crate::fault::Fault;
use crate::state::Snapshot;

pub(crate) fn handle(snapshot: &Snapshot, params: InlayHintParams) -> Result<Vec<Value>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let within = view.span(params.range)?;
    let lookup = Lookup::new(&view.world.table);
    let wanted = snapshot.state.client.settings.hints;
    let unit = &view.file.source.unit;
    let mut hints = Vec::new();
    for name in names::all(unit) {
        let is_in = within.start <= name.span.start && name.span.end <= within.end;
        let is_declared = name.role == Role::Declaration && is_in;
        let Meaning::Local { name: variable, .. } = &name.meaning else {
            continue;
        };
        let is_wanted = if name.is_parameter {
            wanted.blocks
        } else {
            wanted.locals
        };
        if !is_declared || !is_wanted || variable.starts_with('_') || is_annotated(view.text(), name.span) {
            continue;
        }
        snapshot.go_on()?;
        // What a variable holds is known behind the statement that makes it.
        if let Some(known) = lookup.declared_variable(unit, name.span) {
            hints.push(json!({
                "position": view.range(name.span).end,
                "label": format!(":: {}", known.text()),
                "kind": 1,
                "paddingLeft": true,
            }));
        }
    }
    Ok(hints)
}

fn is_annotated(text: &str, span: Span) -> bool {
    let rest = text.get(span.end as usize..).unwrap_or_default();
    rest.trim_start().starts_with("::")
}
