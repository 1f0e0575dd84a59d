//! The one walk over expressions, patterns and types: which parts a node has, in source order.
//!
//! A pass names the kinds of nodes that mean something to it and leaves the rest to these functions, so that a new kind
//! of node is added here and nowhere else. Both the shared and the changing walk are made from one text.

use ecow::EcoString;

use crate::ast::{
    ClassRef, Expression, ExpressionKind, Pattern, PatternKind, Statement, StringPart, Target, Type, TypeKind,
};

macro_rules! walks {
    ($part:ident, $parts:ident, $pattern_parts:ident, $type_parts:ident $(, $mutable:tt)?) => {
        /// A part of a node.
        pub enum $part<'a> {
            Expression(&'a $($mutable)? Expression),
            /// The body of a block.
            Statements(&'a $($mutable)? [Statement]),
            Pattern(&'a $($mutable)? Pattern),
            /// A name that a pattern binds.
            Binding(&'a $($mutable)? EcoString),
            Type(&'a $($mutable)? Type),
            Class(&'a $($mutable)? ClassRef),
        }

        /// Calls `visit` on the direct parts of an expression.
        pub fn $parts<'a>(node: &'a $($mutable)? Expression, visit: &mut dyn FnMut($part<'a>)) {
            match & $($mutable)? node.kind {
                ExpressionKind::Integer(_)
                | ExpressionKind::Float(_)
                | ExpressionKind::Character(_)
                | ExpressionKind::Symbol(_)
                | ExpressionKind::Nil
                | ExpressionKind::True
                | ExpressionKind::False
                | ExpressionKind::Variable(_)
                | ExpressionKind::SelfReference
                | ExpressionKind::Super
                | ExpressionKind::Field(_)
                | ExpressionKind::Primitive { .. }
                | ExpressionKind::Error => {}
                ExpressionKind::ClassName(class) => visit($part::Class(class)),
                ExpressionKind::String(parts) => {
                    for part in parts {
                        if let StringPart::Interpolation(value) = part {
                            visit($part::Expression(value));
                        }
                    }
                }
                ExpressionKind::List { elements, tail } => {
                    for element in elements {
                        visit($part::Expression(element));
                    }
                    if let Some(tail) = tail {
                        visit($part::Expression(tail));
                    }
                }
                ExpressionKind::Array(elements) => {
                    for element in elements {
                        visit($part::Expression(element));
                    }
                }
                ExpressionKind::Dictionary(pairs) => {
                    for (key, value) in pairs {
                        visit($part::Expression(key));
                        visit($part::Expression(value));
                    }
                }
                ExpressionKind::Block(block) => {
                    for parameter in & $($mutable)? block.parameters {
                        if let Some(annotation) = & $($mutable)? parameter.annotation {
                            visit($part::Type(annotation));
                        }
                    }
                    visit($part::Statements(& $($mutable)? block.body));
                }
                ExpressionKind::Send(send) => {
                    visit($part::Expression(& $($mutable)? send.receiver));
                    for argument in & $($mutable)? send.message.arguments {
                        visit($part::Expression(argument));
                    }
                }
                ExpressionKind::Cascade { receiver, messages } => {
                    visit($part::Expression(receiver));
                    for message in messages {
                        for argument in & $($mutable)? message.arguments {
                            visit($part::Expression(argument));
                        }
                    }
                }
                ExpressionKind::Match { value, arms, .. } => {
                    visit($part::Expression(value));
                    for arm in arms {
                        visit($part::Pattern(& $($mutable)? arm.pattern));
                        if let Some(guard) = & $($mutable)? arm.guard {
                            visit($part::Expression(guard));
                        }
                        visit($part::Expression(& $($mutable)? arm.body));
                    }
                }
                ExpressionKind::Assign { target, annotation, value } => {
                    if let Target::Pattern(pattern) = target {
                        visit($part::Pattern(pattern));
                    }
                    if let Some(annotation) = annotation {
                        visit($part::Type(annotation));
                    }
                    visit($part::Expression(value));
                }
                ExpressionKind::ForeignField { object: inner, .. }
                | ExpressionKind::Return(inner)
                | ExpressionKind::Parenthesized(inner) => visit($part::Expression(inner)),
            }
        }

        /// Calls `visit` on the direct parts of a pattern.
        pub fn $pattern_parts<'a>(pattern: &'a $($mutable)? Pattern, visit: &mut dyn FnMut($part<'a>)) {
            match & $($mutable)? pattern.kind {
                PatternKind::Variable(name) => visit($part::Binding(name)),
                PatternKind::Typed { name, class } => {
                    visit($part::Binding(& $($mutable)? name.text));
                    visit($part::Class(class));
                }
                PatternKind::Tuple(elements) => {
                    for element in elements {
                        visit($part::Pattern(element));
                    }
                }
                PatternKind::List { elements, rest } | PatternKind::Array { elements, rest } => {
                    for element in elements {
                        visit($part::Pattern(element));
                    }
                    if let Some(rest) = rest {
                        visit($part::Binding(& $($mutable)? rest.text));
                    }
                }
                PatternKind::Dictionary(pairs) => {
                    for (_, value) in pairs {
                        visit($part::Pattern(value));
                    }
                }
                PatternKind::ResultOk(inner) | PatternKind::ResultError(inner) => visit($part::Pattern(inner)),
                PatternKind::Binary(segments) => {
                    for segment in segments {
                        visit($part::Binding(& $($mutable)? segment.name.text));
                    }
                }
                PatternKind::Wildcard
                | PatternKind::Integer(_)
                | PatternKind::Float(_)
                | PatternKind::Character(_)
                | PatternKind::String(_)
                | PatternKind::Symbol(_)
                | PatternKind::Nil
                | PatternKind::True
                | PatternKind::False
                | PatternKind::Error => {}
            }
        }

        /// Calls `visit` on the direct parts of a type.
        pub fn $type_parts<'a>(annotation: &'a $($mutable)? Type, visit: &mut dyn FnMut($part<'a>)) {
            match & $($mutable)? annotation.kind {
                TypeKind::Named { class, arguments } => {
                    visit($part::Class(class));
                    for argument in arguments {
                        visit($part::Type(argument));
                    }
                }
                TypeKind::ClassOf(class) => visit($part::Class(class)),
                TypeKind::Union(members)
                | TypeKind::Intersection(members)
                | TypeKind::Difference(members) => {
                    for member in members {
                        visit($part::Type(member));
                    }
                }
                TypeKind::SelfType
                | TypeKind::SelfClass
                | TypeKind::Symbol(_)
                | TypeKind::Nil
                | TypeKind::True
                | TypeKind::False
                | TypeKind::Error => {}
            }
        }
    };
}

walks!(Part, parts, pattern_parts, type_parts);
walks!(PartMut, parts_mut, pattern_parts_mut, type_parts_mut, mut);

/// Calls `visit` on the expressions directly inside one; those of a block are its statements.
pub fn inner<'a>(node: &'a Expression, visit: &mut dyn FnMut(&'a Expression)) {
    parts(node, &mut |part| match part {
        Part::Expression(inner) => visit(inner),
        Part::Statements(body) => body.iter().for_each(|statement| visit(&statement.expression)),
        Part::Pattern(_) | Part::Binding(_) | Part::Type(_) | Part::Class(_) => {}
    });
}

/// Calls `visit` on an expression and everything inside it, outer ones first.
pub fn all<'a>(node: &'a Expression, visit: &mut dyn FnMut(&'a Expression)) {
    visit(node);
    inner(node, &mut |inner| all(inner, visit));
}

/// Calls `visit` on the names that a pattern binds.
pub fn bound_names<'a>(pattern: &'a Pattern, visit: &mut dyn FnMut(&'a EcoString)) {
    pattern_parts(pattern, &mut |part| match part {
        Part::Binding(name) => visit(name),
        Part::Pattern(inner) => bound_names(inner, visit),
        Part::Expression(_) | Part::Statements(_) | Part::Type(_) | Part::Class(_) => {}
    });
}

/// Calls `visit` on the types directly inside one.
pub fn inner_types<'a>(annotation: &'a Type, visit: &mut dyn FnMut(&'a Type)) {
    type_parts(annotation, &mut |part| {
        if let Part::Type(inner) = part {
            visit(inner);
        }
    });
}
