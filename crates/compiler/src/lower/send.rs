//! Sends: operators behind type tests, direct self-sends, blocks called in place, everything else dispatched.

use ecow::EcoString;

use super::{Fact, Lowerer, Value};
use crate::erl::{BinaryElement, Clause, Erl, ErlKind};
use crate::ir::{Node, NodeKind};
use crate::names;
use crate::table::Kind;

/// Texts from this size on are made only where the evaluation may have them (`LONG_TEXT` of `beamtalk_dispatch`).
const LONG_TEXT: usize = 64 << 20;

/// The Erlang operator of an arithmetic selector.
fn arithmetic(selector: &str) -> Option<&'static str> {
    Some(match selector {
        "+" => "+",
        "-" => "-",
        "*" => "*",
        "/" => "/",
        "%" => "rem",
        _ => return None,
    })
}

/// Whether an operation fails whatever number is on its left. Erlang's compiler would fold it into a failure without
/// operands, of which nobody could say what was wrong.
fn is_doomed(operator: &str, right: &Erl) -> bool {
    match &right.kind {
        ErlKind::Integer(number) => matches!(operator, "/" | "rem") && *number == 0.into(),
        ErlKind::Float(number) => operator == "/" && *number == 0.0,
        ErlKind::Atom(_) | ErlKind::Binary(_) | ErlKind::Tuple(_) | ErlKind::List(..) | ErlKind::Map(_) => {
            true
        }
        _ => false,
    }
}

fn ordering(selector: &str) -> Option<&'static str> {
    Some(match selector {
        "<" => "<",
        ">" => ">",
        "<=" => "=<",
        ">=" => ">=",
        _ => return None,
    })
}

fn equality(selector: &str) -> Option<&'static str> {
    Some(match selector {
        "==" => "==",
        "/=" => "/=",
        "=:=" => "=:=",
        "=/=" => "=/=",
        _ => return None,
    })
}

pub(super) fn is_numeric_operator(selector: &str) -> bool {
    arithmetic(selector).is_some() || ordering(selector).is_some()
}

/// An operator of Erlang where its operands are numbers, or whatever they are.
pub(super) fn is_native_operator(selector: &str) -> bool {
    is_numeric_operator(selector) || equality(selector).is_some()
}

impl Lowerer<'_> {
    pub(super) fn send(
        &mut self,
        receiver: &Node,
        selector: &EcoString,
        arguments: &[Node],
        line: u32,
    ) -> Value {
        if let [argument] = arguments
            && let Some(value) = self.operator(receiver, selector, argument, line)
        {
            return value;
        }
        if let Some(value) = self.known_block(receiver, selector, arguments, line) {
            return value;
        }
        if let Some(value) = self.chain(receiver, selector, arguments, line) {
            return value;
        }
        if self.is_character(receiver) {
            return self.character_send(receiver, selector, arguments, line);
        }
        if matches!(receiver.kind, NodeKind::SelfReference) && !self.rebinds_self {
            return self.self_send(selector, arguments, line);
        }
        let mut values = self.operands(std::iter::once(receiver).chain(arguments));
        let receiver = values.remove(0);
        let arguments: Vec<Erl> = values.into_iter().map(|value| value.erl).collect();
        match (selector.as_str(), arguments.len()) {
            ("not", 0) if receiver.fact == Fact::Boolean || self.is_joined => {
                let not = Erl::call(line, "erlang", "not", vec![receiver.erl]);
                Value {
                    erl: not,
                    fact: Fact::Boolean,
                }
            }
            ("isNil", 0) if !self.target.table.is_user_selector(selector) => nil_test("=:=", receiver, line),
            ("notNil", 0) if !self.target.table.is_user_selector(selector) => nil_test("=/=", receiver, line),
            ("value", 0) | ("value:", 1) | ("value:value:", 2) | ("value:value:value:", 3) => {
                self.block_call(receiver, selector, arguments, line)
            }
            ("at:", 1) => accessed("at", receiver.erl, arguments, line),
            ("at:put:", 2) => accessed("at_put", receiver.erl, arguments, line),
            _ => dispatched(receiver.erl, selector, arguments, line),
        }
    }

    /// A name for each, so that it is computed once.
    fn names(&mut self, values: Vec<Erl>, line: u32) -> Vec<Erl> {
        let named = values.into_iter().map(|erl| {
            let fact = self.fact_of(&erl);
            self.name(Value { erl, fact }, line)
        });
        named.collect()
    }

    /// `block value: x`: a call when it is a fun of that arity, else a send, which finds what is wrong.
    fn block_call(&mut self, receiver: Value, selector: &EcoString, arguments: Vec<Erl>, line: u32) -> Value {
        let arity = arguments.len();
        let block = self.name(receiver, line);
        let arguments = self.names(arguments, line);
        let test = Erl::call(
            line,
            "erlang",
            "is_function",
            vec![block.clone(), Erl::integer(line, arity)],
        );
        let call = Erl::new(
            line,
            ErlKind::Apply {
                function: Box::new(block.clone()),
                arguments: arguments.clone(),
            },
        );
        let send = dispatched(block.clone(), selector, arguments, line).erl;
        Value {
            erl: either(block, vec![test], call, send, line),
            fact: Fact::Unknown,
        }
    }

    fn operator(
        &mut self,
        receiver: &Node,
        selector: &EcoString,
        argument: &Node,
        line: u32,
    ) -> Option<Value> {
        if let Some(operator) = equality(selector) {
            let [left, right] = self.two(receiver, argument);
            return Some(Value {
                erl: Erl::operator(line, operator, left.erl, right.erl),
                fact: Fact::Boolean,
            });
        }
        if selector == "++" {
            let operands = self.two(receiver, argument);
            let erl = self.concatenation(operands, line);
            return Some(Value {
                erl,
                fact: Fact::Unknown,
            });
        }
        let (operator, is_ordering) = match (arithmetic(selector), ordering(selector)) {
            (Some(operator), _) => (operator, false),
            (_, Some(operator)) => (operator, true),
            _ => return None,
        };
        let [left, right] = self.two(receiver, argument);
        let known = if is_ordering { Fact::Boolean } else { Fact::Number };
        if !is_ordering && !self.kept.is_empty() {
            let erl = self.held_operation(operator, [left.erl, right.erl], line);
            return Some(Value { erl, fact: known });
        }
        let native = |left: Erl, right: Erl| {
            if !is_ordering && is_doomed(operator, &right) {
                let arguments = vec![Erl::atom(line, operator), left, right];
                return Erl::call(line, "beamtalk_number", "fail", arguments);
            }
            Erl::operator(line, operator, left, right)
        };
        // Of an operation on a literal the VM does not tell what its other operand was.
        let is_literal = matches!(left.erl.kind, ErlKind::Integer(_) | ErlKind::Float(_));
        let is_open = right.fact != Fact::Number && !is_doomed(operator, &right.erl);
        if is_literal && is_open && !is_ordering && !self.is_joined {
            let right = self.name(right, line);
            let test = if operator == "rem" {
                "is_integer"
            } else {
                "is_number"
            };
            let mut tests = vec![Erl::call(line, "erlang", test, vec![right.clone()])];
            if matches!(operator, "/" | "rem") {
                tests.push(Erl::operator(line, "/=", right.clone(), Erl::integer(line, 0)));
            }
            let failing = vec![Erl::atom(line, operator), left.erl.clone(), right.clone()];
            let native = native(left.erl, right.clone());
            let failure = Erl::call(line, "beamtalk_number", "fail", failing);
            let erl = either(right, tests, native, failure, line);
            return Some(Value { erl, fact: known });
        }
        if left.fact == Fact::Number || (self.is_joined && !is_ordering) {
            let erl = native(left.erl, right.erl);
            return Some(Value { erl, fact: known });
        }
        // The right operand is named first only if the left one needs no naming, which keeps their order.
        let left = self.name(left, line);
        let right = self.name(right, line);
        let test = Erl::call(line, "erlang", "is_number", vec![left.clone()]);
        let native = native(left.clone(), right.clone());
        if self.is_joined {
            let erl = natively_ordered(left, native, line);
            return Some(Value { erl, fact: known });
        }
        let fallback = if is_ordering {
            let name = Erl::atom(line, selector.clone());
            Erl::call(
                line,
                "beamtalk_dispatch",
                "compare",
                vec![name, left.clone(), right],
            )
        } else {
            dispatched(left.clone(), selector, vec![right], line).erl
        };
        Some(Value {
            erl: either(left, vec![test], native, fallback, line),
            fact: Fact::Unknown,
        })
    }

    /// Two texts that are not long are joined here; everything else is `beamtalk_dispatch`'s.
    fn concatenation(&mut self, operands: [Value; 2], line: u32) -> Erl {
        let joined = |operands: Vec<Erl>| Erl::call(line, "beamtalk_dispatch", "concat", operands);
        let is_text = |erl: &Erl| matches!(erl.kind, ErlKind::Binary(_));
        let is_other = |value: &Value| {
            let is_literal = !matches!(value.erl.kind, ErlKind::Var(_)) && value.erl.is_trivial();
            let is_collection = matches!(
                value.erl.kind,
                ErlKind::List(..) | ErlKind::Map(_) | ErlKind::Tuple(_)
            );
            value.fact != Fact::Unknown || is_collection || (is_literal && !is_text(&value.erl))
        };
        if self.target.is_expression || operands.iter().any(is_other) {
            return joined(operands.map(|value| value.erl).into());
        }
        let operands = operands.map(|value| self.name(value, line));
        let unknown: Vec<&Erl> = operands.iter().filter(|erl| !is_text(erl)).collect();
        let mut tests: Vec<Erl> = unknown
            .iter()
            .map(|erl| Erl::call(line, "erlang", "is_binary", vec![(*erl).clone()]))
            .collect();
        let size = |erl: &Erl| match &erl.kind {
            ErlKind::Binary(text) => Erl::integer(line, text.len()),
            _ => Erl::call(line, "erlang", "byte_size", vec![erl.clone()]),
        };
        let size = Erl::operator(line, "+", size(&operands[0]), size(&operands[1]));
        tests.push(Erl::operator(line, "<", size, Erl::integer(line, LONG_TEXT)));
        let Some(subject) = unknown.first().map(|erl| (*erl).clone()) else {
            return joined(operands.into());
        };
        let wildcard = || Erl::var(line, "_");
        let bytes = operands.iter().cloned().map(BinaryElement::bytes).collect();
        let text = Erl::new(line, ErlKind::BinaryPattern(bytes));
        let clauses = vec![
            Clause::guarded(line, wildcard(), tests, vec![text]),
            Clause::new(line, wildcard(), vec![joined(operands.into())]),
        ];
        Erl::case(line, subject, clauses)
    }

    fn two(&mut self, left: &Node, right: &Node) -> [Value; 2] {
        let mut values = self.operands([left, right]);
        let right = values.pop().expect("two operands were lowered");
        let left = values.pop().expect("two operands were lowered");
        [left, right]
    }

    /// Messages whose receiver is a literal block.
    fn known_block(
        &mut self,
        receiver: &Node,
        selector: &str,
        arguments: &[Node],
        line: u32,
    ) -> Option<Value> {
        if !matches!(receiver.kind, NodeKind::Closure(_)) {
            return None;
        }
        let function = match (selector, arguments.len()) {
            ("on:do:", 2) => "on_do",
            ("ensure:", 1) => "ensure",
            _ => return None,
        };
        let values = self.operand_expressions(std::iter::once(receiver).chain(arguments));
        Some(Value {
            erl: Erl::call(line, "beamtalk_block", function, values),
            fact: Fact::Unknown,
        })
    }

    fn is_character(&self, node: &Node) -> bool {
        crate::resolve::is_static_character(node, self.variables)
    }

    fn character_send(
        &mut self,
        receiver: &Node,
        selector: &EcoString,
        arguments: &[Node],
        line: u32,
    ) -> Value {
        let mut values = self.operand_expressions(std::iter::once(receiver).chain(arguments));
        let receiver = values.remove(0);
        Value {
            erl: as_character(receiver, selector, values, line),
            fact: Fact::Unknown,
        }
    }

    /// A pattern that matches exactly the instances of this class (or the class itself).
    pub(super) fn exact_pattern(&self, line: u32) -> Erl {
        let class = &self.target.class;
        let any = || Erl::var(line, "_");
        let reference = |name: EcoString| {
            Erl::tuple(
                line,
                vec![
                    Erl::atom(line, "beamtalk_object"),
                    Erl::atom(line, name),
                    any(),
                    any(),
                ],
            )
        };
        if self.target.is_class_side {
            reference(ecow::eco_format!("{class} class"))
        } else if self.target.kind == Kind::Actor {
            reference(class.clone())
        } else {
            Erl::new(
                line,
                ErlKind::MapPattern(vec![(
                    Erl::atom(line, "$beamtalk_class"),
                    Erl::atom(line, class.clone()),
                )]),
            )
        }
    }

    /// `self m`: a local call when this class defines `m` and the receiver is exactly of this class. A block may be called, and
    /// an endless loop go on, long after the method was replaced: they ask the tables each time.
    fn self_send(&mut self, selector: &EcoString, arguments: &[Node], line: u32) -> Value {
        let values = self.operands(arguments);
        let own = self.own(line);
        let is_own = self.target.own_selectors.contains(selector)
            && self.closure_depth == 0
            && !self.is_endless
            && !self.target.is_expression;
        if !is_own {
            let values = values.into_iter().map(|value| value.erl).collect();
            return dispatched(own, selector, values, line);
        }
        let function = if *selector == self.target.selector {
            self.target.function.clone()
        } else if self.target.is_class_side {
            names::class_function(selector)
        } else {
            names::instance_function(selector)
        };
        let mut direct = vec![own.clone()];
        if let Some(fast) = &self.fast
            && *selector == self.target.selector
            && fast
                .numeric
                .iter()
                .zip(&values)
                .all(|(numeric, value)| !numeric || value.fact == Fact::Number)
        {
            if fast.without_self {
                direct.clear();
            }
            direct.extend(values.into_iter().map(|value| value.erl));
            let erl = Erl::new(
                line,
                ErlKind::LocalCall {
                    function: fast.function.clone(),
                    arguments: direct,
                },
            );
            return Value {
                erl,
                fact: Fact::Unknown,
            };
        }
        let values: Vec<Erl> = values.into_iter().map(|value| value.erl).collect();
        if self.self_is_exact {
            direct.extend(values);
            let erl = Erl::new(
                line,
                ErlKind::LocalCall {
                    function,
                    arguments: direct,
                },
            );
            return Value {
                erl,
                fact: Fact::Unknown,
            };
        }
        let values = self.names(values, line);
        direct.extend(values.clone());
        let direct = Erl::new(
            line,
            ErlKind::LocalCall {
                function,
                arguments: direct,
            },
        );
        let send = dispatched(own.clone(), selector, values, line).erl;
        let clauses = vec![
            Clause::new(line, self.exact_pattern(line), vec![direct]),
            Clause::new(line, Erl::var(line, "_"), vec![send]),
        ];
        Value {
            erl: Erl::case(line, own, clauses),
            fact: Fact::Unknown,
        }
    }
}

/// The order of what is no object with an order of its own; anything else is a failure of the chain's loop.
fn natively_ordered(left: Erl, native: Erl, line: u32) -> Erl {
    let clauses = ["is_number", "is_binary"]
        .map(|test| Erl::call(line, "erlang", test, vec![left.clone()]))
        .map(|test| Clause::guarded(line, Erl::var(line, "_"), vec![test], vec![native.clone()]));
    Erl::case(line, left, clauses.into())
}

/// `then` if the guards hold, else `otherwise`; the subject is computed in both cases.
fn either(subject: Erl, guards: Vec<Erl>, then: Erl, otherwise: Erl, line: u32) -> Erl {
    let wildcard = || Erl::var(line, "_");
    let clauses = vec![
        Clause::guarded(line, wildcard(), guards, vec![then]),
        Clause::new(line, wildcard(), vec![otherwise]),
    ];
    Erl::case(line, subject, clauses)
}

/// A send that the runtime answers at once when the receiver is a Dictionary.
fn accessed(function: &'static str, receiver: Erl, arguments: Vec<Erl>, line: u32) -> Value {
    let mut all = vec![receiver];
    all.extend(arguments);
    Value {
        erl: Erl::call(line, "beamtalk_dispatch", function, all),
        fact: Fact::Unknown,
    }
}

/// An ordinary send.
pub(super) fn dispatched(receiver: Erl, selector: &EcoString, arguments: Vec<Erl>, line: u32) -> Value {
    let name = Erl::atom(line, selector.clone());
    let erl = if arguments.len() <= 4 {
        let mut all = vec![receiver, name];
        all.extend(arguments);
        Erl::call(line, "beamtalk_dispatch", "send", all)
    } else {
        Erl::call(
            line,
            "beamtalk_dispatch",
            "send_list",
            vec![receiver, name, Erl::list(line, arguments)],
        )
    };
    Value {
        erl,
        fact: Fact::Unknown,
    }
}

fn nil_test(operator: &'static str, receiver: Value, line: u32) -> Value {
    let erl = Erl::operator(line, operator, receiver.erl, Erl::atom(line, "nil"));
    Value {
        erl,
        fact: Fact::Boolean,
    }
}

/// A send to a value that is statically a Character.
pub(super) fn as_character(receiver: Erl, selector: &str, arguments: Vec<Erl>, line: u32) -> Erl {
    let arguments = vec![
        Erl::atom(line, "Character"),
        receiver,
        Erl::atom(line, selector),
        Erl::list(line, arguments),
    ];
    Erl::call(line, "beamtalk_dispatch", "send_as", arguments)
}
