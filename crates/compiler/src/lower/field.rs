//! Slots of the receiver, and bodies that the runtime provides.

use ecow::EcoString;

use super::{Lowerer, Place, Value};
use crate::erl::{Clause, Erl, ErlKind};
use crate::ir::VariableId;
use crate::table::Kind;

impl Lowerer<'_> {
    pub(super) fn read_field(&mut self, field: &EcoString, line: u32) -> Erl {
        let name = Erl::atom(line, field.clone());
        let own = self.own(line);
        if self.rebinds_self && self.is_built_class_side {
            return Erl::call(line, "beamtalk_class_builder", "variable", vec![own, name]);
        }
        if self.rebinds_self {
            return Erl::call(
                line,
                "beamtalk_dispatch",
                "send",
                vec![own, Erl::atom(line, "fieldAt:"), name],
            );
        }
        if self.target.is_class_side {
            return Erl::call(line, "beamtalk_class_state", "get", vec![own, name]);
        }
        if self.target.is_test {
            return Erl::call(line, "beamtalk_test", "get_field", vec![own, name]);
        }
        if self.target.kind == Kind::Actor {
            let arguments = if self.closure_depth == 0 {
                vec![name]
            } else {
                vec![own, name]
            };
            return Erl::call(line, "beamtalk_actor", "get_field", arguments);
        }
        let bound = self.fresh("f");
        let found = Erl::new(
            line,
            ErlKind::MapPattern(vec![(name.clone(), Erl::var(line, bound.clone()))]),
        );
        let missing = Erl::call(line, "beamtalk_value", "missing_field", vec![own.clone(), name]);
        let wildcard = Erl::var(line, "_");
        let mut clauses = vec![Clause::new(line, found, vec![Erl::var(line, bound)])];
        if !self.is_joined {
            clauses.push(Clause::new(line, wildcard, vec![missing]));
        }
        Erl::case(line, own, clauses)
    }

    pub(super) fn write_field(&mut self, field: &EcoString, value: Value, line: u32) -> Erl {
        let name = Erl::atom(line, field.clone());
        let own = self.own(line);
        let written = if self.rebinds_self && self.is_built_class_side {
            self.assigns_class_state = true;
            let arguments = vec![own, name, value.erl];
            Erl::call(line, "beamtalk_class_builder", "assign", arguments)
        } else if self.rebinds_self {
            let selector = Erl::atom(line, "fieldAt:put:");
            Erl::call(
                line,
                "beamtalk_dispatch",
                "send",
                vec![own, selector, name, value.erl],
            )
        } else if self.target.is_class_side {
            self.assigns_class_state = true;
            Erl::call(line, "beamtalk_class_state", "put", vec![own, name, value.erl])
        } else if self.target.is_test {
            Erl::call(line, "beamtalk_test", "put_field", vec![own, name, value.erl])
        } else if self.closure_depth == 0 {
            Erl::call(line, "beamtalk_actor", "put_field", vec![name, value.erl])
        } else {
            Erl::call(line, "beamtalk_actor", "put_field", vec![own, name, value.erl])
        };
        // Named, so that it runs here even when nobody uses the value.
        self.name(
            Value {
                erl: written,
                fact: value.fact,
            },
            line,
        )
    }

    // ---- bodies made by the runtime ----

    pub(super) fn parameter_values(&self, line: u32) -> Vec<Erl> {
        let mut ids: Vec<(&VariableId, &Place)> = self.places.iter().collect();
        ids.sort_by_key(|(id, _)| **id);
        ids.into_iter()
            .filter_map(|(_, place)| match place {
                Place::Plain(erl) => Some(Erl::new(line, erl.kind.clone())),
                Place::Cell(_) | Place::Environment(..) | Place::Session(_) => None,
            })
            .collect()
    }

    pub(super) fn primitive(&mut self, module: &EcoString, function: &EcoString, line: u32) -> Erl {
        let mut arguments = vec![self.own(line)];
        arguments.extend(self.parameter_values(line));
        Erl::call(line, module.clone(), function.clone(), arguments)
    }

    pub(super) fn delegate(&mut self, line: u32) -> Erl {
        let arguments = Erl::list(line, self.parameter_values(line));
        let own = self.own(line);
        let selector = Erl::atom(line, self.target.selector.clone());
        if self.target.kind == Kind::Actor && !self.target.is_class_side {
            return Erl::call(line, "beamtalk_actor", "delegate", vec![own, selector, arguments]);
        }
        let module = Erl::atom(line, self.target.native.clone().unwrap_or_default());
        let side = Erl::atom(
            line,
            if self.target.is_class_side {
                "class"
            } else {
                "instance"
            },
        );
        Erl::call(
            line,
            "beamtalk_erlang",
            "delegate",
            vec![module, side, own, selector, arguments],
        )
    }
}
