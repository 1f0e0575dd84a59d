//! What is known about Erlang modules: their functions, with the types that their `-spec`s give.
//!
//! Reading `.beam` files is for those who may touch the world; here are the table they fill and the mapping from
//! Erlang's types (language reference 10.5).

mod forms;
mod mapping;

use std::sync::{Arc, OnceLock};

use beamtalk_syntax::ast::{self, Expression, ExpressionKind};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::SourceFile;
use crate::resolve::unparenthesized;

pub use forms::functions;

/// Kinds of Erlang terms, as bits: a type stands for the kinds its values may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u16);

impl Kinds {
    pub const NONE: Self = Self(0);
    pub const INTEGER: Self = Self(1);
    pub const FLOAT: Self = Self(1 << 1);
    pub const ATOM: Self = Self(1 << 2);
    pub const BINARY: Self = Self(1 << 3);
    pub const LIST: Self = Self(1 << 4);
    pub const TUPLE: Self = Self(1 << 5);
    pub const MAP: Self = Self(1 << 6);
    pub const FUN: Self = Self(1 << 7);
    pub const PID: Self = Self(1 << 8);
    pub const PORT: Self = Self(1 << 9);
    pub const REFERENCE: Self = Self(1 << 10);
    pub const ANY: Self = Self((1 << 11) - 1);

    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub const fn bits(self) -> u16 {
        self.0
    }

    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::ANY.0)
    }
}

/// What a function takes in one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As the specification calls it; empty without a name.
    pub name: EcoString,
    /// The type as Beamtalk writes it.
    pub text: EcoString,
    /// What may be given, after the adjustments of a call (10.3).
    pub kinds: Kinds,
    /// The only atoms that may be given, when not all may.
    pub atoms: Option<Vec<EcoString>>,
}

/// An exported function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: EcoString,
    pub parameters: Vec<Parameter>,
    /// The result as the specification has it, as Beamtalk writes it.
    pub result: EcoString,
    /// What a send answers: the result after the adjustments of a call, `Dynamic` where these decide.
    pub answer: EcoString,
}

/// A module whose functions are known.
#[derive(Clone, Debug, Default)]
pub struct Module {
    functions: Vec<Function>,
    answers: FxHashMap<(EcoString, usize), ast::Type>,
}

impl Module {
    pub fn new(functions: Vec<Function>) -> Self {
        let mut answers = FxHashMap::default();
        for function in &functions {
            if let Some(answer) = annotation(&function.answer) {
                answers.insert((function.name.clone(), function.parameters.len()), answer);
            }
        }
        Self { functions, answers }
    }

    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    pub fn function(&self, name: &str, arity: usize) -> Option<&Function> {
        self.functions
            .iter()
            .find(|function| function.name == name && function.parameters.len() == arity)
    }

    /// How many arguments the functions of this name take, in ascending order.
    pub fn arities(&self, name: &str) -> Vec<usize> {
        let mut found: Vec<usize> = self
            .functions
            .iter()
            .filter(|function| function.name == name)
            .map(|function| function.parameters.len())
            .collect();
        found.sort_unstable();
        found
    }

    /// The type of what a send answers.
    pub fn answer(&self, name: &str, arity: usize) -> Option<&ast::Type> {
        self.answers.get(&(EcoString::from(name), arity))
    }
}

/// What looking for a module came to.
#[derive(Clone, Debug)]
pub enum Looked {
    Found(Module),
    /// There is none of this name.
    Missing,
    /// Nothing can be said about it.
    Open,
}

type Load = dyn Fn(&str) -> Looked + Send + Sync;

/// The modules that somebody may look for.
#[derive(Clone, Default)]
pub struct SpecTable {
    modules: FxHashMap<EcoString, OnceLock<Looked>>,
    load: Option<Arc<Load>>,
}

impl std::fmt::Debug for SpecTable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.modules.keys()).finish()
    }
}

impl SpecTable {
    /// A table of these modules; `load` is asked for each when it is needed first.
    pub fn later(
        names: impl IntoIterator<Item = EcoString>,
        load: impl Fn(&str) -> Looked + Send + Sync + 'static,
    ) -> Self {
        let names = names.into_iter().map(|name| (name, OnceLock::new()));
        Self {
            modules: names.collect(),
            load: Some(Arc::new(load)),
        }
    }

    pub fn add(&mut self, name: impl Into<EcoString>, module: Module) {
        self.modules
            .insert(name.into(), OnceLock::from(Looked::Found(module)));
    }

    pub fn add_missing(&mut self, name: impl Into<EcoString>) {
        self.modules.insert(name.into(), OnceLock::from(Looked::Missing));
    }

    pub fn module(&self, name: &str) -> &Looked {
        let Some(known) = self.modules.get(name) else {
            return &Looked::Open;
        };
        known.get_or_init(|| self.load.as_ref().map_or(Looked::Open, |load| load(name)))
    }
}

/// A type as the parser has it.
fn annotation(text: &str) -> Option<ast::Type> {
    let (method, faults) = beamtalk_syntax::parse_method(&eco_format!("answer -> {text} => nil"));
    method?.result.filter(|_| faults.is_empty())
}

/// `Erlang lists`: the name of the module.
pub fn module_of(receiver: &Expression) -> Option<&EcoString> {
    let ExpressionKind::Send(send) = &unparenthesized(receiver).kind else {
        return None;
    };
    let is_gateway = matches!(
        &unparenthesized(&send.receiver).kind,
        ExpressionKind::ClassName(class) if class.name.text == "Erlang"
    );
    (is_gateway && send.message.arguments.is_empty()).then_some(&send.message.selector)
}

/// The Erlang modules that a file names.
pub fn modules(file: &SourceFile) -> FxHashSet<EcoString> {
    calls(file, Span::new(0, u32::MAX))
}

/// Those that a part of it names.
pub(crate) fn calls(file: &SourceFile, within: Span) -> FxHashSet<EcoString> {
    let mut found = FxHashSet::default();
    let mut look = |node: &Expression| {
        walk::all(node, &mut |node| {
            let is_within = within.start <= node.span.start && node.span.end <= within.end;
            if let Some(module) = module_of(node).filter(|_| is_within) {
                found.insert(module.clone());
            }
        });
    };
    for item in &file.unit.items {
        match item {
            ast::Item::Class(class) => {
                class
                    .slots
                    .iter()
                    .filter_map(|slot| slot.default.as_ref())
                    .for_each(&mut look);
                for statement in class.methods.iter().flat_map(|method| &method.body) {
                    look(&statement.expression);
                }
            }
            ast::Item::Extension(extension) => {
                extension
                    .method
                    .body
                    .iter()
                    .for_each(|statement| look(&statement.expression));
            }
            ast::Item::Statement(statement) => look(&statement.expression),
            ast::Item::Protocol(_) | ast::Item::TypeAlias(_) => {}
        }
    }
    found
}
