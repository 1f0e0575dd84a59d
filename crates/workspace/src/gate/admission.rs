//! The WebSocket handshake: who is there, and may they come in.

use std::net::SocketAddr;
use std::sync::Arc;

use beamtalk_wire::{ClientKind, PROTOCOL, limits, negotiate};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connection::{STRANGER_BYTES, STRANGER_PARTING, Socket};
use super::credentials::{self, Pass};
use super::failures::Reason;
use super::metered::Allowance;
use super::opening::{self, Ambiguous, Greeting, Offer};
use super::outgoing::{Farewell, Outgoing};
use super::server::{Refusal, Shared};

/// What is known of a connection when it becomes a WebSocket.
pub(crate) struct Visit {
    pub(crate) peer: SocketAddr,
    pub(crate) place: credentials::Place,
    /// The secret in its headers.
    pub(crate) offer: Result<Option<Offer>, Ambiguous>,
}

/// A secret with who presents it.
struct Introduction {
    offer: Offer,
    greeting: Greeting,
    /// How many bytes were presented.
    bytes: usize,
    /// A first message that was no hello but already a request.
    request: Option<String>,
}

/// Why a connection ends before it is authenticated.
pub(crate) enum Rejected {
    Failed {
        reason: Reason,
        bytes: usize,
    },
    Protocol,
    TooMany,
    /// Nobody is there any more.
    Gone,
}

/// An accepted client.
pub(crate) struct Admission {
    pub(crate) number: u64,
    pub(crate) pass: Pass,
    pub(crate) greeting: Greeting,
    pub(crate) protocol: String,
    pub(crate) request: Option<String>,
}

pub(crate) async fn admit<S>(
    socket: &mut Socket<S>,
    visit: Visit,
    shared: &Shared,
    allowance: &Allowance,
    outgoing: &Outgoing,
) -> Result<Admission, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Introduction {
        offer,
        greeting,
        bytes,
        request,
    } = match visit.offer {
        Ok(Some(offer)) => wait_for_hello(socket, offer, shared, allowance).await?,
        Ok(None) => wait_for_auth(socket, shared, allowance).await?,
        Err(Ambiguous) => {
            return Err(Rejected::Failed {
                reason: Reason::NotAuth,
                bytes: 0,
            });
        }
    };
    let (pass, number) = shared
        .admit(&offer, visit.place, outgoing)
        .map_err(|refusal| match refusal {
            Refusal::Secret(reason) => Rejected::Failed { reason, bytes },
            Refusal::TooMany => Rejected::TooMany,
        })?;
    let Some(protocol) = negotiate(greeting.protocol.as_deref().unwrap_or(PROTOCOL)) else {
        shared.forget(number);
        return Err(Rejected::Protocol);
    };
    Ok(Admission {
        number,
        pass,
        greeting,
        protocol,
        request,
    })
}

/// Ask for a secret and wait for the first message.
async fn wait_for_auth<S>(
    socket: &mut Socket<S>,
    shared: &Shared,
    allowance: &Allowance,
) -> Result<Introduction, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = async {
        let question = json!({"op": "auth-required"}).to_string();
        socket
            .send(Message::text(question))
            .await
            .map_err(|_| Rejected::Gone)?;
        first_text(socket, allowance).await
    };
    let Ok(text) = timeout(shared.config.pace.authentication, asked).await else {
        return Err(Rejected::Failed {
            reason: Reason::Timeout,
            bytes: 0,
        });
    };
    let text = text?;
    let bytes = text.len();
    match opening::read_auth(&text) {
        Some((offer, greeting)) => Ok(Introduction {
            offer,
            greeting,
            bytes,
            request: None,
        }),
        None => Err(Rejected::Failed {
            reason: Reason::NotAuth,
            bytes,
        }),
    }
}

/// The secret came in a header; a moment for the client to say who it is.
async fn wait_for_hello<S>(
    socket: &mut Socket<S>,
    offer: Offer,
    shared: &Shared,
    allowance: &Allowance,
) -> Result<Introduction, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let pace = &shared.config.pace;
    // A page always says hello, but not before it has heard that the socket is open: on a busy machine or a slow line that
    // takes longer than the moment others get, and without it the page would have neither its session nor its frames.
    let (bytes, client, patience) = match &offer {
        Offer::Login(secret) => (
            secret.bytes().len(),
            ClientKind::Browser,
            pace.authentication.max(pace.hello),
        ),
        Offer::Cookie(secret) | Offer::Token(secret) | Offer::Either(secret) => {
            (secret.bytes().len(), ClientKind::Unknown, pace.hello)
        }
    };
    let (greeting, request) = match timeout(patience, first_text(socket, allowance)).await {
        Ok(Err(rejected)) => return Err(rejected),
        Ok(Ok(text)) => match opening::read_hello(&text) {
            Some(greeting) => (greeting, None),
            None => (Greeting::of(client), Some(text)),
        },
        Err(_) => (Greeting::of(client), None),
    };
    Ok(Introduction {
        offer,
        greeting,
        bytes,
        request,
    })
}

/// The first message, as text of at most [`limits::AUTH_FRAME`] bytes.
async fn first_text<S>(socket: &mut Socket<S>, allowance: &Allowance) -> Result<String, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let too_large = |bytes| Rejected::Failed {
        reason: Reason::TooLarge,
        bytes,
    };
    loop {
        return match socket.next().await {
            Some(Ok(Message::Text(text))) if text.len() <= limits::AUTH_FRAME => Ok(text.as_str().to_owned()),
            Some(Ok(Message::Text(text))) => Err(too_large(text.len())),
            Some(Ok(Message::Binary(bytes))) => Err(too_large(bytes.len())),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Err(Error::Capacity(_))) => Err(too_large(limits::AUTH_FRAME)),
            Some(Err(Error::Io(_))) if allowance.is_used_up() => Err(too_large(STRANGER_BYTES)),
            Some(Err(Error::Utf8(_) | Error::Protocol(_))) => Err(Rejected::Failed {
                reason: Reason::NotAuth,
                bytes: 0,
            }),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Rejected::Gone),
        };
    }
}

/// Record and delay a rejection, say why, and answer how to part.
pub(crate) async fn reject<S>(
    socket: &mut Socket<S>,
    rejected: Rejected,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Option<Farewell>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (message, code) = match rejected {
        Rejected::Gone => return None,
        Rejected::Failed { reason, bytes } => {
            shared.fail(peer, reason, bytes).await;
            match reason {
                Reason::TooLarge => (None, 1009),
                Reason::Timeout => (Some("Authentication timeout"), 1008),
                Reason::NotAuth => (Some("First message must be auth"), 1008),
                Reason::Invalid | Reason::Role | Reason::Host | Reason::Origin | Reason::PeerUid => {
                    (Some("Invalid cookie"), 1008)
                }
            }
        }
        Rejected::Protocol => (Some("Protocol not supported"), 1002),
        Rejected::TooMany => (Some("Too many connections"), 1013),
    };
    if let Some(message) = message {
        let mut error = json!({"type": "auth_error", "message": message});
        if code == 1002 {
            error["supported"] = json!([PROTOCOL]);
        }
        let said = socket.send(Message::text(error.to_string()));
        drop(timeout(STRANGER_PARTING, said).await);
    }
    Some(Farewell {
        code,
        reason: String::new(),
    })
}
