//! Room for tools, resources and prompts of others on the same core: the official suite tests servers by names of its own.
//! Nothing that is shipped has any; see the example `conformance`.

use std::pin::Pin;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::capabilities;
use crate::confirmation::fingerprint;
use crate::dispatch::{self, questions, tasks};
use crate::host::Host;
use crate::message::Fault;
use crate::session::{Call, Common, Outgoing, Session};

/// A request as a fixture sees it.
pub struct Seen {
    pub method: String,
    pub params: Map<String, Value>,
    pub is_modern: bool,
    /// What the client answered to questions of this request so far, by key.
    pub inputs: Map<String, Value>,
    /// Answers that came without the name of a question: nobody knows to what.
    pub unbound: Map<String, Value>,
    pub client: Rc<dyn Talk>,
}

/// Speaks to the client whose request is open.
pub trait Talk {
    fn tell(&self, method: &str, params: Value);
    /// Ask an old client something; `None` when no answer comes.
    fn ask(&self, method: &str, params: Value) -> Giving<Option<Value>>;
}

/// What a fixture gives.
pub enum Given {
    /// It is for the server itself.
    NotMine,
    Result(Value),
    /// The client is asked first: requests by key.
    Ask(Map<String, Value>),
    /// Work that goes on without the client: the order as the host takes it.
    Task(String),
    Fault {
        code: i64,
        message: String,
        data: Option<Value>,
    },
}

pub type Giving<T> = Pin<Box<dyn Future<Output = T>>>;

pub trait Fixture {
    fn answer(&self, seen: Seen) -> Giving<Given>;
    /// What it can do beyond the server.
    fn capabilities(&self) -> Map<String, Value>;
}

struct Client<H: Host> {
    session: Rc<Session<H>>,
    outgoing: Outgoing,
}

impl<H: Host> Talk for Client<H> {
    fn tell(&self, method: &str, params: Value) {
        self.outgoing.notify(method, params);
    }

    fn ask(&self, method: &str, params: Value) -> Giving<Option<Value>> {
        let (session, outgoing, method) = (self.session.clone(), self.outgoing.clone(), method.to_owned());
        Box::pin(async move { session.ask_client(&outgoing, &method, params).await })
    }
}

/// What the server can do, with what a fixture adds.
pub(crate) fn capabilities(common: &Common, is_modern: bool) -> Value {
    let mut own = capabilities::own(is_modern);
    if let (Some(fixture), Some(own)) = (&common.fixture, own.as_object_mut()) {
        own.extend(fixture.capabilities());
    }
    own
}

/// What is kept while the client is asked.
#[derive(Serialize, Deserialize)]
struct Kept {
    method: String,
    sha256: String,
    inputs: Map<String, Value>,
}

/// A request without what changes between its rounds.
fn name(call: &Call) -> String {
    let mut params = call.params.clone();
    for field in ["_meta", "inputResponses", "requestState"] {
        params.remove(field);
    }
    fingerprint(&params)
}

/// The answer of a fixture, if there is one and it is its affair.
pub(crate) async fn answer<H: Host>(session: &Rc<Session<H>>, call: &Call) -> Result<Option<Value>, Fault> {
    let Some(fixture) = &session.common.fixture else {
        return Ok(None);
    };
    let is_modern = call.era.is_modern();
    let (mut inputs, mut unbound) = (Map::new(), Map::new());
    let answers = match call.params.get("inputResponses") {
        Some(Value::Object(answers)) => answers.clone(),
        _ => Map::new(),
    };
    if let Some(kept) = questions::take(session, call).await? {
        let kept: Kept = serde_json::from_str(&kept).map_err(|_| questions::unknown())?;
        if kept.method != call.method || kept.sha256 != name(call) {
            return Err(questions::unknown());
        }
        inputs = kept.inputs;
        inputs.extend(answers);
    } else {
        unbound = answers;
    }
    let given = fixture.answer(Seen {
        method: call.method.clone(),
        params: call.params.clone(),
        is_modern,
        inputs: inputs.clone(),
        unbound,
        client: Rc::new(Client {
            session: session.clone(),
            outgoing: call.outgoing.clone(),
        }),
    });
    let failed = |error: crate::HostError| Fault::params(error.message.clone());
    Ok(match given.await {
        Given::NotMine => None,
        Given::Result(result) => {
            let is_kept = call.method.ends_with("/list") || call.method == "resources/read";
            Some(dispatch::hinted(result, is_modern && is_kept))
        }
        Given::Ask(asked) => {
            let kept = json!(Kept {
                method: call.method.clone(),
                sha256: name(call),
                inputs,
            });
            Some(
                questions::ask(session, kept.to_string(), asked)
                    .await
                    .map_err(failed)?,
            )
        }
        Given::Task(order) => Some(tasks::start_work(session, order).await.map_err(failed)?),
        Given::Fault { code, message, data } => return Err(Fault { code, message, data }),
    })
}
