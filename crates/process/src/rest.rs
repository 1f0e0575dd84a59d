//! When a process has little to do, it gives back what it does not need.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

use crate::memory::give_back;

/// Processor time between two looks that counts as rest.
const LITTLE: Duration = Duration::from_millis(5);

/// How much was worked until the last look, and until memory was given back.
#[derive(Debug, Default)]
pub struct Rest {
    looked: Duration,
    given_back: Duration,
}

impl Rest {
    /// Look whether this process rests since the last look, and have it give back what it does not need then.
    pub fn look(&mut self) {
        if self.is_due(worked()) {
            give_back();
            self.gave_back(worked());
        }
    }

    /// Whether there is something to give back and nothing to do. `worked` is the processor time of this process.
    fn is_due(&mut self, worked: Duration) -> bool {
        let is_resting = worked.saturating_sub(self.looked) <= LITTLE;
        self.looked = worked;
        is_resting && worked.saturating_sub(self.given_back) > LITTLE
    }

    /// Memory was given back, and that was work too.
    fn gave_back(&mut self, worked: Duration) {
        self.looked = worked;
        self.given_back = worked;
    }
}

/// The processor time of this process.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Input of a process that does nothing while it waits for more: when none came for this long, it gives back what it does
/// not need.
pub struct RestingInput {
    input: OwnedFd,
    patience: Timespec,
    rest: Rest,
}

impl RestingInput {
    pub fn new(input: OwnedFd, patience: Duration) -> Self {
        let patience = Timespec {
            tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        };
        Self {
            input,
            patience,
            rest: Rest::default(),
        }
    }
}

impl Read for RestingInput {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut wanted = [PollFd::from_borrowed_fd(self.input.as_fd(), PollFlags::IN)];
        if poll(&mut wanted, Some(&self.patience)) == Ok(0) {
            // Nothing was done since the beginning of this call.
            self.rest.looked = worked();
            self.rest.look();
        }
        Ok(rustix::io::read(&self.input, buffer)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

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

    #[test]
    fn what_comes_after_a_rest_is_read_to_its_end() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut input = RestingInput::new(reader.into(), Duration::ZERO);
        let writing = std::thread::spawn(move || {
            for _ in 0..3 {
                writer.write_all(b"ab").unwrap();
            }
        });
        let mut read = Vec::new();
        input.read_to_end(&mut read).unwrap();
        writing.join().unwrap();
        assert_eq!(read, b"ababab");
    }
}
