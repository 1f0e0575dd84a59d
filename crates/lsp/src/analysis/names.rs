//! Every name of a text with what it means, in the order of the text. Everything that asks "what stands here" or "where
//! else" starts from this list: definition, references, highlights, rename, semantic tokens.
//!
//! Works on whatever tree the parser made of a broken text. The rules of scope are the compiler's: an assignment
//! means the nearest visible variable or makes one in the innermost block.

use beamtalk_syntax::ast::{
    self, Class, ClassRef, Expression, ExpressionKind, Head, Item, Message, Method, Name, Parameter, Pattern,
    PatternKind, Protocol, SlotKeyword, Statement, Target, Type, TypeKind, TypeParameter, Unit,
};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use ecow::EcoString;

/// The class whose method a name stands in, and the side of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) class: EcoString,
    pub(crate) is_class: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A class, protocol or alias.
    Class(EcoString),
    /// A parameter of a generic class or protocol.
    TypeParameter(EcoString),
    Package(EcoString),
    /// A variable: where it was declared tells it from others of its name.
    Local {
        name: EcoString,
        declared: Span,
    },
    /// A variable that nothing declares.
    Unbound(EcoString),
    Slot {
        name: EcoString,
    },
    /// A part of the selector of a message.
    Message {
        selector: EcoString,
        part: usize,
        to: To,
        /// Where its first part stands.
        first: Span,
    },
    /// A part of the selector of a method or of a protocol's signature.
    Method {
        selector: EcoString,
        part: usize,
    },
    /// `self` and `super`.
    Own,
}

/// Who gets a message, as far as the text alone says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    Own,
    Super,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Declaration,
    Read,
    Write,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Occurrence {
    pub(crate) span: Span,
    pub(crate) meaning: Meaning,
    pub(crate) role: Role,
    pub(crate) owner: Option<Owner>,
    /// A parameter of a method or block, rather than a variable.
    pub(crate) is_parameter: bool,
}

/// All names of a text.
pub(crate) fn all(unit: &Unit) -> Vec<Occurrence> {
    those(unit, &|_| true)
}

/// The names of a text that mean something wanted.
pub(crate) fn those(unit: &Unit, is_wanted: &dyn Fn(&Meaning) -> bool) -> Vec<Occurrence> {
    within(unit, &|_| true, is_wanted)
}

/// The same, leaving out the methods that cannot have any.
pub(crate) fn within(
    unit: &Unit,
    may_have: &dyn Fn(&Method) -> bool,
    is_wanted: &dyn Fn(&Meaning) -> bool,
) -> Vec<Occurrence> {
    let mut collector = Collector {
        may_have,
        is_wanted,
        found: Vec::new(),
        scopes: vec![Vec::new()],
        owner: None,
        type_parameters: Vec::new(),
    };
    for item in &unit.items {
        collector.item(item);
    }
    let mut found = collector.found;
    found.sort_by_key(|occurrence| occurrence.span);
    found
}

/// The name at an offset, or ending there.
pub(crate) fn at(names: &[Occurrence], offset: u32) -> Option<&Occurrence> {
    let covers = |name: &&Occurrence| name.span.start <= offset && offset < name.span.end;
    let ends = |name: &&Occurrence| name.span.end == offset;
    names.iter().find(covers).or_else(|| names.iter().rfind(ends))
}

/// The variable whose name stands there, and where it is declared.
pub(crate) fn local_at(names: &[Occurrence], offset: u32) -> Option<(&Occurrence, &EcoString, Span)> {
    let found = at(names, offset)?;
    match &found.meaning {
        Meaning::Local { name, declared } => Some((found, name, *declared)),
        _ => None,
    }
}

struct Local {
    name: EcoString,
    declared: Span,
    is_parameter: bool,
}

struct Collector<'a> {
    may_have: &'a dyn Fn(&Method) -> bool,
    is_wanted: &'a dyn Fn(&Meaning) -> bool,
    found: Vec<Occurrence>,
    /// Innermost last.
    scopes: Vec<Vec<Local>>,
    owner: Option<Owner>,
    type_parameters: Vec<EcoString>,
}

impl Collector<'_> {
    fn add(&mut self, span: Span, meaning: Meaning, role: Role) {
        self.push(span, meaning, role, false);
    }

    fn push(&mut self, span: Span, meaning: Meaning, role: Role, is_parameter: bool) {
        if (self.is_wanted)(&meaning) {
            self.found.push(Occurrence {
                span,
                meaning,
                role,
                owner: self.owner.clone(),
                is_parameter,
            });
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Class(class) => self.class(class),
            Item::Protocol(protocol) => self.protocol(protocol),
            Item::TypeAlias(alias) => {
                self.add(
                    alias.name.span,
                    Meaning::Class(alias.name.text.clone()),
                    Role::Declaration,
                );
                self.annotation(&alias.definition);
            }
            Item::Extension(extension) => {
                self.class_ref(&extension.target, Role::Read);
                self.method(&extension.target.name.text, &extension.method);
            }
            Item::Statement(statement) => self.statement(statement),
        }
    }

    fn class(&mut self, class: &Class) {
        self.type_parameters(&class.type_parameters);
        if let Some(superclass) = &class.superclass {
            self.class_ref(superclass, Role::Read);
        }
        for argument in &class.superclass_arguments {
            self.annotation(argument);
        }
        let name = &class.name;
        self.add(name.span, Meaning::Class(name.text.clone()), Role::Declaration);
        for slot in &class.slots {
            self.owner = Some(Owner {
                class: name.text.clone(),
                is_class: slot.keyword == SlotKeyword::ClassState,
            });
            let meaning = Meaning::Slot {
                name: slot.name.text.clone(),
            };
            self.add(slot.name.span, meaning, Role::Declaration);
            if let Some(annotation) = &slot.annotation {
                self.annotation(annotation);
            }
            if let Some(default) = &slot.default {
                self.expression(default);
            }
        }
        self.owner = None;
        for method in &class.methods {
            self.method(&name.text, method);
        }
        self.type_parameters.clear();
    }

    fn protocol(&mut self, protocol: &Protocol) {
        self.type_parameters(&protocol.type_parameters);
        let name = &protocol.name;
        self.add(name.span, Meaning::Class(name.text.clone()), Role::Declaration);
        if let Some(extending) = &protocol.extending {
            self.add(extending.span, Meaning::Class(extending.text.clone()), Role::Read);
        }
        for signature in &protocol.signatures {
            self.owner = Some(Owner {
                class: name.text.clone(),
                is_class: signature.is_class,
            });
            self.scopes.push(Vec::new());
            self.head(&signature.head);
            if let Some(result) = &signature.result {
                self.annotation(result);
            }
            self.scopes.pop();
        }
        self.owner = None;
        self.type_parameters.clear();
    }

    fn type_parameters(&mut self, parameters: &[TypeParameter]) {
        self.type_parameters = parameters.iter().map(|one| one.name.text.clone()).collect();
        for parameter in parameters {
            let name = &parameter.name;
            self.add(
                name.span,
                Meaning::TypeParameter(name.text.clone()),
                Role::Declaration,
            );
            if let Some(bound) = &parameter.bound {
                self.add(bound.span, Meaning::Class(bound.text.clone()), Role::Read);
            }
        }
    }

    fn method(&mut self, class: &EcoString, method: &Method) {
        if !(self.may_have)(method) {
            return;
        }
        self.owner = Some(Owner {
            class: class.clone(),
            is_class: method.is_class,
        });
        self.scopes.push(Vec::new());
        self.head(&method.head);
        if let Some(result) = &method.result {
            self.annotation(result);
        }
        self.statements(&method.body);
        self.scopes.pop();
        self.owner = None;
    }

    fn head(&mut self, head: &Head) {
        for (part, span) in head.parts.iter().enumerate() {
            let selector = head.selector.clone();
            self.add(*span, Meaning::Method { selector, part }, Role::Declaration);
        }
        self.parameters(&head.parameters);
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            self.declare(&parameter.name, true);
            if let Some(annotation) = &parameter.annotation {
                self.annotation(annotation);
            }
        }
    }

    fn annotation(&mut self, annotation: &Type) {
        match &annotation.kind {
            TypeKind::Named { class, arguments }
                if class.package.is_none() && self.type_parameters.contains(&class.name.text) =>
            {
                let meaning = Meaning::TypeParameter(class.name.text.clone());
                self.add(class.name.span, meaning, Role::Read);
                arguments.iter().for_each(|argument| self.annotation(argument));
            }
            _ => walk::type_parts(annotation, &mut |part| self.part(part, Binding::New)),
        }
    }

    /// A part of a type or a pattern that means nothing more than it does elsewhere.
    fn part(&mut self, part: Part<'_>, binding: Binding) {
        match part {
            Part::Type(inner) => self.annotation(inner),
            Part::Class(class) => self.class_ref(class, Role::Read),
            Part::Pattern(inner) => self.pattern(inner, binding),
            Part::Binding(_) | Part::Expression(_) | Part::Statements(_) => {}
        }
    }

    fn class_ref(&mut self, class: &ClassRef, role: Role) {
        if let Some(package) = &class.package {
            self.add(package.span, Meaning::Package(package.text.clone()), Role::Read);
        }
        self.add(class.name.span, Meaning::Class(class.name.text.clone()), role);
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        self.expression(&statement.expression);
    }

    /// A new variable in the innermost scope.
    fn declare(&mut self, name: &Name, is_parameter: bool) {
        self.local(&name.text, name.span, name.span, Role::Declaration, is_parameter);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(Local {
                name: name.text.clone(),
                declared: name.span,
                is_parameter,
            });
        }
    }

    fn local(&mut self, name: &EcoString, span: Span, declared: Span, role: Role, is_parameter: bool) {
        let meaning = Meaning::Local {
            name: name.clone(),
            declared,
        };
        self.push(span, meaning, role, is_parameter);
    }

    fn visible(&self, name: &str) -> Option<(Span, bool)> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| {
            let local = scope.iter().rev().find(|local| local.name == name)?;
            Some((local.declared, local.is_parameter))
        })
    }

    /// An assignment: of a variable that is there, or a new one.
    fn assign(&mut self, name: &Name) {
        if name.text == "_" {
            return;
        }
        match self.visible(&name.text) {
            Some((declared, is_parameter)) => {
                self.local(&name.text, name.span, declared, Role::Write, is_parameter);
            }
            None => self.declare(name, false),
        }
    }

    fn expression(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Variable(name) if name == "_" => {}
            ExpressionKind::Variable(name) => match self.visible(name) {
                Some((declared, is_parameter)) => {
                    self.local(name, node.span, declared, Role::Read, is_parameter);
                }
                None => self.add(node.span, Meaning::Unbound(name.clone()), Role::Read),
            },
            ExpressionKind::ClassName(class) => self.class_ref(class, Role::Read),
            ExpressionKind::SelfReference | ExpressionKind::Super => {
                self.add(node.span, Meaning::Own, Role::Read);
            }
            ExpressionKind::Field(name) => {
                self.own_word(node.span);
                self.slot(name, Role::Read);
            }
            ExpressionKind::ForeignField { object, field } => {
                self.expression(object);
                self.slot(field, Role::Read);
            }
            ExpressionKind::Block(block) => {
                self.scopes.push(Vec::new());
                self.parameters(&block.parameters);
                self.statements(&block.body);
                self.scopes.pop();
            }
            ExpressionKind::Send(send) => {
                self.expression(&send.receiver);
                self.message(&send.receiver, &send.message);
            }
            ExpressionKind::Cascade { receiver, messages } => {
                self.expression(receiver);
                for message in messages {
                    self.message(receiver, message);
                }
            }
            ExpressionKind::Match { value, arms, .. } => {
                self.expression(value);
                for arm in arms {
                    self.scopes.push(Vec::new());
                    self.pattern(&arm.pattern, Binding::New);
                    if let Some(guard) = &arm.guard {
                        self.expression(guard);
                    }
                    self.expression(&arm.body);
                    self.scopes.pop();
                }
            }
            ExpressionKind::Assign {
                target,
                annotation,
                value,
            } => self.assignment(target, annotation.as_ref(), value),
            _ => walk::inner(node, &mut |inner| self.expression(inner)),
        }
    }

    fn assignment(&mut self, target: &Target, annotation: Option<&Type>, value: &Expression) {
        // A block may mention the variable it is assigned to: it runs later.
        let is_early = matches!(value.kind, ExpressionKind::Block(_));
        match target {
            Target::Variable(name) if is_early => {
                self.assign(name);
                self.expression(value);
            }
            Target::Variable(name) => {
                self.expression(value);
                self.assign(name);
            }
            Target::Field(name) => {
                self.own_word(Span::new(name.span.start.saturating_sub(5), name.span.start));
                self.slot(name, Role::Write);
                self.expression(value);
            }
            Target::Pattern(pattern) => {
                self.expression(value);
                self.pattern(pattern, Binding::Nearest);
            }
        }
        if let Some(annotation) = annotation {
            self.annotation(annotation);
        }
    }

    /// The `self` of `self.field`.
    fn own_word(&mut self, span: Span) {
        self.add(Span::new(span.start, span.start + 4), Meaning::Own, Role::Read);
    }

    fn slot(&mut self, name: &Name, role: Role) {
        let meaning = Meaning::Slot {
            name: name.text.clone(),
        };
        self.add(name.span, meaning, role);
    }

    fn message(&mut self, receiver: &Expression, message: &Message) {
        let to = match unparenthesized(receiver).kind {
            ExpressionKind::SelfReference => To::Own,
            ExpressionKind::Super => To::Super,
            _ => To::Other,
        };
        for (part, span) in message.parts.iter().enumerate() {
            let selector = message.selector.clone();
            let first = message.parts.first().copied().unwrap_or(*span);
            let meaning = Meaning::Message {
                selector,
                part,
                to,
                first,
            };
            self.add(*span, meaning, Role::Read);
        }
        for argument in &message.arguments {
            self.expression(argument);
        }
    }

    fn pattern(&mut self, pattern: &Pattern, binding: Binding) {
        match &pattern.kind {
            PatternKind::Variable(text) => {
                let name = Name {
                    text: text.clone(),
                    span: pattern.span,
                };
                self.bind(&name, binding);
            }
            PatternKind::Typed { name, class } => {
                self.bind(name, binding);
                self.class_ref(class, Role::Read);
            }
            PatternKind::List { elements, rest } | PatternKind::Array { elements, rest } => {
                elements.iter().for_each(|one| self.pattern(one, binding));
                if let Some(rest) = rest {
                    self.bind(rest, binding);
                }
            }
            PatternKind::Binary(segments) => {
                for segment in segments {
                    if let Some(ast::SegmentSize::Variable(size)) = &segment.size
                        && let Some((declared, is_parameter)) = self.visible(&size.text)
                    {
                        self.local(&size.text, size.span, declared, Role::Read, is_parameter);
                    }
                    self.bind(&segment.name, binding);
                }
            }
            _ => walk::pattern_parts(pattern, &mut |part| self.part(part, binding)),
        }
    }

    fn bind(&mut self, name: &Name, binding: Binding) {
        match binding {
            _ if name.text == "_" => {}
            Binding::New => self.declare(name, false),
            Binding::Nearest => self.assign(name),
        }
    }
}

/// What a pattern does with its names.
#[derive(Clone, Copy)]
enum Binding {
    New,
    Nearest,
}

pub(crate) fn unparenthesized(node: &Expression) -> &Expression {
    match &node.kind {
        ExpressionKind::Parenthesized(inner) => unparenthesized(inner),
        _ => node,
    }
}
