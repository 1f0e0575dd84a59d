//! Who sends a method's message, and what a method sends.

use std::collections::BTreeMap;

use beamtalk_compiler::complete::Lookup;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use gen_lsp_types::{
    CallHierarchyIncomingCall, CallHierarchyIncomingCallsParams, CallHierarchyItem,
    CallHierarchyOutgoingCall, CallHierarchyOutgoingCallsParams, CallHierarchyPrepareParams, Range,
    SymbolKind,
};
use serde_json::json;

use crate::analysis::find::{self, Found, Inference, selector_span};
use crate::analysis::names::{self, Meaning};
use crate::analysis::references::{self, Subject};
use crate::analysis::words::Word;
use crate::fault::Fault;
use crate::state::{Snapshot, View, range_in};
use crate::world::File;

pub(crate) fn prepare(
    snapshot: &Snapshot,
    params: CallHierarchyPrepareParams,
) -> Result<Option<Vec<CallHierarchyItem>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let items = match (&name.meaning, &name.owner) {
        (Meaning::Method { selector, .. }, Some(owner)) => {
            items(&view, Some((&owner.class, owner.is_class)), selector)
        }
        (Meaning::Message { selector, .. }, _) => {
            let lookup = Lookup::new(&view.world.table);
            let receiver = find::receiver(&view, &Inference::new(&lookup), name);
            let answerer = receiver.and_then(|receiver| lookup.answerer(&receiver, selector));
            let class = answerer.as_ref().map(|one| (&one.class, one.is_class));
            items(&view, class, selector)
        }
        _ => Vec::new(),
    };
    Ok(Some(items).filter(|items| !items.is_empty()))
}

/// The definitions of a method: of one class, or of all.
fn items(view: &View, class: Option<(&EcoString, bool)>, selector: &str) -> Vec<CallHierarchyItem> {
    let word = Word::Selector(selector);
    let mut items = Vec::new();
    for file in view.all_files().filter(|file| file.words().has(word)) {
        for found in find::methods(file).filter(|found| found.method.head.selector == selector) {
            if class.is_none_or(|class| class == (found.class, found.method.is_class)) {
                items.push(item(view, file, &found));
            }
        }
    }
    items
}

fn item(view: &View, file: &File, found: &Found<'_>) -> CallHierarchyItem {
    let head = &found.method.head;
    let side = if found.method.is_class { " class" } else { "" };
    CallHierarchyItem {
        name: head.selector.to_string(),
        kind: SymbolKind::Method,
        tags: None,
        detail: Some(format!("{}{side}", found.class)),
        uri: file.uri.clone(),
        range: range_in(file, found.method.span, view.encoding),
        selection_range: range_in(file, selector_span(&head.parts, head.span), view.encoding),
        data: Some(json!({"class": found.class.as_str(), "isClass": found.method.is_class})),
    }
}

/// The class and side of an item that we made.
fn owner(item: &CallHierarchyItem) -> Result<(EcoString, bool), Fault> {
    let data = item.data.as_ref();
    let class = data.and_then(|data| data["class"].as_str());
    let is_class = data.and_then(|data| data["isClass"].as_bool());
    class
        .zip(is_class)
        .map(|(class, is_class)| (class.into(), is_class))
        .ok_or_else(|| Fault::InvalidParams("the item has no 'data' of ours".to_owned()))
}

pub(crate) fn incoming(
    snapshot: &Snapshot,
    params: CallHierarchyIncomingCallsParams,
) -> Result<Vec<CallHierarchyIncomingCall>, Fault> {
    let (class, is_class) = owner(&params.item)?;
    let view = snapshot.view_of(&params.item.uri)?;
    let selector = EcoString::from(params.item.name);
    let subject = Subject::Selector {
        family: Some(references::family(&view, &class, is_class, &selector)),
        selector,
    };
    let found = references::all(snapshot, &view, &subject)?;
    let mut calls: BTreeMap<(String, Span), CallHierarchyIncomingCall> = BTreeMap::new();
    for reference in &found {
        let is_send = matches!(reference.name.meaning, Meaning::Message { .. });
        if !is_send || !reference.is_first() {
            continue;
        }
        let Some(around) = references::method_around(&reference.file, reference.name.span) else {
            continue;
        };
        let key = (reference.file.uri.0.clone(), around.method.span);
        let call = calls.entry(key).or_insert_with(|| CallHierarchyIncomingCall {
            from: item(&view, &reference.file, &around),
            from_ranges: Vec::new(),
        });
        let range = range_in(&reference.file, reference.name.span, view.encoding);
        call.from_ranges.push(range);
    }
    Ok(calls.into_values().collect())
}

pub(crate) fn outgoing(
    snapshot: &Snapshot,
    params: CallHierarchyOutgoingCallsParams,
) -> Result<Vec<CallHierarchyOutgoingCall>, Fault> {
    let view = snapshot.view_of(&params.item.uri)?;
    let span = view.span(params.item.range)?;
    let lookup = Lookup::new(&view.world.table);
    let inference = Inference::new(&lookup);
    let mut sent: BTreeMap<(EcoString, EcoString, bool), Vec<Range>> = BTreeMap::new();
    for name in names::all(&view.file.source.unit) {
        let Meaning::Message {
            selector, part: 0, ..
        } = &name.meaning
        else {
            continue;
        };
        if name.span.start < span.start || name.span.end > span.end {
            continue;
        }
        snapshot.go_on()?;
        let receiver = find::receiver(&view, &inference, &name);
        let answerer = receiver.and_then(|receiver| lookup.answerer(&receiver, selector));
        if let Some(answerer) = answerer {
            let key = (selector.clone(), answerer.class, answerer.is_class);
            sent.entry(key).or_default().push(view.range(name.span));
        }
    }
    let mut calls = Vec::new();
    for ((selector, class, is_class), ranges) in sent {
        for to in items(&view, Some((&class, is_class)), &selector) {
            calls.push(CallHierarchyOutgoingCall {
                to,
                from_ranges: ranges.clone(),
            });
        }
    }
    Ok(calls)
}
