//! Types that are known and not written: of variables and of parameters of blocks; `Dynamic` with its reason.

use std::collections::BTreeSet;

use beamtalk_compiler::complete::Lookup;
use beamtalk_compiler::ffi;
use beamtalk_compiler::types::Form;
use beamtalk_syntax::ast::{ExpressionKind, Send};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use gen_lsp_types::InlayHintParams;
use serde_json::{Value, json};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning, Role};
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(snapshot: &Snapshot, params: InlayHintParams) -> Result<Vec<Value>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let within = view.span(params.range)?;
    let wanted = snapshot.state.client.settings.hints;
    let names = names::all(&view.file.source.unit);
    // Parameters of methods are asked for in `typed` classes, not hinted at.
    let heads: BTreeSet<Span> = find::methods(&view.file)
        .flat_map(|found| found.method.head.parameters.iter().map(|one| one.name.span))
        .collect();
    let lookup = Lookup::new(&view.world.table);
    let inference = Inference::new(&lookup);
    let types = inference.types(&view);
    let mut hints = Vec::new();
    for (span, of) in types.bindings() {
        snapshot.go_on()?;
        let is_in = within.start <= span.start && span.end <= within.end;
        let declared = names.iter().find(|name| {
            name.span == *span
                && name.role == Role::Declaration
                && matches!(name.meaning, Meaning::Local { .. })
        });
        let Some(name) = declared.filter(|_| is_in && !heads.contains(span)) else {
            continue;
        };
        let is_wanted = if name.is_parameter {
            wanted.blocks
        } else {
            wanted.locals
        };
        let is_hidden = span.text(view.text()).starts_with('_') || is_annotated(view.text(), *span);
        if !is_wanted || is_hidden {
            continue;
        }
        let mut hint = json!({
            "position": view.range(*span).end,
            "label": format!(":: {of}"),
            "kind": 1,
            "paddingLeft": true,
        });
        if let Form::Dynamic(reason) = of.form() {
            if !wanted.dynamic {
                continue;
            }
            hint["label"] = format!(":: Dynamic ({})", reason.text()).into();
        }
        hints.push(hint);
    }
    if wanted.ffi {
        hints.extend(ffi(&view, within));
    }
    Ok(hints)
}

/// What the specification of an Erlang function calls its parameters, before the arguments.
fn ffi(view: &View, within: Span) -> Vec<Value> {
    let mut hints = Vec::new();
    let bodies = find::methods(&view.file).flat_map(|found| &found.method.body);
    for statement in bodies {
        walk::all(&statement.expression, &mut |node| {
            let ExpressionKind::Send(send) = &node.kind else {
                return;
            };
            let is_in = within.start <= node.span.start && node.span.end <= within.end;
            let Some(module) = ffi::module_of(&send.receiver).filter(|_| is_in) else {
                return;
            };
            let message = &send.message;
            let name = message.selector.split(':').next().unwrap_or_default();
            let module = crate::erlang::module(&view.world.root, module);
            let Some(module) = module.filter(|_| !message.arguments.is_empty()) else {
                return;
            };
            let Some(function) = module.function(name, message.arguments.len()) else {
                return;
            };
            for (parameter, argument) in function.parameters.iter().zip(&message.arguments) {
                if !parameter.name.is_empty() {
                    hints.push(json!({
                        "position": view.range(argument.span).start,
                        "label": format!("{}:", parameter.name),
                        "kind": 2,
                        "tooltip": format!("{}:{name}/{}", module_name(send), message.arguments.len()),
                        "paddingRight": true,
                    }));
                }
            }
        });
    }
    hints
}

fn module_name(send: &Send) -> &str {
    ffi::module_of(&send.receiver).map_or("", |name| name.as_str())
}

fn is_annotated(text: &str, span: Span) -> bool {
    let rest = text.get(span.end as usize..).unwrap_or_default();
    rest.trim_start().starts_with("::")
}
