//! Patterns: what their variables hold, and what is left for the arms that follow.

use beamtalk_syntax::ast::{self, Expression, Pattern, PatternKind};
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Infer;
use super::block::literal;
use super::flow::{Changes, Held, Origin, Place};
use crate::types::form::{Form, Reason, Type};

/// Unions of more symbols than this are not walked over for every arm.
const MANY: usize = 16;

/// What the arms so far leave of a value's type.
struct Rest {
    of: Type,
    /// The symbols that are left, when the type is a long union of them. The type is behind until somebody asks.
    symbols: Option<FxHashSet<Type>>,
    is_behind: bool,
}

impl Rest {
    fn new(of: Type) -> Self {
        let members = of.members();
        let is_long = members.len() > MANY && members.iter().all(|it| matches!(it.form(), Form::Symbol(_)));
        let symbols = is_long.then(|| members.iter().cloned().collect());
        Self {
            of,
            symbols,
            is_behind: false,
        }
    }

    fn of(&mut self) -> Type {
        if let Some(symbols) = self.symbols.as_ref().filter(|_| self.is_behind) {
            let left = self.of.members().iter().filter(|it| symbols.contains(it));
            self.of = Type::union(left.cloned());
            self.is_behind = false;
        }
        self.of.clone()
    }

    /// What the pattern of one symbol matches of many.
    fn single(&self, pattern: &Pattern) -> Option<Type> {
        let (Some(symbols), PatternKind::Symbol(name)) = (&self.symbols, &pattern.kind) else {
            return None;
        };
        let of = Type::symbol(name.clone());
        Some(if symbols.contains(&of) { of } else { Type::never() })
    }

    /// Takes one symbol out of many; answers whether it could.
    fn take(&mut self, pattern: &Pattern) -> bool {
        let (Some(symbols), PatternKind::Symbol(name)) = (&mut self.symbols, &pattern.kind) else {
            return false;
        };
        self.is_behind |= symbols.remove(&Type::symbol(name.clone()));
        true
    }
}

impl Infer<'_, '_> {
    pub(super) fn matched(
        &mut self,
        value: &Expression,
        arms: &[ast::Arm],
        is_exhaustive: bool,
        span: Span,
    ) -> Type {
        let value_type = self.expression(value);
        self.check_exhaustive(&value_type, arms, is_exhaustive, span);
        let mut rest = Rest::new(value_type);
        let place = self
            .place(value)
            .and_then(|place| Some((place.clone(), self.held(&place)?)));
        let mut values: Vec<Type> = Vec::new();
        let mut paths: Vec<Changes> = Vec::new();
        for arm in arms {
            let mark = self.flow.mark();
            self.scopes.push(FxHashMap::default());
            let of = match rest.single(&arm.pattern) {
                Some(of) => of,
                None => self.pattern_type(&arm.pattern, &rest.of()),
            };
            if let Some((place, held)) = &place {
                let held = Held {
                    of: of.clone(),
                    origin: Origin::Tested(arm.pattern.span),
                    ..held.clone()
                };
                self.flow.set(place.clone(), Some(held));
            }
            self.bind(&arm.pattern, &of);
            if let Some(guard) = &arm.guard {
                match literal(guard) {
                    Some(block) => {
                        let (of, changes) = self.path(block, &[], &[]);
                        self.flow.apply(changes);
                        if let Some(last) = block.body.last() {
                            self.check_condition(&last.expression, &of, "when:");
                            for (place, held) in self.facts(&last.expression).yes {
                                self.flow.set(place, Some(held));
                            }
                        }
                    }
                    None => {
                        let of = self.expression(guard);
                        self.check_condition(guard, &of, "when:");
                    }
                }
            }
            let result = match &arm.body.kind {
                ast::ExpressionKind::Block(block) if block.parameters.is_empty() => {
                    let (of, changes) = self.path(block, &[], &[]);
                    self.flow.apply(changes);
                    if self.is_told() {
                        self.out.types.push((arm.body.span, of.clone()));
                    }
                    of
                }
                _ => self.expression(&arm.body),
            };
            self.scopes.pop();
            let changes = self.flow.take(mark);
            if !result.is_never() {
                values.push(result);
                paths.push(changes);
            }
            if arm.guard.is_none() && !rest.take(&arm.pattern) {
                rest = Rest::new(self.left(&arm.pattern, &rest.of()));
            }
        }
        self.flow.join(paths);
        Type::union(values)
    }

    /// The variables of a destructuring assignment are those around, where there are such.
    pub(super) fn destructure(&mut self, pattern: &Pattern, of: &Type) {
        let of = self.pattern_type(pattern, of);
        self.bound(pattern, &of, true);
    }

    fn bind(&mut self, pattern: &Pattern, of: &Type) {
        self.bound(pattern, of, false);
    }

    fn name(&mut self, name: &EcoString, of: Type, span: Span, is_assignment: bool) {
        if name == "_" {
            return;
        }
        let known = is_assignment.then(|| self.local(name)).flatten();
        let place = match known {
            Some(at) => Place::Local(at),
            None => self.declare(name, None),
        };
        let Place::Local(at) = place else { return };
        let of = match self.locals.get(at) {
            Some(local) if local.declared.is_some() => local.declared.clone().unwrap_or(of),
            Some(local) if local.is_shared => Type::dynamic(Reason::Flow),
            _ => of,
        };
        if self.is_told() {
            self.out.bindings.push((span, of.clone()));
        }
        self.hold(place, of, Origin::Tested(span));
    }

    /// Binds the variables of a pattern that matched a value of this type.
    fn bound(&mut self, pattern: &Pattern, of: &Type, is_assignment: bool) {
        match &pattern.kind {
            PatternKind::Variable(name) => self.name(name, of.clone(), pattern.span, is_assignment),
            PatternKind::Typed { name, .. } => self.name(&name.text, of.clone(), name.span, is_assignment),
            PatternKind::Tuple(parts) => {
                let whole = of.clone();
                for (index, part) in parts.iter().enumerate() {
                    let of = match whole.form() {
                        Form::Tuple(types) => types.get(index).cloned(),
                        _ => None,
                    };
                    let of = of.unwrap_or_else(|| Type::dynamic(Reason::Argument));
                    self.inner(part, &of, is_assignment);
                }
            }
            PatternKind::List { elements, rest } | PatternKind::Array { elements, rest } => {
                let element = Self::element(of, 0);
                for part in elements {
                    self.inner(part, &element, is_assignment);
                }
                if let Some(rest) = rest {
                    self.name(&rest.text, of.clone(), rest.span, is_assignment);
                }
            }
            PatternKind::Dictionary(pairs) => {
                let element = Self::element(of, 1);
                for (_, part) in pairs {
                    self.inner(part, &element, is_assignment);
                }
            }
            PatternKind::ResultOk(inner) => {
                let value = Self::element(of, 0);
                self.inner(inner, &value, is_assignment);
            }
            PatternKind::ResultError(inner) => {
                let value = Self::element(of, 1);
                self.inner(inner, &value, is_assignment);
            }
            PatternKind::Binary(segments) => {
                for segment in segments {
                    let of = match segment.kind {
                        ast::SegmentKind::Integer | ast::SegmentKind::Utf8 => Type::class("Integer"),
                        ast::SegmentKind::Float => Type::class("Float"),
                        ast::SegmentKind::Binary => Type::class("Binary"),
                    };
                    self.name(&segment.name.text, of, segment.name.span, is_assignment);
                }
            }
            // The others bind nothing.
            _ => {}
        }
    }

    fn inner(&mut self, pattern: &Pattern, of: &Type, is_assignment: bool) {
        let of = self.pattern_type(pattern, of);
        self.bound(pattern, &of, is_assignment);
    }

    /// The argument of a generic type at a place, when all its members have it.
    fn element(of: &Type, index: usize) -> Type {
        let arguments: Option<Vec<Type>> = of
            .members()
            .iter()
            .map(|member| match member.form() {
                Form::Class { arguments, .. } => arguments.get(index).cloned(),
                _ => None,
            })
            .collect();
        arguments.map_or_else(|| Type::dynamic(Reason::Argument), Type::union)
    }

    /// What a value of this type is when the pattern matches it.
    fn pattern_type(&self, pattern: &Pattern, of: &Type) -> Type {
        let wanted = match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Variable(_) | PatternKind::Error => return of.clone(),
            PatternKind::Integer(_) => Type::class("Integer"),
            PatternKind::Float(_) => Type::class("Float"),
            // A Character is an Integer when the program runs.
            PatternKind::Character(_) => return of.clone(),
            PatternKind::String(_) => Type::class("String"),
            PatternKind::Symbol(_)
            | PatternKind::Nil
            | PatternKind::True
            | PatternKind::False
            | PatternKind::Typed { .. } => match self.whole(pattern) {
                Some(of) => of,
                None => return Type::dynamic(Reason::Name),
            },
            PatternKind::Tuple(_) => Type::class("Tuple"),
            PatternKind::List { .. } => Type::class("List"),
            PatternKind::Array { .. } => Type::class("Array"),
            PatternKind::Dictionary(_) => Type::class("Dictionary"),
            PatternKind::ResultOk(_) | PatternKind::ResultError(_) => Type::class("Result"),
            PatternKind::Binary(_) => Type::class("Binary"),
        };
        self.world.narrow(of, &wanted)
    }

    /// The type of which a pattern takes every value.
    fn whole(&self, pattern: &Pattern) -> Option<Type> {
        match &pattern.kind {
            PatternKind::Symbol(name) => Some(Type::symbol(name.clone())),
            PatternKind::Nil => Some(Type::nil()),
            PatternKind::True => Some(Type::class("True")),
            PatternKind::False => Some(Type::class("False")),
            PatternKind::Typed { class, .. } => self.pattern_class(&class.name.text),
            _ => None,
        }
    }

    fn pattern_class(&self, name: &EcoString) -> Option<Type> {
        match name.as_str() {
            "Nil" => Some(Type::nil()),
            name => self.world.table.class(name).map(|_| Type::class(name)),
        }
    }

    /// What a value may still be when an arm without a guard did not take it.
    fn left(&self, pattern: &Pattern, of: &Type) -> Type {
        self.whole(pattern)
            .map_or_else(|| of.clone(), |removed| self.world.subtract(of, &removed))
    }
}
