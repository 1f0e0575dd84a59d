//! The node's signs of life: several missed in a row, and it is taken for dead.

use std::path::Path;
use std::time::Duration;

use beamtalk_node::NodeLink;
use tokio::time::{Instant, sleep, timeout};

/// How often a sign of life is asked for, and how many may be missed.
const PULSE: Duration = Duration::from_secs(2);
const MISSED: u32 = 3;
/// So many times more are borne while the machine is too busy to run the node.
const BUSY: u32 = 5;

/// Until the node misses several signs of life in a row, and how long that took. Each is waited for by itself, so that a
/// daemon that was held up (or a machine that slept) does not take its own pause for the node's.
pub(super) async fn silence(link: &NodeLink) -> Duration {
    loop {
        let asked = Instant::now();
        let mut sign = std::pin::pin!(link.ping().outcome());
        let mut patience = Patience::new(MISSED, PULSE);
        while timeout(PULSE, &mut sign).await.is_err() {
            if patience.is_over(link.pid()) {
                return asked.elapsed();
            }
        }
        sleep(PULSE).await;
    }
}

/// How often in a row something may be amiss with a process, looked at in even steps. A step in which it waited for a
/// processor most of the time hardly counts: then it could not help itself.
pub(super) struct Patience {
    most: u32,
    step: Duration,
    amiss: u32,
    amiss_busy: u32,
    queued: Option<Duration>,
}

impl Patience {
    pub(super) fn new(most: u32, step: Duration) -> Self {
        Patience {
            most,
            step,
            amiss: 0,
            amiss_busy: 0,
            queued: None,
        }
    }

    /// Once more something is amiss: once too often?
    pub(super) fn is_over(&mut self, pid: u32) -> bool {
        self.adds(queued_for_processor(pid))
    }

    fn adds(&mut self, queued: Duration) -> bool {
        let before = self.queued.replace(queued).unwrap_or(queued);
        if queued.saturating_sub(before) < self.step / 2 {
            self.amiss += 1;
        } else {
            self.amiss_busy += 1;
        }
        self.amiss >= self.most || self.amiss_busy >= self.most * BUSY
    }
}

/// How long the threads of a process were ready to run and did not, where the system says.
fn queued_for_processor(pid: u32) -> Duration {
    let threads = std::fs::read_dir(Path::new("/proc").join(pid.to_string()).join("task"));
    let threads = threads.into_iter().flatten().flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    texts.filter_map(|text| queued(&text)).sum()
}

/// `<nanoseconds run> <nanoseconds queued> <turns>`.
fn queued(schedstat: &str) -> Option<Duration> {
    let nanoseconds = schedstat.split_ascii_whitespace().nth(1)?;
    nanoseconds.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_waits_for_a_processor_is_borne_longer() {
        let mut idle = Patience::new(3, PULSE);
        let looks = (1..9).position(|_| idle.adds(Duration::from_secs(7)));
        assert_eq!(looks, Some(2));
        let mut held_up = Patience::new(3, PULSE);
        let looks = (1..99).position(|look| held_up.adds(PULSE * look));
        assert_eq!(looks, Some(15));
    }

    #[test]
    fn the_time_in_the_queue_is_read() {
        assert_eq!(queued("5 2000000000 7\n"), Some(Duration::from_secs(2)));
        assert_eq!(queued("5"), None);
        assert_eq!(queued("5 many 7\n"), None);
        assert_eq!(queued_for_processor(u32::MAX), Duration::ZERO);
    }
}
