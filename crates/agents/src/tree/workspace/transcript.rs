//! The Transcript: what was written, as it grows, and writing to it.

use std::sync::Arc;

use beamtalk_ninep::{OpenFile, OpenRequest, Payload, ReadAnswer, Refusal, WriteAnswer};
use beamtalk_wire::requests::Eval;

use super::super::kinds::{Feed, StreamFile, ValueFile};
use super::super::open::detached;
use super::{WorkspaceNode, is_over};
use crate::bytelog::Taken;
use crate::daemon::Hub;
use crate::error::refusal;
use crate::link::{Failure, Link, Live};

/// A text as a literal of the language.
pub(super) fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' | '{' | '}' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Link {
    /// First and last offset of what is kept of the Transcript.
    pub(super) fn transcript_extent(&self) -> (u64, u64) {
        self.now().map_or((0, 0), |live| live.known.transcript.extent())
    }
}

impl WorkspaceNode {
    pub(super) fn open_transcript(self: &Arc<Self>, live: &Live) -> Box<dyn OpenFile> {
        let (first, _) = live.known.transcript.extent();
        let text = live.known.transcript.since(first, usize::MAX);
        Box::new(TranscriptFile {
            node: Arc::clone(self),
            content: ValueFile(Arc::new(text.unwrap_or_default())),
        })
    }

    pub(super) fn follow_transcript(&self, live: Arc<Live>, request: OpenRequest) -> Box<dyn OpenFile> {
        let signal = live.signal.subscribe();
        let (_, offset) = live.known.transcript.extent();
        let feed = TranscriptFeed {
            hub: Arc::clone(&self.tree.hub),
            live,
            offset,
        };
        Box::new(StreamFile::new(Box::new(feed), signal, request.fills_buffers))
    }

    async fn show(self: Arc<Self>, bytes: Vec<u8>) -> Result<(), Refusal> {
        let link = Arc::clone(&self.link);
        let shown = self.tree.recorded(bytes, |bytes| async move {
            let code = format!("Transcript show: {}", literal(&String::from_utf8_lossy(&bytes)));
            let request = Eval {
                code,
                handle: Some("once".to_owned()),
                ..Eval::default()
            };
            match link.ask(&request).await {
                Ok(_) => Ok(()),
                Err(Failure::Told(error)) => Err(refusal(format!("eval: {}", error.message))),
                Err(failure) => Err(failure.into()),
            }
        });
        shown.await
    }
}

/// What was written until it was opened; each write is appended at once.
struct TranscriptFile {
    node: Arc<WorkspaceNode>,
    content: ValueFile,
}

impl OpenFile for TranscriptFile {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer {
        self.content.read(offset, count)
    }

    fn write(&mut self, _: u64, data: Payload) -> WriteAnswer {
        let node = Arc::clone(&self.node);
        let bytes = data.as_ref().to_vec();
        if bytes.is_empty() {
            return WriteAnswer::Now(Ok(()));
        }
        WriteAnswer::Later(Box::pin(async move {
            node.permit_written("commit", &bytes).await?;
            detached(node.show(bytes)).await
        }))
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

struct TranscriptFeed {
    hub: Arc<Hub>,
    live: Arc<Live>,
    offset: u64,
}

impl Feed for TranscriptFeed {
    fn take(&mut self, count: usize) -> Taken {
        match self.live.known.transcript.since(self.offset, count) {
            None => {
                self.offset = self.live.known.transcript.extent().0;
                Taken::Failed(refusal("output trimmed"))
            }
            Some(bytes) if !bytes.is_empty() => {
                self.offset += bytes.len() as u64;
                Taken::Data(bytes)
            }
            Some(_) if is_over(&self.live, &self.hub) => Taken::End,
            Some(_) => Taken::Nothing,
        }
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        let bytes: Option<u64> = line
            .strip_prefix("tail ")
            .and_then(|bytes| bytes.trim().parse().ok());
        let bytes = bytes.ok_or_else(|| refusal("unknown command"))?;
        let (first, last) = self.live.known.transcript.extent();
        self.offset = last.saturating_sub(bytes).max(first);
        Ok(())
    }
}
