//! Supervised processes at work: one task per start, which owns the child.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_process::{Child, Group, GuardLink, Line, LineSplitter, Signal, Spec, Stop, spawn};
use regex::Regex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::Inbound;
use crate::config::{Extract, Process, StopSignal};
use crate::core::Event;
use crate::output::{Output, Speaker};
use crate::report::Stream;
use crate::terminal::without_escapes;

/// How long output that is already written is waited for after the end.
pub(crate) const DRAIN: Duration = Duration::from_millis(500);

/// The processes started here and not yet collected: those are waited for by their tasks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ours(Arc<Mutex<BTreeSet<u32>>>);

impl Ours {
    pub(crate) fn ids(&self) -> BTreeSet<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, id: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    pub(crate) fn remove(&self, id: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// `SIGKILL` to every group, now.
    pub(crate) fn kill_all(&self) {
        for group in self.ids().into_iter().filter_map(Group::of) {
            group.signal(Signal::KILL);
        }
    }
}

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
}

/// A running start: how to ask for its stop.
pub(crate) struct Job {
    pub(crate) stop: oneshot::Sender<()>,
}

/// Start a process; its task reports to `inbox` from then on. Gives the process id.
pub(crate) fn start(
    start: Start,
    guard: &GuardLink,
    ours: &Ours,
    output: &Output,
    inbox: &mpsc::UnboundedSender<Inbound>,
) -> Result<(u32, Job), beamtalk_process::Error> {
    let mut child = spawn(&start.spec, Some(guard))?;
    let id = child.id();
    ours.add(id);
    let rules = Arc::new(start.rules);
    let read = |stream| Reader {
        output: output.clone(),
        speaker: start.speaker.clone(),
        stream,
        inherit: start.inherit,
        rules: Arc::clone(&rules),
        name: start.name.clone(),
        generation: start.generation,
        inbox: inbox.clone(),
    };
    let readers = [
        child
            .take_stdout()
            .map(|pipe| tokio::spawn(read(Stream::Stdout).read(pipe))),
        child
            .take_stderr()
            .map(|pipe| tokio::spawn(read(Stream::Stderr).read(pipe))),
    ];
    let (stop, asked) = oneshot::channel();
    let task = Task {
        child,
        readers: readers.into_iter().flatten().collect(),
        how: start.stop,
        name: start.name,
        generation: start.generation,
        ours: ours.clone(),
        inbox: inbox.clone(),
    };
    tokio::spawn(task.run(asked));
    Ok((id, Job { stop }))
}

struct Task {
    child: Child,
    readers: Vec<JoinHandle<()>>,
    how: Stop,
    name: String,
    generation: u64,
    ours: Ours,
    inbox: mpsc::UnboundedSender<Inbound>,
}

impl Task {
    async fn run(mut self, mut asked: oneshot::Receiver<()>) {
        let id = self.child.id();
        let exit = tokio::select! {
            biased;
            exit = self.child.wait() => Some(exit),
            _ = &mut asked => None,
        };
        if let Some(exit) = exit {
            self.ours.remove(id);
            let leftovers = !self.child.is_gone();
            if !leftovers {
                // What it said last comes before the word that it ended.
                self.drain().await;
            }
            if let Ok(exit) = exit {
                self.send(Event::Exited {
                    process: self.name.clone(),
                    generation: self.generation,
                    exit: exit.into(),
                    leftovers,
                });
            }
            if leftovers {
                // The rest of the group stays until somebody asks for its end.
                if asked.await.is_err() {
                    return;
                }
            } else {
                // A stop may have been asked for meanwhile; it waits for this word.
                self.send(Event::Gone {
                    process: self.name.clone(),
                    generation: self.generation,
                });
                return;
            }
        }
        if !self.child.stop(self.how).await {
            self.send(Event::StopFailed {
                process: self.name.clone(),
                generation: self.generation,
            });
            return;
        }
        self.ours.remove(id);
        self.drain().await;
        if let Ok(exit) = self.child.wait().await {
            self.send(Event::Exited {
                process: self.name.clone(),
                generation: self.generation,
                exit: exit.into(),
                leftovers: false,
            });
        }
        self.send(Event::Gone {
            process: self.name.clone(),
            generation: self.generation,
        });
    }

    async fn drain(&mut self) {
        let readers = std::mem::take(&mut self.readers);
        drain(readers).await;
    }

    fn send(&self, event: Event) {
        // The shell outlives its children; if not, there is nobody to tell.
        drop(self.inbox.send(Inbound::Event(event)));
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
    name: String,
    generation: u64,
    inbox: mpsc::UnboundedSender<Inbound>,
}

impl Reader {
    async fn read(self, pipe: impl AsyncRead + Unpin) {
        let mut pipe = Lines::new(pipe);
        loop {
            let batch = pipe.read().await;
            let ended = batch.bytes.is_empty();
            for line in batch.lines {
                if !line.continued {
                    self.apply_rules(&line.text);
                }
                if self.inherit {
                    self.output.child(&self.speaker, self.stream, &line.text).await;
                }
            }
            if ended {
                return;
            }
        }
    }

    fn apply_rules(&self, line: &str) {
        if self.rules.is_empty() {
            return;
        }
        let plain = without_escapes(line);
        for rule in self.rules.iter() {
            if let Some(value) = rule.find(&plain) {
                drop(self.inbox.send(Inbound::Event(Event::Matched {
                    process: self.name.clone(),
                    generation: self.generation,
                    key: rule.key.clone(),
                    value,
                })));
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
