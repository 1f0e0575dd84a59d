//! What a connection listens to.

use std::rc::Rc;

use beamtalk_wire::{Channel, ErrorBody, Request, Role};
use serde_json::json;

use super::{Answer, Caller};
use crate::workspace::Workspace;

pub(super) fn subscribe(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let channels = channels(request)?;
    if caller.role == Role::Observer && channels.contains(&Channel::Logs) {
        return Err(ErrorBody::new("forbidden", "observers do not see the logs"));
    }
    // Events name actors without brackets.
    let actor = request
        .optional_text("actor")?
        .map(|actor| actor.trim_matches(['<', '>']).to_owned());
    if channels.contains(&Channel::Object) && actor.is_none() {
        return Err(ErrorBody::new(
            "missing_parameter",
            "the channel 'object' needs the field 'actor'",
        ));
    }
    let level = request.optional_text("level")?.map(str::to_owned);
    answer(workspace, caller, |watch| {
        watch.channels.extend(&channels);
        if channels.contains(&Channel::Object) {
            watch.actors.extend(actor.clone());
        }
        if channels.contains(&Channel::Logs) {
            watch.level.clone_from(&level);
        }
    })
}

pub(super) fn unsubscribe(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let channels = channels(request)?;
    answer(workspace, caller, |watch| {
        watch.channels.retain(|channel| !channels.contains(channel));
        if channels.contains(&Channel::Object) {
            watch.actors.clear();
        }
    })
}

fn answer(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    change: impl FnOnce(&mut crate::workspace::Watch),
) -> Result<Answer, ErrorBody> {
    let Some(connection) = caller.connection else {
        return Err(ErrorBody::new("invalid_request", "only a connection can listen"));
    };
    let active = workspace.change_watch(connection, change);
    let names: Vec<&str> = active.iter().map(|channel| channel.name()).collect();
    Ok(json!({"channels": names}).into())
}

fn channels(request: &Request) -> Result<Vec<Channel>, ErrorBody> {
    let names = request.texts("channels")?;
    if names.is_empty() {
        return Err(ErrorBody::new(
            "missing_parameter",
            format!("'{}' needs the field 'channels'", request.op.name()),
        ));
    }
    names
        .iter()
        .map(|name| {
            Channel::from_name(name).ok_or_else(|| {
                let known: Vec<&str> = Channel::ALL.iter().map(|channel| channel.name()).collect();
                request.invalid("channels", &format!("made of these: {}", known.join(", ")))
            })
        })
        .collect()
}
