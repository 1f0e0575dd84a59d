//! `select:`, `collect:`, `inject:into:` and the like, with literal blocks that only compute: one loop, no list in between
//! (`docs/decisions/030-chains.md`).
//!
//! The blocks of a chain run in place, element by element, where that cannot be told from running one after the other: they
//! have no effects. Whatever the loop is not made for (an operand that is no number, a condition that is no Boolean, a
//! division by zero) is a failure in it, of which nothing is seen: the messages are then sent as they stand, from the start.

use ecow::EcoString;

use super::loops::range_test;
use super::send::{dispatched, is_native_operator};
use super::{Fact, Lowerer, Value};
use crate::erl::{Clause, Erl, ErlKind};
use crate::ir::{Closure, Inline, Node, NodeKind, Storage, TextPart, VariableId};
use crate::table::Kind;

/// Chains with more nodes than this are sent.
const LIMIT: usize = 80;

/// What a loop answers that met something it is not made for.
const APART: &str = "$bt_apart";

/// The messages on the way: the selector, its block, and where it stands.
pub(super) struct Stage<'n> {
    pub(super) selector: &'n EcoString,
    pub(super) closure: &'n Closure,
    pub(super) line: u32,
}

/// What becomes of the elements that come through.
enum End<'n> {
    /// A collection of them.
    Elements,
    Inject(&'n Node, &'n Closure),
    Count(&'n Closure),
    Size,
    Sum,
}

struct Chain<'n> {
    source: &'n Node,
    stages: Vec<Stage<'n>>,
    end: End<'n>,
}

/// A loop while it is lowered.
struct Turn {
    name: EcoString,
    /// The parameter: the elements, or the counter.
    parameter: EcoString,
    /// The same in the next turn.
    next: Erl,
    /// The value so far, where there is one.
    so_far: Option<EcoString>,
}

impl Lowerer<'_> {
    /// None where the messages are better sent one by one.
    pub(super) fn chain(
        &mut self,
        receiver: &Node,
        selector: &EcoString,
        arguments: &[Node],
        line: u32,
    ) -> Option<Value> {
        if self.is_joined {
            return None;
        }
        let chain = self.recognised(receiver, selector, arguments, line)?;
        let erl = match (range(chain.source), chain.stages.as_slice(), &chain.end) {
            (Some(bounds), ..) => self.over_range(&chain, &bounds, selector, line),
            (None, [stage], End::Elements) => self.one_message(chain.source, stage, line),
            (None, ..) => self.over_elements(&chain, selector, line),
        };
        let fact = Fact::Unknown;
        Some(Value { erl, fact })
    }

    fn recognised<'n>(
        &self,
        receiver: &'n Node,
        selector: &'n EcoString,
        arguments: &'n [Node],
        line: u32,
    ) -> Option<Chain<'n>> {
        let mut stages = Vec::new();
        let end = match (selector.as_str(), arguments) {
            ("inject:into:", [initial, block]) => End::Inject(initial, self.computing_block(block, 2)?),
            ("count:", [block]) => End::Count(self.computing_block(block, 1)?),
            ("size", []) => End::Size,
            ("sum", []) => End::Sum,
            _ => {
                stages.push(self.stage(selector, arguments, line)?);
                End::Elements
            }
        };
        let mut source = receiver;
        while let NodeKind::Send {
            receiver,
            selector,
            arguments,
        } = &source.kind
            && let Some(stage) = self.stage(selector, arguments, self.line(source.span))
        {
            stages.push(stage);
            source = receiver;
        }
        stages.reverse();
        let is_alone = matches!(end, End::Size | End::Sum) && stages.is_empty();
        let blocks = stages.iter().map(|stage| stage.closure);
        let size: usize = blocks
            .chain(end.closure())
            .flat_map(|closure| &closure.body)
            .map(super::size)
            .sum();
        // Sends to `self` have ways of their own. What is injected is evaluated when the blocks before have run.
        let is_own = matches!(source.kind, NodeKind::SelfReference);
        let is_early =
            matches!(end, End::Inject(initial, _) if !stages.is_empty() && !self.is_settled(initial));
        (!is_alone && !is_own && !is_early && size <= LIMIT).then_some(Chain { source, stages, end })
    }

    fn stage<'n>(&self, selector: &'n EcoString, arguments: &'n [Node], line: u32) -> Option<Stage<'n>> {
        let ("select:" | "reject:" | "collect:", [node]) = (selector.as_str(), arguments) else {
            return None;
        };
        Some(Stage {
            selector,
            closure: self.computing_block(node, 1)?,
            line,
        })
    }

    // ---- what only computes ----

    fn computing_block<'n>(&self, node: &'n Node, arity: usize) -> Option<&'n Closure> {
        let NodeKind::Closure(closure) = &node.kind else {
            return None;
        };
        let is_computing = closure.parameters.len() == arity
            && !closure.rebinds_self
            && !closure.body.is_empty()
            && closure.parameters.iter().all(|id| self.is_plain(*id))
            && closure.body.iter().all(|node| self.only_computes(node, closure));
        is_computing.then_some(closure)
    }

    /// Characters are numbers with messages of their own.
    fn is_plain(&self, id: VariableId) -> bool {
        let variable = self.variable(id);
        variable.storage == Storage::Plain && !variable.is_character
    }

    /// Can be evaluated sooner or later without anybody noticing.
    fn is_settled(&self, node: &Node) -> bool {
        match &node.kind {
            NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Atom(_) => true,
            NodeKind::Text(parts) => parts.iter().all(|part| matches!(part, TextPart::Text(_))),
            NodeKind::Variable(id) => self.variable(*id).storage == Storage::Plain,
            NodeKind::List { elements, tail } => elements.is_empty() && tail.is_none(),
            _ => false,
        }
    }

    /// Has no effect and runs nobody else's code, whatever its operands are (it may fail).
    fn only_computes(&self, node: &Node, block: &Closure) -> bool {
        let all = |nodes: &[Node]| nodes.iter().all(|node| self.only_computes(node, block));
        match &node.kind {
            NodeKind::Integer(_) | NodeKind::Float(_) | NodeKind::Atom(_) => true,
            NodeKind::Text(parts) => parts.iter().all(|part| matches!(part, TextPart::Text(_))),
            NodeKind::Variable(id) => !self.variable(*id).is_character,
            NodeKind::Field(_) => {
                let is_instance = !self.target.is_class_side && !self.target.is_test;
                is_instance
                    && !self.rebinds_self
                    && !self.target.is_expression
                    && (self.target.kind == Kind::Value
                        || (self.target.kind == Kind::Actor && self.closure_depth == 0))
            }
            NodeKind::List { elements, tail } => {
                all(elements) && tail.as_ref().is_none_or(|tail| self.only_computes(tail, block))
            }
            NodeKind::Array(elements) | NodeKind::Sequence(elements) => all(elements),
            NodeKind::Assign { variable, value } => {
                self.is_plain(*variable)
                    && !block.captures.contains(variable)
                    && self.only_computes(value, block)
            }
            NodeKind::Send {
                receiver,
                selector,
                arguments,
            } => {
                let is_known = match arguments.as_slice() {
                    [_] => is_native_operator(selector),
                    [] => {
                        selector == "not"
                            || (matches!(selector.as_str(), "isNil" | "notNil")
                                && !self.target.table.is_user_selector(selector))
                    }
                    _ => false,
                };
                is_known && self.only_computes(receiver, block) && all(arguments)
            }
            NodeKind::Inline(Inline::If {
                condition,
                when_true,
                when_false,
                ..
            }) => {
                self.only_computes(condition, block)
                    && when_true.as_deref().is_none_or(all)
                    && when_false.as_deref().is_none_or(all)
            }
            NodeKind::Inline(Inline::IfNil {
                value,
                when_nil,
                otherwise,
            }) => {
                self.only_computes(value, block)
                    && when_nil.as_deref().is_none_or(all)
                    && otherwise.as_ref().is_none_or(|(_, body)| all(body))
            }
            _ => false,
        }
    }

    // ---- in one loop ----

    fn over_elements(&mut self, chain: &Chain, selector: &EcoString, line: u32) -> Erl {
        let mut values = self.operands(std::iter::once(chain.source).chain(chain.end.initial()));
        let source = values.remove(0);
        let source = self.name(source, line);
        let initial = values.pop().map(|value| self.name(value, line));
        let [all, each, rest, given] = ["l", "e", "r", "l"].map(|name| self.fresh(name));
        let turn = self.turn(chain, all, Erl::var(line, rest.clone()));
        let element = Erl::var(line, each);
        let body = self.turn_body(chain, element.clone(), &turn, line);
        let more = ErlKind::List(vec![element], Some(Box::new(Erl::var(line, rest))));
        let clauses = vec![
            Clause::new(line, Erl::new(line, more), body),
            Clause::new(line, Erl::list(line, Vec::new()), vec![turn.end(line)]),
        ];
        let case = Erl::case(line, Erl::var(line, turn.parameter.clone()), clauses);
        let call = self.turned(turn, case, Erl::var(line, given.clone()), initial.clone(), line);
        let run = Clause::new(line, Erl::var(line, given), vec![call]);
        let function = match chain.end {
            End::Elements => "elements",
            End::Inject(..) | End::Count(_) | End::Size | End::Sum => "value",
        };
        let arguments = vec![source.clone(), Erl::new(line, ErlKind::Fun(vec![run]))];
        let joined = Erl::call(line, "beamtalk_chain", function, arguments);
        self.or_apart(chain, selector, joined, source, initial, line)
    }

    fn over_range(&mut self, chain: &Chain, bounds: &[&Node], selector: &EcoString, line: u32) -> Erl {
        let values = self.operands(bounds.iter().copied().chain(chain.end.initial()));
        let mut values: Vec<Erl> = values.into_iter().map(|value| self.name(value, line)).collect();
        let initial = values.split_off(bounds.len()).pop();
        let further = values.split_off(1);
        let (Some(from), Some(to)) = (values.pop(), further.first().cloned()) else {
            unreachable!("both bounds were lowered");
        };
        let step = further.get(1).cloned().unwrap_or_else(|| Erl::integer(line, 1));
        let counter = self.fresh("i");
        self.facts.insert(counter.clone(), Fact::Number);
        let each = Erl::var(line, counter.clone());
        let next = Erl::operator(line, "+", each.clone(), step.clone());
        let going = range_test(&each, &to, &step, line);
        let turn = self.turn(chain, counter, next);
        let body = self.turn_body(chain, each, &turn, line);
        let clauses = vec![
            Clause::new(line, Erl::atom(line, "true"), body),
            Clause::new(line, Erl::atom(line, "false"), vec![turn.end(line)]),
        ];
        let case = Erl::case(line, going, clauses);
        let call = self.turned(turn, case, from.clone(), initial.clone(), line);
        let run = Clause {
            patterns: Vec::new(),
            guards: Vec::new(),
            body: vec![call],
            line,
        };
        let run = Erl::new(line, ErlKind::Fun(vec![run]));
        let joined = Erl::call(line, "beamtalk_chain", "range", vec![from.clone(), to, step, run]);
        let made = if bounds.len() == 2 { "to:" } else { "to:by:" };
        let source = dispatched(from, &made.into(), further, self.line(chain.source.span)).erl;
        self.or_apart(chain, selector, joined, source, initial, line)
    }

    fn turn(&mut self, chain: &Chain, parameter: EcoString, next: Erl) -> Turn {
        let so_far = match chain.end {
            End::Elements => None,
            End::Inject(..) | End::Count(_) | End::Size | End::Sum => Some(self.fresh("so_far")),
        };
        Turn {
            name: self.lifted_name("loop"),
            parameter,
            next,
            so_far,
        }
    }

    /// What a turn does with an element, which goes through all blocks before the next turn.
    fn turn_body(&mut self, chain: &Chain, element: Erl, turn: &Turn, line: u32) -> Vec<Erl> {
        self.is_joined = true;
        let fact = self.fact_of(&element);
        let body = self.aside(|lowerer| lowerer.through(chain, 0, Value { erl: element, fact }, turn, line));
        self.is_joined = false;
        body
    }

    /// The function of the loop, and its first call.
    fn turned(&mut self, turn: Turn, body: Erl, first: Erl, initial: Option<Erl>, line: u32) -> Erl {
        let mut arguments = vec![first];
        if turn.so_far.is_some() {
            arguments.push(initial.unwrap_or_else(|| Erl::integer(line, 0)));
        }
        let parameters: Vec<EcoString> = std::iter::once(turn.parameter).chain(turn.so_far).collect();
        self.emit_loop(&turn.name, &parameters, vec![body], arguments, line)
    }

    /// The element at the block with this index.
    fn through(&mut self, chain: &Chain, index: usize, element: Value, turn: &Turn, line: u32) {
        let Some(stage) = chain.stages.get(index) else {
            return self.arrived(chain, element, turn, line);
        };
        let value = self.in_place(stage.closure, [element.clone()], stage.line);
        if stage.selector == "collect:" {
            let fact = value.fact;
            let erl = self.name(value, stage.line);
            return self.through(chain, index + 1, Value { erl, fact }, turn, line);
        }
        let kept = self.aside(|lowerer| lowerer.through(chain, index + 1, element, turn, line));
        let dropped = vec![self.again(turn, turn.so_far_value(line), line)];
        let [yes, no] = if stage.selector == "select:" {
            [kept, dropped]
        } else {
            [dropped, kept]
        };
        self.out.push(decided(value, yes, no, stage.line));
    }

    fn arrived(&mut self, chain: &Chain, element: Value, turn: &Turn, line: u32) {
        let so_far = turn.so_far_value(line);
        let plus = |so_far: Erl, right: Erl| Some(Erl::operator(line, "+", so_far, right));
        let one = Erl::integer(line, 1);
        let last = match (&chain.end, so_far) {
            (End::Inject(_, closure), Some(so_far)) => {
                let fact = Fact::Unknown;
                let value = self.in_place(closure, [Value { erl: so_far, fact }, element], line);
                self.again(turn, Some(value.erl), line)
            }
            (End::Count(closure), Some(so_far)) => {
                let value = self.in_place(closure, [element], line);
                let counted = self.again(turn, plus(so_far.clone(), one), line);
                let passed = self.again(turn, Some(so_far), line);
                decided(value, vec![counted], vec![passed], line)
            }
            (End::Size, Some(so_far)) => self.again(turn, plus(so_far, one), line),
            (End::Sum, Some(so_far)) => self.again(turn, plus(so_far, element.erl), line),
            (_, _) => {
                let rest = self.again(turn, None, line);
                Erl::new(line, ErlKind::List(vec![element.erl], Some(Box::new(rest))))
            }
        };
        self.out.push(last);
    }

    fn again(&self, turn: &Turn, so_far: Option<Erl>, line: u32) -> Erl {
        let arguments = std::iter::once(turn.next.clone()).chain(so_far).collect();
        self.loop_call(&turn.name, arguments, line)
    }

    pub(super) fn in_place<const N: usize>(
        &mut self,
        closure: &Closure,
        values: [Value; N],
        line: u32,
    ) -> Value {
        for (id, value) in closure.parameters.iter().zip(values) {
            self.declare(*id, value, line);
        }
        self.sequence(&closure.body, line)
    }

    /// The statements that lowering something leaves, apart from those here.
    pub(super) fn aside(&mut self, lower: impl FnOnce(&mut Self)) -> Vec<Erl> {
        let saved = (self.places.clone(), std::mem::take(&mut self.out));
        lower(self);
        self.places = saved.0;
        std::mem::replace(&mut self.out, saved.1)
    }

    // ---- one after the other ----

    /// What the loop answers, or what the messages do when they are sent.
    fn or_apart(
        &mut self,
        chain: &Chain,
        selector: &EcoString,
        joined: Erl,
        source: Erl,
        initial: Option<Erl>,
        line: u32,
    ) -> Erl {
        let sent = self.aside(|lowerer| {
            let mut value = source;
            for stage in &chain.stages {
                let block = lowerer.closure(stage.closure, stage.line);
                value = dispatched(value, stage.selector, vec![block], stage.line).erl;
            }
            if let Some(closure) = chain.end.closure() {
                let block = lowerer.closure(closure, line);
                value = dispatched(
                    value,
                    selector,
                    initial.into_iter().chain([block]).collect(),
                    line,
                )
                .erl;
            } else if !matches!(chain.end, End::Elements) {
                value = dispatched(value, selector, Vec::new(), line).erl;
            }
            lowerer.out.push(value);
        });
        let answer = self.fresh("t");
        let clauses = vec![
            Clause::new(line, Erl::atom(line, APART), sent),
            Clause::new(line, Erl::var(line, answer.clone()), vec![Erl::var(line, answer)]),
        ];
        Erl::case(line, joined, clauses)
    }
}

impl<'n> End<'n> {
    fn initial(&self) -> Option<&'n Node> {
        match self {
            End::Inject(initial, _) => Some(initial),
            End::Elements | End::Count(_) | End::Size | End::Sum => None,
        }
    }

    fn closure(&self) -> Option<&'n Closure> {
        match self {
            End::Inject(_, closure) | End::Count(closure) => Some(closure),
            End::Elements | End::Size | End::Sum => None,
        }
    }
}

impl Turn {
    fn so_far_value(&self, line: u32) -> Option<Erl> {
        self.so_far.clone().map(|name| Erl::var(line, name))
    }

    /// What the last turn answers.
    fn end(&self, line: u32) -> Erl {
        self.so_far_value(line)
            .unwrap_or_else(|| Erl::list(line, Vec::new()))
    }
}

/// Anything but a Boolean is a failure of the loop.
fn decided(value: Value, yes: Vec<Erl>, no: Vec<Erl>, line: u32) -> Erl {
    let clauses = vec![
        Clause::new(line, Erl::atom(line, "true"), yes),
        Clause::new(line, Erl::atom(line, "false"), no),
    ];
    Erl::case(line, value.erl, clauses)
}

/// The bounds of `a to: b` and `a to: b by: c`.
fn range(source: &Node) -> Option<Vec<&Node>> {
    let NodeKind::Send {
        receiver,
        selector,
        arguments,
    } = &source.kind
    else {
        return None;
    };
    matches!((selector.as_str(), arguments.len()), ("to:", 1) | ("to:by:", 2))
        .then(|| std::iter::once(&**receiver).chain(arguments).collect())
}
