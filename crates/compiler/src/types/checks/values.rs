//! Values that do not fit where they are put: answers, variables, slots.

use beamtalk_syntax::ast::Expression;
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use crate::codes;
use crate::types::form::{Form, Reason, Type};
use crate::types::infer::Infer;

impl Infer<'_, '_> {
    /// What a method answers against what it declares.
    pub(in crate::types) fn check_result(&mut self, node: &Expression, of: &Type) {
        let (Some(promised), Some(own)) = (&self.promised, &self.own) else {
            return;
        };
        if !self.is_told() {
            return;
        }
        let text = eco_format!(
            "Method '{}' in {} declares return type {}, but body returns {of}",
            promised.selector,
            own.class,
            promised.of
        );
        let (wanted, span) = (promised.of.clone(), promised.span);
        // Told where the not knowing was written down: what only follows from it comes and goes with annotations elsewhere.
        let is_unknown = matches!(of.form(), Form::Dynamic(Reason::Declared)) && !takes_anything(&wanted);
        if own.is_typed && is_unknown {
            let finding = Diagnostic::warning(codes::DYNAMIC_EXPRESSION, node.span, text)
                .with_category(Category::Type)
                .with_note(span, "declared here")
                .with_hint("Say with `asType:` what it is, or test it.");
            self.tell(finding);
            return;
        }
        self.check_value(
            codes::WRONG_RESULT,
            node,
            of,
            &wanted,
            text,
            Some((span, "declared here")),
        );
    }

    pub(in crate::types) fn check_local(&mut self, node: &Expression, of: &Type, declared: &Type) {
        let text = eco_format!("Type mismatch: declared as {declared}, got {of}");
        self.check_value(codes::WRONG_LOCAL, node, of, declared, text, None);
    }

    pub(in crate::types) fn check_slot(&mut self, name: &str, node: &Expression, of: &Type, declared: &Type) {
        let text = eco_format!("Type mismatch: field `{name}` declared as {declared}, got {of}");
        self.check_value(codes::WRONG_SLOT, node, of, declared, text, None);
    }

    /// Tells when nothing of a type fits, and as a hint when a part of it does not.
    pub(in crate::types) fn check_value(
        &mut self,
        code: &'static str,
        node: &Expression,
        of: &Type,
        wanted: &Type,
        text: EcoString,
        note: Option<(Span, &str)>,
    ) {
        if !self.is_told() {
            return;
        }
        let Some((is_certain, hint)) = self.world.fit(of, wanted).clash() else {
            return;
        };
        // A declaration may be narrower than what is known: it says what the reader knows besides.
        if code == codes::WRONG_LOCAL && !is_certain {
            return;
        }
        let text = match wanted.form() {
            Form::Protocol(protocol) if code != codes::WRONG_RESULT && is_certain => {
                eco_format!("{of} does not conform to protocol {protocol}")
            }
            _ => text,
        };
        let mut diagnostic = graded(code, is_certain, node.span, text).with_category(Category::Type);
        if let Some(hint) = hint {
            diagnostic = diagnostic.with_hint(hint);
        }
        if let Some((span, text)) = note {
            diagnostic = diagnostic.with_note(span, text);
        }
        let diagnostic = self.explained(diagnostic, node, of);
        self.tell(diagnostic);
    }
}

/// A warning, or a hint when only some of the values are meant.
pub(super) fn graded(code: &'static str, is_certain: bool, span: Span, text: EcoString) -> Diagnostic {
    let severity = if is_certain {
        Severity::Warning
    } else {
        Severity::Hint
    };
    Diagnostic::new(code, severity, span, text)
}

/// Whether nothing is promised by a type.
fn takes_anything(of: &Type) -> bool {
    of.is_dynamic() || of.class_name() == Some("Object")
}
