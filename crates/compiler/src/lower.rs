//! Resolved bodies to Erlang code.
//!
//! Expressions become Erlang expressions; what must happen before them is pushed as statements, so that
//! evaluation order and assignments are those of the source. A plain local is a new Erlang variable after each
//! assignment; branches meet in a common variable; loops are functions of their own, with the locals they assign
//! as arguments.

mod chain;
mod closure;
mod control;
mod field;
mod literal;
mod loops;
mod one_message;
mod pattern;
mod send;
mod session_loops;

use beamtalk_syntax::span::{LineIndex, Span};
use ecow::{EcoString, eco_format};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::erl::{self, Clause, Erl, ErlKind, Function};
use crate::ir::{Body, Node, NodeKind, Storage, Variable, VariableId};
use crate::table::{ClassTable, Kind};

/// What is known about the value of an Erlang variable or expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Unknown,
    Number,
    Boolean,
}

/// An expression with what is known about its value.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) erl: Erl,
    pub(crate) fact: Fact,
}

/// Where the current value of a local is found.
#[derive(Clone, Debug)]
enum Place {
    /// A variable or literal.
    Plain(Erl),
    /// The variable that holds the cell.
    Cell(EcoString),
    /// A cell of a closure's environment.
    Environment(EcoString, usize),
    Session(EcoString),
}

/// What surrounds a body.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) table: &'a ClassTable,
    pub(crate) lines: &'a LineIndex,
    /// Selectors with a function of their own in this module, on the side of this method.
    pub(crate) own_selectors: &'a FxHashSet<EcoString>,
    pub(crate) class: EcoString,
    pub(crate) kind: Kind,
    pub(crate) is_class_side: bool,
    pub(crate) is_test: bool,
    pub(crate) is_sealed: bool,
    pub(crate) native: Option<EcoString>,
    pub(crate) selector: EcoString,
    /// The Erlang function; lifted loops are named after it.
    pub(crate) function: EcoString,
    /// No module: loops become named funs.
    pub(crate) is_expression: bool,
}

pub(crate) struct Lowerer<'a> {
    target: &'a Target<'a>,
    variables: &'a [Variable],
    places: FxHashMap<VariableId, Place>,
    /// Variables of the session that are Erlang variables for now.
    held: FxHashSet<VariableId>,
    /// Those of them that are assigned meanwhile.
    kept: session_loops::Held,
    /// In a loop over variables of the session as they are.
    is_unheld: bool,
    facts: FxHashMap<EcoString, Fact>,
    out: Vec<Erl>,
    next: u32,
    lifted: Vec<Function>,
    uses_home: bool,
    closure_depth: u32,
    /// In a loop of which nobody knows how long it goes on.
    is_endless: bool,
    /// `Self` is known to be an instance of exactly this class.
    self_is_exact: bool,
    self_name: EcoString,
    /// Inside a block whose first parameter is `self`.
    rebinds_self: bool,
    /// The specialised version being lowered, for its recursive sends.
    fast: Option<Fast>,
    /// Inside a method given to a ClassBuilder: the class being built and the side.
    built: Option<(EcoString, bool)>,
    /// Inside a class method given to a ClassBuilder, where `self` has the variables of the class being built.
    is_built_class_side: bool,
    /// The closure being lowered assigns class state.
    assigns_class_state: bool,
    /// In the loop of a chain, where what is not a number or Boolean as it should be is a failure that nobody sees.
    is_joined: bool,
}

#[derive(Clone, Debug)]
struct Fast {
    function: EcoString,
    /// Which parameters must be numbers.
    numeric: Vec<bool>,
    /// Only its recursion needs the receiver, so it is not handed on.
    without_self: bool,
}

/// The functions of one method: its own, the specialised one, and the loops lifted out of both.
pub(crate) fn lower_method(target: &Target, body: &Body, line: u32) -> Vec<Function> {
    let numeric = numeric_parameters(body);
    let mut clauses = Vec::new();
    let mut specialized = Vec::new();
    if !numeric.is_empty() && body.statements.iter().map(size).sum::<usize>() <= SPECIALIZE_LIMIT {
        let (clause, functions) = specialize(target, body, &numeric, line);
        clauses.push(clause);
        specialized = functions;
    }
    let mut lowerer = Lowerer::new(target, &body.variables);
    // Names of the lifted functions must differ from those of the specialised version.
    lowerer.next = specialized.len() as u32 * 1000;
    lowerer.self_is_exact = target.is_sealed;
    let parameters = lowerer.parameters(&body.parameters, line);
    let statements = lowerer.method_body(body, line);
    let mut patterns = vec![Erl::var(line, "Self")];
    patterns.extend(parameters);
    clauses.push(Clause {
        patterns,
        guards: Vec::new(),
        body: statements,
        line,
    });
    let name = target.function.clone();
    let mut functions = vec![Function {
        name,
        arity: body.parameters.len() + 1,
        clauses,
        line,
    }];
    functions.append(&mut lowerer.lifted);
    functions.append(&mut specialized);
    functions
}

/// Methods with more nodes than this are compiled once, with type tests at each operator.
const SPECIALIZE_LIMIT: usize = 60;

/// The method for the case that the receiver is exactly of this class and the parameters used as receivers of
/// arithmetic are numbers: no type tests, direct self-sends. It is a function of its own because the Erlang
/// compiler then sees the types of all its callers; the answered clause leads there.
fn specialize(target: &Target, body: &Body, numeric: &[VariableId], line: u32) -> (Clause, Vec<Function>) {
    let mut version = Version::lower(target, body, numeric, line, true);
    if erl::free_variables(&version.statements, &[])
        .iter()
        .any(|name| name == "Self")
    {
        version = Version::lower(target, body, numeric, line, false);
    }
    let own = Erl::var(line, "Self");
    let receiver = if target.is_sealed {
        own.clone()
    } else {
        Erl::new(
            line,
            ErlKind::Match(Box::new(version.exact), Box::new(own.clone())),
        )
    };
    let mut patterns = vec![receiver];
    patterns.extend(version.parameters.clone());
    let mut arguments = if version.fast.without_self {
        Vec::new()
    } else {
        vec![own]
    };
    arguments.extend(version.parameters);
    let name = version.fast.function;
    let call = Erl::new(
        line,
        ErlKind::LocalCall {
            function: name.clone(),
            arguments: arguments.clone(),
        },
    );
    let entry = Clause {
        patterns,
        guards: version.guards,
        body: vec![call],
        line,
    };
    let arity = arguments.len();
    let clause = Clause {
        patterns: arguments,
        guards: Vec::new(),
        body: version.statements,
        line,
    };
    let mut functions = vec![Function {
        name,
        arity,
        clauses: vec![clause],
        line,
    }];
    functions.extend(version.lifted);
    (entry, functions)
}

/// The parts of a specialised version.
struct Version {
    fast: Fast,
    parameters: Vec<Erl>,
    guards: Vec<Erl>,
    statements: Vec<Erl>,
    exact: Erl,
    lifted: Vec<Function>,
}

impl Version {
    fn lower(target: &Target, body: &Body, numeric: &[VariableId], line: u32, without_self: bool) -> Self {
        let mut lowerer = Lowerer::new(target, &body.variables);
        lowerer.self_is_exact = true;
        let fast = Fast {
            function: eco_format!("{} fast 0", target.function),
            numeric: body.parameters.iter().map(|id| numeric.contains(id)).collect(),
            without_self,
        };
        let parameters = lowerer.parameters(&body.parameters, line);
        let mut guards = Vec::new();
        for (parameter, is_numeric) in parameters.iter().zip(&fast.numeric) {
            if let (true, ErlKind::Var(name)) = (is_numeric, &parameter.kind) {
                lowerer.facts.insert(name.clone(), Fact::Number);
                guards.push(Erl::call(line, "erlang", "is_number", vec![parameter.clone()]));
            }
        }
        lowerer.fast = Some(fast.clone());
        let statements = lowerer.method_body(body, line);
        Self {
            fast,
            parameters,
            guards,
            statements,
            exact: lowerer.exact_pattern(line),
            lifted: lowerer.lifted,
        }
    }
}

fn size(node: &Node) -> usize {
    let mut total = 1;
    if let NodeKind::Closure(closure) = &node.kind {
        total += closure.body.iter().map(size).sum::<usize>();
    }
    node.for_each_child(&mut |child| total += size(child));
    total
}

/// Plain parameters that are the receiver of an arithmetic or ordering operator.
fn numeric_parameters(body: &Body) -> Vec<VariableId> {
    fn scan(node: &Node, body: &Body, out: &mut Vec<VariableId>) {
        if let NodeKind::Send {
            receiver, selector, ..
        } = &node.kind
            && let NodeKind::Variable(variable) = receiver.kind
            && send::is_numeric_operator(selector)
            && body.parameters.contains(&variable)
            && !out.contains(&variable)
            && body
                .variables
                .get(variable.0 as usize)
                .is_some_and(|v| v.storage == Storage::Plain)
        {
            out.push(variable);
        }
        node.for_each_child(&mut |child| scan(child, body, out));
    }
    let mut out = Vec::new();
    body.statements.iter().for_each(|node| scan(node, body, &mut out));
    out
}

/// A session expression: statements whose last one is the value.
pub(crate) fn lower_expression(target: &Target, body: &Body, line: u32) -> Vec<Erl> {
    let mut lowerer = Lowerer::new(target, &body.variables);
    lowerer.method_body(body, line)
}

/// A slot default, as statements.
pub(crate) fn lower_default(target: &Target, body: &Body, line: u32) -> (Vec<Erl>, Vec<Function>) {
    let mut lowerer = Lowerer::new(target, &body.variables);
    let statements = lowerer.method_body(body, line);
    (statements, lowerer.lifted)
}

impl<'a> Lowerer<'a> {
    fn new(target: &'a Target<'a>, variables: &'a [Variable]) -> Self {
        Self {
            target,
            variables,
            places: FxHashMap::default(),
            held: FxHashSet::default(),
            kept: Vec::new(),
            is_unheld: false,
            facts: FxHashMap::default(),
            out: Vec::new(),
            next: 0,
            lifted: Vec::new(),
            uses_home: false,
            closure_depth: 0,
            is_endless: false,
            self_is_exact: false,
            self_name: "Self".into(),
            rebinds_self: false,
            fast: None,
            built: None,
            is_built_class_side: false,
            assigns_class_state: false,
            is_joined: false,
        }
    }

    fn line(&self, span: Span) -> u32 {
        self.target.lines.line(span.start)
    }

    fn fresh(&mut self, name: &str) -> EcoString {
        // The name is there to be read; the number tells variables apart.
        let shown = name.get(..name.len().min(100)).unwrap_or("");
        self.next += 1;
        eco_format!("V{}@{}", self.next, shown)
    }

    fn variable(&self, id: VariableId) -> &'a Variable {
        self.variables
            .get(id.0 as usize)
            .expect("resolve numbered the variables")
    }

    /// Parameter variables; those that live in cells get their cell at once.
    fn parameters(&mut self, parameters: &[VariableId], line: u32) -> Vec<Erl> {
        parameters
            .iter()
            .map(|&id| {
                let name = self.fresh(&self.variable(id).name);
                self.declare(
                    id,
                    Value {
                        erl: Erl::var(line, name.clone()),
                        fact: Fact::Unknown,
                    },
                    line,
                );
                Erl::var(line, name)
            })
            .collect()
    }

    fn method_body(&mut self, body: &Body, line: u32) -> Vec<Erl> {
        let prologue = std::mem::take(&mut self.out);
        self.tail(&body.statements, line);
        let mut statements = std::mem::take(&mut self.out);
        if self.uses_home {
            let run = Erl::new(
                line,
                ErlKind::Fun(vec![Clause::new(line, Erl::var(line, "Home"), statements)]),
            );
            let selector = Erl::atom(line, self.target.selector.clone());
            statements = vec![Erl::call(line, "beamtalk_return", "run", vec![run, selector])];
        }
        if body.assigns_class_state {
            let clause = Clause {
                patterns: Vec::new(),
                guards: Vec::new(),
                body: statements,
                line,
            };
            let run = Erl::new(line, ErlKind::Fun(vec![clause]));
            let own = Erl::var(line, self.self_name.clone());
            statements = vec![Erl::call(line, "beamtalk_class_state", "locked", vec![own, run])];
        }
        let mut all = prologue;
        all.append(&mut statements);
        all
    }

    // ---- statements ----

    /// Lower statements whose last value is used.
    fn sequence(&mut self, nodes: &[Node], line: u32) -> Value {
        let Some((last, before)) = nodes.split_last() else {
            return Value {
                erl: Erl::atom(line, "nil"),
                fact: Fact::Unknown,
            };
        };
        before.iter().for_each(|node| self.effect(node));
        self.node(last)
    }

    /// Lower a statement whose value nobody uses.
    fn effect(&mut self, node: &Node) {
        let value = self.node(node);
        if !value.erl.is_trivial() {
            self.out.push(value.erl);
        }
    }

    fn push_value(&mut self, value: Value) {
        self.out.push(value.erl);
    }

    /// The value as something that may be mentioned twice: a variable or literal.
    fn name(&mut self, value: Value, line: u32) -> Erl {
        if value.erl.is_trivial() {
            return value.erl;
        }
        let name = self.fresh("t");
        self.facts.insert(name.clone(), value.fact);
        self.out.push(Erl::bind(line, name.clone(), value.erl));
        Erl::var(line, name)
    }

    /// Lower operands left to right. An operand that is not trivial is named when a later one has statements
    /// of its own, which would otherwise run first.
    fn operands<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        for node in nodes {
            let mark = self.out.len();
            let value = self.node(node);
            if self.out.len() > mark {
                let later = self.out.split_off(mark);
                for earlier in &mut values {
                    let line = earlier.erl.line;
                    let named = self.name(earlier.clone(), line);
                    earlier.erl = named;
                }
                self.out.extend(later);
            }
            values.push(value);
        }
        values
    }

    fn operand_expressions<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<Erl> {
        self.operands(nodes).into_iter().map(|value| value.erl).collect()
    }

    // ---- variables ----

    fn fact_of(&self, erl: &Erl) -> Fact {
        match &erl.kind {
            ErlKind::Var(name) => self.facts.get(name).copied().unwrap_or(Fact::Unknown),
            ErlKind::Integer(_) | ErlKind::Float(_) => Fact::Number,
            ErlKind::Atom(name) if name == "true" || name == "false" => Fact::Boolean,
            _ => Fact::Unknown,
        }
    }

    fn read(&mut self, id: VariableId, line: u32) -> Value {
        let erl = match self.places.get(&id) {
            Some(Place::Plain(erl)) => {
                let mut erl = erl.clone();
                erl.line = line;
                erl
            }
            Some(Place::Cell(name)) => {
                let cell = Erl::var(line, name.clone());
                Erl::call(line, "beamtalk_cell", "read", vec![cell])
            }
            Some(Place::Environment(name, index)) => {
                let arguments = vec![Erl::var(line, name.clone()), Erl::integer(line, *index)];
                Erl::call(line, "beamtalk_cell", "read", arguments)
            }
            Some(Place::Session(_)) | None => match self.storage(id) {
                Storage::Session => {
                    let cell = self.cell(id, line);
                    Erl::call(line, "beamtalk_cell", "read", vec![cell])
                }
                // Read before its first assignment, which a loop makes possible.
                Storage::Plain | Storage::Cell => Erl::atom(line, "nil"),
            },
        };
        let fact = self.fact_of(&erl);
        Value { erl, fact }
    }

    /// An expression for the cell itself.
    fn cell(&mut self, id: VariableId, line: u32) -> Erl {
        match self.places.get(&id) {
            Some(Place::Cell(name)) => Erl::var(line, name.clone()),
            Some(Place::Environment(name, index)) => {
                let arguments = vec![Erl::var(line, name.clone()), Erl::integer(line, *index)];
                Erl::call(line, "beamtalk_cell", "cell", arguments)
            }
            Some(Place::Session(name)) => {
                let name = Erl::atom(line, name.clone());
                Erl::call(line, "beamtalk_cell", "session", vec![name])
            }
            Some(Place::Plain(_)) | None if self.storage(id) == Storage::Session => {
                let name = Erl::atom(line, self.variable(id).name.clone());
                Erl::call(line, "beamtalk_cell", "session", vec![name])
            }
            Some(Place::Plain(_)) | None => {
                let nil = Value {
                    erl: Erl::atom(line, "nil"),
                    fact: Fact::Unknown,
                };
                self.declare(id, nil, line);
                self.cell(id, line)
            }
        }
    }

    /// Bind a variable for the first time in its scope.
    fn declare(&mut self, id: VariableId, value: Value, line: u32) {
        match self.storage(id) {
            Storage::Plain => {
                let named = self.name_as(value, id, line);
                self.places.insert(id, Place::Plain(named));
            }
            Storage::Cell => {
                let name = self.fresh("cell");
                let new = Erl::call(line, "beamtalk_cell", "new", vec![value.erl]);
                self.out.push(Erl::bind(line, name.clone(), new));
                self.places.insert(id, Place::Cell(name));
            }
            Storage::Session => {
                self.places
                    .insert(id, Place::Session(self.variable(id).name.clone()));
                self.write_cell(id, value, line);
            }
        }
    }

    fn name_as(&mut self, value: Value, id: VariableId, line: u32) -> Erl {
        if value.erl.is_trivial() {
            return value.erl;
        }
        let name = self.fresh(&self.variable(id).name);
        self.facts.insert(name.clone(), value.fact);
        self.out.push(Erl::bind(line, name.clone(), value.erl));
        Erl::var(line, name)
    }

    fn write_cell(&mut self, id: VariableId, value: Value, line: u32) -> Erl {
        let arguments = match self.places.get(&id) {
            Some(Place::Environment(name, index)) => {
                vec![
                    Erl::var(line, name.clone()),
                    Erl::integer(line, *index),
                    value.erl,
                ]
            }
            _ => vec![self.cell(id, line), value.erl],
        };
        let written = Erl::call(line, "beamtalk_cell", "write", arguments);
        self.name(
            Value {
                erl: written,
                fact: value.fact,
            },
            line,
        )
    }

    fn assign(&mut self, id: VariableId, value_node: &Node, line: u32) -> Value {
        let captures_itself =
            matches!(&value_node.kind, NodeKind::Closure(closure) if closure.captures.contains(&id));
        if captures_itself && !self.places.contains_key(&id) && self.storage(id) == Storage::Cell {
            let nil = Value {
                erl: Erl::atom(line, "nil"),
                fact: Fact::Unknown,
            };
            self.declare(id, nil, line);
        }
        let value = self.node(value_node);
        self.assign_value(id, value, line)
    }

    fn assign_value(&mut self, id: VariableId, value: Value, line: u32) -> Value {
        let fact = value.fact;
        let is_new = !self.places.contains_key(&id);
        match self.storage(id) {
            Storage::Plain => {
                let named = self.name_as(value, id, line);
                self.places.insert(id, Place::Plain(named.clone()));
                Value { erl: named, fact }
            }
            Storage::Cell if is_new => {
                let named = self.name(value, line);
                self.declare(
                    id,
                    Value {
                        erl: named.clone(),
                        fact,
                    },
                    line,
                );
                Value { erl: named, fact }
            }
            Storage::Cell | Storage::Session => Value {
                erl: self.write_cell(id, value, line),
                fact,
            },
        }
    }

    // ---- expressions ----

    fn node(&mut self, node: &Node) -> Value {
        let line = self.line(node.span);
        let unknown = |erl| Value {
            erl,
            fact: Fact::Unknown,
        };
        match &node.kind {
            NodeKind::Integer(value) => Value {
                erl: Erl::integer(line, value.clone()),
                fact: Fact::Number,
            },
            NodeKind::Float(value) => Value {
                erl: Erl::new(line, ErlKind::Float(*value)),
                fact: Fact::Number,
            },
            NodeKind::Character(value) => Value {
                erl: Erl::integer(line, u32::from(*value)),
                fact: Fact::Number,
            },
            NodeKind::Atom(name) => {
                let erl = Erl::atom(line, name.clone());
                let fact = self.fact_of(&erl);
                Value { erl, fact }
            }
            NodeKind::Text(parts) => unknown(self.text(parts, line)),
            NodeKind::Variable(id) => self.read(*id, line),
            NodeKind::SelfReference => {
                let is_number = !self.target.is_class_side
                    && matches!(
                        self.target.class.as_str(),
                        "Integer" | "Float" | "Number" | "Character"
                    );
                let fact = if is_number && !self.rebinds_self {
                    Fact::Number
                } else {
                    Fact::Unknown
                };
                Value {
                    erl: self.own(line),
                    fact,
                }
            }
            NodeKind::Class(name) => unknown(self.class_object(name, line)),
            NodeKind::Field(name) => unknown(self.read_field(name, line)),
            NodeKind::List { elements, tail } => unknown(self.list(elements, tail.as_deref(), line)),
            NodeKind::Array(elements) => unknown(self.array(elements, line)),
            NodeKind::Dictionary(pairs) => unknown(self.dictionary(pairs, line)),
            NodeKind::Closure(closure) => unknown(self.closure(closure, line)),
            NodeKind::BuiltMethod(method) => unknown(self.built_method(method, line)),
            NodeKind::Send {
                receiver,
                selector,
                arguments,
            } => self.send(receiver, selector, arguments, line),
            NodeKind::Cast {
                receiver,
                selector,
                arguments,
            } => {
                let mut values = self.operand_expressions(std::iter::once(&**receiver).chain(arguments));
                let receiver = values.remove(0);
                let arguments = vec![
                    receiver,
                    Erl::atom(line, selector.clone()),
                    Erl::list(line, values),
                ];
                unknown(Erl::call(line, "beamtalk_dispatch", "cast", arguments))
            }
            NodeKind::SuperSend { selector, arguments } => {
                let values = self.operand_expressions(arguments);
                let (class, is_class_side) = self
                    .built
                    .clone()
                    .unwrap_or_else(|| (self.target.class.clone(), self.target.is_class_side));
                let side = if is_class_side { "class" } else { "instance" };
                let arguments = vec![
                    self.own(line),
                    Erl::atom(line, class),
                    Erl::atom(line, side),
                    Erl::atom(line, selector.clone()),
                    Erl::list(line, values),
                ];
                unknown(Erl::call(line, "beamtalk_dispatch", "super", arguments))
            }
            NodeKind::ErlangCall {
                module,
                function,
                arguments,
            } => {
                let values = self.operand_expressions(arguments);
                let arguments = vec![
                    Erl::atom(line, module.clone()),
                    Erl::atom(line, function.clone()),
                    Erl::list(line, values),
                ];
                unknown(Erl::call(line, "beamtalk_erlang", "call", arguments))
            }
            NodeKind::Inline(inline) => self.inline(inline, line),
            NodeKind::Match { value, arms } => self.match_value(value, arms, line),
            NodeKind::Assign { variable, value } => self.assign(*variable, value, line),
            NodeKind::AssignField { field, value } => {
                let value = self.node(value);
                let fact = value.fact;
                Value {
                    erl: self.write_field(field, value, line),
                    fact,
                }
            }
            NodeKind::Destructure { pattern, value } => self.destructure(pattern, value, line),
            NodeKind::Return(value) => unknown(self.throw_return(value, line)),
            NodeKind::Sequence(nodes) => self.sequence(nodes, line),
            NodeKind::Primitive { module, function } => unknown(self.primitive(module, function, line)),
            NodeKind::Delegate => unknown(self.delegate(line)),
        }
    }

    fn own(&self, line: u32) -> Erl {
        Erl::var(line, self.self_name.clone())
    }
}
