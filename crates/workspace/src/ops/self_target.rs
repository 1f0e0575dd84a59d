//! What `self` is in an evaluation: a value, for which the code is run as a method of its class would be, or an actor,
//! to which the code is one message.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::requests::{Inspect, SelfTarget};
use beamtalk_wire::{ErrorBody, ErrorKind, Op, Request, Side};
use serde::Deserialize;

use super::save_method::{MethodText, compile_method};
use crate::compile::Compiled;
use crate::sessions::Session;
use crate::terms;
use crate::workspace::Workspace;

/// The variable that an actor is in while a message is sent to it.
pub(super) const RECEIVER: &str = "beamtalkReceiver";
/// What the code is called as a method.
const SELECTOR: &str = "inspectorEvaluation";

pub(super) struct Subject {
    target: Term,
    class: String,
    side: Side,
    pub(super) is_actor: bool,
}

/// What the node says of it.
#[derive(Deserialize)]
struct Seen {
    kind: String,
    class: String,
    text: String,
}

/// Find out what a target is. What is no message to an actor is refused.
pub(super) async fn subject(
    workspace: &Rc<Workspace>,
    session: &Session,
    target: &SelfTarget,
    code: &str,
) -> Result<Subject, ErrorBody> {
    let given = [&target.actor, &target.binding, &target.class, &target.r#ref];
    if given.iter().filter(|one| one.is_some()).count() != 1 {
        return Err(Op::Eval.invalid("self", "exactly one of actor, binding, class, ref"));
    }
    let look = Inspect {
        actor: target.actor.clone(),
        binding: target.binding.clone(),
        class: target.class.clone(),
        r#ref: target.r#ref.clone(),
        path: target.path.clone(),
        limit: Some(1),
        ..Inspect::default()
    };
    let arguments = terms::of(&Request::from(look))?;
    let seen = workspace
        .image
        .call(&session.id, Op::Inspect.name(), arguments)
        .await?;
    let seen: Seen = terms::typed(seen)?;
    let is_actor = seen.kind == "actor";
    if is_actor && !is_message(code) {
        let message = "to an actor the code is one message";
        return Err(ErrorBody::new(ErrorKind::InvalidParameter, message)
            .hint("write the message alone, as in: at: 3 put: 4"));
    }
    // A class object is of the class `Lamp class`; its code stands on the class side of Lamp.
    let (class, side) = match seen.class.strip_suffix(" class") {
        Some(_) => (seen.text, Side::Class),
        None => (seen.class, Side::Instance),
    };
    Ok(Subject {
        target: terms::of(target)?,
        class,
        side,
        is_actor,
    })
}

/// Whether a text behind a receiver is one statement.
fn is_message(code: &str) -> bool {
    let (statements, found) = beamtalk_syntax::parse_body(&format!("{RECEIVER} {code}"));
    statements.len() == 1
        && !code.trim().is_empty()
        && found
            .iter()
            .all(|one| one.severity != beamtalk_syntax::diagnostic::Severity::Error)
}

impl Subject {
    pub(super) async fn compile(&self, workspace: &Rc<Workspace>, code: &str) -> Result<Compiled, ErrorBody> {
        let method = MethodText {
            class: &self.class,
            selector: SELECTOR,
            source: code,
            side: self.side,
        };
        compile_method(workspace, &method).await
    }

    /// What the node has to know to run it.
    pub(super) fn tell(&self, compiled: &Compiled, pairs: &mut Vec<(Term, Term)>) {
        pairs.push((Term::binary("self"), self.target.clone()));
        if self.is_actor {
            return;
        }
        // The code is a method that is installed nowhere, so there is nothing to load.
        pairs.retain(|(key, _)| *key != Term::binary("modules"));
        let method = compiled.outcome.modules.first();
        let forms = method.map(|module| compiled.bytes(module.forms));
        pairs.push((Term::binary("method"), Term::binary(forms.unwrap_or_default())));
    }
}
