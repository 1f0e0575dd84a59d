//! `timeout_ms`: when a request wants to be answered, counted from its arrival.

use std::time::{Duration, Instant};

use beamtalk_wire::{Call, ErrorBody, ErrorKind, Op};

/// When a request wants to be answered.
pub(crate) struct Deadline {
    at: Option<Instant>,
    asked: Duration,
}

impl Deadline {
    pub(crate) fn of(call: &Call) -> Self {
        let asked = Duration::from_millis(call.timeout_ms.unwrap_or(0));
        Self {
            // A time that no clock can show is none.
            at: call.timeout_ms.and_then(|_| Instant::now().checked_add(asked)),
            asked,
        }
    }

    /// So long from now.
    pub(super) fn after(asked: Duration) -> Self {
        Self {
            at: Instant::now().checked_add(asked),
            asked,
        }
    }

    /// That of a request whose work is not stopped halfway, but goes on without whoever asked for it.
    pub(crate) fn of_change(call: &Call) -> Option<Self> {
        // These stop what they run, and keep the time themselves.
        if matches!(
            call.op,
            Op::Eval | Op::RunEntry | Op::LoopRun | Op::Test | Op::TestAll
        ) {
            return None;
        }
        Some(Self::of(call)).filter(|deadline| deadline.at.is_some())
    }

    pub(super) fn left(&self) -> Option<Duration> {
        self.at.map(|at| {
            at.saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1))
        })
    }

    /// Do a step on the way, or say at which one the time was over.
    pub(super) async fn keep<T>(
        &self,
        step: impl Future<Output = Result<T, ErrorBody>>,
        meanwhile: &str,
    ) -> Result<T, ErrorBody> {
        self.within(step)
            .await
            .unwrap_or_else(|| Err(out_of_time(self.asked, meanwhile)))
    }

    /// What `work` answers; `None` when the time is over first.
    pub(crate) async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        match self.left() {
            Some(left) => tokio::time::timeout(left, work).await.ok(),
            None => Some(work.await),
        }
    }

    /// The answer to a request whose time is over.
    pub(crate) fn error(&self, what: &str) -> ErrorBody {
        ErrorBody::new(ErrorKind::Timeout, format!("{what} within {}", shown(self.asked)))
            .detail("limit", "time")
    }
}

fn shown(limit: Duration) -> String {
    match u64::try_from(limit.as_millis()).unwrap_or(u64::MAX) {
        whole if whole % 1000 == 0 => format!("{} s", whole / 1000),
        milliseconds => format!("{milliseconds} ms"),
    }
}

/// An evaluation whose time is over.
pub(super) fn out_of_time(limit: Duration, meanwhile: &str) -> ErrorBody {
    let limit = shown(limit);
    ErrorBody::new(
        ErrorKind::EvalLimit,
        format!("evaluation stopped: time limit of {limit} reached while {meanwhile}"),
    )
    .detail("limit", "time")
}
