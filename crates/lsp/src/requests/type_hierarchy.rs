//! The classes above and below a class.

use gen_lsp_types::{
    SymbolKind, TypeHierarchyItem, TypeHierarchyPrepareParams, TypeHierarchySubtypesParams,
    TypeHierarchySupertypesParams,
};

use crate::analysis::find;
use crate::analysis::names::{self, Meaning};
use crate::fault::Fault;
use crate::state::{Snapshot, View, range_in};

pub(crate) fn prepare(
    snapshot: &Snapshot,
    params: TypeHierarchyPrepareParams,
) -> Result<Option<Vec<TypeHierarchyItem>>, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let names = names::all(&view.file.source.unit);
    let class = names::at(&names, offset).and_then(|name| match &name.meaning {
        Meaning::Class(class) => Some(class.clone()),
        Meaning::Own => name.owner.as_ref().map(|owner| owner.class.clone()),
        _ => None,
    });
    let found = class.and_then(|class| item(&view, &class));
    Ok(found.map(|item| vec![item]))
}

pub(crate) fn supertypes(
    snapshot: &Snapshot,
    params: TypeHierarchySupertypesParams,
) -> Result<Vec<TypeHierarchyItem>, Fault> {
    let view = snapshot.view_of(&params.item.uri)?;
    let superclass = view
        .world
        .table
        .class(&params.item.name)
        .and_then(|class| class.superclass.clone());
    let found = superclass.and_then(|name| item(&view, &name));
    Ok(found.into_iter().collect())
}

pub(crate) fn subtypes(
    snapshot: &Snapshot,
    params: TypeHierarchySubtypesParams,
) -> Result<Vec<TypeHierarchyItem>, Fault> {
    let view = snapshot.view_of(&params.item.uri)?;
    let table = &view.world.table;
    let is_below = |name: &&ecow::EcoString| {
        table
            .class(name)
            .is_some_and(|class| class.superclass.as_deref() == Some(params.item.name.as_str()))
    };
    let mut names: Vec<_> = table.class_names().filter(is_below).collect();
    names.sort_unstable();
    Ok(names.into_iter().filter_map(|name| item(&view, name)).collect())
}

fn item(view: &View, name: &str) -> Option<TypeHierarchyItem> {
    let (file, class) = find::class_file(view, name)?;
    Some(TypeHierarchyItem {
        name: name.to_owned(),
        kind: SymbolKind::Class,
        tags: None,
        detail: file.source.package.as_ref().map(ToString::to_string),
        uri: file.uri.clone(),
        range: range_in(file, class.span, view.encoding),
        selection_range: range_in(file, class.name.span, view.encoding),
        data: None,
    })
}
