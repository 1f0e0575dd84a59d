//! Command lines of the ctl files.

use std::sync::Arc;

use beamtalk_ninep::Refusal;
use beamtalk_wire::commands;
use tokio::sync::oneshot;

use super::TreeNode;
use super::place::Place;
use crate::access::{Level, Right, Who};
use crate::daemon::{NEW_USAGE, recover_sessions};
use crate::error::refusal;
use crate::mail::USER;
use crate::session::shared::{Command, Operation, SessionShared};

const SESSION_USAGE: &str = "usage: stop | restart | kill | interrupt | refresh | clear | compact | resume | complete <msg-id> \
     | unqueue <id> | clear-queue | ask <text> | merge | discard <branch>";
const USER_USAGE: &str = "usage: complete <msg-id> | delete <msg-id>";
const TOKEN_USAGE: &str =
    "usage: mint <name> <read|control|session> [<id>] [ttl=<seconds>] | revoke <name> | list";

impl TreeNode {
    /// Run the commands of one write in order; the first failure ends them.
    /// `gone` is told when nobody waits for the answer any more.
    pub(super) async fn run_lines(
        self: Arc<Self>,
        text: String,
        mut gone: oneshot::Receiver<()>,
    ) -> Result<String, Refusal> {
        let mut answer = String::new();
        for words in commands(&text).ok_or_else(|| refusal("unknown command"))? {
            let verb = words.first().cloned().unwrap_or_default();
            // What cannot be recorded is not done.
            self.hub.audit.ready()?;
            let outcome = self.run_line(&words, &mut gone).await;
            let result = match &outcome {
                Ok(_) => "ok".to_owned(),
                Err(refused) if refused.errno == 13 => "denied".to_owned(),
                Err(refused) => refused.text.split(':').next().unwrap_or_default().to_owned(),
            };
            self.hub
                .audit
                .write(self.entry("ctl").with("verb", verb).with("result", result))?;
            answer.push_str(&outcome?);
        }
        Ok(answer)
    }

    async fn run_line(&self, words: &[String], gone: &mut oneshot::Receiver<()>) -> Result<String, Refusal> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match &self.place {
            Place::Top("ctl") => self.run_top(&words).await,
            Place::Top(_) => self.run_token(&words),
            Place::UserFile(_) => match words.as_slice() {
                ["complete", id] => {
                    self.hub.complete_mail(USER, id)?;
                    Ok(String::new())
                }
                ["delete", id] => {
                    self.hub.mail.delete_completed(USER, id)?;
                    self.hub.touch();
                    Ok(String::new())
                }
                _ => Err(refusal(USER_USAGE)),
            },
            Place::File(id, _) => self.run_session(id, &words, gone).await,
            _ => Err(refusal("unknown command")),
        }
    }

    async fn run_top(&self, words: &[&str]) -> Result<String, Refusal> {
        let control = self.caller.level == Level::Control;
        match words {
            ["new", rest @ ..] if control || self.may_spawn() => {
                let rest: Vec<String> = rest.iter().map(|word| (*word).to_owned()).collect();
                let maker = match &self.caller.level {
                    Level::Session(id) => Some(self.hub.session(id)?),
                    Level::Control | Level::Read => None,
                };
                Ok(format!("{}\n", self.hub.create(&rest, maker.as_deref()).await?))
            }
            ["recover"] if control => {
                let adopted = recover_sessions(&self.hub, true).await;
                Ok(adopted.iter().map(|id| format!("{id}\n")).collect())
            }
            ["prune"] if control => Ok(self.hub.prune_worktrees().await),
            ["reload"] if control => {
                let outcome = self.hub.try_reload();
                outcome
                    .map(|()| String::new())
                    .map_err(|error| refusal(format!("invalid configuration: {error}")))
            }
            ["new", ..] | ["recover" | "reload" | "prune"] => Err(Refusal::PERMISSION_DENIED),
            _ => Err(refusal(NEW_USAGE)),
        }
    }

    fn run_token(&self, words: &[&str]) -> Result<String, Refusal> {
        match words {
            ["list"] => Ok(self.hub.secrets.list()),
            ["revoke", name] => {
                self.hub.secrets.revoke(name)?;
                self.hub.drop_guests(|who| *who == Who::Token((*name).to_owned()));
                Ok(String::new())
            }
            ["mint", name, level @ ("read" | "control" | "session"), rest @ ..] => {
                let mut session = None;
                let mut ttl = None;
                for word in rest {
                    match word.strip_prefix("ttl=") {
                        Some(seconds) => ttl = Some(seconds.parse().map_err(|_| refusal(TOKEN_USAGE))?),
                        None if *level == "session" && session.is_none() => {
                            let found = self.hub.find(word).ok_or_else(|| refusal("session not found"))?;
                            session = Some(found.id.clone());
                        }
                        None => return Err(refusal(format!("unexpected argument: {word}"))),
                    }
                }
                if *level == "session" && session.is_none() {
                    return Err(refusal(TOKEN_USAGE));
                }
                Ok(format!("{}\n", self.hub.secrets.mint(name, level, session, ttl)?))
            }
            _ => Err(refusal(TOKEN_USAGE)),
        }
    }

    async fn run_session(
        &self,
        id: &str,
        words: &[&str],
        gone: &mut oneshot::Receiver<()>,
    ) -> Result<String, Refusal> {
        let session = self.hub.session(id)?;
        if let ["complete", message] = words {
            self.check_mailbox(id, true)?;
            self.hub.complete_mail(id, message)?;
            return Ok(String::new());
        }
        // A question to the person, from the session itself or on its behalf.
        if let ["ask", text @ ..] = words {
            self.check_mailbox(id, true)?;
            let body = text.join(" ");
            if body.trim().is_empty() {
                return Err(refusal(SESSION_USAGE));
            }
            return tokio::select! {
                answer = self.hub.ask_and_wait(id, body.trim()) => answer,
                _ = gone => Err(refusal("not approved: withdrawn")),
            };
        }
        self.check_right(&session, Right::Control)?;
        let operation = match words {
            ["stop"] => Operation::Stop,
            ["restart"] => Operation::Restart,
            ["clear"] => Operation::Clear,
            ["compact"] => Operation::Compact,
            ["resume"] => Operation::Resume,
            ["interrupt"] => {
                session.ask(|done| Command::Interrupt { done }).await?;
                return Ok(String::new());
            }
            ["refresh"] => {
                session.ask(|done| Command::Refresh { done }).await?;
                return Ok(String::new());
            }
            ["merge"] => {
                let (worktree, author) = session.worktree()?;
                let _alone = session.git.lock().await;
                worktree.merge(&author, id).await?;
                return Ok(String::new());
            }
            ["discard", branch] => {
                let (worktree, _) = session.worktree()?;
                if worktree.branch != *branch {
                    return Err(refusal(format!(
                        "invalid branch: {branch} is not that of the session"
                    )));
                }
                session.operate(Operation::Stop).await?;
                let _alone = session.git.lock().await;
                worktree.remove().await?;
                session.change_record(|record| record.worktree = None);
                session.save().map_err(|_| Refusal::INTERNAL)?;
                return Ok(String::new());
            }
            ["kill"] => {
                session.operate(Operation::Kill).await?;
                return Ok(kept_worktree(&session));
            }
            ["unqueue", id] => {
                session.prompts.remove(id)?;
                session.touch();
                return Ok(String::new());
            }
            ["clear-queue"] => {
                session.prompts.clear()?;
                session.touch();
                return Ok(String::new());
            }
            [] | ["complete" | "unqueue" | "discard"] => return Err(refusal(SESSION_USAGE)),
            _ => return Err(refusal("unknown command")),
        };
        session.operate(operation).await.map(|()| String::new())
    }
}

/// A copy with changes outlives its session; whoever killed it is told where it is.
fn kept_worktree(session: &SessionShared) -> String {
    match session.worktree() {
        Ok((worktree, _)) if worktree.path().exists() => {
            format!("worktree kept: {}\n", worktree.path().display())
        }
        _ => String::new(),
    }
}
