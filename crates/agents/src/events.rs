//! The event stream: numbered, kept, delivered to any number of readers.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_storage::time::now_seconds;
use serde_json::{Value, json};

use crate::bytelog::{Signal, Taken};
use crate::files;
use crate::ids::uuid_v7;

/// One event as kept and sent.
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) line: String,
}

struct Kept {
    ring: VecDeque<Arc<Event>>,
    next: u64,
    file: File,
    lines: usize,
    dirty: bool,
}

pub(crate) struct Events {
    path: PathBuf,
    kept: Mutex<Kept>,
    pub(crate) signal: Signal,
    keep: usize,
    pub(crate) lag: u64,
}

impl Events {
    pub(crate) fn open(state: &Path, keep: usize, lag: u64) -> std::io::Result<Self> {
        let path = state.join("events.jsonl");
        let bytes = std::fs::read(&path).unwrap_or_default();
        let mut ring: VecDeque<Arc<Event>> = VecDeque::new();
        for line in String::from_utf8_lossy(&bytes).lines() {
            // A line cut by a crash is not an event anybody has seen.
            let Ok(value) = serde_json::from_str::<Value>(line) else {
                continue;
            };
            let text = |key: &str| {
                value
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            let Some(seq) = value.get("seq").and_then(Value::as_u64) else {
                continue;
            };
            ring.push_back(Arc::new(Event {
                seq,
                source: text("source"),
                kind: text("type"),
                line: line.to_owned(),
            }));
            if ring.len() > keep {
                ring.pop_front();
            }
        }
        let next = ring.back().map_or(1, |event| event.seq + 1);
        let whole: String = ring
            .iter()
            .flat_map(|event| [event.line.as_str(), "\n"])
            .collect();
        files::replace(&path, whole.as_bytes())?;
        let file = files::appender(&path)?;
        let lines = ring.len();
        let kept = Mutex::new(Kept {
            ring,
            next,
            file,
            lines,
            dirty: false,
        });
        Ok(Events {
            path,
            kept,
            signal: Signal::default(),
            keep,
            lag,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number an event, write it down, wake the readers.
    pub(crate) fn emit(&self, source: &str, kind: &str, data: Value) {
        let mut kept = self.lock();
        let seq = kept.next;
        let id = uuid_v7().unwrap_or_default();
        let line =
            json!({"seq": seq, "id": id, "ts": now_seconds(), "source": source, "type": kind, "data": data})
                .to_string();
        if let Err(error) = kept.file.write_all(format!("{line}\n").as_bytes()) {
            tracing::error!(%error, "events cannot be written");
        }
        kept.next += 1;
        kept.lines += 1;
        kept.dirty = true;
        kept.ring.push_back(Arc::new(Event {
            seq,
            source: source.to_owned(),
            kind: kind.to_owned(),
            line,
        }));
        if kept.ring.len() > self.keep {
            kept.ring.pop_front();
        }
        if kept.lines > 2 * self.keep
            && let Err(error) = self.compact(&mut kept)
        {
            tracing::error!(%error, "events cannot be compacted");
        }
        drop(kept);
        self.signal.bump();
    }

    fn compact(&self, kept: &mut Kept) -> std::io::Result<()> {
        let whole: String = kept
            .ring
            .iter()
            .flat_map(|event| [event.line.as_str(), "\n"])
            .collect();
        files::replace(&self.path, whole.as_bytes())?;
        kept.file = files::appender(&self.path)?;
        kept.lines = kept.ring.len();
        Ok(())
    }

    /// Bring what was written to the disk; called about once a second. Returns whether it had to.
    pub(crate) fn sync(&self) {
        let mut kept = self.lock();
        if kept.dirty {
            kept.dirty = false;
            let file = kept.file.try_clone();
            drop(kept);
            if let Err(error) = file.and_then(|file| file.sync_data()) {
                tracing::error!(%error, "events cannot be synced");
            }
        }
    }

    pub(crate) fn next_seq(&self) -> u64 {
        self.lock().next
    }

    /// All kept events a reader may see, one per line.
    pub(crate) fn kept_lines(&self, visible: impl Fn(&Event) -> bool) -> Vec<u8> {
        let mut out = Vec::new();
        for event in self.lock().ring.iter().filter(|event| visible(event)) {
            out.extend_from_slice(event.line.as_bytes());
            out.push(b'\n');
        }
        out
    }

    /// The lines from `*next` on that pass, up to `count` bytes, moving `*next`.
    pub(crate) fn take(&self, next: &mut u64, count: usize, visible: impl Fn(&Event) -> bool) -> Taken {
        let kept = self.lock();
        let mut out = Vec::new();
        let oldest = kept.ring.front().map_or(kept.next, |event| event.seq);
        let start = oldest.max(kept.next.saturating_sub(self.lag));
        if *next < start {
            let (from, to) = (*next, start - 1);
            let lost = json!({"seq": to, "id": uuid_v7().unwrap_or_default(), "ts": now_seconds(), "source": "daemon",
                "type": "Lost", "data": {"from": from, "to": to, "count": to - from + 1}});
            out.extend_from_slice(format!("{lost}\n").as_bytes());
            *next = start;
        }
        while let Some(event) = kept.ring.get((*next).saturating_sub(oldest) as usize) {
            if visible(event) {
                if !out.is_empty() && out.len() + event.line.len() + 1 > count {
                    break;
                }
                out.extend_from_slice(event.line.as_bytes());
                out.push(b'\n');
            }
            *next = event.seq + 1;
        }
        if out.is_empty() {
            Taken::Nothing
        } else {
            Taken::Data(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Events;
    use crate::bytelog::Taken;

    fn text(taken: Taken) -> String {
        match taken {
            Taken::Data(bytes) => String::from_utf8(bytes).unwrap(),
            _ => String::new(),
        }
    }

    #[test]
    fn numbers_go_on_after_a_restart_and_a_torn_line_is_skipped() {
        let base = tempfile::tempdir().unwrap();
        let events = Events::open(base.path(), 10, 5).unwrap();
        events.emit("daemon", "DaemonStarted", json!({}));
        events.emit("daemon", "DaemonStopping", json!({}));
        drop(events);
        let path = base.path().join("events.jsonl");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"seq\":3,\"torn");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Events::open(base.path(), 10, 5).unwrap().next_seq(), 3);
    }

    #[test]
    fn a_reader_that_lags_gets_one_lost_event() {
        let base = tempfile::tempdir().unwrap();
        let events = Events::open(base.path(), 10, 3).unwrap();
        for _ in 0..8 {
            events.emit("user", "UserSend", json!({}));
        }
        let mut next = 1;
        let lines = text(events.take(&mut next, 100_000, |_| true));
        assert_eq!(lines.lines().count(), 4);
        assert!(lines.lines().next().unwrap().contains("\"count\":5"), "{lines}");
        assert_eq!(next, 9);
        assert!(matches!(events.take(&mut next, 100, |_| true), Taken::Nothing));
    }
}
