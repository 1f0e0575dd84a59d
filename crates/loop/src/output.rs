//! Where the loop and its children write.
//!
//! Each stream has a thread of its own, so that a terminal that does not read never stops the
//! loop. Children wait when too much is queued; the loop's own lines never do, and are counted
//! instead when far too many are. A stream that is
//! closed swallows what is written to it.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beamtalk_storage::time::{now_micros, timestamp_micros};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::config::BodyStyle;
use crate::host::{Fact, Listener, Streams};
use crate::report::{ChildKind, Exit, Level, Part, Report, Stream};
use crate::terminal::{Colour, child_line, label};

/// How many bytes of children's output may wait to be written to one stream.
const BACKLOG: usize = 1024 * 1024;
/// How many bytes of the loop's own lines may wait; a terminal that does not read loses more.
const OWN_BACKLOG: usize = 4 * 1024 * 1024;
/// How much is written at once.
const BATCH: usize = 64 * 1024;

/// How output looks.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// JSON lines on standard output instead of text.
    pub json: bool,
    pub level: Level,
    pub stdout: Colour,
    pub stderr: Colour,
}

/// Who a child is in its output.
#[derive(Clone, Debug)]
pub(crate) struct Speaker {
    pub(crate) kind: ChildKind,
    pub(crate) name: String,
    /// `EXE NAME`.
    pub(crate) label: String,
    pub(crate) style: BodyStyle,
}

enum Message {
    /// A line of a child, and the room it takes.
    Text(Vec<u8>, u32),
    /// A line of the loop itself.
    Own(Vec<u8>),
    Flush(oneshot::Sender<()>),
}

#[derive(Clone)]
struct Lane {
    queue: Sender<Message>,
    room: Arc<Semaphore>,
    own: Arc<Own>,
}

/// The loop's own lines: they never wait, so there is an end to how many do.
#[derive(Default)]
struct Own {
    waiting: AtomicUsize,
    dropped: AtomicUsize,
}

/// A handle to both streams.
#[derive(Clone)]
pub(crate) struct Output {
    style: Style,
    stdout: Lane,
    stderr: Lane,
    /// The host that wants to hear every fact.
    listener: Option<Listener>,
}

impl Lane {
    fn new(name: &str, stream: impl Write + Send + 'static) -> std::io::Result<Self> {
        let (queue, messages) = channel();
        let room = Arc::new(Semaphore::new(BACKLOG));
        let freed = Arc::clone(&room);
        let own = Arc::new(Own::default());
        let written = Arc::clone(&own);
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(128 * 1024)
            .spawn(move || write_all(&messages, stream, &freed, &written))?;
        Ok(Self { queue, room, own })
    }

    fn put(&self, text: Vec<u8>, permits: u32) {
        // The thread ends only with the program.
        drop(self.queue.send(Message::Text(text, permits)));
    }

    /// Queue a line of the loop itself, or count it when too many wait.
    fn put_own(&self, text: Vec<u8>) {
        if self.own.waiting.load(Ordering::Relaxed) + text.len() > OWN_BACKLOG {
            self.own.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.own.waiting.fetch_add(text.len(), Ordering::Relaxed);
        drop(self.queue.send(Message::Own(text)));
    }
}

fn write_all(messages: &Receiver<Message>, mut stream: impl Write, room: &Semaphore, own: &Own) {
    while let Ok(message) = messages.recv() {
        let mut waiting = vec![];
        let (mut bytes, mut permits) = match message {
            Message::Text(bytes, permits) => (bytes, permits as usize),
            Message::Own(bytes) => (own.taken(bytes), 0),
            Message::Flush(done) => {
                waiting.push(done);
                (Vec::new(), 0)
            }
        };
        while waiting.is_empty() && bytes.len() < BATCH {
            match messages.try_recv() {
                Ok(Message::Text(more, freed)) => {
                    bytes.extend_from_slice(&more);
                    permits += freed as usize;
                }
                Ok(Message::Own(more)) => bytes.extend_from_slice(&own.taken(more)),
                Ok(Message::Flush(done)) => waiting.push(done),
                Err(_) => break,
            }
        }
        // A reader that is gone is no reason to stop the run.
        drop(stream.write_all(&bytes).and_then(|()| stream.flush()));
        room.add_permits(permits);
        for done in waiting {
            let _ = done.send(());
        }
    }
}

impl Own {
    /// A line leaves the queue, after word of those that never came in.
    fn taken(&self, line: Vec<u8>) -> Vec<u8> {
        self.waiting.fetch_sub(line.len(), Ordering::Relaxed);
        match self.dropped.swap(0, Ordering::Relaxed) {
            0 => line,
            count => {
                let mut text = format!("[loop engine] WARN {count} lines were not written\n").into_bytes();
                text.extend_from_slice(&line);
                text
            }
        }
    }
}

impl Output {
    pub(crate) fn new(style: Style) -> std::io::Result<Self> {
        Ok(Self {
            style,
            stdout: Lane::new("stdout", std::io::stdout())?,
            stderr: Lane::new("stderr", std::io::stderr())?,
            listener: None,
        })
    }

    /// Output of a loop that a host runs: its streams are the host's.
    pub(crate) fn hosted(style: Style, streams: Streams, listener: Listener) -> std::io::Result<Self> {
        Ok(Self {
            style,
            stdout: Lane::new("loop stdout", streams.stdout)?,
            stderr: Lane::new("loop stderr", streams.stderr)?,
            listener: Some(listener),
        })
    }

    /// Tell the host, if there is one.
    pub(crate) fn tell(&self, fact: &Fact<'_>) {
        if let Some(listener) = &self.listener {
            listener(fact);
        }
    }

    /// Show one line of a child, waiting for room when much is queued.
    pub(crate) async fn child(&self, speaker: &Speaker, stream: Stream, line: &str) {
        self.tell(&Fact::Output {
            source: speaker.kind,
            name: &speaker.name,
            stream,
            line,
        });
        let (lane, text) = if self.style.json {
            let object = child_object(speaker.kind, &speaker.name, stream, line);
            (&self.stdout, json_line(object))
        } else {
            let (lane, colour) = match stream {
                Stream::Stdout => (&self.stdout, self.style.stdout),
                Stream::Stderr => (&self.stderr, self.style.stderr),
            };
            (lane, child_line(&speaker.label, line, colour, speaker.style))
        };
        let permits = u32::try_from(text.len().min(BACKLOG)).expect("the backlog is smaller than that");
        if let Ok(room) = lane.room.acquire_many(permits).await {
            room.forget();
        }
        lane.put(text.into_bytes(), permits);
    }

    /// Show a report, at once.
    pub(crate) fn report(&self, report: &Report) {
        self.tell(&Fact::Report(report));
        if self.style.json {
            if let Some(object) = object(report, self.style.level) {
                self.stdout.put_own(json_line(object).into_bytes());
            }
            return;
        }
        let (level, part, text) = match report {
            Report::Log { level, part, text } if *level <= self.style.level => (*level, *part, text),
            Report::Said { text } => (Level::Info, Part::Engine, text),
            Report::Log { .. }
            | Report::Ready { .. }
            | Report::Process { .. }
            | Report::Workflow { .. }
            | Report::Step { .. }
            | Report::Event(_)
            | Report::Stop { .. } => return,
        };
        let name = label(
            &format!("loop {}", part.label()),
            self.style.stderr,
            BodyStyle::Plain,
        );
        let line = format!(
            "{name}{} {} {}\n",
            level.label(),
            timestamp_micros(now_micros()),
            one_line(text)
        );
        self.stderr.put_own(line.into_bytes());
    }

    /// Resolves when everything queued so far is written, or a stream seems stuck.
    pub(crate) async fn flush(&self) {
        for lane in [&self.stdout, &self.stderr] {
            let (done, flushed) = oneshot::channel();
            if lane.queue.send(Message::Flush(done)).is_ok() {
                drop(tokio::time::timeout(Duration::from_secs(2), flushed).await);
            }
        }
    }
}

/// A line stays a line, whatever a path or a message holds.
fn one_line(text: &str) -> std::borrow::Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.chars()
            .map(|letter| if letter.is_control() { ' ' } else { letter })
            .collect::<String>()
            .into()
    } else {
        text.into()
    }
}

fn json_line(object: Map<String, Value>) -> String {
    format!("{}\n", Value::Object(object))
}

/// An object of `run --json`.
fn stamped(kind: &str, members: Value) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("ts".into(), Value::String(timestamp_micros(now_micros())));
    object.insert("kind".into(), Value::String(kind.to_owned()));
    if let Value::Object(members) = members {
        object.extend(members);
    }
    object
}

/// A line of a child as an object.
pub(crate) fn child_object(source: ChildKind, name: &str, stream: Stream, line: &str) -> Map<String, Value> {
    let members = json!({ "source": source, "name": name, "stream": stream, "line": line });
    stamped("output", members)
}

/// A report as an object, unless it is too quiet.
pub(crate) fn object(report: &Report, limit: Level) -> Option<Map<String, Value>> {
    let (kind, members) = match report {
        Report::Ready {
            config,
            root,
            events_url,
            browser_url,
        } => (
            "ready",
            json!({ "config": config, "root": root, "events_url": events_url, "browser_url": browser_url }),
        ),
        Report::Process {
            name,
            state,
            pid,
            exit,
        } => {
            let exit = exit.map(|exit| match exit {
                Exit::Code(code) => json!({ "code": code, "signal": null }),
                Exit::Signal(signal) => json!({ "code": null, "signal": signal }),
            });
            (
                "process",
                json!({ "name": name, "state": state, "pid": pid, "exit": exit }),
            )
        }
        Report::Workflow {
            name,
            phase,
            source,
            changed,
            cause,
            error,
            ms,
            number: _,
        } => (
            "workflow",
            json!({
                "name": name, "phase": phase, "source": source, "changed": changed, "cause": cause,
                "error": error, "ms": ms,
            }),
        ),
        Report::Step {
            workflow,
            index,
            action,
            ms,
            ok,
        } => (
            "step",
            json!({ "workflow": workflow, "index": index, "action": action, "ms": ms, "ok": ok }),
        ),
        Report::Event(audit) => ("event", serde_json::to_value(audit).ok()?),
        Report::Log { level, .. } if *level > limit => return None,
        Report::Log { level, part, text } => ("log", json!({ "level": level, "part": part, "text": text })),
        Report::Said { text } => (
            "log",
            json!({ "level": Level::Info, "part": Part::Engine, "text": text }),
        ),
        Report::Stop { reason, exit } => ("stop", json!({ "reason": reason, "exit": exit })),
    };
    Some(stamped(kind, members))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_reports_have_their_members() {
        let value = object(
            &Report::Process {
                name: "p".into(),
                state: "exited",
                pid: None,
                exit: Some(Exit::Signal(9)),
            },
            Level::Info,
        )
        .unwrap();
        assert_eq!(value["kind"], "process");
        assert_eq!(value["exit"]["signal"], 9);
        assert!(value["ts"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn quiet_levels_are_left_out() {
        let log = |level| Report::log(level, Part::Engine, "x");
        assert!(object(&log(Level::Debug), Level::Info).is_none());
        assert!(object(&log(Level::Error), Level::Warn).is_some());
    }

    #[test]
    fn a_reader_that_does_not_read_costs_lines_and_not_memory() {
        struct Stuck(std::sync::mpsc::Receiver<()>, Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for Stuck {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let _ = self.0.recv();
                self.1.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let (free, stuck) = channel();
        let written = Arc::default();
        let lane = Lane::new("test", Stuck(stuck, Arc::clone(&written))).unwrap();
        for _ in 0..200 {
            lane.put_own(vec![b'x'; 64 * 1024]);
        }
        assert!(lane.own.waiting.load(Ordering::Relaxed) <= OWN_BACKLOG);
        drop(free);
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while lane.own.waiting.load(Ordering::Relaxed) > 0 {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        lane.put_own(b"last\n".to_vec());
        loop {
            let text = String::from_utf8_lossy(&written.lock().unwrap()).into_owned();
            if text.ends_with("last\n") {
                assert!(text.contains(" lines were not written\n"));
                return;
            }
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
    }

    #[test]
    fn lines_of_the_loop_cannot_be_broken() {
        assert_eq!(one_line("a\nb\x1b[2J"), "a b [2J");
        assert_eq!(one_line("plain"), "plain");
    }
}
