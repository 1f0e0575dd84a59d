//! What can be done with a definition, and who uses it, in a line above it.

use beamtalk_syntax::ast::{Class, Item, Method};
use beamtalk_syntax::span::Span;
use gen_lsp_types::{CodeLens, CodeLensParams};
use serde_json::{Value, json};

use crate::analysis::find::selector_span;
use crate::analysis::names::Meaning;
use crate::analysis::references::{self, Subject};
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(snapshot: &Snapshot, params: CodeLensParams) -> Result<Vec<Value>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let mut lenses = Vec::new();
    for item in &view.file.source.unit.items {
        match item {
            Item::Class(class) => {
                live(snapshot, &view, class, &mut lenses);
                of_class(&view, class, &mut lenses);
            }
            Item::Extension(extension) => {
                lenses.push(senders(&view, &extension.target.name.text, &extension.method));
            }
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => {}
        }
    }
    Ok(lenses)
}

fn of_class(view: &View, class: &Class, lenses: &mut Vec<Value>) {
    let name = &class.name.text;
    let is_test = view.world.table.inherits_from(name, "TestCase");
    let run = |span: Span, title: &str, selector: Option<&str>| {
        let argument = json!({"class": name.as_str(), "selector": selector, "uri": view.file.uri});
        json!({
            "range": view.range(span),
            "command": {"title": title, "command": "beamtalk.runTest", "arguments": [argument]},
        })
    };
    if is_test {
        lenses.push(run(class.name.span, "run tests", None));
    }
    for method in &class.methods {
        let selector = &method.head.selector;
        let is_case = is_test && !method.is_class && selector.starts_with("test") && !selector.ends_with(':');
        if is_case {
            let span = selector_span(&method.head.parts, method.head.span);
            lenses.push(run(span, "run test", Some(selector)));
        } else {
            lenses.push(senders(view, name, method));
        }
    }
}

/// What the running image has of a class: actors, changes that are in no file.
fn live(snapshot: &Snapshot, view: &View, class: &Class, lenses: &mut Vec<Value>) {
    let Some(image) = snapshot.state.images.get(&view.world.root) else {
        return;
    };
    let name = class.name.text.as_str();
    let lens = |span: Span, title: String, command: &str| {
        let argument = json!({"class": name, "uri": view.file.uri});
        json!({
            "range": view.range(span),
            "command": {"title": title, "command": command, "arguments": [argument]},
        })
    };
    let count = image.actors.get(name).map_or(0, Vec::len);
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let title = format!("live: {count} actor{plural}");
        lenses.push(lens(class.name.span, title, "beamtalk.actors"));
    }
    if image.is_unflushed(name, None, false) {
        let title = "unflushed".to_owned();
        lenses.push(lens(class.name.span, title, "beamtalk.flush.class"));
    }
    for method in &class.methods {
        if image.is_unflushed(name, Some(&method.head.selector), method.is_class) {
            let span = selector_span(&method.head.parts, method.head.span);
            lenses.push(lens(span, "unflushed".to_owned(), "beamtalk.flush.class"));
        }
    }
}

/// Counted when the client shows it: that takes a look at all files.
fn senders(view: &View, class: &str, method: &Method) -> Value {
    let data = json!({
        "uri": view.file.uri,
        "class": class,
        "isClass": method.is_class,
        "selector": method.head.selector.as_str(),
    });
    let span = selector_span(&method.head.parts, method.head.span);
    json!({"range": view.range(span), "data": data})
}

pub(crate) fn resolve(snapshot: &Snapshot, lens: CodeLens) -> Result<Value, Fault> {
    let field = |name: &str| lens.data.as_ref().and_then(|data| data[name].as_str());
    let unknown = || Fault::InvalidParams("the lens has no 'data' of ours".to_owned());
    let uri = gen_lsp_types::Uri(field("uri").ok_or_else(unknown)?.to_owned());
    let class = field("class").ok_or_else(unknown)?;
    let selector = field("selector").ok_or_else(unknown)?;
    let is_class = lens.data.as_ref().is_some_and(|data| data["isClass"] == true);
    let view = snapshot.view_of(&uri)?;
    let subject = Subject::Selector {
        selector: selector.into(),
        family: Some(references::family(&view, class, is_class, selector)),
    };
    let found = references::all(snapshot, &view, &subject)?;
    let sends: Vec<_> = found
        .iter()
        .filter(|one| matches!(one.name.meaning, Meaning::Message { part: 0, .. }))
        .map(|one| view.location(&one.file, one.name.span))
        .collect();
    let plural = if sends.len() == 1 { "" } else { "s" };
    Ok(json!({
        "range": lens.range,
        "command": {
            "title": format!("{} sender{plural}", sends.len()),
            "command": "beamtalk.showReferences",
            "arguments": [{"uri": uri, "position": lens.range.start, "locations": sends}],
        },
        "data": lens.data,
    }))
}
