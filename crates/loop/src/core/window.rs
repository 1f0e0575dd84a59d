//! The change window: opens at the first change and closes once, after a fixed time or when it has
//! become quiet.

use std::collections::BTreeMap;

use super::Ms;
use crate::config::DebounceMode;

/// A window that never becomes quiet closes after this many times its length.
const QUIET_LIMIT: u64 = 10;

/// One changed path, and whether the loop knew a file there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub known: bool,
}

#[derive(Debug)]
pub(crate) struct Window {
    length: Ms,
    mode: DebounceMode,
    closes: Option<Ms>,
    /// However long changes go on, it closes then.
    latest: Ms,
    /// While held, changes collect but the window does not close.
    held: bool,
    paths: BTreeMap<String, bool>,
}

impl Window {
    pub(crate) fn new(length: Ms, mode: DebounceMode) -> Self {
        Self {
            length,
            mode,
            closes: None,
            latest: 0,
            held: true,
            paths: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, now: Ms, changes: Vec<Change>) {
        if !changes.is_empty() {
            let due = now.saturating_add(self.length);
            if self.closes.is_none() {
                self.latest = now.saturating_add(self.length.saturating_mul(QUIET_LIMIT));
                self.closes = Some(due);
            } else if self.mode == DebounceMode::Quiet {
                self.closes = Some(due.min(self.latest));
            }
        }
        for change in changes {
            // What was known when the window opened is what the first change says.
            self.paths.entry(change.path).or_insert(change.known);
        }
    }

    /// From the next window on.
    pub(crate) fn reconfigure(&mut self, length: Ms, mode: DebounceMode) {
        (self.length, self.mode) = (length, mode);
    }

    /// Changes held so far become one window that closes now.
    pub(crate) fn release(&mut self, now: Ms) {
        self.held = false;
        if self.closes.is_some() {
            self.closes = Some(now);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Ms> {
        if self.held { None } else { self.closes }
    }

    /// The window has closed: the paths in it, each with whether it was known before.
    pub(crate) fn take(&mut self, now: Ms) -> Option<BTreeMap<String, bool>> {
        if self.deadline().is_some_and(|closes| now >= closes) {
            self.closes = None;
            Some(std::mem::take(&mut self.paths))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change(path: &str, known: bool) -> Vec<Change> {
        vec![Change {
            path: path.into(),
            known,
        }]
    }

    #[test]
    fn later_changes_do_not_extend_it() {
        let mut window = Window::new(100, DebounceMode::Window);
        window.release(0);
        window.add(10, change("a", true));
        window.add(105, change("b", false));
        assert_eq!(window.take(109), None);
        assert_eq!(
            window.take(110),
            Some(BTreeMap::from([("a".into(), true), ("b".into(), false)]))
        );
        assert_eq!(window.take(500), None);
    }

    #[test]
    fn a_quiet_window_waits_for_silence_but_not_for_ever() {
        let mut window = Window::new(100, DebounceMode::Quiet);
        window.release(0);
        window.add(0, change("a", true));
        window.add(90, change("b", true));
        assert_eq!(window.take(189), None);
        assert_eq!(window.take(190).unwrap().len(), 2);
        for now in (1000..3000).step_by(50) {
            window.add(now, change("c", true));
            if let Some(paths) = window.take(now) {
                assert_eq!((now, paths.len()), (2000, 1));
                return;
            }
        }
        panic!("it never closed");
    }

    #[test]
    fn held_changes_come_as_one_window() {
        let mut window = Window::new(100, DebounceMode::Window);
        window.add(10, change("a", true));
        window.add(900, change("b", true));
        assert_eq!(window.take(1000), None);
        window.release(1000);
        assert_eq!(window.take(1000).unwrap().len(), 2);
    }

    #[test]
    fn the_first_word_about_a_path_counts() {
        let mut window = Window::new(100, DebounceMode::Window);
        window.release(0);
        window.add(0, change("a", false));
        window.add(1, change("a", true));
        assert_eq!(window.take(100), Some(BTreeMap::from([("a".into(), false)])));
    }

    proptest! {
        #[test]
        fn every_change_is_in_exactly_one_window(times in proptest::collection::vec(0u64..50, 1..60)) {
            let mut window = Window::new(20, DebounceMode::Window);
            window.release(0);
            let mut now = 0;
            let mut seen = 0;
            for (index, pause) in times.iter().enumerate() {
                now += pause;
                seen += window.take(now).map_or(0, |paths| paths.len());
                window.add(now, change(&index.to_string(), true));
                prop_assert!(window.deadline().unwrap() <= now + 20);
            }
            seen += window.take(now + 20).map_or(0, |paths| paths.len());
            prop_assert_eq!(seen, times.len());
        }
    }
}
