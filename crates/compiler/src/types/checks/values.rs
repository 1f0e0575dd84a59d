//! Values that do not fit where they are put: answers, variables, slots.

use beamtalk_syntax::ast::Expression;
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use crate::codes;
use crate::types::form::{Form, Reason, Type};
use crate::types::infer::Infer;
use crate::types::relate::Clash;

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
        // A name or message that nobody knows was told, and so was where the not knowing begins.
        let is_unknown = matches!(of.form(), Form::Dynamic(reason) if *reason != Reason::Name);
        if own.is_typed && is_unknown && !takes_anything(&wanted) && !self.told_cause_in(node.span) {
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

    fn told_cause_in(&self, span: Span) -> bool {
        let mut told = self.out.diagnostics.iter().rev();
        told.any(|it| {
            let is_cause = it.code == codes::DYNAMIC_EXPRESSION || it.code == codes::UNKNOWN_SELECTOR;
            is_cause && span.start <= it.span.start && it.span.end <= span.end
        })
    }

    pub(in crate::types) fn check_local(&mut self, node: &Expression, of: &Type, declared: &Type) {
        if declared.is_never() {
            return;
        }
        let text = eco_format!("Type mismatch: declared as {declared}, got {of}");
        self.check_value(codes::WRONG_LOCAL, node, of, declared, text, None);
    }

    pub(in crate::types) fn check_slot(&mut self, name: &str, node: &Expression, of: &Type, declared: &Type) {
        let text = eco_format!("Type mismatch: field `{name}` declared as {declared}, got {of}");
        self.check_value(codes::WRONG_SLOT, node, of, declared, text, None);
    }

    /// What decides about going on must be true or false: the value of a guard, or the last one of a loop's condition.
    pub(in crate::types) fn check_condition(&mut self, node: &Expression, of: &Type, selector: &str) {
        let text = eco_format!("The condition of '{selector}' must answer a Boolean, got {of}");
        self.check_value(codes::WRONG_ARGUMENT, node, of, &Type::boolean(), text, None);
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
        let Some(clash) = self.world.fit(of, wanted).clash(of) else {
            return;
        };
        let is_certain = clash.is_certain;
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
        let mut diagnostic = clash.told(code, node.span, text);
        if let Some((span, text)) = note {
            diagnostic = diagnostic.with_note(span, text);
        }
        let diagnostic = self.explained(diagnostic, node, of);
        self.tell(diagnostic);
    }
}

impl Clash {
    pub(super) fn told(self, code: &'static str, span: Span, text: EcoString) -> Diagnostic {
        let told = graded(code, self.is_certain, span, text).with_category(Category::Type);
        let told = told.with_witness(self.witness);
        match self.hint {
            Some(hint) => told.with_hint(hint),
            None => told,
        }
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
