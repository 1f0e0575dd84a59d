//! One `/bin/sh` that reads every prompt as a script, so directory and variables persist.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::{Pid, PidfdFlags};

use super::Outcome;
use crate::files;
use crate::places::variable;

pub(super) struct Shell {
    child: Child,
    input: ChildStdin,
    status: BufReader<File>,
    script: PathBuf,
    /// The descriptor on which the shell writes statuses.
    number: i32,
}

impl Shell {
    #[expect(clippy::disallowed_methods, reason = "the shell holds a descriptor of ours")]
    pub(super) fn start() -> io::Result<Self> {
        // Inherited by the shell on purpose: statuses travel beside the terminal.
        let (read, write): (OwnedFd, OwnedFd) = rustix::pipe::pipe()?;
        rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC)?;
        let number = write.as_raw_fd();
        let mut child = Command::new("/bin/sh").stdin(Stdio::piped()).spawn()?;
        drop(write);
        let mut input = child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?;
        // C-c ends the command that runs, not the shell.
        input.write_all(b"trap ':' INT\n")?;
        let directory = variable("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let script = directory.join(format!("prompt-{}.sh", std::process::id()));
        Ok(Shell {
            child,
            input,
            status: BufReader::new(File::from(read)),
            script,
            number,
        })
    }

    /// Becomes readable when the shell ends.
    pub(super) fn process(&self) -> io::Result<OwnedFd> {
        let pid = Pid::from_child(&self.child);
        Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
    }

    /// The status of a shell that has ended, as a shell would tell it.
    pub(super) fn ended(&mut self) -> io::Result<u8> {
        let status = self.child.wait()?;
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
    }

    #[expect(clippy::disallowed_methods, reason = "the shell, asked")]
    pub(super) fn run(&mut self, prompt: &str) -> io::Result<Outcome> {
        files::replace_quickly(&self.script, format!("{prompt}\n").as_bytes())?;
        // A syntax error would end the shell; look first.
        let checked = Command::new("/bin/sh")
            .arg("-n")
            .arg(&self.script)
            .stdin(Stdio::null())
            .status()?;
        if !checked.success() {
            writeln!(io::stdout(), "[exit {}]", checked.code().unwrap_or(2))?;
            return Ok(Outcome::Done);
        }
        let script = self.script.display().to_string().replace('\'', "'\\''");
        let number = self.number;
        let line = format!(". '{script}' </dev/null {number}>&-; printf '%s\\n' \"$?\" >&{number}\n");
        let mut answer = String::new();
        let sent = self
            .input
            .write_all(line.as_bytes())
            .and_then(|()| self.input.flush());
        if sent.is_err() || self.status.read_line(&mut answer)? == 0 {
            return Ok(Outcome::Exit(self.ended()?));
        }
        let status = answer.trim();
        if status != "0" {
            writeln!(io::stdout(), "[exit {status}]")?;
        }
        Ok(Outcome::Done)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The session's directory goes with the session; this is tidiness only.
        drop(std::fs::remove_file(&self.script));
    }
}
