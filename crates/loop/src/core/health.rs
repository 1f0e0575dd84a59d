//! Readiness in the background and liveness, for one process.

use super::Ms;
use super::state::State;
use crate::config::{Probe, ProbeTarget};

/// The longest one HTTP request may take.
pub(crate) const REQUEST_LIMIT: Ms = 5_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// Ask the address; the answer comes back under this id.
    Ask {
        id: u64,
        url: String,
        limit: Ms,
    },
    BecameReady,
    /// A liveness check failed; `restart` when it was the last one allowed.
    Failed {
        reason: String,
        restart: bool,
    },
    /// Liveness came back.
    Recovered,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Readiness {
    /// No probe.
    Unknown,
    Pending,
    Passed,
    /// The time ran out; nobody asks any more.
    Expired,
}

/// One kind of repeated check.
#[derive(Clone, Copy, Debug, Default)]
struct Checks {
    next: Option<Ms>,
    flight: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct Health {
    readiness_probe: Option<Probe>,
    liveness_probe: Option<Probe>,
    started: Option<Ms>,
    readiness: Readiness,
    ready_checks: Checks,
    live_checks: Checks,
    /// Failures count from now on.
    counting: bool,
    failures: u64,
}

/// Numbers for questions to the outside.
#[derive(Debug, Default)]
pub(crate) struct Ids(u64);

impl Ids {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

impl Health {
    pub(crate) fn new(readiness: Option<Probe>, liveness: Option<Probe>) -> Self {
        Self {
            readiness_probe: readiness,
            liveness_probe: liveness,
            started: None,
            readiness: Readiness::Unknown,
            ready_checks: Checks::default(),
            live_checks: Checks::default(),
            counting: false,
            failures: 0,
        }
    }

    /// The process was started just now.
    pub(crate) fn started(&mut self, now: Ms) {
        *self = Self::new(self.readiness_probe.take(), self.liveness_probe.take());
        self.started = Some(now);
        if self.readiness_probe.is_some() {
            self.readiness = Readiness::Pending;
            self.ready_checks.next = Some(now);
        } else if let Some(probe) = &self.liveness_probe {
            self.live_checks.next = Some(now + probe.interval_ms);
        }
    }

    /// The process is down or going down: nothing is asked any more.
    pub(crate) fn ended(&mut self) {
        *self = Self::new(self.readiness_probe.take(), self.liveness_probe.take());
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.readiness == Readiness::Passed
    }

    pub(crate) fn is_waiting_for_readiness(&self) -> bool {
        matches!(self.readiness, Readiness::Pending | Readiness::Expired)
    }

    /// The time to become ready is over.
    pub(crate) fn is_expired(&self) -> bool {
        self.readiness == Readiness::Expired
    }

    pub(crate) fn is_unhealthy(&self) -> bool {
        self.failures > 0
    }

    pub(crate) fn deadline(&self) -> Option<Ms> {
        [self.ready_checks, self.live_checks]
            .into_iter()
            .filter(|checks| checks.flight.is_none())
            .filter_map(|checks| checks.next)
            .min()
    }

    /// Somebody saw the process ready.
    pub(crate) fn pass(&mut self, now: Ms) -> Vec<Output> {
        if self.started.is_none() || !self.is_waiting_for_readiness() {
            return Vec::new();
        }
        self.readiness = Readiness::Passed;
        self.ready_checks = Checks::default();
        self.counting = true;
        if let Some(probe) = &self.liveness_probe {
            self.live_checks.next = Some(now + probe.interval_ms);
        }
        vec![Output::BecameReady]
    }

    pub(crate) fn tick(&mut self, now: Ms, state: &State, ids: &mut Ids) -> Vec<Output> {
        let mut out = Vec::new();
        if let (Some(probe), Some(started)) = (&self.readiness_probe, self.started)
            && is_due(self.ready_checks, now)
        {
            let left = (started + probe.timeout_ms).saturating_sub(now);
            match &probe.target {
                ProbeTarget::StateKey(key) => {
                    let answer = state.is_set(key);
                    self.ready_answer(now, answer, &mut out);
                }
                ProbeTarget::Http(url) => {
                    let id = ids.next();
                    self.ready_checks.flight = Some(id);
                    out.push(Output::Ask {
                        id,
                        url: url.clone(),
                        limit: request_limit(left),
                    });
                }
            }
        }
        if let Some(probe) = &self.liveness_probe
            && is_due(self.live_checks, now)
        {
            match &probe.target {
                ProbeTarget::StateKey(key) => {
                    let answer = if state.is_set(key) {
                        Ok(())
                    } else {
                        Err(format!("state key {key} is not set"))
                    };
                    self.live_answer(now, answer, &mut out);
                }
                ProbeTarget::Http(url) => {
                    let id = ids.next();
                    self.live_checks.flight = Some(id);
                    let limit = request_limit(probe.timeout_ms);
                    out.push(Output::Ask {
                        id,
                        url: url.clone(),
                        limit,
                    });
                }
            }
        }
        out
    }

    /// The answer to a question; none of ours is no answer.
    pub(crate) fn answered(&mut self, now: Ms, id: u64, answer: Result<(), String>) -> Vec<Output> {
        let mut out = Vec::new();
        if self.ready_checks.flight == Some(id) {
            self.ready_checks.flight = None;
            self.ready_answer(now, answer.is_ok(), &mut out);
        } else if self.live_checks.flight == Some(id) {
            self.live_checks.flight = None;
            self.live_answer(now, answer, &mut out);
        }
        out
    }

    fn ready_answer(&mut self, now: Ms, ready: bool, out: &mut Vec<Output>) {
        let (Some(probe), Some(started)) = (&self.readiness_probe, self.started) else {
            return;
        };
        if ready {
            out.extend(self.pass(now));
        } else if now >= started + probe.timeout_ms {
            self.readiness = Readiness::Expired;
            self.ready_checks = Checks::default();
        } else {
            self.ready_checks.next = Some((now + probe.interval_ms).min(started + probe.timeout_ms));
        }
    }

    fn live_answer(&mut self, now: Ms, answer: Result<(), String>, out: &mut Vec<Output>) {
        let (Some(probe), Some(started)) = (&self.liveness_probe, self.started) else {
            return;
        };
        self.live_checks.next = Some(now + probe.interval_ms);
        match answer {
            Ok(()) => {
                self.counting = true;
                if std::mem::take(&mut self.failures) > 0 {
                    out.push(Output::Recovered);
                }
            }
            Err(reason) => {
                if !self.counting && now < started + probe.timeout_ms {
                    return;
                }
                self.failures += 1;
                out.push(Output::Failed {
                    reason,
                    restart: self.failures >= probe.failures,
                });
            }
        }
    }
}

fn is_due(checks: Checks, now: Ms) -> bool {
    checks.flight.is_none() && checks.next.is_some_and(|next| now >= next)
}

/// What one request may take of the time that is left; never nothing, so one is always made.
pub(crate) fn request_limit(left: Ms) -> Ms {
    left.clamp(10, REQUEST_LIMIT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn probe(target: ProbeTarget, failures: u64) -> Probe {
        Probe {
            target,
            interval_ms: 100,
            timeout_ms: 1000,
            failures,
        }
    }

    fn key() -> ProbeTarget {
        ProbeTarget::StateKey("up".into())
    }

    fn state(value: &str) -> State {
        State::new([("up".to_owned(), json!(value))].into())
    }

    #[test]
    fn readiness_is_asked_until_it_passes() {
        let mut health = Health::new(Some(probe(key(), 1)), None);
        let mut ids = Ids::default();
        health.started(0);
        assert_eq!(health.tick(0, &state(""), &mut ids), []);
        assert!(health.is_waiting_for_readiness());
        assert_eq!(health.deadline(), Some(100));
        assert_eq!(health.tick(100, &state("x"), &mut ids), [Output::BecameReady]);
        assert!(health.is_ready());
        assert_eq!(health.deadline(), None);
    }

    #[test]
    fn readiness_gives_up_when_its_time_is_over() {
        let mut health = Health::new(Some(probe(key(), 1)), Some(probe(key(), 1)));
        let mut ids = Ids::default();
        health.started(0);
        for now in (0..=1000).step_by(50) {
            assert_eq!(health.tick(now, &state(""), &mut ids), []);
        }
        assert_eq!(health.deadline(), None);
        assert!(health.is_waiting_for_readiness() && !health.is_ready());
    }

    #[test]
    fn liveness_counts_only_after_a_first_success_or_its_time() {
        let mut health = Health::new(None, Some(probe(key(), 1)));
        let mut ids = Ids::default();
        health.started(0);
        assert_eq!(health.tick(100, &state(""), &mut ids), []);
        assert_eq!(health.tick(200, &state("x"), &mut ids), []);
        let failed = Output::Failed {
            reason: "state key up is not set".into(),
            restart: true,
        };
        assert_eq!(health.tick(300, &state(""), &mut ids), [failed]);
        assert_eq!(health.tick(400, &state("x"), &mut ids), [Output::Recovered]);

        health.started(10_000);
        assert_eq!(health.tick(10_900, &state(""), &mut ids), []);
        assert_eq!(health.tick(11_000, &state(""), &mut ids).len(), 1);
    }

    #[test]
    fn several_failures_may_be_forgiven() {
        let mut health = Health::new(None, Some(probe(key(), 3)));
        let mut ids = Ids::default();
        health.started(0);
        health.tick(100, &state("x"), &mut ids);
        let mut restarts = Vec::new();
        for now in [200, 300, 400] {
            for output in health.tick(now, &state(""), &mut ids) {
                if let Output::Failed { restart, .. } = output {
                    restarts.push(restart);
                }
            }
        }
        assert_eq!(restarts, [false, false, true]);
    }

    #[test]
    fn answers_to_earlier_starts_are_ignored() {
        let target = ProbeTarget::Http("http://127.0.0.1:9/".into());
        let mut health = Health::new(Some(probe(target, 1)), None);
        let mut ids = Ids::default();
        health.started(0);
        let asked = health.tick(0, &State::default(), &mut ids);
        assert!(matches!(
            asked[..],
            [Output::Ask {
                id: 1,
                limit: 1000,
                ..
            }]
        ));
        health.started(50);
        assert_eq!(health.answered(60, 1, Ok(())), []);
        assert!(!health.is_ready());
    }
}
