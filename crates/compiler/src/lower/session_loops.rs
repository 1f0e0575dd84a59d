//! Loops that only count, over variables of the session.
//!
//! Such a variable lives in the dictionary of the session's process, since blocks, later inputs and tools see it. A loop
//! that runs nobody else's code cannot be watched: where everything it uses are Integers when it begins, it runs over
//! Erlang variables and writes the last values back. Integers alone, since adding, multiplying and comparing them cannot
//! fail, so that no error finds a variable without its latest value.

use ecow::EcoString;
use rustc_hash::FxHashSet;

use super::{Fact, Lowerer, Place, Storage};
use crate::erl::{Clause, Erl};
use crate::ir::{Inline, Node, NodeKind, Variable, VariableId};

/// What an expression of such a loop can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    Boolean,
    Nothing,
}

/// The variables of the session that a loop uses.
#[derive(Default)]
struct Counting {
    used: Vec<VariableId>,
    assigned: Vec<VariableId>,
}

impl Lowerer<'_> {
    /// Emit a loop, twice where it may run over Erlang variables.
    pub(super) fn over_session(
        &mut self,
        parts: &[&[Node]],
        counter: Option<VariableId>,
        line: u32,
        emit: impl Fn(&mut Self),
    ) {
        let Some(counting) = self.counting(parts, counter) else {
            return emit(self);
        };
        let name_of = |lowerer: &Self, id: VariableId| Erl::atom(line, lowerer.variable(id).name.clone());
        let asked = counting.used.iter().map(|id| name_of(self, *id)).collect();
        let asked = Erl::call(line, "beamtalk_cell", "integers", vec![Erl::tuple(line, asked)]);
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        let names: Vec<EcoString> = counting
            .used
            .iter()
            .map(|id| self.fresh(&self.variable(*id).name))
            .collect();
        for (id, name) in counting.used.iter().zip(&names) {
            self.facts.insert(name.clone(), Fact::Number);
            self.places
                .insert(*id, Place::Plain(Erl::var(line, name.clone())));
        }
        self.held.extend(counting.used.iter().copied());
        emit(self);
        for id in &counting.assigned {
            let last = self.read(*id, line).erl;
            let arguments = vec![name_of(self, *id), last];
            self.out
                .push(Erl::call(line, "beamtalk_cell", "set_session", arguments));
        }
        self.held.retain(|id| !counting.used.contains(id));
        let fast = std::mem::take(&mut self.out);
        self.places.clone_from(&saved.0);
        emit(self);
        let slow = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        let pattern = Erl::tuple(line, names.into_iter().map(|name| Erl::var(line, name)).collect());
        let clauses = vec![
            Clause::new(line, pattern, fast),
            Clause::new(line, Erl::atom(line, "none"), slow),
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

    /// None unless the loop only counts, over variables of the session that are no Erlang variables yet.
    fn counting(&self, parts: &[&[Node]], counter: Option<VariableId>) -> Option<Counting> {
        if !self.target.is_expression || self.closure_depth > 0 {
            return None;
        }
        let mut scan = Scan {
            variables: self.variables,
            integers: counter.into_iter().collect(),
            counting: Counting::default(),
        };
        for part in parts {
            scan.sequence(part)?;
        }
        let found = scan.counting;
        let is_new = |id: &VariableId| !self.held.contains(id);
        (!found.used.is_empty() && found.used.iter().all(is_new)).then_some(found)
    }
}

struct Scan<'a> {
    variables: &'a [Variable],
    /// Locals of the loop that are Integers here.
    integers: FxHashSet<VariableId>,
    counting: Counting,
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
        let before = self.integers.clone();
        let kind = self.sequence(nodes);
        self.integers = before;
        kind
    }

    fn integer(&mut self, node: &Node) -> Option<()> {
        (self.expression(node)? == Kind::Integer).then_some(())
    }

    fn boolean(&mut self, nodes: &[Node]) -> Option<()> {
        (self.sequence(nodes)? == Kind::Boolean).then_some(())
    }

    fn expression(&mut self, node: &Node) -> Option<Kind> {
        match &node.kind {
            NodeKind::Integer(_) => Some(Kind::Integer),
            NodeKind::Atom(name) if name == "true" || name == "false" => Some(Kind::Boolean),
            NodeKind::Atom(name) if name == "nil" => Some(Kind::Nothing),
            NodeKind::Sequence(nodes) => self.sequence(nodes),
            NodeKind::Variable(id) => self.variable(*id),
            NodeKind::Assign { variable, value } => {
                self.integer(value)?;
                if self.is_of_session(*variable)? {
                    note(&mut self.counting.used, *variable);
                    note(&mut self.counting.assigned, *variable);
                } else {
                    self.integers.insert(*variable);
                }
                Some(Kind::Integer)
            }
            NodeKind::Send {
                receiver,
                selector,
                arguments,
            } => self.send(receiver, selector, arguments),
            NodeKind::Inline(inline) => self.inline(inline),
            _ => None,
        }
    }

    fn is_of_session(&self, id: VariableId) -> Option<bool> {
        let variable = self.variables.get(id.0 as usize)?;
        match variable.storage {
            _ if variable.is_character => None,
            Storage::Session => Some(true),
            Storage::Plain => Some(false),
            Storage::Cell => None,
        }
    }

    fn variable(&mut self, id: VariableId) -> Option<Kind> {
        if self.is_of_session(id)? {
            note(&mut self.counting.used, id);
            return Some(Kind::Integer);
        }
        self.integers.contains(&id).then_some(Kind::Integer)
    }

    fn send(&mut self, receiver: &Node, selector: &str, arguments: &[Node]) -> Option<Kind> {
        match (selector, arguments) {
            ("+" | "-" | "*", [argument]) => {
                self.integer(receiver)?;
                self.integer(argument)?;
                Some(Kind::Integer)
            }
            ("%", [argument]) => {
                self.integer(receiver)?;
                let is_certain = matches!(&argument.kind, NodeKind::Integer(by) if *by != 0.into());
                is_certain.then_some(Kind::Integer)
            }
            ("<" | "<=" | ">" | ">=", [argument]) => {
                self.integer(receiver)?;
                self.integer(argument)?;
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
                let yes = when_true.as_deref().map(|nodes| self.sometimes(nodes));
                let no = when_false.as_deref().map(|nodes| self.sometimes(nodes));
                match (yes, no) {
                    (Some(yes), Some(no)) if yes? == no? => yes,
                    (Some(one), None) | (None, Some(one)) if matches!(selector.as_str(), "and:" | "or:") => {
                        (one? == Kind::Boolean).then_some(Kind::Boolean)
                    }
                    (yes, no) => yes
                        .into_iter()
                        .chain(no)
                        .all(|kind| kind.is_some())
                        .then_some(Kind::Nothing),
                }
            }
            Inline::While { condition, body, .. } => {
                let before = self.integers.clone();
                self.boolean(condition)?;
                self.sequence(body)?;
                self.integers = before;
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
                self.integers.insert(*variable);
                self.sometimes(body)?;
                Some(Kind::Nothing)
            }
            Inline::IfNil { .. } | Inline::Repeat { .. } => None,
        }
    }
}

fn note(all: &mut Vec<VariableId>, id: VariableId) {
    if !all.contains(&id) {
        all.push(id);
    }
}
