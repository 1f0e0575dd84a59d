//! Waits for a moment more exactly than the timers of the runtime, which count whole
//! milliseconds and round up twice.

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
pub(crate) struct Alarm {
    timer: tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>,
    due: Option<Instant>,
    is_set: bool,
}

#[cfg(target_os = "linux")]
impl Alarm {
    #[expect(
        deprecated,
        reason = "the replacement is unsafe for the sake of descriptors that may change; an owned one does not"
    )]
    pub(crate) fn new() -> std::io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        Ok(Self {
            timer: tokio::io::unix::AsyncFd::new(timer)?,
            due: None,
            is_set: false,
        })
    }

    /// Ring at this moment, or never.
    pub(crate) fn set(&mut self, due: Option<Instant>) {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        if self.is_set && self.due == due {
            return;
        }
        // A time of zero would switch the timer off; a moment in the past rings at once.
        let left = due.map(|due| {
            due.saturating_duration_since(Instant::now())
                .max(Duration::from_nanos(1))
        });
        let value = left.and_then(|left| Timespec::try_from(left).ok());
        let never = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let time = Itimerspec {
            it_interval: never,
            it_value: value.unwrap_or(never),
        };
        self.is_set = timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &time).is_ok();
        self.due = due;
    }

    pub(crate) async fn ring(&mut self) {
        if let Ok(mut ready) = self.timer.readable().await {
            let mut count = [0; 8];
            // Nothing to read means that it was set anew meanwhile; a ring too many is harmless.
            let _ = rustix::io::read(self.timer.get_ref(), &mut count);
            ready.clear_ready();
            self.is_set = false;
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) struct Alarm {
    due: Option<Instant>,
}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self { due: None })
    }

    /// Ring at this moment, or never.
    pub(crate) fn set(&mut self, due: Option<Instant>) {
        self.due = due;
    }

    pub(crate) async fn ring(&mut self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due.into()).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rings_when_it_should_and_not_before() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut alarm = Alarm::new().unwrap();
            for delay in [0, 5, 20] {
                let due = Instant::now() + Duration::from_millis(delay);
                alarm.set(Some(due));
                alarm.ring().await;
                assert!(Instant::now() >= due);
            }
            alarm.set(None);
            assert!(
                tokio::time::timeout(Duration::from_millis(30), alarm.ring())
                    .await
                    .is_err()
            );
            let past = Instant::now();
            std::thread::sleep(Duration::from_millis(2));
            alarm.set(Some(past));
            alarm.ring().await;
        });
    }
}
