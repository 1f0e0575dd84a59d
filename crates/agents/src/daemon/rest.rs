//! When the daemon has little to do, it gives back what it does not need.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Processor time between two looks that counts as rest.
const LITTLE: Duration = Duration::from_millis(5);

/// How much was worked until the last look, and until memory was given back.
#[derive(Debug, Default)]
pub(super) struct Rest {
    looked: Duration,
    given_back: Duration,
}

impl Rest {
    /// Whether there is something to give back and nothing to do. `worked` is the processor time of this process.
    pub(super) fn is_due(&mut self, worked: Duration) -> bool {
        let is_resting = worked.saturating_sub(self.looked) <= LITTLE;
        self.looked = worked;
        is_resting && worked.saturating_sub(self.given_back) > LITTLE
    }

    /// Memory was given back, and that was work too.
    pub(super) fn gave_back(&mut self, worked: Duration) {
        self.looked = worked;
        self.given_back = worked;
    }
}

/// The processor time of this process.
pub(super) fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_for_each_piece_of_work() {
        let mut rest = Rest::default();
        let ms = Duration::from_millis;
        assert!(!rest.is_due(ms(300)), "it has just been started");
        assert!(rest.is_due(ms(301)));
        rest.gave_back(ms(320));
        assert!(
            !rest.is_due(ms(321)) && !rest.is_due(ms(322)),
            "nothing was done since"
        );
        assert!(!rest.is_due(ms(400)), "it works");
        assert!(rest.is_due(ms(402)));
        rest.gave_back(ms(403));
        // Little by little it comes back too.
        assert!(!rest.is_due(ms(406)));
        assert!(rest.is_due(ms(410)));
        assert!(worked() > Duration::ZERO);
    }
}
