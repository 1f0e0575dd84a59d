//! Hooks: run to completion, output shown live, standard output captured.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_process::{Child, Error, Happened, Keepers, Kept, Spec, Stop, spawn};
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};

use super::Inbound;
use super::children::{Lines, drain};
use crate::config::Capture;
use crate::core::{Captured, Event, Ms};
use crate::output::{Output, Speaker};
use crate::report::{Exit, Stream};

/// The most standard output that is captured.
const CAPTURE_LIMIT: usize = 8 * 1024 * 1024;

/// Everything one run needs.
pub(crate) struct Run {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) spec: Spec,
    pub(crate) speaker: Speaker,
    pub(crate) inherit: bool,
    pub(crate) capture: Capture,
    pub(crate) limit: Option<Ms>,
    /// A poll whose equal results are not shown: what it showed last.
    pub(crate) last: Option<Arc<Mutex<Vec<Shown>>>>,
    /// What it leaves behind stays, and is found by this mark.
    pub(crate) mark: Option<String>,
}

/// One line of a hook.
pub(crate) type Shown = (Stream, String);

/// How many lines of a silent poll are held back before they are shown anyway.
const HELD_LINES: usize = 10_000;

/// What standard output brought, bounded.
#[derive(Debug, Default)]
struct Bounded {
    bytes: Vec<u8>,
    too_much: bool,
}

/// Start a hook; its end comes to `inbox`. Sending (or dropping) the answer stops it.
pub(crate) fn start(
    run: Run,
    keepers: &Keepers,
    output: &Output,
    inbox: &mpsc::Sender<Inbound>,
) -> Result<oneshot::Sender<()>, String> {
    let Run { id, .. } = run;
    let started = if run.mark.is_some() {
        spawn(&run.spec).map(Runner::Loose)
    } else {
        keepers.spawn(run.spec.clone()).map(Runner::Kept)
    };
    let mut kept = started.map_err(|error| format!("failed to run hook '{}': {error}", run.name))?;
    let (stop, asked) = oneshot::channel();
    let (output, inbox) = (output.clone(), inbox.clone());
    tokio::spawn(async move {
        let result = perform(&run, &mut kept, asked, &output).await;
        drop(inbox.send(Inbound::Event(Event::HookDone { id, result })).await);
    });
    Ok(stop)
}

/// Who runs a hook: a keeper, or nobody for one that may leave others behind.
enum Runner {
    Kept(Kept),
    Loose(Child),
}

type Pipe = Box<dyn AsyncRead + Send + Unpin>;

impl Runner {
    async fn started(&mut self) -> Result<(), Error> {
        match self {
            Self::Kept(kept) => kept.started().await.map(drop),
            Self::Loose(_) => Ok(()),
        }
    }

    fn take_stdout(&mut self) -> Option<Pipe> {
        match self {
            Self::Kept(kept) => kept.take_stdout().map(|pipe| Box::new(pipe) as Pipe),
            Self::Loose(child) => child.take_stdout().map(|pipe| Box::new(pipe) as Pipe),
        }
    }

    fn take_stderr(&mut self) -> Option<Pipe> {
        match self {
            Self::Kept(kept) => kept.take_stderr().map(|pipe| Box::new(pipe) as Pipe),
            Self::Loose(child) => child.take_stderr().map(|pipe| Box::new(pipe) as Pipe),
        }
    }

    async fn next(&mut self) -> Option<Happened> {
        match self {
            Self::Kept(kept) => kept.next().await,
            Self::Loose(child) => child.wait().await.ok().map(|status| Happened::Exited {
                status,
                // Whoever is left is meant to be left.
                alone: true,
            }),
        }
    }

    async fn stop(&mut self, how: Stop) {
        match self {
            Self::Kept(kept) => kept.stop(how).await,
            Self::Loose(child) => drop(child.stop(how).await),
        }
    }
}

/// Run a hook to its end and the end of everything it made.
async fn perform(
    run: &Run,
    kept: &mut Runner,
    asked: oneshot::Receiver<()>,
    output: &Output,
) -> Result<Captured, String> {
    kept.started()
        .await
        .map_err(|error| format!("failed to run hook '{}': {error}", run.name))?;
    let held = Arc::new(Mutex::new(Vec::new()));
    let captured = Arc::new(Mutex::new(Bounded::default()));
    let (overflow, mut overflowed) = mpsc::channel(1);
    let reader = |stream| Reader {
        output: output.clone(),
        speaker: run.speaker.clone(),
        stream,
        inherit: run.inherit,
        held: run.last.is_some().then(|| Arc::clone(&held)),
        kept: (stream == Stream::Stdout && run.capture != Capture::Ignore).then(|| Arc::clone(&captured)),
        overflow: overflow.clone(),
    };
    let readers = [
        kept.take_stdout()
            .map(|pipe| tokio::spawn(reader(Stream::Stdout).read(pipe))),
        kept.take_stderr()
            .map(|pipe| tokio::spawn(reader(Stream::Stderr).read(pipe))),
    ];
    let limit = run.limit.map_or(Duration::MAX, Duration::from_millis);
    let (ended, mut is_gone) = tokio::select! {
        happened = kept.next() => match happened {
            Some(Happened::Exited { status, alone }) => (Ended::Itself(status.into()), alone),
            Some(Happened::Gone | Happened::Stuck(_)) | None => (Ended::Lost, true),
        },
        _ = asked => (Ended::Asked, false),
        Some(()) = overflowed.recv() => (Ended::TooMuch, false),
        () = sleep(limit) => (Ended::Late(run.limit.unwrap_or_default()), false),
    };
    let mut left = Vec::new();
    if !is_gone {
        // What a hook leaves behind ends with it.
        kept.stop(Stop::default()).await;
    }
    while !is_gone {
        match kept.next().await {
            Some(Happened::Exited { alone, .. }) => is_gone = alone,
            Some(Happened::Gone) | None => is_gone = true,
            Some(Happened::Stuck(ids)) => {
                left = ids;
                is_gone = true;
            }
        }
    }
    drain(readers.into_iter().flatten().collect()).await;
    if let Some(last) = &run.last {
        show_news(run, &held, last, output).await;
    }
    output.flush().await;
    let kept = std::mem::take(&mut *captured.lock().unwrap_or_else(PoisonError::into_inner));
    if !left.is_empty() {
        return Err(format!(
            "hook '{}' left processes that cannot be killed: {}",
            run.name,
            crate::report::numbers(&left)
        ));
    }
    ended.result(&run.name, run.capture, kept)
}

/// Show what a poll said, unless it is what it said the last time.
async fn show_news(run: &Run, held: &Mutex<Vec<Shown>>, last: &Mutex<Vec<Shown>>, output: &Output) {
    let lines = std::mem::take(&mut *held.lock().unwrap_or_else(PoisonError::into_inner));
    let is_news = {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = *last != lines;
        last.clone_from(&lines);
        is_news
    };
    if is_news && run.inherit {
        for (stream, line) in lines {
            output.child(&run.speaker, stream, &line).await;
        }
    }
}

/// Reads one stream of a hook.
struct Reader {
    output: Output,
    speaker: Speaker,
    stream: Stream,
    inherit: bool,
    /// Where lines wait until it is known whether they are news.
    held: Option<Arc<Mutex<Vec<Shown>>>>,
    /// Where to keep what is captured.
    kept: Option<Arc<Mutex<Bounded>>>,
    overflow: mpsc::Sender<()>,
}

impl Reader {
    async fn read(self, pipe: impl AsyncRead + Unpin) {
        let mut pipe = Lines::new(pipe);
        loop {
            let batch = pipe.read().await;
            let ended = batch.bytes.is_empty();
            let fits = self.kept.as_ref().is_none_or(|kept| keep(kept, batch.bytes));
            for line in batch.lines {
                let is_held = self.held.as_ref().is_some_and(|held| {
                    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                    let has_room = held.len() < HELD_LINES;
                    if has_room {
                        held.push((self.stream, line.text.clone()));
                    }
                    has_room
                });
                if self.inherit && !is_held {
                    self.output.child(&self.speaker, self.stream, &line.text).await;
                }
            }
            if !fits {
                // One word is enough, and one is waiting already when this fails.
                let _ = self.overflow.try_send(());
            }
            if ended || !fits {
                return;
            }
        }
    }
}

/// Sleep, or for ever when that is what is asked.
async fn sleep(limit: Duration) {
    if limit == Duration::MAX {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(limit).await;
}

/// Keep bytes for the capture; false when they are too many.
fn keep(kept: &Mutex<Bounded>, bytes: &[u8]) -> bool {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.too_much |= kept.bytes.len() + bytes.len() > CAPTURE_LIMIT;
    if !kept.too_much {
        kept.bytes.extend_from_slice(bytes);
    }
    !kept.too_much
}

enum Ended {
    Itself(Exit),
    /// Its guard is gone.
    Lost,
    Asked,
    TooMuch,
    Late(Ms),
}

impl Ended {
    fn result(self, name: &str, capture: Capture, kept: Bounded) -> Result<Captured, String> {
        let too_much = || format!("hook '{name}' produced more than {CAPTURE_LIMIT} bytes");
        match self {
            Self::Asked => Err(format!("hook '{name}' was stopped")),
            Self::TooMuch => Err(too_much()),
            Self::Late(limit) => Err(format!("hook '{name}' timed out after {limit} ms")),
            Self::Lost => Err(format!("hook '{name}' was lost: its guard ended")),
            Self::Itself(exit) if !exit.is_success() => Err(format!("hook '{name}' failed with {exit}")),
            Self::Itself(_) if kept.too_much => Err(too_much()),
            Self::Itself(_) => interpret(name, capture, kept.bytes),
        }
    }
}

/// What the captured bytes mean.
fn interpret(name: &str, capture: Capture, bytes: Vec<u8>) -> Result<Captured, String> {
    let text =
        |bytes| String::from_utf8(bytes).map_err(|_| format!("hook '{name}' produced non-utf8 stdout"));
    match capture {
        Capture::Ignore => Ok(Captured::Nothing),
        Capture::Text => Ok(Captured::Text(text(bytes)?.trim().to_owned())),
        Capture::Json => match serde_json::from_str(&text(bytes)?) {
            Ok(Value::Object(members)) => Ok(Captured::Json(members)),
            Ok(_) => Err("hook stdout was not valid JSON: not an object".into()),
            Err(error) => Err(format!("hook stdout was not valid JSON: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn captures_are_read_as_asked() {
        let text = |text: &str| Ok(Captured::Text(text.into()));
        assert_eq!(
            interpret("h", Capture::Text, b"  two words \n\n".to_vec()),
            text("two words")
        );
        assert_eq!(interpret("h", Capture::Text, Vec::new()), text(""));
        assert_eq!(
            interpret("h", Capture::Ignore, b"\xff".to_vec()),
            Ok(Captured::Nothing)
        );
        let Value::Object(members) = json!({ "n": 3, "x": null }) else {
            unreachable!()
        };
        assert_eq!(
            interpret("h", Capture::Json, b"{\"n\": 3, \"x\": null}".to_vec()),
            Ok(Captured::Json(members))
        );
        let error = |capture, bytes: &[u8]| interpret("h", capture, bytes.to_vec()).unwrap_err();
        assert_eq!(error(Capture::Text, b"\xff"), "hook 'h' produced non-utf8 stdout");
        assert!(error(Capture::Json, b"[1]").starts_with("hook stdout was not valid JSON: "));
        assert!(error(Capture::Json, b"").starts_with("hook stdout was not valid JSON: "));
    }

    #[test]
    fn every_end_has_its_words() {
        let words = |ended: Ended| {
            ended
                .result("h", Capture::Ignore, Bounded::default())
                .unwrap_err()
        };
        assert_eq!(
            words(Ended::Itself(Exit::Code(7))),
            "hook 'h' failed with exit status: 7"
        );
        assert_eq!(
            words(Ended::Itself(Exit::Signal(9))),
            "hook 'h' failed with signal: 9 (SIGKILL)"
        );
        assert_eq!(words(Ended::Late(5)), "hook 'h' timed out after 5 ms");
        assert_eq!(words(Ended::TooMuch), "hook 'h' produced more than 8388608 bytes");
    }

    proptest! {
        #[test]
        fn any_output_is_a_capture_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(Captured::Text(text)) = interpret("h", Capture::Text, bytes.clone()) {
                prop_assert_eq!(text.trim(), &text);
            }
            prop_assert!(interpret("h", Capture::Json, bytes.clone()).is_err() || bytes.contains(&0x7b));
        }
    }
}
