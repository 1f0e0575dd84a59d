//! `audit`: a page of the trail, as it stands in its files.

use std::collections::VecDeque;
use std::rc::Rc;

use beamtalk_wire::answers::AuditTrailAnswer;
use beamtalk_wire::requests::AuditTrail;
use beamtalk_wire::{ErrorBody, ErrorKind};

use crate::audit::{AuditError, AuditReader, Filter, Record};
use crate::workspace::Workspace;

const USUAL: u64 = 200;
const MOST: u64 = 1_000;

pub(super) async fn audit_trail(
    workspace: &Rc<Workspace>,
    request: &AuditTrail,
) -> Result<AuditTrailAnswer, ErrorBody> {
    let reader = AuditReader::new(&workspace.directory);
    let request = request.clone();
    let read = tokio::task::spawn_blocking(move || page(&reader, &request)).await;
    let failed = |cause: String| ErrorBody::new(ErrorKind::ReadError, cause);
    read.map_err(|cause| failed(cause.to_string()))?
        .map_err(|cause| failed(cause.to_string()))
}

fn page(reader: &AuditReader, request: &AuditTrail) -> Result<AuditTrailAnswer, AuditError> {
    let filter = Filter {
        kinds: request.r#type.clone().unwrap_or_default(),
        session: request.of_session.clone(),
        ..Filter::default()
    };
    let limit = usize::try_from(request.limit.unwrap_or(USUAL).clamp(1, MOST)).unwrap_or(1);
    let mut answer = AuditTrailAnswer {
        records: Vec::new(),
        first: 0,
        last: 0,
        gaps: Vec::new(),
    };
    let mut newest: VecDeque<Record> = VecDeque::new();
    for record in reader.read(Filter::default())? {
        let record = record?;
        if answer.first == 0 {
            answer.first = record.seq;
        } else if record.seq != answer.last + 1 {
            answer.gaps.push(record.seq);
        }
        answer.last = record.seq;
        let is_before = request.before.is_none_or(|before| record.seq < before);
        if is_before && filter.accepts(&record) {
            newest.push_back(record);
            if newest.len() > limit {
                newest.pop_front();
            }
        }
    }
    answer.records = newest.into_iter().map(|record| record.fields).collect();
    Ok(answer)
}
