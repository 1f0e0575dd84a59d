//! E18 to E20: browser reload, events, scoped tokens, and everything that must be refused.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{PATIENCE, Place, exchange, holds_for, post, split_url, touch, variable, wait_for};

/// An open reload stream and what it has received.
struct Listener {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Listener {
    fn connect(url: &str) -> Self {
        let (address, path) = split_url(url);
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
            .unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut listener = Self {
            stream,
            received: Vec::new(),
        };
        wait_for("the head", || listener.text().contains("\r\n\r\n").then_some(()));
        listener
    }

    fn text(&mut self) -> String {
        let mut bytes = [0; 4096];
        if let Ok(count) = self.stream.read(&mut bytes) {
            self.received.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&self.received).into_owned()
    }

    /// The events received, with the framing of the transfer removed.
    fn events(&mut self) -> String {
        let text = self.text();
        let body = text.split_once("\r\n\r\n").unwrap().1.to_owned();
        let mut events = String::new();
        let mut rest = body.as_str();
        while let Some((size, after)) = rest.split_once("\r\n") {
            let Ok(size) = usize::from_str_radix(size, 16) else {
                break;
            };
            events.push_str(after.get(..size).unwrap_or_default());
            rest = after.get(size + 2..).unwrap_or_default();
        }
        events
    }
}

#[test]
fn e18_browsers_are_told_to_reload() {
    let place = Place::new(
        r#"
watch.css.paths = ["css/"]
process.page.command = ["sh", "-c", "echo $DEVLOOP_BROWSER_EVENTS_URL > url; sleep 1000"]
workflow.css = { steps = [{ action = "log", message = "css" }], triggers = ["reload"] }
workflow.reload.steps = [{ action = "notify_reload" }]
"#,
    );
    let run = place.start();
    place.wait_lines("url", 1);
    let url = place.read("url");
    assert!(url.trim().ends_with("/browser-events"));
    let mut listeners = [Listener::connect(&url), Listener::connect(&url)];
    let head = listeners[0].text().to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 200"));
    assert!(head.contains("content-type: text/event-stream"));
    assert!(head.contains("cache-control: no-cache"));
    assert!(head.contains("access-control-allow-origin: *"));
    place.write("css/a", "1");
    for listener in &mut listeners {
        wait_for("a reload", || {
            (listener.events() == "data: reload\n\n").then_some(())
        });
    }
    let (address, path) = split_url(&url);
    let get = |path: &str, host: &str| {
        exchange(
            &address,
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes(),
        )
        .status
    };
    assert_eq!(get("/", &address), 404);
    assert_eq!(get(&path, "evil.example"), 403);
    assert_eq!(post(&url, "x", "", &[]).status, 405);
    let mut late = Listener::connect(&url);
    let began = Instant::now();
    wait_for("a sign of life", || (!late.events().is_empty()).then_some(()));
    assert_eq!(late.events(), ":\n\n");
    assert!(began.elapsed() > Duration::from_secs(14));
    run.stop();
    // The end of the loop ends the streams.
    wait_for("the end of the stream", || {
        let mut bytes = [0; 64];
        matches!(late.stream.read(&mut bytes), Ok(0)).then_some(())
    });
}

#[test]
fn no_more_than_64_streams_are_open() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"notify_reload\" }]\n\
         process.page.command = [\"sh\", \"-c\", \"echo $DEVLOOP_BROWSER_EVENTS_URL > url; sleep 1000\"]\n",
    );
    let run = place.start();
    place.wait_lines("url", 1);
    let url = place.read("url");
    let mut open: Vec<Listener> = (0..64).map(|_| Listener::connect(&url)).collect();
    let (address, path) = split_url(&url);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert_eq!(exchange(&address, request.as_bytes()).status, 503);
    // A place becomes free when a listener goes.
    drop(open.pop());
    wait_for("a free place", || {
        Listener::connect(&url)
            .text()
            .starts_with("HTTP/1.1 200")
            .then_some(())
    });
    run.stop();
}

const EVENTS: &str = r#"
[watch.go]
paths = ["go"]
[process.web]
command = ["sh", "-c", "env | grep ^DEVLOOP_EVENT > vars.tmp; mv vars.tmp vars; sleep 1000"]
[event.page]
state_key = "page"
workflow = "publish"
pattern = "^/[a-z]*$"
[workflow.publish]
steps = [{ action = "log", message = "page {{page}}" }]
[workflow.go]
steps = [{ action = "log", message = "go" }]
"#;

/// Address and token of the events of a place.
fn access(place: &Place, file: &str, name: &str) -> (String, String) {
    place.wait_lines(file, 2);
    let vars = place.read(file);
    (
        variable(&vars, name).unwrap(),
        variable(&vars, "DEVLOOP_EVENTS_TOKEN").unwrap(),
    )
}

#[test]
fn e19_events_are_narrow() {
    let place = Place::new(EVENTS);
    let run = place.start();
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    assert!(
        token.len() == 64
            && token
                .bytes()
                .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
    );
    let base = variable(&place.read("vars"), "DEVLOOP_EVENTS_BASE_URL").unwrap();
    assert_eq!(url, format!("{base}/events/page"));
    assert!(
        run.log()
            .contains(&format!("listening for external events at {base}"))
    );

    let first = post(&url, &token, r#"{"value":"/a"}"#, &[]);
    assert_eq!(first.status, 204);
    assert!(first.head.contains("loop-changed: true"));
    assert!(!first.head.contains("access-control"));
    run.wait_count("page /a", 1);
    let again = post(&url, &token, r#"{"value":"/a"}"#, &[]);
    assert_eq!(again.status, 204);
    assert!(again.head.contains("loop-changed: false"));

    let large = format!("{{\"value\":\"/{}\"}}", "a".repeat(70_000));
    let other = format!("{base}/events/other");
    let (address, _) = split_url(&base);
    let body = r#"{"value":"/b"}"#;
    let by_header = [
        ("Content-Type", "text/plain", 415, "media_type"),
        ("Content-Type", "", 415, "media_type"),
        ("Authorization", "", 401, "token"),
        (":method", "GET", 405, "method"),
        (":method", "OPTIONS", 405, "method"),
        ("Origin", "http://localhost:3000", 403, "origin"),
        ("Host", "rebind.example", 403, "origin"),
        ("Sec-Fetch-Site", "cross-site", 403, "origin"),
        ("Host", "", 403, "origin"),
    ];
    let by_header = by_header.map(|(name, value, status, kind)| {
        (
            url.as_str(),
            token.as_str(),
            body,
            vec![(name, value)],
            status,
            kind,
        )
    });
    let refused = [
        (url.as_str(), token.as_str(), r#"{"value":"/A"}"#, 400, "pattern"),
        (&url, &token, r#"{"value":1}"#, 422, "shape"),
        (&url, &token, "[]", 422, "shape"),
        (&url, &token, "{", 400, "json"),
        (&url, &token, &large, 413, "too_large"),
        (&url, &"0".repeat(64), body, 401, "token"),
        (&url, &token[..63], body, 401, "token"),
        (&other, "wrong", body, 401, "token"),
        (&other, &token, body, 404, "not_found"),
        (&base, &token, body, 404, "not_found"),
    ];
    let refused =
        refused.map(|(url, token, body, status, kind)| (url, token, body, Vec::new(), status, kind));
    for (url, token, body, headers, status, kind) in refused.into_iter().chain(by_header) {
        // Each event takes 20 a second; these are more than the burst allows at once.
        let reply = wait_for("a reply within the rate", || {
            let reply = post(url, token, body, &headers);
            (reply.status != 429).then_some(reply)
        });
        let what = format!("{} {headers:?}", &body[..body.len().min(40)]);
        assert_eq!(reply.status, status, "{what}: {}", reply.head);
        assert_eq!(reply.body, format!("{{\"error\":\"{kind}\"}}"), "{what}");
        assert_eq!(place.state()["page"], "/a", "{what}");
    }
    // Chunked bodies are bounded too, though they do not say how long they are.
    let chunk = format!("8000\r\n{}\r\n", "a".repeat(0x8000));
    let chunked = format!(
        "POST /events/page HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunk.repeat(3)
    );
    assert_eq!(
        wait_for("room", || Some(exchange(&address, chunked.as_bytes()).status)
            .filter(|status| *status != 429)),
        413
    );
    let long = format!(
        "POST /events/page HTTP/1.1\r\nHost: {address}\r\nX: {}\r\n\r\n",
        "x".repeat(10_000)
    );
    assert_eq!(exchange(&address, long.as_bytes()).status, 431);
    assert_eq!(run.count("page /a"), 1);

    let trigger = |arguments: &[&str]| {
        let mut all = vec!["trigger"];
        all.extend_from_slice(arguments);
        place.cli(&all).status.code()
    };
    // After a pause the bucket is full again.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(trigger(&["page", "/cli", "--wait"]), Some(0));
    run.wait_count("page /cli", 1);
    assert_eq!(trigger(&["page", "BAD"]), Some(1));
    assert_eq!(trigger(&["publish", "x"]), Some(1));
    run.stop();
    assert!(!place.read(".devloop/events.log").contains(&token));

    std::fs::remove_file(place.path("vars")).unwrap();
    let second = place.start();
    assert_ne!(access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL").1, token);
    second.stop();
}

#[test]
fn e19_a_flood_is_limited_and_the_last_accepted_value_stands() {
    let place = Place::new(EVENTS);
    let run = place.start();
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    let mut statuses = BTreeSet::new();
    let mut last = String::new();
    for index in 0..100u8 {
        let name = format!(
            "/{}{}",
            char::from(b'a' + index / 26),
            char::from(b'a' + index % 26)
        );
        let reply = post(&url, &token, &format!("{{\"value\":\"{name}\"}}"), &[]);
        statuses.insert(reply.status);
        if reply.status == 204 {
            last = name;
        } else {
            assert!(reply.head.contains("retry-after: 1"));
        }
    }
    assert_eq!(statuses, BTreeSet::from([204, 429]));
    assert_eq!(place.state()["page"], json!(last));
    run.wait_log(&format!("page {last}\n"));
    let logged: Vec<String> = run
        .said()
        .into_iter()
        .filter(|line| line.starts_with("page "))
        .collect();
    assert_eq!(logged.last(), Some(&format!("page {last}")));
    run.stop();
}

#[test]
fn e20_scoped_tokens_and_the_audit() {
    let config = r#"
watch.go.paths = ["go"]
process.narrow = { command = ["sh", "-c", "env | grep ^DEVLOOP_EVENT > narrow.tmp; mv narrow.tmp narrow; sleep 1000"], events = ["b"] }
process.none = { command = ["sh", "-c", "env | grep -c ^DEVLOOP_EVENT > none; sleep 1000"], events = [] }
event.a = { state_key = "a", workflow = "go" }
event.b = { state_key = "b", workflow = "go" }
workflow.go.steps = [{ action = "restart_process", process = "narrow" }]
"#;
    let place = Place::new(config);
    let run = place.start();
    place.wait_lines("none", 1);
    assert_eq!(place.read("none").trim(), "0");
    let (url, token) = access(&place, "narrow", "DEVLOOP_EVENT_B_URL");
    assert!(!place.read("narrow").contains("DEVLOOP_EVENT_A_URL"));
    let url_a = url.replace("/events/b", "/events/a");
    assert_eq!(post(&url_a, &token, r#"{"value":"secret-1"}"#, &[]).status, 403);
    std::fs::remove_file(place.path("narrow")).unwrap();
    assert_eq!(post(&url, &token, r#"{"value":"secret-2"}"#, &[]).status, 204);
    let fresh = access(&place, "narrow", "DEVLOOP_EVENT_B_URL").1;
    assert_ne!(fresh, token);
    assert_eq!(post(&url, &token, r#"{"value":"secret-3"}"#, &[]).status, 401);
    let audit = place.read(".devloop/events.log");
    let lines: Vec<serde_json::Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "{audit}");
    assert_eq!(
        (&lines[0]["by"], &lines[0]["status"]),
        (&json!("process narrow"), &json!(403))
    );
    assert_eq!(
        (&lines[1]["by"], &lines[1]["status"]),
        (&json!("process narrow"), &json!(204))
    );
    assert_eq!(lines[1]["workflow"], "go");
    assert_eq!(lines[2]["status"], 401);
    assert!(!audit.contains("secret") && !audit.contains(&token));
    run.stop();
    place.write("devloop.toml", &config.replace("[\"b\"]", "[\"zz\"]"));
    let output = place.cli(&["validate"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("error: invalid process 'narrow': events references missing event 'zz'"),
        "{text}"
    );
}

#[test]
fn tokens_are_shown_nowhere() {
    let place = Place::new(EVENTS);
    let mut run = place.begin(&["--log", "trace"]);
    run.wait_log("loop ready");
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    assert_eq!(post(&url, &token, r#"{"value":"/x"}"#, &[]).status, 204);
    assert_eq!(post(&url, "wrong", r#"{"value":"/y"}"#, &[]).status, 401);
    let mut shown = String::from_utf8(place.cli(&["status", "--json"]).stdout).unwrap();
    shown.push_str(&String::from_utf8(place.cli(&["state"]).stdout).unwrap());
    shown.push_str(&place.read(".devloop/state.json"));
    shown.push_str(&place.read(".devloop/events.log"));
    run.signal(rustix::process::Signal::TERM);
    run.wait();
    shown.push_str(&run.log());
    shown.push_str(&run.out());
    assert!(shown.contains("page"));
    assert!(!shown.contains(&token));
}

#[test]
fn slow_and_idle_clients_are_let_go() {
    let place = Place::new(EVENTS);
    let run = place.start();
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    let (address, _) = split_url(&url);
    // Two seconds for a head, five for a whole request.
    let head = format!("POST /events/page HTTP/1.1\r\nHost: {address}\r\n");
    let whole = format!(
        "{head}Authorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{"
    );
    let cases = [(head, 1..5), (whole, 4..14)];
    let waiting = cases.map(|(bytes, seconds)| {
        let address = address.clone();
        std::thread::spawn(move || {
            let mut slow = TcpStream::connect(&address).unwrap();
            slow.set_read_timeout(Some(PATIENCE)).unwrap();
            slow.write_all(bytes.as_bytes()).unwrap();
            let began = Instant::now();
            drop(slow.read_to_end(&mut Vec::new()));
            let took = began.elapsed().as_secs();
            assert!(seconds.contains(&took), "{took} s for {bytes:?}");
        })
    });
    for one in waiting {
        one.join().unwrap();
    }
    run.stop();
}

#[test]
fn an_event_during_startup_runs_its_workflow_afterwards() {
    let place = Place::new(
        r#"
startup_workflows = ["boot"]
watch.go.paths = ["go"]
process.web.command = ["sh", "-c", "env | grep ^DEVLOOP_EVENT > vars.tmp; mv vars.tmp vars; sleep 1000"]
hook.hold.command = ["sh", "-c", "while ! test -e free; do sleep 0.05; done"]
event.page = { state_key = "page", workflow = "publish" }
workflow.boot.steps = [{ action = "run_hook", hook = "hold" }, { action = "log", message = "boot {{page}}" }]
workflow.publish.steps = [{ action = "log", message = "page {{page}}" }]
workflow.go.steps = [{ action = "log", message = "go" }]
"#,
    );
    let run = place.begin(&[]);
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    assert_eq!(post(&url, &token, r#"{"value":"early"}"#, &[]).status, 204);
    assert_eq!(place.state()["page"], "early");
    touch(&place.path("go"));
    holds_for(Duration::from_millis(400), "startup goes first", || {
        !run.log().contains("page early")
    });
    touch(&place.path("free"));
    run.wait_count("page early", 1);
    run.wait_count("go", 1);
    let said = run.said();
    let at = |text: &str| said.iter().position(|line| line == text).unwrap();
    assert!(at("boot early") < at("loop ready") && at("loop ready") < at("page early"));
    run.stop();
}

/// Strangers that connect and say nothing, or say it slowly, cost the others no time.
#[test]
fn strangers_never_delay_a_good_post() {
    let place = Place::new(EVENTS);
    let run = place.start();
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    let (address, _) = split_url(&url);
    let mut strangers = Vec::new();
    let mut took = Vec::new();
    for round in 0..10 {
        for number in 0..60 {
            let mut stranger = TcpStream::connect(&address).unwrap();
            if number % 2 == 0 {
                // One of the old ones may have been let go already.
                drop(stranger.write_all(b"POST /events/page HTTP/1.1\r\nHost: x\r\nX-Slow: "));
            }
            strangers.push(stranger);
        }
        let began = Instant::now();
        let value = ["/a", "/b"][round % 2];
        assert_eq!(
            post(&url, &token, &format!("{{\"value\":\"{value}\"}}"), &[]).status,
            204
        );
        took.push(began.elapsed());
    }
    took.sort();
    // A stranger is let go after two seconds: nobody waited for that.
    assert!(took[5] < Duration::from_secs(1), "{took:?}");
    drop(strangers);
    run.stop();
}

/// A client that is refused while it still sends sees the answer, and knows that it was the last.
#[test]
fn a_refusal_reaches_a_client_that_is_still_sending() {
    let place = Place::new(EVENTS);
    let run = place.start();
    let (url, token) = access(&place, "vars", "DEVLOOP_EVENT_PAGE_URL");
    let (address, _) = split_url(&url);
    for (token, length, expected) in [("wrong", 60_000, 401), (token.as_str(), 120_000, 413)] {
        let mut client = TcpStream::connect(&address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /events/page HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        client.write_all(head.as_bytes()).unwrap();
        let body = vec![b'x'; 60_000];
        for piece in body.chunks(10_000) {
            client.write_all(piece).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).to_ascii_lowercase();
        assert!(answer.starts_with(&format!("http/1.1 {expected}")), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
    // A refusal of a request that was read to its end leaves the connection as it is.
    let mut client = TcpStream::connect(&address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    for (body, expected) in [("{}", "422"), ("{\"value\":\"/kept\"}", "204")] {
        let request = format!(
            "POST /events/page HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        client.write_all(request.as_bytes()).unwrap();
        let mut bytes = [0; 4096];
        let count = client.read(&mut bytes).unwrap();
        let answer = String::from_utf8_lossy(&bytes[..count]).into_owned();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{answer}");
    }
    run.stop();
}
