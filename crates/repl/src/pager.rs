//! Long texts on a terminal.

use std::io::Write;
use std::process::{Command, Stdio};

/// Columns and rows of the terminal; a usual size where it does not tell.
pub fn window() -> (u16, u16) {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok();
    let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 0);
    size.map_or((80, 24), |size| (size.ws_col, size.ws_row))
}

/// Print a text; one that is longer than the screen through `$PAGER`, or `less` where there is none.
#[expect(clippy::disallowed_methods, reason = "the pager has the terminal")]
pub fn show(text: &str, rows: u16) -> std::io::Result<()> {
    let pager = std::env::var("PAGER").unwrap_or_else(|_| "less".to_owned());
    let is_long = text.lines().count() >= usize::from(rows);
    if is_long && !pager.trim().is_empty() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &pager]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            // Colours, and the text stays on the screen.
            command.env("LESS", "-RX");
        }
        if let Ok(mut child) = command.stderr(Stdio::null()).spawn() {
            if let Some(mut input) = child.stdin.take() {
                // A pager that is closed early has seen enough.
                drop(input.write_all(text.as_bytes()));
            }
            // A shell that did not find the pager has shown nothing.
            if child.wait()?.code() != Some(127) {
                return Ok(());
            }
        }
    }
    std::io::stdout().lock().write_all(text.as_bytes())
}
