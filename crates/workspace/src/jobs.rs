//! Work that goes on without its client: kept for who ordered it, for an hour, as long as the daemon lives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_mcp::Progress;
use beamtalk_storage::time::{now_millis, timestamp};
use beamtalk_wire::answers::JobAnswer;
use beamtalk_wire::{ErrorBody, ErrorKind};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// How long one is kept, and how many of a principal.
const KEPT: Duration = Duration::from_hours(1);
const RUNNING: usize = 16;
const ALL: usize = 64;

pub(crate) struct Job {
    pub(crate) name: String,
    principal: String,
    started: Instant,
    created: u64,
    updated: Cell<u64>,
    status: Cell<&'static str>,
    result: RefCell<Option<String>>,
    task: RefCell<Option<AbortHandle>>,
    pub(crate) progress: Rc<Progress>,
    ended: Notify,
}

impl Job {
    pub(crate) fn end(&self, result: Result<String, String>) {
        let (status, text) = match result {
            Ok(text) => ("completed", text),
            Err(text) => ("failed", text),
        };
        if self.is_running() {
            self.settle(status);
            *self.result.borrow_mut() = Some(text);
        }
        self.ended.notify_waiters();
    }

    pub(crate) fn cancel(&self) {
        if self.is_running() {
            self.settle("cancelled");
            if let Some(task) = self.task.borrow_mut().take() {
                task.abort();
            }
        }
        self.ended.notify_waiters();
    }

    fn settle(&self, status: &'static str) {
        self.status.set(status);
        self.updated.set(now_millis());
    }

    pub(crate) fn is_done_by(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status.get() == "working"
    }

    /// Wait for its end, at most so long.
    pub(crate) async fn wait(&self, time: Duration) {
        let ended = self.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        if self.is_running() {
            drop(tokio::time::timeout(time, ended).await);
        }
    }

    pub(crate) fn answer(&self) -> JobAnswer {
        let is_running = self.is_running();
        JobAnswer {
            job: self.name.clone(),
            state: self.status.get().to_owned(),
            created: timestamp(self.created),
            updated: timestamp(if is_running {
                now_millis()
            } else {
                self.updated.get()
            }),
            ttl_ms: u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX),
            message: self.progress.message().filter(|_| is_running),
            result: self.result.borrow().clone(),
        }
    }
}

#[derive(Default)]
pub(crate) struct Jobs(RefCell<Vec<Rc<Job>>>);

impl Jobs {
    pub(crate) fn add(&self, principal: String) -> Result<Rc<Job>, ErrorBody> {
        let mut jobs = self.0.borrow_mut();
        jobs.retain(|job| job.is_running() || job.started.elapsed() < KEPT);
        let own = |job: &Rc<Job>| job.principal == principal;
        if jobs.iter().filter(|job| own(job) && job.is_running()).count() >= RUNNING {
            let error = ErrorBody::new(ErrorKind::Busy, format!("{RUNNING} tasks run already"));
            return Err(error.hint("wait for one of them, or cancel it"));
        }
        if jobs.iter().filter(|job| own(job)).count() >= ALL
            && let Some(oldest) = jobs.iter().position(|job| own(job) && !job.is_running())
        {
            jobs.remove(oldest);
        }
        let bytes = beamtalk_storage::random_bytes::<16>()
            .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
        let job = Rc::new(Job {
            name: format!("tk_{}", beamtalk_storage::base64url(&bytes)),
            principal,
            started: Instant::now(),
            created: now_millis(),
            updated: Cell::new(now_millis()),
            status: Cell::new("working"),
            result: RefCell::new(None),
            task: RefCell::new(None),
            progress: Rc::default(),
            ended: Notify::new(),
        });
        jobs.push(job.clone());
        Ok(job)
    }

    /// One's own; to others there is none.
    pub(crate) fn find(&self, principal: &str, name: &str) -> Result<Rc<Job>, ErrorBody> {
        let jobs = self.0.borrow();
        let found = jobs
            .iter()
            .find(|job| job.name == name && job.principal == principal)
            .filter(|job| job.is_running() || job.started.elapsed() < KEPT);
        found
            .cloned()
            .ok_or_else(|| ErrorBody::new(ErrorKind::NotFound, "there is no such task"))
    }

    /// The credentials of a principal are gone, and its work with them.
    pub(crate) fn forget(&self, principal: &str) {
        let mut jobs = self.0.borrow_mut();
        jobs.retain(|job| {
            let is_meant = job.principal == principal;
            if is_meant {
                job.cancel();
            }
            !is_meant
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_belongs_to_who_ordered_it_and_ends_once() {
        let jobs = Jobs::default();
        let job = jobs.add("owner".to_owned()).expect("room");
        assert!(jobs.find("token:ci", &job.name).is_err());
        assert_eq!(
            jobs.find("owner", &job.name).expect("it").answer().state,
            "working"
        );
        job.cancel();
        job.end(Ok("{}".to_owned()));
        let answer = job.answer();
        assert_eq!((answer.state.as_str(), answer.result), ("cancelled", None));
    }

    #[test]
    fn only_so_much_runs_at_a_time() {
        let jobs = Jobs::default();
        let all: Vec<_> = (0..RUNNING)
            .map(|_| jobs.add("owner".to_owned()).expect("room"))
            .collect();
        assert!(jobs.add("owner".to_owned()).is_err());
        assert!(jobs.add("token:ci".to_owned()).is_ok());
        all[0].end(Ok(String::new()));
        assert!(jobs.add("owner".to_owned()).is_ok());
    }
}
