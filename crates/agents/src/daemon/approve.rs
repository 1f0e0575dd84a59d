//! Questions for a person: how they are asked, what becomes of an answer.

use std::sync::Arc;
use std::time::Duration;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use beamtalk_wire::requests::ApprovalAnswer;
use serde_json::json;
use tokio::sync::oneshot;

use super::Hub;
use crate::approvals::{Begun, Origin, Request, Verdict};
use crate::error::refusal;
use crate::link::Failure;
use crate::mail::{Box as MailBox, Draft, Message, USER};
use crate::session::core::State;
use crate::session::shared::{Command, SessionShared};

/// Who answers when nobody does.
const NOBODY: &str = "nobody";
const NO_ANSWER: &str = "no answer";
const EOPNOTSUPP: u32 = 95;

impl Hub {
    /// What nobody answers in time is rejected.
    fn expire(self: &Arc<Self>, id: &str, expires: Option<u64>) {
        let Some(expires) = expires else { return };
        let left = Duration::from_secs(expires.saturating_sub(now_seconds()));
        let (hub, id) = (Arc::downgrade(self), id.to_owned());
        tokio::spawn(async move {
            tokio::time::sleep(left).await;
            if let Some(hub) = hub.upgrade() {
                // Answered meanwhile is all the better.
                let verdict = Verdict::Reject(NO_ANSWER.to_owned());
                drop(hub.answer(&id, verdict, None, NOBODY).await);
            }
        });
    }

    /// Questions of before the daemon was started: those of sessions that are gone go too, the others run out.
    pub(crate) fn go_on_asking(self: &Arc<Self>) {
        for request in self.approvals.list(None) {
            match &request.session {
                Some(session) if self.session(session).is_err() => self.approvals.session_gone(session),
                _ => self.expire(&request.id, request.expires),
            }
        }
    }

    /// A question of a session, until it is answered. It is withdrawn when the one who waits goes.
    pub(crate) async fn ask_and_wait(self: &Arc<Self>, session: &str, text: &str) -> Result<String, Refusal> {
        let (tell, told) = oneshot::channel();
        let request = Request::question(session, text).within(self.config().limits.approval_seconds);
        let (kind, expires) = (request.kind, request.expires);
        let verdict = match self.approvals.ask(request, tell)? {
            Begun::Answered(verdict) => Ok(verdict),
            Begun::Waits(id) => {
                self.events
                    .emit(session, "ApprovalAsked", json!({"kind": kind, "id": id}));
                self.touch();
                self.expire(&id, expires);
                let asked = Asked {
                    hub: Arc::clone(self),
                    id,
                };
                let verdict = told.await;
                drop(asked);
                verdict
            }
        };
        match verdict {
            Ok(Verdict::Answer(text)) => Ok(format!("{text}\n")),
            Ok(Verdict::Approve { .. }) => Ok("approved\n".to_owned()),
            Ok(Verdict::Reject(reason)) => Err(refusal(format!("not approved: {reason}"))),
            Err(_) => Err(refusal(format!("not approved: {NO_ANSWER}"))),
        }
    }

    /// The screen of a session shows a question of its program.
    pub(crate) async fn screen_asks(self: Arc<Self>, session: Arc<SessionShared>, pattern: regex::Regex) {
        let Ok(screen) = session.ask(|done| Command::Screen { done }).await else {
            return;
        };
        let screen = screen.trim_end();
        let Some(found) = pattern.find(screen) else { return };
        let request = Request::backend(&session.id, found.as_str().trim(), screen)
            .within(self.config().limits.approval_seconds);
        let expires = request.expires;
        if let Ok((id, is_new)) = self.approvals.add_backend(request) {
            self.touch();
            if is_new {
                self.expire(&id, expires);
            }
            // It went on while we looked.
            if session.state() != State::Waiting {
                self.approvals.give_up(&id);
            }
        }
    }

    /// Questions that came by mail before the daemon was started.
    pub(crate) fn find_asked_mail(&self) {
        for id in self.mail.list(USER, MailBox::Inbox) {
            if let Some(message) = self.mail.message(USER, MailBox::Inbox, &id) {
                self.approvals.add_mail(&message);
            }
        }
    }

    /// A message was handled.
    pub(crate) fn complete_mail(&self, who: &str, id: &str) -> Result<(), Refusal> {
        self.mail.complete(who, id)?;
        if who == USER {
            self.approvals.mail_completed(id);
        }
        self.touch();
        Ok(())
    }

    /// Pass an answer on to whoever waits for it.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        id: &str,
        verdict: Verdict,
        sha256: Option<&str>,
        by: &str,
    ) -> Result<(), Refusal> {
        let (request, origin) = self.approvals.take(id, &verdict, sha256, by)?;
        let passed = match &origin {
            Origin::Mail(message) => self.answer_mail(message, &verdict),
            Origin::Backend => self.answer_screen(&request, &verdict).await,
            Origin::Workspace => self.answer_held(&request, &verdict).await,
            Origin::Question(_) => Ok(()),
        };
        self.touch();
        match (origin, passed) {
            // Who asked is gone: so is the question.
            (Origin::Question(Some(tell)), _) => tell.send(verdict).map_err(|_| Refusal::NOT_FOUND),
            (Origin::Question(None), _) => {
                self.approvals.unheard(request, verdict);
                Ok(())
            }
            (_, Ok(())) => Ok(()),
            (origin, Err(refused)) => {
                // What cannot be rejected waits on for a person.
                let is_over = refused.errno == 2
                    || &*refused.text == "request changed"
                    || (by == NOBODY && refused.errno != EOPNOTSUPP);
                if !is_over {
                    self.approvals.put_back(request, origin);
                }
                Err(refused)
            }
        }
    }

    fn answer_mail(&self, message: &Message, verdict: &Verdict) -> Result<(), Refusal> {
        let mut subject = format!("Re: {}", message.subject);
        subject.truncate(subject.floor_char_boundary(200));
        let draft = Draft {
            to: message.from.clone(),
            kind: message.kind.replace("_REQUEST", "_RESPONSE"),
            subject,
            body: match verdict {
                Verdict::Approve { .. } | Verdict::Answer(_) => "approved".to_owned(),
                Verdict::Reject(reason) if reason.is_empty() => "rejected".to_owned(),
                Verdict::Reject(reason) => format!("rejected: {reason}"),
            },
            metadata: serde_json::Map::new(),
        };
        // A sender that is gone needs no answer.
        if self.session(&message.from).is_ok() {
            self.post(USER, &message.from, draft)?;
        }
        self.mail.complete(USER, &message.id)
    }

    async fn answer_screen(&self, request: &Request, verdict: &Verdict) -> Result<(), Refusal> {
        let session = self.session(request.session.as_deref().unwrap_or_default())?;
        let approve = !matches!(verdict, Verdict::Reject(_));
        let shown = request.command.clone().unwrap_or_default();
        let asked = session.ask(|done| Command::Answer { approve, shown, done });
        asked.await
    }

    async fn answer_held(&self, request: &Request, verdict: &Verdict) -> Result<(), Refusal> {
        let link = self.links.of_owner().ok_or_else(crate::link::no_workspace)?;
        let (answer, text) = match verdict {
            Verdict::Approve { always: true } => ("always", None),
            Verdict::Approve { always: false } => ("approve", None),
            Verdict::Reject(reason) => ("reject", Some(reason.clone())),
            Verdict::Answer(text) => ("text", Some(text.clone())),
        };
        let said = ApprovalAnswer {
            r#for: request.id.clone(),
            answer: answer.to_owned(),
            text,
            sha256: Some(request.sha256.clone()),
        };
        let told = link.ask(&said).await;
        told.map(drop).map_err(|failure| match failure {
            Failure::Told(error) if error.message.starts_with("already answered") => refusal(error.message),
            failure => failure.into(),
        })
    }
}

/// A question somebody waits for; when nobody does any more it is withdrawn.
struct Asked {
    hub: Arc<Hub>,
    id: String,
}

impl Drop for Asked {
    fn drop(&mut self) {
        // Who was cut off by the end of the daemon may ask again.
        if !self.hub.is_stopping() {
            self.hub.approvals.give_up(&self.id);
        }
    }
}
