//! Erlang code as a tree, and its abstract format as a term.

use std::collections::hash_map::Entry;

use beamtalk_etf::Term;
use ecow::EcoString;
use num_bigint::BigInt;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::names;

/// An Erlang expression, pattern or guard.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Erl {
    pub(crate) kind: ErlKind,
    pub(crate) line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ErlKind {
    Var(EcoString),
    Atom(EcoString),
    Integer(BigInt),
    Float(f64),
    Binary(EcoString),
    /// A term as it is: only as the whole body of a function without parameters.
    Literal(Term),
    Tuple(Vec<Erl>),
    /// Elements and, where it is not `[]`, the tail.
    List(Vec<Erl>, Option<Box<Erl>>),
    /// `#{k => v}`.
    Map(Vec<(Erl, Erl)>),
    /// `Base#{k => v}`.
    MapUpdate(Box<Erl>, Vec<(Erl, Erl)>),
    /// `#{k := p}`, in patterns.
    MapPattern(Vec<(Erl, Erl)>),
    /// `<<…>>`, in patterns and as an expression.
    BinaryPattern(Vec<BinaryElement>),
    /// `P1 = P2`, in patterns and as an expression.
    Match(Box<Erl>, Box<Erl>),
    Call {
        module: EcoString,
        function: EcoString,
        arguments: Vec<Erl>,
    },
    LocalCall {
        function: EcoString,
        arguments: Vec<Erl>,
    },
    Apply {
        function: Box<Erl>,
        arguments: Vec<Erl>,
    },
    Operator(&'static str, Box<Erl>, Box<Erl>),
    Case {
        value: Box<Erl>,
        clauses: Vec<Clause>,
    },
    Block(Vec<Erl>),
    Fun(Vec<Clause>),
    NamedFun(EcoString, Vec<Clause>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BinaryElement {
    pub(crate) value: Erl,
    pub(crate) size: Option<Erl>,
    pub(crate) specifiers: Vec<&'static str>,
    pub(crate) unit: Option<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Clause {
    pub(crate) patterns: Vec<Erl>,
    /// All must hold.
    pub(crate) guards: Vec<Erl>,
    pub(crate) body: Vec<Erl>,
    pub(crate) line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub(crate) name: EcoString,
    pub(crate) arity: usize,
    pub(crate) clauses: Vec<Clause>,
    pub(crate) line: u32,
}

impl BinaryElement {
    /// The bytes of another binary, or of a text.
    pub(crate) fn bytes(value: Erl) -> Self {
        Self {
            value,
            size: None,
            specifiers: vec!["binary"],
            unit: None,
        }
    }
}

impl Erl {
    pub(crate) fn new(line: u32, kind: ErlKind) -> Self {
        Self { kind, line }
    }

    pub(crate) fn var(line: u32, name: impl Into<EcoString>) -> Self {
        Self::new(line, ErlKind::Var(name.into()))
    }

    pub(crate) fn atom(line: u32, name: impl Into<EcoString>) -> Self {
        Self::new(line, ErlKind::Atom(name.into()))
    }

    pub(crate) fn integer(line: u32, value: impl Into<BigInt>) -> Self {
        Self::new(line, ErlKind::Integer(value.into()))
    }

    pub(crate) fn literal(line: u32, term: Term) -> Self {
        Self::new(line, ErlKind::Literal(shortened(term)))
    }

    pub(crate) fn tuple(line: u32, elements: Vec<Erl>) -> Self {
        Self::new(line, ErlKind::Tuple(elements))
    }

    pub(crate) fn list(line: u32, elements: Vec<Erl>) -> Self {
        Self::new(line, ErlKind::List(elements, None))
    }

    pub(crate) fn call(
        line: u32,
        module: impl Into<EcoString>,
        function: impl Into<EcoString>,
        arguments: Vec<Erl>,
    ) -> Self {
        Self::new(
            line,
            ErlKind::Call {
                module: module.into(),
                function: function.into(),
                arguments,
            },
        )
    }

    pub(crate) fn bind(line: u32, name: impl Into<EcoString>, value: Erl) -> Self {
        Self::new(
            line,
            ErlKind::Match(Box::new(Erl::var(line, name)), Box::new(value)),
        )
    }

    pub(crate) fn case(line: u32, value: Erl, clauses: Vec<Clause>) -> Self {
        Self::new(
            line,
            ErlKind::Case {
                value: Box::new(value),
                clauses,
            },
        )
    }

    pub(crate) fn operator(line: u32, operator: &'static str, left: Erl, right: Erl) -> Self {
        Self::new(line, ErlKind::Operator(operator, Box::new(left), Box::new(right)))
    }

    /// Evaluating it again or elsewhere gives the same and costs nothing.
    pub(crate) fn is_trivial(&self) -> bool {
        match &self.kind {
            ErlKind::Var(_)
            | ErlKind::Atom(_)
            | ErlKind::Integer(_)
            | ErlKind::Float(_)
            | ErlKind::Binary(_) => true,
            ErlKind::List(elements, tail) => elements.is_empty() && tail.is_none(),
            ErlKind::Tuple(elements) => elements.iter().all(|e| matches!(e.kind, ErlKind::Atom(_))),
            _ => false,
        }
    }
}

impl Clause {
    pub(crate) fn new(line: u32, pattern: Erl, body: Vec<Erl>) -> Self {
        Self {
            patterns: vec![pattern],
            guards: Vec::new(),
            body,
            line,
        }
    }

    pub(crate) fn guarded(line: u32, pattern: Erl, guards: Vec<Erl>, body: Vec<Erl>) -> Self {
        Self {
            patterns: vec![pattern],
            guards,
            body,
            line,
        }
    }
}

/// Variables that occur in `body` without being bound there. Every name is bound once in a function, so
/// "bound anywhere inside" is enough.
pub(crate) fn free_variables(body: &[Erl], parameters: &[EcoString]) -> Vec<EcoString> {
    let mut scan = FreeScan {
        bound: parameters.iter().cloned().collect(),
        seen: Vec::new(),
    };
    body.iter().for_each(|e| scan.expression(e));
    let FreeScan { bound, seen } = scan;
    let mut once = FxHashSet::default();
    seen.into_iter()
        .filter(|name| !bound.contains(name) && once.insert(name.clone()))
        .collect()
}

struct FreeScan {
    bound: FxHashSet<EcoString>,
    seen: Vec<EcoString>,
}

impl FreeScan {
    fn expression(&mut self, erl: &Erl) {
        match &erl.kind {
            ErlKind::Var(name) => self.seen.push(name.clone()),
            ErlKind::Atom(_)
            | ErlKind::Integer(_)
            | ErlKind::Float(_)
            | ErlKind::Binary(_)
            | ErlKind::Literal(_) => {}
            ErlKind::Tuple(elements) | ErlKind::Block(elements) => self.all(elements),
            ErlKind::List(elements, tail) => {
                self.all(elements);
                if let Some(tail) = tail {
                    self.expression(tail);
                }
            }
            ErlKind::Map(pairs) | ErlKind::MapPattern(pairs) => self.pairs(pairs),
            ErlKind::MapUpdate(base, pairs) => {
                self.expression(base);
                self.pairs(pairs);
            }
            ErlKind::BinaryPattern(elements) => {
                for element in elements {
                    self.expression(&element.value);
                    element.size.iter().for_each(|size| self.expression(size));
                }
            }
            ErlKind::Match(pattern, value) => {
                self.pattern(pattern);
                self.expression(value);
            }
            ErlKind::Call { arguments, .. } | ErlKind::LocalCall { arguments, .. } => self.all(arguments),
            ErlKind::Apply { function, arguments } => {
                self.expression(function);
                self.all(arguments);
            }
            ErlKind::Operator(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ErlKind::Case { value, clauses } => {
                self.expression(value);
                clauses.iter().for_each(|clause| self.clause(clause));
            }
            ErlKind::Fun(clauses) => clauses.iter().for_each(|clause| self.clause(clause)),
            ErlKind::NamedFun(name, clauses) => {
                self.bound.insert(name.clone());
                clauses.iter().for_each(|clause| self.clause(clause));
            }
        }
    }

    fn all(&mut self, elements: &[Erl]) {
        elements.iter().for_each(|e| self.expression(e));
    }

    fn pairs(&mut self, pairs: &[(Erl, Erl)]) {
        for (key, value) in pairs {
            self.expression(key);
            self.expression(value);
        }
    }

    fn clause(&mut self, clause: &Clause) {
        clause.patterns.iter().for_each(|p| self.pattern(p));
        self.all(&clause.guards);
        self.all(&clause.body);
    }

    /// A variable in a pattern is bound here, unless it was bound before, which makes no difference: binding
    /// names are fresh, and a pattern that compares with an outer variable mentions it in a guard.
    fn pattern(&mut self, pattern: &Erl) {
        match &pattern.kind {
            ErlKind::Var(name) => {
                self.bound.insert(name.clone());
            }
            ErlKind::Tuple(elements) => elements.iter().for_each(|e| self.pattern(e)),
            ErlKind::List(elements, tail) => {
                elements.iter().for_each(|e| self.pattern(e));
                if let Some(tail) = tail {
                    self.pattern(tail);
                }
            }
            ErlKind::MapPattern(pairs) => pairs.iter().for_each(|(_, value)| self.pattern(value)),
            ErlKind::Match(left, right) => {
                self.pattern(left);
                self.pattern(right);
            }
            ErlKind::BinaryPattern(elements) => {
                for element in elements {
                    self.pattern(&element.value);
                    element.size.iter().for_each(|size| self.expression(size));
                }
            }
            _ => {}
        }
    }
}

// ---- abstract format ----

fn node(tag: &str, line: u32, rest: impl IntoIterator<Item = Term>) -> Term {
    let mut elements = vec![Term::atom(tag), Term::Integer(i64::from(line))];
    elements.extend(rest);
    Term::Tuple(elements)
}

fn terms(expressions: &[Erl]) -> Term {
    Term::list(expressions.iter().map(to_term))
}

/// The abstract format of an expression or pattern.
pub(crate) fn to_term(erl: &Erl) -> Term {
    let line = erl.line;
    match &erl.kind {
        ErlKind::Var(name) => node("var", line, [Term::Atom(name.clone())]),
        ErlKind::Atom(name) => node("atom", line, [Term::Atom(names::atom(name.clone()))]),
        ErlKind::Integer(value) => match i64::try_from(value) {
            Ok(small) => node("integer", line, [Term::Integer(small)]),
            Err(_) => node("integer", line, [Term::BigInteger(value.clone())]),
        },
        ErlKind::Float(value) => node("float", line, [Term::Float(*value)]),
        ErlKind::Literal(term) => node("value", line, [term.clone()]),
        ErlKind::Binary(text) => binary_term(line, text),
        ErlKind::Tuple(elements) => node("tuple", line, [terms(elements)]),
        ErlKind::List(elements, tail) => {
            let end = tail
                .as_ref()
                .map_or_else(|| node("nil", line, []), |tail| to_term(tail));
            elements
                .iter()
                .rev()
                .fold(end, |rest, element| node("cons", line, [to_term(element), rest]))
        }
        ErlKind::Map(pairs) => node("map", line, [map_fields(line, "map_field_assoc", pairs)]),
        ErlKind::MapUpdate(base, pairs) => node(
            "map",
            line,
            [to_term(base), map_fields(line, "map_field_assoc", pairs)],
        ),
        ErlKind::MapPattern(pairs) => node("map", line, [map_fields(line, "map_field_exact", pairs)]),
        ErlKind::BinaryPattern(elements) => node(
            "bin",
            line,
            [Term::list(
                elements.iter().map(|element| binary_element(line, element)),
            )],
        ),
        ErlKind::Match(left, right) => node("match", line, [to_term(left), to_term(right)]),
        ErlKind::Call {
            module,
            function,
            arguments,
        } => {
            let function = node(
                "remote",
                line,
                [
                    node("atom", line, [Term::Atom(module.clone())]),
                    node("atom", line, [Term::Atom(function.clone())]),
                ],
            );
            node("call", line, [function, terms(arguments)])
        }
        ErlKind::LocalCall { function, arguments } => node(
            "call",
            line,
            [
                node("atom", line, [Term::Atom(names::atom(function.clone()))]),
                terms(arguments),
            ],
        ),
        ErlKind::Apply { function, arguments } => node("call", line, [to_term(function), terms(arguments)]),
        ErlKind::Operator(operator, left, right) => {
            node("op", line, [Term::atom(*operator), to_term(left), to_term(right)])
        }
        ErlKind::Case { value, clauses } => node("case", line, [to_term(value), clause_terms(clauses)]),
        ErlKind::Block(body) => node("block", line, [terms(body)]),
        ErlKind::Fun(clauses) => node(
            "fun",
            line,
            [Term::tuple([
                Term::atom("clauses"),
                function_clauses(clauses, None),
            ])],
        ),
        ErlKind::NamedFun(name, clauses) => node(
            "named_fun",
            line,
            [Term::Atom(name.clone()), function_clauses(clauses, None)],
        ),
    }
}

/// The term with names that Erlang can have, and each key of a map once, with its last value.
fn shortened(term: Term) -> Term {
    let all = |terms: Vec<Term>| terms.into_iter().map(shortened).collect::<Vec<Term>>();
    match term {
        Term::Atom(name) => Term::Atom(names::atom(name)),
        Term::Tuple(elements) => Term::Tuple(all(elements)),
        Term::List(elements) => Term::List(all(elements)),
        Term::ImproperList(elements, tail) => Term::ImproperList(all(elements), Box::new(shortened(*tail))),
        Term::Map(pairs) => {
            let mut once: Vec<(Term, Term)> = Vec::with_capacity(pairs.len());
            let mut places: FxHashMap<EcoString, usize> = FxHashMap::default();
            for (key, value) in pairs {
                let (key, value) = (shortened(key), shortened(value));
                let Term::Atom(name) = &key else {
                    once.push((key, value));
                    continue;
                };
                match places.entry(name.clone()) {
                    Entry::Occupied(place) => {
                        if let Some(pair) = once.get_mut(*place.get()) {
                            pair.1 = value;
                        }
                    }
                    Entry::Vacant(place) => {
                        place.insert(once.len());
                        once.push((key, value));
                    }
                }
            }
            Term::Map(once)
        }
        Term::Integer(_) | Term::BigInteger(_) | Term::Float(_) | Term::Binary(_) => term,
    }
}

/// The last expression of a function. A call there would be a tail call and the frame of its sender would be gone when
/// it fails: its value is looked at, so that the call is not the last thing. Only what a method does to run itself
/// again, or its own loops, stays a tail call, so that recursion needs no stack.
fn last_term(erl: &Erl, method: Option<&str>) -> Term {
    let line = erl.line;
    match &erl.kind {
        _ if is_kept(erl, method) => kept(erl),
        // What never answers need not be looked at: anything around it keeps the frame.
        ErlKind::Call { module, function, .. } if never_answers(module, function) => {
            node("tuple", line, [Term::list([to_term(erl)])])
        }
        ErlKind::Case { value, clauses } if !is_recursion(value, clauses, method) => {
            node("case", line, [to_term(value), function_clauses(clauses, method)])
        }
        _ => to_term(erl),
    }
}

/// A call whose frame is kept, or a choice of such calls, of which one look at the answer is enough.
fn is_kept(erl: &Erl, method: Option<&str>) -> bool {
    match &erl.kind {
        ErlKind::Call { module, function, .. } => keeps_frame(module, function),
        ErlKind::LocalCall { function, .. } => method != Some(names::method_of(function)),
        ErlKind::Case { clauses, .. } => clauses
            .iter()
            .all(|clause| matches!(clause.body.as_slice(), [only] if is_kept(only, method))),
        _ => false,
    }
}

fn kept(call: &Erl) -> Term {
    let line = call.line;
    let value = || Erl::var(line, "Answer");
    let clauses = [
        Clause::new(
            line,
            Erl::atom(line, "$bt_no_answer"),
            vec![Erl::atom(line, "nil")],
        ),
        Clause::new(line, value(), vec![value()]),
    ];
    node("case", line, [to_term(call), clause_terms(&clauses)])
}

/// Sends as the compiler emits them; the primitive of a library method has no frame of its own.
fn keeps_frame(module: &str, function: &str) -> bool {
    match module {
        "beamtalk_dispatch" => true,
        "beamtalk_erlang" => function == "call",
        "beamtalk_block" => matches!(function, "on_do" | "ensure"),
        "beamtalk_class" => function == "named",
        _ => false,
    }
}

fn never_answers(module: &str, function: &str) -> bool {
    module == "beamtalk_error" || (module == "beamtalk_number" && function == "fail")
}

/// `case Self of Exact -> method(…); _ -> send(Self, …) end`: the method sends its own selector to `self`.
fn is_recursion(value: &Erl, clauses: &[Clause], method: Option<&str>) -> bool {
    let [direct, sent] = clauses else { return false };
    let ([direct], [sent]) = (direct.body.as_slice(), sent.body.as_slice()) else {
        return false;
    };
    let is_own = match &direct.kind {
        ErlKind::LocalCall { function, .. } => method == Some(names::method_of(function)),
        _ => false,
    };
    let is_sent = match &sent.kind {
        ErlKind::Call { arguments, .. } => arguments
            .first()
            .is_some_and(|receiver| receiver.kind == value.kind),
        _ => false,
    };
    is_own && is_sent
}

fn is_answered(named: &Erl, last: &Erl) -> bool {
    matches!(&named.kind, ErlKind::Match(name, _) if matches!(name.kind, ErlKind::Var(_)) && name.kind == last.kind)
}

fn value_of(named: &Erl) -> &Erl {
    match &named.kind {
        ErlKind::Match(_, value) => value,
        _ => named,
    }
}

fn body_term(before: &[Erl], last: &Erl, method: Option<&str>) -> Term {
    Term::list(before.iter().map(to_term).chain([last_term(last, method)]))
}

fn function_clauses(clauses: &[Clause], method: Option<&str>) -> Term {
    Term::list(clauses.iter().map(|clause| {
        let body = match clause.body.as_slice() {
            // A value that is named only to be answered.
            [before @ .., named, last] if is_answered(named, last) => {
                body_term(before, value_of(named), method)
            }
            [before @ .., last] => body_term(before, last, method),
            [] => Term::nil(),
        };
        clause_term(clause, body)
    }))
}

/// UTF-8 text is written as bytes so that the forms do not depend on any encoding of strings.
fn binary_term(line: u32, text: &str) -> Term {
    if text.is_empty() {
        return node("bin", line, [Term::nil()]);
    }
    node("bin", line, [Term::list([text_element(line, text)])])
}

fn text_element(line: u32, text: &str) -> Term {
    let bytes = Term::list(text.bytes().map(|byte| Term::Integer(i64::from(byte))));
    let default = || Term::atom("default");
    node(
        "bin_element",
        line,
        [node("string", line, [bytes]), default(), default()],
    )
}

fn binary_element(line: u32, element: &BinaryElement) -> Term {
    if let ErlKind::Binary(text) = &element.value.kind {
        return text_element(line, text);
    }
    let size = element
        .size
        .as_ref()
        .map_or_else(|| Term::atom("default"), to_term);
    let mut specifiers: Vec<Term> = element.specifiers.iter().map(|name| Term::atom(*name)).collect();
    if let Some(unit) = element.unit {
        specifiers.push(Term::tuple([Term::atom("unit"), Term::Integer(i64::from(unit))]));
    }
    let specifiers = if specifiers.is_empty() {
        Term::atom("default")
    } else {
        Term::List(specifiers)
    };
    node("bin_element", line, [to_term(&element.value), size, specifiers])
}

fn map_fields(line: u32, tag: &str, pairs: &[(Erl, Erl)]) -> Term {
    Term::list(
        pairs
            .iter()
            .map(|(key, value)| node(tag, line, [to_term(key), to_term(value)])),
    )
}

fn clause_terms(clauses: &[Clause]) -> Term {
    Term::list(
        clauses
            .iter()
            .map(|clause| clause_term(clause, terms(&clause.body))),
    )
}

fn clause_term(clause: &Clause, body: Term) -> Term {
    let guards = if clause.guards.is_empty() {
        Term::nil()
    } else {
        Term::list([terms(&clause.guards)])
    };
    node("clause", clause.line, [terms(&clause.patterns), guards, body])
}

pub(crate) fn function_term(function: &Function) -> Term {
    node(
        "function",
        function.line,
        [
            Term::Atom(names::atom(function.name.clone())),
            Term::Integer(function.arity as i64),
            function_clauses(&function.clauses, Some(names::method_of(&function.name))),
        ],
    )
}

pub(crate) fn attribute(line: u32, name: &str, value: Term) -> Term {
    node("attribute", line, [Term::atom(name), value])
}
