//! Hooks: run to completion, output shown live, standard output captured.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_process::{GuardLink, Spec, Stop, spawn};
use serde_json::Value;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, oneshot};

use super::Inbound;
use super::children::{Lines, Ours, drain};
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
}

/// What standard output brought, bounded.
#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    too_much: bool,
}

/// Start a hook; its end comes to `inbox`. Sending (or dropping) the answer stops it.
pub(crate) fn start(
    run: Run,
    guard: &GuardLink,
    ours: &Ours,
    output: &Output,
    inbox: &mpsc::UnboundedSender<Inbound>,
) -> Result<oneshot::Sender<()>, String> {
    let mut child = spawn(&run.spec, Some(guard))
        .map_err(|error| format!("failed to run hook '{}': {error}", run.name))?;
    ours.add(child.id());
    let (stop, asked) = oneshot::channel();
    let kept = Arc::new(Mutex::new(Kept::default()));
    let (overflow, mut overflowed) = mpsc::channel(1);
    let reader = |stream| Reader {
        output: output.clone(),
        speaker: run.speaker.clone(),
        stream,
        inherit: run.inherit,
        kept: (stream == Stream::Stdout && run.capture != Capture::Ignore).then(|| Arc::clone(&kept)),
        overflow: overflow.clone(),
    };
    let readers = [
        child
            .take_stdout()
            .map(|pipe| tokio::spawn(reader(Stream::Stdout).read(pipe))),
        child
            .take_stderr()
            .map(|pipe| tokio::spawn(reader(Stream::Stderr).read(pipe))),
    ];
    let (ours, output, inbox) = (ours.clone(), output.clone(), inbox.clone());
    tokio::spawn(async move {
        let limit = run.limit.map_or(Duration::MAX, Duration::from_millis);
        let ended = tokio::select! {
            exit = child.wait() => Ended::Itself(exit.map(Exit::from)),
            _ = asked => Ended::Asked,
            Some(()) = overflowed.recv() => Ended::TooMuch,
            () = sleep(limit) => Ended::Late(run.limit.unwrap_or_default()),
        };
        if !child.is_gone() {
            child.stop(Stop::default()).await;
        }
        ours.remove(child.id());
        drain(readers.into_iter().flatten().collect()).await;
        output.flush().await;
        let kept = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
        let result = ended.result(&run.name, run.capture, kept);
        drop(inbox.send(Inbound::Event(Event::HookDone { id: run.id, result })));
    });
    Ok(stop)
}

/// Reads one stream of a hook.
struct Reader {
    output: Output,
    speaker: Speaker,
    stream: Stream,
    inherit: bool,
    /// Where to keep what is captured.
    kept: Option<Arc<Mutex<Kept>>>,
    overflow: mpsc::Sender<()>,
}

impl Reader {
    async fn read(self, pipe: impl AsyncRead + Unpin) {
        let mut pipe = Lines::new(pipe);
        loop {
            let batch = pipe.read().await;
            let ended = batch.bytes.is_empty();
            let fits = self.kept.as_ref().is_none_or(|kept| keep(kept, batch.bytes));
            if self.inherit {
                for line in batch.lines {
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
fn keep(kept: &Mutex<Kept>, bytes: &[u8]) -> bool {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.too_much |= kept.bytes.len() + bytes.len() > CAPTURE_LIMIT;
    if !kept.too_much {
        kept.bytes.extend_from_slice(bytes);
    }
    !kept.too_much
}

enum Ended {
    Itself(std::io::Result<Exit>),
    Asked,
    TooMuch,
    Late(Ms),
}

impl Ended {
    fn result(self, name: &str, capture: Capture, kept: Kept) -> Result<Captured, String> {
        let too_much = || format!("hook '{name}' produced more than {CAPTURE_LIMIT} bytes");
        match self {
            Self::Asked => Err(format!("hook '{name}' was stopped")),
            Self::TooMuch => Err(too_much()),
            Self::Late(limit) => Err(format!("hook '{name}' timed out after {limit} ms")),
            Self::Itself(Err(error)) => Err(format!("failed to run hook '{name}': {error}")),
            Self::Itself(Ok(exit)) if !exit.is_success() => Err(format!("hook '{name}' failed with {exit}")),
            Self::Itself(Ok(_)) if kept.too_much => Err(too_much()),
            Self::Itself(Ok(_)) => interpret(name, capture, kept.bytes),
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
        let words = |ended: Ended| ended.result("h", Capture::Ignore, Kept::default()).unwrap_err();
        assert_eq!(
            words(Ended::Itself(Ok(Exit::Code(7)))),
            "hook 'h' failed with exit status: 7"
        );
        assert_eq!(
            words(Ended::Itself(Ok(Exit::Signal(9)))),
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
