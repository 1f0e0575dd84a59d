//! `transcript`: what was written before.

use beamtalk_wire::Flag;
use beamtalk_wire::answers::TranscriptAnswer;
use beamtalk_wire::requests::Transcript;

use super::Reply;
use crate::workspace::Workspace;

const USUAL: u64 = 200;
const MOST: u64 = 1_000;

/// The newest that were asked for and fit into a message.
pub(super) fn transcript(workspace: &Workspace, request: &Transcript) -> Reply {
    let limit = request.limit.unwrap_or(USUAL).min(MOST);
    let mut told = workspace.told.borrow_mut();
    let page = told.before(
        request.before,
        usize::try_from(limit).unwrap_or(1),
        request.find.as_deref(),
    );
    let mut reply = Reply::new(TranscriptAnswer {
        entries: page.entries,
        first: told.first(),
    });
    reply.flags.extend(page.is_cut.then_some(Flag::Truncated));
    reply
}
