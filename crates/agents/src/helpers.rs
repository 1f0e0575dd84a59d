//! The small commands that sessions find on their PATH.

use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::files;
use crate::places::own_program;

const SCRIPT: &str = include_str!("../helpers/helper.sh");
const NAMES: &[&str] = &[
    "ask", "evaluate", "inbox", "mail", "note", "peers", "reply", "skills", "state",
];

/// Where a session has them: below its own `$TMPDIR`.
pub(crate) fn directory(tmp: &Path) -> PathBuf {
    tmp.join("bin")
}

/// Write them for a session that is about to start. `evaluate` is there only for those that may.
pub(crate) fn write(tmp: &Path, evaluates: bool) -> std::io::Result<()> {
    let directory = directory(tmp);
    // What lies there is the session's: nothing of it is followed or kept.
    if std::fs::symlink_metadata(&directory).is_ok_and(|found| !found.is_dir()) {
        std::fs::remove_file(&directory)?;
    }
    files::make_directory(&directory)?;
    let program = own_program()?.display().to_string().replace('\'', "'\\''");
    // They call this very program, whatever else is called so.
    let text = SCRIPT.replacen(
        "set -eu\n",
        &format!("set -eu\nbeamtalk() {{\n    '{program}' \"$@\"\n}}\n"),
        1,
    );
    for name in NAMES {
        let path = directory.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        if *name == "evaluate" && !evaluates {
            continue;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o700)
            .open(&path)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.set_permissions(std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}
