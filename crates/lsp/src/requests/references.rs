//! Where the thing at a position is used.

use gen_lsp_types::{Location, ReferenceParams};

use crate::analysis::{names, references};
use crate::fault::Fault;
use crate::state::Snapshot;

pub(crate) fn handle(snapshot: &Snapshot, params: ReferenceParams) -> Result<Option<Vec<Location>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let subject = names::at(&names, offset).and_then(|name| references::subject(&view, name));
    let Some(subject) = subject else { return Ok(None) };
    let found = references::all(snapshot, &view, &subject)?;
    let wanted = found.iter().filter(|reference| {
        let is_wanted = params.context.include_declaration || !references::is_declaration(reference);
        is_wanted && reference.is_first()
    });
    let places = wanted.map(|reference| view.location(&reference.file, reference.name.span));
    Ok(Some(places.collect()))
}
