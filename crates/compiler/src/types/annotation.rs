//! Type annotations as the compiler keeps them: their text, and the little it needs to know.

use beamtalk_syntax::ast::{Type, TypeKind};
use ecow::EcoString;

use crate::table::ClassTable;

/// Aliases may name each other.
pub(crate) const MAX_ALIASES: usize = 16;

/// Whether nil belongs to the type. An unknown name does not count as nil.
pub(crate) fn includes_nil(annotation: &Type, table: &ClassTable) -> bool {
    nil_within(annotation, table, MAX_ALIASES)
}

fn nil_within(annotation: &Type, table: &ClassTable, aliases: usize) -> bool {
    match &annotation.kind {
        TypeKind::Nil => true,
        TypeKind::Named { class, .. } => {
            let name = class.name.text.as_str();
            let is_named = matches!(
                name,
                "Nil" | "UndefinedObject" | "Object" | "ProtoObject" | "Dynamic"
            ) || name.len() == 1;
            let meant = || aliases.checked_sub(1).zip(table.alias(name));
            is_named || meant().is_some_and(|(left, alias)| nil_within(&alias.definition, table, left))
        }
        TypeKind::Union(members) => members.iter().any(|member| nil_within(member, table, aliases)),
        TypeKind::Error => true,
        TypeKind::ClassOf(_)
        | TypeKind::SelfType
        | TypeKind::SelfClass
        | TypeKind::Symbol(_)
        | TypeKind::True
        | TypeKind::False
        | TypeKind::Intersection(_)
        | TypeKind::Difference(_) => false,
    }
}

pub(crate) fn is_character(annotation: &Type, table: &ClassTable) -> bool {
    let mut meant = annotation;
    for _ in 0..MAX_ALIASES {
        match &meant.kind {
            TypeKind::Named { class, arguments } if arguments.is_empty() => {
                match table.alias(&class.name.text) {
                    Some(alias) => meant = &alias.definition,
                    None => return class.name.text == "Character",
                }
            }
            _ => return false,
        }
    }
    false
}

/// The annotation as written.
pub(crate) fn text(annotation: &Type, source: &str) -> EcoString {
    annotation
        .span
        .text(source)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .into()
}
