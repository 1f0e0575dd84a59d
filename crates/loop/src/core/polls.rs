//! When observed hooks are polled, and which of their warnings are repeated.

use std::collections::BTreeMap;

use super::Ms;
use crate::config::Config;

/// The same warning of a poll is repeated at most once in this time.
const REPEAT_AFTER: Ms = 60_000;

#[derive(Debug)]
struct Poll {
    interval: Ms,
    /// None while the poll is under way, or before polling begins.
    due: Option<Ms>,
    warned: Option<(String, Ms)>,
}

#[derive(Debug)]
pub(crate) struct Polls {
    polls: BTreeMap<String, Poll>,
}

impl Polls {
    pub(crate) fn new(config: &Config) -> Self {
        let polls = config
            .hook
            .iter()
            .filter_map(|(name, hook)| {
                let interval = hook.observe.as_ref()?.interval_ms;
                Some((
                    name.clone(),
                    Poll {
                        interval,
                        due: None,
                        warned: None,
                    },
                ))
            })
            .collect();
        Self { polls }
    }

    /// Go on by another config: polls under way and those that wait keep their times, new ones
    /// are due now.
    pub(crate) fn reconfigure(&mut self, now: Ms, config: &Config) {
        let mut next = Self::new(config);
        for (name, poll) in &mut next.polls {
            match self.polls.remove(name) {
                Some(before) => (poll.due, poll.warned) = (before.due, before.warned),
                None => poll.due = Some(now),
            }
        }
        *self = next;
    }

    pub(crate) fn begin(&mut self, now: Ms) {
        for poll in self.polls.values_mut() {
            poll.due = Some(now);
        }
    }

    pub(crate) fn stop(&mut self) {
        self.polls.clear();
    }

    pub(crate) fn deadline(&self) -> Option<Ms> {
        self.polls.values().filter_map(|poll| poll.due).min()
    }

    /// The hook whose poll has been due the longest, which is polled from now on.
    pub(crate) fn take_due(&mut self, now: Ms) -> Option<String> {
        let (name, poll) = self
            .polls
            .iter_mut()
            .filter(|(_, poll)| poll.due.is_some_and(|due| due <= now))
            .min_by_key(|(_, poll)| poll.due)?;
        poll.due = None;
        Some(name.clone())
    }

    /// The poll ended; the next one is due an interval from now.
    pub(crate) fn ended(&mut self, now: Ms, hook: &str) {
        if let Some(poll) = self.polls.get_mut(hook) {
            poll.due = Some(now + poll.interval);
        }
    }

    /// Whether to say this warning, rather than have it repeated too soon.
    pub(crate) fn may_warn(&mut self, now: Ms, hook: &str, text: &str) -> bool {
        let Some(poll) = self.polls.get_mut(hook) else {
            return true;
        };
        if let Some((last, at)) = &poll.warned
            && last == text
            && now < at + REPEAT_AFTER
        {
            return false;
        }
        poll.warned = Some((text.to_owned(), now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn polls() -> Polls {
        let poll = |interval| Poll {
            interval,
            due: None,
            warned: None,
        };
        Polls {
            polls: BTreeMap::from([("a".into(), poll(100)), ("b".into(), poll(300))]),
        }
    }

    #[test]
    fn a_hook_is_never_polled_twice_at_once() {
        let mut polls = polls();
        assert_eq!(polls.take_due(0), None);
        polls.begin(0);
        assert_eq!(polls.take_due(0), Some("a".into()));
        assert_eq!(polls.take_due(0), Some("b".into()));
        assert_eq!(polls.take_due(9999), None);
        polls.ended(500, "a");
        assert_eq!(polls.deadline(), Some(600));
        assert_eq!(polls.take_due(599), None);
        assert_eq!(polls.take_due(600), Some("a".into()));
    }

    #[test]
    fn the_same_warning_comes_once_a_minute() {
        let mut polls = polls();
        assert!(polls.may_warn(0, "a", "x"));
        assert!(!polls.may_warn(59_999, "a", "x"));
        assert!(polls.may_warn(60_000, "a", "x"));
        assert!(polls.may_warn(60_001, "a", "y"));
    }
}
