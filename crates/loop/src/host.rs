//! A loop inside another program: its streams, what it tells, and what may be asked of it.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use crate::config::Config;
use crate::core::{Operation, Status};
use crate::events::gate::{BODY_LIMIT, Caller, Rejection};
use crate::events::server::{Desk, Waits};
use crate::output::{Output, child_object, object};
use crate::report::{ChildKind, Exit, Level, Report, Stream};
use crate::shell::{Inbound, Options, Outcome, Said, Signals, Start, drive};

/// Something a host may want to know at once.
#[derive(Debug)]
pub enum Fact<'a> {
    Report(&'a Report),
    Started {
        process: &'a str,
        pid: u32,
    },
    Exited {
        process: &'a str,
        pid: Option<u32>,
        exit: Exit,
    },
    StateChanged {
        key: &'a str,
    },
    /// Browsers were told to reload.
    ReloadSent,
    /// A line of a child that is shown.
    Output {
        source: ChildKind,
        name: &'a str,
        stream: Stream,
        line: &'a str,
    },
}

impl Fact<'_> {
    /// The object of `loop run --json` for it, if it has one.
    pub fn object(&self) -> Option<Map<String, Value>> {
        match *self {
            Fact::Report(report) => object(report, Level::Info),
            Fact::Output {
                source,
                name,
                stream,
                line,
            } => Some(child_object(source, name, stream, line)),
            Fact::Started { .. } | Fact::Exited { .. } | Fact::StateChanged { .. } | Fact::ReloadSent => None,
        }
    }
}

/// Called with every fact, by the thread of the loop: it must not wait.
pub type Listener = Arc<dyn Fn(&Fact<'_>) + Send + Sync>;

/// Where the loop and its children write.
pub struct Streams {
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
}

/// What a host gives a loop.
pub struct Stage {
    pub streams: Streams,
    pub listener: Listener,
    /// Told the way to talk to the loop once it runs.
    pub opened: oneshot::Sender<Handle>,
    /// Reasons to stop; a second one forces the end.
    pub stops: mpsc::UnboundedReceiver<&'static str>,
}

/// Run a loop to its end, in the thread of the caller.
pub fn run(config: Config, options: Options, stage: Stage) -> Outcome {
    let made = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| {
            let output = Output::hosted(options.style, stage.streams, stage.listener)?;
            Ok((runtime, output))
        });
    let Ok((runtime, output)) = made else {
        return Outcome::Ended(1);
    };
    let start = Start {
        signals: Ok(Signals::Host(stage.stops)),
        opened: Some(stage.opened),
    };
    drive(runtime, config, options, &output, start)
}

/// The loop has ended, or is ending.
#[derive(Debug, thiserror::Error)]
#[error("the loop has ended")]
pub struct Ended;

/// The way to talk to a hosted loop, from any thread.
#[derive(Clone)]
pub struct Handle {
    desk: Desk,
    revision: watch::Receiver<u64>,
}

impl Handle {
    pub(crate) fn new(desk: Desk, revision: watch::Receiver<u64>) -> Self {
        Self { desk, revision }
    }

    /// Changes whenever the status does.
    pub fn revision(&self) -> watch::Receiver<u64> {
        self.revision.clone()
    }

    /// The config in force.
    pub fn config(&self) -> Arc<Config> {
        self.desk.config()
    }

    pub async fn status(&self) -> Result<Status, Ended> {
        self.ask(|reply| Inbound::Status { reply }).await
    }

    /// One key of the state, or all of them.
    pub async fn state(&self, key: Option<String>) -> Result<Map<String, Value>, Ended> {
        self.ask(|reply| Inbound::State { key, reply }).await
    }

    /// Start, stop or restart a process; resolves when that is done.
    pub async fn operate(&self, process: String, operation: Operation) -> Result<(), String> {
        let asked = self.ask(|reply| Inbound::Operate {
            process,
            operation,
            reply,
        });
        asked.await.unwrap_or_else(|ended| Err(ended.to_string()))
    }

    /// Put a declared workflow into the lane: the number of its run, and later how it ended.
    pub async fn request(
        &self,
        workflow: String,
        changed: Vec<String>,
    ) -> Result<(u64, oneshot::Receiver<Result<(), String>>), Ended> {
        let (done, ended) = oneshot::channel();
        let (queued, number) = oneshot::channel();
        let request = Inbound::Request {
            workflow,
            changed,
            queued,
            done,
        };
        self.desk.inbox.send(request).await.map_err(|_| Ended)?;
        Ok((number.await.map_err(|_| Ended)?, ended))
    }

    /// Post a value to a declared event, under the same limits as any other post. The answer is
    /// whether the value changed, or the kind of the refusal.
    pub async fn post(&self, event: &str, value: &str) -> Result<bool, Refused> {
        let declared = self.desk.gate().is_declared(event);
        let caller = Caller {
            event: declared.then(|| event.to_owned()),
            by: "workspace".into(),
        };
        let refusal = if !declared {
            Some(Rejection::NotFound)
        } else if !self.desk.gate().take(event, Instant::now()) {
            Some(Rejection::Rate)
        } else if value.len() > BODY_LIMIT {
            Some(Rejection::TooLarge)
        } else {
            None
        };
        if let Some(rejection) = refusal {
            self.desk
                .record(&caller, "workspace", Some(value), Err(rejection));
            self.desk.refuse(&caller, rejection).await;
            return Err(Refused::of(rejection));
        }
        let posted = self.desk.post(event, value, Waits::No).await;
        let outcome = posted.map(|posted| posted.changed);
        self.desk.record(&caller, "workspace", Some(value), outcome);
        outcome.map_err(Refused::of)
    }

    /// The last lines of a process; none when there is no such process.
    pub fn tail(&self, process: &str, count: usize) -> Option<Vec<Said>> {
        self.follow(process, count).map(|(lines, _)| lines)
    }

    /// The last lines of a process, and what it says from then on.
    pub fn follow(&self, process: &str, count: usize) -> Option<(Vec<Said>, broadcast::Receiver<Said>)> {
        let config = self.desk.config();
        config
            .process
            .contains_key(process)
            .then(|| self.desk.tails.read(process, count))
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Inbound) -> Result<T, Ended> {
        let (reply, answer) = oneshot::channel();
        self.desk.inbox.send(question(reply)).await.map_err(|_| Ended)?;
        answer.await.map_err(|_| Ended)
    }
}

/// A post that was refused, by the words the event server has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    pub kind: &'static str,
}

impl Refused {
    fn of(rejection: Rejection) -> Self {
        Self {
            status: rejection.status(),
            kind: rejection.kind(),
        }
    }
}
