//! The daemon's own log: JSON lines in `daemon.log`, or text on standard error.

use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::files;

/// Log to `file`, or to standard error without one. Called once, early.
pub fn start_logging(file: Option<&Path>) -> std::io::Result<()> {
    let filter = EnvFilter::try_from_env("BEAMTALK_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    match file {
        Some(path) => {
            if let Some(directory) = path.parent() {
                files::make_directory(directory)?;
            }
            let writer = Mutex::new(files::appender(path)?);
            let log = tracing_subscriber::fmt()
                // A line that a full disk does not take is lost; complaining on standard error could panic.
                .log_internal_errors(false)
                .json()
                .with_env_filter(filter)
                .with_writer(writer);
            // A second start in the same process keeps the first log.
            drop(log.try_init());
        }
        None => {
            let log = tracing_subscriber::fmt()
                .with_env_filter(filter)
                .with_ansi(false)
                .with_writer(std::io::stderr);
            drop(log.try_init());
        }
    }
    Ok(())
}
