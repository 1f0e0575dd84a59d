//! Blocks that are values.

use ecow::EcoString;

use super::{Lowerer, Place};
use crate::erl::{Clause, Erl, ErlKind};
use crate::ir::{BuiltMethod, Closure};

impl Lowerer<'_> {
    /// `{'$bt_method', Fun, {Parameters, Body}}`: a block of a ClassBuilder with the meaning of a method body, so `^` ends it and
    /// `super` starts above the class being built.
    pub(super) fn built_method(&mut self, method: &BuiltMethod, line: u32) -> Erl {
        let saved = (
            self.built.take(),
            std::mem::replace(&mut self.uses_home, false),
            std::mem::replace(&mut self.is_built_class_side, method.is_class_side),
            std::mem::replace(&mut self.assigns_class_state, false),
        );
        self.built = method.class.clone().map(|class| (class, method.is_class_side));
        let fun = self.closure_with(&method.closure, Body::Method, line);
        (
            self.built,
            self.uses_home,
            self.is_built_class_side,
            self.assigns_class_state,
        ) = saved;
        let text = |text: &EcoString| Erl::new(line, ErlKind::Binary(text.clone()));
        let parameters = Erl::list(line, method.parameters.iter().map(text).collect());
        let source = Erl::tuple(line, vec![parameters, text(&method.body)]);
        Erl::tuple(line, vec![Erl::atom(line, "$bt_method"), fun, source])
    }

    /// A fun; with cells among its captured variables, one made from an environment (see
    /// `docs/calling-convention.md`).
    pub(super) fn closure(&mut self, closure: &Closure, line: u32) -> Erl {
        self.closure_with(closure, Body::Block, line)
    }

    fn closure_with(&mut self, closure: &Closure, kind: Body, line: u32) -> Erl {
        let cells: Vec<_> = closure
            .captures
            .iter()
            .copied()
            .filter(|id| self.variable(*id).storage.is_cell())
            .collect();
        let cell_values: Vec<Erl> = cells.iter().map(|id| self.cell(*id, line)).collect();
        let saved_places = self.places.clone();
        let saved_out = std::mem::take(&mut self.out);
        let saved_self = (self.self_name.clone(), self.rebinds_self, self.self_is_exact);
        let environment = self.fresh("env");
        for (index, id) in cells.iter().enumerate() {
            self.places
                .insert(*id, Place::Environment(environment.clone(), index + 1));
        }
        self.closure_depth += 1;
        let parameters = self.parameters(&closure.parameters, line);
        if closure.rebinds_self
            && let Some(Erl {
                kind: ErlKind::Var(name),
                ..
            }) = parameters.first()
        {
            self.self_name = name.clone();
            self.rebinds_self = true;
            self.self_is_exact = false;
        }
        let outer_assigns = std::mem::replace(&mut self.assigns_class_state, false);
        let value = self.sequence(&closure.body, line);
        self.push_value(value);
        self.closure_depth -= 1;
        let mut body = std::mem::replace(&mut self.out, saved_out);
        if self.assigns_class_state {
            // The block may run when its method, which holds the lock, has ended.
            let clause = Clause {
                patterns: Vec::new(),
                guards: Vec::new(),
                body,
                line,
            };
            let run = Erl::new(line, ErlKind::Fun(vec![clause]));
            let own = Erl::var(line, self.self_name.clone());
            body = vec![Erl::call(line, "beamtalk_class_state", "locked", vec![own, run])];
        }
        self.assigns_class_state |= outer_assigns;
        if kind == Body::Method && self.uses_home {
            let run = Erl::new(
                line,
                ErlKind::Fun(vec![Clause::new(line, Erl::var(line, "Home"), body)]),
            );
            let selector = Erl::atom(line, self.target.selector.clone());
            body = vec![Erl::call(line, "beamtalk_return", "run", vec![run, selector])];
        }
        self.places = saved_places;
        (self.self_name, self.rebinds_self, self.self_is_exact) = saved_self;

        let clause = Clause {
            patterns: parameters,
            guards: Vec::new(),
            body,
            line,
        };
        let fun = Erl::new(line, ErlKind::Fun(vec![clause]));
        if cells.is_empty() {
            return fun;
        }
        let maker = Erl::new(
            line,
            ErlKind::Fun(vec![Clause::new(line, Erl::var(line, environment), vec![fun])]),
        );
        Erl::call(
            line,
            "beamtalk_cell",
            "block",
            vec![maker, Erl::tuple(line, cell_values)],
        )
    }
}

/// What `^` in a block ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    /// The method around it.
    Block,
    /// The block itself.
    Method,
}
