//! Whether the arms of a match leave something out (language reference 7.3).

use beamtalk_syntax::ast::{self, ExpressionKind, PatternKind, Type, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use super::Resolver;
use super::scope::Declared;
use crate::live::class_of;
use crate::table::ClassTable;
use crate::types::MAX_ALIASES;
use crate::{codes, types};

/// One of the cases of a closed union.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Case {
    Symbol(EcoString),
    /// `nil`, `true`, `false` or an instance of a concrete class.
    Class(EcoString),
}

impl Case {
    fn text(&self) -> EcoString {
        match self {
            Self::Symbol(name) => eco_format!("#{name}"),
            Self::Class(name) => match name.as_str() {
                "UndefinedObject" => "nil".into(),
                "True" => "true".into(),
                "False" => "false".into(),
                _ => name.clone(),
            },
        }
    }

    fn class(&self) -> &str {
        match self {
            Self::Symbol(_) => "Symbol",
            Self::Class(name) => name,
        }
    }
}

/// What is known about the value that is matched.
enum Scrutinee {
    /// Too little to say anything.
    Unknown,
    Closed(Vec<Case>),
    /// Any other type, as text.
    Open(EcoString),
}

impl Resolver<'_> {
    pub(super) fn check_exhaustiveness(
        &mut self,
        value: &ast::Expression,
        arms: &[ast::Arm],
        is_exhaustive: bool,
        span: Span,
    ) {
        if self.refuses_result_arms(arms, span) {
            return;
        }
        match self.scrutinee(value) {
            Scrutinee::Closed(cases) => {
                let missing: Vec<EcoString> = cases
                    .iter()
                    .filter(|case| !is_covered(self.table, case, arms))
                    .map(|case| eco_format!("`{}`", case.text()))
                    .collect();
                if missing.is_empty() {
                    return;
                }
                let missing = missing.join(", ");
                if is_exhaustive {
                    let message = eco_format!("matchExhaustive: leaves {missing} unhandled");
                    self.error(codes::NON_EXHAUSTIVE, span, message);
                } else {
                    let message = eco_format!("match leaves {missing} unhandled");
                    self.diagnostics.push(
                        Diagnostic::warning(codes::UNHANDLED_CASE, span, message)
                            .with_category(Category::Type),
                    );
                }
            }
            Scrutinee::Open(text) if is_exhaustive => {
                let message = eco_format!(
                    "matchExhaustive: needs a closed union (symbol singletons, nil, concrete classes); \
                     this value is `{text}`"
                );
                self.error(codes::NON_EXHAUSTIVE, span, message);
            }
            Scrutinee::Open(_) | Scrutinee::Unknown => {}
        }
    }

    fn scrutinee(&self, value: &ast::Expression) -> Scrutinee {
        let class = |name: &str| Scrutinee::Open(name.into());
        match &value.kind {
            ExpressionKind::Parenthesized(inner) => self.scrutinee(inner),
            ExpressionKind::Variable(name) => match self.scopes.declared(name) {
                Declared::Nothing => Scrutinee::Unknown,
                Declared::Dynamic => Scrutinee::Open("Dynamic".into()),
                Declared::Type(annotation) => self.annotated(&annotation, &self.file.text),
            },
            ExpressionKind::Field(name) => self.declared_in_class(|class| {
                let slot = class.slots.iter().find(|slot| slot.name.text == name.text)?;
                Some(slot.annotation.clone())
            }),
            ExpressionKind::Send(send) if matches!(send.receiver.kind, ExpressionKind::SelfReference) => {
                let is_class_side = self.class.as_ref().is_some_and(|class| class.is_class_side);
                self.declared_in_class(|class| {
                    let method = class.methods.iter().find(|method| {
                        method.is_class == is_class_side && method.head.selector == send.message.selector
                    })?;
                    Some(method.result.clone())
                })
            }
            ExpressionKind::Symbol(name) => Scrutinee::Closed(vec![Case::Symbol(name.clone())]),
            ExpressionKind::Integer(_) => class("Integer"),
            ExpressionKind::Float(_) => class("Float"),
            ExpressionKind::String(_) => class("String"),
            ExpressionKind::List { .. } => class("List"),
            ExpressionKind::Array(_) => class("Array"),
            ExpressionKind::Dictionary(_) => class("Dictionary"),
            ExpressionKind::Block(_) => class("Block"),
            _ => Scrutinee::Unknown,
        }
    }

    /// The annotation of something that the class around or one above it declares.
    fn declared_in_class(&self, find: impl Fn(&ast::Class) -> Option<Option<Type>>) -> Scrutinee {
        let Some(class) = &self.class else {
            return Scrutinee::Unknown;
        };
        let own = class_of(self.file, &class.name);
        if let Some(found) = own.and_then(&find) {
            return self.optional(found.as_ref(), &self.file.text);
        }
        for entry in self.table.chain(&class.name) {
            let Some(file) = &entry.source else { continue };
            if let Some(found) = class_of(file, &entry.name).and_then(&find) {
                return self.optional(found.as_ref(), &file.text);
            }
        }
        Scrutinee::Unknown
    }

    fn optional(&self, annotation: Option<&Type>, source: &str) -> Scrutinee {
        annotation.map_or(Scrutinee::Unknown, |annotation| {
            self.annotated(annotation, source)
        })
    }

    fn annotated(&self, annotation: &Type, source: &str) -> Scrutinee {
        let mut cases = Vec::new();
        let is_closed = cases_of(self.table, annotation, MAX_ALIASES, &mut cases);
        // One class alone is no union: its instances are not told apart by their class.
        let is_union = !matches!(cases.as_slice(), [Case::Class(name)] if name != "UndefinedObject");
        if is_closed && is_union {
            Scrutinee::Closed(cases)
        } else {
            Scrutinee::Open(types::text(annotation, source))
        }
    }

    /// A match on Result cases must have both, or an arm for all the rest.
    fn refuses_result_arms(&mut self, arms: &[ast::Arm], span: Span) -> bool {
        let unguarded = || {
            arms.iter()
                .filter(|arm| arm.guard.is_none())
                .map(|arm| &arm.pattern.kind)
        };
        let is_result =
            |kind: &ast::PatternKind| matches!(kind, PatternKind::ResultOk(_) | PatternKind::ResultError(_));
        let mentions_result = arms.iter().any(|arm| is_result(&arm.pattern.kind));
        let has_catch_all =
            unguarded().any(|kind| matches!(kind, PatternKind::Wildcard | PatternKind::Variable(_)));
        if !mentions_result || has_catch_all {
            return false;
        }
        let covers_all =
            |inner: &ast::Pattern| matches!(inner.kind, PatternKind::Wildcard | PatternKind::Variable(_));
        let has_ok =
            unguarded().any(|kind| matches!(kind, PatternKind::ResultOk(inner) if covers_all(inner)));
        let has_error =
            unguarded().any(|kind| matches!(kind, PatternKind::ResultError(inner) if covers_all(inner)));
        let missing = match (has_ok, has_error) {
            (true, true) => return false,
            (true, false) => "error:",
            (false, true) => "ok:",
            (false, false) => "ok:, error:",
        };
        self.error(
            codes::NON_EXHAUSTIVE,
            span,
            eco_format!("Non-exhaustive match: on sealed type `Result` — missing arm: {missing}"),
        );
        true
    }
}

/// Collects the cases of a type; whether there are no others.
fn cases_of(table: &ClassTable, annotation: &Type, aliases: usize, cases: &mut Vec<Case>) -> bool {
    let case = match &annotation.kind {
        TypeKind::Symbol(name) => Case::Symbol(name.clone()),
        TypeKind::Nil => Case::Class("UndefinedObject".into()),
        TypeKind::True => Case::Class("True".into()),
        TypeKind::False => Case::Class("False".into()),
        TypeKind::Union(members) => {
            return members
                .iter()
                .all(|member| cases_of(table, member, aliases, cases));
        }
        TypeKind::Named { class, .. } => {
            let name = match class.name.text.as_str() {
                "Nil" => "UndefinedObject",
                name => name,
            };
            if let Some(alias) = table.alias(name) {
                return aliases > 0 && cases_of(table, &alias.definition, aliases - 1, cases);
            }
            match table.class(name) {
                Some(entry) if !entry.modifiers.is_abstract && name != "Object" => Case::Class(name.into()),
                _ => return false,
            }
        }
        TypeKind::ClassOf(_)
        | TypeKind::SelfType
        | TypeKind::SelfClass
        | TypeKind::Intersection(_)
        | TypeKind::Difference(_)
        | TypeKind::Error => return false,
    };
    if !cases.contains(&case) {
        cases.push(case);
    }
    true
}

/// Whether arms without a guard take every value of the case.
fn is_covered(table: &ClassTable, case: &Case, arms: &[ast::Arm]) -> bool {
    let unguarded = || {
        arms.iter()
            .filter(|arm| arm.guard.is_none())
            .map(|arm| &arm.pattern.kind)
    };
    let takes = |kind: &PatternKind| match kind {
        PatternKind::Wildcard | PatternKind::Variable(_) | PatternKind::Error => true,
        PatternKind::Symbol(name) => matches!(case, Case::Symbol(symbol) if symbol == name),
        PatternKind::Nil => case.class() == "UndefinedObject",
        PatternKind::True => case.class() == "True",
        PatternKind::False => case.class() == "False",
        PatternKind::Typed { class, .. } => {
            let name = match class.name.text.as_str() {
                "Nil" => "UndefinedObject",
                name => name,
            };
            case.class() == name || table.inherits_from(case.class(), name)
        }
        PatternKind::Integer(_)
        | PatternKind::Float(_)
        | PatternKind::Character(_)
        | PatternKind::String(_)
        | PatternKind::Tuple(_)
        | PatternKind::List { .. }
        | PatternKind::Array { .. }
        | PatternKind::Dictionary(_)
        | PatternKind::ResultOk(_)
        | PatternKind::ResultError(_)
        | PatternKind::Binary(_) => false,
    };
    let any = |inner: &ast::Pattern| matches!(inner.kind, PatternKind::Wildcard | PatternKind::Variable(_));
    let both_results = || {
        unguarded().any(|kind| matches!(kind, PatternKind::ResultOk(inner) if any(inner)))
            && unguarded().any(|kind| matches!(kind, PatternKind::ResultError(inner) if any(inner)))
    };
    unguarded().any(takes) || (case.class() == "Result" && both_results())
}
