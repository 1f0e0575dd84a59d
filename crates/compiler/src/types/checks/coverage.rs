//! Expressions of typed classes about which nothing is known.

use beamtalk_syntax::ast::{Expression, ExpressionKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use ecow::eco_format;

use crate::codes;
use crate::types::form::{Form, Reason, Type};
use crate::types::infer::Infer;

impl Infer<'_, '_> {
    /// A message in a typed class whose answer is unknown, told where the not knowing begins.
    pub(in crate::types) fn check_dynamic(&mut self, node: &Expression, of: &Type) {
        let Form::Dynamic(reason) = of.form() else { return };
        let Some(own) = self.own.as_ref().filter(|own| own.is_typed && self.is_told()) else {
            return;
        };
        let receiver = match &node.kind {
            ExpressionKind::Send(send) => &*send.receiver,
            ExpressionKind::Cascade { receiver, .. } => receiver,
            _ => return,
        };
        // Told where the not knowing begins; what follows from it is not.
        let begins = match reason {
            Reason::Ffi | Reason::Return | Reason::Recursion => true,
            Reason::Receiver => {
                let held = self.place(receiver).and_then(|place| self.held(&place));
                held.is_some_and(|held| {
                    matches!(
                        held.of.form(),
                        Form::Dynamic(Reason::Declared | Reason::Parameter | Reason::Slot | Reason::Flow)
                    )
                })
            }
            _ => false,
        };
        if !begins {
            return;
        }
        let text = eco_format!(
            "expression inferred as Dynamic in typed class `{}` ({})",
            own.class,
            reason.text()
        );
        self.tell(
            Diagnostic::warning(codes::DYNAMIC_EXPRESSION, node.span, text).with_category(Category::Type),
        );
    }
}
