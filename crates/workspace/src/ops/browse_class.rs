//! A class with the texts of its methods, in one answer: the node knows the texts, the daemon where they can go.

use std::rc::Rc;

use beamtalk_wire::answers::BrowseClassAnswer;
use beamtalk_wire::requests::BrowseClass;
use beamtalk_wire::{ErrorBody, Request};

use super::entries::cannot_be_flushed;
use super::pass;
use crate::sessions::Session;
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn browse_class(
    workspace: &Rc<Workspace>,
    session: &Session,
    request: &BrowseClass,
) -> Result<BrowseClassAnswer, ErrorBody> {
    let told = pass(workspace, session, &Request::BrowseClass(request.clone())).await?;
    let mut answer: BrowseClassAnswer = terms::typed(told.0)?;
    let (package, file) = (answer.package.as_deref(), answer.source_file.as_deref());
    answer.flushable = Some(cannot_be_flushed(workspace, package, file).is_none());
    Ok(answer)
}
