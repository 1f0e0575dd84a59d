//! Names to variables, sugar to plain nodes, control flow recognised; where each local lives is decided here.

mod builder;
mod exhaustive;
mod inline;
mod pattern;
mod scope;

use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use crate::SourceFile;
use crate::codes;
use crate::ir::{Body, Closure, Node, NodeKind, Storage, TextPart, VariableId};
use crate::table::{ClassTable, Kind};
use scope::Scopes;

/// The class a body belongs to.
#[derive(Clone, Debug)]
pub(crate) struct ClassScope {
    pub(crate) name: EcoString,
    pub(crate) kind: Kind,
    pub(crate) is_class_side: bool,
    pub(crate) selector: EcoString,
    /// Fields may be assigned although the class is a Value.
    pub(crate) is_test: bool,
    /// All slots are known: the chain reaches the root.
    pub(crate) is_closed: bool,
    pub(crate) is_native: bool,
}

pub(crate) struct Resolver<'a> {
    pub(crate) table: &'a ClassTable,
    pub(crate) file: &'a SourceFile,
    pub(crate) class: Option<ClassScope>,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
    scopes: Scopes,
    assigns_class_state: bool,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(
        table: &'a ClassTable,
        file: &'a SourceFile,
        class: Option<ClassScope>,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            table,
            file,
            class,
            diagnostics,
            scopes: Scopes::new(),
            assigns_class_state: false,
        }
    }

    /// A method: its parameters and statements.
    pub(crate) fn method(mut self, method: &ast::Method) -> Body {
        self.check_parameters(&method.head.parameters);
        let quiet = is_placeholder(&method.body);
        let parameters = method
            .head
            .parameters
            .iter()
            .map(|parameter| self.declare_parameter(parameter, quiet))
            .collect();
        let statements = self.statements(&method.body);
        self.finish(parameters, statements)
    }

    /// A slot default.
    pub(crate) fn default(mut self, expression: &ast::Expression) -> Body {
        let statements = vec![self.expression(expression)];
        self.finish(Vec::new(), statements)
    }

    /// A session or script input: unknown names are session variables.
    pub(crate) fn input(
        mut self,
        statements: &[ast::Statement],
        bound: &[EcoString],
    ) -> (Body, Vec<EcoString>) {
        self.scopes.open_session(bound);
        let statements = self.statements(statements);
        let assigned = self.scopes.session_assignments();
        (self.finish(Vec::new(), statements), assigned)
    }

    fn finish(self, parameters: Vec<VariableId>, statements: Vec<Node>) -> Body {
        let (variables, unused) = self.scopes.finish();
        for (name, span, what) in unused {
            // Whoever calls the method or the block gives the argument, wanted or not.
            let hint = if what == "parameter" {
                eco_format!("Name it `_{name}` to say that it is not needed.")
            } else {
                eco_format!("Remove it, or name it `_{name}` to say that it is not needed.")
            };
            self.diagnostics.push(
                Diagnostic::warning(codes::UNUSED, span, eco_format!("Unused {what} `{name}`"))
                    .with_category(Category::Unused)
                    .with_hint(hint),
            );
        }
        Body {
            variables,
            parameters,
            statements,
            assigns_class_state: self.assigns_class_state,
        }
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<EcoString>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    fn warn(&mut self, code: &'static str, span: Span, message: impl Into<EcoString>) {
        self.diagnostics.push(Diagnostic::warning(code, span, message));
    }

    fn declare_parameter(&mut self, parameter: &ast::Parameter, quiet: bool) -> VariableId {
        let name = &parameter.name;
        if self.scopes.is_outer(&name.text) && name.text != "_" {
            self.diagnostics.push(
                Diagnostic::warning(
                    codes::SHADOWED,
                    name.span,
                    eco_format!("Variable `{}` shadows outer variable", name.text),
                )
                .with_hint("Give the parameter another name (shadowed-block-param)."),
            );
        }
        let is_character = parameter
            .annotation
            .as_ref()
            .is_some_and(|annotation| crate::types::is_character(annotation, self.table));
        let variable = self.scopes.declare(&name.text, name.span, "parameter");
        self.scopes.set_character(variable, is_character);
        if quiet {
            self.scopes.mark_read(variable);
        }
        variable
    }

    // ---- statements ----

    pub(crate) fn statements(&mut self, statements: &[ast::Statement]) -> Vec<Node> {
        let mut out = Vec::with_capacity(statements.len());
        let mut returned = false;
        for statement in statements {
            if returned {
                self.warn(
                    codes::UNREACHABLE,
                    statement.span,
                    "Unreachable code after early return",
                );
            }
            out.push(self.statement(statement));
            returned = matches!(statement.expression.kind, ExpressionKind::Return(_));
        }
        out
    }

    fn statement(&mut self, statement: &ast::Statement) -> Node {
        if statement.is_cast {
            self.cast(&statement.expression)
        } else {
            self.expression(&statement.expression)
        }
    }

    fn cast(&mut self, expression: &ast::Expression) -> Node {
        match &expression.kind {
            ExpressionKind::Send(send) => {
                let receiver = Box::new(self.expression(&send.receiver));
                let arguments = self.expressions(&send.message.arguments);
                let span = send.message.parts.first().copied().unwrap_or(expression.span);
                Node {
                    kind: NodeKind::Cast {
                        receiver,
                        selector: send.message.selector.clone(),
                        arguments,
                    },
                    span,
                }
            }
            ExpressionKind::Parenthesized(inner) => self.cast(inner),
            // The parser has reported it.
            _ => self.expression(expression),
        }
    }

    // ---- expressions ----

    pub(crate) fn expressions(&mut self, expressions: &[ast::Expression]) -> Vec<Node> {
        expressions
            .iter()
            .map(|expression| self.expression(expression))
            .collect()
    }

    pub(crate) fn expression(&mut self, expression: &ast::Expression) -> Node {
        let span = expression.span;
        let kind = match &expression.kind {
            ExpressionKind::Integer(value) => NodeKind::Integer(value.clone()),
            ExpressionKind::Float(value) => NodeKind::Float(*value),
            ExpressionKind::Character(value) => NodeKind::Character(*value),
            ExpressionKind::String(parts) => NodeKind::Text(self.text(parts)),
            ExpressionKind::Symbol(name) => NodeKind::Atom(name.clone()),
            ExpressionKind::Nil | ExpressionKind::Error => NodeKind::Atom("nil".into()),
            ExpressionKind::True => NodeKind::Atom("true".into()),
            ExpressionKind::False => NodeKind::Atom("false".into()),
            ExpressionKind::Variable(name) => self.variable(name, span),
            ExpressionKind::ClassName(class) => self.class_name(class),
            ExpressionKind::SelfReference => self.self_reference(span),
            ExpressionKind::Super => {
                self.check_super(span);
                NodeKind::SelfReference
            }
            ExpressionKind::Field(name) => self.field(name),
            ExpressionKind::ForeignField { object, field } => {
                let object = object.span.text(&self.file.text);
                self.diagnostics.push(
                    Diagnostic::error(
                        codes::FOREIGN_FIELD,
                        span,
                        eco_format!("`{object}.{}` reads another object's state", field.text),
                    )
                    .with_hint(eco_format!(
                        "Send the message instead: `{object} {}`.",
                        field.text
                    )),
                );
                NodeKind::Atom("nil".into())
            }
            ExpressionKind::List { elements, tail } => NodeKind::List {
                elements: self.expressions(elements),
                tail: tail.as_ref().map(|tail| Box::new(self.expression(tail))),
            },
            ExpressionKind::Array(elements) => NodeKind::Array(self.expressions(elements)),
            ExpressionKind::Dictionary(pairs) => NodeKind::Dictionary(
                pairs
                    .iter()
                    .map(|(key, value)| (self.expression(key), self.expression(value)))
                    .collect(),
            ),
            ExpressionKind::Block(block) => NodeKind::Closure(self.closure(block)),
            ExpressionKind::Send(send) => return self.send(send, span),
            ExpressionKind::Cascade { receiver, messages } => self.cascade(receiver, messages),
            ExpressionKind::Match { value, arms, .. } => self.match_expression(value, arms, span),
            ExpressionKind::Assign {
                target,
                annotation,
                value,
            } => {
                return self.assign(target, annotation.as_ref(), value, span);
            }
            ExpressionKind::Return(value) => NodeKind::Return(Box::new(self.expression(value))),
            ExpressionKind::Parenthesized(inner) => return self.expression(inner),
            ExpressionKind::Primitive { name, .. } => self.primitive(name.as_ref()),
        };
        Node { kind, span }
    }

    fn text(&mut self, parts: &[ast::StringPart]) -> Vec<TextPart> {
        parts
            .iter()
            .map(|part| match part {
                ast::StringPart::Text(text) => TextPart::Text(text.clone()),
                ast::StringPart::Interpolation(value) => TextPart::Value(self.expression(value)),
            })
            .collect()
    }

    fn variable(&mut self, name: &EcoString, span: Span) -> NodeKind {
        if let Some(variable) = self.scopes.read(name) {
            return NodeKind::Variable(variable);
        }
        if let Some(variable) = self.scopes.session_variable(name) {
            return NodeKind::Variable(variable);
        }
        let hint = match &self.class {
            Some(class) if self.has_slot(class, name) => eco_format!("Did you mean `self.{name}`?"),
            _ => "Check the spelling, or assign it first.".into(),
        };
        self.diagnostics.push(
            Diagnostic::error(
                codes::UNDEFINED_VARIABLE,
                span,
                eco_format!("Undefined variable: {name}"),
            )
            .with_hint(hint),
        );
        NodeKind::Atom("nil".into())
    }

    fn has_slot(&self, class: &ClassScope, name: &str) -> bool {
        if class.is_class_side {
            self.table.has_class_slot(&class.name, name)
        } else {
            self.table
                .all_slots(&class.name)
                .iter()
                .any(|slot| slot.name == name)
        }
    }

    pub(crate) fn class_name(&mut self, class: &ast::ClassRef) -> NodeKind {
        let name = &class.name.text;
        if let Some(variable) = self.scopes.read(name) {
            return NodeKind::Variable(variable);
        }
        self.check_ffi(class);
        let known = self.table.class(name).is_some() || self.table.protocol(name).is_some();
        // A package that is left here is unknown, and that has been told.
        let is_told = class.package.is_some() && self.table.packages().is_some();
        if !known && !is_workspace_global(name) && !is_told {
            let suggestion = crate::suggest::nearest(name, self.table.class_names().map(EcoString::as_str));
            let mut diagnostic = Diagnostic::warning(
                codes::UNRESOLVED_CLASS,
                class.span,
                eco_format!("Unresolved class `{name}`"),
            )
            .with_category(Category::UnresolvedClass);
            if let Some(suggestion) = suggestion {
                diagnostic = diagnostic.with_hint(eco_format!("Did you mean `{suggestion}`?"));
            }
            self.diagnostics.push(diagnostic);
        }
        NodeKind::Class(name.clone())
    }

    fn self_reference(&mut self, span: Span) -> NodeKind {
        if self.class.is_none() && !self.scopes.has_self_parameter() {
            self.error(
                codes::SELF_OUTSIDE,
                span,
                "self can only be used inside a method body",
            );
        }
        NodeKind::SelfReference
    }

    fn check_super(&mut self, span: Span) {
        if self.class.is_none() && !self.scopes.has_self_parameter() {
            self.error(
                codes::SUPER_OUTSIDE,
                span,
                "super can only be used inside a method body",
            );
        }
    }

    fn field(&mut self, name: &ast::Name) -> NodeKind {
        self.check_field(name);
        NodeKind::Field(name.text.clone())
    }

    /// `self.name` must be a slot of this side of the class.
    fn check_field(&mut self, name: &ast::Name) {
        if self.scopes.has_self_parameter() {
            return;
        }
        let Some(class) = self.class.clone() else {
            self.error(
                codes::SELF_OUTSIDE,
                name.span,
                "self can only be used inside a method body",
            );
            return;
        };
        if self.has_slot(&class, &name.text) || !class.is_closed {
            return;
        }
        if class.is_class_side
            && self
                .table
                .all_slots(&class.name)
                .iter()
                .any(|slot| slot.name == name.text)
        {
            self.error(
                codes::INSTANCE_FIELD_IN_CLASS_METHOD,
                name.span,
                eco_format!("cannot access instance field '{}' in a class method", name.text),
            );
            return;
        }
        let slots: Vec<&str> = self
            .table
            .all_slots(&class.name)
            .iter()
            .map(|slot| slot.name.as_str())
            .collect();
        let mut diagnostic = Diagnostic::error(
            codes::UNDECLARED_SLOT,
            name.span,
            eco_format!("`self.{}` is not a slot of `{}`", name.text, class.name),
        );
        if let Some(suggestion) = crate::suggest::nearest(&name.text, slots.iter().copied()) {
            diagnostic = diagnostic.with_hint(eco_format!("Did you mean `self.{suggestion}`?"));
        } else if class.kind == Kind::Object {
            diagnostic = diagnostic.with_hint("An Object class holds no data: make it a Value or an Actor.");
        } else {
            diagnostic = diagnostic.with_hint("Declare it in the class body.");
        }
        self.diagnostics.push(diagnostic);
    }

    /// No name stands for two arguments; `_` stands for none.
    fn check_parameters(&mut self, parameters: &[ast::Parameter]) {
        for (index, parameter) in parameters.iter().enumerate() {
            let name = &parameter.name;
            let earlier = parameters
                .iter()
                .take(index)
                .find(|other| other.name.text == name.text && name.text != "_");
            if let Some(earlier) = earlier {
                let message = eco_format!("Two parameters are named `{}`", name.text);
                self.diagnostics.push(
                    Diagnostic::error(codes::DUPLICATE_PARAMETER, name.span, message)
                        .with_note(earlier.name.span, "the first one")
                        .with_hint("Give each parameter a name of its own."),
                );
            }
        }
    }

    pub(crate) fn closure(&mut self, block: &ast::Block) -> Closure {
        self.check_parameters(&block.parameters);
        self.scopes.open_closure();
        let rebinds_self = block
            .parameters
            .first()
            .is_some_and(|first| first.name.text == "self");
        let parameters = block
            .parameters
            .iter()
            .map(|parameter| self.declare_parameter(parameter, rebinds_self))
            .collect();
        let body = self.statements(&block.body);
        let captures = self.scopes.close_closure();
        Closure {
            parameters,
            body,
            captures,
            rebinds_self,
        }
    }

    fn cascade(&mut self, receiver: &ast::Expression, messages: &[ast::Message]) -> NodeKind {
        if matches!(receiver.kind, ExpressionKind::Super) {
            self.check_super(receiver.span);
            let sends = messages.iter().map(|message| {
                let arguments = self.expressions(&message.arguments);
                Node {
                    kind: NodeKind::SuperSend {
                        selector: message.selector.clone(),
                        arguments,
                    },
                    span: message.span,
                }
            });
            return NodeKind::Sequence(sends.collect());
        }
        let builder = builder::Builder::of(receiver, messages);
        let value = self.expression(receiver);
        let is_character = self.is_character(&value);
        let variable = self.scopes.temporary();
        self.scopes.set_character(variable, is_character);
        let span = receiver.span;
        let mut nodes = vec![Node {
            kind: NodeKind::Assign {
                variable,
                value: Box::new(value),
            },
            span,
        }];
        for message in messages {
            let receiver = Node {
                kind: NodeKind::Variable(variable),
                span,
            };
            nodes.push(match &builder {
                Some(builder) => self.builder_send(builder, receiver, message),
                None => self.plain_send(receiver, message),
            });
        }
        NodeKind::Sequence(nodes)
    }

    // ---- assignment ----

    fn assign(
        &mut self,
        target: &ast::Target,
        annotation: Option<&ast::Type>,
        value: &ast::Expression,
        span: Span,
    ) -> Node {
        let kind = match target {
            ast::Target::Variable(name) if name.text == "_" => return self.expression(value),
            ast::Target::Variable(name) => self.assign_variable(name, annotation, value),
            ast::Target::Field(name) => {
                self.check_field_assignment(name);
                NodeKind::AssignField {
                    field: name.text.clone(),
                    value: Box::new(self.expression(value)),
                }
            }
            ast::Target::Pattern(pattern) => {
                let value = Box::new(self.expression(value));
                let pattern = self.destructuring(pattern);
                NodeKind::Destructure { pattern, value }
            }
        };
        Node { kind, span }
    }

    fn assign_variable(
        &mut self,
        name: &ast::Name,
        annotation: Option<&ast::Type>,
        value: &ast::Expression,
    ) -> NodeKind {
        if matches!(&value.kind, ExpressionKind::Variable(other) if *other == name.text) {
            let message = eco_format!("Redundant assignment: `{0} := {0}` has no effect", name.text);
            self.warn(codes::REDUNDANT_ASSIGNMENT, name.span, message);
        }
        // A block may mention the variable it is assigned to: it runs later.
        let declared_early =
            matches!(value.kind, ExpressionKind::Block(_)) && !self.scopes.is_visible(&name.text);
        if declared_early {
            let variable = self.scopes.assign(&name.text, name.span);
            let value = self.expression(value);
            self.scopes.assigned_while_captured(variable);
            return NodeKind::Assign {
                variable,
                value: Box::new(value),
            };
        }
        let value = self.expression(value);
        let is_character = annotation
            .is_some_and(|annotation| crate::types::is_character(annotation, self.table))
            || self.is_character(&value);
        let variable = self.scopes.assign(&name.text, name.span);
        self.scopes.note_character(variable, is_character);
        NodeKind::Assign {
            variable,
            value: Box::new(value),
        }
    }

    fn check_field_assignment(&mut self, name: &ast::Name) {
        self.check_field(name);
        // `self` is what a class that is being built will be sent to, not the class around.
        if self.scopes.has_self_parameter() {
            return;
        }
        let Some(class) = self.class.clone() else { return };
        if class.is_class_side {
            self.assigns_class_state = true;
            return;
        }
        if class.kind != Kind::Actor && !class.is_test {
            let setter = crate::class::setter_selector(&name.text);
            self.error(
                codes::VALUE_SLOT_ASSIGNMENT,
                name.span,
                eco_format!(
                    "Cannot assign to slot `{}` on value type — use `self {setter} newValue` to create a new instance",
                    name.text
                ),
            );
        }
    }

    // ---- sends ----

    fn send(&mut self, send: &ast::Send, span: Span) -> Node {
        let message = &send.message;
        let place = message.parts.first().copied().unwrap_or(span);
        if matches!(send.receiver.kind, ExpressionKind::Super) {
            self.check_super(send.receiver.span);
            self.check_super_initialize(message);
            let arguments = self.expressions(&message.arguments);
            let kind = NodeKind::SuperSend {
                selector: message.selector.clone(),
                arguments,
            };
            return Node { kind, span: place };
        }
        if let Some(kind) = self.erlang_call(send) {
            return Node { kind, span: place };
        }
        if let Some(inline) = self.inline(send) {
            return Node {
                kind: NodeKind::Inline(inline),
                span: place,
            };
        }
        let receiver = self.expression(&send.receiver);
        if message.selector == "delegate" && message.arguments.is_empty() && self.is_delegate(&receiver) {
            return Node {
                kind: NodeKind::Delegate,
                span: place,
            };
        }
        self.plain_send(receiver, message)
    }

    fn is_delegate(&self, receiver: &Node) -> bool {
        matches!(receiver.kind, NodeKind::SelfReference)
            && self.class.as_ref().is_some_and(|class| class.is_native)
    }

    fn plain_send(&mut self, receiver: Node, message: &ast::Message) -> Node {
        let arguments = self.expressions(&message.arguments);
        let span = message.parts.first().copied().unwrap_or(message.span);
        let kind = NodeKind::Send {
            receiver: Box::new(receiver),
            selector: message.selector.clone(),
            arguments,
        };
        Node { kind, span }
    }

    fn check_super_initialize(&mut self, message: &ast::Message) {
        let is_actor_initialize = self.class.as_ref().is_some_and(|class| {
            class.kind == Kind::Actor && class.selector == "initialize" && !class.is_class_side
        });
        if message.selector == "initialize" && is_actor_initialize {
            self.warn(
                codes::SUPER_INITIALIZE,
                message.span,
                "explicit `super initialize` is unnecessary — parent initializers run automatically",
            );
        }
    }

    /// `Erlang module function: a …` where neither word belongs to the protocol of the two proxies.
    fn erlang_call(&mut self, send: &ast::Send) -> Option<NodeKind> {
        let ExpressionKind::Send(inner) = &unparenthesized(&send.receiver).kind else {
            return None;
        };
        let ExpressionKind::ClassName(class) = &inner.receiver.kind else {
            return None;
        };
        let module = &inner.message.selector;
        let selector = &send.message.selector;
        if class.name.text != "Erlang" || class.package.is_some() || !inner.message.arguments.is_empty() {
            return None;
        }
        let is_known = |class: &str, is_class, selector: &str| {
            self.table.find_method(class, is_class, selector).is_some()
                || self
                    .table
                    .chain(class)
                    .iter()
                    .any(|c| !self.table.extensions(&c.name, is_class, selector).is_empty())
        };
        let starts_like_name = selector.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        if is_known("Class", false, module)
            || is_known("Erlang", true, module)
            || is_known("ErlangModule", false, selector)
            || is_known("Object", false, selector)
            || !starts_like_name
            || self.table.class("ErlangModule").is_none()
        {
            return None;
        }
        self.check_ffi(class);
        let function = selector.split(':').next().unwrap_or_default().into();
        let arguments = self.expressions(&send.message.arguments);
        Some(NodeKind::ErlangCall {
            module: module.clone(),
            function,
            arguments,
        })
    }

    /// `Erlang` is named where calls of Erlang are switched off.
    fn check_ffi(&mut self, class: &ast::ClassRef) {
        if class.name.text == "Erlang" && !self.table.allows_ffi(self.file.origin) {
            self.diagnostics.push(
                Diagnostic::error(
                    codes::FFI_DISABLED,
                    class.span,
                    "Erlang is switched off in this workspace (--no-ffi)",
                )
                .with_hint("Restart the workspace without the flag to allow it."),
            );
        }
    }

    fn is_character(&self, node: &Node) -> bool {
        is_character_with(node, &|variable| self.scopes.is_character(variable))
    }

    fn primitive(&mut self, name: Option<&EcoString>) -> NodeKind {
        let Some(class) = &self.class else {
            return NodeKind::Atom("nil".into());
        };
        let own_module = eco_format!("beamtalk_{}", crate::names::snake_case(&class.name));
        let (module, function) = match name {
            None if class.is_class_side => (own_module, crate::names::class_function(&class.selector)),
            None => (own_module, crate::names::instance_function(&class.selector)),
            Some(name) => match name.split_once(':') {
                Some((module, function)) if !module.is_empty() && !function.is_empty() => {
                    (module.into(), function.into())
                }
                _ => (own_module, name.clone()),
            },
        };
        NodeKind::Primitive { module, function }
    }
}

/// Whether the value is statically a Character (language reference 12.4). The one place that decides it.
pub(crate) fn is_static_character(node: &Node, variables: &[crate::ir::Variable]) -> bool {
    let is_variable = |id: VariableId| {
        variables
            .get(id.0 as usize)
            .is_some_and(|variable| variable.is_character)
    };
    is_character_with(node, &is_variable)
}

fn is_character_with(node: &Node, is_variable: &dyn Fn(VariableId) -> bool) -> bool {
    match &node.kind {
        NodeKind::Character(_) => true,
        NodeKind::Variable(variable) => is_variable(*variable),
        NodeKind::Assign { value, .. } => is_character_with(value, is_variable),
        NodeKind::Send {
            receiver, selector, ..
        } => match selector.as_str() {
            "uppercase" | "lowercase" | "yourself" => is_character_with(receiver, is_variable),
            "value:" => matches!(&receiver.kind, NodeKind::Class(name) if name == "Character"),
            _ => false,
        },
        _ => false,
    }
}

/// The workspace binds these names in sessions; compiled code may still mention them.
fn is_workspace_global(name: &str) -> bool {
    matches!(name, "Transcript" | "Beamtalk" | "Workspace")
}

pub(crate) fn unparenthesized(expression: &ast::Expression) -> &ast::Expression {
    match &expression.kind {
        ExpressionKind::Parenthesized(inner) => unparenthesized(inner),
        _ => expression,
    }
}

/// Bodies that exist only to be replaced do not read their parameters.
pub(crate) fn is_placeholder(body: &[ast::Statement]) -> bool {
    let [statement] = body else { return false };
    match &statement.expression.kind {
        ExpressionKind::Primitive { .. } => true,
        ExpressionKind::Send(send) => {
            matches!(send.receiver.kind, ExpressionKind::SelfReference)
                && matches!(
                    send.message.selector.as_str(),
                    "delegate" | "subclassResponsibility" | "notImplemented"
                )
        }
        _ => false,
    }
}

impl Storage {
    pub(crate) fn is_cell(self) -> bool {
        self != Storage::Plain
    }
}
