//! The daemon's own log, in the form the node's lines have too.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::gate::SILENCED;
use beamtalk_storage::{RotatingLog, time};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// `BEAMTALK_LOG` chooses what is written.
const FILTER: &str = "BEAMTALK_LOG";

/// Where the daemon writes from now on. `reopen` it after it was moved away.
#[derive(Clone)]
pub(crate) struct DaemonLog(Arc<Mutex<RotatingLog>>);

impl DaemonLog {
    pub(crate) fn start(log: RotatingLog) -> Self {
        let log = Self(Arc::new(Mutex::new(log)));
        let wanted = std::env::var(FILTER).unwrap_or_else(|_| "info".to_owned());
        let with_silence = |wanted: &str| EnvFilter::try_new(format!("{wanted},{SILENCED}"));
        let filter = with_silence(&wanted).unwrap_or_else(|_| EnvFilter::new(format!("info,{SILENCED}")));
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .event_format(Lines)
            .with_writer(log.clone());
        // A second daemon in one process exists in tests only; the first keeps the log.
        drop(subscriber.try_init());
        log
    }

    pub(crate) fn reopen(&self) {
        let reopened = self.0.lock().unwrap_or_else(PoisonError::into_inner).reopen();
        if let Err(error) = reopened {
            tracing::error!("daemon.log: {error}");
        }
    }
}

impl io::Write for DaemonLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A line that a full disk does not take is lost, and the daemon goes on: told of it, the subscriber would write
        // to standard error, which is a file on the same disk, and panic.
        drop(log.write_whole(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for DaemonLog {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// `2026-01-05T09:14:07.221Z [info] [daemon] text`.
struct Lines;

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG | Level::TRACE => "debug",
        };
        let mut text = Text(String::new());
        event.record(&mut text);
        let now = time::timestamp(time::now_millis());
        // One event is one line, whatever its text holds.
        writeln!(writer, "{now} [{level}] [daemon] {}", text.0.replace('\n', " "))
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.push_str(&format!("{value:?}"));
        }
    }
}
