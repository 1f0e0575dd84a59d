//! How open files behave: values, documents, ctl files, streams and rpc files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_ninep::{Answer, OpenFile, Payload, ReadAnswer, Refusal, WriteAnswer};
use tokio::sync::watch;

use crate::bytelog::Taken;
use crate::error::refusal;

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn part(content: &Arc<Vec<u8>>, offset: u64, count: u32) -> ReadAnswer {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let end = start.saturating_add(count as usize);
    ReadAnswer::Now(Ok(Payload::shared(Arc::clone(content), start..end)))
}

/// Content fixed at open.
pub(super) struct ValueFile(pub(super) Arc<Vec<u8>>);

impl OpenFile for ValueFile {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer {
        part(&self.0, offset, count)
    }
}

/// A directory: opened only so that access is checked.
pub(super) struct DirectoryFile;

impl OpenFile for DirectoryFile {
    fn read(&mut self, _: u64, _: u32) -> ReadAnswer {
        ReadAnswer::Now(Err(Refusal::IS_DIRECTORY))
    }
}

/// Raw output: starts at the oldest byte kept at open, ends where the output ends at each read.
pub(super) struct OutputFile {
    pub(super) session: Arc<crate::session::shared::SessionShared>,
    pub(super) base: u64,
    /// The segment read last.
    pub(super) segment: Option<(u64, std::fs::File)>,
}

impl OpenFile for OutputFile {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer {
        let at = self.base.saturating_add(offset);
        ReadAnswer::Now(
            self.session
                .output
                .read_with(&mut self.segment, at, count as usize)
                .map(Payload::from),
        )
    }
}

pub(super) type Commit = Arc<dyn Fn(Vec<u8>) -> Answer<()> + Send + Sync>;

/// Writes collected until they are whole.
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pending: bool,
    committed: bool,
    /// Where the current request began, for files whose commits are requests.
    base: Option<u64>,
    per_request: bool,
    /// Cutting the document to nothing is itself a change.
    truncation_commits: bool,
    limit: usize,
    too_large: Refusal,
    largest: u32,
    commit: Commit,
}

impl Buffer {
    pub(super) fn new(bytes: Vec<u8>, per_request: bool, limit: usize, largest: u32, commit: Commit) -> Self {
        Buffer {
            bytes,
            pending: false,
            committed: false,
            base: None,
            per_request,
            truncation_commits: false,
            limit,
            too_large: Refusal::TOO_LARGE,
            largest,
            commit,
        }
    }

    pub(super) fn emptied_by_truncation(self) -> Self {
        Buffer {
            truncation_commits: true,
            ..self
        }
    }

    /// The same for prompts, which have a word of their own for what does not fit.
    pub(super) fn for_prompts(self) -> Self {
        Buffer {
            too_large: refusal("prompt too large"),
            ..self
        }
    }

    /// A write is final unless more of the same document is likely to follow.
    fn is_final(&self, count: usize) -> bool {
        count == 0 || !(count.is_multiple_of(4096) || count >= self.largest as usize)
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> WriteAnswer {
        let offset = if offset == u64::MAX {
            self.bytes.len() as u64
        } else if self.per_request {
            offset.saturating_sub(*self.base.get_or_insert(offset))
        } else {
            offset
        };
        if data.is_empty() {
            // Ends a document; a second ending of the same request means nothing.
            if self.per_request && !self.pending && self.committed {
                return WriteAnswer::Now(Ok(()));
            }
            return self.commit_now();
        }
        let Ok(start) = usize::try_from(offset) else {
            return WriteAnswer::Now(Err(Refusal::BAD_OFFSET));
        };
        if start > self.bytes.len() {
            return WriteAnswer::Now(Err(Refusal::BAD_OFFSET));
        }
        let end = start.saturating_add(data.len());
        if end > self.limit {
            self.pending = false;
            if self.per_request {
                self.bytes.clear();
                self.base = None;
            }
            return WriteAnswer::Now(Err(self.too_large.clone()));
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        if let Some(slot) = self.bytes.get_mut(start..end) {
            slot.copy_from_slice(data);
        }
        self.pending = true;
        if self.is_final(data.len()) {
            self.commit_now()
        } else {
            WriteAnswer::Now(Ok(()))
        }
    }

    /// Commit if something waits for it.
    pub(super) fn finish(&mut self) -> WriteAnswer {
        if self.pending {
            self.commit_now()
        } else {
            WriteAnswer::Now(Ok(()))
        }
    }

    fn commit_now(&mut self) -> WriteAnswer {
        self.pending = false;
        self.committed = true;
        let bytes = if self.per_request {
            self.base = None;
            std::mem::take(&mut self.bytes)
        } else {
            self.bytes.clone()
        };
        WriteAnswer::Later((self.commit)(bytes))
    }

    pub(super) fn set_length(&mut self, length: u64) -> Result<(), Refusal> {
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => {
                self.bytes.truncate(length);
                self.pending |= length == 0 && self.truncation_commits;
                Ok(())
            }
            _ => Err(Refusal::WSTAT_PROHIBITED),
        }
    }
}

pub(super) struct DocumentFile {
    pub(super) content: Arc<Vec<u8>>,
    pub(super) buffer: Buffer,
}

impl OpenFile for DocumentFile {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer {
        part(&self.content, offset, count)
    }

    fn write(&mut self, offset: u64, data: Payload) -> WriteAnswer {
        self.buffer.write(offset, data.as_ref())
    }

    fn commit(&mut self) -> WriteAnswer {
        self.buffer.finish()
    }

    fn set_length(&mut self, length: u64) -> Result<(), Refusal> {
        self.buffer.set_length(length)
    }
}

pub(super) type RunLines = Arc<dyn Fn(String) -> Answer<String> + Send + Sync>;

/// Command lines, carried out before the write is answered.
pub(super) struct CtlFile {
    pub(super) run: RunLines,
    pub(super) answer: Arc<Mutex<Vec<u8>>>,
    pub(super) limit: usize,
}

impl OpenFile for CtlFile {
    fn read(&mut self, _: u64, count: u32) -> ReadAnswer {
        let mut answer = lock(&self.answer);
        let end = answer.len().min(count as usize);
        ReadAnswer::Now(Ok(Payload::from(answer.drain(..end).collect::<Vec<u8>>())))
    }

    fn write(&mut self, _: u64, data: Payload) -> WriteAnswer {
        if data.len() > self.limit {
            return WriteAnswer::Now(Err(Refusal::TOO_LARGE));
        }
        lock(&self.answer).clear();
        let running = (self.run)(String::from_utf8_lossy(data.as_ref()).into_owned());
        let answer = Arc::clone(&self.answer);
        WriteAnswer::Later(Box::pin(async move {
            let text = running.await?;
            *lock(&answer) = text.into_bytes();
            Ok(())
        }))
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Something that can be followed.
pub(super) trait Feed: Send {
    fn take(&mut self, count: usize) -> Taken;
    fn command(&mut self, line: &str) -> Result<(), Refusal>;
}

struct Following {
    feed: Box<dyn Feed>,
    /// What did not fit into the last read.
    rest: Vec<u8>,
    gave_data: bool,
}

/// A stream: each open is its own subscription.
pub(super) struct StreamFile {
    following: Arc<Mutex<Following>>,
    signal: watch::Receiver<u64>,
    /// Another starting point was set, which a read may be waiting for.
    moved: watch::Sender<()>,
    fills_buffers: bool,
}

impl StreamFile {
    pub(super) fn new(feed: Box<dyn Feed>, signal: watch::Receiver<u64>, fills_buffers: bool) -> Self {
        let following = Arc::new(Mutex::new(Following {
            feed,
            rest: Vec::new(),
            gave_data: false,
        }));
        StreamFile {
            following,
            signal,
            moved: watch::Sender::new(()),
            fills_buffers,
        }
    }
}

impl Following {
    fn next(&mut self, count: usize) -> Taken {
        if self.rest.is_empty() {
            match self.feed.take(count) {
                Taken::Data(bytes) => self.rest = bytes,
                other => return other,
            }
        }
        let end = self.rest.len().min(count);
        self.gave_data = true;
        Taken::Data(self.rest.drain(..end).collect())
    }
}

impl OpenFile for StreamFile {
    fn read(&mut self, _: u64, count: u32) -> ReadAnswer {
        let following = Arc::clone(&self.following);
        let mut signal = self.signal.clone();
        let mut moved = self.moved.subscribe();
        let fills_buffers = self.fills_buffers;
        ReadAnswer::Later(Box::pin(async move {
            loop {
                signal.borrow_and_update();
                moved.borrow_and_update();
                {
                    let mut following = lock(&following);
                    match following.next(count as usize) {
                        Taken::Data(bytes) => return Ok(Payload::from(bytes)),
                        Taken::End => return Ok(Payload::default()),
                        Taken::Failed(refused) => return Err(refused),
                        Taken::Nothing if fills_buffers && std::mem::take(&mut following.gave_data) => {
                            return Ok(Payload::default());
                        }
                        Taken::Nothing => {}
                    }
                }
                let changed = tokio::select! {
                    changed = signal.changed() => changed,
                    changed = moved.changed() => changed,
                };
                if changed.is_err() {
                    return Ok(Payload::default());
                }
            }
        }))
    }

    fn write(&mut self, _: u64, data: Payload) -> WriteAnswer {
        let text = String::from_utf8_lossy(data.as_ref()).into_owned();
        let mut following = lock(&self.following);
        for command in text
            .lines()
            .flat_map(|line| line.split(';'))
            .map(str::trim)
            .filter(|line| !line.is_empty())
        {
            if let Err(refused) = following.feed.command(command) {
                return WriteAnswer::Now(Err(refused));
            }
        }
        drop(following);
        self.moved.send_replace(());
        WriteAnswer::Now(Ok(()))
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

/// How far the answer to a request is.
pub(super) enum Asked<T> {
    Nothing,
    Waiting(T),
    Answer(Vec<u8>),
}

pub(super) type RpcState<T> = Arc<Mutex<Asked<T>>>;

/// Looks whether the answer is there.
pub(super) type Look<T> = Arc<dyn Fn(&T) -> Taken + Send + Sync>;

/// A request is written, its answer read once.
pub(super) struct RpcFile<T, S> {
    pub(super) buffer: Buffer,
    pub(super) state: RpcState<T>,
    pub(super) look: Look<T>,
    pub(super) signal: watch::Receiver<S>,
}

impl<T: Send + 'static, S: Send + Sync + 'static> OpenFile for RpcFile<T, S> {
    fn read(&mut self, _: u64, count: u32) -> ReadAnswer {
        let state = Arc::clone(&self.state);
        let look = Arc::clone(&self.look);
        let mut signal = self.signal.clone();
        ReadAnswer::Later(Box::pin(async move {
            loop {
                drop(signal.borrow_and_update());
                {
                    let mut state = lock(&state);
                    if let Asked::Waiting(request) = &*state {
                        match look(request) {
                            Taken::Data(bytes) => *state = Asked::Answer(bytes),
                            Taken::Nothing => {}
                            Taken::End => *state = Asked::Nothing,
                            Taken::Failed(refused) => {
                                *state = Asked::Nothing;
                                return Err(refused);
                            }
                        }
                    }
                    match &mut *state {
                        Asked::Nothing => return Ok(Payload::default()),
                        Asked::Waiting(_) => {}
                        Asked::Answer(bytes) => {
                            let end = bytes.len().min(count as usize);
                            let given: Vec<u8> = bytes.drain(..end).collect();
                            if bytes.is_empty() {
                                *state = Asked::Nothing;
                            }
                            return Ok(Payload::from(given));
                        }
                    }
                }
                if signal.changed().await.is_err() {
                    return Ok(Payload::default());
                }
            }
        }))
    }

    fn write(&mut self, offset: u64, data: Payload) -> WriteAnswer {
        self.buffer.write(offset, data.as_ref())
    }

    fn commit(&mut self) -> WriteAnswer {
        self.buffer.finish()
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
