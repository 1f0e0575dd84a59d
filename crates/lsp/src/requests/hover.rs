//! What stands at a position: type, signature, documentation.

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_compiler::types::Form;
use gen_lsp_types::{Contents, Hover, HoverParams, MarkupContent, MarkupKind};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning, Occurrence, Owner};
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(snapshot: &Snapshot, params: HoverParams) -> Result<Option<Hover>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let contents = describe(&view, name);
    Ok(contents.map(|value| Hover {
        contents: Contents::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value,
        }),
        range: Some(view.range(name.span)),
    }))
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
