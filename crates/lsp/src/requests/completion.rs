//! What could stand at a position.

use beamtalk_compiler::complete::{self, Kind};
use beamtalk_syntax::span::Span;
use beamtalk_wire::requests::Complete;
use gen_lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionItemTextEdit, CompletionList,
    CompletionParams, Range, TextEdit,
};

use crate::fault::Fault;
use crate::live::BRIEF;
use crate::state::{Snapshot, View};

/// What only the running image knows, if the person wants to be told. It comes at once or not at all.
fn runtime(
    snapshot: &Snapshot,
    view: &View,
    offset: u32,
    range: Range,
    known: &[String],
) -> Vec<CompletionItem> {
    let root = &view.world.root;
    if !snapshot.state.client.settings.delegates || !snapshot.state.images.contains_key(root) {
        return Vec::new();
    }
    let request = Complete {
        code: view.text().to_owned(),
        cursor: Some(u64::from(offset)),
        handle: None,
    };
    let Ok(answer) = snapshot.state.links.ask(root, &request, BRIEF) else {
        return Vec::new();
    };
    let new = answer
        .completions
        .into_iter()
        .filter(|item| item.kind == "method" && !known.contains(&item.text));
    let items = new.map(|item| CompletionItem {
        label: item.text.clone(),
        label_details: Some(CompletionItemLabelDetails {
            detail: Some(" (runtime)".to_owned()),
            description: item.origin,
        }),
        kind: Some(CompletionItemKind::Method),
        detail: item.detail,
        text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
            range,
            new_text: item.text,
        })),
        ..CompletionItem::default()
    });
    items.collect()
}

pub(crate) fn handle(snapshot: &Snapshot, params: CompletionParams) -> Result<CompletionList, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let found = complete::complete(&view.world.table, &[], view.text(), offset as usize);
    let range = view.range(Span::new(found.start as u32, offset));
    let items = found.items.into_iter().map(|item| {
        let kind = match item.kind {
            Kind::Method => CompletionItemKind::Method,
            Kind::Class => CompletionItemKind::Class,
            Kind::Protocol => CompletionItemKind::Interface,
            Kind::Alias => CompletionItemKind::TypeParameter,
            Kind::Variable => CompletionItemKind::Variable,
            Kind::Field => CompletionItemKind::Field,
            Kind::Keyword => CompletionItemKind::Keyword,
        };
        CompletionItem {
            label: item.text.to_string(),
            label_details: item.origin.map(|origin| CompletionItemLabelDetails {
                detail: None,
                description: Some(origin.to_string()),
            }),
            kind: Some(kind),
            detail: item.detail.map(|detail| detail.to_string()),
            text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
                range,
                new_text: item.text.to_string(),
            })),
            ..CompletionItem::default()
        }
    });
    let mut items: Vec<CompletionItem> = items.collect();
    let known: Vec<String> = items.iter().map(|item| item.label.clone()).collect();
    items.extend(runtime(snapshot, &view, offset, range, &known));
    Ok(CompletionList {
        is_incomplete: false,
        item_defaults: None,
        apply_kind: None,
        items,
    })
}
