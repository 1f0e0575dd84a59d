//! A class method run as a program, with its output.

use std::rc::Rc;

use beamtalk_wire::requests::{Eval, RunEntry};
use beamtalk_wire::{ErrorBody, Op};

use super::deadline::Deadline;
use super::eval::{Evaluated, eval};
use super::{Caller, Sink};
use crate::workspace::Workspace;

pub(super) async fn run_entry(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    id: &str,
    request: &RunEntry,
    deadline: &Deadline,
    sink: &Sink,
) -> Result<Evaluated, ErrorBody> {
    let RunEntry {
        class,
        selector,
        args,
    } = request;
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '@');
    let is_selector = selector
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    if !is_name(class) {
        return Err(Op::RunEntry.invalid("class", "the name of a class"));
    }
    if !is_selector || selector.is_empty() {
        return Err(Op::RunEntry.invalid("selector", "a selector"));
    }
    let words = args.iter().flatten().map(|word| quoted(word));
    let code = if selector.ends_with(':') {
        format!("{class} {selector} #({})", words.collect::<Vec<_>>().join(", "))
    } else {
        format!("{class} {selector}")
    };
    let evaluation = Eval {
        code,
        ..Eval::default()
    };
    let mut evaluated = Box::pin(eval(workspace, caller, id, &evaluation, deadline, sink)).await?;
    evaluated.answer.exit_code.get_or_insert(0);
    Ok(evaluated)
}

/// A text as a literal of the language.
fn quoted(text: &str) -> String {
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('{', "\\{");
    format!("\"{text}\"")
}
