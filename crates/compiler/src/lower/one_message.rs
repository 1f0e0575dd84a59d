//! `items collect: […]`, and `select:` and `reject:`, alone with a literal block that only computes: a loop over the List
//! (`docs/decisions/030-chains.md`).
//!
//! Nothing but the loop has the List, so what it has passed is free for the collector. It therefore never starts again:
//! elements it is not made for are left to the library's method, with all that come after them.

use super::chain::Stage;
use super::send::{dispatched, is_numeric_operator};
use super::{Fact, Lowerer, Value};
use crate::erl::{Clause, Erl, ErlKind};
use crate::ir::{Closure, Node, NodeKind, VariableId};

impl Lowerer<'_> {
    pub(super) fn one_message(&mut self, source: &Node, stage: &Stage, line: u32) -> Erl {
        let source = self.node(source);
        let source = self.name(source, line);
        let block = self.closure(stage.closure, stage.line);
        let fact = Fact::Unknown;
        let block = self.name(Value { erl: block, fact }, line);
        let name = self.lifted_name("loop");
        let [elements, each, rest] = ["l", "e", "r"].map(|name| self.fresh(name));
        let element = Erl::var(line, each.clone());
        let is_number = is_calculated_with(stage.closure);
        let mut guards = Vec::new();
        if is_number {
            self.facts.insert(each, Fact::Number);
            guards.push(Erl::call(line, "erlang", "is_number", vec![element.clone()]));
        }
        let next = self.loop_call(&name, vec![Erl::var(line, rest.clone())], line);
        let body = self.aside(|lowerer| lowerer.turn_of_one(stage, element.clone(), next, line));
        let more = ErlKind::List(vec![element], Some(Box::new(Erl::var(line, rest))));
        let given = Erl::var(line, elements.clone());
        let others = Erl::call(
            line,
            "beamtalk_list",
            stage.selector.clone(),
            vec![given.clone(), block.clone()],
        );
        let clauses = vec![
            Clause::guarded(line, Erl::new(line, more), guards, body),
            Clause::new(
                line,
                Erl::list(line, Vec::new()),
                vec![Erl::list(line, Vec::new())],
            ),
            Clause::new(line, Erl::var(line, "_"), vec![others]),
        ];
        let case = Erl::case(line, given, clauses);
        let looped = self.emit_loop(&name, &[elements], vec![case], vec![source.clone()], line);
        let sent = dispatched(source.clone(), stage.selector, vec![block], line).erl;
        let test = Erl::call(line, "beamtalk_chain", "is_for_loop", vec![source]);
        // Looked at, so that the loop is not the last call: the frame of who sent the message stays on the stack.
        let answer = self.fresh("t");
        let seen = vec![
            Clause::new(
                line,
                Erl::atom(line, "$bt_no_answer"),
                vec![Erl::atom(line, "nil")],
            ),
            Clause::new(line, Erl::var(line, answer.clone()), vec![Erl::var(line, answer)]),
        ];
        let looped = Erl::case(line, looped, seen);
        let clauses = vec![
            Clause::new(line, Erl::atom(line, "true"), vec![looped]),
            Clause::new(line, Erl::atom(line, "false"), vec![sent]),
        ];
        Erl::case(line, test, clauses)
    }

    fn turn_of_one(&mut self, stage: &Stage, element: Erl, next: Erl, line: u32) {
        let fact = self.fact_of(&element);
        let given = Value {
            erl: element.clone(),
            fact,
        };
        let value = self.in_place(stage.closure, [given], stage.line);
        let before = |element: Erl| {
            let tail = Some(Box::new(next.clone()));
            Erl::new(line, ErlKind::List(vec![element], tail))
        };
        if stage.selector == "collect:" {
            let value = self.name(value, stage.line);
            return self.out.push(before(value));
        }
        let [when_true, when_false] = if stage.selector == "select:" {
            [before(element), next.clone()]
        } else {
            [next.clone(), before(element)]
        };
        let mut clauses = vec![
            Clause::new(line, Erl::atom(line, "true"), vec![when_true]),
            Clause::new(line, Erl::atom(line, "false"), vec![when_false]),
        ];
        if value.fact != Fact::Boolean {
            let other = self.fresh("other");
            let arguments = vec![
                Erl::var(line, other.clone()),
                Erl::atom(line, "List"),
                Erl::atom(line, stage.selector.clone()),
            ];
            let refused = Erl::call(line, "beamtalk_argument", "boolean", arguments);
            clauses.push(Clause::new(line, Erl::var(line, other), vec![refused]));
        }
        self.out.push(Erl::case(line, value.erl, clauses));
    }
}

/// Whether the block sends its parameter what numbers answer without being asked.
fn is_calculated_with(block: &Closure) -> bool {
    fn scan(node: &Node, parameters: &[VariableId]) -> bool {
        let mut is_found = matches!(&node.kind, NodeKind::Send { receiver, selector, .. }
            if is_numeric_operator(selector)
                && matches!(receiver.kind, NodeKind::Variable(id) if parameters.contains(&id)));
        node.for_each_child(&mut |child| is_found = is_found || scan(child, parameters));
        is_found
    }
    block.body.iter().any(|node| scan(node, &block.parameters))
}
