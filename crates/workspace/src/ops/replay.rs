//! `replay`: what was kept for a session, once more.

use beamtalk_wire::answers::ReplayAnswer;
use beamtalk_wire::requests::Replay;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::{Caller, Sink};

pub(super) async fn replay(
    caller: &Caller,
    request: &Replay,
    sink: &Sink,
) -> Result<ReplayAnswer, ErrorBody> {
    let Some(kept) = &caller.session.kept else {
        return Err(
            ErrorBody::new(ErrorKind::InvalidRequest, "nothing is kept for this session")
                .hint("say \"keep\":true in the first message"),
        );
    };
    let (frames, answer) = {
        let kept = kept.borrow();
        let answer = ReplayAnswer {
            last: kept.last(),
            lost: kept.lost(),
            open: kept.open(),
        };
        (kept.after(request.after.unwrap_or_default()), answer)
    };
    for frame in frames {
        sink.raw(frame).await;
    }
    Ok(answer)
}
