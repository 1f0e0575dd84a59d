//! How failed attempts are slowed down and recorded.
//!
//! A failure is answered late, so that guessing is slow. After many failures the delay grows and
//! their audit records are merged, so that an attacker cannot fill the disk. Success asks nothing
//! here: no number of failures keeps the owner out.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// This many failures within the window are many.
const MANY: usize = 20;
const WINDOW: Duration = Duration::from_mins(1);
/// Merged records are written this often.
pub(crate) const MERGE: Duration = Duration::from_secs(1);

/// Why somebody was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A wrong secret.
    Invalid,
    /// Something other than an attempt to authenticate.
    NotAuth,
    Timeout,
    TooLarge,
    Host,
    Origin,
    PeerUid,
    /// A right secret where it does not count: the workspace cookie from the network.
    Role,
}

impl Reason {
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotAuth => "not_auth",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Host => "host",
            Self::Origin => "origin",
            Self::PeerUid => "peer_uid",
            Self::Role => "role",
        }
    }
}

/// Whose attempt it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    Unix { uid: u32 },
}

impl std::fmt::Display for Peer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix { uid } => write!(formatter, "unix:uid={uid}"),
        }
    }
}

/// What may be recorded of a failure; nothing of what the stranger sent is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub peer: Peer,
    pub reason: Reason,
    /// How many bytes were presented.
    pub bytes: usize,
    /// How many failures this record stands for.
    pub count: u64,
}

/// What to do about a failure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) delay: Duration,
    pub(crate) record: Record,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Now(Failure),
    /// It was added to a record that somebody else writes soon.
    Merged,
    /// It began a record: come back for it with [`Failures::take`] after [`MERGE`].
    Later,
}

/// The two delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    pub few: Duration,
    pub many: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            few: Duration::from_millis(250),
            many: Duration::from_secs(1),
        }
    }
}

/// The failures of the last minute.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    recent: VecDeque<Instant>,
    merged: Option<Failure>,
}

impl Failures {
    pub(crate) fn note(&mut self, failure: Failure, delays: Delays, now: Instant) -> Response {
        self.recent.retain(|at| now.duration_since(*at) < WINDOW);
        let has_many = self.recent.len() >= MANY;
        if has_many {
            self.recent.pop_front();
        }
        self.recent.push_back(now);
        let delay = if has_many { delays.many } else { delays.few };
        let record = match &mut self.merged {
            Some(merged) => {
                merged.count += failure.count;
                merged.bytes += failure.bytes;
                Record::Merged
            }
            None if has_many => {
                self.merged = Some(failure);
                Record::Later
            }
            None => Record::Now(failure),
        };
        Response { delay, record }
    }

    pub(crate) fn take(&mut self) -> Option<Failure> {
        self.merged.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILURE: Failure = Failure {
        peer: Peer::Unix { uid: 7 },
        reason: Reason::Invalid,
        bytes: 43,
        count: 1,
    };

    #[test]
    fn many_failures_are_slower_and_merged() {
        let (delays, start) = (Delays::default(), Instant::now());
        let mut failures = Failures::default();
        for _ in 0..20 {
            let response = failures.note(FAILURE, delays, start);
            assert_eq!(response.delay, Duration::from_millis(250));
            assert_eq!(response.record, Record::Now(FAILURE));
        }
        let response = failures.note(FAILURE, delays, start + Duration::from_secs(5));
        assert_eq!(response.delay, Duration::from_secs(1));
        assert_eq!(response.record, Record::Later);
        for _ in 0..9 {
            assert_eq!(
                failures
                    .note(FAILURE, delays, start + Duration::from_secs(5))
                    .record,
                Record::Merged
            );
        }
        let merged = failures.take().unwrap();
        assert_eq!((merged.count, merged.bytes), (10, 430));
        assert_eq!(failures.take(), None);
    }

    #[test]
    fn a_quiet_minute_forgets() {
        let (delays, start) = (Delays::default(), Instant::now());
        let mut failures = Failures::default();
        for _ in 0..100 {
            failures.note(FAILURE, delays, start);
        }
        failures.take();
        let response = failures.note(FAILURE, delays, start + WINDOW);
        assert_eq!(response.delay, Duration::from_millis(250));
        assert!(failures.recent.len() <= MANY);
    }
}
