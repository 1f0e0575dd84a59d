//! Patterns and types, which always stay on one line.

use std::fmt::Write;

use super::Formatter;
use crate::ast::{
    ClassRef, Endian, Head, Name, Parameter, Pattern, PatternKey, PatternKind, Segment, SegmentKind,
    SegmentSize, Target, Type, TypeKind, TypeParameter,
};

pub(super) fn class_ref(class: &ClassRef) -> String {
    match &class.package {
        Some(package) => format!("{}@{}", package.text, class.name.text),
        None => class.name.text.to_string(),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_')
}

/// A symbol as it is written.
pub(super) fn symbol(text: &str) -> String {
    let is_keyword = text.ends_with(':')
        && text
            .strip_suffix(':')
            .is_some_and(|parts| parts.split(':').all(is_name));
    let is_operator = matches!(
        text,
        "**" | "*"
            | "/"
            | "%"
            | "++"
            | "+"
            | "-"
            | "<="
            | "<"
            | ">="
            | ">"
            | "=="
            | "/="
            | "=:="
            | "=/="
            | ">>"
            | "->"
    );
    if is_name(text) || is_keyword || is_operator {
        format!("#{text}")
    } else {
        format!("#'{}'", text.replace('\'', "''"))
    }
}

/// A string literal for a text.
pub(super) fn string_literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for char in text.chars() {
        match char {
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            '\r' => literal.push_str("\\r"),
            '\\' => literal.push_str("\\\\"),
            '"' => literal.push_str("\\\""),
            '{' => literal.push_str("\\{"),
            '}' => literal.push_str("\\}"),
            _ => literal.push(char),
        }
    }
    literal.push('"');
    literal
}

pub(super) fn type_parameters(parameters: &[TypeParameter]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = parameters
        .iter()
        .map(|parameter| match &parameter.bound {
            Some(bound) => format!("{} :: {}", parameter.name.text, bound.text),
            None => parameter.name.text.to_string(),
        })
        .collect();
    format!("({})", parts.join(", "))
}

pub(super) fn type_arguments(arguments: &[Type]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = arguments.iter().map(type_text).collect();
    format!("({})", parts.join(", "))
}

pub(super) fn type_text(kind: &Type) -> String {
    match &kind.kind {
        TypeKind::Named { class, arguments } => class_ref(class) + &type_arguments(arguments),
        TypeKind::ClassOf(class) => class_ref(class) + " class",
        TypeKind::SelfType => "Self".into(),
        TypeKind::SelfClass => "Self class".into(),
        TypeKind::Symbol(text) => symbol(text),
        TypeKind::Nil => "nil".into(),
        TypeKind::True => "true".into(),
        TypeKind::False => "false".into(),
        TypeKind::Union(members) => {
            let parts: Vec<String> = members.iter().map(union_member).collect();
            parts.join(" | ")
        }
        TypeKind::Intersection(members) => joined(members, " & "),
        TypeKind::Difference(members) => joined(members, " \\ "),
        TypeKind::Error => String::new(),
    }
}

fn joined(members: &[Type], operator: &str) -> String {
    let parts: Vec<String> = members.iter().map(simple_type).collect();
    parts.join(operator)
}

/// A member of a union; only a union inside a union needs parentheses.
pub(super) fn union_member(kind: &Type) -> String {
    let text = type_text(kind);
    if matches!(kind.kind, TypeKind::Union(_)) {
        format!("({text})")
    } else {
        text
    }
}

/// A type where no operator may stand.
fn simple_type(kind: &Type) -> String {
    let text = type_text(kind);
    let is_compound = matches!(
        kind.kind,
        TypeKind::Union(_) | TypeKind::Intersection(_) | TypeKind::Difference(_)
    );
    if is_compound { format!("({text})") } else { text }
}

pub(super) fn annotation(kind: Option<&Type>) -> String {
    kind.map_or_else(String::new, |kind| format!(" :: {}", type_text(kind)))
}

pub(super) fn block_parameter(parameter: &Parameter) -> String {
    match &parameter.annotation {
        Some(kind) => format!(":{} :: {}", parameter.name.text, simple_type(kind)),
        None => format!(":{}", parameter.name.text),
    }
}

/// `at:` and `put:` of `at:put:`; an operator is one part, `=:=` too.
pub(super) fn selector_parts(selector: &str) -> impl Iterator<Item = &str> {
    let is_keyword = selector.ends_with(':');
    selector.split_inclusive(move |char| is_keyword && char == ':')
}

pub(super) fn head(head: &Head, result: Option<&Type>) -> String {
    let mut text = String::new();
    if head.parameters.is_empty() {
        text.push_str(&head.selector);
    } else {
        for (part, parameter) in selector_parts(&head.selector).zip(&head.parameters) {
            let space = if text.is_empty() { "" } else { " " };
            let kind = annotation(parameter.annotation.as_ref());
            let _ = write!(text, "{space}{part} {}{kind}", parameter.name.text);
        }
    }
    if let Some(result) = result {
        let _ = write!(text, " -> {}", type_text(result));
    }
    text
}

impl Formatter<'_> {
    pub(super) fn target(&self, target: &Target) -> String {
        match target {
            Target::Variable(name) => name.text.to_string(),
            Target::Field(name) => format!("self.{}", name.text),
            Target::Pattern(pattern) => self.pattern(pattern),
        }
    }

    pub(super) fn pattern(&self, pattern: &Pattern) -> String {
        match &pattern.kind {
            PatternKind::Wildcard => "_".into(),
            PatternKind::Integer(_)
            | PatternKind::Float(_)
            | PatternKind::Character(_)
            | PatternKind::String(_)
            | PatternKind::Symbol(_) => self.source_text(pattern.span).into(),
            PatternKind::Nil => "nil".into(),
            PatternKind::True => "true".into(),
            PatternKind::False => "false".into(),
            PatternKind::Variable(name) => name.to_string(),
            PatternKind::Typed { name, class } => format!("{} :: {}", name.text, class_ref(class)),
            PatternKind::Tuple(elements) => format!("{{{}}}", self.patterns(elements, None)),
            PatternKind::List { elements, rest } => format!("#({})", self.patterns(elements, rest.as_ref())),
            PatternKind::Array { elements, rest } => format!("#[{}]", self.patterns(elements, rest.as_ref())),
            PatternKind::Dictionary(pairs) => {
                let parts: Vec<String> = pairs
                    .iter()
                    .map(|(key, value)| {
                        let key = match key {
                            PatternKey::Symbol(key) => symbol(key),
                            PatternKey::String(key) => string_literal(key),
                        };
                        format!("{key} => {}", self.pattern(value))
                    })
                    .collect();
                format!("#{{{}}}", parts.join(", "))
            }
            PatternKind::ResultOk(inner) => format!("Result ok: {}", self.pattern(inner)),
            PatternKind::ResultError(inner) => format!("Result error: {}", self.pattern(inner)),
            PatternKind::Binary(segments) => {
                let parts: Vec<String> = segments.iter().map(segment).collect();
                format!("<<{}>>", parts.join(", "))
            }
            PatternKind::Error => String::new(),
        }
    }

    fn patterns(&self, elements: &[Pattern], rest: Option<&Name>) -> String {
        let mut parts: Vec<String> = elements.iter().map(|element| self.pattern(element)).collect();
        if let Some(rest) = rest {
            parts.push(format!("...{}", rest.text));
        }
        parts.join(", ")
    }
}

fn segment(segment: &Segment) -> String {
    let mut text = segment.name.text.to_string();
    match &segment.size {
        Some(SegmentSize::Literal(size)) => {
            let _ = write!(text, ":{size}");
        }
        Some(SegmentSize::Variable(name)) => {
            let _ = write!(text, ":{}", name.text);
        }
        None => {}
    }
    let mut specifiers = Vec::new();
    match segment.kind {
        SegmentKind::Integer => {}
        SegmentKind::Float => specifiers.push("float"),
        SegmentKind::Binary => specifiers.push("binary"),
        SegmentKind::Utf8 => specifiers.push("utf8"),
    }
    if segment.is_signed {
        specifiers.push("signed");
    }
    match segment.endian {
        Endian::Big => {}
        Endian::Little => specifiers.push("little"),
        Endian::Native => specifiers.push("native"),
    }
    if !specifiers.is_empty() {
        let _ = write!(text, "/{}", specifiers.join("-"));
    }
    text
}
