//! What a compiled module says about itself: `__beamtalk_meta/0` and its kin.

use beamtalk_etf::Term;
use beamtalk_syntax::ast;
use beamtalk_syntax::span::{LineIndex, Span};
use ecow::EcoString;

use crate::SourceFile;
use crate::class::{generated_selectors, setter_selector};
use crate::sites;
use crate::table::{ClassTable, Kind, Origin};
use crate::types;

fn text(text: &str) -> Term {
    Term::binary(text)
}

fn optional(value: Option<&EcoString>) -> Term {
    value.map_or_else(|| Term::atom("nil"), |value| text(value))
}

fn boolean(value: bool) -> Term {
    Term::atom(if value { "true" } else { "false" })
}

fn map(pairs: Vec<(&str, Term)>) -> Term {
    Term::Map(
        pairs
            .into_iter()
            .map(|(key, value)| (Term::atom(key), value))
            .collect(),
    )
}

fn annotation(annotation: Option<&ast::Type>, file: &SourceFile) -> Term {
    annotation.map_or_else(
        || Term::atom("nil"),
        |annotation| text(&types::text(annotation, &file.text)),
    )
}

fn visibility(is_internal: bool) -> Term {
    Term::atom(if is_internal { "internal" } else { "public" })
}

/// Source files are told for code that people can edit; the library's are inside the binary.
fn source_file(file: &SourceFile) -> Term {
    match file.origin {
        Origin::Package | Origin::Test => text(&file.path),
        Origin::Library | Origin::Session => Term::atom("nil"),
    }
}

pub(crate) fn class(
    table: &ClassTable,
    file: &SourceFile,
    lines: &LineIndex,
    class: &ast::Class,
    module: &EcoString,
    locked: &[EcoString],
) -> Term {
    let modifiers = [
        (class.modifiers.is_abstract, "abstract"),
        (class.modifiers.is_sealed, "sealed"),
        (class.modifiers.is_typed, "typed"),
        (class.modifiers.is_internal, "internal"),
    ];
    let modifiers = modifiers
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, name)| Term::atom(name));
    let kind = match table.kind(&class.name.text) {
        Kind::Value => "value",
        Kind::Actor => "actor",
        Kind::Object => "object",
    };
    let atom_or_nil = |name: Option<&EcoString>| Term::Atom(name.cloned().unwrap_or_else(|| "nil".into()));
    map(vec![
        ("class", Term::Atom(class.name.text.clone())),
        (
            "superclass",
            atom_or_nil(class.superclass.as_ref().map(|superclass| &superclass.name.text)),
        ),
        ("kind", Term::atom(kind)),
        ("module", Term::Atom(module.clone())),
        ("package", optional(file.package.as_ref())),
        ("modifiers", Term::list(modifiers)),
        ("visibility", visibility(class.modifiers.is_internal)),
        (
            "native",
            atom_or_nil(class.native.as_ref().map(|native| &native.text)),
        ),
        (
            "handle_scope",
            atom_or_nil(class.handle_scope.as_ref().map(|scope| &scope.text)),
        ),
        ("doc", optional(class.doc.as_ref())),
        ("source_file", source_file(file)),
        ("line", Term::Integer(i64::from(lines.line(class.header.start)))),
        (
            "type_parameters",
            Term::list(
                class
                    .type_parameters
                    .iter()
                    .map(|parameter| text(&parameter.name.text)),
            ),
        ),
        ("slots", slots(table, file, class, false)),
        ("class_slots", slots(table, file, class, true)),
        ("method_info", method_infos(table, file, lines, class, false)),
        ("class_method_info", method_infos(table, file, lines, class, true)),
        (
            "locked",
            Term::list(locked.iter().map(|selector| Term::Atom(selector.clone()))),
        ),
        ("version", Term::Integer(1)),
    ])
}

fn slots(table: &ClassTable, file: &SourceFile, class: &ast::Class, is_class_side: bool) -> Term {
    let of_side = |slot: &&ast::Slot| (slot.keyword == ast::SlotKeyword::ClassState) == is_class_side;
    Term::list(class.slots.iter().filter(of_side).map(|slot| {
        let annotated = slot.annotation.as_ref();
        let is_required = slot.default.is_none()
            && annotated.is_some_and(|annotation| !types::includes_nil(annotation, table));
        let default = slot
            .default
            .as_ref()
            .map(|default| EcoString::from(default.span.text(&file.text)));
        map(vec![
            ("name", Term::Atom(slot.name.text.clone())),
            ("type", annotation(slot.annotation.as_ref(), file)),
            ("has_default", boolean(slot.default.is_some())),
            ("default", optional(default.as_ref())),
            ("required", boolean(is_required)),
            ("doc", optional(slot.doc.as_ref())),
        ])
    }))
}

fn method_infos(
    table: &ClassTable,
    file: &SourceFile,
    lines: &LineIndex,
    class: &ast::Class,
    is_class_side: bool,
) -> Term {
    let mut pairs: Vec<(Term, Term)> = class
        .methods
        .iter()
        .filter(|method| method.is_class == is_class_side)
        .map(|method| {
            (
                Term::Atom(method.head.selector.clone()),
                method_info(file, lines, method),
            )
        })
        .collect();
    let (accessors, constructor) = generated_selectors(table, class);
    let generated: Vec<EcoString> = if is_class_side {
        constructor.into_iter().collect()
    } else {
        accessors
    };
    for selector in generated {
        let info = generated_info(file, lines, class, &selector);
        pairs.push((Term::Atom(selector), info));
    }
    Term::Map(pairs)
}

fn generated_info(file: &SourceFile, lines: &LineIndex, class: &ast::Class, selector: &EcoString) -> Term {
    let slot = class
        .slots
        .iter()
        .find(|slot| slot.name.text == *selector || setter_selector(&slot.name.text) == *selector);
    let place = slot.map_or(class.header, |slot| slot.span);
    let slot_type = annotation(slot.and_then(|slot| slot.annotation.as_ref()), file);
    let arity = selector.matches(':').count();
    let parameters = if arity == 1 && slot.is_some() {
        Term::list([Term::tuple([text("value"), slot_type.clone()])])
    } else {
        Term::list(
            selector
                .split_terminator(':')
                .take(arity)
                .map(|name| Term::tuple([text(name), Term::atom("nil")])),
        )
    };
    let return_type = if arity == 0 { slot_type } else { text("Self") };
    map(vec![
        ("arity", Term::Integer(arity as i64)),
        ("visibility", visibility(class.modifiers.is_internal)),
        ("sealed", boolean(false)),
        ("doc", Term::atom("nil")),
        ("line", Term::Integer(i64::from(lines.line(place.start)))),
        ("source", Term::atom("nil")),
        ("parameters", parameters),
        ("return_type", return_type),
        ("generated", boolean(true)),
    ])
}

fn method_info(file: &SourceFile, lines: &LineIndex, method: &ast::Method) -> Term {
    let parameters = method.head.parameters.iter().map(|parameter| {
        Term::tuple([
            text(&parameter.name.text),
            annotation(parameter.annotation.as_ref(), file),
        ])
    });
    map(vec![
        ("arity", Term::Integer(method.head.parameters.len() as i64)),
        ("visibility", visibility(method.is_internal)),
        ("sealed", boolean(method.is_sealed)),
        ("doc", optional(method.doc.as_ref())),
        (
            "line",
            Term::Integer(i64::from(lines.line(method.head.span.start))),
        ),
        ("source", text(source(method.span, file))),
        (
            "head",
            Term::Integer(i64::from(method.head.span.start - method.span.start)),
        ),
        ("parameters", Term::list(parameters)),
        ("return_type", annotation(method.result.as_ref(), file)),
        ("generated", boolean(false)),
        ("delegate", boolean(is_delegate(method))),
        ("primitive", boolean(is_primitive(method))),
        ("sites", sites::of(method, lines)),
    ])
}

/// The whole body is `self delegate`.
pub fn is_delegate(method: &ast::Method) -> bool {
    let [statement] = method.body.as_slice() else {
        return false;
    };
    matches!(&statement.expression.kind, ast::ExpressionKind::Send(send)
        if matches!(send.receiver.kind, ast::ExpressionKind::SelfReference) && send.message.selector == "delegate")
}

/// The whole body is a primitive or an intrinsic.
fn is_primitive(method: &ast::Method) -> bool {
    matches!(method.body.as_slice(), [statement]
        if matches!(statement.expression.kind, ast::ExpressionKind::Primitive { .. }))
}

fn source(span: Span, file: &SourceFile) -> &str {
    span.text(&file.text).trim_end()
}

pub(crate) fn extension(
    file: &SourceFile,
    lines: &LineIndex,
    extension: &ast::Extension,
    function: &EcoString,
    is_patch: bool,
) -> Term {
    let side = if extension.method.is_class {
        "class"
    } else {
        "instance"
    };
    map(vec![
        ("class", Term::Atom(extension.target.name.text.clone())),
        ("side", Term::atom(side)),
        ("selector", Term::Atom(extension.method.head.selector.clone())),
        ("function", Term::Atom(function.clone())),
        ("kind", Term::atom(if is_patch { "patch" } else { "extension" })),
        ("info", method_info(file, lines, &extension.method)),
    ])
}

pub(crate) fn protocol(file: &SourceFile, protocol: &ast::Protocol, module: &EcoString) -> Term {
    let required = protocol.signatures.iter().map(|signature| {
        let side = if signature.is_class { "class" } else { "instance" };
        Term::tuple([Term::atom(side), Term::Atom(signature.head.selector.clone())])
    });
    let extending = protocol
        .extending
        .as_ref()
        .map_or_else(|| "nil".into(), |name| name.text.clone());
    map(vec![
        ("name", Term::Atom(protocol.name.text.clone())),
        ("extending", Term::Atom(extending)),
        ("required", Term::list(required)),
        ("doc", optional(protocol.doc.as_ref())),
        ("module", Term::Atom(module.clone())),
        ("package", optional(file.package.as_ref())),
        ("source_file", source_file(file)),
    ])
}
