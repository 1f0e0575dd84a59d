//! What a written document does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use beamtalk_ninep::Refusal;
use serde_json::json;

use super::TreeNode;
use super::place::Place;
use crate::access::{Acl, Level, Right};
use crate::approvals;
use crate::error::refusal;
use crate::files;
use crate::mail::{Draft, USER};
use crate::session::chat::Speaker;
use crate::session::conversation::is_plain;
use crate::session::core::State;
use crate::session::shared::{Command, SessionShared};
use crate::session::usage::Budget;

pub(super) fn invalid_state(word: &str) -> Refusal {
    let all: Vec<&str> = State::ALL.iter().map(|state| state.word()).collect();
    refusal(format!(
        "invalid state: \"{word}\" (must be one of: {})",
        all.join(", ")
    ))
}

fn stored<T>(outcome: std::io::Result<T>) -> Result<T, Refusal> {
    outcome.map_err(|error| {
        tracing::error!(%error, "state cannot be written");
        Refusal::INTERNAL
    })
}

fn text_of(bytes: &[u8], what: &str) -> Result<String, Refusal> {
    String::from_utf8(bytes.to_vec()).map_err(|_| refusal(format!("invalid {what}")))
}

impl TreeNode {
    /// Commit a whole document, and record it before it is answered.
    pub(super) async fn commit(self: Arc<Self>, bytes: Vec<u8>) -> Result<(), Refusal> {
        self.recorded(bytes, |bytes| self.apply(bytes)).await
    }

    /// Commit a prompt whose answer will be read; the number of its turn.
    pub(super) async fn commit_prompt(self: Arc<Self>, bytes: Vec<u8>) -> Result<u64, Refusal> {
        self.recorded(bytes, |bytes| self.prompt(bytes)).await
    }

    pub(super) async fn recorded<T, F>(
        &self,
        bytes: Vec<u8>,
        work: impl FnOnce(Vec<u8>) -> F,
    ) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        let began = Instant::now();
        let with_text = self.hub.config().audit.text;
        let entry = self.entry("commit").about(&bytes, with_text);
        if self.hub.is_stopping() {
            return Err(Refusal::INTERNAL);
        }
        // What cannot be recorded is not done.
        self.hub.audit.ready()?;
        let outcome = work(bytes).await;
        let result = match &outcome {
            Ok(_) => "ok".to_owned(),
            Err(refused) if refused.errno == 13 => "denied".to_owned(),
            // Error texts may quote what was written.
            Err(refused) => refused.text.split(':').next().unwrap_or_default().to_owned(),
        };
        let ms = began.elapsed().as_millis() as u64;
        self.hub
            .audit
            .write(entry.with("result", result).with("ms", ms))?;
        outcome
    }

    async fn apply(&self, bytes: Vec<u8>) -> Result<(), Refusal> {
        match &self.place {
            Place::UserFile(_) => self.send_mail(USER, &bytes),
            Place::OfApproval(id, _) => {
                let (verdict, sha256) = approvals::parse(&text_of(&bytes, "answer")?)?;
                let by = self.caller.who.word();
                self.hub.answer(id, verdict, sha256.as_deref(), &by).await
            }
            Place::File(id, "mail") => self.send_mail(id, &bytes),
            Place::File(_, "in") => self.prompt(bytes).await.map(drop),
            Place::File(id, name) => {
                let session = self.hub.session(id)?;
                match *name {
                    "out" => set_out(&session, &bytes),
                    "state" => self.set_state(&session, &bytes).await,
                    "alias" => self.set_alias(&session, &bytes),
                    "context" => self.set_context(&session, &bytes),
                    "role" => self.set_role(&session, &bytes),
                    "acl" => self.set_acl(&session, &bytes),
                    "queue" => self.queue(&session, bytes).await,
                    "conversation" => set_conversation(&session, &bytes),
                    "budget" => set_budget(&session, &bytes),
                    _ => Err(Refusal::PERMISSION_DENIED),
                }
            }
            _ => Err(Refusal::PERMISSION_DENIED),
        }
    }

    /// Deliver a prompt; the number of its turn.
    async fn prompt(&self, text: Vec<u8>) -> Result<u64, Refusal> {
        let Place::File(id, _) = &self.place else {
            return Err(Refusal::INTERNAL);
        };
        let session = self.hub.session(id)?;
        let from = match &self.caller.level {
            Level::Session(id) => id.clone(),
            Level::Read | Level::Control => USER.to_owned(),
        };
        session.ask(|done| Command::Prompt { text, from, done }).await
    }

    /// Queue a prompt: what could not be typed is refused now and not later.
    async fn queue(&self, session: &SessionShared, text: Vec<u8>) -> Result<(), Refusal> {
        let author = match &self.caller.level {
            Level::Session(id) => id.clone(),
            Level::Read | Level::Control => USER.to_owned(),
        };
        let prompt = session.ask(|done| Command::CheckPrompt { text, done }).await?;
        session.prompts.add(&prompt, &author)?;
        session.touch();
        session.tell(Command::Queued);
        Ok(())
    }

    fn send_mail(&self, from: &str, bytes: &[u8]) -> Result<(), Refusal> {
        let draft = Draft::parse(bytes)?;
        let missing = || refusal(format!("receiver {} does not exist", draft.to));
        let to = self.hub.participant(&draft.to).ok_or_else(missing)?;
        if to != USER {
            let session = self.hub.session(&to).map_err(|_| missing())?;
            self.check_right(&session, Right::Mail)?;
        }
        self.hub.post(from, &to, draft)?;
        self.hub.touch();
        Ok(())
    }

    async fn set_state(&self, session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
        let text = text_of(bytes, "state")?;
        let word = text.trim();
        let to = State::parse(word).ok_or_else(|| invalid_state(word))?;
        let control = self.check_right(session, Right::Control).is_ok();
        session
            .ask(|done| Command::WriteState { to, control, done })
            .await
    }

    fn set_alias(&self, session: &Arc<SessionShared>, bytes: &[u8]) -> Result<(), Refusal> {
        let text = text_of(bytes, "alias: must match [A-Za-z0-9_-]+")?;
        let word = text.trim();
        let alias = (!word.is_empty() && word != "-").then(|| word.to_owned());
        let old = session.alias();
        if old == alias {
            return Ok(());
        }
        if let Some(alias) = &alias {
            self.hub.check_alias(alias, Some(&session.id))?;
        }
        session.change_record(|record| record.alias.clone_from(&alias));
        stored(session.save())?;
        if let Some(old) = &old {
            self.hub.forget_qids(old);
        }
        session.tell(Command::Save);
        self.hub.touch();
        self.hub
            .events
            .emit(&session.id, "AliasChange", json!({"old": old, "new": alias}));
        Ok(())
    }

    fn set_context(&self, session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
        let text = text_of(bytes, "context")?;
        let old = session.with_texts(|texts| texts.context.len());
        if session.with_texts(|texts| texts.context == text) {
            return Ok(());
        }
        stored(files::replace(
            &session.directory.join("context"),
            text.as_bytes(),
        ))?;
        let new = text.len();
        session.change_texts(|texts| texts.context = text);
        session.context_due.store(true, Ordering::Relaxed);
        self.hub
            .events
            .emit(&session.id, "ContextChange", json!({"old": old, "new": new}));
        Ok(())
    }

    fn set_role(&self, session: &Arc<SessionShared>, bytes: &[u8]) -> Result<(), Refusal> {
        let text = text_of(bytes, "role")?;
        self.hub.give_role(session, text.trim())?;
        session.tell(Command::Save);
        self.hub.touch();
        Ok(())
    }

    fn set_acl(&self, session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
        let text = text_of(bytes, "acl")?;
        let acl = Acl::parse(&text, self.hub.config().limits.acl_lines)?;
        stored(files::replace(&session.directory.join("acl"), text.as_bytes()))?;
        session.change_texts(|texts| texts.acl = acl);
        Ok(())
    }
}

fn set_conversation(session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
    let text = text_of(bytes, "conversation")?;
    let id = text.trim();
    if !id.is_empty() && !is_plain(id) {
        return Err(refusal("invalid conversation: must match [A-Za-z0-9_.-]{1,128}"));
    }
    session.change_record(|record| record.conversation = (!id.is_empty()).then(|| id.to_owned()));
    stored(session.save())
}

fn set_budget(session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
    let text = text_of(bytes, "budget")?;
    Budget::parse(&text).ok_or_else(|| refusal("invalid budget: cost=N, tokens=N or turns=N"))?;
    stored(files::replace(&session.directory.join("budget"), text.as_bytes()))?;
    session.change_texts(|texts| texts.budget = text);
    // What waits may go on.
    session.tell(Command::Queued);
    Ok(())
}

fn set_out(session: &SessionShared, bytes: &[u8]) -> Result<(), Refusal> {
    let text = text_of(bytes, "out")?;
    stored(files::replace_quickly(
        &session.directory.join("out"),
        text.as_bytes(),
    ))?;
    stored(session.chat.add(Speaker::Assistant, &text))?;
    session.change_texts(|texts| texts.out = text);
    Ok(())
}
