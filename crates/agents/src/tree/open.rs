//! Opening: each place with the behaviour of its kind.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use beamtalk_ninep::{Answer, OpenFile, OpenRequest, Refusal};

use super::TreeNode;
use super::kinds::{
    Asked, Buffer, Commit, CtlFile, DirectoryFile, DocumentFile, Look, OutputFile, RpcFile, RunLines,
    StreamFile, ValueFile,
};
use super::place::{Kind, Place};
use super::streams::{ApprovalFeed, ChatFeed, EventFeed, OutputFeed};
use crate::bytelog::Taken;
use crate::error::refusal;
use crate::session::core::State;
use crate::session::shared::{Command, SessionShared};

/// What a read of `wait` waits for.
enum Awaited {
    /// Neither starting nor running.
    Rest,
    OneOf(Vec<State>),
}

impl TreeNode {
    pub(super) async fn open_file(
        self: Arc<Self>,
        request: OpenRequest,
    ) -> Result<Box<dyn OpenFile>, Refusal> {
        Ok(match self.kind() {
            Kind::Directory => Box::new(DirectoryFile),
            Kind::Absent => return Err(refusal("no workspace")),
            Kind::Value => self.open_value().await?,
            Kind::Document => self.open_document(request).await?,
            Kind::Ctl => {
                let limit = self.hub.config().limits.ctl_bytes;
                let node = Arc::clone(&self);
                let run: RunLines = Arc::new(move |text| {
                    let (here, gone) = tokio::sync::oneshot::channel();
                    let work = detached(Arc::clone(&node).run_lines(text, gone));
                    Box::pin(async move {
                        // Dropped with the one who waits.
                        let _here: tokio::sync::oneshot::Sender<()> = here;
                        work.await
                    })
                });
                Box::new(CtlFile {
                    run,
                    answer: Arc::new(Mutex::new(Vec::new())),
                    limit,
                })
            }
            Kind::Stream => self.open_stream(request)?,
            Kind::Rpc => self.open_rpc(request)?,
            Kind::Pipe => self.open_pipe()?,
        })
    }

    async fn open_value(&self) -> Result<Box<dyn OpenFile>, Refusal> {
        if let Place::File(id, name) = &self.place {
            let session = self.hub.session(id)?;
            match *name {
                "output" => {
                    session.output.refresh();
                    let base = session.output.extent().base;
                    return Ok(Box::new(OutputFile {
                        session,
                        base,
                        segment: None,
                    }));
                }
                "worktree" | "diff" | "diff.stat" => {
                    let (worktree, author) = session.worktree()?;
                    let _alone = session.git.lock().await;
                    let text = match *name {
                        "worktree" => format!("{}\n", worktree.describe(&author, id).await?),
                        name => worktree.diff(&author, id, name == "diff.stat").await?,
                    };
                    return Ok(Box::new(ValueFile(Arc::new(text.into_bytes()))));
                }
                "screen" => {
                    let text = session.ask(|done| Command::Screen { done }).await?;
                    session.screen_length.store(text.len() as u32, Ordering::Relaxed);
                    return Ok(Box::new(ValueFile(Arc::new(text.into_bytes()))));
                }
                _ => {}
            }
        }
        Ok(Box::new(ValueFile(Arc::new(self.content()?))))
    }

    async fn open_document(self: Arc<Self>, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let content = self.content()?;
        let limits = self.hub.config().limits.clone();
        let (per_request, limit) = match &self.place {
            Place::File(_, "in" | "queue") => (true, limits.prompt_bytes),
            Place::File(_, "mail") | Place::UserFile(_) | Place::OfApproval(..) => {
                (true, limits.message_bytes)
            }
            Place::File(_, "context") => (false, limits.context_bytes),
            _ => (false, limits.document_bytes),
        };
        let is_context = matches!(self.place, Place::File(_, "context"));
        if request.truncate && is_context {
            Arc::clone(&self).commit(Vec::new()).await?;
        }
        let start = if request.truncate || per_request {
            Vec::new()
        } else {
            content.clone()
        };
        let node = Arc::clone(&self);
        let commit: Commit = Arc::new(move |bytes| detached(Arc::clone(&node).commit(bytes)));
        let mut buffer = Buffer::new(start, per_request, limit, request.largest_write, commit);
        if is_context {
            buffer = buffer.emptied_by_truncation();
        }
        if matches!(self.place, Place::File(_, "in")) {
            buffer = buffer.for_prompts();
        }
        Ok(Box::new(DocumentFile {
            content: Arc::new(content),
            buffer,
        }))
    }

    fn open_stream(&self, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let hub = Arc::clone(&self.hub);
        let fills = request.fills_buffers;
        Ok(match &self.place {
            Place::File(id, name) => {
                let session = self.hub.session(id)?;
                if *name == "log.follow" {
                    let signal = session.chat.signal.subscribe();
                    let offset = session.chat.end();
                    Box::new(StreamFile::new(
                        Box::new(ChatFeed { hub, session, offset }),
                        signal,
                        fills,
                    ))
                } else {
                    session.output.refresh();
                    let signal = session.output.signal.subscribe();
                    let offset = session.output.extent().end;
                    Box::new(StreamFile::new(
                        Box::new(OutputFeed { hub, session, offset }),
                        signal,
                        fills,
                    ))
                }
            }
            Place::OfApprovals(_) => {
                let signal = hub.approvals.signal.subscribe();
                let last = hub.approvals.last();
                let own = self.own_id().map(str::to_owned);
                Box::new(StreamFile::new(
                    Box::new(ApprovalFeed { hub, own, last }),
                    signal,
                    fills,
                ))
            }
            _ => {
                let signal = hub.events.signal.subscribe();
                let next = hub.events.next_seq();
                let level = self.caller.level.clone();
                let feed = EventFeed {
                    hub,
                    level,
                    next,
                    kinds: Vec::new(),
                    source: None,
                };
                Box::new(StreamFile::new(Box::new(feed), signal, fills))
            }
        })
    }

    fn open_rpc(self: Arc<Self>, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let Place::File(id, name) = &self.place else {
            return Err(Refusal::INTERNAL);
        };
        let session = self.hub.session(id)?;
        let signal = session.status.subscribe();
        let largest = request.largest_write;
        if *name == "wait" {
            let state = Arc::new(Mutex::new(Asked::Waiting(Awaited::Rest)));
            let asked = Arc::clone(&state);
            let commit: Commit = Arc::new(move |bytes| {
                let outcome = parse_awaited(&bytes).map(|awaited| {
                    *asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                        Asked::Waiting(awaited);
                });
                Box::pin(std::future::ready(outcome))
            });
            let buffer = Buffer::new(Vec::new(), true, 4096, largest, commit);
            let node = Arc::clone(&self);
            let look: Look<Awaited> = Arc::new(move |awaited| node.look_at_state(&session, awaited));
            return Ok(Box::new(RpcFile {
                buffer,
                state,
                look,
                signal,
            }));
        }
        let state = Arc::new(Mutex::new(Asked::Nothing));
        let asked = Arc::clone(&state);
        let node = Arc::clone(&self);
        let commit: Commit = Arc::new(move |bytes| {
            let (node, asked) = (Arc::clone(&node), Arc::clone(&asked));
            detached(async move {
                let turn = node.commit_prompt(bytes).await?;
                *asked.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Asked::Waiting(turn);
                Ok(())
            })
        });
        let limit = self.hub.config().limits.prompt_bytes;
        let buffer = Buffer::new(Vec::new(), true, limit, largest, commit).for_prompts();
        let node = Arc::clone(&self);
        let look: Look<u64> = Arc::new(move |turn| node.look_at_turn(&session, *turn));
        Ok(Box::new(RpcFile {
            buffer,
            state,
            look,
            signal,
        }))
    }

    fn look_at_state(&self, session: &SessionShared, awaited: &Awaited) -> Taken {
        let state = session.state();
        let reached = match awaited {
            Awaited::Rest => !matches!(state, State::Starting | State::Running),
            Awaited::OneOf(states) => states.contains(&state),
        };
        if reached {
            return Taken::Data(format!("{}\n", state.word()).into_bytes());
        }
        if self.hub.is_stopping() {
            return Taken::End;
        }
        if state == State::Exited {
            Taken::Failed(refusal("session not found"))
        } else {
            Taken::Nothing
        }
    }

    fn look_at_turn(&self, session: &SessionShared, turn: u64) -> Taken {
        let status = session.status.borrow().clone();
        match status.state {
            State::Error => {
                let reason = session.with_record(|record| record.last_error.clone());
                Taken::Failed(refusal(format!("session failed: {}", reason.unwrap_or_default())))
            }
            State::Exited => Taken::Failed(refusal("session not found")),
            _ if status.finished >= turn => {
                Taken::Data(session.with_texts(|texts| texts.out.clone()).into_bytes())
            }
            _ if self.hub.is_stopping() => Taken::End,
            _ => Taken::Nothing,
        }
    }
}

fn parse_awaited(bytes: &[u8]) -> Result<Awaited, Refusal> {
    let text = String::from_utf8_lossy(bytes);
    let mut states = Vec::new();
    for word in text.split_whitespace() {
        states.push(State::parse(word).ok_or_else(|| super::commit::invalid_state(word))?);
    }
    Ok(if states.is_empty() {
        Awaited::Rest
    } else {
        Awaited::OneOf(states)
    })
}

/// Work that goes on even if the one who asked for it is gone.
pub(super) fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Answer<T> {
    let running = tokio::spawn(work);
    Box::pin(async move { running.await.map_err(|_| Refusal::INTERNAL)? })
}
