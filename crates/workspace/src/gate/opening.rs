//! What a client says first: its secret, and who it is.
//!
//! Everything here reads bytes of strangers. It looks for the few fields of the handshake, copies
//! nothing else, and answers with data.

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use serde::Deserialize;

use beamtalk_http::{cookies, values};
use beamtalk_wire::ClientKind;

use super::secret::Credential;

/// The subprotocol the server selects.
pub(crate) const SUBPROTOCOL: &str = "beamtalk.v1";
const SUBPROTOCOL_SECRET: &str = "beamtalk.auth.";
/// A session name longer than this was not given by us.
const RESUME_LENGTH: usize = 64;

/// A secret and what it claims to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    Cookie(Credential),
    Token(Credential),
    /// A header does not say which of the two it carries.
    Either(Credential),
    /// The cookie of a browser that logged in.
    Login(Credential),
}

/// Who the client is and what it wants, beside its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) client: ClientKind,
    /// The highest version it speaks.
    pub(crate) protocol: Option<String>,
    /// The session it wants back.
    pub(crate) resume: Option<String>,
    /// Sessions it does not want: others have them, even if they are not connected now.
    pub(crate) taken: Vec<String>,
    /// Its frames are to be kept.
    pub(crate) keeps: bool,
    /// Events may come several in a frame.
    pub(crate) gathers: bool,
    /// The agent's session it speaks for.
    pub(crate) agent: Option<String>,
}

impl Greeting {
    pub(crate) fn of(client: ClientKind) -> Self {
        Self {
            client,
            protocol: None,
            resume: None,
            taken: Vec::new(),
            keeps: false,
            gathers: false,
            agent: None,
        }
    }
}

/// More than one secret was presented where exactly one belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ambiguous;

#[derive(Deserialize)]
struct Message {
    r#type: String,
    cookie: Option<String>,
    token: Option<String>,
    client: Option<String>,
    protocol: Option<String>,
    resume: Option<String>,
    #[serde(default)]
    taken: Vec<String>,
    keep: Option<bool>,
    gather: Option<bool>,
}

impl Message {
    fn greeting(&mut self) -> Greeting {
        let name = self.client.as_deref().unwrap_or_default();
        // `mcp/ID` and `agent/ID` speak for a session; what is none of its names is nobody.
        let (name, agent) = match name.split_once('/') {
            Some((kind @ ("mcp" | "agent"), id)) if is_session(id) => (kind, Some(id.to_owned())),
            _ => (name, None),
        };
        Greeting {
            client: ClientKind::from_name(name),
            agent,
            protocol: self.protocol.take(),
            resume: self.resume.take().filter(|resume| resume.len() <= RESUME_LENGTH),
            taken: std::mem::take(&mut self.taken),
            keeps: self.keep == Some(true),
            gathers: self.gather == Some(true),
        }
    }
}

/// Whether this can be the name of an agent's session.
fn is_session(id: &str) -> bool {
    let is_plain = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_');
    (1..=64).contains(&id.len()) && id.bytes().all(is_plain)
}

/// Read `{"type":"auth", …}` with exactly one secret.
pub(crate) fn read_auth(text: &str) -> Option<(Offer, Greeting)> {
    let mut message: Message = serde_json::from_str(text).ok()?;
    let greeting = message.greeting();
    match (message.r#type.as_str(), message.cookie, message.token) {
        ("auth", Some(cookie), None) => Some((Offer::Cookie(Credential::new(cookie)), greeting)),
        ("auth", None, Some(token)) => Some((Offer::Token(Credential::new(token)), greeting)),
        _ => None,
    }
}

/// Read `{"type":"hello", …}`, which a client may send first when a header carried its secret.
pub(crate) fn read_hello(text: &str) -> Option<Greeting> {
    let mut message: Message = serde_json::from_str(text).ok()?;
    (message.r#type == "hello").then(|| message.greeting())
}

/// The secret in the headers of an upgrade. One given on purpose (authorization, subprotocol) goes
/// before the login cookie, which a browser sends whether its page wants that or not.
pub(crate) fn read_headers(headers: &HeaderMap, login_cookie: &str) -> Result<Option<Offer>, Ambiguous> {
    let mut secrets = Vec::new();
    for value in headers.get_all(AUTHORIZATION) {
        // Another scheme is for somebody else, but no secret of ours.
        let (scheme, secret) = split_once(value.as_bytes(), b' ').unwrap_or((value.as_bytes(), b""));
        if !scheme.eq_ignore_ascii_case(b"bearer") {
            return Err(Ambiguous);
        }
        secrets.push(Credential::new(secret.trim_ascii()));
    }
    for protocol in subprotocols(headers) {
        if let Some(secret) = protocol.strip_prefix(SUBPROTOCOL_SECRET.as_bytes()) {
            secrets.push(Credential::new(secret));
        }
    }
    match secrets.len() {
        0 => Ok(login_in(headers, login_cookie).map(Offer::Login)),
        1 => Ok(secrets.pop().map(Offer::Either)),
        _ => Err(Ambiguous),
    }
}

/// The lines of a head as headers, as far as they are some.
pub(crate) fn strange_headers(bytes: &[u8]) -> HeaderMap {
    let lines = bytes.split(|byte| *byte == b'\n');
    let pairs = lines.filter_map(|line| split_once(line, b':'));
    let headers = pairs.filter_map(|(name, value)| {
        let name = HeaderName::from_bytes(name.trim_ascii()).ok()?;
        Some((name, HeaderValue::from_bytes(value.trim_ascii()).ok()?))
    });
    headers.fold(HeaderMap::new(), |mut all, (name, value)| {
        all.append(name, value);
        all
    })
}

/// Whether the client offers our subprotocol.
pub(crate) fn offers_subprotocol(headers: &HeaderMap) -> bool {
    subprotocols(headers).any(|protocol| protocol == SUBPROTOCOL.as_bytes())
}

fn subprotocols(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

/// The value of the login cookie in the `Cookie` headers.
pub(crate) fn login_in(headers: &HeaderMap, login_cookie: &str) -> Option<Credential> {
    let value = cookies(&values(headers, COOKIE), login_cookie).next();
    value.map(Credential::new)
}

/// The one-time token in the body of `POST /login`: a form with a field `token`, and nothing that
/// would need decoding, since a token has no such letters.
pub(crate) fn token_in_form(body: &[u8]) -> Option<Credential> {
    body.split(|byte| *byte == b'&')
        .filter_map(|pair| split_once(pair, b'='))
        .find(|(name, _)| *name == b"token")
        .map(|(_, value)| Credential::new(value))
}

fn split_once(bytes: &[u8], separator: u8) -> Option<(&[u8], &[u8])> {
    let place = bytes.iter().position(|byte| *byte == separator)?;
    Some((&bytes[..place], &bytes[place + 1..]))
}

#[cfg(test)]
mod tests;
