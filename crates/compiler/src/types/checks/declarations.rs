//! Declarations whose types clash with others: overriding parameters, and arguments outside the bounds of a parameter.

use beamtalk_syntax::ast::{self, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use crate::codes;
use crate::types::infer::Output;
use crate::types::relate::Fit;
use crate::types::world::{World, bound};

/// A method may take more than the one it overrides, never something else.
pub(in crate::types) fn overriding(
    world: &World<'_>,
    out: &mut Output,
    class: &ast::Class,
    method: &ast::Method,
) {
    let selector = &method.head.selector;
    // Who makes an instance names its class.
    if method.is_class && selector.starts_with("new") {
        return;
    }
    let Some(above) = world.find_above(&class.name.text, method.is_class, selector) else {
        return;
    };
    let promised = world.signature(&above, selector);
    let own = class
        .type_parameters
        .iter()
        .map(|it| crate::types::Type::parameter(it.name.text.clone()));
    let own: Vec<_> = own.collect();
    let bindings = world.bindings(&class.name.text, &own, &above.owner.name);
    for (index, parameter) in method.head.parameters.iter().enumerate() {
        let (Some(annotation), Some(Some(wanted))) = (&parameter.annotation, promised.parameters.get(index))
        else {
            continue;
        };
        let wanted = wanted.replace(&|name| bound(&bindings, name), true);
        let declared = world.declared(annotation, Some(class));
        if declared.has_parameters() || wanted.has_parameters() || !world.are_disjoint(&wanted, &declared) {
            continue;
        }
        let text = eco_format!(
            "Parameter {} of '{selector}' in {} is {declared}, but {} declares {wanted}",
            index + 1,
            class.name.text,
            above.owner.name
        );
        out.diagnostics.push(
            Diagnostic::warning(codes::OVERRIDING_PARAMETER, annotation.span, text)
                .with_category(Category::Type)
                .with_hint("Whoever sends it to the superclass gives the other; take that as well."),
        );
    }
}

/// A class, protocol or alias with arguments that it has no parameters for, or with too few.
fn arguments(world: &World<'_>, out: &mut Output, annotation: &ast::Type, class: Option<&ast::Class>) {
    let TypeKind::Named {
        class: named,
        arguments,
    } = &annotation.kind
    else {
        return;
    };
    let name = &named.name.text;
    let is_parameter = class.is_some_and(|class| {
        let mut parameters = class.type_parameters.iter();
        parameters.any(|parameter| parameter.name.text == *name)
    });
    // Blocks and tuples have as many as they are given.
    if arguments.is_empty() || (!is_parameter && matches!(name.as_str(), "Block" | "Tuple")) {
        return;
    }
    let entry = world.table.class(name).filter(|_| !is_parameter);
    let count = match entry.map(|entry| entry.declaration()) {
        Some(Some((_, generic))) => generic.type_parameters.len(),
        // A class that no text tells.
        Some(None) => return,
        None if is_parameter => 0,
        None if world.table.protocol(name).is_some() || world.table.alias(name).is_some() => 0,
        None => return,
    };
    if count == arguments.len() {
        return;
    }
    let takes = match count {
        0 => EcoString::from("no type arguments"),
        1 => EcoString::from("1 type argument"),
        _ => eco_format!("{count} type arguments"),
    };
    let text = eco_format!("`{name}` takes {takes}, got {}", arguments.len());
    let mut found =
        Diagnostic::warning(codes::TYPE_ARGUMENTS, annotation.span, text).with_category(Category::Type);
    if count > 0 {
        let names = vec!["Object"; count].join(", ");
        found = found.with_hint(eco_format!("Write `{name}({names})`, or `{name}` alone."));
    }
    out.diagnostics.push(found);
}

/// Arguments of a generic class: as many as it has parameters, each within the bound of its own.
pub(in crate::types) fn bounds(
    world: &World<'_>,
    out: &mut Output,
    annotation: &ast::Type,
    class: Option<&ast::Class>,
) {
    arguments(world, out, annotation, class);
    if let TypeKind::Named {
        class: named,
        arguments,
    } = &annotation.kind
        && let Some((_, generic)) = world
            .table
            .class(&named.name.text)
            .and_then(|entry| entry.declaration())
    {
        for (parameter, argument) in generic.type_parameters.iter().zip(arguments) {
            let Some(bound) = &parameter.bound else { continue };
            if world.table.protocol(&bound.text).is_none() {
                continue;
            }
            let of = world.declared(argument, class);
            if let Fit::Never(hint) = world.fit(&of, &crate::types::Type::protocol(bound.text.clone())) {
                let text = eco_format!("{of} does not conform to protocol {}", bound.text);
                let mut diagnostic = Diagnostic::warning(codes::OUTSIDE_BOUND, argument.span, text)
                    .with_category(Category::Type);
                if let Some(hint) = hint {
                    diagnostic = diagnostic.with_hint(hint);
                }
                out.diagnostics.push(diagnostic);
            }
        }
    }
    walk::inner_types(annotation, &mut |inner| bounds(world, out, inner, class));
}
