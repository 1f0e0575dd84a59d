//! The trail of calls: what was called, by whom, and how it ended; never a text of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_wire::requests::McpCall;
use serde_json::{Map, Value};

use crate::capabilities::Era;
use crate::confirmation::fingerprint;
use crate::host::Host;
use crate::message::MODERN;
use crate::session::{Call, Session};
use crate::tools::{Class, Tool};

/// Calls that read are counted for so long and recorded together.
const TOGETHER: Duration = Duration::from_secs(1);
/// The longest `traceparent`.
const TRACE_LETTERS: usize = 64;

/// Calls that read, by tool.
#[derive(Default)]
pub(crate) struct Reads(RefCell<BTreeMap<&'static str, McpCall>>);

impl Reads {
    /// Count a call; says if it is the first since the last record.
    fn count(&self, tool: &'static str, call: McpCall) -> bool {
        let mut reads = self.0.borrow_mut();
        let is_first = reads.is_empty();
        reads
            .entry(tool)
            .and_modify(|known| {
                known.count = Some(known.count.unwrap_or(1) + 1);
                known.ms = Some(known.ms.unwrap_or(0) + call.ms.unwrap_or(0));
                known.sha256 = None;
                known.bytes = None;
            })
            .or_insert(call);
        is_first
    }

    pub(crate) fn take(&self) -> Vec<McpCall> {
        std::mem::take(&mut *self.0.borrow_mut()).into_values().collect()
    }
}

/// A call that runs. It is recorded when it ends, also when nobody waits for it any more.
pub(crate) struct Recording<H: Host> {
    session: Rc<Session<H>>,
    tool: &'static Tool,
    call: McpCall,
    started: Instant,
}

impl<H: Host> Recording<H> {
    pub(crate) fn begin(
        session: &Rc<Session<H>>,
        tool: &'static Tool,
        call: &Call,
        given: &Map<String, Value>,
    ) -> Self {
        let trace = call
            .params
            .get("_meta")
            .and_then(|meta| meta["traceparent"].as_str());
        let shown = |text: &str| beamtalk_wire::escape(&text.chars().take(TRACE_LETTERS).collect::<String>());
        Self {
            session: session.clone(),
            tool,
            call: McpCall {
                tool: tool.name.to_owned(),
                class: tool.class.name().to_owned(),
                era: match call.era {
                    Era::Modern => MODERN,
                    Era::Legacy(version) => version,
                }
                .to_owned(),
                outcome: "cancelled".to_owned(),
                client_info: Some(call.client.name.clone()).filter(|name| !name.is_empty()),
                sha256: Some(fingerprint(given)),
                bytes: Some(serde_json::to_string(given).map_or(0, |text| text.len() as u64)),
                trace: trace.map(shown),
                way: Some(session.settings.way.name().to_owned()),
                task: call.task.clone(),
                ..McpCall::default()
            },
            started: Instant::now(),
        }
    }

    /// Somebody else records it.
    pub(crate) fn leave(&mut self) {
        self.call.outcome.clear();
    }

    /// The person's answer to it has this name.
    pub(crate) fn approved_by(&mut self, approval: Option<String>) {
        self.call.approval = approval;
    }

    /// How it ended, by the kind of its error.
    pub(crate) fn end(&mut self, error_kind: Option<&str>) {
        let outcome = match error_kind {
            None => "ok",
            Some("policy_denied" | "path_denied" | "loop_forbidden" | "forbidden") => "denied",
            Some("declined" | "confirmation_needed" | "approval_denied") => "declined",
            Some("eval_limit" | "compiler_limit" | "rate_limited" | "busy") => "limit",
            Some("interrupted") => "cancelled",
            Some(_) => "error",
        };
        outcome.clone_into(&mut self.call.outcome);
        self.call.error_kind = error_kind.map(str::to_owned);
    }
}

impl<H: Host> Recording<H> {
    /// Write it down before the answer; calls that read are counted.
    pub(crate) async fn write(mut self) {
        if let Some(call) = self.ended() {
            self.session.host.record(call).await;
        }
    }

    /// What is to be written at once, if something is.
    fn ended(&mut self) -> Option<McpCall> {
        if self.call.outcome.is_empty() {
            return None;
        }
        self.call.ms = Some(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        let call = std::mem::take(&mut self.call);
        if self.tool.class != Class::Read || call.outcome != "ok" {
            return Some(call);
        }
        if self.session.common.reads.count(self.tool.name, call) {
            let session = self.session.clone();
            tokio::task::spawn_local(async move {
                tokio::time::sleep(TOGETHER).await;
                session.record_reads();
            });
        }
        None
    }
}

impl<H: Host> Drop for Recording<H> {
    fn drop(&mut self) {
        if let Some(call) = self.ended() {
            self.session.record(call);
        }
    }
}
