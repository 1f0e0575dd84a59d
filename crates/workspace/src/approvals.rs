//! Calls that are held until a person answers, and the rules of `approve always`.
//!
//! The first answer counts. A yes is bound to the hash of what was shown. What nobody waits for any more is withdrawn.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use beamtalk_storage::time::now_seconds;
use beamtalk_storage::{PRIVATE_FILE, WorkspaceDirectory, sha256_hex};
use beamtalk_wire::answers::{Approval, ApprovalRule};
use beamtalk_wire::requests::ApprovalAsk;
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::sessions::ConnectionId;

/// Calls of a principal that wait at a time, and how long at most.
const WAITING: usize = 8;
const MOST_SECONDS: u64 = 24 * 3_600;
const USUAL_SECONDS: u64 = 600;
/// Answered ones that are remembered, to tell who comes second.
const ANSWERED: usize = 64;
const FILE: &str = "approvals.toml";

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// `approve`, `reject` or `text`.
    pub(crate) answer: String,
    pub(crate) text: Option<String>,
}

/// A request by its connection and its number there.
pub(crate) type Asked = (Option<ConnectionId>, String);

struct Waiting {
    asked: Asked,
    approval: Approval,
    answer: oneshot::Sender<Said>,
}

#[derive(Default)]
pub(crate) struct Approvals {
    waiting: RefCell<Vec<Waiting>>,
    /// Name and who answered.
    answered: RefCell<VecDeque<(String, String)>>,
    rules: RefCell<Vec<Rule>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    id: String,
    tool: String,
    text: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    #[serde(default)]
    rule: Vec<Rule>,
}

fn new_id() -> Result<String, ErrorBody> {
    let bytes = beamtalk_storage::random_bytes::<4>()
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
    Ok(format!("ap-{:08x}", u32::from_be_bytes(bytes)))
}

/// What a hash is made of: everything that is shown, each part ended so that none runs into the next.
fn shown(who: &str, ask: &ApprovalAsk) -> String {
    let part = |text: Option<&String>| text.map_or(String::new(), Clone::clone);
    let parts = [
        who.to_owned(),
        ask.tool.clone(),
        ask.summary.clone(),
        ask.text.clone(),
        part(ask.effect.as_ref()),
        part(ask.diff.as_ref()),
    ];
    let text: String = parts
        .iter()
        .map(|part| format!("{}:{part}\n", part.len()))
        .collect();
    sha256_hex(text.as_bytes())
}

impl Approvals {
    pub(crate) fn open(directory: &WorkspaceDirectory) -> Self {
        let read = directory.directory().read(FILE).ok().flatten();
        let text = read.and_then(|bytes| String::from_utf8(bytes).ok());
        let rules = text.map(|text| toml::from_str::<Rules>(&text));
        let rules = match rules {
            Some(Err(cause)) => {
                // A damaged file approves nothing.
                tracing::warn!("{FILE} cannot be read: {cause}");
                Vec::new()
            }
            Some(Ok(rules)) => rules.rule,
            None => Vec::new(),
        };
        Self {
            rules: RefCell::new(rules),
            ..Self::default()
        }
    }

    /// The rule that approves a call, if there is one.
    pub(crate) fn rule_for(&self, ask: &ApprovalAsk) -> Option<String> {
        if ask.may_be_rule != Some(true) {
            return None;
        }
        let rules = self.rules.borrow();
        let rule = rules
            .iter()
            .find(|rule| rule.tool == ask.tool && rule.text == ask.text);
        rule.map(|rule| rule.id.clone())
    }

    /// Let a call wait: its name, when its time is over, and where the answer comes.
    pub(crate) fn ask(
        &self,
        who: &str,
        asked_by: Asked,
        ask: &ApprovalAsk,
    ) -> Result<(String, u64, oneshot::Receiver<Said>), ErrorBody> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.iter().filter(|one| one.approval.who == who).count() >= WAITING {
            let error = ErrorBody::new(ErrorKind::Busy, format!("{WAITING} calls wait for a person"));
            return Err(error.hint("wait until one is answered"));
        }
        let id = new_id()?;
        let seconds = ask.timeout_s.unwrap_or(USUAL_SECONDS).clamp(1, MOST_SECONDS);
        let (answer, said) = oneshot::channel();
        let asked = now_seconds();
        waiting.push(Waiting {
            asked: asked_by,
            approval: Approval {
                id: id.clone(),
                who: who.to_owned(),
                tool: ask.tool.clone(),
                summary: ask.summary.clone(),
                text: ask.text.clone(),
                sha256: shown(who, ask),
                asked,
                expires: asked + seconds,
                may_be_rule: ask.may_be_rule == Some(true),
                effect: ask.effect.clone(),
                diff: ask.diff.clone(),
            },
            answer,
        });
        Ok((id, seconds, said))
    }

    /// Nobody waits for it any more.
    pub(crate) fn withdraw(&self, id: &str) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let before = waiting.len();
        waiting.retain(|one| one.approval.id != id);
        waiting.len() < before
    }

    /// Who asked gives it up: nobody hears an answer any more.
    pub(crate) fn give_up(&self, asked: &Asked) -> Option<String> {
        let waiting = self.waiting.borrow();
        let found = waiting.iter().find(|one| one.asked == *asked);
        found.map(|one| one.approval.id.clone())
    }

    /// Those that wait: all, or those of one principal.
    pub(crate) fn list(&self, of: Option<&str>) -> Vec<Approval> {
        let waiting = self.waiting.borrow();
        let is_meant = |one: &&Waiting| of.is_none_or(|of| one.approval.who == of);
        waiting
            .iter()
            .filter(is_meant)
            .map(|one| one.approval.clone())
            .collect()
    }

    /// Answer one. What was shown has to be what waits.
    pub(crate) fn answer(
        &self,
        id: &str,
        said: Said,
        sha256: Option<&str>,
        by: &str,
    ) -> Result<Approval, ErrorBody> {
        let mut waiting = self.waiting.borrow_mut();
        let Some(place) = waiting.iter().position(|one| one.approval.id == id) else {
            let answered = self.answered.borrow();
            let message = match answered.iter().find(|(answered, _)| answered == id) {
                Some((_, who)) => format!("already answered by {who}"),
                None => format!("nothing waits under the name '{id}'"),
            };
            return Err(ErrorBody::new(ErrorKind::NotFound, message));
        };
        let is_shown = waiting
            .get(place)
            .is_some_and(|one| Some(one.approval.sha256.as_str()) == sha256);
        if said.answer != "reject" && !is_shown {
            return Err(ErrorBody::new(
                ErrorKind::InvalidParameter,
                "this is not what was shown; look at it again",
            )
            .hint("an answer carries the sha256 of the request it is for"));
        }
        let one = waiting.remove(place);
        drop(waiting);
        let mut answered = self.answered.borrow_mut();
        if answered.len() >= ANSWERED {
            answered.pop_front();
        }
        answered.push_back((id.to_owned(), by.to_owned()));
        drop(one.answer.send(said));
        Ok(one.approval)
    }

    pub(crate) fn rules(&self) -> Vec<ApprovalRule> {
        let one = |rule: &Rule| ApprovalRule {
            id: rule.id.clone(),
            tool: rule.tool.clone(),
            text: rule.text.clone(),
        };
        self.rules.borrow().iter().map(one).collect()
    }

    /// Approve the very same call from now on.
    pub(crate) fn always(
        &self,
        directory: &WorkspaceDirectory,
        approval: &Approval,
    ) -> Result<(), ErrorBody> {
        let mut rules = self.rules.borrow().clone();
        rules.push(Rule {
            id: approval.id.clone(),
            tool: approval.tool.clone(),
            text: approval.text.clone(),
        });
        self.write(directory, rules)
    }

    pub(crate) fn forget_rule(&self, directory: &WorkspaceDirectory, id: &str) -> Result<(), ErrorBody> {
        let mut rules = self.rules.borrow().clone();
        let before = rules.len();
        rules.retain(|rule| rule.id != id);
        if rules.len() == before {
            return Err(ErrorBody::new(
                ErrorKind::NotFound,
                format!("there is no rule '{id}'"),
            ));
        }
        self.write(directory, rules)
    }

    fn write(&self, directory: &WorkspaceDirectory, rules: Vec<Rule>) -> Result<(), ErrorBody> {
        let failed = |cause: String| ErrorBody::new(ErrorKind::WriteFailed, cause);
        let text = toml::to_string_pretty(&Rules { rule: rules.clone() })
            .map_err(|cause| failed(cause.to_string()))?;
        directory
            .directory()
            .write_atomically(FILE, text.as_bytes(), PRIVATE_FILE)
            .map_err(|cause| failed(cause.to_string()))?;
        *self.rules.borrow_mut() = rules;
        Ok(())
    }
}

/// A call that waits; when nobody wants it any more it is withdrawn.
pub(crate) struct Held {
    pub(crate) approvals: Rc<Approvals>,
    pub(crate) id: String,
    pub(crate) tell: Box<dyn Fn()>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.approvals.withdraw(&self.id) {
            (self.tell)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> ApprovalAsk {
        ApprovalAsk {
            tool: "flush".to_owned(),
            summary: "Write files".to_owned(),
            text: text.to_owned(),
            effect: None,
            diff: None,
            timeout_s: None,
            may_be_rule: Some(true),
        }
    }

    fn by() -> Asked {
        (None, String::new())
    }

    fn yes() -> Said {
        Said {
            answer: "approve".to_owned(),
            text: None,
        }
    }

    #[test]
    fn a_yes_is_for_what_was_shown_and_the_first_answer_counts() {
        let approvals = Approvals::default();
        let (id, seconds, mut said) = approvals.ask("owner", by(), &ask("{}")).expect("room");
        assert_eq!(seconds, 600);
        let hash = approvals.list(None)[0].sha256.clone();
        let (_, _, _other) = approvals.ask("owner", by(), &ask("{\"a\": 1}")).expect("room");
        assert_ne!(approvals.list(None)[1].sha256, hash);
        assert!(approvals.answer(&id, yes(), Some("0"), "terminal").is_err());
        assert!(approvals.answer(&id, yes(), None, "terminal").is_err());
        assert!(approvals.answer(&id, yes(), Some(&hash), "terminal").is_ok());
        assert_eq!(said.try_recv(), Ok(yes()));
        let Err(late) = approvals.answer(&id, yes(), Some(&hash), "browser") else {
            panic!("somebody was first")
        };
        assert_eq!(late.message, "already answered by terminal");
    }

    #[test]
    fn only_so_many_wait_and_what_is_withdrawn_is_gone() {
        let approvals = Approvals::default();
        let all: Vec<_> = (0..WAITING)
            .map(|_| approvals.ask("owner", by(), &ask("{}")).expect("room"))
            .collect();
        let Err(full) = approvals.ask("owner", by(), &ask("{}")) else {
            panic!("there is no room")
        };
        assert_eq!(full.kind, ErrorKind::Busy);
        assert!(approvals.ask("token:ci", by(), &ask("{}")).is_ok());
        assert_eq!(approvals.list(Some("token:ci")).len(), 1);
        assert!(approvals.withdraw(&all[0].0));
        assert!(approvals.ask("owner", by(), &ask("{}")).is_ok());
    }
}
