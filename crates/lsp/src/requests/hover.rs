//! What stands at a position: type, signature, documentation, and what a running workspace has there.

use std::collections::BTreeMap;
use std::time::Instant;

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_compiler::types::Form;
use beamtalk_wire::requests::{Inspect, Step};
use gen_lsp_types::{Contents, Hover, HoverParams, MarkupContent, MarkupKind};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning, Occurrence, Owner};
use crate::fault::Fault;
use crate::live::BRIEF;
use crate::state::{Snapshot, View};

/// How many actors are looked at.
const MOST_OBSERVED: usize = 10;

pub(crate) fn handle(snapshot: &Snapshot, params: HoverParams) -> Result<Option<Hover>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let contents = describe(&view, name).map(|contents| match observed(snapshot, &view, name) {
        Some(classes) => format!("{contents}\n\n{classes}"),
        None => contents,
    });
    Ok(contents.map(|value| Hover {
        contents: Contents::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value,
        }),
        range: Some(view.range(name.span)),
    }))
}

/// Of which classes the values are that living actors have in a slot. It is told at once or not at all.
fn observed(snapshot: &Snapshot, view: &View, name: &Occurrence) -> Option<String> {
    let (Meaning::Slot { name: slot }, Some(owner)) = (&name.meaning, &name.owner) else {
        return None;
    };
    let root = &view.world.root;
    let actors = snapshot
        .state
        .images
        .get(root)?
        .actors
        .get(owner.class.as_str())?;
    let until = Instant::now() + BRIEF;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for actor in actors.iter().take(MOST_OBSERVED) {
        let request = Inspect {
            actor: Some(actor.clone()),
            ..Inspect::default()
        };
        let left = until.saturating_duration_since(Instant::now());
        let Ok(answer) = snapshot.state.links.ask(root, &request, left) else {
            break;
        };
        let fields = answer.fields.into_iter();
        let own = fields.filter(|field| field.name == Step::Name(slot.to_string()));
        for field in own {
            *counts.entry(field.class).or_default() += 1;
        }
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(class, count)| format!("`{class}` in {count}"))
        .collect();
    let plural = if actors.len() == 1 { "" } else { "s" };
    (!parts.is_empty()).then(|| {
        format!(
            "*Observed: {} of {} actor{plural}*",
            parts.join(", "),
            actors.len()
        )
    })
}

fn describe(view: &View, name: &Occurrence) -> Option<String> {
    let lookup = Lookup::new(&view.world.table);
    let own = |owner: &Owner| Receiver {
        class: owner.class.clone(),
        is_class: owner.is_class,
    };
    let owner = name.owner.as_ref();
    let hover = match &name.meaning {
        Meaning::Class(class) => match lookup.describe_class(class) {
            Some(hover) => Some(hover),
            None => return protocol(view, class),
        },
        Meaning::Own => lookup.describe_class(&owner?.class),
        Meaning::Local { name: variable, .. } => {
            return Some(local(view, &lookup, name, variable));
        }
        Meaning::Slot { name: slot } => lookup.describe_field(&own(owner?), slot),
        Meaning::Method { selector, .. } => lookup.describe_method(&own(owner?), selector),
        Meaning::Message { selector, .. } => match find::receiver(view, &Inference::new(&lookup), name) {
            Some(receiver) => lookup
                .describe_method(&receiver, selector)
                .or_else(|| lookup.describe_message(selector)),
            None => lookup.describe_message(selector),
        },
        Meaning::TypeParameter(parameter) => return Some(code(&format!("{parameter} (type parameter)"))),
        Meaning::Package(package) => return Some(code(&format!("{package} (package)"))),
        Meaning::Unbound(_) => None,
    };
    hover.map(|hover| hover.contents)
}

fn local(view: &View, lookup: &Lookup<'_>, name: &Occurrence, variable: &str) -> String {
    let Meaning::Local { declared, .. } = &name.meaning else {
        return code(variable);
    };
    // What is written counts, wherever it is asked.
    if let Some(span) = find::annotation(&view.file, *declared) {
        return code(&format!("{variable} :: {}", span.text(view.text())));
    }
    let inference = Inference::new(lookup);
    let types = inference.types(view);
    let bound = || {
        let mut bindings = types.bindings().iter();
        bindings.find(|(span, _)| span == declared).map(|(_, of)| of)
    };
    let known = types.of_span(name.span).or_else(bound);
    match known.map(|of| (of, of.form())) {
        Some((_, Form::Dynamic(reason))) => {
            let mut contents = code(&format!("{variable} :: Dynamic"));
            contents.push_str(&format!("\n*{}*", reason.text()));
            contents
        }
        Some((of, _)) => code(&format!("{variable} :: {of}")),
        None => code(&format!("{variable} :: Dynamic")),
    }
}

fn protocol(view: &View, name: &str) -> Option<String> {
    let (file, protocol) = find::protocol(view, name)?;
    let mut contents = code(protocol.span.text(file.text()).trim_end());
    if let Some(doc) = &protocol.doc {
        contents.push_str(&format!("\n\n{doc}"));
    }
    Some(contents)
}

fn code(text: &str) -> String {
    format!("```beamtalk\n{text}\n```")
}
