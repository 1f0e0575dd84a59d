//! The type of every expression of a body, following the paths through it (language reference 11.6).

pub(crate) mod block;
mod control;
mod erlang;
pub(crate) mod flow;
mod narrow;
mod pattern;
mod scan;
pub(crate) mod send;
mod solve;

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Parameter, Statement, StringPart, Target};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::FxHashMap;

use self::flow::{Flow, Held, Origin, Place};
use self::scan::Assigned;
use super::form::{Reason, Type};
use super::world::{Answer, World};
use crate::check::is_primitive;
use crate::resolve::unparenthesized;
use crate::table::Kind;

/// Bodies of methods are looked into this deep to find out what they answer.
const MAX_BODIES: usize = 12;

/// What was found out about a text.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The type of each expression.
    pub(crate) types: Vec<(Span, Type)>,
    /// The type of each name where it is bound: locals at their assignments, parameters of blocks.
    pub(crate) bindings: Vec<(Span, Type)>,
    /// The methods a message may reach, by the span of the first part of its selector.
    pub(crate) targets: Vec<(Span, Vec<MethodRef>)>,
    /// What the variables of an input hold at its end.
    pub(crate) variables: Vec<(EcoString, Option<Type>)>,
}

/// A method by its name: class, side, selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodRef {
    pub class: EcoString,
    pub is_class_side: bool,
    pub selector: EcoString,
}

/// The class around a body.
#[derive(Clone)]
pub(crate) struct Own {
    pub(crate) class: EcoString,
    /// The class whose text it is: where `super` starts from.
    pub(crate) home: EcoString,
    pub(crate) is_class: bool,
    /// The type of `self`.
    pub(crate) of: Type,
    pub(crate) kind: Kind,
    pub(crate) is_typed: bool,
}

impl Own {
    pub(crate) fn new(world: &World<'_>, class: &EcoString, is_class: bool) -> Self {
        Self {
            class: class.clone(),
            home: class.clone(),
            is_class,
            of: world.own_type(class, is_class),
            kind: world.table.kind(class),
            is_typed: world
                .table
                .class(class)
                .is_some_and(|entry| entry.modifiers.is_typed),
        }
    }
}

struct Local {
    declared: Option<Type>,
    /// A block that may run at any time assigns it.
    is_shared: bool,
}

/// Looks at one body.
pub(crate) struct Infer<'w, 'a> {
    pub(crate) world: &'w World<'a>,
    pub(crate) out: &'w mut Output,
    pub(crate) own: Option<Own>,
    scopes: Vec<FxHashMap<EcoString, usize>>,
    locals: Vec<Local>,
    flow: Flow,
    assigned: Assigned,
    /// What `^` answers.
    returns: Vec<Type>,
    /// What the method says it answers.
    pub(crate) promised: Option<Promise>,
    /// Above zero nothing is told or kept.
    quiet: usize,
    loops: usize,
    /// What the last message was sent to.
    receiver: Option<Type>,
    /// The types of the values of literal maps.
    pub(crate) maps: FxHashMap<Span, Vec<Type>>,
}

/// The declared answer of a method.
#[derive(Clone)]
pub(crate) struct Promise {
    pub(crate) of: Type,
    pub(crate) selector: EcoString,
    pub(crate) span: Span,
}

impl<'w, 'a> Infer<'w, 'a> {
    pub(crate) fn new(world: &'w World<'a>, out: &'w mut Output, own: Option<Own>) -> Self {
        Self {
            world,
            out,
            own,
            scopes: vec![FxHashMap::default()],
            locals: Vec::new(),
            flow: Flow::default(),
            assigned: Assigned::default(),
            returns: Vec::new(),
            promised: None,
            quiet: 0,
            loops: 0,
            receiver: None,
            maps: FxHashMap::default(),
        }
    }

    /// What a method answers, by its body.
    pub(crate) fn method(&mut self, method: &ast::Method, class: Option<&ast::Class>) -> Type {
        self.begin(&method.head.parameters, &method.body);
        let own = self.own.clone();
        self.promised = method.result.as_ref().map(|result| Promise {
            of: self.in_own(self.world.declared(result, class)),
            selector: method.head.selector.clone(),
            span: result.span,
        });
        for parameter in &method.head.parameters {
            let declared = parameter
                .annotation
                .as_ref()
                .map(|it| self.world.declared(it, class));
            let declared = declared.map(|it| self.in_own(it));
            self.parameter(parameter, declared, None);
        }
        if is_primitive(method) {
            return Type::dynamic(Reason::Return);
        }
        let last = self.statements(&method.body);
        let is_native = own.as_ref().is_some_and(|own| self.delegates(own, method));
        if is_native {
            return Type::dynamic(Reason::Return);
        }
        if let Some(at) = method.body.last() {
            self.check_result(&at.expression, &last);
        }
        Type::union(std::mem::take(&mut self.returns).into_iter().chain([last]))
    }

    /// The statements of a session or script.
    pub(crate) fn input<'s>(
        &mut self,
        bindings: &[(EcoString, Type)],
        statements: impl Iterator<Item = &'s Statement> + Clone,
    ) {
        let is_user = |selector: &str| self.world.table.is_user_selector(selector);
        self.assigned = Assigned::of(&[], statements.clone(), &is_user);
        for (name, of) in bindings {
            let place = self.declare(name, None);
            self.hold(place, of.clone(), Origin::Unknown);
        }
        for statement in statements.clone() {
            self.statement(statement);
        }
        let in_blocks = scan::assigned_in_blocks(statements);
        let scope = self.scopes.first().into_iter().flatten();
        let mut after: Vec<(EcoString, Option<Type>)> = scope
            .map(|(name, at)| {
                let held = self.flow.get(&Place::Local(*at)).map(|held| held.of.clone());
                (name.clone(), held.filter(|_| !in_blocks.contains(name)))
            })
            .collect();
        after.sort_by(|one, two| one.0.cmp(&two.0));
        self.out.variables = after;
    }

    /// The default of a slot.
    pub(crate) fn default(&mut self, value: &Expression) -> Type {
        self.expression(value)
    }

    fn begin(&mut self, parameters: &[Parameter], body: &[Statement]) {
        let is_user = |selector: &str| self.world.table.is_user_selector(selector);
        self.assigned = Assigned::of(parameters, body, &is_user);
    }

    fn delegates(&self, own: &Own, method: &ast::Method) -> bool {
        let is_native = self
            .world
            .table
            .class(&own.class)
            .is_some_and(|entry| entry.native.is_some());
        is_native && crate::meta::is_delegate(method)
    }

    /// `Self` is the class around.
    fn in_own(&self, of: Type) -> Type {
        let Some(own) = &self.own else { return of };
        let replaced = |name: &EcoString| match name.as_str() {
            "Self" if own.is_class => Some(self.world.own_type(&own.class, false)),
            "Self" => Some(own.of.clone()),
            "Self class" => Some(Type::class_of(own.class.clone())),
            _ => None,
        };
        of.replace(&replaced, true)
    }

    fn declaration(&self) -> Option<&'a ast::Class> {
        let own = self.own.as_ref()?;
        self.world
            .table
            .class(&own.class)?
            .declaration()
            .map(|(_, class)| class)
    }

    pub(crate) fn is_told(&self) -> bool {
        self.quiet == 0
    }

    pub(crate) fn tell(&mut self, diagnostic: Diagnostic) {
        if self.is_told() {
            self.out.diagnostics.push(diagnostic);
        }
    }

    /// An annotation inside a body.
    fn check_annotation(&mut self, annotation: &ast::Type) {
        if self.is_told() {
            let class = self.declaration();
            super::declarations::bounds(self.world, self.out, annotation, class);
        }
    }

    /// Declares a parameter; `given` is what the method that runs the block hands to it.
    fn parameter(&mut self, parameter: &Parameter, declared: Option<Type>, given: Option<Type>) {
        let name = &parameter.name;
        let origin = match (&parameter.annotation, &given) {
            (Some(annotation), _) => Origin::Declared(annotation.span),
            (None, Some(_)) => Origin::Given(name.span),
            (None, None) => Origin::Unknown,
        };
        let of = declared
            .clone()
            .or(given)
            .unwrap_or_else(|| Type::dynamic(Reason::Parameter));
        if self.is_told() {
            self.out.bindings.push((name.span, of.clone()));
        }
        let place = self.declare(&name.text, declared);
        let is_shared =
            matches!(&place, Place::Local(at) if self.locals.get(*at).is_some_and(|it| it.is_shared));
        let of = if is_shared && parameter.annotation.is_none() {
            Type::dynamic(Reason::Flow)
        } else {
            of
        };
        self.hold(place, of, origin);
    }

    fn declare(&mut self, name: &EcoString, declared: Option<Type>) -> Place {
        let at = self.locals.len();
        self.locals.push(Local {
            declared,
            is_shared: self.assigned.later.contains(name),
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), at);
        }
        Place::Local(at)
    }

    fn hold(&mut self, place: Place, of: Type, origin: Origin) {
        let version = self.flow.next_version();
        let held = Held {
            of,
            origin,
            version,
            notes: Vec::new(),
        };
        self.flow.set(place, Some(held));
    }

    fn local(&self, name: &str) -> Option<usize> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.get(name).copied())
    }

    /// The value of a list of statements; `Never` when its end is not reached.
    fn statements(&mut self, statements: &[Statement]) -> Type {
        let mut last = Type::nil();
        let mut ends = false;
        for statement in statements {
            last = self.statement(statement);
            ends |= last.is_never();
        }
        if ends { Type::never() } else { last }
    }

    fn statement(&mut self, statement: &Statement) -> Type {
        let of = self.expression(&statement.expression);
        if statement.is_cast {
            if let ExpressionKind::Send(send) = &unparenthesized(&statement.expression).kind
                && let Some(receiver) = self.receiver.take()
            {
                self.check_cast(&receiver, &send.message);
            }
            return Type::nil();
        }
        of
    }

    pub(crate) fn expression(&mut self, node: &Expression) -> Type {
        let of = self.inferred(node);
        self.check_dynamic(node, &of);
        if self.is_told() {
            self.out.types.push((node.span, of.clone()));
        }
        of
    }

    fn inferred(&mut self, node: &Expression) -> Type {
        match &node.kind {
            ExpressionKind::Integer(_) => Type::class("Integer"),
            ExpressionKind::Float(_) => Type::class("Float"),
            ExpressionKind::Character(_) => Type::class("Character"),
            ExpressionKind::String(parts) => {
                for part in parts {
                    if let StringPart::Interpolation(value) = part {
                        self.expression(value);
                    }
                }
                Type::class("String")
            }
            ExpressionKind::Symbol(name) => Type::symbol(name.clone()),
            ExpressionKind::Nil => Type::nil(),
            ExpressionKind::True => Type::class("True"),
            ExpressionKind::False => Type::class("False"),
            ExpressionKind::Variable(name) => self.variable(name),
            ExpressionKind::ClassName(class) => {
                let name = &class.name.text;
                match self.world.table.class(name) {
                    Some(_) => Type::class_of(name.clone()),
                    None => match global(name) {
                        Some(class) => Type::class(class),
                        None => Type::dynamic(Reason::Declared),
                    },
                }
            }
            ExpressionKind::SelfReference | ExpressionKind::Super => match &self.own {
                Some(own) => own.of.clone(),
                None => Type::dynamic(Reason::Name),
            },
            ExpressionKind::Field(name) => self.field(&name.text),
            ExpressionKind::ForeignField { object, .. } => {
                self.expression(object);
                Type::dynamic(Reason::Name)
            }
            ExpressionKind::List { elements, tail } => {
                let mut of: Vec<Type> = elements.iter().map(|element| self.expression(element)).collect();
                if let Some(tail) = tail {
                    let tail = self.expression(tail);
                    let element = tail.class_and_arguments().and_then(|(_, it)| it.first().cloned());
                    of.push(element.unwrap_or_else(|| Type::dynamic(Reason::Argument)));
                }
                collection("List", [of])
            }
            ExpressionKind::Array(elements) => {
                let of = elements.iter().map(|element| self.expression(element)).collect();
                collection("Array", [of])
            }
            ExpressionKind::Dictionary(pairs) => {
                let of = pairs
                    .iter()
                    .map(|(key, value)| (self.expression(key), self.expression(value)));
                let (keys, values): (Vec<Type>, Vec<Type>) = of.unzip();
                self.maps.insert(node.span, values.clone());
                collection("Dictionary", [keys, values])
            }
            ExpressionKind::Block(block) => self.kept_block(block),
            ExpressionKind::Send(send) => self.send(&send.receiver, std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { receiver, messages } => self.send(receiver, messages),
            ExpressionKind::Match {
                value,
                arms,
                exhaustive,
            } => self.matched(value, arms, *exhaustive, node.span),
            ExpressionKind::Assign {
                target,
                annotation,
                value,
            } => self.assign(target, annotation.as_ref(), value),
            ExpressionKind::Return(value) => {
                let of = self.expression(value);
                self.check_result(value, &of);
                self.returns.push(of);
                Type::never()
            }
            ExpressionKind::Parenthesized(inner) => self.expression(inner),
            ExpressionKind::Primitive { .. } => Type::dynamic(Reason::Return),
            ExpressionKind::Error => Type::dynamic(Reason::Name),
        }
    }

    fn variable(&mut self, name: &EcoString) -> Type {
        let Some(at) = self.local(name) else {
            return Type::dynamic(Reason::Name);
        };
        let held = self.flow.get(&Place::Local(at));
        held.map_or_else(|| Type::dynamic(Reason::Flow), |held| held.of.clone())
    }

    fn field(&mut self, name: &EcoString) -> Type {
        if let Some(held) = self.flow.get(&Place::Slot(name.clone())) {
            return held.of.clone();
        }
        self.declared_slot(name)
            .unwrap_or_else(|| Type::dynamic(Reason::Slot))
    }

    pub(crate) fn declared_slot(&self, name: &str) -> Option<Type> {
        let own = self.own.as_ref()?;
        let arguments: Vec<Type> = self
            .world
            .type_parameters(&own.class)
            .into_iter()
            .map(Type::parameter)
            .collect();
        let of = self.world.slot_type(&own.class, &arguments, own.is_class, name)?;
        Some(self.in_own(of))
    }

    fn assign(&mut self, target: &Target, annotation: Option<&ast::Type>, value: &Expression) -> Type {
        let of = self.expression(value);
        match target {
            Target::Variable(name) => {
                let declared = annotation.map(|it| {
                    self.check_annotation(it);
                    let declared = self.world.declared(it, self.declaration());
                    self.in_own(declared)
                });
                let known = self.local(&name.text);
                let place = match known {
                    Some(at) => {
                        if let (Some(local), Some(declared)) = (self.locals.get_mut(at), &declared) {
                            local.declared = Some(declared.clone());
                        }
                        Place::Local(at)
                    }
                    None => self.declare(&name.text, declared),
                };
                let Place::Local(at) = place else { return of };
                let local = self.locals.get(at);
                let (promised, is_shared) =
                    local.map_or((None, false), |local| (local.declared.clone(), local.is_shared));
                if let Some(promised) = &promised {
                    self.check_local(value, &of, promised);
                }
                let (held, origin) = match (&promised, annotation) {
                    (Some(promised), Some(annotation)) => {
                        (promised.clone(), Origin::Declared(annotation.span))
                    }
                    (Some(promised), None) => (promised.clone(), Origin::assigned(value)),
                    (None, _) if is_shared => (Type::dynamic(Reason::Flow), Origin::Unknown),
                    (None, _) => (of.clone(), Origin::assigned(value)),
                };
                if self.is_told() {
                    self.out.bindings.push((name.span, held.clone()));
                }
                self.hold(place, held.clone(), origin);
                if annotation.is_some() && !of.is_never() {
                    held
                } else {
                    of
                }
            }
            Target::Field(name) => {
                let declared = self.declared_slot(&name.text);
                if let Some(declared) = &declared {
                    self.check_slot(&name.text, value, &of, declared);
                }
                let place = Place::Slot(name.text.clone());
                match declared {
                    // What is in it now is narrower than what may be.
                    Some(declared) if !of.is_dynamic() && self.world.is_within(&of, &declared) => {
                        self.hold(place, of.clone(), Origin::assigned(value));
                    }
                    _ => self.flow.set(place, None),
                }
                of
            }
            Target::Pattern(pattern) => {
                self.destructure(pattern, &of);
                of
            }
        }
    }

    /// What a method of a class answers when nothing declares it: what its body comes to.
    pub(crate) fn body_answer(
        &self,
        class: &EcoString,
        found: &super::world::Found<'a>,
        selector: &str,
    ) -> Type {
        let super::world::What::Method(method) = found.what else {
            return Type::dynamic(Reason::Return);
        };
        let key = (class.clone(), found.is_class, EcoString::from(selector));
        match self.world.answers.borrow().get(&key) {
            Some(Answer::Is(of)) => return of.clone(),
            Some(Answer::Asked) => return Type::dynamic(Reason::Recursion),
            None => {}
        }
        let depth = self.world.depth.get();
        if depth >= MAX_BODIES || is_primitive(method) {
            return Type::dynamic(Reason::Return);
        }
        self.world.depth.set(depth + 1);
        self.world.answers.borrow_mut().insert(key.clone(), Answer::Asked);
        let mut out = Output::default();
        let mut own = Own::new(self.world, class, found.is_class);
        // Sends to `self` reach the class of the receiver, slots and super those of the owner.
        own.home = found.owner.name.clone();
        let mut inner = Infer::new(self.world, &mut out, Some(own));
        inner.quiet = 1;
        let of = inner.method(method, found.owner.declaration().map(|(_, class)| class));
        self.world.depth.set(depth);
        self.world
            .answers
            .borrow_mut()
            .insert(key, Answer::Is(of.clone()));
        of
    }
}

/// The class of what the workspace binds to a name that looks like one of a class.
fn global(name: &str) -> Option<&'static str> {
    match name {
        "Transcript" => Some("TranscriptStream"),
        "Beamtalk" => Some("BeamtalkInterface"),
        "Workspace" => Some("WorkspaceInterface"),
        _ => None,
    }
}

/// A literal collection; of an empty one nothing is known.
fn collection<const N: usize>(class: &str, parts: [Vec<Type>; N]) -> Type {
    let arguments: Vec<Type> = parts.into_iter().map(Type::union).collect();
    if arguments.iter().all(Type::is_never) {
        return Type::class(class);
    }
    Type::generic(class, arguments, false)
}
