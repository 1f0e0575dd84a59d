//! Control flow in place: branches that meet in common variables, early returns.

use ecow::EcoString;

use super::{Fact, Lowerer, Place, Value};
use crate::erl::{self, Clause, Erl, ErlKind};
use crate::ir::{Inline, Node, NodeKind, Storage, VariableId};

/// Variables that meet after a branch: the local, its common name, and what each branch knows of it.
pub(super) struct Meeting {
    variables: Vec<(VariableId, EcoString)>,
    facts: Vec<Option<Fact>>,
}

/// One way through a conditional, ready to be lowered.
pub(super) enum Branch<'n> {
    Nodes(&'n [Node]),
    Value(Erl),
    /// The variable to bind (unless it is ignored), its value, and the statements.
    Bound(Option<VariableId>, Erl, &'n [Node]),
}

impl Lowerer<'_> {
    // ---- the end of a method ----

    /// Lower statements whose last value is what the method answers; pushes it as the last statement.
    pub(super) fn tail(&mut self, nodes: &[Node], line: u32) {
        for (index, node) in nodes.iter().enumerate() {
            let rest = nodes.get(index + 1..).unwrap_or_default();
            let line = self.line(node.span);
            match &node.kind {
                NodeKind::Return(value) => {
                    let only: &[Node] = std::slice::from_ref(value);
                    return self.tail(only, line);
                }
                NodeKind::Inline(inline @ (Inline::If { .. } | Inline::IfNil { .. }))
                    if rest.is_empty() || (returns_directly(node) && !self.target.is_expression) =>
                {
                    return self.tail_conditional(inline, rest, line);
                }
                NodeKind::Match { value, arms } if rest.is_empty() => {
                    return self.tail_match(value, arms, line);
                }
                NodeKind::Sequence(inner) if rest.is_empty() => return self.tail(inner, line),
                _ if rest.is_empty() => {
                    let value = self.node(node);
                    return self.push_value(value);
                }
                _ => self.effect(node),
            }
        }
        self.out.push(Erl::atom(line, "nil"));
    }

    /// A conditional at the end of a method, or one that may return before `rest`.
    fn tail_conditional(&mut self, inline: &Inline, rest: &[Node], line: u32) {
        let (value, clauses) = match inline {
            Inline::If {
                selector,
                condition,
                when_true,
                when_false,
            } => {
                let condition = self.node(condition);
                let fact = condition.fact;
                let subject = self.subject(condition, when_true.is_none() || when_false.is_none(), line);
                let continuation =
                    self.continuation(&[when_true.as_deref(), when_false.as_deref()], rest, line);
                let branches = [("true", when_true), ("false", when_false)];
                let mut clauses: Vec<Clause> = branches
                    .into_iter()
                    .map(|(pattern, nodes)| {
                        let branch = match nodes {
                            Some(nodes) => Branch::Nodes(nodes),
                            None => Branch::Value(Erl::atom(line, pattern)),
                        };
                        let body = self.tail_branch(&branch, &continuation, line);
                        Clause::new(line, Erl::atom(line, pattern), body)
                    })
                    .collect();
                if fact != Fact::Boolean {
                    clauses.push(self.not_boolean(selector, &[], line));
                }
                (subject, clauses)
            }
            Inline::IfNil {
                value,
                when_nil,
                otherwise,
            } => {
                let value = self.node(value);
                let subject = self.name(value, line);
                let other = otherwise.as_ref().map(|(_, body)| body.as_slice());
                let continuation = self.continuation(&[when_nil.as_deref(), other], rest, line);
                let (nil, other) =
                    Self::nil_branches(when_nil.as_deref(), otherwise.as_ref(), &subject, line);
                let nil = self.tail_branch(&nil, &continuation, line);
                let other = self.tail_branch(&other, &continuation, line);
                let clauses = vec![
                    Clause::new(line, Erl::atom(line, "nil"), nil),
                    Clause::new(line, Erl::var(line, "_"), other),
                ];
                (subject, clauses)
            }
            Inline::While { .. } | Inline::Repeat { .. } | Inline::Times { .. } | Inline::Range { .. } => {
                unreachable!("only conditionals are lowered at the tail")
            }
        };
        self.out.push(Erl::case(line, value, clauses));
    }

    /// How the branches of a conditional go on.
    fn continuation<'n>(
        &mut self,
        branches: &[Option<&[Node]>],
        rest: &'n [Node],
        line: u32,
    ) -> Continuation<'n> {
        if rest.is_empty() {
            return Continuation::End;
        }
        let falling = branches
            .iter()
            .filter(|nodes| !nodes.is_some_and(always_returns))
            .count();
        if falling <= 1 || rest.iter().map(super::size).sum::<usize>() <= SMALL_REST {
            return Continuation::Inline(rest);
        }
        // More than one branch goes on: the rest becomes a function of the locals the branches may assign.
        let assigned: Vec<&Node> = branches.iter().flatten().copied().flatten().collect();
        let variables = self.assigned_outside(assigned);
        let name = self.lifted_name("rest");
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        let parameters: Vec<EcoString> = variables
            .iter()
            .map(|id| self.fresh(&self.variable(*id).name))
            .collect();
        for (id, parameter) in variables.iter().zip(&parameters) {
            self.places
                .insert(*id, Place::Plain(Erl::var(line, parameter.clone())));
        }
        self.tail(rest, line);
        let body = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        let free = erl::free_variables(&body, &parameters);
        self.lift(&name, &parameters, &free, body, line);
        Continuation::Function {
            name,
            variables,
            free,
        }
    }

    fn tail_branch(&mut self, branch: &Branch, continuation: &Continuation, line: u32) -> Vec<Erl> {
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        let nodes = match branch {
            Branch::Nodes(nodes) => nodes,
            Branch::Bound(id, value, nodes) => {
                self.bind(*id, value, line);
                nodes
            }
            Branch::Value(value) => {
                match continuation {
                    Continuation::End => self.out.push(value.clone()),
                    _ => self.continue_with(continuation, line),
                }
                let body = std::mem::replace(&mut self.out, saved.1);
                self.places = saved.0;
                return body;
            }
        };
        match continuation {
            Continuation::End => self.tail(nodes, line),
            _ if always_returns(nodes) => self.tail(nodes, line),
            Continuation::Inline(rest) => {
                let together: Vec<Node> = nodes.iter().chain(*rest).cloned().collect();
                self.tail(&together, line);
            }
            Continuation::Function { .. } => {
                // A return deeper inside skips the rest by being thrown.
                nodes.iter().for_each(|node| self.effect(node));
                self.continue_with(continuation, line);
            }
        }
        let body = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        body
    }

    /// What a branch is given, if it wants it.
    fn bind(&mut self, id: Option<VariableId>, value: &Erl, line: u32) {
        if let Some(id) = id {
            let value = Value {
                erl: value.clone(),
                fact: Fact::Unknown,
            };
            self.declare(id, value, line);
        }
    }

    /// The clause for what is neither true nor false.
    pub(super) fn bad_condition(&mut self, line: u32) -> Clause {
        let other = self.fresh("other");
        let value = vec![Erl::var(line, other.clone())];
        let fault = Erl::call(line, "beamtalk_error", "bad_condition", value);
        Clause::new(line, Erl::var(line, other), vec![fault])
    }

    fn continue_with(&mut self, continuation: &Continuation, line: u32) {
        match continuation {
            Continuation::End => {}
            Continuation::Inline(rest) => self.tail(rest, line),
            Continuation::Function {
                name,
                variables,
                free,
            } => {
                let mut arguments: Vec<Erl> = variables.iter().map(|id| self.read(*id, line).erl).collect();
                arguments.extend(free.iter().map(|name| Erl::var(line, name.clone())));
                self.out.push(Erl::new(
                    line,
                    ErlKind::LocalCall {
                        function: name.clone(),
                        arguments,
                    },
                ));
            }
        }
    }

    // ---- conditionals as values ----

    pub(super) fn inline(&mut self, inline: &Inline, line: u32) -> Value {
        match inline {
            Inline::If {
                selector,
                condition,
                when_true,
                when_false,
            } => self.if_value(
                selector,
                condition,
                when_true.as_deref(),
                when_false.as_deref(),
                line,
            ),
            Inline::IfNil {
                value,
                when_nil,
                otherwise,
            } => self.if_nil_value(value, when_nil.as_deref(), otherwise.as_ref(), line),
            Inline::While {
                condition,
                body,
                until,
            } => self.while_loop(condition, body, *until, line),
            Inline::Repeat { body } => self.repeat_loop(body, line),
            Inline::Times { count, body } => self.times_loop(count, body, line),
            Inline::Range {
                from,
                to,
                by,
                variable,
                body,
            } => self.range_loop([from, to], by.as_deref(), *variable, body, line),
        }
    }

    /// The value a conditional tests, named when a missing branch answers it.
    fn subject(&mut self, value: Value, is_answered: bool, line: u32) -> Erl {
        if is_answered {
            self.name(value, line)
        } else {
            value.erl
        }
    }

    fn if_value(
        &mut self,
        selector: &EcoString,
        condition: &Node,
        when_true: Option<&[Node]>,
        when_false: Option<&[Node]>,
        line: u32,
    ) -> Value {
        let condition = self.node(condition);
        let fact = condition.fact;
        let mut meeting = self.meeting(when_true.into_iter().chain(when_false).flatten());
        let mut results = Vec::new();
        let mut clauses = Vec::new();
        for (pattern, nodes) in [("true", when_true), ("false", when_false)] {
            let branch = match nodes {
                Some(nodes) => Branch::Nodes(nodes),
                None => Branch::Value(Erl::atom(line, pattern)),
            };
            let (body, fact) = self.branch(&branch, &mut meeting, line);
            results.push(fact);
            clauses.push(Clause::new(line, Erl::atom(line, pattern), body));
        }
        if fact != Fact::Boolean && !self.is_joined {
            let unchanged = self.unchanged(&meeting, line);
            clauses.push(self.not_boolean(selector, &unchanged, line));
        }
        let result = join(&results);
        self.meet(&meeting, line);
        self.conditional(Erl::case(line, condition.erl, clauses), result, &meeting, line)
    }

    fn if_nil_value(
        &mut self,
        value: &Node,
        when_nil: Option<&[Node]>,
        otherwise: Option<&(Option<VariableId>, Vec<Node>)>,
        line: u32,
    ) -> Value {
        let value = self.node(value);
        let subject = self.name(value, line);
        let other_nodes = otherwise.map(|(_, body)| body.as_slice());
        let mut meeting = self.meeting(when_nil.into_iter().chain(other_nodes).flatten());
        let (nil, other) = Self::nil_branches(when_nil, otherwise, &subject, line);
        let (nil, nil_fact) = self.branch(&nil, &mut meeting, line);
        let (other, other_fact) = self.branch(&other, &mut meeting, line);
        let clauses = vec![
            Clause::new(line, Erl::atom(line, "nil"), nil),
            Clause::new(line, Erl::var(line, "_"), other),
        ];
        self.meet(&meeting, line);
        self.conditional(
            Erl::case(line, subject, clauses),
            join(&[nil_fact, other_fact]),
            &meeting,
            line,
        )
    }

    fn nil_branches<'n>(
        when_nil: Option<&'n [Node]>,
        otherwise: Option<&'n (Option<VariableId>, Vec<Node>)>,
        subject: &Erl,
        line: u32,
    ) -> (Branch<'n>, Branch<'n>) {
        let nil = match when_nil {
            Some(nodes) => Branch::Nodes(nodes),
            None => Branch::Value(Erl::atom(line, "nil")),
        };
        let other = match otherwise {
            Some((parameter, nodes)) => Branch::Bound(*parameter, subject.clone(), nodes),
            None => Branch::Value(subject.clone()),
        };
        (nil, other)
    }

    fn not_boolean(&mut self, selector: &EcoString, before: &[Erl], line: u32) -> Clause {
        let other = self.fresh("other");
        let call = Erl::call(
            line,
            "beamtalk_error",
            "not_boolean",
            vec![
                Erl::var(line, other.clone()),
                Erl::atom(line, selector.clone()),
                Erl::list(line, Vec::new()),
            ],
        );
        let mut body = before.to_vec();
        body.push(call);
        Clause::new(line, Erl::var(line, other), body)
    }

    /// A conditional that assigns locals must run before they are read: it is named.
    pub(super) fn conditional(&mut self, case: Erl, fact: Fact, meeting: &Meeting, line: u32) -> Value {
        let value = Value { erl: case, fact };
        if meeting.variables.is_empty() {
            return value;
        }
        let erl = self.name(value, line);
        Value { erl, fact }
    }

    // ---- where branches meet ----

    /// Locals of the surroundings that the nodes may assign.
    pub(super) fn assigned_outside<'n>(&self, nodes: impl IntoIterator<Item = &'n Node>) -> Vec<VariableId> {
        let mut assigned = Vec::new();
        for node in nodes {
            collect_assigned(node, &mut assigned);
        }
        assigned.sort_unstable();
        assigned.dedup();
        assigned.retain(|id| {
            self.storage(*id) == Storage::Plain && matches!(self.places.get(id), Some(Place::Plain(_)))
        });
        assigned
    }

    pub(super) fn meeting<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Meeting {
        let assigned = self.assigned_outside(nodes);
        let variables: Vec<(VariableId, EcoString)> = assigned
            .into_iter()
            .map(|id| (id, self.fresh(&self.variable(id).name)))
            .collect();
        let facts = vec![None; variables.len()];
        Meeting { variables, facts }
    }

    /// Bindings of the common names to the present values.
    pub(super) fn unchanged(&mut self, meeting: &Meeting, line: u32) -> Vec<Erl> {
        meeting
            .variables
            .iter()
            .map(|(id, name)| {
                let value = self.read(*id, line);
                Erl::bind(line, name.clone(), value.erl)
            })
            .collect()
    }

    /// The common names are the values from here on.
    pub(super) fn meet(&mut self, meeting: &Meeting, line: u32) {
        for ((id, name), fact) in meeting.variables.iter().zip(&meeting.facts) {
            self.facts.insert(name.clone(), fact.unwrap_or(Fact::Unknown));
            self.places
                .insert(*id, Place::Plain(Erl::var(line, name.clone())));
        }
    }

    /// Lower one branch; its last statements bind the common names, its last value is the branch's.
    pub(super) fn branch(&mut self, branch: &Branch, meeting: &mut Meeting, line: u32) -> (Vec<Erl>, Fact) {
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        let value = match branch {
            Branch::Nodes(nodes) => self.sequence(nodes, line),
            Branch::Bound(id, value, nodes) => {
                self.bind(*id, value, line);
                self.sequence(nodes, line)
            }
            Branch::Value(erl) => {
                let fact = self.fact_of(erl);
                Value {
                    erl: erl.clone(),
                    fact,
                }
            }
        };
        let fact = value.fact;
        self.end_branch(value, meeting, line);
        let body = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        (body, fact)
    }

    pub(super) fn end_branch(&mut self, value: Value, meeting: &mut Meeting, line: u32) {
        if meeting.variables.is_empty() {
            self.push_value(value);
            return;
        }
        let answer = self.name(value, line);
        for index in 0..meeting.variables.len() {
            let Some((id, name)) = meeting.variables.get(index).cloned() else {
                continue;
            };
            let current = self.read(id, line);
            if let Some(known) = meeting.facts.get_mut(index) {
                *known = Some(known.map_or(current.fact, |fact| join(&[fact, current.fact])));
            }
            self.out.push(Erl::bind(line, name, current.erl));
        }
        self.out.push(answer);
    }

    // ---- returns ----

    /// `^` where the method cannot simply end: throw to its activation.
    pub(super) fn throw_return(&mut self, value: &Node, line: u32) -> Erl {
        let value = self.node(value);
        self.uses_home = true;
        Erl::call(
            line,
            "beamtalk_return",
            "return",
            vec![Erl::var(line, "Home"), value.erl],
        )
    }
}

/// A rest this small is repeated in each branch instead of becoming a function.
const SMALL_REST: usize = 6;

/// What happens after a branch.
enum Continuation<'n> {
    End,
    Inline(&'n [Node]),
    Function {
        name: EcoString,
        variables: Vec<VariableId>,
        free: Vec<EcoString>,
    },
}

pub(super) fn join(facts: &[Fact]) -> Fact {
    match facts.split_first() {
        Some((first, rest)) if rest.iter().all(|fact| fact == first) => *first,
        _ => Fact::Unknown,
    }
}

fn collect_assigned(node: &Node, out: &mut Vec<VariableId>) {
    match &node.kind {
        NodeKind::Assign { variable, .. } => out.push(*variable),
        NodeKind::Destructure { pattern, .. } => out.extend(pattern.variables()),
        _ => {}
    }
    node.for_each_child(&mut |child| collect_assigned(child, out));
}

/// A `^` that this conditional statement can reach without leaving statement position.
fn returns_directly(node: &Node) -> bool {
    let any = |nodes: &[Node]| nodes.iter().any(returns_directly);
    match &node.kind {
        NodeKind::Return(_) => true,
        NodeKind::Inline(Inline::If {
            when_true,
            when_false,
            ..
        }) => when_true.as_deref().is_some_and(any) || when_false.as_deref().is_some_and(any),
        NodeKind::Inline(Inline::IfNil {
            when_nil, otherwise, ..
        }) => when_nil.as_deref().is_some_and(any) || otherwise.as_ref().is_some_and(|(_, body)| any(body)),
        _ => false,
    }
}

/// Control never leaves the end of these statements.
fn always_returns(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match &node.kind {
        NodeKind::Return(_) => true,
        NodeKind::Inline(Inline::If {
            when_true: Some(yes),
            when_false: Some(no),
            ..
        }) => always_returns(yes) && always_returns(no),
        _ => false,
    })
}
