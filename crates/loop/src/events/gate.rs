//! The gate of the event server: every check a request has to pass, in order, as plain values.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use beamtalk_http::{Limits, bearer, is_host_allowed, is_json, is_own_site, is_same};
use beamtalk_storage::{StorageError, random_hex};

use crate::config::Config;

/// What every listener of a loop allows beside its number of connections.
pub(crate) const LIMITS: Limits = Limits {
    strangers: 64,
    admitted: 32,
    head_bytes: 8 << 10,
    head_time: Duration::from_secs(2),
    send_time: Duration::from_secs(5),
    idle_time: Duration::from_secs(15),
};

/// The longest body of a post, in bytes.
pub(crate) const BODY_LIMIT: usize = 65_536;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    Origin,
    NotFound,
    Method,
    Token,
    Scope,
    Rate,
    MediaType,
    TooLarge,
    Json,
    Shape,
    Pattern,
    Stopping,
    State,
}

impl Rejection {
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Origin | Self::Scope => 403,
            Self::NotFound => 404,
            Self::Method => 405,
            Self::Token => 401,
            Self::Rate => 429,
            Self::MediaType => 415,
            Self::TooLarge => 413,
            Self::Json | Self::Pattern => 400,
            Self::Shape => 422,
            Self::Stopping => 503,
            Self::State => 500,
        }
    }

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Origin => "origin",
            Self::NotFound => "not_found",
            Self::Method => "method",
            Self::Token => "token",
            Self::Scope => "scope",
            Self::Rate => "rate",
            Self::MediaType => "media_type",
            Self::TooLarge => "too_large",
            Self::Json => "json",
            Self::Shape => "shape",
            Self::Pattern => "pattern",
            Self::Stopping => "stopping",
            Self::State => "state",
        }
    }
}

/// What the gate looks at before the body is read. Headers come with all their values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    /// `Host` headers, and the authority of an absolute request target.
    pub(crate) hosts: Vec<&'a [u8]>,
    pub(crate) origins: Vec<&'a [u8]>,
    pub(crate) fetch_sites: Vec<&'a [u8]>,
    pub(crate) authorizations: Vec<&'a [u8]>,
    pub(crate) content_types: Vec<&'a [u8]>,
    pub(crate) content_length: Option<u64>,
}

/// What is known of a request, whatever becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The declared event it names.
    pub(crate) event: Option<String>,
    /// Whose token it bears: `run`, `process NAME`, `hook NAME`, or `-`.
    pub(crate) by: String,
}

/// A secret: 64 hex digits. It prints itself redacted.
#[derive(Clone)]
pub(crate) struct Token(String);

impl Token {
    fn fresh() -> Result<Self, StorageError> {
        random_hex::<32>().map(Self)
    }

    /// The secret itself, for the environment of the child that may know it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    fn is(&self, given: &[u8]) -> bool {
        is_same(&self.0, given)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Token(redacted)")
    }
}

#[derive(Debug)]
struct Scoped {
    token: Token,
    by: String,
    events: BTreeSet<String>,
}

/// A token bucket: `rate` a second, twice that at once.
#[derive(Debug)]
struct Bucket {
    rate: f64,
    left: f64,
    filled: Option<Instant>,
}

impl Bucket {
    fn new(rate: u64) -> Self {
        let rate = rate as f64;
        Self {
            rate,
            left: rate * 2.0,
            filled: None,
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let since = self
            .filled
            .map_or(0.0, |last| now.saturating_duration_since(last).as_secs_f64());
        self.left = (self.left + since * self.rate).min(self.rate * 2.0);
        self.filled = Some(now);
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

#[derive(Debug)]
pub(crate) struct Gate {
    run: Token,
    scoped: Vec<Scoped>,
    buckets: BTreeMap<String, Bucket>,
    allow_origins: Vec<String>,
}

impl Gate {
    pub(crate) fn new(config: &Config) -> Result<Self, StorageError> {
        let buckets = config
            .event
            .iter()
            .map(|(name, event)| (name.clone(), Bucket::new(event.max_per_second)));
        Ok(Self {
            run: Token::fresh()?,
            scoped: Vec::new(),
            buckets: buckets.collect(),
            allow_origins: config.event_server.allow_origins.clone(),
        })
    }

    /// Go on by another config; the tokens stay.
    pub(crate) fn reconfigure(&mut self, config: &Config) {
        self.buckets.retain(|name, _| config.event.contains_key(name));
        for (name, event) in &config.event {
            let rate = event.max_per_second as f64;
            let bucket = self
                .buckets
                .entry(name.clone())
                .or_insert_with(|| Bucket::new(event.max_per_second));
            bucket.rate = rate;
        }
        self.allow_origins.clone_from(&config.event_server.allow_origins);
    }

    /// The token of the run, good for every event.
    pub(crate) fn run_token(&self) -> Token {
        self.run.clone()
    }

    /// A token of its own for one child.
    pub(crate) fn issue(&mut self, by: String, events: &[String]) -> Result<Token, StorageError> {
        let token = Token::fresh()?;
        let events = events.iter().cloned().collect();
        self.scoped.push(Scoped {
            token: token.clone(),
            by,
            events,
        });
        Ok(token)
    }

    /// The child is gone, and its token with it.
    pub(crate) fn revoke(&mut self, token: &Token) {
        self.scoped.retain(|scoped| scoped.token.0 != token.0);
    }

    pub(crate) fn is_declared(&self, event: &str) -> bool {
        self.buckets.contains_key(event)
    }

    /// Whether one more post to the event fits its rate.
    pub(crate) fn take(&mut self, event: &str, now: Instant) -> bool {
        self.buckets.get_mut(event).is_some_and(|bucket| bucket.take(now))
    }

    /// Checks 1 to 9, as far as they need no body. Gives the declared event and its caller.
    pub(crate) fn admit(
        &mut self,
        head: &Head<'_>,
        local: SocketAddr,
        now: Instant,
    ) -> Result<Caller, (Rejection, Caller)> {
        let named = event_in(head.path);
        let declared = named.clone().filter(|name| self.is_declared(name));
        let holder = self.holder(head);
        let by = holder.as_ref().map_or("-", |(by, _)| by.as_str()).to_owned();
        let caller = Caller { event: declared, by };
        let checked = self.check(head, local, now, named.is_some(), caller.event.as_deref(), holder);
        match checked {
            Ok(()) => Ok(caller),
            Err(rejection) => Err((rejection, caller)),
        }
    }

    fn check(
        &mut self,
        head: &Head<'_>,
        local: SocketAddr,
        now: Instant,
        is_event_path: bool,
        event: Option<&str>,
        holder: Option<(String, Option<BTreeSet<String>>)>,
    ) -> Result<(), Rejection> {
        if !is_host_allowed(&head.hosts, local) || !self.is_page_allowed(head) {
            return Err(Rejection::Origin);
        }
        if !is_event_path {
            return Err(Rejection::NotFound);
        }
        if head.method != "POST" {
            return Err(Rejection::Method);
        }
        let (_, scope) = holder.ok_or(Rejection::Token)?;
        let event = event.ok_or(Rejection::NotFound)?;
        if scope.is_some_and(|events| !events.contains(event)) {
            return Err(Rejection::Scope);
        }
        if !self.take(event, now) {
            return Err(Rejection::Rate);
        }
        if !is_json(&head.content_types) {
            return Err(Rejection::MediaType);
        }
        if head
            .content_length
            .is_some_and(|length| length > BODY_LIMIT as u64)
        {
            return Err(Rejection::TooLarge);
        }
        Ok(())
    }

    /// A request that shows it comes from a web page needs a listed origin, and no other site.
    fn is_page_allowed(&self, head: &Head<'_>) -> bool {
        let listed = |origin: &&[u8]| {
            self.allow_origins
                .iter()
                .any(|listed| listed.as_bytes() == *origin)
        };
        head.origins.iter().all(listed) && is_own_site(&head.fetch_sites)
    }

    /// Who bears the token, and for which events; none of them means all.
    fn holder(&self, head: &Head<'_>) -> Option<(String, Option<BTreeSet<String>>)> {
        let given = bearer(&head.authorizations)?;
        let mut found = None;
        if self.run.is(given) {
            found = Some(("run".to_owned(), None));
        }
        // Every token is compared, so the time taken tells nothing about which one was close.
        for scoped in &self.scoped {
            if scoped.token.is(given) {
                found = Some((scoped.by.clone(), Some(scoped.events.clone())));
            }
        }
        found
    }
}

/// Checks 10 and 11: the value in a body.
pub(crate) fn value_in(body: &[u8]) -> Result<String, Rejection> {
    let parsed: serde_json::Value = serde_json::from_slice(body).map_err(|_| Rejection::Json)?;
    match parsed {
        serde_json::Value::Object(mut members) => match members.remove("value") {
            Some(serde_json::Value::String(value)) => Ok(value),
            _ => Err(Rejection::Shape),
        },
        _ => Err(Rejection::Shape),
    }
}

/// Read bytes as the head and the body of a post, as the listener does; for tests with random bytes.
#[doc(hidden)]
pub fn read_strange_post(bytes: &[u8]) {
    thread_local! {
        static GATE: std::cell::RefCell<Option<Gate>> = const { std::cell::RefCell::new(None) };
    }
    let local = SocketAddr::from(([127, 0, 0, 1], 4000));
    let text = String::from_utf8_lossy(bytes);
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let (method, path) = first.trim_end().split_once(' ').unwrap_or((first, "/"));
    let values = |name: &str| -> Vec<&[u8]> {
        let pairs = rest.lines().filter_map(|line| line.split_once(':'));
        let named = pairs.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim().as_bytes()).collect()
    };
    let head = Head {
        method,
        path,
        hosts: values("host"),
        origins: values("origin"),
        fetch_sites: values("sec-fetch-site"),
        authorizations: values("authorization"),
        content_types: values("content-type"),
        content_length: None,
    };
    GATE.with_borrow_mut(|gate| {
        if gate.is_none() {
            *gate = crate::config::check(
                std::path::Path::new("/strange/devloop.toml"),
                "watch.w.paths = [\"go\"]\nworkflow.w.steps = [{ action = \"notify_reload\" }]\nevent.a = { state_key = \"a\", workflow = \"w\" }",
                crate::config::RemoteBind::Refuse,
            )
            .config
            .and_then(|config| Gate::new(&config).ok());
        }
        let gate = gate.as_mut().expect("the config is good and the system has randomness");
        let admitted = gate.admit(&head, local, Instant::now());
        assert!(admitted.is_err(), "nobody knows the token");
    });
    drop(value_in(rest.as_bytes()));
}

/// The event a path names, percent-decoded once.
fn event_in(path: &str) -> Option<String> {
    let name = path
        .strip_prefix("/events/")
        .filter(|name| !name.is_empty() && !name.contains('/'))?;
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'%' {
            let (digits, after) = rest.split_at_checked(2)?;
            let digits = std::str::from_utf8(digits)
                .ok()
                .filter(|text| !text.starts_with('+'))?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// Counts failed authentications, so that they make one warning in ten seconds.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    since: Option<Instant>,
    count: u64,
}

impl Failures {
    pub(crate) const WINDOW: Duration = Duration::from_secs(10);

    /// One more failed; true when it is the first of a window and a line is due at its end.
    pub(crate) fn note(&mut self, now: Instant) -> bool {
        self.count += 1;
        if self
            .since
            .is_some_and(|since| now.saturating_duration_since(since) < Self::WINDOW)
        {
            return false;
        }
        self.since = Some(now);
        true
    }

    /// How many have failed since the last line.
    pub(crate) fn take(&mut self) -> u64 {
        std::mem::take(&mut self.count)
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
