//! The classes below a class, the methods behind a message.

use beamtalk_compiler::complete::Lookup;
use gen_lsp_types::{ImplementationParams, Location};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning};
use crate::analysis::references;
use crate::fault::Fault;
use crate::state::Snapshot;

pub(crate) fn handle(
    snapshot: &Snapshot,
    params: ImplementationParams,
) -> Result<Option<Vec<Location>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let table = &view.world.table;
    let found = match &name.meaning {
        Meaning::Class(class) => {
            let below = table
                .class_names()
                .filter(|other| *other != class && table.inherits_from(other, class));
            let mut below: Vec<_> = below.collect();
            below.sort_unstable();
            below
                .into_iter()
                .flat_map(|name| find::class(&view, name))
                .collect()
        }
        Meaning::Method { selector, .. } => match &name.owner {
            Some(owner) if table.class(&owner.class).is_some() => {
                let family = references::family(&view, &owner.class, owner.is_class, selector);
                let classes = family.classes.iter();
                classes
                    .flat_map(|class| find::method(&view, class, owner.is_class, selector))
                    .collect()
            }
            _ => find::implementors(&view, selector),
        },
        Meaning::Message { selector, .. } => {
            let lookup = Lookup::new(table);
            let receiver = find::receiver(&view, &Inference::new(&lookup), name);
            let answerer = receiver.and_then(|receiver| lookup.answerer(&receiver, selector));
            match answerer {
                Some(answerer) => {
                    let family = references::family(&view, &answerer.class, answerer.is_class, selector);
                    let classes = family.classes.iter();
                    classes
                        .flat_map(|class| find::method(&view, class, answerer.is_class, selector))
                        .collect()
                }
                None => find::implementors(&view, selector),
            }
        }
        Meaning::Local { .. }
        | Meaning::Slot { .. }
        | Meaning::Own
        | Meaning::TypeParameter(_)
        | Meaning::Package(_)
        | Meaning::Unbound(_) => Vec::new(),
    };
    Ok(Some(found).filter(|found| !found.is_empty()))
}
