//! Who may come in: the host meant, the page that asks, and a cookie or token.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use beamtalk_http::{bearer, cookies, is_host_allowed, is_own_site, is_same};

/// What a decision needs to know of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Head<'a> {
    /// Every `Host` header, and the authority of the target if it has one.
    pub(super) hosts: Vec<&'a [u8]>,
    pub(super) origins: Vec<&'a [u8]>,
    pub(super) fetch_sites: Vec<&'a [u8]>,
    pub(super) authorizations: Vec<&'a [u8]>,
    pub(super) cookies: Vec<&'a [u8]>,
}

/// The secrets of one run and the port it listens on.
pub(super) struct Gate {
    port: u16,
    /// The token of the printed address; gone once it was exchanged.
    token: Mutex<Option<String>>,
    cookie: String,
}

impl Gate {
    pub(super) fn new(port: u16, token: String, cookie: String) -> Self {
        Gate {
            port,
            token: Mutex::new(Some(token)),
            cookie,
        }
    }

    /// Browsers keep one jar for all ports of a host.
    pub(super) fn cookie_name(&self) -> String {
        format!("beamtalk_agents_{}", self.port)
    }

    /// The request means this server, and no other page asks for it.
    pub(super) fn is_for_us(&self, head: &Head<'_>) -> bool {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let own_origin = |origin: &&[u8]| {
            origin
                .strip_prefix(b"http://")
                .is_some_and(|host| is_host_allowed(&[host], local))
        };
        is_host_allowed(&head.hosts, local)
            && head.origins.iter().all(own_origin)
            && is_own_site(&head.fetch_sites)
    }

    /// The caller has the cookie, or the token while it is good.
    pub(super) fn is_known(&self, head: &Head<'_>) -> bool {
        let token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(token), Some(given)) = (token.as_ref(), bearer(&head.authorizations))
            && is_same(token, given)
        {
            return true;
        }
        cookies(&head.cookies, &self.cookie_name()).any(|given| is_same(&self.cookie, given))
    }

    /// Exchange the token for the cookie to set; it works once.
    pub(super) fn exchange(&self, head: &Head<'_>) -> Option<String> {
        let mut token = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let good = matches!((token.as_ref(), bearer(&head.authorizations)), (Some(token), Some(given)) if is_same(token, given));
        if !good {
            return None;
        }
        *token = None;
        Some(format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/",
            self.cookie_name(),
            self.cookie
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Head};

    fn gate() -> Gate {
        Gate::new(4242, "t".repeat(64), "c".repeat(64))
    }

    fn head<'a>(host: &'a str, origin: Option<&'a str>) -> Head<'a> {
        Head {
            hosts: vec![host.as_bytes()],
            origins: origin.iter().map(|origin| origin.as_bytes()).collect(),
            ..Head::default()
        }
    }

    #[test]
    fn only_the_two_names_of_this_port_are_meant() {
        for host in ["127.0.0.1:4242", "localhost:4242", "LOCALHOST:4242"] {
            assert!(gate().is_for_us(&head(host, None)), "{host}");
        }
        for host in [
            "",
            "127.0.0.1",
            "127.0.0.1:4243",
            "localhost",
            "evil.example:4242",
            "127.0.0.1:4242.evil.example",
            "[::1]:4242",
            "0.0.0.0:4242",
            "user@127.0.0.1:4242",
        ] {
            assert!(!gate().is_for_us(&head(host, None)), "{host}");
        }
        assert!(!gate().is_for_us(&Head::default()));
        let mut two = head("127.0.0.1:4242", None);
        two.hosts.push(b"evil.example");
        assert!(!gate().is_for_us(&two));
    }

    #[test]
    fn other_pages_are_turned_away() {
        for origin in [
            "null",
            "https://127.0.0.1:4242",
            "http://evil.example",
            "http://127.0.0.1:4243",
            "http://127.0.0.1",
            "http://localhost:4242.evil.example",
        ] {
            assert!(
                !gate().is_for_us(&head("127.0.0.1:4242", Some(origin))),
                "{origin}"
            );
        }
        assert!(gate().is_for_us(&head("127.0.0.1:4242", Some("http://127.0.0.1:4242"))));
        let mut other_port = head("127.0.0.1:4242", None);
        other_port.fetch_sites = vec![b"same-site"];
        assert!(!gate().is_for_us(&other_port));
    }

    #[test]
    fn the_token_is_exchanged_once() {
        let gate = gate();
        let bearer = format!("Bearer {}", "t".repeat(64));
        let with_token = Head {
            authorizations: vec![bearer.as_bytes()],
            ..Head::default()
        };
        assert!(gate.is_known(&with_token));
        let cookie = gate.exchange(&with_token).unwrap();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"));
        assert!(!gate.is_known(&with_token) && gate.exchange(&with_token).is_none());
        let pair = format!("a=b; {}", cookie.split(';').next().unwrap());
        let with_cookie = Head {
            cookies: vec![pair.as_bytes()],
            ..Head::default()
        };
        assert!(gate.is_known(&with_cookie));
        let longer = format!("{pair}x");
        let wrong = Head {
            cookies: vec![longer.as_bytes()],
            ..Head::default()
        };
        assert!(!gate.is_known(&wrong) && !gate.is_known(&Head::default()));
    }
}
