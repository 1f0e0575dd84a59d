//! Something that grows and can be followed: a counter to wait on and a way to read from a point.

use beamtalk_ninep::Refusal;
use tokio::sync::watch;

/// Wakes whoever follows; the number only has to differ from the last one.
#[derive(Debug)]
pub(crate) struct Signal {
    sender: watch::Sender<u64>,
}

impl Default for Signal {
    fn default() -> Self {
        Signal {
            sender: watch::Sender::new(0),
        }
    }
}

impl Signal {
    pub(crate) fn bump(&self) {
        self.sender.send_modify(|count| *count += 1);
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.sender.subscribe()
    }
}

/// What a follower finds when it looks.
pub(crate) enum Taken {
    Data(Vec<u8>),
    Nothing,
    End,
    Failed(Refusal),
}
