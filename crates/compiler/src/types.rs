//! Type annotations as the compiler keeps them: their text, and the little it needs to know.

use beamtalk_syntax::ast::{Type, TypeKind};
use ecow::EcoString;

/// Whether nil belongs to the type. An unknown name does not count as nil.
pub(crate) fn includes_nil(annotation: &Type) -> bool {
    match &annotation.kind {
        TypeKind::Nil => true,
        TypeKind::Named { class, .. } => {
            matches!(
                class.name.text.as_str(),
                "Nil" | "UndefinedObject" | "Object" | "ProtoObject" | "Dynamic"
            ) || class.name.text.len() == 1
        }
        TypeKind::Union(members) => members.iter().any(includes_nil),
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

pub(crate) fn is_character(annotation: &Type) -> bool {
    matches!(&annotation.kind, TypeKind::Named { class, arguments } if arguments.is_empty() && class.name.text == "Character")
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
