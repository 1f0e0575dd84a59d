//! Assignments in blocks: `dead-block-assignment`.
//!
//! A variable of a block dies with it. An assignment that no read follows cannot be seen by anybody; neither can one
//! to an outer variable in a block that runs in another process. In an actor such a block may be waiting for a slot
//! to be meant, so the rule speaks of value classes only.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Target};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::{Linter, Method};
use crate::codes;
use crate::table::Kind;

pub(super) fn method(linter: &Linter<'_>, method: &Method<'_>, out: &mut Vec<Diagnostic>) {
    if linter.table.kind(method.class) != Kind::Value {
        return;
    }
    let mut walk = Walk {
        scopes: vec![Scope::of(
            method.method.head.parameters.iter().map(|p| &p.name.text),
            Place::Method,
        )],
        out,
    };
    walk.statements(&method.method.body);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Method,
    Block,
    /// A block that another process runs.
    Elsewhere,
    /// The names of a pattern; assignments pass through.
    Arm,
}

struct Scope {
    place: Place,
    variables: Vec<Variable>,
}

struct Variable {
    name: EcoString,
    /// Assignments that nothing has read yet.
    pending: Vec<Span>,
    /// A block inside reads it, and may run at any time.
    is_captured: bool,
}

impl Scope {
    fn of<'a>(names: impl Iterator<Item = &'a EcoString>, place: Place) -> Self {
        let variables = names.map(Variable::new).collect();
        Self { place, variables }
    }
}

impl Variable {
    fn new(name: &EcoString) -> Self {
        Self {
            name: name.clone(),
            pending: Vec::new(),
            is_captured: false,
        }
    }
}

struct Walk<'a> {
    scopes: Vec<Scope>,
    out: &'a mut Vec<Diagnostic>,
}

impl Walk<'_> {
    fn statements(&mut self, body: &[ast::Statement]) {
        for statement in body {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Variable(name) => self.read(name),
            ExpressionKind::Assign { target, value, .. } => {
                self.expression(value);
                match target {
                    Target::Variable(name) => self.assign(&name.text, Some(name.span)),
                    Target::Pattern(pattern) => {
                        walk::bound_names(pattern, &mut |name| self.assign(name, None));
                    }
                    Target::Field(_) => {}
                }
            }
            ExpressionKind::Block(block) => self.block(block, Place::Block),
            ExpressionKind::Send(send) if is_timer(send) => {
                self.expression(&send.receiver);
                for argument in &send.message.arguments {
                    match &argument.kind {
                        ExpressionKind::Block(block) => self.block(block, Place::Elsewhere),
                        _ => self.expression(argument),
                    }
                }
            }
            ExpressionKind::Match { value, arms, .. } => {
                self.expression(value);
                for arm in arms {
                    self.arm(arm);
                }
            }
            _ => walk::inner(node, &mut |inner| self.expression(inner)),
        }
    }

    fn arm(&mut self, arm: &ast::Arm) {
        let mut bound = Vec::new();
        walk::bound_names(&arm.pattern, &mut |name| bound.push(name.clone()));
        self.scopes.push(Scope::of(bound.iter(), Place::Arm));
        arm.guard.iter().for_each(|guard| self.expression(guard));
        self.expression(&arm.body);
        self.scopes.pop();
    }

    fn block(&mut self, block: &ast::Block, place: Place) {
        let parameters = block.parameters.iter().map(|parameter| &parameter.name.text);
        self.scopes.push(Scope::of(parameters, place));
        self.statements(&block.body);
        let scope = self.scopes.pop().expect("a scope was just pushed");
        for variable in scope.variables {
            if variable.is_captured || variable.name.starts_with('_') {
                continue;
            }
            for span in variable.pending {
                self.report(&variable.name, span);
            }
        }
    }

    fn report(&mut self, name: &str, span: Span) {
        self.out.push(
            Diagnostic::lint(
                codes::DEAD_BLOCK_ASSIGNMENT,
                span,
                eco_format!("nobody sees this assignment to `{name}` (dead-block-assignment)"),
            )
            .with_category(Category::DeadAssignment)
            .with_hint("Only the block's value and variables declared outside it are seen."),
        );
    }

    /// The innermost scope that knows the name, and how many blocks lie between.
    fn find(&self, name: &str) -> Option<(usize, usize)> {
        let at = self
            .scopes
            .iter()
            .rposition(|scope| scope.variables.iter().any(|variable| variable.name == name))?;
        let blocks = self.scopes.iter().skip(at + 1);
        let between = blocks.filter(|scope| scope.place != Place::Arm).count();
        Some((at, between))
    }

    fn variable(&mut self, at: usize, name: &str) -> Option<&mut Variable> {
        let scope = self.scopes.get_mut(at)?;
        scope.variables.iter_mut().find(|variable| variable.name == name)
    }

    fn read(&mut self, name: &str) {
        let Some((at, between)) = self.find(name) else {
            return;
        };
        if let Some(variable) = self.variable(at, name) {
            variable.pending.clear();
            variable.is_captured |= between > 0;
        }
    }

    /// `span` where it is an assignment that may be reported.
    fn assign(&mut self, name: &EcoString, span: Option<Span>) {
        let Some((at, between)) = self.find(name) else {
            let innermost = self
                .scopes
                .iter_mut()
                .rev()
                .find(|scope| scope.place != Place::Arm);
            if let Some(scope) = innermost {
                let mut variable = Variable::new(name);
                if scope.place != Place::Method {
                    variable.pending.extend(span);
                }
                scope.variables.push(variable);
            }
            return;
        };
        let crosses = self
            .scopes
            .iter()
            .skip(at + 1)
            .any(|scope| scope.place == Place::Elsewhere);
        let is_of_block = self
            .scopes
            .get(at)
            .is_some_and(|scope| scope.place != Place::Method);
        if crosses {
            if let Some(span) = span
                && !name.starts_with('_')
            {
                self.report(name, span);
            }
        } else if between == 0
            && is_of_block
            && let Some(variable) = self.variable(at, name)
        {
            variable.pending.extend(span);
        }
    }
}

/// `Timer every: … do: [..]`, `Timer after: … do: [..]`.
fn is_timer(send: &ast::Send) -> bool {
    matches!(&send.receiver.kind, ExpressionKind::ClassName(class) if class.name.text == "Timer")
        && matches!(send.message.selector.as_str(), "every:do:" | "after:do:")
}
