//! The part of `mcp --check` that looks at `/mcp` as a stranger and as a client would.

use beamtalk_client::Place;
use beamtalk_mcp::Settings;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(5);

/// Where a running workspace serves `/mcp`, if it does.
pub(super) fn served(place: &Place) -> Option<SocketAddr> {
    let address = place.running().ok()??.local_address();
    let cookie = place.require_directory().ok()?.cookie().ok()??;
    let answered = status(address, &address.to_string(), None, cookie.expose());
    (answered == Some(200)).then_some(address)
}

/// What is found there.
pub(super) struct Found {
    pub(super) address: SocketAddr,
    /// What holds for the person, by the settings that the workspace read when it started.
    pub(super) settings: Value,
}

/// What is found there; `None` where no workspace runs or the route is off.
pub(super) fn look(place: &Place) -> Option<Result<Found, String>> {
    let address = place.running().ok()??.local_address();
    let cookie = place.require_directory().ok()?.cookie().ok()??;
    let own = address.to_string();
    let ask = |host: &str, origin: Option<&str>, secret: &str| status(address, host, origin, secret);
    let answered = ask(&own, None, cookie.expose());
    if answered == Some(404) {
        return None;
    }
    let strangers = [
        ("a foreign Host", ask("evil.example", None, cookie.expose()), 403),
        (
            "a foreign Origin",
            ask(&own, Some("http://evil.example"), cookie.expose()),
            403,
        ),
        ("a wrong token", ask(&own, None, "btk_wrong"), 401),
    ];
    for (what, found, wanted) in strangers {
        if found != Some(wanted) {
            return Some(Err(format!("{what} was answered {found:?}, not {wanted}")));
        }
    }
    if answered != Some(200) {
        return Some(Err(format!("a list was answered {answered:?}")));
    }
    let settings = settings(address, cookie.expose());
    let found = settings.map(|settings| Found { address, settings });
    Some(found.ok_or_else(|| "'server/discover' was not answered".to_owned()))
}

fn status(address: SocketAddr, host: &str, origin: Option<&str>, secret: &str) -> Option<u16> {
    let mut stream = sent(address, (host, origin, secret), "tools/list")?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).ok()?;
    std::str::from_utf8(&start).ok()?.get(9..)?.parse().ok()
}

/// What holds there, which no setting can keep from a client.
fn settings(address: SocketAddr, secret: &str) -> Option<Value> {
    let mut stream = sent(address, (&address.to_string(), None, secret), "server/discover")?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (_, body) = text.split_once("\r\n\r\n")?;
    let body = body.get(body.find('{')?..=body.rfind('}')?)?;
    let answer: Value = serde_json::from_str(body).ok()?;
    Some(answer.get("result")?["_meta"][Settings::KEY].clone())
}

fn sent(
    address: SocketAddr,
    (host, origin, secret): (&str, Option<&str>, &str),
    method: &str,
) -> Option<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, TIME).ok()?;
    stream.set_read_timeout(Some(TIME)).ok()?;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}}).to_string();
    let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    Some(stream)
}
