//! Threads that answer requests. Work that nobody wants any more is not begun.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use crossbeam_channel::Sender;

use crate::fault::Fault;

/// Hover must not wait for a rename across a large project.
const THREADS: usize = 4;
/// Trees nest as deep as the parser allows, and walking them takes stack.
const STACK: usize = beamtalk_project::source::STACK;

type Work = Box<dyn FnOnce() + Send>;

pub(crate) struct Pool {
    work: Sender<(Arc<AtomicBool>, Work)>,
}

impl Pool {
    pub(crate) fn start() -> io::Result<Self> {
        let (work, queue) = crossbeam_channel::unbounded::<(Arc<AtomicBool>, Work)>();
        for number in 0..THREADS {
            let queue = queue.clone();
            thread::Builder::new()
                .name(format!("lsp-worker-{number}"))
                .stack_size(STACK)
                .spawn(move || {
                    for (is_cancelled, work) in queue {
                        if !is_cancelled.load(Ordering::Relaxed) {
                            work();
                        }
                    }
                })?;
        }
        Ok(Self { work })
    }

    pub(crate) fn run(&self, is_cancelled: Arc<AtomicBool>, work: impl FnOnce() + Send + 'static) {
        // The threads live as long as the pool.
        drop(self.work.send((is_cancelled, Box::new(work))));
    }
}

/// What some work answers; a panic is an answer too.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no reason given");
        Err(Fault::Internal(format!(
            "the server failed at this request: {text}"
        )))
    })
}
