//! Scopes, activations and captures.
//!
//! A scope is a method, an inlined block or a closure; an *activation* is a method or a closure, the unit in
//! which Erlang variables can be rebound. A variable used by another activation than its own is captured.

use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::FxHashMap;

use crate::ir::{Storage, Variable, VariableId};

struct Entry {
    name: EcoString,
    span: Span,
    /// `variable` or `parameter`, for the message.
    what: &'static str,
    activation: usize,
    assignments: u32,
    reads: u32,
    /// When it was last captured and last assigned; 0 is never.
    captured: u32,
    assigned: u32,
    /// A block that captured it may see another value than the one of that moment.
    is_shared: bool,
    is_session: bool,
    is_temporary: bool,
    is_character: bool,
}

#[derive(Default)]
struct Scope {
    names: FxHashMap<EcoString, VariableId>,
}

struct Activation {
    /// Index of its first scope.
    first_scope: usize,
    captures: Vec<VariableId>,
    has_self_parameter: bool,
}

pub(super) struct Scopes {
    entries: Vec<Entry>,
    stack: Vec<Scope>,
    activations: Vec<Activation>,
    /// Counts captures and assignments, in the order of the text.
    moment: u32,
    /// The outermost scope holds session variables.
    is_session: bool,
}

/// An inlined loop that is open.
pub(super) struct Loop {
    since: u32,
    /// Variables declared before it.
    outer: usize,
}

impl Scopes {
    pub(super) fn new() -> Self {
        let root = Activation {
            first_scope: 0,
            captures: Vec::new(),
            has_self_parameter: false,
        };
        Self {
            entries: Vec::new(),
            stack: vec![Scope::default()],
            activations: vec![root],
            moment: 0,
            is_session: false,
        }
    }

    pub(super) fn open_session(&mut self, bound: &[EcoString]) {
        self.is_session = true;
        for name in bound {
            let variable = self.declare(name, Span::default(), "variable");
            self.entry_mut(variable).is_session = true;
        }
    }

    /// Session variables assigned by this input.
    pub(super) fn session_assignments(&self) -> Vec<EcoString> {
        self.entries
            .iter()
            .filter(|e| e.is_session && e.assignments > 0)
            .map(|e| e.name.clone())
            .collect()
    }

    fn entry(&self, variable: VariableId) -> &Entry {
        self.entries
            .get(variable.0 as usize)
            .expect("a variable id comes from this table")
    }

    fn entry_mut(&mut self, variable: VariableId) -> &mut Entry {
        self.entries
            .get_mut(variable.0 as usize)
            .expect("a variable id comes from this table")
    }

    fn current_activation(&self) -> usize {
        self.activations.len() - 1
    }

    pub(super) fn open_block(&mut self) {
        self.stack.push(Scope::default());
    }

    pub(super) fn close_block(&mut self) {
        self.stack.pop();
    }

    pub(super) fn open_loop(&self) -> Loop {
        Loop {
            since: self.moment,
            outer: self.entries.len(),
        }
    }

    /// The next turn assigns again what a block captured in this one.
    pub(super) fn close_loop(&mut self, opened: &Loop) {
        for entry in self.entries.iter_mut().take(opened.outer) {
            entry.is_shared |= entry.captured > opened.since && entry.assigned > opened.since;
        }
    }

    fn next_moment(&mut self) -> u32 {
        self.moment += 1;
        self.moment
    }

    pub(super) fn open_closure(&mut self) {
        self.stack.push(Scope::default());
        let first_scope = self.stack.len() - 1;
        self.activations.push(Activation {
            first_scope,
            captures: Vec::new(),
            has_self_parameter: false,
        });
    }

    pub(super) fn close_closure(&mut self) -> Vec<VariableId> {
        let activation = self.activations.pop().expect("a closure was opened");
        self.stack.truncate(activation.first_scope);
        let current = self.current_activation();
        for &variable in &activation.captures {
            if self.entry(variable).activation != current {
                self.capture(variable);
            }
        }
        activation.captures
    }

    fn capture(&mut self, variable: VariableId) {
        self.entry_mut(variable).captured = self.next_moment();
        let activation = self
            .activations
            .last_mut()
            .expect("there is always an activation");
        if !activation.captures.contains(&variable) {
            activation.captures.push(variable);
        }
    }

    pub(super) fn declare(&mut self, name: &EcoString, span: Span, what: &'static str) -> VariableId {
        let variable = VariableId(self.entries.len() as u32);
        let activation = self.current_activation();
        if name == "self" {
            self.activations
                .last_mut()
                .expect("there is always an activation")
                .has_self_parameter = true;
        }
        self.entries.push(Entry {
            name: name.clone(),
            span,
            what,
            activation,
            assignments: 0,
            reads: 0,
            captured: 0,
            assigned: 0,
            is_shared: false,
            is_session: false,
            is_temporary: false,
            is_character: false,
        });
        self.stack
            .last_mut()
            .expect("there is always a scope")
            .names
            .insert(name.clone(), variable);
        variable
    }

    /// A variable without a name.
    pub(super) fn temporary(&mut self) -> VariableId {
        let variable = self.declare(&EcoString::inline("_"), Span::default(), "variable");
        let entry = self.entry_mut(variable);
        entry.is_temporary = true;
        entry.assignments = 1;
        variable
    }

    fn find(&self, name: &str) -> Option<VariableId> {
        if name == "_" {
            return None;
        }
        let in_scope = |scope: &Scope| scope.names.get(name).copied();
        self.stack.iter().rev().find_map(in_scope)
    }

    pub(super) fn is_visible(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Visible, but not declared in the innermost scope.
    pub(super) fn is_outer(&self, name: &str) -> bool {
        let innermost = self
            .stack
            .last()
            .is_some_and(|scope| scope.names.contains_key(name));
        !innermost && self.find(name).is_some()
    }

    fn touch(&mut self, variable: VariableId) {
        if self.entry(variable).activation != self.current_activation() {
            self.capture(variable);
        }
    }

    pub(super) fn read(&mut self, name: &str) -> Option<VariableId> {
        let variable = self.find(name)?;
        self.entry_mut(variable).reads += 1;
        self.touch(variable);
        Some(variable)
    }

    pub(super) fn mark_read(&mut self, variable: VariableId) {
        self.entry_mut(variable).reads += 1;
    }

    /// In a session any lower-case name may be a session variable; whether it is assigned shows at run time.
    pub(super) fn session_variable(&mut self, name: &EcoString) -> Option<VariableId> {
        if !self.is_session {
            return None;
        }
        let variable = VariableId(self.entries.len() as u32);
        self.entries.push(Entry {
            name: name.clone(),
            span: Span::default(),
            what: "variable",
            activation: 0,
            assignments: 0,
            reads: 1,
            captured: 0,
            assigned: 0,
            is_shared: false,
            is_session: true,
            is_temporary: false,
            is_character: false,
        });
        self.stack
            .first_mut()
            .expect("there is always a scope")
            .names
            .insert(name.clone(), variable);
        self.touch(variable);
        Some(variable)
    }

    /// Assign the nearest visible variable, or declare one in the innermost scope.
    pub(super) fn assign(&mut self, name: &EcoString, span: Span) -> VariableId {
        let variable = match self.find(name) {
            Some(variable) => variable,
            None if self.is_session && self.stack.len() == 1 => {
                let variable = self.declare(name, span, "variable");
                self.entry_mut(variable).is_session = true;
                variable
            }
            None => self.declare(name, span, "variable"),
        };
        let current = self.current_activation();
        let moment = self.next_moment();
        let entry = self.entry_mut(variable);
        entry.assignments += 1;
        entry.assigned = moment;
        entry.is_shared |= entry.activation != current || entry.captured > 0;
        self.touch(variable);
        variable
    }

    /// The value just assigned is a block that mentions the variable itself.
    pub(super) fn assigned_while_captured(&mut self, variable: VariableId) {
        let entry = self.entry_mut(variable);
        entry.is_shared |= entry.captured > 0;
    }

    /// How often each variable was assigned so far.
    pub(super) fn assignments(&self) -> Vec<u32> {
        self.entries.iter().map(|entry| entry.assignments).collect()
    }

    /// What a guard assigns is seen by its arm and by all that come after, whether it held or not: no path of its own in
    /// Erlang could say so.
    pub(super) fn assigned_in_guard(&mut self, before: &[u32]) {
        for (entry, before) in self.entries.iter_mut().zip(before) {
            if entry.assignments > *before {
                entry.is_shared = true;
            }
        }
    }

    pub(super) fn is_character(&self, variable: VariableId) -> bool {
        self.entry(variable).is_character
    }

    pub(super) fn set_character(&mut self, variable: VariableId, is_character: bool) {
        self.entry_mut(variable).is_character = is_character;
    }

    /// A variable is a Character while all its assignments so far are.
    pub(super) fn note_character(&mut self, variable: VariableId, is_character: bool) {
        let entry = self.entry_mut(variable);
        entry.is_character = is_character && (entry.assignments <= 1 || entry.is_character);
    }

    pub(super) fn has_self_parameter(&self) -> bool {
        self.activations
            .iter()
            .any(|activation| activation.has_self_parameter)
    }

    /// Where every variable lives, and the ones nobody reads.
    pub(super) fn finish(self) -> (Vec<Variable>, Vec<(EcoString, Span, &'static str)>) {
        let is_unused = |e: &&Entry| {
            e.reads == 0 && !e.is_session && !e.is_temporary && !e.name.starts_with('_') && e.name != "self"
        };
        let unused = self
            .entries
            .iter()
            .filter(is_unused)
            .map(|e| (e.name.clone(), e.span, e.what))
            .collect();
        let variables = self.entries.into_iter().map(|entry| {
            let storage = if entry.is_session {
                Storage::Session
            } else if entry.is_shared {
                Storage::Cell
            } else {
                Storage::Plain
            };
            Variable {
                name: entry.name,
                storage,
                is_character: entry.is_character,
            }
        });
        (variables.collect(), unused)
    }
}
