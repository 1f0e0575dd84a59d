//! The node's signs of life: several missed in a row, and it is taken for dead.

use std::path::Path;
use std::time::Duration;

use beamtalk_node::NodeLink;
use tokio::time::{Instant, sleep, timeout};

/// How often a sign of life is asked for, how many may be missed, and how many when the machine is too busy to run the node.
const PULSE: Duration = Duration::from_secs(2);
const MISSED: u32 = 3;
const MISSED_BUSY: u32 = 15;

/// Until the node misses several signs of life in a row, and how long that took. Each is waited for by itself, so that a
/// daemon that was held up (or a machine that slept) does not take its own pause for the node's; and a node that waited for
/// a processor most of the time has missed nothing by itself.
pub(super) async fn silence(link: &NodeLink) -> Duration {
    loop {
        let asked = Instant::now();
        let mut sign = std::pin::pin!(link.ping().outcome());
        let (mut missed, mut missed_busy) = (0, 0);
        let mut queued = None;
        while timeout(PULSE, &mut sign).await.is_err() {
            let before = queued.replace(queued_for_processor(link.pid()));
            let waited = before.map_or(Duration::ZERO, |before| {
                queued.unwrap_or_default().saturating_sub(before)
            });
            missed_busy += 1;
            if waited < PULSE / 2 {
                missed += 1;
            }
            if missed == MISSED || missed_busy == MISSED_BUSY {
                return asked.elapsed();
            }
        }
        sleep(PULSE).await;
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
    fn the_time_in_the_queue_is_read() {
        assert_eq!(queued("5 2000000000 7\n"), Some(Duration::from_secs(2)));
        assert_eq!(queued("5"), None);
        assert_eq!(queued("5 many 7\n"), None);
        assert_eq!(queued_for_processor(u32::MAX), Duration::ZERO);
    }
}
