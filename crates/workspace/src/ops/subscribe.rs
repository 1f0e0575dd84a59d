//! What a connection listens to: `subscribe`, `unsubscribe`.

use std::rc::Rc;

use beamtalk_wire::answers::ChannelsAnswer;
use beamtalk_wire::requests::{Subscribe, Unsubscribe};
use beamtalk_wire::{Channel, ErrorBody, ErrorKind, Event, Op, Role};

use super::Caller;
use crate::workspace::{Watch, Workspace};

pub(super) async fn subscribe(
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
    let behind: Vec<(Channel, u64)> = request
        .since
        .iter()
        .flatten()
        .filter_map(|(name, since)| Some((Channel::from_name(name)?, *since)))
        .filter(|(channel, _)| channels.contains(channel))
        .collect();
    let mut turn = 0;
    let active = change(workspace, caller, |watch| {
        watch.channels.extend(channels);
        if channels.contains(&Channel::Object) {
            watch.actors.extend(actor.map(str::to_owned));
        }
        if channels.contains(&Channel::Logs) {
            watch.level.clone_from(&request.level);
        }
        watch.turns += 1;
        turn = watch.turns;
        watch
            .behind
            .extend(behind.iter().map(|(channel, _)| (*channel, turn)));
    })?;
    for (channel, since) in behind {
        catch_up(workspace, caller, (channel, turn), since).await;
    }
    Ok(active)
}

/// So many events are read at a time.
const PIECE: usize = 256;

/// Send what was told after a number, in order and as fast as it is taken, or say from where on that is possible. What is
/// told meanwhile is kept too and follows from there: nothing is left out, and nothing that waits is sent twice.
async fn catch_up(workspace: &Workspace, caller: &Caller, (channel, turn): (Channel, u64), since: u64) {
    let Some(connection) = caller.connection else {
        return;
    };
    let outgoing = workspace
        .connections
        .borrow()
        .get(&connection)
        .map(|guest| guest.outgoing.clone());
    let Some(outgoing) = outgoing else {
        return;
    };
    let mut last = since;
    // A queue that is full of what was missed has no room for what is told afterwards.
    while outgoing.calm().await.is_ok() {
        let (texts, is_over) = {
            let mut connections = workspace.connections.borrow_mut();
            let Some(guest) = connections.get_mut(&connection) else {
                return;
            };
            // Somebody else goes on, or nobody listens any more.
            if guest.watch.behind.get(&channel) != Some(&turn) {
                return;
            }
            if last == since {
                outgoing.forget(channel);
            }
            let (gap, piece) = match channel {
                Channel::Transcript => workspace.told.borrow_mut().after(last, PIECE),
                _ => workspace.broadcast.borrow().after(channel, last, PIECE),
            };
            let is_over = piece.is_empty();
            if is_over {
                guest.watch.behind.remove(&channel);
            }
            let mut texts: Vec<String> = gap.iter().map(Event::text).collect();
            for (seq, event) in &piece {
                last = *seq;
                if guest.wants(event) {
                    texts.push(event.numbered_text(*seq));
                }
            }
            (texts, is_over)
        };
        for text in outgoing.gathered(texts) {
            if outgoing.send(text).await.is_err() {
                return;
            }
        }
        if is_over {
            return;
        }
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
        watch.behind.retain(|channel, _| !channels.contains(channel));
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
