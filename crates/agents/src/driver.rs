//! The built-in backends `echo` and `shell`: this executable in a driver role.
//!
//! They read prompts as bracketed pastes, report their state by hook, and end every turn with the
//! ready line `agent> `, so everything about sessions can be tested without a vendor.

mod shell;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::time::Duration;

use beamtalk_ninep::Attachment;
use rustix::event::{PollFd, PollFlags, poll};

use crate::hooks::{self, connect_session};
use crate::places::variable;
use shell::Shell;

const READY: &str = "agent> ";
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// C-u takes back what was typed.
const ERASE: u8 = 0x15;

/// What became of a prompt.
enum Outcome {
    Done,
    /// End the process with this status.
    Exit(u8),
}

/// Run a built-in backend until it ends; its exit status.
pub fn drive(name: &str) -> io::Result<u8> {
    // Before anything else opens descriptors: the shell needs a single digit.
    let mut shell = if name == "shell" {
        Some(Shell::start()?)
    } else {
        None
    };
    let answerer = shell.as_ref().map(Shell::process).transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let entered = runtime.enter();
    // From here on C-c interrupts what the shell runs, not the driver.
    let interrupts = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    prepare_terminal();
    let mut reporter = Reporter::default();
    let mut out = io::stdout();
    out.write_all(b"\x1b[?2004h")?;
    let mut input = Input::default();
    loop {
        write!(out, "{READY}")?;
        out.flush()?;
        reporter.report("idle", "Stop");
        let prompt = match input.next_prompt(answerer.as_ref())? {
            Next::Prompt(prompt) => prompt,
            Next::Gone => return Ok(0),
            // Whoever was to answer is gone: so is this session, and it does not look ready.
            Next::Unanswered => return shell.as_mut().map_or(Ok(1), Shell::ended),
        };
        // Answers start on a line of their own, where the ready line was.
        out.write_all(b"\r\x1b[K")?;
        out.flush()?;
        reporter.report("running", "UserPromptSubmit");
        let outcome = match &mut shell {
            Some(shell) => shell.run(&prompt)?,
            None => echo(&prompt, &mut out)?,
        };
        if let Outcome::Exit(status) = outcome {
            drop((interrupts, entered));
            return Ok(status);
        }
    }
}

/// Echo off, bytes as they come, interrupts on.
fn prepare_terminal() {
    use rustix::termios::{InputModes, LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = io::stdin();
    if let Ok(mut modes) = tcgetattr(&stdin) {
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        modes.input_modes -= InputModes::IXON;
        // Without a terminal there is nothing to prepare.
        tcsetattr(&stdin, OptionalActions::Now, &modes).ok();
    }
}

fn echo(prompt: &str, out: &mut impl Write) -> io::Result<Outcome> {
    let special = prompt
        .strip_prefix('!')
        .filter(|rest| !rest.contains('\n'))
        .and_then(|rest| rest.split_once(' '));
    match special {
        Some(("sleep", seconds)) if seconds.parse::<f64>().is_ok_and(|s| s.is_finite() && s >= 0.0) => {
            std::thread::sleep(Duration::from_secs_f64(seconds.parse().unwrap_or(0.0)));
        }
        Some(("exit", status)) if status.parse::<u8>().is_ok() => {
            return Ok(Outcome::Exit(status.parse().unwrap_or(1)));
        }
        Some(("lines", count)) if count.parse::<u64>().is_ok() => {
            for number in 1..=count.parse::<u64>().unwrap_or(0) {
                writeln!(out, "line {number}")?;
            }
            return Ok(Outcome::Done);
        }
        Some(("env", name)) => {
            writeln!(out, "{}", std::env::var(name).unwrap_or_default())?;
            return Ok(Outcome::Done);
        }
        _ => {}
    }
    for line in prompt.split('\n') {
        writeln!(out, "echo: {line}")?;
    }
    Ok(Outcome::Done)
}

/// Tells the daemon what the driver does; one connection, made again when lost.
#[derive(Default)]
struct Reporter {
    tree: Option<Attachment>,
}

impl Reporter {
    fn report(&mut self, state: &str, event: &str) {
        let Some(id) = variable("AGENT_ID") else { return };
        for _ in 0..2 {
            if self.tree.is_none() {
                self.tree = connect_session(Some(hooks::PATIENCE)).ok();
            }
            let Some(tree) = &self.tree else { break };
            match tree.write(&format!("agents/{id}/state"), state.as_bytes()) {
                Ok(()) | Err(beamtalk_ninep::Error::Refused(_)) => return,
                Err(_) => self.tree = None,
            }
        }
        hooks::leave_note(event);
    }
}

/// Prompts out of the bytes of a terminal.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
}

/// What there is to do next.
enum Next {
    Prompt(String),
    /// The terminal is gone.
    Gone,
    /// The program that answers prompts has ended.
    Unanswered,
}

impl Input {
    /// The next submitted prompt, as long as there is somebody to answer it.
    fn next_prompt(&mut self, answerer: Option<&OwnedFd>) -> io::Result<Next> {
        loop {
            if let Some((prompt, used)) = split_prompt(&self.bytes) {
                self.bytes.drain(..used);
                return Ok(Next::Prompt(prompt));
            }
            if !wait_for_input(answerer)? {
                return Ok(Next::Unanswered);
            }
            let mut buffer = [0; 8192];
            // The raw descriptor: what a buffer of ours held would not wake us.
            match rustix::io::read(io::stdin(), &mut buffer) {
                Ok(0) => return Ok(Next::Gone),
                Ok(count) => self
                    .bytes
                    .extend_from_slice(buffer.get(..count).unwrap_or_default()),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Wait until the terminal has something; false if whoever answers has ended.
fn wait_for_input(answerer: Option<&OwnedFd>) -> io::Result<bool> {
    let stdin = io::stdin();
    loop {
        let mut waiting = vec![PollFd::new(&stdin, PollFlags::IN)];
        waiting.extend(answerer.map(|process| PollFd::new(process, PollFlags::IN)));
        match poll(&mut waiting, None) {
            Ok(_) => {
                let ended = waiting
                    .get(1)
                    .is_some_and(|process| !process.revents().is_empty());
                return Ok(!ended);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The first prompt in `bytes` and how many bytes it took: pasted text, then a line feed.
fn split_prompt(bytes: &[u8]) -> Option<(String, usize)> {
    let mut text = Vec::new();
    let mut at = 0;
    let mut pasting = false;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(PASTE_START) {
            pasting = true;
            at += PASTE_START.len();
        } else if rest.starts_with(PASTE_END) {
            pasting = false;
            at += PASTE_END.len();
        } else {
            let byte = rest.first().copied().unwrap_or_default();
            at += 1;
            match byte {
                b'\n' | b'\r' if !pasting => return Some((String::from_utf8_lossy(&text).into_owned(), at)),
                ERASE if !pasting => text.clear(),
                _ => text.push(byte),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Outcome, echo, split_prompt};

    #[test]
    fn a_paste_with_line_feeds_is_one_prompt() {
        let bytes = b"\x1b[200~one\ntwo\x1b[201~\nnext";
        assert_eq!(
            split_prompt(bytes),
            Some(("one\ntwo".to_owned(), bytes.len() - 4))
        );
        assert_eq!(split_prompt(b"\x1b[200~one\n"), None);
        assert_eq!(split_prompt(b"plain\r"), Some(("plain".to_owned(), 6)));
        assert_eq!(
            split_prompt(b"\x1b[200~one\ntwo\x1b[201~\x15\x1b[200~three\x1b[201~\n"),
            Some(("three".to_owned(), 38))
        );
    }

    #[test]
    fn special_prompts_of_echo() {
        let said = |prompt: &str| {
            let mut out = Vec::new();
            let outcome = echo(prompt, &mut out).unwrap();
            (
                String::from_utf8(out).unwrap(),
                matches!(outcome, Outcome::Exit(3)),
            )
        };
        assert_eq!(said("a\nb").0, "echo: a\necho: b\n");
        assert_eq!(said("!lines 2").0, "line 1\nline 2\n");
        assert!(said("!exit 3").1);
        assert_eq!(said("!exit soon").0, "echo: !exit soon\n");
        assert_eq!(said("!env NO_SUCH_VARIABLE").0, "\n");
        assert_eq!(said("!sleep 0").0, "echo: !sleep 0\n");
    }
}
