//! `audit-summary`: one's own calls through MCP, counted. No texts, nobody else's.

use std::collections::BTreeMap;
use std::rc::Rc;

use beamtalk_storage::time::now_millis;
use beamtalk_wire::answers::{AuditSummaryAnswer, ToolCount};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use crate::audit::{AuditReader, Filter, Record};
use crate::handles::principal;
use crate::workspace::Workspace;

const DAY_MS: u64 = 24 * 3_600 * 1_000;

pub(super) async fn audit_summary(
    workspace: &Rc<Workspace>,
    caller: &Caller,
) -> Result<AuditSummaryAnswer, ErrorBody> {
    let reader = AuditReader::new(&workspace.directory);
    let own = principal(&caller.session);
    let filter = Filter {
        kinds: vec!["mcp".to_owned()],
        since: Some(now_millis().saturating_sub(DAY_MS)),
        ..Filter::default()
    };
    let failed = |cause: String| ErrorBody::new(ErrorKind::ReadError, cause);
    let read = tokio::task::spawn_blocking(move || -> Result<_, crate::audit::AuditError> {
        let mut counts = BTreeMap::new();
        for record in reader.read(filter)? {
            let record: Record = record?;
            if record.text("principal") == Some(own.as_str()) {
                let text = |name: &str| record.text(name).unwrap_or_default().to_owned();
                let count = record.fields.get("count").and_then(serde_json::Value::as_u64);
                *counts
                    .entry((text("tool"), text("outcome"), text("error_kind")))
                    .or_insert(0) += count.unwrap_or(1);
            }
        }
        Ok(counts)
    });
    let counts = read
        .await
        .map_err(|cause| failed(cause.to_string()))?
        .map_err(|cause| failed(cause.to_string()))?;
    let one = |((tool, outcome, kind), count): ((String, String, String), u64)| ToolCount {
        tool,
        outcome,
        count,
        error_kind: Some(kind).filter(|kind| !kind.is_empty()),
    };
    Ok(AuditSummaryAnswer {
        counts: counts.into_iter().map(one).collect(),
    })
}
