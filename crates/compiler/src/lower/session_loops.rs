//! Loops that only compute, over variables of the session.
//!
//! Such a variable lives in the dictionary of the session's process, since blocks, later inputs and tools see it. A loop
//! that runs nobody else's code cannot be watched: where what it uses are numbers and Booleans when it begins, it runs over
//! Erlang variables and writes the last values back. Arithmetic that may fail gets them along (`beamtalk_cell:operate`),
//! so that an error finds every variable with its latest value. Cells that blocks share are treated the same.

use std::collections::hash_map::Entry;

use ecow::EcoString;
use rustc_hash::FxHashMap;

use super::{Fact, Lowerer, Place, Storage, Value};
use crate::erl::{Clause, Erl, ErlKind};
use crate::ir::{Inline, Node, NodeKind, Variable, VariableId};

/// What an expression of such a loop can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Number,
    Boolean,
    Nothing,
}

impl Kind {
    fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }

    fn fact(self) -> Fact {
        match self {
            Self::Integer | Self::Number => Fact::Number,
            Self::Boolean => Fact::Boolean,
            Self::Nothing => Fact::Unknown,
        }
    }

    /// The test of a guard.
    fn test(self) -> &'static str {
        match self {
            Self::Integer => "is_integer",
            Self::Boolean => "is_boolean",
            Self::Number | Self::Nothing => "is_number",
        }
    }
}

/// The variables from outside that a loop uses.
#[derive(Default)]
struct Computing {
    /// In cells.
    used: Vec<VariableId>,
    assigned: Vec<VariableId>,
    /// In Erlang variables already.
    plain: Vec<VariableId>,
    /// Numbers, where nothing else is asked of them.
    kinds: FxHashMap<VariableId, Kind>,
}

impl Computing {
    fn kind(&self, id: VariableId) -> Kind {
        self.kinds.get(&id).copied().unwrap_or(Kind::Number)
    }
}

/// What must be written back when something fails: variables with the expressions of their cells.
pub(super) type Held = Vec<(VariableId, Erl)>;

impl Lowerer<'_> {
    /// Emit a loop, twice where it may run over Erlang variables.
    pub(super) fn over_session(
        &mut self,
        parts: &[&[Node]],
        counter: Option<VariableId>,
        line: u32,
        emit: impl Fn(&mut Self),
    ) {
        let Some(computing) = self.computing(parts, counter) else {
            return emit(self);
        };
        let nil = || Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        };
        let mut meeting = self.meeting(parts.iter().copied().flatten());
        let cells: Vec<Erl> = computing.used.iter().map(|id| self.cell(*id, line)).collect();
        let asked = Erl::call(
            line,
            "beamtalk_cell",
            "computed",
            vec![Erl::tuple(line, cells.clone())],
        );
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        let names: Vec<EcoString> = computing
            .used
            .iter()
            .map(|id| self.fresh(&self.variable(*id).name))
            .collect();
        let mut tests = Vec::new();
        let mut known = Vec::new();
        for (id, name) in computing.used.iter().zip(&names) {
            self.places
                .insert(*id, Place::Plain(Erl::var(line, name.clone())));
        }
        for id in computing.used.iter().chain(&computing.plain) {
            let value = self.read(*id, line).erl;
            if let ErlKind::Var(name) = &value.kind {
                let kind = computing.kind(*id);
                known.push((name.clone(), self.facts.insert(name.clone(), kind.fact())));
                tests.push(Erl::call(line, "erlang", kind.test(), vec![value]));
            }
        }
        self.held.extend(computing.used.iter().copied());
        self.kept = computing
            .assigned
            .iter()
            .filter_map(|id| {
                let index = computing.used.iter().position(|used| used == id)?;
                Some((*id, cells.get(index)?.clone()))
            })
            .collect();
        emit(self);
        for (id, cell) in std::mem::take(&mut self.kept) {
            let last = self.read(id, line).erl;
            self.out
                .push(Erl::call(line, "beamtalk_cell", "write", vec![cell, last]));
        }
        self.held.retain(|id| !computing.used.contains(id));
        self.end_branch(nil(), &mut meeting, line);
        let fast = std::mem::take(&mut self.out);
        self.places.clone_from(&saved.0);
        for (name, fact) in known {
            match fact {
                Some(fact) => self.facts.insert(name, fact),
                None => self.facts.remove(&name),
            };
        }
        // Loops inside do not try again.
        self.is_unheld = true;
        emit(self);
        self.is_unheld = false;
        self.end_branch(nil(), &mut meeting, line);
        let slow = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        self.meet(&meeting, line);
        let pattern = Erl::tuple(line, names.into_iter().map(|name| Erl::var(line, name)).collect());
        let clauses = vec![
            Clause::guarded(line, pattern, tests, fast),
            Clause::new(line, Erl::var(line, "_"), slow),
        ];
        self.out.push(Erl::case(line, asked, clauses));
    }

    /// Where a variable lives while this code is lowered.
    pub(super) fn storage(&self, id: VariableId) -> Storage {
        if self.held.contains(&id) {
            return Storage::Plain;
        }
        self.variable(id).storage
    }

    /// Arithmetic with numbers where variables are held: of integers in place, and whatever may fail with those variables.
    pub(super) fn held_operation(&mut self, operator: &'static str, operands: [Erl; 2], line: u32) -> Erl {
        let [left, right] = operands.map(|operand| {
            let fact = Fact::Number;
            self.name(Value { erl: operand, fact }, line)
        });
        let kept = self.kept.clone();
        let values = kept.iter().map(|(id, _)| self.read(*id, line).erl).collect();
        let cells = kept.into_iter().map(|(_, cell)| cell).collect();
        let arguments = vec![
            Erl::atom(line, operator),
            left.clone(),
            right.clone(),
            Erl::tuple(line, cells),
            Erl::tuple(line, values),
        ];
        let wildcard = || Erl::var(line, "_");
        let elsewhere = Erl::call(line, "beamtalk_cell", "operate", arguments);
        let mut clauses = vec![Clause::new(line, wildcard(), vec![elsewhere])];
        if operator != "rem" {
            let tests = within_bounds(operator, &left, &right, line);
            // As a call, which stays as it is when the loop is compiled.
            let here = Erl::call(line, "erlang", operator, vec![left.clone(), right.clone()]);
            clauses.push(Clause::guarded(line, wildcard(), tests, vec![here]));
        }
        if operator != "/" {
            let is_integer = |operand: &Erl| Erl::call(line, "erlang", "is_integer", vec![operand.clone()]);
            let mut tests = vec![is_integer(&left), is_integer(&right)];
            if operator == "rem" {
                tests.push(Erl::operator(line, "=/=", right.clone(), Erl::integer(line, 0)));
            }
            let here = Erl::operator(line, operator, left.clone(), right);
            clauses.push(Clause::guarded(line, wildcard(), tests, vec![here]));
        }
        clauses.reverse();
        Erl::case(line, left, clauses)
    }

    /// None unless the loop only computes, over variables that are no Erlang variables yet.
    fn computing(&self, parts: &[&[Node]], counter: Option<VariableId>) -> Option<Computing> {
        if !self.target.is_expression || self.is_unheld || !self.held.is_empty() {
            return None;
        }
        let mut scan = Scan {
            variables: self.variables,
            places: &self.places,
            locals: FxHashMap::default(),
            computing: Computing::default(),
            is_revised: false,
        };
        loop {
            scan.locals = counter.into_iter().map(|id| (id, Kind::Integer)).collect();
            scan.is_revised = false;
            let is_whole = parts.iter().all(|part| scan.sequence(part).is_some());
            if !scan.is_revised {
                let found = scan.computing;
                let is_possible = |id: &VariableId| self.may_be(*id, found.kind(*id));
                let is_computing = is_whole && !found.used.is_empty() && found.plain.iter().all(is_possible);
                return is_computing.then_some(found);
            }
        }
    }

    /// Is an Erlang variable, which can be tested, or a literal of this kind?
    fn may_be(&self, id: VariableId, kind: Kind) -> bool {
        match self.places.get(&id) {
            Some(Place::Plain(erl)) => match erl.kind {
                ErlKind::Var(_) => true,
                ErlKind::Integer(_) => kind.is_number(),
                _ => kind != Kind::Integer && self.fact_of(erl) == kind.fact(),
            },
            _ => false,
        }
    }
}

struct Scan<'a> {
    variables: &'a [Variable],
    places: &'a FxHashMap<VariableId, Place>,
    /// What variables of the loop are here.
    locals: FxHashMap<VariableId, Kind>,
    computing: Computing,
    /// More was learnt about a variable, so what was read before may be wrong.
    is_revised: bool,
}

impl Scan<'_> {
    fn sequence(&mut self, nodes: &[Node]) -> Option<Kind> {
        let mut last = Kind::Nothing;
        for node in nodes {
            last = self.expression(node)?;
        }
        Some(last)
    }

    /// A part that may not run, or not be the last to run.
    fn sometimes(&mut self, nodes: &[Node]) -> Option<Kind> {
        let before = self.locals.clone();
        let kind = self.sequence(nodes);
        self.locals = before;
        kind
    }

    fn number(&mut self, node: &Node) -> Option<Kind> {
        self.expression(node).filter(|kind| kind.is_number())
    }

    fn integer(&mut self, node: &Node) -> Option<()> {
        self.wanted(node, Kind::Integer)
    }

    fn boolean(&mut self, nodes: &[Node]) -> Option<()> {
        let (last, before) = nodes.split_last()?;
        self.sequence(before)?;
        self.wanted(last, Kind::Boolean)
    }

    /// A variable from outside is supposed to be what is wanted of it.
    fn wanted(&mut self, node: &Node, kind: Kind) -> Option<()> {
        if let NodeKind::Variable(id) = &node.kind
            && self.is_outside(*id)?
        {
            self.suppose(*id, kind);
        }
        (self.expression(node)? == kind).then_some(())
    }

    fn suppose(&mut self, id: VariableId, kind: Kind) {
        if let Entry::Vacant(entry) = self.computing.kinds.entry(id) {
            entry.insert(kind);
            self.is_revised = true;
        }
    }

    fn expression(&mut self, node: &Node) -> Option<Kind> {
        match &node.kind {
            NodeKind::Integer(_) => Some(Kind::Integer),
            NodeKind::Float(_) => Some(Kind::Number),
            NodeKind::Atom(name) if name == "true" || name == "false" => Some(Kind::Boolean),
            NodeKind::Atom(name) if name == "nil" => Some(Kind::Nothing),
            NodeKind::Sequence(nodes) => self.sequence(nodes),
            NodeKind::Variable(id) => self.variable(*id),
            NodeKind::Assign { variable, value } => self.assign(*variable, value),
            NodeKind::Send {
                receiver,
                selector,
                arguments,
            } => self.send(receiver, selector, arguments),
            NodeKind::Inline(inline) => self.inline(inline),
            _ => None,
        }
    }

    /// Does the variable come from outside the loop? Characters are numbers with messages of their own.
    fn is_outside(&self, id: VariableId) -> Option<bool> {
        let variable = self.variables.get(id.0 as usize)?;
        let is_outside = match variable.storage {
            Storage::Session => true,
            Storage::Cell if !self.places.contains_key(&id) => return None,
            Storage::Cell | Storage::Plain => self.places.contains_key(&id),
        };
        (!variable.is_character).then_some(is_outside)
    }

    /// Note that a variable from outside is used.
    fn mention(&mut self, id: VariableId) {
        let is_plain = matches!(self.places.get(&id), Some(Place::Plain(_)));
        let all = if is_plain {
            &mut self.computing.plain
        } else {
            &mut self.computing.used
        };
        note(all, id);
    }

    fn variable(&mut self, id: VariableId) -> Option<Kind> {
        if self.is_outside(id)? {
            self.mention(id);
            return Some(self.computing.kind(id));
        }
        self.locals.get(&id).copied()
    }

    fn assign(&mut self, id: VariableId, value: &Node) -> Option<Kind> {
        let kind = self.expression(value)?;
        if !self.is_outside(id)? {
            let known = *self.locals.entry(id).or_insert(kind);
            return (kind != Kind::Nothing && fits(kind, known)).then_some(known);
        }
        self.mention(id);
        if !matches!(self.places.get(&id), Some(Place::Plain(_))) {
            note(&mut self.computing.assigned, id);
        }
        if kind == Kind::Boolean {
            self.suppose(id, kind);
        }
        fits(kind, self.computing.kind(id)).then_some(kind)
    }

    fn send(&mut self, receiver: &Node, selector: &str, arguments: &[Node]) -> Option<Kind> {
        match (selector, arguments) {
            ("+" | "-" | "*" | "%" | "/", [argument]) => {
                let kinds = [self.number(receiver)?, self.number(argument)?];
                let is_integer = selector != "/" && kinds == [Kind::Integer; 2];
                Some(if is_integer { Kind::Integer } else { Kind::Number })
            }
            ("<" | "<=" | ">" | ">=", [argument]) => {
                self.number(receiver)?;
                self.number(argument)?;
                Some(Kind::Boolean)
            }
            ("==" | "/=" | "=:=" | "=/=", [argument]) => {
                self.expression(receiver)?;
                self.expression(argument)?;
                Some(Kind::Boolean)
            }
            ("not", []) => {
                self.boolean(std::slice::from_ref(receiver))?;
                Some(Kind::Boolean)
            }
            _ => None,
        }
    }

    fn inline(&mut self, inline: &Inline) -> Option<Kind> {
        match inline {
            Inline::If {
                selector,
                condition,
                when_true,
                when_false,
            } => {
                self.boolean(std::slice::from_ref(condition))?;
                let is_logical = matches!(selector.as_str(), "and:" | "or:");
                let mut branch = |nodes: &Option<Vec<Node>>| {
                    let Some(nodes) = nodes else { return Some(None) };
                    if is_logical {
                        let before = self.locals.clone();
                        let is_boolean = self.boolean(nodes);
                        self.locals = before;
                        return is_boolean.map(|()| Some(Kind::Boolean));
                    }
                    self.sometimes(nodes).map(Some)
                };
                match (branch(when_true)?, branch(when_false)?) {
                    (Some(yes), Some(no)) if yes == no => Some(yes),
                    (Some(yes), Some(no)) if yes.is_number() && no.is_number() => Some(Kind::Number),
                    (Some(Kind::Boolean), None) | (None, Some(Kind::Boolean)) => Some(Kind::Boolean),
                    _ => Some(Kind::Nothing),
                }
            }
            Inline::While { condition, body, .. } => {
                let before = self.locals.clone();
                self.boolean(condition)?;
                self.sequence(body)?;
                self.locals = before;
                Some(Kind::Nothing)
            }
            Inline::Times { count, body } => {
                self.integer(count)?;
                self.sometimes(body)?;
                Some(Kind::Nothing)
            }
            Inline::Range {
                from,
                to,
                by,
                variable,
                body,
            } => {
                for bound in [Some(from), Some(to), by.as_ref()].into_iter().flatten() {
                    self.integer(bound)?;
                }
                self.locals.insert(*variable, Kind::Integer);
                self.sometimes(body)?;
                Some(Kind::Nothing)
            }
            Inline::IfNil { .. } | Inline::Repeat { .. } => None,
        }
    }
}

/// Tests of numbers whose sum, difference, product or quotient is no number too large to be a float.
fn within_bounds(operator: &str, left: &Erl, right: &Erl, line: u32) -> Vec<Erl> {
    let float = |value: f64| Erl::new(line, ErlKind::Float(value));
    let mut tests = Vec::new();
    for operand in [left, right] {
        tests.push(Erl::operator(line, "<", operand.clone(), float(1.0e150)));
        tests.push(Erl::operator(line, ">", operand.clone(), float(-1.0e150)));
    }
    if operator == "/" {
        tests.push(Erl::operator(line, ">", right.clone(), float(1.0e-150)));
    }
    tests
}

/// May a variable of one kind be assigned a value of another?
fn fits(value: Kind, variable: Kind) -> bool {
    value == variable || (value == Kind::Integer && variable == Kind::Number)
}

fn note(all: &mut Vec<VariableId>, id: VariableId) {
    if !all.contains(&id) {
        all.push(id);
    }
}
