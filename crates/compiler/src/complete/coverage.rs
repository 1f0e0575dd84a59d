//! How much of the code has a type: what literals, annotations, constructors and declared answers say.
//!
//! A local counts as typed while all its assignments agree. Everything else is Dynamic, with the reason why.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Item, Target, TypeKind};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;

use super::cursor::Scope;
use super::describe::{Classes, Known, Result as Answer, Side};
use crate::SourceFile;
use crate::resolve::unparenthesized;
use crate::table::ClassTable;

/// What is known about the expressions of one class, or of the extensions of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCoverage {
    pub class: EcoString,
    pub total: usize,
    /// Expressions whose type is Dynamic.
    pub dynamic: Vec<Dynamic>,
}

impl ClassCoverage {
    pub fn typed(&self) -> usize {
        self.total - self.dynamic.len()
    }
}

/// An expression without a type, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    pub span: Span,
    pub reason: &'static str,
}

/// The coverage of a file, class by class in the order of the text.
pub fn coverage(file: &SourceFile, table: &ClassTable) -> Vec<ClassCoverage> {
    let classes = Classes::new(table);
    let mut found: Vec<ClassCoverage> = Vec::new();
    for item in &file.unit.items {
        let (class, methods, slots) = match item {
            Item::Class(class) => (&class.name.text, class.methods.as_slice(), class.slots.as_slice()),
            Item::Extension(extension) => (
                &extension.target.name.text,
                std::slice::from_ref(&extension.method),
                [].as_slice(),
            ),
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => continue,
        };
        let at = found
            .iter()
            .position(|known| known.class == *class)
            .unwrap_or_else(|| {
                found.push(ClassCoverage {
                    class: class.clone(),
                    total: 0,
                    dynamic: Vec::new(),
                });
                found.len() - 1
            });
        let Some(into) = found.get_mut(at) else { continue };
        for default in slots.iter().filter_map(|slot| slot.default.as_ref()) {
            Count::new(&classes, class, Side::Instance, into).expression(default);
        }
        for method in methods {
            let side = if method.is_class {
                Side::Class
            } else {
                Side::Instance
            };
            Count::new(&classes, class, side, into).method(method);
        }
    }
    found
}

struct Count<'a> {
    classes: &'a Classes<'a>,
    scope: Scope,
    /// Names whose assignments do not agree.
    mixed: Vec<EcoString>,
    parameters: Vec<EcoString>,
    /// Names with an annotation, whatever it says.
    annotated: Vec<EcoString>,
    into: &'a mut ClassCoverage,
}

impl<'a> Count<'a> {
    fn new(classes: &'a Classes<'a>, class: &EcoString, side: Side, into: &'a mut ClassCoverage) -> Self {
        let mut scope = Scope::default();
        scope.own = Some(Known {
            class: class.clone(),
            side,
        });
        Self {
            classes,
            scope,
            mixed: Vec::new(),
            parameters: Vec::new(),
            annotated: Vec::new(),
            into,
        }
    }

    fn method(mut self, method: &ast::Method) {
        let is_primitive = method
            .body
            .first()
            .is_some_and(|first| matches!(first.expression.kind, ExpressionKind::Primitive { .. }));
        if is_primitive {
            return;
        }
        self.declare(&method.head.parameters);
        // Once to learn which names hold one type only, once to count.
        let (total, dynamic) = (self.into.total, self.into.dynamic.len());
        let known = self.scope.locals.clone();
        self.statements(&method.body);
        self.into.total = total;
        self.into.dynamic.truncate(dynamic);
        self.scope.locals = known;
        self.statements(&method.body);
    }

    fn declare(&mut self, parameters: &[ast::Parameter]) {
        for parameter in parameters {
            let known = parameter
                .annotation
                .as_ref()
                .and_then(|annotation| self.classes.declared(annotation, self.scope.own.as_ref()));
            self.parameters.push(parameter.name.text.clone());
            if parameter.annotation.as_ref().is_some_and(|it| self.says(it)) {
                self.annotated.push(parameter.name.text.clone());
            }
            self.scope.locals.push((parameter.name.text.clone(), known));
        }
    }

    fn statements(&mut self, body: &[ast::Statement]) {
        for statement in body {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Parenthesized(inner) | ExpressionKind::Return(inner) => {
                self.expression(inner);
                return;
            }
            ExpressionKind::Block(block) => {
                let depth = self.scope.locals.len();
                self.declare(&block.parameters);
                self.statements(&block.body);
                self.scope.locals.truncate(depth);
            }
            ExpressionKind::Primitive { .. } | ExpressionKind::Error | ExpressionKind::Super => return,
            _ => walk::inner(node, &mut |inner| self.expression(inner)),
        }
        let known = self.classes.infer(node, &self.scope);
        if let ExpressionKind::Assign {
            target: Target::Variable(name),
            annotation,
            ..
        } = &node.kind
        {
            if annotation.as_ref().is_some_and(|it| self.says(it)) {
                self.annotated.push(name.text.clone());
            }
            self.assign(&name.text, known.clone());
        }
        self.into.total += 1;
        if known.is_none() && !self.is_declared(node) {
            let reason = self.reason(node);
            self.into.dynamic.push(Dynamic {
                span: node.span,
                reason,
            });
        }
    }

    /// Types that are known but are no single class: unions and the like.
    fn is_declared(&self, node: &Expression) -> bool {
        match &node.kind {
            ExpressionKind::Variable(name) => self.annotated.contains(name),
            ExpressionKind::Assign {
                target,
                annotation,
                value,
            } => match annotation {
                Some(annotation) => self.says(annotation),
                None => {
                    let is_named =
                        matches!(target, Target::Variable(name) if self.annotated.contains(&name.text));
                    is_named || self.is_declared(unparenthesized(value))
                }
            },
            ExpressionKind::Field(name) => {
                let slots = self.scope.own.as_ref().map(|own| self.classes.slots(own));
                let slot = slots.into_iter().flatten().find(|slot| slot.name == name.text);
                slot.and_then(|slot| slot.declared)
                    .is_some_and(|it| self.says(&it))
            }
            ExpressionKind::Send(send) => self.answers(&send.receiver, &send.message),
            ExpressionKind::Cascade { receiver, messages } => {
                messages.last().is_some_and(|last| self.answers(receiver, last))
            }
            _ => false,
        }
    }

    fn answers(&self, receiver: &Expression, message: &ast::Message) -> bool {
        let Some(known) = self.classes.infer(receiver, &self.scope) else {
            return false;
        };
        match self
            .classes
            .member(&known, &message.selector)
            .map(|member| member.result)
        {
            Some(Answer::Declared(declared)) => self.says(&declared),
            Some(Answer::Own) => true,
            Some(Answer::Unknown) | None => false,
        }
    }

    /// Does a type say anything? `Dynamic` does not, nor a type parameter that nothing fixes.
    fn says(&self, declared: &ast::Type) -> bool {
        match &declared.kind {
            TypeKind::Named { class, .. } => {
                let name = &class.name.text;
                let table = self.classes.table;
                table.class(name).is_some()
                    || table.protocol(name).is_some()
                    || table.alias(name).is_some()
                    || matches!(name.as_str(), "Nil" | "Never")
            }
            TypeKind::Union(members) | TypeKind::Intersection(members) | TypeKind::Difference(members) => {
                members.iter().all(|member| self.says(member))
            }
            TypeKind::Error => false,
            TypeKind::ClassOf(_)
            | TypeKind::SelfType
            | TypeKind::SelfClass
            | TypeKind::Symbol(_)
            | TypeKind::Nil
            | TypeKind::True
            | TypeKind::False => true,
        }
    }

    fn assign(&mut self, name: &EcoString, known: Option<Known>) {
        let before = self
            .scope
            .locals
            .iter_mut()
            .rev()
            .find(|(local, _)| local == name);
        match before {
            Some((_, held)) if *held != known => {
                *held = None;
                self.mixed.push(name.clone());
            }
            Some(_) => {}
            None => {
                let known = known.filter(|_| !self.mixed.contains(name));
                self.scope.locals.push((name.clone(), known));
            }
        }
    }

    /// The root of not knowing.
    fn reason(&self, node: &Expression) -> &'static str {
        match &node.kind {
            ExpressionKind::Variable(name) if self.parameters.contains(name) => "unannotated parameter",
            ExpressionKind::Variable(_) | ExpressionKind::Match { .. } => "ambiguous control flow",
            ExpressionKind::Field(_) => "unannotated slot",
            ExpressionKind::Assign { value, .. } => self.reason(unparenthesized(value)),
            ExpressionKind::Send(send) => self.of_receiver(&send.receiver),
            ExpressionKind::Cascade { receiver, .. } => self.of_receiver(receiver),
            _ => "unknown name",
        }
    }

    fn of_receiver(&self, receiver: &Expression) -> &'static str {
        if is_erlang(receiver) {
            "untyped FFI"
        } else if self.classes.infer(receiver, &self.scope).is_none() {
            "dynamic receiver"
        } else {
            "unannotated return"
        }
    }
}

/// `Erlang lists`.
fn is_erlang(receiver: &Expression) -> bool {
    match &unparenthesized(receiver).kind {
        ExpressionKind::ClassName(class) => class.name.text == "Erlang",
        ExpressionKind::Send(send) => {
            matches!(&unparenthesized(&send.receiver).kind, ExpressionKind::ClassName(class) if class.name.text == "Erlang")
        }
        _ => false,
    }
}
