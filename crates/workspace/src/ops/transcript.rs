//! `transcript`: what was written before.

use beamtalk_wire::answers::TranscriptAnswer;
use beamtalk_wire::requests::Transcript;

use crate::workspace::Workspace;

const USUAL: u64 = 200;
const MOST: u64 = 1_000;

pub(super) fn transcript(workspace: &Workspace, request: &Transcript) -> TranscriptAnswer {
    let limit = request.limit.unwrap_or(USUAL).min(MOST);
    let mut told = workspace.told.borrow_mut();
    TranscriptAnswer {
        entries: told.before(
            request.before,
            usize::try_from(limit).unwrap_or(1),
            request.find.as_deref(),
        ),
        first: told.first(),
    }
}
