//! The outline of a document.

use beamtalk_syntax::ast::{Class, ExpressionKind, Head, Item, Method, Protocol, SlotKeyword, Target};
use beamtalk_syntax::span::Span;
use gen_lsp_types::{DocumentSymbol, DocumentSymbolParams, SymbolKind};

use crate::analysis::find::selector_span;
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(
    snapshot: &Snapshot,
    params: DocumentSymbolParams,
) -> Result<Vec<DocumentSymbol>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let items = view.file.source.unit.items.iter();
    Ok(items.filter_map(|item| symbol(&view, item)).collect())
}

fn symbol(view: &View, item: &Item) -> Option<DocumentSymbol> {
    Some(match item {
        Item::Class(class) => of_class(view, class),
        Item::Protocol(protocol) => of_protocol(view, protocol),
        Item::TypeAlias(alias) => make(
            view,
            alias.name.text.to_string(),
            SymbolKind::TypeParameter,
            alias.span,
            alias.name.span,
        ),
        Item::Extension(extension) => {
            let target = &extension.target.name.text;
            let mut found = of_method(view, &extension.method, extension.span);
            found.name = format!("{target} >> {}", found.name);
            found
        }
        // What a script gives names to.
        Item::Statement(statement) => match &statement.expression.kind {
            ExpressionKind::Assign {
                target: Target::Variable(name),
                ..
            } => make(
                view,
                name.text.to_string(),
                SymbolKind::Variable,
                statement.span,
                name.span,
            ),
            _ => return None,
        },
    })
}

fn of_class(view: &View, class: &Class) -> DocumentSymbol {
    let mut children: Vec<(u32, DocumentSymbol)> = Vec::new();
    for slot in &class.slots {
        let mut found = make(
            view,
            slot.name.text.to_string(),
            SymbolKind::Field,
            slot.span,
            slot.name.span,
        );
        if slot.keyword == SlotKeyword::ClassState {
            found.detail = Some("class".to_owned());
        }
        children.push((slot.span.start, found));
    }
    for method in &class.methods {
        children.push((method.span.start, of_method(view, method, method.span)));
    }
    children.sort_by_key(|(start, _)| *start);
    DocumentSymbol {
        detail: class.superclass.as_ref().map(|above| above.name.text.to_string()),
        children: Some(children.into_iter().map(|(_, child)| child).collect()),
        ..make(
            view,
            class.name.text.to_string(),
            SymbolKind::Class,
            class.span,
            class.name.span,
        )
    }
}

fn of_protocol(view: &View, protocol: &Protocol) -> DocumentSymbol {
    let signatures = protocol.signatures.iter();
    let children =
        signatures.map(|signature| of_head(view, &signature.head, signature.span, signature.is_class));
    DocumentSymbol {
        children: Some(children.collect()),
        ..make(
            view,
            protocol.name.text.to_string(),
            SymbolKind::Interface,
            protocol.span,
            protocol.name.span,
        )
    }
}

fn of_method(view: &View, method: &Method, span: Span) -> DocumentSymbol {
    of_head(view, &method.head, span, method.is_class)
}

fn of_head(view: &View, head: &Head, span: Span, is_class: bool) -> DocumentSymbol {
    let is_operator = !head.selector.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let kind = if is_operator {
        SymbolKind::Operator
    } else {
        SymbolKind::Method
    };
    let name = selector_span(&head.parts, head.span);
    DocumentSymbol {
        detail: is_class.then(|| "class".to_owned()),
        ..make(view, head.selector.to_string(), kind, span, name)
    }
}

fn make(view: &View, name: String, kind: SymbolKind, span: Span, selection: Span) -> DocumentSymbol {
    let whole = span.to(selection);
    #[expect(deprecated, reason = "the type has the field")]
    DocumentSymbol {
        // Half a definition may have no name yet, which clients refuse.
        name: if name.is_empty() { "?".to_owned() } else { name },
        detail: None,
        kind,
        tags: None,
        deprecated: None,
        range: view.range(whole),
        selection_range: view.range(selection),
        children: None,
    }
}
