//! What could stand at a position.

use beamtalk_compiler::complete::{self, Kind};
use beamtalk_syntax::span::Span;
use gen_lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionItemTextEdit, CompletionList,
    CompletionParams, TextEdit,
};

use crate::fault::Fault;
use crate::state::Snapshot;

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
    Ok(CompletionList {
        is_incomplete: false,
        item_defaults: None,
        apply_kind: None,
        items: items.collect(),
    })
}
