//! What a request says, as bytes of strangers. Headers come with all their values, so that no two
//! readers of a request take it for different ones.

use std::net::{IpAddr, SocketAddr};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use subtle::ConstantTimeEq;

/// All values of a header.
pub fn values(headers: &HeaderMap, name: HeaderName) -> Vec<&[u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

/// The hosts a request means: its `Host` headers, and an authority in its target.
pub fn hosts<B>(request: &Request<B>) -> Vec<&[u8]> {
    let mut hosts = values(request.headers(), HOST);
    let authority = request.uri().authority();
    hosts.extend(authority.map(|authority| authority.as_str().as_bytes()));
    hosts
}

/// Whether a request means this listener and not a name that was bent to point here.
pub fn is_host_allowed(hosts: &[&[u8]], local: SocketAddr) -> bool {
    !hosts.is_empty()
        && hosts
            .iter()
            .all(|host| std::str::from_utf8(host).is_ok_and(|host| names(host, local)))
}

fn names(host: &str, local: SocketAddr) -> bool {
    if host == local.to_string() {
        return true;
    }
    if local.ip().is_loopback() && host.eq_ignore_ascii_case(&format!("localhost:{}", local.port())) {
        return true;
    }
    local.ip().is_unspecified()
        && host.parse::<SocketAddr>().is_ok_and(|address| {
            address.port() == local.port() && !matches!(address.ip(), IpAddr::V6(ip) if ip.is_multicast())
        })
}

/// Whether no page of another origin asks. One of another port of this machine is on the same site, and still another.
pub fn is_own_site(fetch_sites: &[&[u8]]) -> bool {
    fetch_sites
        .iter()
        .all(|site| matches!(*site, b"none" | b"same-origin"))
}

/// The bearer token, where exactly one authorization is given.
pub fn bearer<'a>(authorizations: &[&'a [u8]]) -> Option<&'a [u8]> {
    let [authorization] = authorizations else {
        return None;
    };
    let (scheme, token) = authorization.split_at_checked(7)?;
    scheme
        .eq_ignore_ascii_case(b"bearer ")
        .then(|| token.trim_ascii())
}

/// The values of the cookie of this name.
pub fn cookies<'a>(headers: &[&'a [u8]], name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers
        .iter()
        .flat_map(|header| header.split(|byte| *byte == b';'))
        .filter_map(move |pair| {
            pair.trim_ascii()
                .strip_prefix(name.as_bytes())?
                .strip_prefix(b"=")
        })
}

/// Whether a given secret is the known one; the time taken tells nothing but its length.
pub fn is_same(known: &str, given: &[u8]) -> bool {
    known.as_bytes().ct_eq(given).into()
}

/// Whether the body is said to be JSON; no form of another page can say so.
pub fn is_json(content_types: &[&[u8]]) -> bool {
    let [given] = content_types else { return false };
    let Ok(given) = std::str::from_utf8(given) else {
        return false;
    };
    let essence = given
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence == "application/json"
        || essence
            .strip_prefix("application/")
            .and_then(|kind| kind.strip_suffix("+json"))
            .is_some_and(|kind| !kind.is_empty())
}

/// Why there is no body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    TooLarge,
    /// It broke off, or came too slowly.
    Broken,
}

/// The whole body, of at most so many bytes.
pub async fn read_body(body: Incoming, limit: usize) -> Result<Bytes, BodyFault> {
    match Limited::new(body, limit).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(BodyFault::TooLarge),
        Err(_) => Err(BodyFault::Broken),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::{bearer, cookies, is_host_allowed, is_json, is_own_site, is_same};

    #[test]
    fn one_bearer_token_is_read_and_two_are_none() {
        assert_eq!(bearer(&[b"Bearer  abc "]), Some(&b"abc"[..]));
        assert_eq!(bearer(&[b"bearer abc"]), Some(&b"abc"[..]));
        let wrong: [&[&[u8]]; 4] = [&[], &[b"Basic abc"], &[b"Bearer"], &[b"Bearer a", b"Bearer a"]];
        for wrong in wrong {
            assert_eq!(bearer(wrong), None);
        }
    }

    #[test]
    fn cookies_are_found_by_their_whole_name() {
        let headers: [&[u8]; 2] = [b"a=1; ab=2", b"a=3"];
        assert_eq!(cookies(&headers, "a").collect::<Vec<_>>(), [b"1", b"3"]);
        assert!(is_same("1", b"1") && !is_same("1", b"11") && !is_same("1", b""));
    }

    #[test]
    fn only_names_of_this_listener_and_pages_of_its_origin_are_let_through() {
        let local = SocketAddr::from(([127, 0, 0, 1], 4242));
        for host in ["127.0.0.1:4242", "LOCALHOST:4242"] {
            assert!(is_host_allowed(&[host.as_bytes()], local), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "localhost:4243",
            "evil.example:4242",
            "[::1]:4242",
        ] {
            assert!(!is_host_allowed(&[host.as_bytes()], local), "{host}");
        }
        assert!(!is_host_allowed(&[], local));
        assert!(!is_host_allowed(&[b"127.0.0.1:4242", b"evil.example"], local));
        assert!(is_own_site(&[]) && is_own_site(&[b"none", b"same-origin"]));
        assert!(!is_own_site(&[b"same-site"]) && !is_own_site(&[b"none", b"cross-site"]));
    }

    #[test]
    fn json_is_said_once_and_by_its_type() {
        assert!(is_json(&[b"application/json; charset=utf-8"]) && is_json(&[b"Application/x+JSON"]));
        let twice: &[&[u8]] = &[b"application/json", b"text/plain"];
        let wrong: [&[&[u8]]; 4] = [&[], &[b"text/plain"], &[b"application/+json"], twice];
        for wrong in wrong {
            assert!(!is_json(wrong));
        }
    }
}
