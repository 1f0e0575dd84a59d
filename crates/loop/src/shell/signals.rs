//! The signals that end a run.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn install() -> std::io::Result<Self> {
        // Whoever started the loop with `nohup` wants it to outlive the terminal.
        let hangup = if is_hangup_ignored() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// The next signal, by the name the line to print has for it.
    pub(crate) async fn next(&mut self) -> &'static str {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => "ctrl-c",
            _ = self.terminate.recv() => "SIGTERM",
            () = hangup => "SIGHUP",
        }
    }
}

/// Whether SIGHUP was ignored when the program started.
fn is_hangup_ignored() -> bool {
    let Ok(text) = std::fs::read_to_string("/proc/self/status") else {
        return false;
    };
    ignores_hangup(&text)
}

fn ignores_hangup(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert!(ignores_hangup("Name:\tx\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup("SigIgn:\tzz\n"));
        assert!(!ignores_hangup(""));
    }
}
