//! Loops in place: functions of their own, with the locals they assign as arguments.

use ecow::{EcoString, eco_format};

use super::control::join;
use super::{Fact, Lowerer, Place, Value};
use crate::erl::{self, Clause, Erl, ErlKind, Function};
use crate::ir::{Node, VariableId};

impl Lowerer<'_> {
    pub(super) fn while_loop(&mut self, condition: &[Node], body: &[Node], until: bool, line: u32) -> Value {
        self.over_session(&[condition, body], None, line, |lowerer| {
            lowerer.while_turns(condition, body, until, line);
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    fn while_turns(&mut self, condition: &[Node], body: &[Node], until: bool, line: u32) {
        let variables = self.assigned_outside(condition.iter().chain(body));
        self.endless(&variables, line, |lowerer, again| {
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
                clauses.push(lowerer.bad_condition(line));
            }
            lowerer.out.push(Erl::case(line, value.erl, clauses));
        });
    }

    pub(super) fn repeat_loop(&mut self, body: &[Node], line: u32) -> Value {
        let variables = self.assigned_outside(body);
        self.endless(&variables, line, |lowerer, again| {
            body.iter().for_each(|node| lowerer.effect(node));
            again(lowerer, None);
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    /// A loop that may run as long as the program, and shall still reach what is replaced meanwhile.
    fn endless(
        &mut self,
        variables: &[VariableId],
        line: u32,
        turn: impl Fn(&mut Self, &dyn Fn(&mut Self, Option<Erl>)),
    ) {
        let outer = std::mem::replace(&mut self.is_endless, true);
        self.looped(variables, None, line, |lowerer, _, again| turn(lowerer, again));
        self.is_endless = outer;
    }

    pub(super) fn times_loop(&mut self, count: &Node, body: &[Node], line: u32) -> Value {
        let count = self.node(count);
        let count = self.name(count, line);
        self.require_integers(std::slice::from_ref(&count), "timesRepeat:", 0, line);
        self.over_session(&[body], None, line, |lowerer| {
            let variables = lowerer.assigned_outside(body);
            lowerer.looped(
                &variables,
                Some(count.clone()),
                line,
                |lowerer, counter, again| {
                    let going = Erl::operator(line, ">", counter.clone(), Erl::integer(line, 0));
                    let next = Erl::operator(line, "-", counter.clone(), Erl::integer(line, 1));
                    lowerer.counted(going, next, &variables, line, again, |lowerer| {
                        body.iter().for_each(|node| lowerer.effect(node));
                    });
                },
            );
        });
        Value {
            erl: Erl::atom(line, "nil"),
            fact: Fact::Unknown,
        }
    }

    pub(super) fn range_loop(
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
        self.over_session(&[body], Some(variable), line, |lowerer| {
            let variables = lowerer.assigned_outside(body);
            lowerer.looped(&variables, Some(from.clone()), line, |lowerer, counter, again| {
                let going = range_test(counter, &to, &step, line);
                let next = Erl::operator(line, "+", counter.clone(), step.clone());
                lowerer.counted(going, next, &variables, line, again, |lowerer| {
                    let value = Value {
                        erl: counter.clone(),
                        fact: Fact::Number,
                    };
                    lowerer.declare(variable, value, line);
                    body.iter().for_each(|node| lowerer.effect(node));
                });
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
        let mut arguments = rest.to_vec();
        arguments.push(Erl::call(
            line,
            "beamtalk_block",
            "idle",
            vec![Erl::integer(line, arity)],
        ));
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

    pub(super) fn loop_call(&self, name: &EcoString, arguments: Vec<Erl>, line: u32) -> Erl {
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

    pub(super) fn emit_loop(
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

    pub(super) fn lifted_name(&mut self, what: &str) -> EcoString {
        self.next += 1;
        eco_format!("{} {what} {}", self.target.function, self.next)
    }

    pub(super) fn lift(
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

/// The Erlang variable of a named fun.
fn loop_variable(name: &str) -> EcoString {
    eco_format!("Loop{}", name.rsplit(' ').next().unwrap_or_default())
}

pub(super) fn range_test(counter: &Erl, to: &Erl, step: &Erl, line: u32) -> Erl {
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
        ErlKind::Var(_)
        | ErlKind::Atom(_)
        | ErlKind::Integer(_)
        | ErlKind::Float(_)
        | ErlKind::Binary(_)
        | ErlKind::Literal(_) => {}
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
