//! What a type is: shared, immutable trees with a precomputed hash, so that comparing and keeping them is cheap.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use ecow::EcoString;
use rustc_hash::{FxHashSet, FxHasher};

/// Types nest no deeper than this; what would lie below is Dynamic.
const MAX_DEPTH: u8 = 20;

/// Why nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Parameter,
    Return,
    Receiver,
    Flow,
    Ffi,
    Slot,
    Name,
    /// A generic argument that nothing fixes.
    Argument,
    /// The method answers what it answers itself.
    Recursion,
    /// Somebody wrote `Dynamic`, or uses what is not written down.
    Declared,
}

impl Reason {
    pub fn text(self) -> &'static str {
        match self {
            Self::Parameter => "unannotated parameter",
            Self::Return => "unannotated return",
            Self::Receiver => "dynamic receiver",
            Self::Flow => "ambiguous control flow",
            Self::Ffi => "untyped FFI",
            Self::Slot => "unannotated slot",
            Self::Name => "unknown name",
            Self::Argument => "unknown type argument",
            Self::Recursion => "recursive return",
            Self::Declared => "declared Dynamic",
        }
    }

    /// Whether the gap is here, and not in what the expression is made of.
    pub fn is_root(self) -> bool {
        !matches!(self, Self::Receiver | Self::Declared | Self::Argument)
    }
}

#[derive(Debug)]
pub enum Form {
    Dynamic(Reason),
    Never,
    /// Instances of a class and its descendants. Without arguments nothing is known about those of a generic class.
    Class {
        name: EcoString,
        arguments: Box<[Type]>,
        /// Somebody wrote the arguments down: they are a promise, not only what was seen so far.
        is_declared: bool,
    },
    /// The class object of a class, or of a descendant.
    ClassOf(EcoString),
    Protocol(EcoString),
    /// One symbol.
    Symbol(EcoString),
    Block {
        parameters: Box<[Type]>,
        result: Type,
    },
    Tuple(Box<[Type]>),
    /// `T` inside a generic class or method.
    Parameter(EcoString),
    Union(Box<[Type]>),
    Intersection(Box<[Type]>),
    Without {
        base: Type,
        removed: Box<[Type]>,
    },
}

/// A type. Cloning shares it.
#[derive(Clone)]
pub struct Type(Arc<Node>);

struct Node {
    hash: u64,
    depth: u8,
    has_parameters: bool,
    form: Form,
}

impl Type {
    fn new(form: Form) -> Self {
        let mut hasher = FxHasher::default();
        std::mem::discriminant(&form).hash(&mut hasher);
        let mut depth = 0;
        let mut has_parameters = false;
        let mut add = |part: &Type, hasher: &mut FxHasher| {
            hasher.write_u64(part.0.hash);
            depth = depth.max(part.0.depth + 1);
            has_parameters |= part.0.has_parameters;
        };
        match &form {
            Form::Dynamic(_) | Form::Never => {}
            Form::Class { name, arguments, .. } => {
                name.hash(&mut hasher);
                arguments.iter().for_each(|part| add(part, &mut hasher));
            }
            Form::ClassOf(name) | Form::Protocol(name) | Form::Symbol(name) | Form::Parameter(name) => {
                name.hash(&mut hasher);
            }
            Form::Block { parameters, result } => {
                parameters.iter().for_each(|part| add(part, &mut hasher));
                add(result, &mut hasher);
            }
            Form::Tuple(parts) | Form::Union(parts) | Form::Intersection(parts) => {
                parts.iter().for_each(|part| add(part, &mut hasher));
            }
            Form::Without { base, removed } => {
                add(base, &mut hasher);
                removed.iter().for_each(|part| add(part, &mut hasher));
            }
        }
        has_parameters |= matches!(form, Form::Parameter(_));
        if depth > MAX_DEPTH {
            return Self::dynamic(Reason::Argument);
        }
        Self(Arc::new(Node {
            hash: hasher.finish(),
            depth,
            has_parameters,
            form,
        }))
    }

    pub fn form(&self) -> &Form {
        &self.0.form
    }

    pub fn dynamic(reason: Reason) -> Self {
        Self(Arc::new(Node {
            hash: 1,
            depth: 0,
            has_parameters: false,
            form: Form::Dynamic(reason),
        }))
    }

    pub fn never() -> Self {
        static NEVER: LazyLock<Type> = LazyLock::new(|| Type::new(Form::Never));
        NEVER.clone()
    }

    pub fn nil() -> Self {
        static NIL: LazyLock<Type> = LazyLock::new(|| Type::class("UndefinedObject"));
        NIL.clone()
    }

    pub fn boolean() -> Self {
        static BOOLEAN: LazyLock<Type> = LazyLock::new(|| Type::class("Boolean"));
        BOOLEAN.clone()
    }

    pub fn object() -> Self {
        static OBJECT: LazyLock<Type> = LazyLock::new(|| Type::class("Object"));
        OBJECT.clone()
    }

    pub fn class(name: impl Into<EcoString>) -> Self {
        Self::generic(name, Vec::new(), false)
    }

    pub fn generic(name: impl Into<EcoString>, arguments: Vec<Type>, is_declared: bool) -> Self {
        Self::new(Form::Class {
            name: name.into(),
            arguments: arguments.into(),
            is_declared,
        })
    }

    pub fn class_of(name: impl Into<EcoString>) -> Self {
        Self::new(Form::ClassOf(name.into()))
    }

    pub fn protocol(name: impl Into<EcoString>) -> Self {
        Self::new(Form::Protocol(name.into()))
    }

    pub fn symbol(name: impl Into<EcoString>) -> Self {
        Self::new(Form::Symbol(name.into()))
    }

    pub fn parameter(name: impl Into<EcoString>) -> Self {
        Self::new(Form::Parameter(name.into()))
    }

    pub fn block(parameters: Vec<Type>, result: Type) -> Self {
        Self::new(Form::Block {
            parameters: parameters.into(),
            result,
        })
    }

    pub fn tuple(parts: Vec<Type>) -> Self {
        Self::new(Form::Tuple(parts.into()))
    }

    /// All of them; nested unions become flat, what another member includes goes away. Something unknown among them
    /// makes all unknown.
    pub fn union(members: impl IntoIterator<Item = Type>) -> Self {
        let mut seen: FxHashSet<Type> = FxHashSet::default();
        let mut flat: Vec<Type> = Vec::new();
        for member in members {
            for part in member.members() {
                match part.form() {
                    Form::Never => {}
                    Form::Dynamic(_) => return part.clone(),
                    _ => {
                        if seen.insert(part.clone()) {
                            flat.push(part.clone());
                        }
                    }
                }
            }
        }
        if flat.len() > 1 {
            let has = |name: &str| seen.contains(&Type::class(name));
            if has("Object") {
                return Self::object();
            }
            let is_boolean = has("Boolean") || (has("True") && has("False"));
            let is_symbol = has("Symbol");
            if is_boolean || is_symbol {
                if is_boolean && !has("Boolean") {
                    let at = flat
                        .iter()
                        .position(|part| part.is_class("True") || part.is_class("False"));
                    flat.insert(at.unwrap_or(0), Self::boolean());
                }
                flat.retain(|part| {
                    let is_truth = part.is_class("True") || part.is_class("False");
                    let is_singleton = matches!(part.form(), Form::Symbol(_));
                    !(is_boolean && is_truth || is_symbol && is_singleton)
                });
            }
        }
        match flat.len() {
            0 => Self::never(),
            1 => flat.pop().unwrap_or_else(Self::never),
            _ => Self::new(Form::Union(flat.into())),
        }
    }

    #[must_use]
    pub fn or(&self, other: &Type) -> Self {
        if self == other {
            return self.clone();
        }
        Self::union([self.clone(), other.clone()])
    }

    pub fn intersection(members: Vec<Type>) -> Self {
        match <[Type; 1]>::try_from(members) {
            Ok([only]) => only,
            Err(members) => Self::new(Form::Intersection(members.into())),
        }
    }

    pub fn without(base: Type, removed: Vec<Type>) -> Self {
        if removed.is_empty() {
            return base;
        }
        Self::new(Form::Without {
            base,
            removed: removed.into(),
        })
    }

    /// The members of a union; any other type is its only one.
    pub fn members(&self) -> &[Type] {
        match self.form() {
            Form::Union(members) => members,
            _ => std::slice::from_ref(self),
        }
    }

    pub fn is_dynamic(&self) -> bool {
        matches!(self.form(), Form::Dynamic(_))
    }

    pub fn is_never(&self) -> bool {
        matches!(self.form(), Form::Never)
    }

    pub fn is_nil(&self) -> bool {
        self.is_class("UndefinedObject")
    }

    pub fn is_class(&self, wanted: &str) -> bool {
        matches!(self.form(), Form::Class { name, .. } if name == wanted)
    }

    /// The name of the class whose instances these are, when it is one.
    pub fn class_name(&self) -> Option<&str> {
        match self.form() {
            Form::Class { name, .. } => Some(name),
            Form::Symbol(_) => Some("Symbol"),
            Form::Block { .. } => Some("Block"),
            Form::Tuple(_) => Some("Tuple"),
            Form::Without { base, .. } => base.class_name(),
            Form::Intersection(members) => members.iter().find_map(Type::class_name),
            _ => None,
        }
    }

    /// The class and arguments of a type that has one class.
    pub(crate) fn class_and_arguments(&self) -> Option<(EcoString, &[Type])> {
        match self.form() {
            Form::Class { name, arguments, .. } => Some((name.clone(), arguments)),
            _ => self.class_name().map(|name| (name.into(), [].as_slice())),
        }
    }

    pub fn has_parameters(&self) -> bool {
        self.0.has_parameters
    }

    /// The type with each parameter replaced by what `of` answers for it. Generic applications that change take over
    /// `is_declared`: they promise as much as what was put in.
    #[must_use]
    pub fn replace(&self, of: &dyn Fn(&EcoString) -> Option<Type>, is_declared: bool) -> Self {
        if !self.has_parameters() {
            return self.clone();
        }
        let all = |parts: &[Type]| -> Vec<Type> {
            parts.iter().map(|part| part.replace(of, is_declared)).collect()
        };
        match self.form() {
            Form::Parameter(name) => of(name).unwrap_or_else(|| self.clone()),
            Form::Class { name, arguments, .. } => Self::generic(name.clone(), all(arguments), is_declared),
            Form::Block { parameters, result } => {
                Self::block(all(parameters), result.replace(of, is_declared))
            }
            Form::Tuple(parts) => Self::tuple(all(parts)),
            Form::Union(parts) => Self::union(all(parts)),
            Form::Intersection(parts) => Self::intersection(all(parts)),
            Form::Without { base, removed } => Self::without(base.replace(of, is_declared), all(removed)),
            Form::Dynamic(_) | Form::Never | Form::ClassOf(_) | Form::Protocol(_) | Form::Symbol(_) => {
                self.clone()
            }
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.0, &other.0) {
            return true;
        }
        if self.0.hash != other.0.hash {
            return false;
        }
        match (self.form(), other.form()) {
            (Form::Dynamic(_), Form::Dynamic(_)) | (Form::Never, Form::Never) => true,
            (
                Form::Class { name, arguments, .. },
                Form::Class {
                    name: other_name,
                    arguments: other_arguments,
                    ..
                },
            ) => name == other_name && arguments == other_arguments,
            (Form::ClassOf(one), Form::ClassOf(two))
            | (Form::Protocol(one), Form::Protocol(two))
            | (Form::Symbol(one), Form::Symbol(two))
            | (Form::Parameter(one), Form::Parameter(two)) => one == two,
            (
                Form::Block { parameters, result },
                Form::Block {
                    parameters: other_parameters,
                    result: other_result,
                },
            ) => parameters == other_parameters && result == other_result,
            (Form::Tuple(one), Form::Tuple(two)) | (Form::Intersection(one), Form::Intersection(two)) => {
                one == two
            }
            (Form::Union(one), Form::Union(two)) => one == two,
            (
                Form::Without { base, removed },
                Form::Without {
                    base: other_base,
                    removed: other_removed,
                },
            ) => base == other_base && removed == other_removed,
            _ => false,
        }
    }
}

impl Eq for Type {}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl std::fmt::Debug for Type {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}
