//! The queue of requests: first in, first out, at most one waiting per workflow.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::Source;

/// A workflow somebody wants to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) workflow: String,
    pub(crate) source: Source,
    pub(crate) changed: Vec<String>,
    /// What led to it, the first cause first.
    pub(crate) cause: Vec<String>,
    /// Who wants to hear how it ended.
    pub(crate) waiters: Vec<u64>,
    /// Of its run; none while it was not queued.
    pub(crate) number: Option<u64>,
}

/// Numbers for runs, each given once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    pub(crate) fn take(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Request {
    pub(crate) fn new(workflow: &str, source: Source, changed: Vec<String>, cause: Vec<String>) -> Self {
        Self {
            workflow: workflow.to_owned(),
            source,
            changed,
            cause,
            waiters: Vec::new(),
            number: None,
        }
    }

    /// Take over what another request for the same workflow wants.
    pub(crate) fn unite(&mut self, other: Self) {
        self.changed.extend(other.changed);
        self.changed.sort();
        self.changed.dedup();
        self.waiters.extend(other.waiters);
    }
}

#[derive(Debug, Default)]
pub(crate) struct Lane {
    queue: VecDeque<Request>,
    pub(crate) numbers: Numbers,
}

impl Lane {
    /// Queue a request, or unite it with the one already waiting for the same workflow. The answer is the number its
    /// run will have.
    pub(crate) fn push(&mut self, mut request: Request) -> u64 {
        if let Some(waiting) = self
            .queue
            .iter_mut()
            .find(|waiting| waiting.workflow == request.workflow)
        {
            waiting.unite(request);
            return *waiting.number.get_or_insert_with(|| self.numbers.take());
        }
        let number = *request.number.get_or_insert_with(|| self.numbers.take());
        self.queue.push_back(request);
        number
    }

    /// Queue a request before all others.
    pub(crate) fn push_first(&mut self, mut request: Request) {
        if let Some(waiting) = self.take(&request.workflow) {
            // Whoever asked for the waiting one was told its number.
            request.number = waiting.number;
            request.unite(waiting);
        }
        self.queue.push_front(request);
    }

    /// Take out the request that waits for a workflow.
    fn take(&mut self, workflow: &str) -> Option<Request> {
        let at = self
            .queue
            .iter()
            .position(|waiting| waiting.workflow == workflow)?;
        self.queue.remove(at)
    }

    /// Take out those that are not wanted any more.
    pub(crate) fn take_unless(&mut self, is_wanted: impl Fn(&Request) -> bool) -> Vec<Request> {
        let (wanted, other): (VecDeque<_>, VecDeque<_>) = self.queue.drain(..).partition(is_wanted);
        self.queue = wanted;
        other.into()
    }

    pub(crate) fn pop(&mut self) -> Option<Request> {
        self.queue.pop_front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Request> {
        self.queue.iter()
    }

    pub(crate) fn clear(&mut self) -> Vec<Request> {
        self.queue.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(workflow: &str, changed: &[&str]) -> Request {
        Request::new(
            workflow,
            Source::Watch,
            changed.iter().map(|path| (*path).to_owned()).collect(),
            Vec::new(),
        )
    }

    #[test]
    fn a_second_request_merges_and_keeps_the_place() {
        let mut lane = Lane::default();
        assert_eq!(lane.push(request("a", &["x"])), 1);
        assert_eq!(lane.push(request("b", &[])), 2);
        assert_eq!(lane.push(request("a", &["c", "x"])), 1);
        let numbered = |number, request| Request {
            number: Some(number),
            ..request
        };
        assert_eq!(lane.pop(), Some(numbered(1, request("a", &["c", "x"]))));
        assert_eq!(lane.pop(), Some(numbered(2, request("b", &[]))));
        assert_eq!(lane.pop(), None);
    }

    proptest! {
        #[test]
        fn each_workflow_waits_at_most_once_and_no_path_is_lost(
            pushes in proptest::collection::vec(("[a-d]", "[a-z]"), 0..40),
        ) {
            let mut lane = Lane::default();
            for (workflow, path) in &pushes {
                lane.push(request(workflow, &[path]));
            }
            let waiting: Vec<_> = std::iter::from_fn(|| lane.pop()).collect();
            for (workflow, path) in &pushes {
                let found: Vec<_> = waiting.iter().filter(|request| request.workflow == *workflow).collect();
                prop_assert_eq!(found.len(), 1);
                prop_assert!(found[0].changed.contains(path));
            }
        }
    }
}
