//! The part of `mcp --check` that looks at `/mcp` as a stranger and as a client would.

use beamtalk_client::Place;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(5);
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Where a running workspace serves `/mcp`, if it does.
pub(super) fn served(place: &Place) -> Option<SocketAddr> {
    let address = place.running().ok()??.local_address();
    let cookie = place.require_directory().ok()?.cookie().ok()??;
    let answered = status(address, &address.to_string(), None, cookie.expose());
    (answered == Some(200)).then_some(address)
}

/// What is found there; `None` where no workspace runs or the route is off.
pub(super) fn look(place: &Place) -> Option<Result<String, String>> {
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
    Some(match answered {
        Some(200) => Ok(format!(
            "http://{own}/mcp; foreign hosts, origins and wrong tokens are refused"
        )),
        other => Err(format!("a list was answered {other:?}")),
    })
}

fn status(address: SocketAddr, host: &str, origin: Option<&str>, secret: &str) -> Option<u16> {
    let mut stream = TcpStream::connect_timeout(&address, TIME).ok()?;
    stream.set_read_timeout(Some(TIME)).ok()?;
    let origin = origin.map_or_else(String::new, |origin| format!("Origin: {origin}\r\n"));
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}Authorization: Bearer {secret}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{LIST}",
        LIST.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    let mut start = [0; 12];
    stream.read_exact(&mut start).ok()?;
    std::str::from_utf8(&start).ok()?.get(9..)?.parse().ok()
}
