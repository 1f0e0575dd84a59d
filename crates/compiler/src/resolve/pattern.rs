//! Patterns: their variables and the checks that need the class table.

use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use super::Resolver;
use crate::codes;
use crate::ir::{Arm, NodeKind, Pattern, PatternKind, Rest, Segment, SegmentSize, VariableId};

/// How the names of a pattern are bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// Local to the arm.
    Arm,
    /// In the surrounding scope, assigning names already visible.
    Assignment,
}

impl Resolver<'_> {
    pub(super) fn match_expression(
        &mut self,
        value: &ast::Expression,
        arms: &[ast::Arm],
        span: Span,
    ) -> NodeKind {
        self.check_result_arms(arms, span);
        let value = Box::new(self.expression(value));
        let arms = arms.iter().map(|arm| self.arm(arm)).collect();
        NodeKind::Match { value, arms }
    }

    fn arm(&mut self, arm: &ast::Arm) -> Arm {
        self.scopes.open_block();
        let mut bound = Vec::new();
        let pattern = self.pattern(&arm.pattern, Binding::Arm, &mut bound);
        let guard = arm.guard.as_ref().map(|guard| {
            let before = self.scopes.assignments();
            let guard = self.expression(guard);
            self.scopes.assigned_in_guard(&before);
            guard
        });
        let body = match &arm.body.kind {
            // A parameterless block as the whole body is the arm's statement list.
            ExpressionKind::Block(block) if block.parameters.is_empty() => {
                self.scopes.open_block();
                let body = self.statements(&block.body);
                self.scopes.close_block();
                body
            }
            _ => vec![self.expression(&arm.body)],
        };
        self.scopes.close_block();
        Arm { pattern, guard, body }
    }

    pub(super) fn destructuring(&mut self, pattern: &ast::Pattern) -> Pattern {
        self.pattern(pattern, Binding::Assignment, &mut Vec::new())
    }

    fn bind(
        &mut self,
        name: &EcoString,
        span: Span,
        binding: Binding,
        bound: &mut Vec<(EcoString, VariableId)>,
    ) -> Option<VariableId> {
        if name == "_" {
            return None;
        }
        if let Some((_, variable)) = bound.iter().find(|(known, _)| known == name).cloned() {
            // The second place compares with the first.
            self.scopes.mark_read(variable);
            return Some(variable);
        }
        let variable = match binding {
            Binding::Arm => self.scopes.declare(name, span, "variable"),
            Binding::Assignment => self.scopes.assign(name, span),
        };
        bound.push((name.clone(), variable));
        Some(variable)
    }

    fn pattern(
        &mut self,
        pattern: &ast::Pattern,
        binding: Binding,
        bound: &mut Vec<(EcoString, VariableId)>,
    ) -> Pattern {
        let span = pattern.span;
        let kind = match &pattern.kind {
            ast::PatternKind::Wildcard | ast::PatternKind::Error => PatternKind::Wildcard,
            ast::PatternKind::Integer(value) => PatternKind::Integer(value.clone()),
            ast::PatternKind::Float(value) => PatternKind::Float(*value),
            ast::PatternKind::Character(value) => PatternKind::Integer(u32::from(*value).into()),
            ast::PatternKind::String(text) => PatternKind::Text(text.clone()),
            ast::PatternKind::Symbol(name) => PatternKind::Atom(name.clone()),
            ast::PatternKind::Nil => PatternKind::Atom("nil".into()),
            ast::PatternKind::True => PatternKind::Atom("true".into()),
            ast::PatternKind::False => PatternKind::Atom("false".into()),
            ast::PatternKind::Variable(name) => match self.bind(name, span, binding, bound) {
                Some(variable) => PatternKind::Variable(variable),
                None => PatternKind::Wildcard,
            },
            ast::PatternKind::Typed { name, class } => {
                let variable = self.bind(&name.text, name.span, binding, bound);
                PatternKind::Typed {
                    variable,
                    class: self.pattern_class(class),
                }
            }
            ast::PatternKind::Tuple(elements) => PatternKind::Tuple(self.patterns(elements, binding, bound)),
            ast::PatternKind::List { elements, rest } => {
                let elements = self.patterns(elements, binding, bound);
                PatternKind::List {
                    elements,
                    rest: self.rest(rest.as_ref(), binding, bound),
                }
            }
            ast::PatternKind::Array { elements, rest } => {
                let elements = self.patterns(elements, binding, bound);
                PatternKind::Array {
                    elements,
                    rest: self.rest(rest.as_ref(), binding, bound),
                }
            }
            ast::PatternKind::Dictionary(pairs) => PatternKind::Dictionary(
                pairs
                    .iter()
                    .map(|(key, value)| (key.clone(), self.pattern(value, binding, bound)))
                    .collect(),
            ),
            ast::PatternKind::ResultOk(inner) => {
                PatternKind::ResultOk(Box::new(self.pattern(inner, binding, bound)))
            }
            ast::PatternKind::ResultError(inner) => {
                PatternKind::ResultError(Box::new(self.pattern(inner, binding, bound)))
            }
            ast::PatternKind::Binary(segments) => PatternKind::Binary(
                segments
                    .iter()
                    .map(|segment| self.segment(segment, binding, bound))
                    .collect(),
            ),
        };
        Pattern { kind, span }
    }

    fn patterns(
        &mut self,
        patterns: &[ast::Pattern],
        binding: Binding,
        bound: &mut Vec<(EcoString, VariableId)>,
    ) -> Vec<Pattern> {
        patterns
            .iter()
            .map(|pattern| self.pattern(pattern, binding, bound))
            .collect()
    }

    fn rest(
        &mut self,
        rest: Option<&ast::Name>,
        binding: Binding,
        bound: &mut Vec<(EcoString, VariableId)>,
    ) -> Option<Rest> {
        let rest = rest?;
        Some(match self.bind(&rest.text, rest.span, binding, bound) {
            Some(variable) => Rest::Variable(variable),
            None => Rest::Ignored,
        })
    }

    fn pattern_class(&mut self, class: &ast::ClassRef) -> EcoString {
        let name = &class.name.text;
        if name == "Character" {
            self.error(
                codes::CHARACTER_PATTERN,
                class.span,
                "`Character` cannot be matched: at run time a character is an Integer",
            );
        }
        let is_known = self.table.class(name).is_some() || name == "Nil";
        if !is_known {
            self.diagnostics.push(
                Diagnostic::warning(
                    codes::UNRESOLVED_CLASS,
                    class.span,
                    eco_format!("Unresolved class `{name}`"),
                )
                .with_category(Category::UnresolvedClass),
            );
        }
        if name == "Nil" {
            "UndefinedObject".into()
        } else {
            name.clone()
        }
    }

    fn segment(
        &mut self,
        segment: &ast::Segment,
        binding: Binding,
        bound: &mut Vec<(EcoString, VariableId)>,
    ) -> Segment {
        let size = segment.size.as_ref().map(|size| match size {
            ast::SegmentSize::Literal(bits) => SegmentSize::Literal(*bits),
            ast::SegmentSize::Variable(name) => {
                let known = bound
                    .iter()
                    .find(|(known, _)| *known == name.text)
                    .map(|(_, variable)| *variable);
                if let Some(variable) = known {
                    self.scopes.mark_read(variable);
                    return SegmentSize::Variable(variable);
                }
                match self.variable(&name.text, name.span) {
                    NodeKind::Variable(variable) => SegmentSize::Variable(variable),
                    _ => SegmentSize::Literal(8),
                }
            }
        });
        let variable = self.bind(&segment.name.text, segment.name.span, binding, bound);
        Segment {
            variable,
            size,
            kind: segment.kind,
            is_signed: segment.is_signed,
            endian: segment.endian,
        }
    }
}
