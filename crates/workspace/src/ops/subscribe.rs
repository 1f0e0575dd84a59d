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
    let owners = [
        (Channel::Logs, "the logs"),
        (Channel::Audit, "the audit trail"),
        (Channel::Desk, "the desk"),
        (Channel::Approvals, "approvals"),
    ];
    if caller.role == Role::Observer
        && let Some((_, what)) = owners.iter().find(|(channel, _)| channels.contains(channel))
    {
        let message = format!("observers do not see {what}");
        return Err(ErrorBody::new(ErrorKind::Forbidden, message));
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
    let active = change(workspace, caller, |watch| {
        watch.channels.extend(channels);
        if channels.contains(&Channel::Object) {
            watch.actors.extend(actor.map(str::to_owned));
        }
        if channels.contains(&Channel::Logs) {
            watch.level.clone_from(&request.level);
        }
    });
    for (name, since) in request.since.iter().flatten() {
        match Channel::from_name(name) {
            Some(channel) if channels.contains(&channel) => catch_up(workspace, caller, channel, *since),
            _ => {}
        }
    }
    active
}

/// Send what was told after a number, or say from where on that is possible.
fn catch_up(workspace: &Workspace, caller: &Caller, channel: Channel, since: u64) {
    let connections = workspace.connections.borrow();
    let Some(guest) = caller
        .connection
        .and_then(|connection| connections.get(&connection))
    else {
        return;
    };
    let tell = |text: String| guest.outgoing.push_event(channel, text);
    if channel != Channel::Transcript {
        let (gap, later) = workspace.broadcast.borrow().after(channel, since);
        if let Some(gap) = gap {
            tell(gap.text());
        }
        for (seq, event) in later.iter().filter(|(_, event)| guest.wants(event)) {
            tell(event.numbered_text(*seq));
        }
        return;
    }
    let told = workspace.told.borrow();
    if told.first() > since + 1 {
        tell(Event::gap(channel, since + 1, told.first() - 1).text());
    }
    for entry in told.after(since) {
        let event = Event::Transcript(TranscriptEvent::Text {
            text: entry.text.clone(),
            r#for: None,
        });
        tell(event.numbered_text(entry.seq));
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
