//! Control flow in place: branches that meet in common variables, loops as functions, early returns.

use ecow::{EcoString, eco_format};

use super::{Fact, Lowerer, Place, Value};
use crate::erl::{self, Clause, Erl, ErlKind, Function};
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
                if let Some(id) = id {
                    self.declare(
                        *id,
                        Value {
                            erl: value.clone(),
                            fact: Fact::Unknown,
                        },
                        line,
                    );
                }
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
                // A return deeper inside still has to skip the rest.
                if nodes.iter().any(returns_directly) {
                    self.tail_then(nodes, continuation, line);
                } else {
                    nodes.iter().for_each(|node| self.effect(node));
                    self.continue_with(continuation, line);
                }
            }
        }
        let body = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        body
    }

    /// Statements with a return inside, followed by a lifted rest: the inner return is thrown.
    fn tail_then(&mut self, nodes: &[Node], continuation: &Continuation, line: u32) {
        nodes.iter().for_each(|node| self.effect(node));
        self.continue_with(continuation, line);
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
        if fact != Fact::Boolean {
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
            self.variable(*id).storage == Storage::Plain
                && matches!(self.places.get(id), Some(Place::Plain(_)))
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
                if let Some(id) = id {
                    self.declare(
                        *id,
                        Value {
                            erl: value.clone(),
                            fact: Fact::Unknown,
                        },
                        line,
                    );
                }
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

    // ---- loops ----

    fn while_loop(&mut self, condition: &[Node], body: &[Node], until: bool, line: u32) -> Value {
        let variables = self.assigned_outside(condition.iter().chain(body));
        self.looped(&variables, None, line, |lowerer, _, again| {
            let value = lowerer.sequence(condition, line);
            let fact = value.fact;
            let (go_on, stop) = if until {
                ("false", "true")
            } else {
                ("true", "false")
            };
            let saved = (lowerer.places.clone(), std::mem::take(&mut lowerer.out));
            body.iter().for_each(|node| lowerer.effect(node));
            again(lowerer, None);
            let go_body = std::mem::replace(&mut lowerer.out, saved.1);
            lowerer.places = saved.0;
            let end = lowerer.loop_result(&variables, line);
            let mut clauses = vec![
                Clause::new(line, Erl::atom(line, go_on), go_body),
                Clause::new(line, Erl::atom(line, stop), vec![end]),
            ];
            if fact != Fact::Boolean {
                let other = lowerer.fresh("other");
                let fault = Erl::call(
                    line,
                    "beamtalk_error",
                    "bad_condition",
                    vec![Erl::var(line, other.clone())],
                );
                clauses.push(Clause::new(line, Erl::var(line, other), vec![fault]));
            }
            lowerer.out.push(Erl::case(line, value.erl, clauses));
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    fn repeat_loop(&mut self, body: &[Node], line: u32) -> Value {
        let variables = self.assigned_outside(body);
        self.looped(&variables, None, line, |lowerer, _, again| {
            body.iter().for_each(|node| lowerer.effect(node));
            again(lowerer, None);
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    fn times_loop(&mut self, count: &Node, body: &[Node], line: u32) -> Value {
        let count = self.node(count);
        let count = self.name(count, line);
        self.require_integers(std::slice::from_ref(&count), "timesRepeat:", 0, line);
        let variables = self.assigned_outside(body);
        self.looped(&variables, Some(count), line, |lowerer, counter, again| {
            let going = Erl::operator(line, ">", counter.clone(), Erl::integer(line, 0));
            let next = Erl::operator(line, "-", counter.clone(), Erl::integer(line, 1));
            lowerer.counted(going, next, &variables, line, again, |lowerer| {
                body.iter().for_each(|node| lowerer.effect(node));
            });
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    fn range_loop(
        &mut self,
        bounds: [&Node; 2],
        by: Option<&Node>,
        variable: VariableId,
        body: &[Node],
        line: u32,
    ) -> Value {
        let values = self.operands(bounds.into_iter().chain(by));
        let named: Vec<Erl> = values.into_iter().map(|value| self.name(value, line)).collect();
        let selector = if by.is_some() { "to:by:do:" } else { "to:do:" };
        self.require_integers(&named, selector, 1, line);
        let mut named = named.into_iter();
        let (Some(from), Some(to)) = (named.next(), named.next()) else {
            unreachable!("both bounds were lowered");
        };
        let step = named.next().unwrap_or_else(|| Erl::integer(line, 1));
        let variables = self.assigned_outside(body);
        self.looped(&variables, Some(from), line, |lowerer, counter, again| {
            let going = range_test(counter, &to, &step, line);
            let next = Erl::operator(line, "+", counter.clone(), step.clone());
            lowerer.counted(going, next, &variables, line, again, |lowerer| {
                lowerer.declare(
                    variable,
                    Value {
                        erl: counter.clone(),
                        fact: Fact::Number,
                    },
                    line,
                );
                body.iter().for_each(|node| lowerer.effect(node));
            });
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    /// One turn of a counted loop: `case Going of true -> body, again(Next); false -> result end`.
    fn counted(
        &mut self,
        going: Erl,
        next: Erl,
        variables: &[VariableId],
        line: u32,
        again: &dyn Fn(&mut Self, Option<Erl>),
        body: impl FnOnce(&mut Self),
    ) {
        let end = self.loop_result(variables, line);
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        body(self);
        again(self, Some(next));
        let turn = std::mem::replace(&mut self.out, saved.1);
        self.places = saved.0;
        let clauses = vec![
            Clause::new(line, Erl::atom(line, "true"), turn),
            Clause::new(line, Erl::atom(line, "false"), vec![end]),
        ];
        self.out.push(Erl::case(line, going, clauses));
    }

    /// Anything but Integers is sent the real message, which says what is wrong.
    fn require_integers(&mut self, values: &[Erl], selector: &str, arity: usize, line: u32) {
        let unknown: Vec<&Erl> = values
            .iter()
            .filter(|v| !matches!(v.kind, ErlKind::Integer(_)))
            .collect();
        let (false, Some((first, rest))) = (unknown.is_empty(), values.split_first()) else {
            return;
        };
        let guards = unknown
            .iter()
            .map(|v| Erl::call(line, "erlang", "is_integer", vec![(*v).clone()]))
            .collect();
        let parameters = (0..arity).map(|_| Erl::var(line, "_")).collect();
        let clause = Clause {
            patterns: parameters,
            guards: Vec::new(),
            body: vec![Erl::atom(line, "nil")],
            line,
        };
        let mut arguments = rest.to_vec();
        arguments.push(Erl::new(line, ErlKind::Fun(vec![clause])));
        let send = super::send::dispatched(first.clone(), &selector.into(), arguments, line).erl;
        let subject = Erl::atom(line, "nil");
        let clauses = vec![
            Clause::guarded(line, Erl::var(line, "_"), guards, vec![Erl::atom(line, "nil")]),
            Clause::new(line, Erl::var(line, "_"), vec![send]),
        ];
        self.out.push(Erl::case(line, subject, clauses));
    }

    /// What a loop function answers: the loop variables' last values.
    fn loop_result(&mut self, variables: &[VariableId], line: u32) -> Erl {
        let mut values: Vec<Erl> = variables.iter().map(|id| self.read(*id, line).erl).collect();
        match values.len() {
            0 => Erl::atom(line, "nil"),
            1 => values.remove(0),
            _ => Erl::tuple(line, values),
        }
    }

    /// Emit a loop. `turn` lowers one turn, ending in `again` or in the loop's result. The locals `variables` and,
    /// for counted loops, the counter travel as arguments.
    fn looped(
        &mut self,
        variables: &[VariableId],
        counter: Option<Erl>,
        line: u32,
        turn: impl Fn(&mut Self, &Erl, &dyn Fn(&mut Self, Option<Erl>)),
    ) {
        let name = self.lifted_name("loop");
        let initial: Vec<Value> = variables.iter().map(|id| self.read(*id, line)).collect();
        let parameters: Vec<EcoString> = variables
            .iter()
            .map(|id| self.fresh(&self.variable(*id).name))
            .collect();
        let counter_name = self.fresh("i");
        self.facts.insert(counter_name.clone(), Fact::Number);
        let counter_variable = Erl::var(line, counter_name.clone());
        let mut all_parameters = parameters.clone();
        all_parameters.extend(counter.iter().map(|_| counter_name.clone()));
        // First suppose that numbers stay numbers; when a turn shows otherwise, lower again without.
        let mut facts: Vec<Fact> = initial.iter().map(|value| value.fact).collect();
        let body = loop {
            let mark = (
                self.lifted.len(),
                self.places.clone(),
                std::mem::take(&mut self.out),
            );
            for ((id, parameter), fact) in variables.iter().zip(&parameters).zip(&facts) {
                self.facts.insert(parameter.clone(), *fact);
                self.places
                    .insert(*id, Place::Plain(Erl::var(line, parameter.clone())));
            }
            let seen = std::cell::RefCell::new(facts.clone());
            let call_name = name.clone();
            turn(
                self,
                &counter_variable,
                &|lowerer: &mut Self, next: Option<Erl>| {
                    let mut arguments = Vec::new();
                    for (index, id) in variables.iter().enumerate() {
                        let value = lowerer.read(*id, line);
                        if let Some(known) = seen.borrow_mut().get_mut(index) {
                            *known = join(&[*known, value.fact]);
                        }
                        arguments.push(value.erl);
                    }
                    arguments.extend(next);
                    let again = lowerer.loop_call(&call_name, arguments, line);
                    lowerer.out.push(again);
                },
            );
            let body = std::mem::replace(&mut self.out, mark.2);
            self.places = mark.1;
            let seen = seen.into_inner();
            if seen == facts {
                break body;
            }
            facts = seen;
            self.lifted.truncate(mark.0);
        };
        let mut arguments: Vec<Erl> = initial.into_iter().map(|value| value.erl).collect();
        arguments.extend(counter);
        let call = self.emit_loop(&name, &all_parameters, body, arguments, line);
        self.after_loop(variables, &facts, call, line);
    }

    fn loop_call(&self, name: &EcoString, arguments: Vec<Erl>, line: u32) -> Erl {
        if self.target.is_expression {
            let function = Box::new(Erl::var(line, loop_variable(name)));
            Erl::new(line, ErlKind::Apply { function, arguments })
        } else {
            Erl::new(
                line,
                ErlKind::LocalCall {
                    function: name.clone(),
                    arguments,
                },
            )
        }
    }

    fn emit_loop(
        &mut self,
        name: &EcoString,
        parameters: &[EcoString],
        mut body: Vec<Erl>,
        mut arguments: Vec<Erl>,
        line: u32,
    ) -> Erl {
        if self.target.is_expression {
            let patterns = parameters.iter().map(|p| Erl::var(line, p.clone())).collect();
            let clause = Clause {
                patterns,
                guards: Vec::new(),
                body,
                line,
            };
            let function = Box::new(Erl::new(
                line,
                ErlKind::NamedFun(loop_variable(name), vec![clause]),
            ));
            return Erl::new(line, ErlKind::Apply { function, arguments });
        }
        let free = erl::free_variables(&body, parameters);
        body.iter_mut().for_each(|e| append_arguments(e, name, &free));
        self.lift(name, parameters, &free, body, line);
        arguments.extend(free.iter().map(|name| Erl::var(line, name.clone())));
        Erl::new(
            line,
            ErlKind::LocalCall {
                function: name.clone(),
                arguments,
            },
        )
    }

    fn after_loop(&mut self, variables: &[VariableId], facts: &[Fact], call: Erl, line: u32) {
        let names: Vec<EcoString> = variables
            .iter()
            .map(|id| self.fresh(&self.variable(*id).name))
            .collect();
        let statement = match names.as_slice() {
            [] => call,
            [only] => Erl::bind(line, only.clone(), call),
            several => {
                let pattern = Erl::tuple(line, several.iter().map(|n| Erl::var(line, n.clone())).collect());
                Erl::new(line, ErlKind::Match(Box::new(pattern), Box::new(call)))
            }
        };
        self.out.push(statement);
        for ((id, name), fact) in variables.iter().zip(names).zip(facts) {
            self.facts.insert(name.clone(), *fact);
            self.places.insert(*id, Place::Plain(Erl::var(line, name)));
        }
    }

    fn lifted_name(&mut self, what: &str) -> EcoString {
        self.next += 1;
        eco_format!("{} {what} {}", self.target.function, self.next)
    }

    fn lift(
        &mut self,
        name: &EcoString,
        parameters: &[EcoString],
        free: &[EcoString],
        body: Vec<Erl>,
        line: u32,
    ) {
        let patterns: Vec<Erl> = parameters
            .iter()
            .chain(free)
            .map(|parameter| Erl::var(line, parameter.clone()))
            .collect();
        let arity = patterns.len();
        let clause = Clause {
            patterns,
            guards: Vec::new(),
            body,
            line,
        };
        self.lifted.push(Function {
            name: name.clone(),
            arity,
            clauses: vec![clause],
            line,
        });
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

/// The Erlang variable of a named fun.
fn loop_variable(name: &str) -> EcoString {
    eco_format!("Loop{}", name.rsplit(' ').next().unwrap_or_default())
}

fn range_test(counter: &Erl, to: &Erl, step: &Erl, line: u32) -> Erl {
    let up = || Erl::operator(line, "=<", counter.clone(), to.clone());
    let down = || Erl::operator(line, ">=", counter.clone(), to.clone());
    if let ErlKind::Integer(value) = &step.kind {
        return match value.sign() {
            num_bigint::Sign::Plus => up(),
            num_bigint::Sign::Minus => down(),
            num_bigint::Sign::NoSign => Erl::atom(line, "false"),
        };
    }
    let zero = || Erl::integer(line, 0);
    let ascending = Erl::operator(
        line,
        "andalso",
        Erl::operator(line, ">", step.clone(), zero()),
        up(),
    );
    let descending = Erl::operator(
        line,
        "andalso",
        Erl::operator(line, "<", step.clone(), zero()),
        down(),
    );
    Erl::operator(line, "orelse", ascending, descending)
}

fn join(facts: &[Fact]) -> Fact {
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

/// Give the recursive calls of a loop the free variables of its body.
fn append_arguments(erl: &mut Erl, name: &EcoString, free: &[EcoString]) {
    let line = erl.line;
    if let ErlKind::LocalCall { function, arguments } = &mut erl.kind
        && function == name
    {
        arguments.extend(free.iter().map(|variable| Erl::var(line, variable.clone())));
        return;
    }
    each_child(erl, &mut |child| append_arguments(child, name, free));
}

fn each_child(erl: &mut Erl, visit: &mut impl FnMut(&mut Erl)) {
    fn clauses(clauses: &mut [Clause], visit: &mut impl FnMut(&mut Erl)) {
        for clause in clauses {
            clause
                .patterns
                .iter_mut()
                .chain(&mut clause.guards)
                .chain(&mut clause.body)
                .for_each(&mut *visit);
        }
    }
    match &mut erl.kind {
        ErlKind::Var(_) | ErlKind::Atom(_) | ErlKind::Integer(_) | ErlKind::Float(_) | ErlKind::Binary(_) => {
        }
        ErlKind::Tuple(elements) | ErlKind::Block(elements) => elements.iter_mut().for_each(visit),
        ErlKind::List(elements, tail) => {
            elements.iter_mut().for_each(&mut *visit);
            if let Some(tail) = tail {
                visit(tail);
            }
        }
        ErlKind::Map(pairs) | ErlKind::MapPattern(pairs) => {
            for (key, value) in pairs {
                visit(key);
                visit(value);
            }
        }
        ErlKind::MapUpdate(base, pairs) => {
            visit(base);
            for (key, value) in pairs {
                visit(key);
                visit(value);
            }
        }
        ErlKind::BinaryPattern(elements) => {
            for element in elements {
                visit(&mut element.value);
                if let Some(size) = &mut element.size {
                    visit(size);
                }
            }
        }
        ErlKind::Match(left, right) | ErlKind::Operator(_, left, right) => {
            visit(left);
            visit(right);
        }
        ErlKind::Call { arguments, .. } | ErlKind::LocalCall { arguments, .. } => {
            arguments.iter_mut().for_each(visit);
        }
        ErlKind::Apply { function, arguments } => {
            visit(function);
            arguments.iter_mut().for_each(visit);
        }
        ErlKind::Case { value, clauses: all } => {
            visit(value);
            clauses(all, visit);
        }
        ErlKind::Fun(all) | ErlKind::NamedFun(_, all) => clauses(all, visit),
    }
}
