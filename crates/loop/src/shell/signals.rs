//! The signals that end a run: those of the system, or the words of a host.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the run has for its own forced end.
const FORCED_PATIENCE: Duration = Duration::from_secs(1);

/// The exit code of a forced end.
const FORCED: i32 = 130;

pub(crate) enum Signals {
    System(System),
    /// The host says why; when it has no more to say, it has gone.
    Host(tokio::sync::mpsc::UnboundedReceiver<&'static str>),
}

pub(crate) struct System {
    /// Lives as long as the run cares for signals.
    run: Arc<()>,
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Signals {
    pub(crate) fn install() -> std::io::Result<Self> {
        System::install().map(Self::System)
    }

    /// The next reason to stop, by the name the line to print has for it.
    pub(crate) async fn next(&mut self) -> &'static str {
        match self {
            Self::System(signals) => signals.next().await,
            Self::Host(words) => match words.recv().await {
                Some(word) => word,
                None => std::future::pending().await,
            },
        }
    }
}

impl System {
    /// Take the signals from now on. A second one ends the program even when the run hangs.
    fn install() -> std::io::Result<Self> {
        let signals = Self::listen()?;
        let run = Arc::downgrade(&signals.run);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        // The listeners of all runtimes are told by whichever is awake.
        let watcher = Self::listen()?;
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || runtime.block_on(watcher.force(run)))?;
        Ok(signals)
    }

    /// Wait for the second signal and then for the run's own end. When that does not come, leave:
    /// the guard sees it and ends everything that was started.
    async fn force(mut self, run: Weak<()>) {
        self.next().await;
        self.next().await;
        tokio::time::sleep(FORCED_PATIENCE).await;
        if run.strong_count() > 0 {
            std::process::exit(FORCED);
        }
    }

    fn listen() -> std::io::Result<Self> {
        // Whoever started the loop with `nohup` wants it to outlive the terminal.
        let hangup = if is_hangup_ignored() {
            None
        } else {
            Some(signal(SignalKind::hangup())?)
        };
        Ok(Self {
            run: Arc::new(()),
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup,
        })
    }

    /// The next signal, by the name the line to print has for it.
    async fn next(&mut self) -> &'static str {
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
