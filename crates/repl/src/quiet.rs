//! The terminal between two prompts: what is typed ahead is not shown, and waits for the next prompt.

use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// What Ctrl-C is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signals {
    /// A signal, which stops an evaluation.
    Sent,
    /// A key: between two lines of an input nobody would see the signal.
    Typed,
}

/// Holds the terminal quiet; it is as before when this is dropped.
#[derive(Debug)]
pub(crate) struct Quiet {
    before: Termios,
}

impl Quiet {
    /// `None` where standard input is no terminal that an editor can use.
    pub(crate) fn begin() -> Option<Self> {
        // The editor reads these as the terminal gives them, line by line with its echo.
        let plain = ["dumb", "cons25", "emacs"];
        if std::env::var("TERM").is_ok_and(|name| plain.contains(&name.as_str())) {
            return None;
        }
        let before = tcgetattr(rustix::stdio::stdin()).ok()?;
        let quiet = Self { before };
        quiet.hush(Signals::Sent);
        Some(quiet)
    }

    /// Neither echo nor lines: keys arrive as the editor would get them.
    pub(crate) fn hush(&self, signals: Signals) {
        let mut quiet = self.before.clone();
        if signals == Signals::Typed {
            quiet.local_modes -= LocalModes::ISIG;
        }
        quiet.local_modes -= LocalModes::ECHO | LocalModes::ICANON;
        quiet.input_modes -= InputModes::ICRNL;
        // Nothing that was typed is thrown away.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &quiet);
    }

    /// The terminal as it was before, for as long as something else uses it.
    pub(crate) fn lend(&self, use_it: &mut dyn FnMut()) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
        use_it();
        self.hush(Signals::Sent);
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}
