//! Programs that are asked something.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// A program that the caller waits for. It reads nothing: what it is asked stands in its arguments, and the terminal
/// stays the caller's.
pub fn asked(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Run what the user calls an editor, which may have arguments, on a file, and wait for it. It has the terminal.
pub fn with_terminal(editor: &str, file: &Path) -> io::Result<ExitStatus> {
    // As other programs do that honour EDITOR: a shell takes it apart.
    Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file)
        .status()
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn an_asked_program_reads_the_end_of_its_input_at_once() {
        let output = asked("cat").output().expect("cat is there");
        assert!(output.status.success());
        assert!(output.stdout.is_empty());
    }
}
