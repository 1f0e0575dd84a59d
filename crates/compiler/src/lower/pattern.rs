//! Patterns: what Erlang can match is an Erlang pattern, the rest is tested after it.

use beamtalk_syntax::ast::{Endian, PatternKey, SegmentKind};
use ecow::EcoString;

use super::control::{Branch, Meeting};
use super::{Fact, Lowerer, Place, Value};
use crate::erl::{BinaryElement, Clause, Erl, ErlKind};
use crate::ir::{Arm, Node, Pattern, PatternKind, Rest, Segment, SegmentSize, VariableId};

/// Something to check after the Erlang pattern has matched.
enum Test {
    /// `beamtalk_pattern:is_kind(Value, Class)`.
    Kind { value: EcoString, class: EcoString },
    /// The elements of an Array match this list pattern.
    Array { value: EcoString, pattern: Erl },
    /// A rest of elements becomes an Array under this name.
    MakeArray { elements: EcoString, name: EcoString },
    /// A guard on variables that an earlier test binds.
    Guard(Erl),
}

/// A pattern on its way to Erlang.
#[derive(Default)]
struct Compiled {
    guards: Vec<Erl>,
    tests: Vec<Test>,
}

impl Lowerer<'_> {
    pub(super) fn match_value(&mut self, value: &Node, arms: &[Arm], line: u32) -> Value {
        let value = self.node(value);
        let subject = self.name(value, line);
        let nodes = arms.iter().flat_map(|arm| arm.guard.iter().chain(&arm.body));
        let mut meeting = self.meeting(nodes);
        let case = self.arms(&subject, arms, line, &mut |lowerer, arm| {
            lowerer.branch(&Branch::Nodes(&arm.body), &mut meeting, line).0
        });
        let case = match case {
            Ok(case) => case,
            Err(no_match) => no_match,
        };
        let case = self.with_unchanged(case, &meeting, line);
        self.meet(&meeting, line);
        self.conditional(case, Fact::Unknown, &meeting, line)
    }

    /// The clause for "nothing matches" has to bind the common names as well.
    fn with_unchanged(&mut self, mut case: Erl, meeting: &Meeting, line: u32) -> Erl {
        let unchanged = self.unchanged(meeting, line);
        if !unchanged.is_empty() {
            prepend_to_no_match(&mut case, &unchanged);
        }
        case
    }

    pub(super) fn tail_match(&mut self, value: &Node, arms: &[Arm], line: u32) {
        let value = self.node(value);
        let subject = self.name(value, line);
        let case = self.arms(&subject, arms, line, &mut |lowerer, arm| {
            let saved = (lowerer.places.clone(), std::mem::take(&mut lowerer.out));
            lowerer.tail(&arm.body, line);
            let body = std::mem::replace(&mut lowerer.out, saved.1);
            lowerer.places = saved.0;
            body
        });
        match case {
            Ok(case) | Err(case) => self.out.push(case),
        }
    }

    /// A chain of cases over the arms; `Err` when there are none.
    fn arms(
        &mut self,
        subject: &Erl,
        arms: &[Arm],
        line: u32,
        body: &mut dyn FnMut(&mut Self, &Arm) -> Vec<Erl>,
    ) -> Result<Erl, Erl> {
        let Some((arm, rest)) = arms.split_first() else {
            return Err(Erl::call(
                line,
                "beamtalk_error",
                "no_match",
                vec![subject.clone()],
            ));
        };
        let arm_line = self.line(arm.pattern.span);
        let saved = self.places.clone();
        let mut compiled = Compiled::default();
        let pattern = self.pattern(&arm.pattern, &mut compiled, arm_line);
        let bound = arm.pattern.variables();
        if compiled.tests.is_empty() && arm.guard.is_none() {
            let body_erl = self.arm_body(arm, &bound, arm_line, body);
            self.places = saved;
            let mut clauses = vec![Clause::guarded(arm_line, pattern, compiled.guards, body_erl)];
            match self.arms(subject, rest, line, body) {
                Ok(Erl {
                    kind: ErlKind::Case { value, clauses: more },
                    ..
                }) if *value == *subject => {
                    clauses.extend(more);
                }
                Ok(other) | Err(other) => clauses.push(Clause::new(line, Erl::var(line, "_"), vec![other])),
            }
            return Ok(Erl::case(line, subject.clone(), clauses));
        }
        // Decide first, answering the bound variables, so that the following arms stand in one place.
        let decision = self.decision(subject, pattern, compiled, arm, &bound, arm_line);
        let mut taken = vec![Erl::atom(arm_line, "yes")];
        for id in &bound {
            let name = self.fresh(&self.variable(*id).name);
            self.places
                .insert(*id, Place::Plain(Erl::var(arm_line, name.clone())));
            taken.push(Erl::var(arm_line, name));
        }
        let body_erl = self.arm_body(arm, &bound, arm_line, body);
        self.places = saved;
        let next = match self.arms(subject, rest, line, body) {
            Ok(next) | Err(next) => next,
        };
        let clauses = vec![
            Clause::new(arm_line, Erl::tuple(arm_line, taken), body_erl),
            Clause::new(line, Erl::atom(line, "no"), vec![next]),
        ];
        Ok(Erl::case(arm_line, decision, clauses))
    }

    /// The arm's statements, after its variables that live in cells got theirs.
    fn arm_body(
        &mut self,
        arm: &Arm,
        bound: &[VariableId],
        line: u32,
        body: &mut dyn FnMut(&mut Self, &Arm) -> Vec<Erl>,
    ) -> Vec<Erl> {
        let saved_out = std::mem::take(&mut self.out);
        for id in bound {
            if let Some(Place::Plain(erl)) = self.places.get(id).cloned()
                && self.variable(*id).storage.is_cell()
            {
                self.places.remove(id);
                self.declare(
                    *id,
                    Value {
                        erl,
                        fact: Fact::Unknown,
                    },
                    line,
                );
            }
        }
        let mut prologue = std::mem::take(&mut self.out);
        prologue.extend(body(self, arm));
        self.out = saved_out;
        prologue
    }

    /// `{yes, Variables…}` or `no`.
    fn decision(
        &mut self,
        subject: &Erl,
        pattern: Erl,
        compiled: Compiled,
        arm: &Arm,
        bound: &[VariableId],
        line: u32,
    ) -> Erl {
        let saved_out = std::mem::take(&mut self.out);
        let mut inner = match &arm.guard {
            None => vec![self.yes(bound, line)],
            Some(guard) => {
                let condition = self.node(guard);
                let yes = self.yes(bound, line);
                let mut clauses = vec![
                    Clause::new(line, Erl::atom(line, "true"), vec![yes]),
                    Clause::new(line, Erl::atom(line, "false"), vec![Erl::atom(line, "no")]),
                ];
                if condition.fact != Fact::Boolean {
                    clauses.push(self.bad_condition(line));
                }
                let case = Erl::case(line, condition.erl, clauses);
                let mut statements = std::mem::take(&mut self.out);
                statements.push(case);
                statements
            }
        };
        self.out = saved_out;
        let no = || Clause::new(line, Erl::var(line, "_"), vec![Erl::atom(line, "no")]);
        for test in compiled.tests.into_iter().rev() {
            inner = match test {
                Test::Kind { value, class } => {
                    let arguments = vec![Erl::var(line, value), Erl::atom(line, class)];
                    let is_kind = Erl::call(line, "beamtalk_pattern", "is_kind", arguments);
                    vec![Erl::case(
                        line,
                        is_kind,
                        vec![Clause::new(line, Erl::atom(line, "true"), inner), no()],
                    )]
                }
                Test::Array { value, pattern } => {
                    let elements = Erl::call(
                        line,
                        "beamtalk_pattern",
                        "array_elements",
                        vec![Erl::var(line, value)],
                    );
                    vec![Erl::case(
                        line,
                        elements,
                        vec![Clause::new(line, pattern, inner), no()],
                    )]
                }
                Test::Guard(guard) => {
                    vec![Erl::case(
                        line,
                        guard,
                        vec![Clause::new(line, Erl::atom(line, "true"), inner), no()],
                    )]
                }
                Test::MakeArray { elements, name } => {
                    let array = Erl::call(
                        line,
                        "beamtalk_pattern",
                        "make_array",
                        vec![Erl::var(line, elements)],
                    );
                    let mut statements = vec![Erl::bind(line, name, array)];
                    statements.extend(inner);
                    statements
                }
            };
        }
        Erl::case(
            line,
            subject.clone(),
            vec![Clause::guarded(line, pattern, compiled.guards, inner), no()],
        )
    }

    fn yes(&mut self, bound: &[VariableId], line: u32) -> Erl {
        let mut elements = vec![Erl::atom(line, "yes")];
        for id in bound {
            if let Some(Place::Plain(erl)) = self.places.get(id) {
                elements.push(erl.clone());
            }
        }
        Erl::tuple(line, elements)
    }

    /// The Erlang variable of a pattern variable: one for all its places in the pattern.
    fn bind_pattern(&mut self, id: VariableId, line: u32) -> Erl {
        if let Some(Place::Plain(erl)) = self.places.get(&id) {
            return erl.clone();
        }
        let name = self.fresh(&self.variable(id).name);
        let erl = Erl::var(line, name);
        self.places.insert(id, Place::Plain(erl.clone()));
        erl
    }

    fn pattern(&mut self, pattern: &Pattern, compiled: &mut Compiled, line: u32) -> Erl {
        match &pattern.kind {
            PatternKind::Wildcard => Erl::var(line, "_"),
            PatternKind::Integer(value) => Erl::integer(line, value.clone()),
            PatternKind::Float(value) => Erl::new(line, ErlKind::Float(*value)),
            PatternKind::Text(text) => Erl::new(line, ErlKind::Binary(text.clone())),
            PatternKind::Atom(name) => Erl::atom(line, name.clone()),
            PatternKind::Variable(id) => self.bind_pattern(*id, line),
            PatternKind::Typed { variable, class } => self.typed(*variable, class, compiled, line),
            PatternKind::Tuple(elements) => {
                let elements = elements
                    .iter()
                    .map(|element| self.pattern(element, compiled, line))
                    .collect();
                Erl::tuple(line, elements)
            }
            PatternKind::List { elements, rest } => {
                self.list_pattern(elements, rest.as_ref(), compiled, line)
            }
            PatternKind::Array { elements, rest } => {
                let value = self.fresh("array");
                let mut inner = Compiled::default();
                let rest_elements = match rest {
                    Some(Rest::Variable(id)) => {
                        let elements = self.fresh("rest");
                        let name = self.fresh(&self.variable(*id).name);
                        self.places
                            .insert(*id, Place::Plain(Erl::var(line, name.clone())));
                        inner.tests.push(Test::MakeArray {
                            elements: elements.clone(),
                            name,
                        });
                        Some(Erl::var(line, elements))
                    }
                    Some(Rest::Ignored) => Some(Erl::var(line, "_")),
                    None => None,
                };
                let elements = elements
                    .iter()
                    .map(|element| self.pattern(element, &mut inner, line))
                    .collect();
                let list = Erl::new(line, ErlKind::List(elements, rest_elements.map(Box::new)));
                compiled.tests.push(Test::Array {
                    value: value.clone(),
                    pattern: list,
                });
                // Guards of inner elements can only be checked once the elements are there.
                compiled.tests.extend(inner.tests);
                compiled.tests.extend(inner.guards.into_iter().map(Test::Guard));
                Erl::var(line, value)
            }
            PatternKind::Dictionary(pairs) => {
                let name = self.fresh("map");
                let pairs = pairs
                    .iter()
                    .map(|(key, value)| {
                        let key = match key {
                            PatternKey::Symbol(name) => Erl::atom(line, name.clone()),
                            PatternKey::String(text) => Erl::new(line, ErlKind::Binary(text.clone())),
                        };
                        (key, self.pattern(value, compiled, line))
                    })
                    .collect();
                compiled.guards.push(not_tagged(&name, line));
                let map = Erl::new(line, ErlKind::MapPattern(pairs));
                Erl::new(
                    line,
                    ErlKind::Match(Box::new(map), Box::new(Erl::var(line, name))),
                )
            }
            PatternKind::ResultOk(inner) => self.result(true, inner, compiled, line),
            PatternKind::ResultError(inner) => self.result(false, inner, compiled, line),
            PatternKind::Binary(segments) => self.binary(segments, line),
        }
    }

    fn list_pattern(
        &mut self,
        elements: &[Pattern],
        rest: Option<&Rest>,
        compiled: &mut Compiled,
        line: u32,
    ) -> Erl {
        let elements = elements
            .iter()
            .map(|element| self.pattern(element, compiled, line))
            .collect();
        let tail = match rest {
            None => None,
            Some(Rest::Ignored) => Some(Erl::var(line, "_")),
            Some(Rest::Variable(id)) => Some(self.bind_pattern(*id, line)),
        };
        Erl::new(line, ErlKind::List(elements, tail.map(Box::new)))
    }

    fn result(&mut self, is_ok: bool, inner: &Pattern, compiled: &mut Compiled, line: u32) -> Erl {
        let inner = self.pattern(inner, compiled, line);
        let payload = if is_ok { "okValue" } else { "errReason" };
        Erl::new(
            line,
            ErlKind::MapPattern(vec![
                (Erl::atom(line, "$beamtalk_class"), Erl::atom(line, "Result")),
                (
                    Erl::atom(line, "isOk"),
                    Erl::atom(line, if is_ok { "true" } else { "false" }),
                ),
                (Erl::atom(line, payload), inner),
            ]),
        )
    }

    fn typed(
        &mut self,
        variable: Option<VariableId>,
        class: &EcoString,
        compiled: &mut Compiled,
        line: u32,
    ) -> Erl {
        let erl = if let Some(id) = variable {
            self.bind_pattern(id, line)
        } else {
            let name = self.fresh("v");
            Erl::var(line, name)
        };
        let ErlKind::Var(name) = &erl.kind else { return erl };
        let guard = |function: &str| Erl::call(line, "erlang", function, vec![erl.clone()]);
        match class.as_str() {
            "Integer" => compiled.guards.push(guard("is_integer")),
            "Float" => compiled.guards.push(guard("is_float")),
            "Number" => compiled.guards.push(guard("is_number")),
            "List" => compiled.guards.push(guard("is_list")),
            "Block" => compiled.guards.push(guard("is_function")),
            "Boolean" => compiled.guards.push(guard("is_boolean")),
            "Object" | "ProtoObject" => {}
            "Dictionary" => {
                compiled.guards.push(guard("is_map"));
                compiled.guards.push(not_tagged(name, line));
            }
            _ => compiled.tests.push(Test::Kind {
                value: name.clone(),
                class: class.clone(),
            }),
        }
        erl
    }

    fn binary(&mut self, segments: &[Segment], line: u32) -> Erl {
        let elements = segments
            .iter()
            .map(|segment| {
                let size = segment.size.as_ref().map(|size| match size {
                    SegmentSize::Literal(bits) => Erl::integer(line, *bits),
                    // A cell or a variable of the session has no name that could stand in a pattern.
                    SegmentSize::Variable(id) => {
                        let size = self.read(*id, line);
                        self.name(size, line)
                    }
                });
                let value = match segment.variable {
                    Some(id) => self.bind_pattern(id, line),
                    None => Erl::var(line, "_"),
                };
                let mut specifiers = vec![match segment.kind {
                    SegmentKind::Integer => "integer",
                    SegmentKind::Float => "float",
                    SegmentKind::Binary => "binary",
                    SegmentKind::Utf8 => "utf8",
                }];
                if segment.kind == SegmentKind::Integer && segment.is_signed {
                    specifiers.push("signed");
                }
                match segment.endian {
                    Endian::Big => {}
                    Endian::Little => specifiers.push("little"),
                    Endian::Native => specifiers.push("native"),
                }
                let unit = (segment.kind == SegmentKind::Binary).then_some(8);
                BinaryElement {
                    value,
                    size,
                    specifiers,
                    unit,
                }
            })
            .collect();
        Erl::new(line, ErlKind::BinaryPattern(elements))
    }

    // ---- destructuring ----

    pub(super) fn destructure(&mut self, pattern: &Pattern, value: &Node, line: u32) -> Value {
        let value = self.node(value);
        let whole = self.name(value, line);
        self.take_apart(pattern, &whole, &whole, line);
        Value {
            erl: whole,
            fact: Fact::Unknown,
        }
    }

    /// Bind the names of `pattern` to the parts of `value`; a mismatch names the `whole` value.
    fn take_apart(&mut self, pattern: &Pattern, value: &Erl, whole: &Erl, line: u32) {
        match &pattern.kind {
            PatternKind::Wildcard => {}
            PatternKind::Variable(id) => {
                self.assign_value(
                    *id,
                    Value {
                        erl: value.clone(),
                        fact: Fact::Unknown,
                    },
                    line,
                );
            }
            PatternKind::Tuple(elements) => {
                let names: Vec<Erl> = elements.iter().map(|_| Erl::var(line, self.fresh("e"))).collect();
                let shape = Erl::tuple(line, names.clone());
                self.require_shape(shape, &names, value, whole, line);
                for (element, name) in elements.iter().zip(&names) {
                    self.take_apart(element, name, whole, line);
                }
            }
            PatternKind::List { elements, rest } | PatternKind::Array { elements, rest } => {
                let count = Erl::integer(line, elements.len());
                let has_rest = Erl::atom(line, if rest.is_some() { "true" } else { "false" });
                let parts = Erl::call(
                    line,
                    "beamtalk_pattern",
                    "elements",
                    vec![value.clone(), count, has_rest],
                );
                let names: Vec<Erl> = elements.iter().map(|_| Erl::var(line, self.fresh("e"))).collect();
                let tail = Erl::var(line, self.fresh("rest"));
                let shape = Erl::new(line, ErlKind::List(names.clone(), Some(Box::new(tail.clone()))));
                self.out
                    .push(Erl::new(line, ErlKind::Match(Box::new(shape), Box::new(parts))));
                for (element, name) in elements.iter().zip(&names) {
                    self.take_apart(element, name, whole, line);
                }
                if let Some(Rest::Variable(id)) = rest {
                    self.assign_value(
                        *id,
                        Value {
                            erl: tail,
                            fact: Fact::Unknown,
                        },
                        line,
                    );
                }
            }
            PatternKind::Dictionary(pairs) => {
                for (key, inner) in pairs {
                    let key = match key {
                        PatternKey::Symbol(name) => Erl::atom(line, name.clone()),
                        PatternKey::String(text) => Erl::new(line, ErlKind::Binary(text.clone())),
                    };
                    let found = Erl::call(line, "beamtalk_pattern", "value_at", vec![value.clone(), key]);
                    let named = self.name(
                        Value {
                            erl: found,
                            fact: Fact::Unknown,
                        },
                        line,
                    );
                    self.take_apart(inner, &named, whole, line);
                }
            }
            PatternKind::Integer(_)
            | PatternKind::Float(_)
            | PatternKind::Text(_)
            | PatternKind::Atom(_)
            | PatternKind::Typed { .. }
            | PatternKind::ResultOk(_)
            | PatternKind::ResultError(_)
            | PatternKind::Binary(_) => self.require_match(pattern, value, whole, line),
        }
    }

    fn require_shape(&mut self, shape: Erl, names: &[Erl], value: &Erl, whole: &Erl, line: u32) {
        let found = Erl::tuple(line, names.to_vec());
        let fresh: Vec<Erl> = names.iter().map(|_| Erl::var(line, self.fresh("e"))).collect();
        let mut inner_shape = shape;
        if let ErlKind::Tuple(elements) = &mut inner_shape.kind {
            elements.clone_from(&fresh);
        }
        let fault = Erl::call(line, "beamtalk_error", "bad_match", vec![whole.clone()]);
        let case = Erl::case(
            line,
            value.clone(),
            vec![
                Clause::new(line, inner_shape, vec![Erl::tuple(line, fresh)]),
                Clause::new(line, Erl::var(line, "_"), vec![fault]),
            ],
        );
        self.out
            .push(Erl::new(line, ErlKind::Match(Box::new(found), Box::new(case))));
    }

    /// Patterns that a match arm would understand: decide, then assign what they bound.
    fn require_match(&mut self, pattern: &Pattern, value: &Erl, whole: &Erl, line: u32) {
        let bound = pattern.variables();
        let outer = self.places.clone();
        for id in &bound {
            self.places.remove(id);
        }
        let mut compiled = Compiled::default();
        let erl_pattern = self.pattern(pattern, &mut compiled, line);
        let arm = Arm {
            pattern: pattern.clone(),
            guard: None,
            body: Vec::new(),
        };
        let decision = self.decision(value, erl_pattern, compiled, &arm, &bound, line);
        self.places = outer;
        let names: Vec<Erl> = bound
            .iter()
            .map(|id| Erl::var(line, self.fresh(&self.variable(*id).name)))
            .collect();
        let fresh: Vec<Erl> = bound.iter().map(|_| Erl::var(line, self.fresh("e"))).collect();
        let mut taken = vec![Erl::atom(line, "yes")];
        taken.extend(fresh.clone());
        let fault = Erl::call(line, "beamtalk_error", "bad_match", vec![whole.clone()]);
        let case = Erl::case(
            line,
            decision,
            vec![
                Clause::new(line, Erl::tuple(line, taken), vec![Erl::tuple(line, fresh)]),
                Clause::new(line, Erl::atom(line, "no"), vec![fault]),
            ],
        );
        let names_tuple = Erl::tuple(line, names.clone());
        self.out.push(Erl::new(
            line,
            ErlKind::Match(Box::new(names_tuple), Box::new(case)),
        ));
        for (id, name) in bound.iter().zip(names) {
            self.assign_value(
                *id,
                Value {
                    erl: name,
                    fact: Fact::Unknown,
                },
                line,
            );
        }
    }
}

/// `not is_map_key('$beamtalk_class', Name)`, as a guard.
fn not_tagged(name: &EcoString, line: u32) -> Erl {
    let key = Erl::atom(line, "$beamtalk_class");
    let tagged = Erl::call(
        line,
        "erlang",
        "is_map_key",
        vec![key, Erl::var(line, name.clone())],
    );
    Erl::call(line, "erlang", "not", vec![tagged])
}

fn prepend_to_no_match(erl: &mut Erl, statements: &[Erl]) {
    let is_no_match = |erl: &Erl| matches!(&erl.kind, ErlKind::Call { module, function, .. } if module == "beamtalk_error" && function == "no_match");
    if is_no_match(erl) {
        let mut block = statements.to_vec();
        block.push(erl.clone());
        erl.kind = ErlKind::Block(block);
        return;
    }
    if let ErlKind::Case { clauses, .. } = &mut erl.kind
        && let Some(last) = clauses.last_mut()
        && let Some(end) = last.body.last_mut()
    {
        prepend_to_no_match(end, statements);
    }
}
