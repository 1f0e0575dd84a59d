//! The browser pane: its routes, and everybody it must turn away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use super::support::World;
use serde_json::{Value, json};

/// A running `agents web`, ended with the test.
struct Pane {
    child: Child,
    port: u16,
    token: String,
}

struct Heard {
    status: u16,
    head: String,
    body: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.body))
    }

    fn error(&self) -> (u16, String) {
        (self.status, self.json()["error"].as_str().unwrap().to_owned())
    }
}

impl Pane {
    fn open(world: &World) -> Self {
        let mut child = world
            .command(super::support::BINARY)
            .args(["agents", "web"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let (address, token) = url
            .trim()
            .strip_prefix("http://127.0.0.1:")
            .unwrap()
            .split_once("/#")
            .unwrap();
        let (port, token) = (address.parse().unwrap(), token.to_owned());
        assert_eq!(token.len(), 64);
        Pane { child, port, token }
    }

    /// Send a request as it is and hear the whole answer.
    fn raw(&self, request: &str) -> Heard {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        Heard {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|code| code.parse().ok())
                .unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Heard {
        self.raw(&format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        ))
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// Exchange the token; the header a browser would send from then on.
    fn login(&self) -> String {
        let heard = self.send("POST", "/api/login", &self.bearer(), "");
        assert_eq!(heard.status, 204, "{}", heard.body);
        let line = heard
            .head
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "))
            .unwrap();
        assert!(line.ends_with("; httponly; samesite=strict; path=/"), "{line}");
        format!("Cookie: {}\r\n", line.split(';').next().unwrap())
    }

    fn get(&self, cookie: &str, path: &str) -> Heard {
        self.send("GET", path, cookie, "")
    }

    fn put(&self, cookie: &str, method: &str, path: &str, body: &Value) -> Heard {
        let headers = format!("{cookie}Content-Type: application/json\r\n");
        self.send(method, path, &headers, &body.to_string())
    }

    /// A stream of events, after the given headers.
    fn follow(&self, headers: &str, path: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost:{}\r\n{headers}\r\n",
            self.port
        )
        .unwrap();
        let mut reader = BufReader::new(stream);
        // Past the comment that says that the stream is open.
        next_with(&mut reader, ": open");
        reader
    }
}

/// The next line of a stream that begins like this.
fn next_with(reader: &mut BufReader<TcpStream>, start: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "ended before {start}");
        if line.starts_with(start) {
            return line.trim_end().to_owned();
        }
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_session_is_made_prompted_and_killed_over_http() {
    let world = World::started();
    let pane = Pane::open(&world);
    let cookie = pane.login();
    let made = pane.put(
        &cookie,
        "POST",
        "/api/sessions",
        &json!({"backend": "echo", "cwd": "/tmp", "alias": "demo", "context": "Be\nbrief."}),
    );
    assert_eq!(made.status, 200, "{}", made.body);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    world.check("beamtalk agents wait demo", "idle\n");
    assert_eq!(pane.get(&cookie, "/api/sessions").json()[0]["id"], json!(id));
    assert_eq!(
        pane.get(&cookie, &format!("/api/session/{id}")).json()["alias"],
        json!("demo")
    );
    assert_eq!(pane.get(&cookie, "/api/session/demo/context").body, "Be\nbrief.");
    let cleared = pane.put(&cookie, "PUT", "/api/session/demo/context", &json!({"value": ""}));
    assert_eq!(cleared.json(), json!({"ok": true}));
    let sent = pane.put(
        &cookie,
        "POST",
        "/api/session/demo/prompt",
        &json!({"text": "<script>alert(1)</script>"}),
    );
    assert_eq!(sent.json(), json!({"ok": true}), "{}", sent.status);
    world.check("beamtalk agents wait demo", "idle\n");
    let out = pane.get(&cookie, "/api/session/demo/out");
    assert_eq!(out.body, "echo: <script>alert(1)</script>\n");
    // As text, and nothing a browser would take for a page.
    assert!(
        out.head.contains("content-type: text/plain") && out.head.contains("x-content-type-options: nosniff")
    );
    let renamed = pane.put(
        &cookie,
        "PUT",
        "/api/session/demo/alias",
        &json!({"value": "other"}),
    );
    assert_eq!(renamed.json(), json!({"ok": true}));
    pane.put(
        &cookie,
        "PUT",
        "/api/session/other/role",
        &json!({"value": "tester"}),
    );
    assert_eq!(pane.get(&cookie, "/api/session/other/role").body, "tester\n");
    let stopped = pane.put(
        &cookie,
        "POST",
        "/api/session/other/ctl",
        &json!({"command": "stop"}),
    );
    assert_eq!(stopped.json(), json!({"ok": true}));
    assert_eq!(pane.get(&cookie, "/api/session/other/state").body, "stopped\n");
    let killed = pane.send("DELETE", "/api/session/other", &cookie, "");
    assert_eq!(killed.json(), json!({"ok": true}));
    assert_eq!(pane.get(&cookie, "/api/sessions").json(), json!([]));
    let status = pane.get(&cookie, "/api/daemon/status").json();
    assert_eq!(
        status,
        serde_json::from_str::<Value>(&world.value("beamtalk agents status --json")).unwrap()
    );
}

#[test]
fn errors_carry_the_text_of_the_tree_and_a_status() {
    let world = World::started();
    let pane = Pane::open(&world);
    let cookie = pane.login();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let error = |heard: Heard| heard.error();
    let post = |path: &str, body: Value| pane.put(&cookie, "POST", path, &body);
    assert_eq!(
        error(pane.get(&cookie, "/api/session/nobody")),
        (404, "session not found".to_owned())
    );
    for odd in [
        "/api/session/demo/ctl",
        "/api/session/demo/..",
        "/api/session/demo/in",
        "/api/nothing",
        "/x",
    ] {
        assert_eq!(
            error(pane.get(&cookie, odd)),
            (404, "not found".to_owned()),
            "{odd}"
        );
    }
    assert_eq!(
        error(post("/api/sessions", json!({"backend": "echo", "cwd": "tmp"}))),
        (400, "path is not absolute: tmp".to_owned())
    );
    assert_eq!(
        error(post("/api/sessions", json!({"backend": "none"}))),
        (404, "backend not found".to_owned())
    );
    // A line feed cannot smuggle a second command in.
    let smuggled = post(
        "/api/sessions",
        json!({"backend": "echo", "alias": "x'\nnew echo /tmp alias='y"}),
    );
    assert_eq!(smuggled.error(), (400, "invalid argument: line feed".to_owned()));
    let smuggled = post("/api/session/demo/ctl", json!({"command": "refresh\nkill"}));
    assert_eq!(smuggled.error(), (400, "unknown command".to_owned()));
    world.check("beamtalk 9p read agent/list | wc -l", "1\n");
    assert_eq!(
        error(post("/api/session/demo/prompt", json!({}))),
        (400, "missing field: text".to_owned())
    );
    assert_eq!(
        post("/api/session/demo/prompt", json!({"text": "!sleep 2"})).status,
        200
    );
    assert_eq!(
        error(post("/api/session/demo/prompt", json!({"text": "now"}))),
        (409, "session busy".to_owned())
    );
    let wrong_type = pane.send("POST", "/api/session/demo/ctl", &cookie, "{\"command\":\"kill\"}");
    assert_eq!(wrong_type.status, 400);
    let broken = pane.send(
        "POST",
        "/api/session/demo/ctl",
        &format!("{cookie}Content-Type: application/json\r\n"),
        "{\"command\":",
    );
    assert_eq!(broken.error(), (400, "invalid JSON".to_owned()));
    world.check("beamtalk agents stop >/dev/null", "");
    assert_eq!(pane.get(&cookie, "/api/sessions").status, 503);
    assert_eq!(
        pane.get(&cookie, "/api/daemon/status").json()["running"],
        json!(false)
    );
}

#[test]
fn mail_is_read_answered_and_archived() {
    let world = World::started();
    let pane = Pane::open(&world);
    let cookie = pane.login();
    let shell = world.value("beamtalk agents new shell /tmp --alias worker --wait");
    world.value(
        "beamtalk agents mail send --from worker --to user --type APPROVAL_REQUEST --subject deploy 'may I'",
    );
    assert_eq!(pane.get(&cookie, "/api/inbox/count").json(), json!({"count": 1}));
    let message = pane.get(&cookie, "/api/inbox").json()[0].clone();
    assert_eq!(
        (&message["subject"], &message["from"]),
        (&json!("deploy"), &json!(shell))
    );
    let reply = json!({"id": message["id"], "type": "APPROVAL_RESPONSE", "body": "approved"});
    assert_eq!(
        pane.put(&cookie, "POST", "/api/inbox/reply", &reply).json(),
        json!({"ok": true})
    );
    world.check(
        "beamtalk agents mail inbox worker --json | jq -r '.[0] | .type + \" \" + .subject + \" \" + .body'",
        "APPROVAL_RESPONSE Re: deploy approved\n",
    );
    let archived = pane.put(
        &cookie,
        "POST",
        "/api/inbox/archive",
        &json!({"id": message["id"]}),
    );
    assert_eq!(archived.json(), json!({"ok": true}));
    assert_eq!(pane.get(&cookie, "/api/inbox").json(), json!([]));
    assert_eq!(pane.get(&cookie, "/api/archive").json()[0]["id"], message["id"]);
    for id in ["nothing", "../../audit", "a b"] {
        let refused = pane.put(&cookie, "POST", "/api/inbox/archive", &json!({ "id": id }));
        assert_eq!(refused.error(), (404, "message not found in inbox".to_owned()));
        let reply = json!({"id": id, "type": "QUERY_RESPONSE", "body": "x"});
        let refused = pane.put(&cookie, "POST", "/api/inbox/reply", &reply);
        assert_eq!(refused.error(), (404, "message not found in inbox".to_owned()));
    }
}

#[test]
fn streams_follow_output_and_resume_events() {
    let world = World::started();
    let pane = Pane::open(&world);
    let cookie = pane.login();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let mut output = pane.follow(&cookie, "/api/session/demo/stream");
    let mut events = pane.follow(&cookie, "/api/events");
    world.check("beamtalk agents prompt demo hello --wait", "echo: hello\n");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("echo: hello\r\n") {
        seen.extend(unbase64(&next_with(&mut output, "data: ")[6..]));
    }
    let first = next_with(&mut events, "id: ")[4..].to_owned();
    let event: Value = serde_json::from_str(&next_with(&mut events, "data: ")[6..]).unwrap();
    assert_eq!(
        (event["seq"].to_string(), &event["type"]),
        (first.clone(), &json!("Prompt"))
    );
    drop(events);
    // A browser that comes back goes on after the last event it saw.
    let mut resumed = pane.follow(&format!("{cookie}Last-Event-ID: {first}\r\n"), "/api/events");
    let next: u64 = next_with(&mut resumed, "id: ")[4..].parse().unwrap();
    assert_eq!(next, first.parse::<u64>().unwrap() + 1);
    // The stream of a killed session ends.
    world.check("beamtalk agents kill demo", "");
    next_with(&mut output, "event: end");
    // A browser that goes away takes its connection to the daemon along.
    drop((resumed, output));
    let connections = "ls -l /proc/$(cat $NAMESPACE/anvilsrv.pid)/fd | grep -c socket:";
    let streams: Vec<_> = (0..8).map(|_| pane.follow(&cookie, "/api/events")).collect();
    let with_them: usize = world.value(connections).parse().unwrap();
    assert!(with_them > 8);
    drop(streams);
    world.until(&format!("test $({connections}) -le {}", with_them - 8));
}

fn unbase64(text: &str) -> Vec<u8> {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    for chunk in text.trim_end_matches('=').as_bytes().chunks(4) {
        let word = chunk.iter().fold(0_u32, |word, letter| {
            word << 6 | letters.iter().position(|known| known == letter).unwrap() as u32
        }) << (6 * (4 - chunk.len()));
        bytes.extend_from_slice(&word.to_be_bytes()[1..chunk.len()]);
    }
    bytes
}

#[test]
fn strangers_other_hosts_and_other_pages_are_refused() {
    let world = World::started();
    let pane = Pane::open(&world);
    let port = pane.port;
    let bearer = pane.bearer();
    // Nobody without proof, on any route but the page itself.
    for path in [
        "/api/sessions",
        "/api/daemon/status",
        "/api/events",
        "/api/inbox",
        "/api/session/x/stream",
        "/api/x",
        "/x",
    ] {
        assert_eq!(pane.get("", path).status, 403, "{path}");
        assert_eq!(pane.get("Authorization: Bearer 00\r\n", path).status, 403);
        assert_eq!(
            pane.get(&format!("Cookie: beamtalk_agents_{port}=00\r\n"), path)
                .status,
            403
        );
    }
    assert_eq!(pane.send("POST", "/api/login", "", "").status, 403);
    assert_eq!(pane.get(&bearer, "/api/sessions").status, 200);
    // A name that leads here, by whatever way, is not this server.
    for host in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("[::1]:{port}"),
        String::new(),
    ] {
        for path in ["/", "/app.js", "/api/sessions", "/api/login"] {
            let heard = pane.raw(&format!(
                "GET {path} HTTP/1.1\r\nHost: {host}\r\n{bearer}Connection: close\r\n\r\n"
            ));
            assert_eq!(heard.status, 403, "{host} {path}");
        }
    }
    let two = format!(
        "GET /api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n{bearer}Connection: close\r\n\r\n"
    );
    assert!(matches!(pane.raw(&two).status, 400 | 403));
    let absolute = format!(
        "GET http://evil.example/api/sessions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{bearer}Connection: close\r\n\r\n"
    );
    assert_eq!(pane.raw(&absolute).status, 403);
    let cookie = pane.login();
    // Other pages, though the browser sends them our cookie.
    for header in [
        "Origin: http://evil.example".to_owned(),
        "Origin: null".to_owned(),
        format!("Origin: https://127.0.0.1:{port}"),
        format!("Origin: http://127.0.0.1:{}", port ^ 1),
        "Sec-Fetch-Site: cross-site".to_owned(),
        "Sec-Fetch-Site: same-site".to_owned(),
    ] {
        let heard = pane.get(&format!("{cookie}{header}\r\n"), "/api/sessions");
        assert_eq!(heard.status, 403, "{header}");
    }
    let own = format!("{cookie}Origin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    assert_eq!(pane.get(&own, "/api/sessions").status, 200);
    // The token was exchanged: it opens nothing any more.
    assert_eq!(pane.send("POST", "/api/login", &bearer, "").status, 403);
    assert_eq!(pane.get(&bearer, "/api/sessions").status, 403);
    // Another run knows nothing of this cookie.
    let other = Pane::open(&world);
    let foreign = cookie.replace(&port.to_string(), &other.port.to_string());
    assert_eq!(other.get(&foreign, "/api/sessions").status, 403);
}

#[test]
fn only_the_loopback_address_listens_and_the_page_is_locked_down() {
    let world = World::started();
    let pane = Pane::open(&world);
    let hex = format!(":{:04X} ", pane.port);
    let listening: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .flat_map(|file| {
            std::fs::read_to_string(file)
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .filter(|line| line.contains(&hex) && line.contains(" 0A "))
        .collect();
    assert_eq!(listening.len(), 1, "{listening:?}");
    assert!(listening[0].contains("0100007F"), "{listening:?}");
    let page = pane.get("", "/");
    assert_eq!(page.status, 200);
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'",
        "frame-ancestors 'none'",
        "x-frame-options: deny",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}\n{}", page.head);
    }
    // Nothing inline, and no way from text to markup.
    let script = pane.get("", "/app.js").body;
    for way in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        assert!(!script.contains(way) && !page.body.contains(way), "{way}");
    }
    assert!(
        !page.body.contains("style=") && !page.body.contains("onclick") && !page.body.contains("http://")
    );
    assert_eq!(pane.send("POST", "/", "", "").status, 405);
    // Floods and rubbish end their own connection only.
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    for rubbish in [
        &long,
        "\0\0\0\0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "Tversion\r\n\r\n",
    ] {
        let status = pane.raw(rubbish).status;
        assert!((400..500).contains(&status) || status == 0, "{status}");
    }
    let cookie = pane.login();
    let large = format!("{cookie}Content-Type: application/json\r\n");
    let heard = pane.send("POST", "/api/sessions", &large, &" ".repeat((1 << 20) + 1));
    assert_eq!(heard.error(), (400, "too large".to_owned()));
    assert_eq!(pane.get(&cookie, "/api/sessions").status, 200);
}

/// A headless Chromium, driven over its debugging pipe.
struct Browser {
    child: Child,
    to: std::fs::File,
    from: BufReader<std::fs::File>,
    page: Option<String>,
    sent: u64,
}

impl Browser {
    /// `None` where no Chromium is installed.
    fn start(world: &World) -> Option<Self> {
        let path = std::env::var("PATH").unwrap_or_default();
        let program = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(|name| {
                path.split(':')
                    .any(|directory| std::path::Path::new(directory).join(name).exists())
            })?;
        world.value("mkfifo $W/to $W/from");
        let script = format!(
            "exec {program} --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
             --disable-background-networking --disable-component-update --disable-sync \
             --user-data-dir=$W/profile --remote-debugging-pipe about:blank 3<$W/to 4>$W/from"
        );
        let child = world
            .command("/bin/sh")
            .args(["-c", &script])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = std::fs::OpenOptions::new()
            .write(true)
            .open(world.path("to"))
            .unwrap();
        let from = BufReader::new(std::fs::File::open(world.path("from")).unwrap());
        let mut browser = Browser {
            child,
            to,
            from,
            page: None,
            sent: 0,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", &attach)["sessionId"].clone();
        browser.page = session.as_str().map(str::to_owned);
        Some(browser)
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(page) = &self.page {
            message["sessionId"] = json!(page);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert_ne!(
                self.from.read_until(0, &mut bytes).unwrap(),
                0,
                "the browser is gone"
            );
            bytes.pop();
            let heard: Value = serde_json::from_slice(&bytes).unwrap();
            if heard["id"] == json!(self.sent) {
                return heard["result"].clone();
            }
        }
    }

    fn value(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true});
        self.call("Runtime.evaluate", &asked)["result"]["value"].clone()
    }

    fn until(&mut self, expression: &str) {
        let limit = std::time::Instant::now() + Duration::from_secs(30);
        while self.value(expression) != json!(true) {
            let page = self.value("document.body?.innerText");
            assert!(
                std::time::Instant::now() < limit,
                "never true: {expression}\n{page}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What waits for a person is listed and answered over HTTP as everywhere else, and appears in an open page.
#[test]
fn what_waits_for_a_person_is_answered_in_the_page() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    let pane = Pane::open(&world);
    let browser = Browser::start(&world);
    let ask = |text: &str| {
        world.value(&format!(
            "(beamtalk agents ctl demo ask '{text}' > $W/said 2>&1; echo done >> $W/said) > /dev/null 2>&1 &"
        ));
        world.until("beamtalk agents approvals | grep -q question");
    };
    if let Some(mut browser) = browser {
        let address = format!("http://127.0.0.1:{}/#{}", pane.port, pane.token);
        browser.call("Page.navigate", &json!({ "url": address }));
        browser.until("document.querySelector('#sessions strong')?.textContent === 'demo'");
        ask("which <b>colour</b>");
        browser.until("document.querySelector('#approvals strong')?.textContent === 'which <b>colour</b>'");
        browser
            .value("window.prompt = () => 'deep blue'; document.querySelector('#approvals button').click()");
        browser.until("document.getElementById('waiting').hidden");
        world.until("grep -qsx done $W/said");
        world.check("cat $W/said", "deep blue\ndone\n");
    }
    // The way in of the first is used up.
    let pane = Pane::open(&world);
    let cookie = pane.login();
    let headers = format!("{cookie}Content-Type: application/json\r\n");
    ask("again");
    let listed: Value = serde_json::from_str(&pane.get(&cookie, "/api/approvals").body).unwrap();
    assert_eq!(
        (&listed[0]["kind"], &listed[0]["summary"]),
        (&json!("question"), &json!("again"))
    );
    let answer = |body: Value| pane.send("POST", "/api/approvals/answer", &headers, &body.to_string());
    let id = &listed[0]["id"];
    assert_eq!(
        answer(json!({"id": id, "verdict": "approve", "sha256": "00"})).error(),
        (409, "request changed".to_owned())
    );
    for bad in [
        json!({"id": "../x", "verdict": "reject"}),
        json!({"id": id, "verdict": "maybe"}),
    ] {
        assert!((400..500).contains(&answer(bad).status));
    }
    assert_eq!(
        answer(json!({"id": id, "verdict": "reject", "text": "no"})).status,
        200
    );
    world.until("grep -qsx done $W/said");
    world.check("cat $W/said", "beamtalk agents: not approved: no\ndone\n");
    assert_eq!(pane.get("", "/api/approvals").status, 403);
}

#[test]
fn a_browser_shows_hostile_output_as_text() {
    let world = World::started();
    let Some(mut browser) = Browser::start(&world) else {
        println!("skipped: no Chromium on the path");
        return;
    };
    let pane = Pane::open(&world);
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.value("beamtalk agents mail send --from demo --to user --type QUERY_REQUEST --subject '<img src=x onerror=document.title=1>' '<b>bold</b>'");
    let address = format!("http://127.0.0.1:{}/#{}", pane.port, pane.token);
    browser.call("Page.navigate", &json!({ "url": address }));
    browser.until("document.querySelector('#sessions strong')?.textContent === 'demo'");
    browser.until("document.querySelector('#inbox strong')?.textContent.startsWith('<img')");
    // The token has left the address, and no script can read the cookie.
    assert_eq!(browser.value("location.hash + document.cookie"), json!(""));
    browser.value("document.querySelector('#sessions button').click()");
    browser.value("document.getElementById('text').value = '<script>document.title = 1</script>'");
    browser.value("document.querySelector('#prompt button').click()");
    browser.until("document.getElementById('view').textContent.includes('echo: <script>document.title')");
    assert_eq!(browser.value("document.title"), json!("Agents"));
    assert_eq!(
        browser.value("document.querySelectorAll('#view *, #inbox b, #inbox img').length"),
        json!(0)
    );
    // The policy holds even if a script of the page tried.
    assert_eq!(
        browser.value("try { document.body.innerHTML = '<i>x</i>'; 'allowed' } catch { 'refused' }"),
        json!("refused")
    );
}
