//! The resolved tree: names bound to variables, control flow recognised, sugar gone.
//!
//! `resolve` decides everything here once; `lower` obeys.

use beamtalk_syntax::ast;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use num_bigint::BigInt;

/// An index into `Body::variables`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VariableId(pub(crate) u32);

/// Where a local lives. Decided by `resolve`; later passes only read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// An Erlang variable; each assignment makes a new one. Inside inlined loops it travels as an argument.
    Plain,
    /// Assigned by a block that is passed on as a value, or after such a block captured it.
    Cell,
    /// A variable of the session; lives as long as it.
    Session,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: EcoString,
    pub(crate) storage: Storage,
    /// Annotated as, or only ever assigned, a Character.
    pub(crate) is_character: bool,
}

/// A method body, slot default or session input.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub(crate) variables: Vec<Variable>,
    pub(crate) parameters: Vec<VariableId>,
    pub(crate) statements: Vec<Node>,
    /// The text assigns class state (in a class method).
    pub(crate) assigns_class_state: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: NodeKind,
    /// The place a stack frame names: the selector of a send, else the start of the expression.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeKind {
    Integer(BigInt),
    Float(f64),
    Character(char),
    /// A symbol, `true`, `false` or `nil`.
    Atom(EcoString),
    Text(Vec<TextPart>),
    Variable(VariableId),
    SelfReference,
    /// A class by name.
    Class(EcoString),
    Field(EcoString),
    List {
        elements: Vec<Node>,
        tail: Option<Box<Node>>,
    },
    Array(Vec<Node>),
    Dictionary(Vec<(Node, Node)>),
    Closure(Closure),
    /// A literal block given to a ClassBuilder: compiled like a method.
    BuiltMethod(BuiltMethod),
    Send {
        receiver: Box<Node>,
        selector: EcoString,
        arguments: Vec<Node>,
    },
    Cast {
        receiver: Box<Node>,
        selector: EcoString,
        arguments: Vec<Node>,
    },
    SuperSend {
        selector: EcoString,
        arguments: Vec<Node>,
    },
    /// `Erlang module function: a with: b`.
    ErlangCall {
        module: EcoString,
        function: EcoString,
        arguments: Vec<Node>,
    },
    Inline(Inline),
    Match {
        value: Box<Node>,
        arms: Vec<Arm>,
    },
    Assign {
        variable: VariableId,
        value: Box<Node>,
    },
    AssignField {
        field: EcoString,
        value: Box<Node>,
    },
    Destructure {
        pattern: Pattern,
        value: Box<Node>,
    },
    Return(Box<Node>),
    /// Statements in a row; the value is that of the last.
    Sequence(Vec<Node>),
    /// `@primitive "module:function"`, already turned into the function to call.
    Primitive {
        module: EcoString,
        function: EcoString,
    },
    /// `self delegate` as the whole body of a method of a native class.
    Delegate,
}

#[derive(Clone, Debug)]
pub(crate) enum TextPart {
    Text(EcoString),
    Value(Node),
}

/// A block that is a value.
#[derive(Clone, Debug)]
pub(crate) struct Closure {
    pub(crate) parameters: Vec<VariableId>,
    pub(crate) body: Vec<Node>,
    /// Variables of surrounding activations that this block or a block inside it mentions.
    pub(crate) captures: Vec<VariableId>,
    /// The first parameter is called `self` (a method of a ClassBuilder).
    pub(crate) rebinds_self: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct BuiltMethod {
    pub(crate) closure: Closure,
    /// The class being built, where its name is literal; `super` starts above it.
    pub(crate) class: Option<EcoString>,
    pub(crate) is_class_side: bool,
    /// The names of the method's parameters: those after the instance or the class.
    pub(crate) parameters: Vec<EcoString>,
    /// The text of the block's body.
    pub(crate) body: EcoString,
}

/// Control-flow messages whose blocks run in place.
#[derive(Clone, Debug)]
pub(crate) enum Inline {
    /// A missing branch answers the receiver.
    If {
        selector: EcoString,
        condition: Box<Node>,
        when_true: Option<Vec<Node>>,
        when_false: Option<Vec<Node>>,
    },
    /// A missing nil branch answers the receiver, a missing other branch nil.
    IfNil {
        value: Box<Node>,
        when_nil: Option<Vec<Node>>,
        otherwise: Option<(Option<VariableId>, Vec<Node>)>,
    },
    While {
        condition: Vec<Node>,
        body: Vec<Node>,
        until: bool,
    },
    Repeat {
        body: Vec<Node>,
    },
    Times {
        count: Box<Node>,
        body: Vec<Node>,
    },
    Range {
        from: Box<Node>,
        to: Box<Node>,
        by: Option<Box<Node>>,
        variable: VariableId,
        body: Vec<Node>,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) pattern: Pattern,
    pub(crate) guard: Option<Node>,
    pub(crate) body: Vec<Node>,
}

#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) kind: PatternKind,
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum PatternKind {
    Wildcard,
    Integer(BigInt),
    Float(f64),
    Text(EcoString),
    Atom(EcoString),
    Variable(VariableId),
    Typed {
        variable: Option<VariableId>,
        class: EcoString,
    },
    Tuple(Vec<Pattern>),
    List {
        elements: Vec<Pattern>,
        rest: Option<Rest>,
    },
    Array {
        elements: Vec<Pattern>,
        rest: Option<Rest>,
    },
    Dictionary(Vec<(ast::PatternKey, Pattern)>),
    ResultOk(Box<Pattern>),
    ResultError(Box<Pattern>),
    Binary(Vec<Segment>),
}

/// `...name` or `..._`.
#[derive(Clone, Debug)]
pub(crate) enum Rest {
    Ignored,
    Variable(VariableId),
}

#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) variable: Option<VariableId>,
    pub(crate) size: Option<SegmentSize>,
    pub(crate) kind: ast::SegmentKind,
    pub(crate) is_signed: bool,
    pub(crate) endian: ast::Endian,
}

#[derive(Clone, Debug)]
pub(crate) enum SegmentSize {
    Literal(u32),
    Variable(VariableId),
}

impl Node {
    /// Calls `visit` on the direct children that run in this activation; blocks that are values are not entered.
    pub(crate) fn for_each_child<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        let mut all = |nodes: &'a [Node]| nodes.iter().for_each(&mut *visit);
        match &self.kind {
            NodeKind::Integer(_)
            | NodeKind::Float(_)
            | NodeKind::Character(_)
            | NodeKind::Atom(_)
            | NodeKind::Variable(_)
            | NodeKind::SelfReference
            | NodeKind::Class(_)
            | NodeKind::Field(_)
            | NodeKind::Closure(_)
            | NodeKind::BuiltMethod(_)
            | NodeKind::Primitive { .. }
            | NodeKind::Delegate => {}
            NodeKind::Text(parts) => {
                for part in parts {
                    if let TextPart::Value(node) = part {
                        visit(node);
                    }
                }
            }
            NodeKind::List { elements, tail } => {
                all(elements);
                if let Some(tail) = tail {
                    visit(tail);
                }
            }
            NodeKind::Array(elements) | NodeKind::Sequence(elements) => all(elements),
            NodeKind::Dictionary(pairs) => {
                for (key, value) in pairs {
                    visit(key);
                    visit(value);
                }
            }
            NodeKind::Send {
                receiver, arguments, ..
            }
            | NodeKind::Cast {
                receiver, arguments, ..
            } => {
                visit(receiver);
                arguments.iter().for_each(visit);
            }
            NodeKind::SuperSend { arguments, .. } | NodeKind::ErlangCall { arguments, .. } => all(arguments),
            NodeKind::Inline(inline) => inline.for_each_child(visit),
            NodeKind::Match { value, arms } => {
                visit(value);
                for arm in arms {
                    arm.guard.iter().for_each(&mut *visit);
                    arm.body.iter().for_each(&mut *visit);
                }
            }
            NodeKind::Assign { value, .. }
            | NodeKind::AssignField { value, .. }
            | NodeKind::Destructure { value, .. }
            | NodeKind::Return(value) => visit(value),
        }
    }
}

impl Inline {
    fn for_each_child<'a>(&'a self, visit: &mut impl FnMut(&'a Node)) {
        match self {
            Inline::If {
                condition,
                when_true,
                when_false,
                ..
            } => {
                visit(condition);
                when_true.iter().flatten().for_each(&mut *visit);
                when_false.iter().flatten().for_each(visit);
            }
            Inline::IfNil {
                value,
                when_nil,
                otherwise,
            } => {
                visit(value);
                when_nil.iter().flatten().for_each(&mut *visit);
                otherwise.iter().flat_map(|(_, body)| body).for_each(visit);
            }
            Inline::While { condition, body, .. } => {
                condition.iter().for_each(&mut *visit);
                body.iter().for_each(visit);
            }
            Inline::Repeat { body } => body.iter().for_each(visit),
            Inline::Times { count, body } => {
                visit(count);
                body.iter().for_each(visit);
            }
            Inline::Range {
                from, to, by, body, ..
            } => {
                visit(from);
                visit(to);
                if let Some(by) = by {
                    visit(by);
                }
                body.iter().for_each(visit);
            }
        }
    }
}

impl Pattern {
    /// All variables the pattern binds, in order, repeated ones once.
    pub(crate) fn variables(&self) -> Vec<VariableId> {
        let mut out = Vec::new();
        self.collect_variables(&mut out);
        out
    }

    fn collect_variables(&self, out: &mut Vec<VariableId>) {
        let mut add = |variable: VariableId| {
            if !out.contains(&variable) {
                out.push(variable);
            }
        };
        match &self.kind {
            PatternKind::Variable(variable) => add(*variable),
            PatternKind::Typed { variable, .. } => variable.iter().copied().for_each(add),
            PatternKind::Tuple(elements) => elements.iter().for_each(|e| e.collect_variables(out)),
            PatternKind::List { elements, rest } | PatternKind::Array { elements, rest } => {
                elements.iter().for_each(|e| e.collect_variables(out));
                if let Some(Rest::Variable(variable)) = rest
                    && !out.contains(variable)
                {
                    out.push(*variable);
                }
            }
            PatternKind::Dictionary(pairs) => pairs.iter().for_each(|(_, p)| p.collect_variables(out)),
            PatternKind::ResultOk(inner) | PatternKind::ResultError(inner) => inner.collect_variables(out),
            PatternKind::Binary(segments) => segments.iter().filter_map(|s| s.variable).for_each(add),
            PatternKind::Wildcard
            | PatternKind::Integer(_)
            | PatternKind::Float(_)
            | PatternKind::Text(_)
            | PatternKind::Atom(_) => {}
        }
    }
}
