//! The tree. Every node keeps its span; comments are kept beside the tree, by position.

use ecow::EcoString;
use num_bigint::BigInt;

use crate::span::Span;

/// A name with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: EcoString,
    pub span: Span,
}

/// One source text: a package file, a session input, or a script input.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    pub items: Vec<Item>,
    /// All comments in source order, doc comments included.
    pub comments: Vec<Comment>,
}

#[derive(Clone, Debug)]
pub struct Comment {
    pub kind: CommentKind,
    /// The whole comment, delimiters included.
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentKind {
    Line,
    Block,
    Doc,
}

#[derive(Clone, Debug)]
pub enum Item {
    Class(Class),
    Protocol(Protocol),
    TypeAlias(TypeAlias),
    Extension(Extension),
    Statement(Statement),
}

/// `@expect category "reason"`.
#[derive(Clone, Debug)]
pub struct Expect {
    pub category: Name,
    pub reason: Option<EcoString>,
    pub span: Span,
}

/// `pkg@Name` or `Name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRef {
    pub package: Option<Name>,
    pub name: Name,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Class {
    pub doc: Option<EcoString>,
    pub expect: Vec<Expect>,
    pub modifiers: ClassModifiers,
    /// `None` for `nil subclass:`.
    pub superclass: Option<ClassRef>,
    pub superclass_arguments: Vec<Type>,
    pub name: Name,
    pub type_parameters: Vec<TypeParameter>,
    pub native: Option<Name>,
    pub handle_scope: Option<Name>,
    pub slots: Vec<Slot>,
    pub methods: Vec<Method>,
    /// From the first modifier to the end of the last member.
    pub span: Span,
    /// The header line(s) only.
    pub header: Span,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassModifiers {
    pub is_abstract: bool,
    pub is_sealed: bool,
    pub is_typed: bool,
    pub is_internal: bool,
}

#[derive(Clone, Debug)]
pub struct TypeParameter {
    pub name: Name,
    pub bound: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotKeyword {
    Field,
    State,
    ClassState,
}

#[derive(Clone, Debug)]
pub struct Slot {
    pub doc: Option<EcoString>,
    pub expect: Vec<Expect>,
    pub keyword: SlotKeyword,
    pub name: Name,
    pub annotation: Option<Type>,
    pub default: Option<Expression>,
    pub span: Span,
}

/// `foo`, `+ other`, `at: index put: value`.
#[derive(Clone, Debug)]
pub struct Head {
    /// `foo`, `+`, `at:put:`.
    pub selector: EcoString,
    pub parameters: Vec<Parameter>,
    /// One span for each selector part.
    pub parts: Vec<Span>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Parameter {
    pub name: Name,
    pub annotation: Option<Type>,
}

#[derive(Clone, Debug)]
pub struct Method {
    pub doc: Option<EcoString>,
    pub expect: Vec<Expect>,
    pub is_class: bool,
    pub is_sealed: bool,
    pub is_internal: bool,
    pub head: Head,
    pub result: Option<Type>,
    pub body: Vec<Statement>,
    /// From the first modifier (or the head) to the end of the body; doc comment not included.
    pub span: Span,
}

/// `Target >> head => body`, `Target class >> head => body`. `method.is_class` tells the side.
#[derive(Clone, Debug)]
pub struct Extension {
    pub target: ClassRef,
    pub method: Method,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Protocol {
    pub doc: Option<EcoString>,
    pub expect: Vec<Expect>,
    pub name: Name,
    pub type_parameters: Vec<TypeParameter>,
    pub extending: Option<Name>,
    pub signatures: Vec<Signature>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Signature {
    pub doc: Option<EcoString>,
    pub is_class: bool,
    pub head: Head,
    pub result: Option<Type>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct TypeAlias {
    pub doc: Option<EcoString>,
    pub expect: Vec<Expect>,
    pub is_internal: bool,
    pub name: Name,
    pub definition: Type,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Type {
    pub kind: TypeKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum TypeKind {
    /// A class, protocol, alias or type parameter, with generic arguments.
    Named {
        class: ClassRef,
        arguments: Vec<Type>,
    },
    /// `Name class`.
    ClassOf(ClassRef),
    SelfType,
    SelfClass,
    Symbol(EcoString),
    Nil,
    True,
    False,
    Union(Vec<Type>),
    Intersection(Vec<Type>),
    Difference(Vec<Type>),
    /// Could not be read; a diagnostic says why.
    Error,
}

/// A statement of a body: an expression with the `@expect`s before it and whether `!` ended it.
#[derive(Clone, Debug)]
pub struct Statement {
    pub expect: Vec<Expect>,
    pub expression: Expression,
    /// `receiver message!`: do not wait for the answer.
    pub is_cast: bool,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Expression {
    pub kind: ExpressionKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum ExpressionKind {
    Integer(BigInt),
    Float(f64),
    Character(char),
    /// A string without interpolation has one `Text` part, or none when empty.
    String(Vec<StringPart>),
    Symbol(EcoString),
    Nil,
    True,
    False,
    /// A lower-case name; `_` included.
    Variable(EcoString),
    ClassName(ClassRef),
    SelfReference,
    /// Only as the receiver of a send.
    Super,
    /// `self.field`.
    Field(Name),
    /// `other.field`: always an error, kept for the message.
    ForeignField {
        object: Box<Expression>,
        field: Name,
    },
    List {
        elements: Vec<Expression>,
        tail: Option<Box<Expression>>,
    },
    Array(Vec<Expression>),
    Dictionary(Vec<(Expression, Expression)>),
    Block(Block),
    Send(Send),
    /// `receiver first; second; third`: `receiver` gets every message. At least two messages.
    Cascade {
        receiver: Box<Expression>,
        messages: Vec<Message>,
    },
    /// `value match: [arms]`; `exhaustive` for `matchExhaustive:`.
    Match {
        value: Box<Expression>,
        arms: Vec<Arm>,
        exhaustive: bool,
    },
    Assign {
        target: Target,
        annotation: Option<Type>,
        value: Box<Expression>,
    },
    Return(Box<Expression>),
    /// Parentheses are kept so that the formatter and the linter see them.
    Parenthesized(Box<Expression>),
    /// `@primitive`, `@primitive "name"`, `@intrinsic name`.
    Primitive {
        is_intrinsic: bool,
        name: Option<EcoString>,
    },
    /// Could not be read; a diagnostic says why.
    Error,
}

impl ExpressionKind {
    /// The messages it sends itself.
    pub fn messages(&self) -> &[Message] {
        match self {
            Self::Send(send) => std::slice::from_ref(&send.message),
            Self::Cascade { messages, .. } => messages,
            _ => &[],
        }
    }

    /// A literal without parts.
    pub fn is_scalar(&self) -> bool {
        matches!(
            self,
            Self::Integer(_)
                | Self::Float(_)
                | Self::Character(_)
                | Self::Symbol(_)
                | Self::Nil
                | Self::True
                | Self::False
        )
    }
}

#[derive(Clone, Debug)]
pub enum StringPart {
    /// With escapes already turned into their characters.
    Text(EcoString),
    Interpolation(Expression),
}

#[derive(Clone, Debug)]
pub struct Block {
    pub parameters: Vec<Parameter>,
    pub body: Vec<Statement>,
    /// The text between `[` and `]`, parameters excluded.
    pub body_span: Span,
}

#[derive(Clone, Debug)]
pub struct Send {
    pub receiver: Box<Expression>,
    pub message: Message,
}

#[derive(Clone, Debug)]
pub struct Message {
    /// `foo`, `+`, `at:put:`.
    pub selector: EcoString,
    pub arguments: Vec<Expression>,
    /// One span for each selector part.
    pub parts: Vec<Span>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum Target {
    Variable(Name),
    Field(Name),
    Pattern(Pattern),
}

#[derive(Clone, Debug)]
pub struct Arm {
    pub pattern: Pattern,
    pub guard: Option<Expression>,
    /// A whole-body parameterless block is kept as a `Block` expression; the compiler runs it.
    pub body: Expression,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct Pattern {
    pub kind: PatternKind,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum PatternKind {
    Wildcard,
    Integer(BigInt),
    Float(f64),
    Character(char),
    String(EcoString),
    Symbol(EcoString),
    Nil,
    True,
    False,
    Variable(EcoString),
    /// `name :: Class`; the name may be `_`.
    Typed {
        name: Name,
        class: ClassRef,
    },
    Tuple(Vec<Pattern>),
    List {
        elements: Vec<Pattern>,
        rest: Option<Name>,
    },
    Array {
        elements: Vec<Pattern>,
        rest: Option<Name>,
    },
    Dictionary(Vec<(PatternKey, Pattern)>),
    ResultOk(Box<Pattern>),
    ResultError(Box<Pattern>),
    Binary(Vec<Segment>),
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternKey {
    Symbol(EcoString),
    String(EcoString),
}

/// One part of `<<a:16/little, rest/binary>>`.
#[derive(Clone, Debug)]
pub struct Segment {
    /// `_` skips.
    pub name: Name,
    pub size: Option<SegmentSize>,
    pub kind: SegmentKind,
    pub is_signed: bool,
    pub endian: Endian,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum SegmentSize {
    Literal(u32),
    Variable(Name),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentKind {
    #[default]
    Integer,
    Float,
    Binary,
    Utf8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endian {
    #[default]
    Big,
    Little,
    Native,
}
