//! The tree as text, without positions.
//!
//! Two texts with equal dumps mean the same: the formatter checks itself with this, and the
//! parser's snapshots show it. Doc comments are part of the tree, other comments are not.

use std::fmt::Write;

use ecow::EcoString;

use crate::ast::{
    Arm, Block, Class, ClassRef, Expect, Expression, ExpressionKind, Extension, Head, Item, Message, Method,
    Name, Parameter, Pattern, PatternKey, PatternKind, Protocol, Segment, SegmentSize, Signature, Slot,
    Statement, StringPart, Target, Type, TypeAlias, TypeKind, TypeParameter, Unit,
};

/// The tree of a unit as indented S-expressions.
pub fn dump(unit: &Unit) -> String {
    let mut dumper = Dumper {
        out: String::new(),
        depth: 0,
    };
    for item in &unit.items {
        dumper.item(item);
    }
    dumper.out
}

struct Dumper {
    out: String,
    depth: usize,
}

impl Dumper {
    fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A line with others nested below it.
    fn node(&mut self, text: &str, children: impl FnOnce(&mut Self)) {
        self.line(text);
        self.depth += 1;
        children(self);
        self.depth -= 1;
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Class(class) => self.class(class),
            Item::Protocol(protocol) => self.protocol(protocol),
            Item::TypeAlias(alias) => self.alias(alias),
            Item::Extension(extension) => self.extension(extension),
            Item::Statement(statement) => self.statement(statement),
        }
    }

    fn preamble(&mut self, doc: Option<&EcoString>, expect: &[Expect]) {
        if let Some(doc) = doc {
            self.line(&format!("doc {doc:?}"));
        }
        for expect in expect {
            let reason = expect
                .reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(" {reason:?}"));
            self.line(&format!("expect {}{reason}", expect.category.text));
        }
    }

    fn class(&mut self, class: &Class) {
        let mut text = String::from("class");
        let modifiers = class.modifiers;
        for (flag, word) in [
            (modifiers.is_abstract, "abstract"),
            (modifiers.is_sealed, "sealed"),
            (modifiers.is_typed, "typed"),
            (modifiers.is_internal, "internal"),
        ] {
            if flag {
                text.push(' ');
                text.push_str(word);
            }
        }
        let superclass = class.superclass.as_ref().map_or_else(|| "nil".into(), class_ref);
        let _ = write!(
            text,
            " {}{} < {superclass}",
            class.name.text,
            type_parameters(&class.type_parameters)
        );
        text.push_str(&arguments(&class.superclass_arguments));
        if let Some(native) = &class.native {
            let _ = write!(text, " native {}", native.text);
        }
        if let Some(scope) = &class.handle_scope {
            let _ = write!(text, " handle-scope {:?}", scope.text);
        }
        self.node(&text, |dumper| {
            dumper.preamble(class.doc.as_ref(), &class.expect);
            for slot in &class.slots {
                dumper.slot(slot);
            }
            for method in &class.methods {
                dumper.method(method);
            }
        });
    }

    fn slot(&mut self, slot: &Slot) {
        let annotation = annotation(slot.annotation.as_ref());
        self.node(
            &format!("slot {:?} {}{annotation}", slot.keyword, slot.name.text),
            |dumper| {
                dumper.preamble(slot.doc.as_ref(), &slot.expect);
                if let Some(default) = &slot.default {
                    dumper.expression(default);
                }
            },
        );
    }

    fn method(&mut self, method: &Method) {
        let mut text = String::from("method");
        for (flag, word) in [
            (method.is_class, " class"),
            (method.is_sealed, " sealed"),
            (method.is_internal, " internal"),
        ] {
            if flag {
                text.push_str(word);
            }
        }
        text.push_str(&head(&method.head));
        if let Some(result) = &method.result {
            let _ = write!(text, " -> {}", type_text(result));
        }
        self.node(&text, |dumper| {
            dumper.preamble(method.doc.as_ref(), &method.expect);
            dumper.statements(&method.body);
        });
    }

    fn extension(&mut self, extension: &Extension) {
        self.node(&format!("extension {}", class_ref(&extension.target)), |dumper| {
            dumper.method(&extension.method);
        });
    }

    fn protocol(&mut self, protocol: &Protocol) {
        let mut text = format!(
            "protocol {}{}",
            protocol.name.text,
            type_parameters(&protocol.type_parameters)
        );
        if let Some(extending) = &protocol.extending {
            let _ = write!(text, " extending {}", extending.text);
        }
        self.node(&text, |dumper| {
            dumper.preamble(protocol.doc.as_ref(), &protocol.expect);
            for signature in &protocol.signatures {
                dumper.signature(signature);
            }
        });
    }

    fn signature(&mut self, signature: &Signature) {
        let mut text = String::from(if signature.is_class {
            "signature class"
        } else {
            "signature"
        });
        text.push_str(&head(&signature.head));
        if let Some(result) = &signature.result {
            let _ = write!(text, " -> {}", type_text(result));
        }
        self.node(&text, |dumper| dumper.preamble(signature.doc.as_ref(), &[]));
    }

    fn alias(&mut self, alias: &TypeAlias) {
        let internal = if alias.is_internal { "internal " } else { "" };
        let text = format!(
            "alias {internal}{} = {}",
            alias.name.text,
            type_text(&alias.definition)
        );
        self.node(&text, |dumper| dumper.preamble(alias.doc.as_ref(), &alias.expect));
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        self.preamble(None, &statement.expect);
        if statement.is_cast {
            self.node("cast", |dumper| dumper.expression(&statement.expression));
        } else {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match &expression.kind {
            ExpressionKind::Integer(value) => self.line(&format!("integer {value}")),
            ExpressionKind::Float(value) => self.line(&format!("float {value:?}")),
            ExpressionKind::Character(value) => self.line(&format!("character {value:?}")),
            ExpressionKind::String(parts) => self.string(parts),
            ExpressionKind::Symbol(text) => self.line(&format!("symbol {text:?}")),
            ExpressionKind::Nil => self.line("nil"),
            ExpressionKind::True => self.line("true"),
            ExpressionKind::False => self.line("false"),
            ExpressionKind::Variable(name) => self.line(&format!("variable {name}")),
            ExpressionKind::ClassName(class) => self.line(&format!("class-name {}", class_ref(class))),
            ExpressionKind::SelfReference => self.line("self"),
            ExpressionKind::Super => self.line("super"),
            ExpressionKind::Field(name) => self.line(&format!("field {}", name.text)),
            ExpressionKind::ForeignField { object, field } => {
                self.node(&format!("foreign-field {}", field.text), |dumper| {
                    dumper.expression(object);
                });
            }
            ExpressionKind::List { elements, tail } => self.node("list", |dumper| {
                dumper.expressions(elements);
                if let Some(tail) = tail {
                    dumper.node("tail", |dumper| dumper.expression(tail));
                }
            }),
            ExpressionKind::Array(elements) => self.node("array", |dumper| dumper.expressions(elements)),
            ExpressionKind::Dictionary(pairs) => self.node("dictionary", |dumper| {
                for (key, value) in pairs {
                    dumper.node("pair", |dumper| {
                        dumper.expression(key);
                        dumper.expression(value);
                    });
                }
            }),
            ExpressionKind::Block(block) => self.block(block),
            ExpressionKind::Send(send) => {
                self.node(&format!("send {}", send.message.selector), |dumper| {
                    dumper.expression(&send.receiver);
                    dumper.expressions(&send.message.arguments);
                });
            }
            ExpressionKind::Cascade { receiver, messages } => self.node("cascade", |dumper| {
                dumper.expression(receiver);
                for message in messages {
                    dumper.message(message);
                }
            }),
            ExpressionKind::Match {
                value,
                arms,
                exhaustive,
            } => {
                self.node(if *exhaustive { "match-exhaustive" } else { "match" }, |dumper| {
                    dumper.expression(value);
                    for arm in arms {
                        dumper.arm(arm);
                    }
                });
            }
            ExpressionKind::Assign {
                target,
                annotation: kind,
                value,
            } => {
                self.node(
                    &format!("assign {}{}", target_text(target), annotation(kind.as_ref())),
                    |dumper| {
                        dumper.expression(value);
                    },
                );
            }
            ExpressionKind::Return(value) => self.node("return", |dumper| dumper.expression(value)),
            ExpressionKind::Parenthesized(inner) => self.node("parens", |dumper| dumper.expression(inner)),
            ExpressionKind::Primitive { is_intrinsic, name } => {
                let word = if *is_intrinsic { "intrinsic" } else { "primitive" };
                self.line(
                    &name
                        .as_ref()
                        .map_or_else(|| word.into(), |name| format!("{word} {name:?}")),
                );
            }
            ExpressionKind::Error => self.line("error"),
        }
    }

    fn expressions(&mut self, expressions: &[Expression]) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn string(&mut self, parts: &[StringPart]) {
        match parts {
            [] => self.line("string \"\""),
            [StringPart::Text(text)] => self.line(&format!("string {text:?}")),
            _ => self.node("string", |dumper| {
                for part in parts {
                    match part {
                        StringPart::Text(text) => dumper.line(&format!("text {text:?}")),
                        StringPart::Interpolation(expression) => dumper.expression(expression),
                    }
                }
            }),
        }
    }

    fn block(&mut self, block: &Block) {
        let mut text = String::from("block");
        for parameter in &block.parameters {
            let _ = write!(text, " :{}", parameter_text(parameter));
        }
        self.node(&text, |dumper| dumper.statements(&block.body));
    }

    fn message(&mut self, message: &Message) {
        self.node(&format!("message {}", message.selector), |dumper| {
            dumper.expressions(&message.arguments);
        });
    }

    fn arm(&mut self, arm: &Arm) {
        self.node(&format!("arm {}", pattern_text(&arm.pattern)), |dumper| {
            if let Some(guard) = &arm.guard {
                dumper.node("when", |dumper| dumper.expression(guard));
            }
            dumper.expression(&arm.body);
        });
    }
}

fn class_ref(class: &ClassRef) -> String {
    match &class.package {
        Some(package) => format!("{}@{}", package.text, class.name.text),
        None => class.name.text.to_string(),
    }
}

fn type_parameters(parameters: &[TypeParameter]) -> String {
    if parameters.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = parameters
        .iter()
        .map(|parameter| match &parameter.bound {
            Some(Name { text, .. }) => format!("{} :: {text}", parameter.name.text),
            None => parameter.name.text.to_string(),
        })
        .collect();
    format!("({})", parts.join(", "))
}

fn arguments(arguments: &[Type]) -> String {
    if arguments.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = arguments.iter().map(type_text).collect();
    format!("({})", parts.join(", "))
}

fn annotation(kind: Option<&Type>) -> String {
    kind.map_or_else(String::new, |kind| format!(" :: {}", type_text(kind)))
}

fn parameter_text(parameter: &Parameter) -> String {
    format!(
        "{}{}",
        parameter.name.text,
        annotation(parameter.annotation.as_ref())
    )
}

fn head(head: &Head) -> String {
    let mut text = format!(" {}", head.selector);
    for parameter in &head.parameters {
        let _ = write!(text, " ({})", parameter_text(parameter));
    }
    text
}

fn type_text(kind: &Type) -> String {
    let joined = |operator: &str, members: &[Type]| {
        let parts: Vec<String> = members.iter().map(type_text).collect();
        format!("({operator} {})", parts.join(" "))
    };
    match &kind.kind {
        TypeKind::Named {
            class,
            arguments: types,
        } => format!("{}{}", class_ref(class), arguments(types)),
        TypeKind::ClassOf(class) => format!("{} class", class_ref(class)),
        TypeKind::SelfType => "Self".into(),
        TypeKind::SelfClass => "Self class".into(),
        TypeKind::Symbol(text) => format!("#{text:?}"),
        TypeKind::Nil => "nil".into(),
        TypeKind::True => "true".into(),
        TypeKind::False => "false".into(),
        TypeKind::Union(members) => joined("|", members),
        TypeKind::Intersection(members) => joined("&", members),
        TypeKind::Difference(members) => joined("\\", members),
        TypeKind::Error => "error".into(),
    }
}

fn target_text(target: &Target) -> String {
    match target {
        Target::Variable(name) => name.text.to_string(),
        Target::Field(name) => format!("self.{}", name.text),
        Target::Pattern(pattern) => pattern_text(pattern),
    }
}

fn pattern_text(pattern: &Pattern) -> String {
    match &pattern.kind {
        PatternKind::Wildcard => "_".into(),
        PatternKind::Integer(value) => format!("integer {value}"),
        PatternKind::Float(value) => format!("float {value:?}"),
        PatternKind::Character(value) => format!("character {value:?}"),
        PatternKind::String(text) => format!("string {text:?}"),
        PatternKind::Symbol(text) => format!("symbol {text:?}"),
        PatternKind::Nil => "nil".into(),
        PatternKind::True => "true".into(),
        PatternKind::False => "false".into(),
        PatternKind::Variable(name) => format!("variable {name}"),
        PatternKind::Typed { name, class } => format!("typed {} {}", name.text, class_ref(class)),
        PatternKind::Tuple(elements) => sequence("tuple", elements, None),
        PatternKind::List { elements, rest } => sequence("list", elements, rest.as_ref()),
        PatternKind::Array { elements, rest } => sequence("array", elements, rest.as_ref()),
        PatternKind::Dictionary(pairs) => {
            let mut text = String::from("(dictionary");
            for (key, value) in pairs {
                let key = match key {
                    PatternKey::Symbol(key) => format!("#{key:?}"),
                    PatternKey::String(key) => format!("{key:?}"),
                };
                let _ = write!(text, " [{key} {}]", pattern_text(value));
            }
            text + ")"
        }
        PatternKind::ResultOk(inner) => format!("(ok {})", pattern_text(inner)),
        PatternKind::ResultError(inner) => format!("(error {})", pattern_text(inner)),
        PatternKind::Binary(segments) => {
            let parts: Vec<String> = segments.iter().map(segment_text).collect();
            format!("(binary {})", parts.join(" "))
        }
        PatternKind::Error => "error".into(),
    }
}

fn sequence(word: &str, elements: &[Pattern], rest: Option<&Name>) -> String {
    let mut text = format!("({word}");
    for element in elements {
        let _ = write!(text, " [{}]", pattern_text(element));
    }
    if let Some(rest) = rest {
        let _ = write!(text, " ...{}", rest.text);
    }
    text + ")"
}

fn segment_text(segment: &Segment) -> String {
    let size = match &segment.size {
        Some(SegmentSize::Literal(size)) => format!(":{size}"),
        Some(SegmentSize::Variable(name)) => format!(":{}", name.text),
        None => String::new(),
    };
    let sign = if segment.is_signed { "signed" } else { "unsigned" };
    format!(
        "[{}{size} {:?} {sign} {:?}]",
        segment.name.text, segment.kind, segment.endian
    )
}
