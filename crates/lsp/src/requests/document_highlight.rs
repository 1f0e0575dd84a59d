//! The other places in the document that mean the same.

use gen_lsp_types::{DocumentHighlight, DocumentHighlightKind, DocumentHighlightParams};

use crate::analysis::names::{self, Meaning, Occurrence, Role};
use crate::fault::Fault;
use crate::state::Snapshot;

pub(crate) fn handle(
    snapshot: &Snapshot,
    params: DocumentHighlightParams,
) -> Result<Option<Vec<DocumentHighlight>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let meant = names.iter().filter(|other| is_same(name, other));
    let places = meant.map(|other| DocumentHighlight {
        range: view.range(other.span),
        kind: Some(match (&other.meaning, other.role) {
            (Meaning::Local { .. } | Meaning::Slot { .. }, Role::Declaration | Role::Write) => {
                DocumentHighlightKind::Write
            }
            (Meaning::Local { .. } | Meaning::Slot { .. }, Role::Read) => DocumentHighlightKind::Read,
            _ => DocumentHighlightKind::Text,
        }),
    });
    Ok(Some(places.collect()))
}

fn is_same(one: &Occurrence, other: &Occurrence) -> bool {
    let selector = |name: &Occurrence| match &name.meaning {
        Meaning::Message { selector, .. } | Meaning::Method { selector, .. } => Some(selector.clone()),
        _ => None,
    };
    match (selector(one), selector(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => match &one.meaning {
            Meaning::Slot { .. } => one.meaning == other.meaning && one.owner == other.owner,
            // `self` is another object in another method of the other side.
            Meaning::Own => other.meaning == Meaning::Own && one.owner == other.owner,
            _ => one.meaning == other.meaning,
        },
        _ => false,
    }
}
