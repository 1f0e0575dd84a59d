//! Questions that wait for a person, wherever they come from: mail, a program's own question, a session that asks, calls
//! that a workspace holds. All are in one place, each is answered once.
//!
//! They are kept on the disk. After a restart, mail is found in the inbox again and held calls are told by their
//! workspace; a program's question is the same as long as its screen shows it; and who asked again what it had asked
//! before gets the same question, or the answer it had meanwhile.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_ninep::Refusal;
use beamtalk_storage::sha256_hex;
use beamtalk_storage::time::now_seconds;
use beamtalk_wire::answers::Approval;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::bytelog::Signal;
use crate::error::refusal;
use crate::files;
use crate::mail::Message;

/// Those that wait at a time, and the answered ones that are remembered to tell who comes second.
const WAITING: usize = 1_000;
/// Those of one session: none takes the places of the others.
const OF_SESSION: usize = 16;
const ANSWERED: usize = 256;
/// What a follower may be behind.
const LINES: usize = 1_024;
const FILE: &str = "approvals.json";
const FILE_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Mail,
    Tool,
    Backend,
    Question,
}

/// What is shown of a question.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) session: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) summary: String,
    pub(crate) command: Option<String>,
    pub(crate) files: Vec<String>,
    pub(crate) diff: Option<String>,
    /// Over what is shown.
    pub(crate) sha256: String,
    pub(crate) asked: u64,
    pub(crate) expires: Option<u64>,
}

/// Where an answer goes.
pub(crate) enum Origin {
    /// The message in the person's inbox.
    Mail(Box<Message>),
    /// The screen of the session; what it showed.
    Backend,
    /// Somebody who waits for it; nobody yet after a restart.
    Question(Option<oneshot::Sender<Verdict>>),
    /// The workspace that holds the call.
    Workspace,
}

/// What a person said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Verdict {
    Approve { always: bool },
    Reject(String),
    Answer(String),
}

impl Verdict {
    fn word(&self) -> &'static str {
        match self {
            Verdict::Approve { always: false } => "approve",
            Verdict::Approve { always: true } => "approve always",
            Verdict::Reject(_) => "reject",
            Verdict::Answer(_) => "answer",
        }
    }
}

/// A line of an `answer` file: what was said, and for which request it counts.
pub(crate) fn parse(text: &str) -> Result<(Verdict, Option<String>), Refusal> {
    const USAGE: &str = "usage: approve [always] [sha256=<hex>] | reject [<reason>] | answer <text>";
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    match word {
        "approve" => {
            let mut always = false;
            let mut hash = None;
            for word in rest.split_whitespace() {
                match word.strip_prefix("sha256=") {
                    Some(hex) => hash = Some(hex.to_owned()),
                    None if word == "always" => always = true,
                    None => return Err(refusal(USAGE)),
                }
            }
            Ok((Verdict::Approve { always }, hash))
        }
        "reject" => Ok((Verdict::Reject(rest.to_owned()), None)),
        "answer" if !rest.is_empty() => Ok((Verdict::Answer(rest.to_owned()), None)),
        _ => Err(refusal(USAGE)),
    }
}

struct Waiting {
    request: Request,
    origin: Origin,
}

/// A question that was answered when nobody was there to hear it.
#[derive(Clone, Serialize, Deserialize)]
struct Unheard {
    request: Request,
    verdict: Verdict,
}

/// What is on the disk.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    waiting: Vec<Request>,
    answered: VecDeque<(String, String)>,
    unheard: Vec<Unheard>,
}

#[derive(Default)]
struct Kept {
    waiting: Vec<Waiting>,
    /// Id and who answered.
    answered: VecDeque<(String, String)>,
    unheard: Vec<Unheard>,
    lines: VecDeque<(u64, Arc<str>)>,
    last: u64,
}

pub(crate) struct Approvals {
    kept: Mutex<Kept>,
    path: PathBuf,
    pub(crate) signal: Signal,
}

/// How a question of a session begins.
pub(crate) enum Begun {
    Waits(String),
    /// Answered before it was asked again.
    Answered(Verdict),
}

fn new_id() -> String {
    let bytes = beamtalk_storage::random_bytes::<4>().unwrap_or_default();
    format!("ap-{:08x}", u32::from_be_bytes(bytes))
}

/// Everything that is shown, each part ended so that none runs into the next.
fn hash(parts: &[&str]) -> String {
    let text: String = parts
        .iter()
        .map(|part| format!("{}:{part}\n", part.len()))
        .collect();
    sha256_hex(text.as_bytes())
}

impl Request {
    /// It waits until it is answered; see [`Request::within`].
    fn new(session: Option<&str>, kind: Kind, summary: &str, command: Option<&str>) -> Self {
        let asked = now_seconds();
        Request {
            id: new_id(),
            session: session.map(str::to_owned),
            kind,
            summary: summary.to_owned(),
            command: command.map(str::to_owned),
            files: Vec::new(),
            diff: None,
            sha256: hash(&[session.unwrap_or_default(), summary, command.unwrap_or_default()]),
            asked,
            expires: None,
        }
    }

    /// After so many seconds nobody answers it any more.
    pub(crate) fn within(self, seconds: u64) -> Self {
        Self {
            expires: Some(self.asked + seconds),
            ..self
        }
    }

    pub(crate) fn question(session: &str, text: &str) -> Self {
        Self::new(Some(session), Kind::Question, text, None)
    }

    /// A program's own question: what its pattern found, and the screen around it.
    pub(crate) fn backend(session: &str, question: &str, screen: &str) -> Self {
        Self::new(Some(session), Kind::Backend, question, Some(screen))
    }

    fn mail(message: &Message) -> Self {
        let text = |key: &str| message.metadata.get(key).and_then(Value::as_str);
        let mut request = Self::new(
            Some(&message.from),
            Kind::Mail,
            &message.subject,
            Some(&message.body),
        );
        // The same message is the same question after a restart.
        request.id = format!(
            "ap-{}",
            sha256_hex(message.id.as_bytes()).get(..8).unwrap_or_default()
        );
        request.diff = text("diff").map(str::to_owned);
        if let Some(diff) = &request.diff {
            request.sha256 = hash(&[&request.sha256, diff]);
        }
        request.asked = message.timestamp;
        request
    }

    fn tool(held: &Approval) -> Self {
        Request {
            id: held.id.clone(),
            session: held.who.strip_prefix("session:").map(str::to_owned),
            kind: Kind::Tool,
            summary: format!("{}: {}", held.tool, held.summary),
            command: Some(held.text.clone()),
            files: Vec::new(),
            diff: held.diff.clone(),
            sha256: held.sha256.clone(),
            asked: held.asked,
            expires: Some(held.expires),
        }
    }
}

impl Kept {
    fn check_room(&self, request: &Request) -> Result<(), Refusal> {
        let own = self.waiting.iter();
        let own = own.filter(|one| one.request.session == request.session && one.request.kind != Kind::Mail);
        if self.waiting.len() >= WAITING || own.count() >= OF_SESSION {
            return Err(Refusal::TOO_MANY_REQUESTS);
        }
        Ok(())
    }

    fn tell(&mut self, line: &Value) {
        self.last += 1;
        self.lines.push_back((self.last, format!("{line}\n").into()));
        if self.lines.len() > LINES {
            self.lines.pop_front();
        }
    }

    fn add(&mut self, request: Request, origin: Origin) {
        let mut line = json!(request);
        line["event"] = "asked".into();
        self.tell(&line);
        self.waiting.push(Waiting { request, origin });
    }

    fn take(&mut self, which: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let at = self.waiting.iter().position(which)?;
        Some(self.waiting.remove(at))
    }

    fn withdraw(&mut self, which: impl Fn(&Waiting) -> bool) -> bool {
        let mut is_any = false;
        while let Some(gone) = self.take(&which) {
            is_any = true;
            self.tell(&json!({"event": "withdrawn", "id": gone.request.id}));
        }
        is_any
    }
}

impl Approvals {
    /// Those of before, as far as they can still be answered.
    pub(crate) fn open(state: &Path) -> Self {
        let path = state.join(FILE);
        let saved: Saved = files::read_limited(&path, FILE_BYTES)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let mut kept = Kept {
            answered: saved.answered,
            unheard: saved.unheard,
            ..Kept::default()
        };
        for request in saved.waiting {
            match request.kind {
                Kind::Backend => kept.add(request, Origin::Backend),
                Kind::Question => kept.add(request, Origin::Question(None)),
                Kind::Mail | Kind::Tool => {}
            }
        }
        Approvals {
            kept: Mutex::new(kept),
            path,
            signal: Signal::default(),
        }
    }

    /// Write down what is there, and tell everybody.
    fn changed(&self, mut kept: MutexGuard<'_, Kept>) {
        let now = now_seconds();
        kept.unheard
            .retain(|one| one.request.expires.is_none_or(|end| end > now));
        let saved = Saved {
            // The others are found where they come from.
            waiting: kept
                .waiting
                .iter()
                .filter(|one| matches!(one.origin, Origin::Backend | Origin::Question(_)))
                .map(|one| one.request.clone())
                .collect(),
            answered: kept.answered.clone(),
            unheard: kept.unheard.clone(),
        };
        let bytes = serde_json::to_vec(&saved).unwrap_or_default();
        // While it is held, so that the last to change is the last to write.
        if let Err(error) = files::replace_quickly(&self.path, &bytes) {
            tracing::error!(%error, "questions cannot be written down");
        }
        drop(kept);
        self.signal.bump();
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Let a session's question wait, or go on waiting: one that is asked again after a restart is the same.
    pub(crate) fn ask(&self, request: Request, tell: oneshot::Sender<Verdict>) -> Result<Begun, Refusal> {
        let mut kept = self.lock();
        let is_same = |known: &Request| known.session == request.session && known.sha256 == request.sha256;
        if let Some(at) = kept.unheard.iter().position(|one| is_same(&one.request)) {
            let heard = kept.unheard.remove(at);
            self.changed(kept);
            return Ok(Begun::Answered(heard.verdict));
        }
        let alone = kept
            .waiting
            .iter_mut()
            .find(|one| matches!(one.origin, Origin::Question(None)) && is_same(&one.request));
        if let Some(one) = alone {
            one.origin = Origin::Question(Some(tell));
            return Ok(Begun::Waits(one.request.id.clone()));
        }
        kept.check_room(&request)?;
        let id = request.id.clone();
        kept.add(request, Origin::Question(Some(tell)));
        self.changed(kept);
        Ok(Begun::Waits(id))
    }

    /// Let what a screen shows wait. The question that waits already is the same if it looks the same.
    pub(crate) fn add_backend(&self, request: Request) -> Result<(String, bool), Refusal> {
        let mut kept = self.lock();
        let is_of =
            |one: &Waiting| matches!(one.origin, Origin::Backend) && one.request.session == request.session;
        if let Some(one) = kept
            .waiting
            .iter()
            .find(|one| is_of(one) && one.request.sha256 == request.sha256)
        {
            return Ok((one.request.id.clone(), false));
        }
        kept.withdraw(is_of);
        kept.check_room(&request)?;
        let id = request.id.clone();
        kept.add(request, Origin::Backend);
        self.changed(kept);
        Ok((id, true))
    }

    /// Nobody was there to hear the answer; who asks again will.
    pub(crate) fn unheard(&self, request: Request, verdict: Verdict) {
        let mut kept = self.lock();
        kept.unheard.push(Unheard { request, verdict });
        self.changed(kept);
    }

    pub(crate) fn add_mail(&self, message: &Message) -> Option<String> {
        if message.kind != "APPROVAL_REQUEST" {
            return None;
        }
        let request = Request::mail(message);
        let origin = Origin::Mail(Box::new(message.clone()));
        // Mail has limits of its own.
        let id = request.id.clone();
        let mut kept = self.lock();
        if kept.waiting.len() >= WAITING || kept.answered.iter().any(|(known, _)| *known == id) {
            return None;
        }
        kept.add(request, origin);
        self.changed(kept);
        Some(id)
    }

    /// A message was completed, whichever way: nobody waits for an answer any more.
    pub(crate) fn mail_completed(&self, id: &str) {
        self.withdraw(|origin, _| matches!(origin, Origin::Mail(message) if message.id == id));
    }

    /// The screen shows no question any more.
    pub(crate) fn backend_went_on(&self, session: &str) {
        let is_meant = |origin: &Origin, request: &Request| {
            matches!(origin, Origin::Backend) && request.session.as_deref() == Some(session)
        };
        self.withdraw(is_meant);
    }

    /// What a session asked goes with it; its mail stays.
    pub(crate) fn session_gone(&self, session: &str) {
        self.withdraw(|origin, request| {
            matches!(origin, Origin::Backend | Origin::Question(_))
                && request.session.as_deref() == Some(session)
        });
    }

    /// Nobody waits for it any more.
    pub(crate) fn give_up(&self, id: &str) {
        self.withdraw(|_, request| request.id == id);
    }

    fn withdraw(&self, which: impl Fn(&Origin, &Request) -> bool) {
        let mut kept = self.lock();
        if kept.withdraw(|one| which(&one.origin, &one.request)) {
            self.changed(kept);
        }
    }

    /// What a workspace holds now; the ids of those that are new.
    pub(crate) fn sync_held(&self, held: &[Approval]) -> Vec<String> {
        let mut kept = self.lock();
        let is_held = |id: &str| held.iter().any(|one| one.id == id);
        kept.withdraw(|one| matches!(one.origin, Origin::Workspace) && !is_held(&one.request.id));
        let mut fresh = Vec::new();
        for one in held {
            if !kept.waiting.iter().any(|waiting| waiting.request.id == one.id) {
                kept.add(Request::tool(one), Origin::Workspace);
                fresh.push(one.id.clone());
            }
        }
        self.changed(kept);
        fresh
    }

    /// Those that wait: all, or those of one session.
    pub(crate) fn list(&self, of: Option<&str>) -> Vec<Request> {
        let kept = self.lock();
        let is_meant = |one: &&Waiting| of.is_none() || one.request.session.as_deref() == of;
        kept.waiting
            .iter()
            .filter(is_meant)
            .map(|one| one.request.clone())
            .collect()
    }

    pub(crate) fn find(&self, id: &str) -> Option<Request> {
        let kept = self.lock();
        let found = kept.waiting.iter().find(|one| one.request.id == id);
        found.map(|one| one.request.clone())
    }

    pub(crate) fn was_answered(&self, id: &str) -> bool {
        self.lock().answered.iter().any(|(known, _)| known == id)
    }

    /// Take a question out to answer it: only one does. An approval counts for what was shown.
    pub(crate) fn take(
        &self,
        id: &str,
        verdict: &Verdict,
        sha256: Option<&str>,
        by: &str,
    ) -> Result<(Request, Origin), Refusal> {
        let mut kept = self.lock();
        if let Some((_, who)) = kept.answered.iter().find(|(known, _)| known == id) {
            return Err(refusal(format!("already answered by {who}")));
        }
        let found = kept.waiting.iter().find(|one| one.request.id == id);
        let request = &found.ok_or(Refusal::NOT_FOUND)?.request;
        if sha256.is_some_and(|sha256| sha256 != request.sha256) {
            return Err(refusal("request changed"));
        }
        match verdict {
            Verdict::Approve { always: true } if request.kind != Kind::Tool => {
                return Err(refusal("invalid answer: only tool calls can be approved always"));
            }
            Verdict::Answer(_) if request.kind != Kind::Question && request.kind != Kind::Tool => {
                return Err(refusal("invalid answer: this is no question"));
            }
            _ => {}
        }
        let one = kept.take(|one| one.request.id == id).ok_or(Refusal::NOT_FOUND)?;
        if kept.answered.len() >= ANSWERED {
            kept.answered.pop_front();
        }
        kept.answered.push_back((id.to_owned(), by.to_owned()));
        kept.tell(&json!({"event": "answered", "id": id, "answer": verdict.word(), "by": by}));
        self.changed(kept);
        Ok((one.request, one.origin))
    }

    /// The answer did not arrive: the question waits again.
    pub(crate) fn put_back(&self, request: Request, origin: Origin) {
        let mut kept = self.lock();
        kept.answered.retain(|(id, _)| *id != request.id);
        kept.add(request, origin);
        self.changed(kept);
    }

    /// Lines of `follow` after a number.
    pub(crate) fn after(&self, number: u64) -> Vec<(u64, Arc<str>)> {
        let kept = self.lock();
        let start = kept.lines.partition_point(|(known, _)| *known <= number);
        kept.lines.iter().skip(start).cloned().collect()
    }

    pub(crate) fn last(&self) -> u64 {
        self.lock().last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(approvals: &Approvals) -> (String, oneshot::Receiver<Verdict>) {
        let (tell, told) = oneshot::channel();
        let request = Request::question("5e1fa0c2", "which colour?");
        match approvals.ask(request, tell).unwrap() {
            Begun::Waits(id) => (id, told),
            Begun::Answered(verdict) => panic!("{verdict:?}"),
        }
    }

    fn kept() -> (tempfile::TempDir, Approvals) {
        let base = tempfile::tempdir().unwrap();
        let approvals = Approvals::open(base.path());
        (base, approvals)
    }

    /// What waits, and who answered, is known after a restart; the file is the owner's alone.
    #[test]
    fn questions_survive_a_restart() {
        use std::os::unix::fs::PermissionsExt;
        let (base, approvals) = kept();
        let (id, _told) = question(&approvals);
        let screen = Request::backend("5e1fa0c2", "Proceed?", "Proceed? (y/n)");
        let (asked, _) = approvals.add_backend(screen.clone()).unwrap();
        let mode = std::fs::metadata(base.path().join(FILE))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(approvals);
        let approvals = Approvals::open(base.path());
        // The screen shows the same, the session asks the same: nothing is asked twice.
        assert_eq!(approvals.add_backend(screen).unwrap(), (asked, false));
        assert_eq!(question(&approvals).0, id);
        assert_eq!(approvals.list(None).len(), 2);
        drop(approvals);
        let approvals = Approvals::open(base.path());
        let blue = Verdict::Answer("blue".to_owned());
        let (request, origin) = approvals.take(&id, &blue, None, "user").unwrap();
        assert!(matches!(origin, Origin::Question(None)));
        approvals.unheard(request, blue.clone());
        drop(approvals);
        let approvals = Approvals::open(base.path());
        let second = approvals
            .take(&id, &blue, None, "somebody")
            .map(drop)
            .unwrap_err();
        assert_eq!(&*second.text, "already answered by user");
        let again = approvals.ask(
            Request::question("5e1fa0c2", "which colour?"),
            oneshot::channel().0,
        );
        assert!(matches!(again, Ok(Begun::Answered(said)) if said == blue));
        // Heard once: the next is a new question.
        assert_ne!(question(&approvals).0, id);
    }

    /// A session that floods has no more than its places, and others have theirs.
    #[test]
    fn a_flood_is_refused() {
        let (_base, approvals) = kept();
        let ask = |session: &str, number: usize| {
            let request = Request::question(session, &format!("{number}"));
            approvals.ask(request, oneshot::channel().0).map(drop)
        };
        for number in 0..OF_SESSION {
            ask("5e1fa0c2", number).unwrap();
        }
        assert_eq!(ask("5e1fa0c2", 99).unwrap_err(), Refusal::TOO_MANY_REQUESTS);
        ask("00000001", 0).unwrap();
    }

    /// The first answer counts and is for what was shown; who comes second is told who was first.
    #[test]
    fn a_question_is_answered_once() {
        let (_base, approvals) = kept();
        let (id, _told) = question(&approvals);
        assert!(id.starts_with("ap-") && id.len() == 11);
        let sha = approvals.find(&id).unwrap().sha256;
        let yes = Verdict::Approve { always: false };
        let refused = |verdict: &Verdict, sha: Option<&str>| match approvals.take(&id, verdict, sha, "user") {
            Ok(_) => String::new(),
            Err(refused) => refused.text.to_string(),
        };
        assert_eq!(refused(&yes, Some("00")), "request changed");
        assert!(refused(&Verdict::Approve { always: true }, None).starts_with("invalid answer"));
        assert_eq!(refused(&yes, Some(&sha)), "");
        assert_eq!(refused(&yes, None), "already answered by user");
        assert!(approvals.list(None).is_empty());
        assert_eq!(approvals.after(0).len(), 2);
    }

    /// A line that is no answer is refused as a whole.
    #[test]
    fn answers_are_read_or_refused() {
        assert_eq!(
            parse("approve\n").unwrap(),
            (Verdict::Approve { always: false }, None)
        );
        assert_eq!(
            parse("approve always sha256=ab").unwrap(),
            (Verdict::Approve { always: true }, Some("ab".to_owned()))
        );
        assert_eq!(
            parse("reject too risky").unwrap().0,
            Verdict::Reject("too risky".to_owned())
        );
        assert_eq!(
            parse("answer blue").unwrap().0,
            Verdict::Answer("blue".to_owned())
        );
        for bad in ["", "yes", "approve soon", "answer", "answer  "] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    /// A session sees its own questions only, and what is given up is gone.
    #[test]
    fn questions_belong_to_their_session() {
        let (_base, approvals) = kept();
        let (id, _told) = question(&approvals);
        assert_eq!(approvals.list(Some("5e1fa0c2")).len(), 1);
        assert!(approvals.list(Some("00000000")).is_empty());
        approvals.give_up(&id);
        assert!(approvals.find(&id).is_none() && !approvals.was_answered(&id));
    }
}
