//! Where the name at a position comes from.

use beamtalk_compiler::complete::Lookup;
use gen_lsp_types::{DefinitionParams, Location};

use crate::analysis::find::{self, Inference};
use crate::analysis::names::{self, Meaning, Occurrence};
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(snapshot: &Snapshot, params: DefinitionParams) -> Result<Option<Vec<Location>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let Some(name) = names::at(&names, offset) else {
        return Ok(None);
    };
    let found = of(&view, name);
    Ok(Some(found).filter(|found| !found.is_empty()))
}

/// The places where a name may have been declared.
pub(crate) fn of(view: &View, name: &Occurrence) -> Vec<Location> {
    match &name.meaning {
        Meaning::Class(class) => find::class(view, class),
        Meaning::Local { declared, .. } => vec![view.location(&view.file, *declared)],
        Meaning::Slot { name: slot } => {
            let found = name
                .owner
                .as_ref()
                .and_then(|owner| find::slot(view, owner, slot));
            let place = found.map(|(file, _, slot)| view.location(file, slot.name.span));
            place.into_iter().collect()
        }
        Meaning::Own => {
            let owner = name.owner.as_ref();
            owner.map_or_else(Vec::new, |owner| find::class(view, &owner.class))
        }
        Meaning::Message { selector, .. } => message(view, name, selector),
        Meaning::Method { selector, .. } => {
            let owner = name.owner.as_ref();
            owner.map_or_else(Vec::new, |owner| {
                find::method(view, &owner.class, owner.is_class, selector)
            })
        }
        Meaning::TypeParameter(_) => {
            let all = names::all(&view.file.source.unit);
            let before = all
                .iter()
                .rfind(|other| {
                    other.meaning == name.meaning
                        && other.role == names::Role::Declaration
                        && other.span <= name.span
                })
                .or_else(|| all.iter().find(|other| other.meaning == name.meaning));
            before
                .map(|found| view.location(&view.file, found.span))
                .into_iter()
                .collect()
        }
        Meaning::Package(_) | Meaning::Unbound(_) => Vec::new(),
    }
}

/// The method that answers, where the receiver is known; else every one of this name.
fn message(view: &View, name: &Occurrence, selector: &str) -> Vec<Location> {
    let lookup = Lookup::new(&view.world.table);
    let known = find::receiver(view, &Inference::new(&lookup), name);
    let answerer = known.and_then(|receiver| {
        let answerer = lookup.answerer(&receiver, selector)?;
        let found = find::method(view, &answerer.class, answerer.is_class, selector);
        // A getter that a field brings stands where the field does.
        let field = || {
            let owner = names::Owner {
                class: answerer.class.clone(),
                is_class: answerer.is_class,
            };
            let slot = selector.strip_prefix("with").map_or_else(
                || selector.to_owned(),
                |rest| {
                    let rest = rest.trim_end_matches(':');
                    let mut chars = rest.chars();
                    let first = chars.next().map(|c| c.to_ascii_lowercase());
                    first.into_iter().chain(chars).collect()
                },
            );
            let (file, _, slot) = find::slot(view, &owner, &slot)?;
            Some(vec![view.location(file, slot.name.span)])
        };
        Some(found).filter(|found| !found.is_empty()).or_else(field)
    });
    answerer.unwrap_or_else(|| {
        let targets = find::targets(view, &Inference::new(&lookup), name);
        let found: Vec<Location> = targets
            .iter()
            .flat_map(|target| find::method(view, &target.class, target.is_class_side, selector))
            .collect();
        if found.is_empty() {
            find::implementors(view, selector)
        } else {
            found
        }
    })
}
