//! What a connection listens to: `subscribe`, `unsubscribe`.

use std::rc::Rc;

use beamtalk_wire::answers::ChannelsAnswer;
use beamtalk_wire::requests::{Subscribe, Unsubscribe};
use beamtalk_wire::{Channel, ErrorBody, ErrorKind, Event, Op, Role, TranscriptEvent};

use super::Caller;
use crate::workspace::{Watch, Workspace};

pub(super) fn subscribe(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Subscribe,
) -> Result<ChannelsAnswer, ErrorBody> {
    let channels = &request.channels;
    if channels.is_empty() {
        return Err(Op::Subscribe.missing("channels"));
    }
    for (channel, what) in [(Channel::Logs, "the logs"), (Channel::Approvals, "approvals")] {
        if caller.role == Role::Observer && channels.contains(&channel) {
            return Err(ErrorBody::new(
                ErrorKind::Forbidden,
                format!("observers do not see {what}"),
            ));
        }
    }
    // Events name actors without brackets.
    let actor = request
        .actor
        .as_deref()
        .map(|actor| actor.trim_matches(['<', '>']));
    if channels.contains(&Channel::Object) && actor.is_none() {
        return Err(ErrorBody::new(
            ErrorKind::MissingParameter,
            "the channel 'object' needs the field 'actor'",
        ));
    }
    if channels.contains(&Channel::Transcript)
        && let Some(since) = request
            .since
            .as_ref()
            .and_then(|since| since.get(Channel::Transcript.name()))
    {
        catch_up(workspace, caller, *since);
    }
    change(workspace, caller, |watch| {
        watch.channels.extend(channels);
        if channels.contains(&Channel::Object) {
            watch.actors.extend(actor.map(str::to_owned));
        }
        if channels.contains(&Channel::Logs) {
            watch.level.clone_from(&request.level);
        }
    })
}

/// Send what was written after a number, or say from where on that is possible.
fn catch_up(workspace: &Workspace, caller: &Caller, since: u64) {
    let connections = workspace.connections.borrow();
    let Some(guest) = caller
        .connection
        .and_then(|connection| connections.get(&connection))
    else {
        return;
    };
    let told = workspace.told.borrow();
    if told.first() > since + 1 {
        let gap = Event::Transcript(TranscriptEvent::Gap {
            from: since + 1,
            to: told.first() - 1,
        });
        guest.outgoing.push_event(Channel::Transcript, gap.text());
    }
    for entry in told.after(since) {
        let event = Event::Transcript(TranscriptEvent::Text {
            text: entry.text.clone(),
            r#for: None,
        });
        guest
            .outgoing
            .push_event(Channel::Transcript, event.numbered_text(entry.seq));
    }
}

pub(super) fn unsubscribe(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    Unsubscribe { channels }: &Unsubscribe,
) -> Result<ChannelsAnswer, ErrorBody> {
    if channels.is_empty() {
        return Err(Op::Unsubscribe.missing("channels"));
    }
    change(workspace, caller, |watch| {
        watch.channels.retain(|channel| !channels.contains(channel));
        if channels.contains(&Channel::Object) {
            watch.actors.clear();
        }
    })
}

fn change(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    change: impl FnOnce(&mut Watch),
) -> Result<ChannelsAnswer, ErrorBody> {
    let Some(connection) = caller.connection else {
        return Err(ErrorBody::new(
            ErrorKind::InvalidRequest,
            "only a connection can listen",
        ));
    };
    let active = workspace.change_watch(connection, change);
    Ok(ChannelsAnswer {
        channels: active.into_iter().collect(),
    })
}
