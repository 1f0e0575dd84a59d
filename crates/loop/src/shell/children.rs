//! Supervised processes at work: one task per start, which owns the child.

use std::sync::Arc;
use std::time::Duration;

use beamtalk_process::{Detached, Happened, Keepers, Kept, Line, LineSplitter, Signal, Spec, Stop};
use regex::Regex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Inbound;
use super::tails::{LogFile, Tails};
use crate::config::{Extract, Process, StopSignal};
use crate::core::Event;
use crate::output::{Output, Speaker};
use crate::report::{Exit, Level, Part, Report, Stream};
use crate::terminal::without_escapes;

/// How long output that is already written is waited for after the end.
pub(crate) const DRAIN: Duration = Duration::from_millis(500);

/// An output rule ready for use.
#[derive(Clone, Debug)]
pub(crate) struct CompiledRule {
    key: String,
    kind: RuleKind,
}

#[derive(Clone, Debug)]
enum RuleKind {
    Regex { regex: Regex, group: usize },
    UrlToken,
}

impl CompiledRule {
    /// The rules of a process; those without a pattern never match and are left out.
    pub(crate) fn all(process: &Process) -> Vec<Self> {
        let compile = |rule: &crate::config::Rule| {
            let kind = match rule.extract {
                Extract::UrlToken => RuleKind::UrlToken,
                Extract::Regex => RuleKind::Regex {
                    regex: Regex::new(rule.pattern.as_ref()?).ok()?,
                    group: usize::try_from(rule.capture_group).ok()?,
                },
            };
            Some(Self {
                key: rule.state_key.clone(),
                kind,
            })
        };
        process.output.rules.iter().filter_map(compile).collect()
    }

    fn find(&self, line: &str) -> Option<String> {
        match &self.kind {
            RuleKind::Regex { regex, group } => Some(regex.captures(line)?.get(*group)?.as_str().to_owned()),
            RuleKind::UrlToken => line
                .split_whitespace()
                .map(|token| token.trim_matches('|'))
                .find(|token| token.starts_with("https://") && token.contains("trycloudflare.com"))
                .map(str::to_owned),
        }
    }
}

/// Everything one start needs.
pub(crate) struct Start {
    pub(crate) name: String,
    pub(crate) generation: u64,
    pub(crate) spec: Spec,
    pub(crate) speaker: Speaker,
    pub(crate) inherit: bool,
    pub(crate) rules: Vec<CompiledRule>,
    pub(crate) stop: Stop,
    /// Where its output is kept.
    pub(crate) file: Option<LogFile>,
}

/// A running start: how to ask for its stop.
pub(crate) struct Job {
    pub(crate) stop: oneshot::Sender<()>,
}

/// Start a process; its task reports to `inbox` from then on, first whether it could be started.
pub(crate) fn start(
    start: Start,
    keepers: &Keepers,
    output: &Output,
    tails: &Tails,
    inbox: &mpsc::Sender<Inbound>,
) -> Result<Job, beamtalk_process::Error> {
    let kept = keepers.spawn(start.spec)?;
    let rules = Arc::new(start.rules);
    let reader = |stream| Reader {
        output: output.clone(),
        speaker: start.speaker.clone(),
        stream,
        inherit: start.inherit,
        rules: Arc::clone(&rules),
        tails: tails.clone(),
        file: start.file.clone(),
        name: start.name.clone(),
        generation: start.generation,
        inbox: inbox.clone(),
    };
    let readers = [reader(Stream::Stdout), reader(Stream::Stderr)];
    let (stop, asked) = oneshot::channel();
    let task = Task {
        kept,
        readers: Vec::new(),
        how: start.stop,
        name: start.name,
        generation: start.generation,
        inbox: inbox.clone(),
    };
    tokio::spawn(task.run(readers, asked));
    Ok(Job { stop })
}

/// Follow a program that outlives the loop: report its start, its end, and stop it when asked.
pub(crate) fn follow_detached(
    program: Detached,
    (name, generation): (String, u64),
    how: Stop,
    inbox: &mpsc::Sender<Inbound>,
) -> Job {
    let (stop, asked) = oneshot::channel();
    let inbox = inbox.clone();
    tokio::spawn(async move {
        let send = |event| inbox.send(Inbound::Event(event));
        let pid = program.id();
        let spawned = Event::Spawned {
            process: name.clone(),
            generation,
            pid,
        };
        drop(send(spawned).await);
        let is_gone = tokio::select! {
            () = program.ended() => true,
            asked = asked => match asked {
                Ok(()) => program.stop(how).await,
                // The loop ends, and the program does not.
                Err(_) => return,
            },
        };
        if !is_gone {
            let failed = Event::StopFailed {
                process: name,
                generation,
                left: vec![pid],
            };
            return drop(send(failed).await);
        }
        // How it ended is known to whoever started it, which need not be this run.
        let exited = Event::Exited {
            process: name.clone(),
            generation,
            exit: Exit::Code(0),
            leftovers: false,
        };
        drop(send(exited).await);
        let process = name;
        drop(send(Event::Gone { process, generation }).await);
    });
    Job { stop }
}

struct Task {
    kept: Kept,
    readers: Vec<JoinHandle<()>>,
    how: Stop,
    name: String,
    generation: u64,
    inbox: mpsc::Sender<Inbound>,
}

impl Task {
    async fn run(mut self, readers: [Reader; 2], mut asked: oneshot::Receiver<()>) {
        let (process, generation) = (self.name.clone(), self.generation);
        match self.kept.started().await {
            Ok(pid) => {
                self.send(Event::Spawned {
                    process,
                    generation,
                    pid,
                })
                .await;
            }
            Err(error) => {
                return self
                    .send(Event::SpawnFailed {
                        process,
                        generation,
                        reason: error.to_string(),
                    })
                    .await;
            }
        }
        let [out, errors] = readers;
        if let Some(pipe) = self.kept.take_stdout() {
            self.readers.push(tokio::spawn(out.read(pipe)));
        }
        if let Some(pipe) = self.kept.take_stderr() {
            self.readers.push(tokio::spawn(errors.read(pipe)));
        }
        let mut is_asked = false;
        loop {
            let happened = tokio::select! {
                biased;
                happened = self.kept.next() => happened,
                asked = &mut asked, if !is_asked => {
                    is_asked = true;
                    if asked.is_err() {
                        // The shell is gone, and with it everything.
                        return;
                    }
                    self.kept.stop(self.how).await;
                    continue;
                }
            };
            let (process, generation) = (self.name.clone(), self.generation);
            match happened {
                Some(Happened::Exited { status, alone }) => {
                    // What it said last comes before the word that it ended; others that are left
                    // may go on speaking.
                    if alone {
                        self.drain().await;
                    }
                    self.send(Event::Exited {
                        process,
                        generation,
                        exit: status.into(),
                        leftovers: !alone,
                    })
                    .await;
                }
                Some(Happened::Stuck(left)) => {
                    self.send(Event::StopFailed {
                        process,
                        generation,
                        left,
                    })
                    .await;
                }
                // Without a guard the keepers have ended everything; the run ends as well.
                Some(Happened::Gone) | None => {
                    self.drain().await;
                    return self.send(Event::Gone { process, generation }).await;
                }
            }
        }
    }

    async fn drain(&mut self) {
        let readers = std::mem::take(&mut self.readers);
        drain(readers).await;
    }

    async fn send(&self, event: Event) {
        // The shell outlives its children; if not, there is nobody to tell.
        drop(self.inbox.send(Inbound::Event(event)).await);
    }
}

/// Wait for readers to reach the end, but not for ever: a stranger may hold the pipe.
pub(crate) async fn drain(readers: Vec<JoinHandle<()>>) {
    let deadline = tokio::time::Instant::now() + DRAIN;
    for reader in readers {
        let stop = reader.abort_handle();
        if tokio::time::timeout_at(deadline, reader).await.is_err() {
            stop.abort();
        }
    }
}

/// Reads one stream of a process.
struct Reader {
    output: Output,
    speaker: Speaker,
    stream: Stream,
    inherit: bool,
    rules: Arc<Vec<CompiledRule>>,
    tails: Tails,
    file: Option<LogFile>,
    name: String,
    generation: u64,
    inbox: mpsc::Sender<Inbound>,
}

impl Reader {
    async fn read(mut self, pipe: impl AsyncRead + Unpin) {
        let mut pipe = Lines::new(pipe);
        loop {
            let batch = pipe.read().await;
            let ended = batch.bytes.is_empty();
            for line in batch.lines {
                if !line.continued {
                    self.apply_rules(&line.text).await;
                }
                self.tails.add(&self.name, self.stream, &line.text);
                self.keep(&line.text);
                if self.inherit {
                    self.output.child(&self.speaker, self.stream, &line.text).await;
                }
            }
            if ended {
                return;
            }
        }
    }

    /// Write a line to the log file; one that takes none any more is given up, and that is said.
    fn keep(&mut self, line: &str) {
        if let Some(file) = &self.file
            && let Err(error) = file.write(line)
        {
            let text = format!(
                "the log of process {} is not written any more: {error}",
                self.name
            );
            self.output.report(&Report::log(Level::Warn, Part::Process, text));
            self.file = None;
        }
    }

    async fn apply_rules(&self, line: &str) {
        if self.rules.is_empty() {
            return;
        }
        let plain = without_escapes(line);
        for rule in self.rules.iter() {
            if let Some(value) = rule.find(&plain) {
                let matched = Inbound::Event(Event::Matched {
                    process: self.name.clone(),
                    generation: self.generation,
                    key: rule.key.clone(),
                    value,
                });
                drop(self.inbox.send(matched).await);
            }
        }
    }
}

/// A pipe read line by line.
pub(crate) struct Lines<P> {
    pipe: P,
    splitter: LineSplitter,
    buffer: Vec<u8>,
}

/// What one read of a pipe brought.
pub(crate) struct Batch<'a> {
    pub(crate) lines: Vec<Line>,
    /// The bytes as they came; none at the end.
    pub(crate) bytes: &'a [u8],
}

impl<P: AsyncRead + Unpin> Lines<P> {
    pub(crate) fn new(pipe: P) -> Self {
        Self {
            pipe,
            splitter: LineSplitter::new(),
            buffer: vec![0; 16 * 1024],
        }
    }

    pub(crate) async fn read(&mut self) -> Batch<'_> {
        let mut lines = Vec::new();
        // A pipe that cannot be read has ended.
        let count = self.pipe.read(&mut self.buffer).await.unwrap_or(0);
        let bytes = self.buffer.get(..count).unwrap_or_default();
        if bytes.is_empty() {
            self.splitter.finish(&mut lines);
        } else {
            self.splitter.push(bytes, &mut lines);
        }
        Batch { lines, bytes }
    }
}

/// How a process wants to be stopped.
pub(crate) fn stop_of(process: &Process) -> Stop {
    let signal = match process.stop_signal {
        StopSignal::Term => Signal::TERM,
        StopSignal::Int => Signal::INT,
        StopSignal::Quit => Signal::QUIT,
        StopSignal::Hup => Signal::HUP,
    };
    Stop {
        signal,
        grace: Duration::from_millis(process.stop_grace_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(kind: RuleKind) -> CompiledRule {
        CompiledRule {
            key: "k".into(),
            kind,
        }
    }

    fn regex(pattern: &str, group: usize) -> CompiledRule {
        rule(RuleKind::Regex {
            regex: Regex::new(pattern).unwrap(),
            group,
        })
    }

    #[test]
    fn rules_find_values() {
        let url = rule(RuleKind::UrlToken);
        assert_eq!(
            url.find("INF |  https://plum-fig.trycloudflare.com  |")
                .as_deref(),
            Some("https://plum-fig.trycloudflare.com")
        );
        assert_eq!(
            url.find("|https://a.trycloudflare.com|").as_deref(),
            Some("https://a.trycloudflare.com")
        );
        assert_eq!(url.find("https://example.org http://x.trycloudflare.com"), None);
        assert_eq!(
            regex(r"port (\d+)", 1)
                .find("bound to port 7431 (pid 9)")
                .as_deref(),
            Some("7431")
        );
        assert_eq!(
            regex(r"port (\d+)", 0).find("a port 1").as_deref(),
            Some("port 1")
        );
        assert_eq!(regex(r"(a)|(b)", 2).find("a"), None);
        assert_eq!(regex("a", 7).find("a"), None);
    }
}
