//! `/mcp` on the workspace's own port: who is let in, both eras, and what a lost connection ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::configure;
use crate::home::{Home, wait_until};
use crate::project::{started, write, written};

const LIMIT: Duration = Duration::from_secs(30);

/// An answer as it came.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.body))
    }
}

/// One client with a secret.
pub(crate) struct Http {
    port: u16,
    secret: String,
}

impl Http {
    pub(crate) fn new(home: &Home, secret: &str) -> Self {
        Self {
            port: home.endpoint().port,
            secret: secret.to_owned(),
        }
    }

    /// Send a request and leave the answer to be read.
    fn send(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        let mut head = format!("{method} /mcp HTTP/1.1\r\n");
        let own = [
            ("Content-Length", body.len().to_string()),
            ("Host", format!("127.0.0.1:{}", self.port)),
            ("Authorization", format!("Bearer {}", self.secret)),
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
        ];
        for (name, value) in &own {
            if !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).expect("written");
        // Who is refused may not be listened to any more.
        drop(stream.write_all(body));
        stream
    }

    pub(crate) fn raw(&self, method: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
        read(self.send(method, headers, body))
    }

    fn modern(method: &str, mut params: Value) -> (Vec<(&'static str, String)>, String) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let given = params["_meta"].clone();
        params["_meta"] = meta;
        for (key, value) in given.as_object().into_iter().flatten() {
            params["_meta"][key] = value.clone();
        }
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", method.to_owned()),
        ];
        if let Some(name) = ["name", "uri", "taskId"]
            .iter()
            .find_map(|field| params[field].as_str())
        {
            headers.push(("Mcp-Name", name.to_owned()));
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        (headers, body.to_string())
    }

    pub(crate) fn ask(&self, method: &str, params: Value) -> Answered {
        read(self.ask_slowly(method, params))
    }

    /// A modern request whose answer is read by the caller.
    fn ask_slowly(&self, method: &str, params: Value) -> TcpStream {
        let (headers, body) = Self::modern(method, params);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.send("POST", &headers, body.as_bytes())
    }

    /// The result of a call that goes well.
    pub(crate) fn good(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = answer.json()["result"].clone();
        assert_eq!(result["isError"], false, "{tool}: {}", answer.body);
        result["structuredContent"].clone()
    }

    pub(crate) fn bad(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = answer.json()["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        serde_json::from_str::<Value>(&text).unwrap_or_else(|_| panic!("{}", answer.body))["error"].clone()
    }

    fn initialize(&self) -> String {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer = self.raw("POST", &[], body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.header("mcp-session-id").expect("a session").to_owned()
    }
}

fn head(reader: &mut impl BufRead) -> (u16, Vec<(String, String)>) {
    let mut line = String::new();
    reader.read_line(&mut line).expect("a status line");
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0);
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).expect("a header");
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => return (status, headers),
        }
    }
}

fn read(stream: TcpStream) -> Answered {
    let mut reader = BufReader::new(stream);
    let (status, headers) = head(&mut reader);
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = Vec::new();
    match length.and_then(|(_, length)| length.parse::<usize>().ok()) {
        Some(length) => {
            body.resize(length, 0);
            reader.read_exact(&mut body).expect("the whole body");
        }
        None if status == 204 => {}
        // Pieces of a stream: their lengths are left out.
        None => loop {
            let mut size = String::new();
            reader.read_line(&mut size).expect("a length");
            let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
            let mut piece = vec![0; size + 2];
            reader.read_exact(&mut piece).expect("a piece");
            if size == 0 {
                break;
            }
            body.extend(&piece[..size]);
        },
    }
    Answered {
        status,
        headers,
        body: String::from_utf8(body).expect("text"),
    }
}

/// Wait until nothing is evaluated for AI clients, long before it would end by itself.
fn quiet_after(other: &Http, session: &Value) {
    let since = Instant::now();
    while since.elapsed() < LIMIT / 2 {
        let answer = other.ask(
            "tools/call",
            json!({"name": "evaluate", "arguments": {"code": "1", "session": session, "timeout_ms": 1_000}}),
        );
        if answer.json()["result"]["isError"] == false {
            return;
        }
    }
    panic!("it still runs");
}

fn token(home: &Home, name: &str, policy: &str) -> String {
    let made = home.run(&["workspace", "token", "create", name, "--mcp", policy]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8_lossy(&made.stdout).trim().to_owned()
}

/// Settings that do not hold are told in words to whoever was let in.
#[test]
fn settings_that_do_not_hold_are_told_in_words() {
    let home = started("mcp-settings", &["--mcp-http"]);
    let secret = token(&home, "ci", "edit");
    write(
        &home,
        "beamtalk.toml",
        "[package]\nname = \"work\"\nversion = \"0.1.0\"\n\n[mcp]\npolicy = \"everything\"\n",
    );
    let answer = Http::new(&home, &secret).ask("tools/list", json!({}));
    assert_eq!(answer.status, 503, "{}", answer.body);
    let message = answer.json()["error"]["message"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(
        message.contains("policy") && message.contains("beamtalk.toml"),
        "{message}"
    );
}

/// Examples 9 and 13: who is not let in learns nothing, in the order of the checks, and a body that is no message is 400.
#[test]
fn who_is_not_let_in_learns_nothing() {
    let home = started("mcp-gate", &["--mcp-http"]);
    let secret = token(&home, "ci", "edit");
    let http = Http::new(&home, &secret);
    let list = br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    // A page of somebody else, or a name that is none of ours.
    for header in [("Origin", "http://evil.example"), ("Host", "evil.example")] {
        let answer = http.raw("POST", &[header], list);
        assert_eq!((answer.status, answer.body.as_str()), (403, ""), "{header:?}");
    }
    let answer = http.raw("GET", &[], b"");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(http.raw("PUT", &[], b"").status, 405);
    // A wrong secret waits for its answer, and what it brings is not read.
    let since = Instant::now();
    let wrong = Http::new(&home, "btk_wrong").raw("POST", &[("Content-Length", "1000000")], b"");
    assert_eq!(
        (wrong.status, wrong.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert!(since.elapsed() >= Duration::from_millis(250));
    assert_eq!(
        http.raw("POST", &[("Authorization", "Basic eDp5")], list).status,
        401
    );
    for (headers, body, status) in [
        (vec![("Content-Type", "text/plain")], list.to_vec(), 415),
        (vec![("Accept", "application/json")], list.to_vec(), 406),
        (vec![], vec![b' '; (1 << 20) + 1], 413),
        (vec![], b"{nonsense".to_vec(), 400),
        (vec![], b"[]".to_vec(), 400),
        (
            vec![],
            br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_vec(),
            400,
        ),
        (vec![], list.to_vec(), 400),
        (vec![("Mcp-Session-Id", "invented")], list.to_vec(), 404),
        (
            vec![],
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec(),
            202,
        ),
    ] {
        let answer = http.raw("POST", &headers, &body);
        assert_eq!(
            answer.status,
            status,
            "{headers:?} {}",
            String::from_utf8_lossy(&body[..body.len().min(80)])
        );
        // Whoever was let in is told why.
        if status >= 400 {
            let words = answer.json()["error"]["message"].as_str().map(str::len);
            assert!(words.is_some_and(|words| words > 10), "{status} {}", answer.body);
        }
    }
    let nonsense = http.raw("POST", &[], b"{nonsense").json();
    assert_eq!(nonsense["error"]["code"], -32700);
    assert!(nonsense.get("id").is_none());
    // A token for AI clients opens no other way in.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let greeting = beamtalk_client::Greeting {
        client: "repl",
        resume: None,
    };
    let opened = runtime.block_on(beamtalk_client::Connection::open(
        &home.endpoint(),
        "token",
        &secret,
        greeting,
    ));
    assert!(opened.is_err(), "its policy would be no limit");
    // The cookie counts, from here.
    assert_eq!(
        Http::new(&home, &home.cookie())
            .ask("tools/list", json!({}))
            .status,
        200
    );
    // Revoked, it is one of a stranger.
    assert_eq!(http.ask("tools/list", json!({})).status, 200);
    assert!(home.run(&["workspace", "token", "revoke", "ci"]).status.success());
    assert_eq!(http.ask("tools/list", json!({})).status, 401);
}

/// Example 13, the last part.
#[test]
fn without_the_flag_there_is_no_such_page() {
    let home = started("mcp-nohttp", &[]);
    let http = Http::new(&home, &home.cookie());
    assert_eq!(http.ask("tools/list", json!({})).status, 404);
    assert_eq!(http.raw("GET", &[], b"").status, 404);
}

/// Example 13, the first part: headers say what the body says, and each fault has its status.
#[test]
fn headers_and_body_of_a_modern_request_agree() {
    let home = started("mcp-heads", &["--mcp-http"]);
    let http = Http::new(&home, &home.cookie());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let call = |name: &[(&str, &str)], params: Value, method: &str| {
        let mut headers = vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name);
        let body = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": params}).to_string();
        let answer = http.raw("POST", &headers, body.as_bytes());
        (answer.status, answer.json()["error"]["code"].clone())
    };
    let evaluate = json!({"name": "evaluate", "arguments": {"code": "1"}, "_meta": meta});
    assert_eq!(
        call(&[("Mcp-Name", "test")], evaluate.clone(), "tools/call"),
        (400, json!(-32020))
    );
    assert_eq!(call(&[], evaluate.clone(), "tools/call"), (400, json!(-32020)));
    assert_eq!(
        call(&[("Mcp-Name", "=?base64?ZXZhbHVhdGU=?=")], evaluate, "tools/call"),
        (200, Value::Null)
    );
    assert_eq!(
        call(&[], json!({"_meta": meta}), "frobnicate"),
        (404, json!(-32601))
    );
    assert_eq!(call(&[], json!({}), "tools/list"), (400, json!(-32602)));
    let mut old = meta.clone();
    old["io.modelcontextprotocol/protocolVersion"] = "1900-01-01".into();
    let headers = [
        ("MCP-Protocol-Version", "1900-01-01"),
        ("Mcp-Method", "tools/list"),
    ];
    let body =
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list", "params": {"_meta": old}}).to_string();
    let answer = http.raw("POST", &headers, body.as_bytes());
    assert_eq!(
        (answer.status, answer.json()["error"]["code"].clone()),
        (400, json!(-32022))
    );
    // Errors that are not about the request as such come with 200.
    assert_eq!(
        call(
            &[("Mcp-Name", "frobnicate")],
            json!({"name": "frobnicate", "_meta": meta}),
            "tools/call"
        ),
        (200, json!(-32602))
    );
}

/// Example 4: to anybody else a handle is as if it had been invented; and a token has the policy it was made with.
#[test]
fn a_token_has_its_policy_and_its_own_variables() {
    let home = written("mcp-tokens");
    configure(&home, "[mcp]\nhttp = true\n");
    home.start(&[]);
    let reader = Http::new(&home, &token(&home, "reader", "read-only"));
    let writer = Http::new(&home, &token(&home, "writer", "edit"));
    assert_eq!(
        reader.bad("evaluate", json!({"code": "1"}))["details"]["by"],
        "token"
    );
    let seen = reader.good("describe", json!({}));
    assert_eq!(seen["policy"], "read-only");
    let session = writer.good("evaluate", json!({"code": "x := 7", "session": "new"}))["session"].clone();
    assert_eq!(
        writer.good("evaluate", json!({"code": "x + 1", "session": session}))["value"],
        8
    );
    // To anybody else it is as if it had been invented.
    let owner = Http::new(&home, &home.cookie());
    let other = Http::new(&home, &token(&home, "other", "edit"));
    for stranger in [owner, other] {
        let others = stranger.bad("evaluate", json!({"code": "x", "session": session}));
        let invented = stranger.bad(
            "evaluate",
            json!({"code": "x", "session": "ev_0123456789012345678901"}),
        );
        assert_eq!(others["kind"], "session_not_found");
        assert_eq!(others, invented);
    }
    let trail = home.run(&["--json", "workspace", "audit", "--type", "mcp"]);
    let trail = String::from_utf8_lossy(&trail.stdout);
    assert!(
        trail.contains("token:writer") && trail.contains("\"way\":\"http\""),
        "{trail}"
    );
}

/// Examples 14 and 15 over HTTP: closing the stream cancels a modern call, and an old one runs on and is answered in the
/// stream that is resumed.
#[test]
fn a_stream_that_is_closed_cancels_a_modern_call_and_not_an_old_one() {
    let home = started("mcp-streams", &["--mcp-http"]);
    let http = Http::new(&home, &home.cookie());
    let session = http.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
    let forever = json!({"code": "[true] whileTrue: []", "timeout_ms": 60_000, "session": session});
    let params = json!({"name": "evaluate", "arguments": forever, "_meta": {"progressToken": "p"}});
    let mut reader = BufReader::new(http.ask_slowly("tools/call", params));
    let (status, headers) = head(&mut reader);
    assert_eq!(status, 200);
    assert!(headers.contains(&("content-type".to_owned(), "text/event-stream".to_owned())));
    let mut line = String::new();
    while !line.contains("notifications/progress") {
        line.clear();
        assert!(reader.read_line(&mut line).expect("an event") > 0);
    }
    drop(reader);
    quiet_after(&http, &session);
    // Before there is a stream, the end of the connection is the same. What ends before it is read was no call at all, so it is
    // waited for: it has begun once it has made an actor.
    let begun = json!({"code": "Lamp spawn. [true] whileTrue: []", "timeout_ms": 60_000, "session": session});
    let quick = http.ask_slowly("tools/call", json!({"name": "evaluate", "arguments": begun}));
    wait_until("the call begins", Duration::from_secs(30), || {
        http.good("list_actors", json!({"class": "Lamp"}))["total"] == 1
    });
    drop(quick);
    quiet_after(&http, &session);
    let trail = home.run(&["--json", "workspace", "audit", "--type", "mcp"]);
    let trail = String::from_utf8_lossy(&trail.stdout);
    assert_eq!(trail.matches("\"outcome\":\"cancelled\"").count(), 2, "{trail}");
    // An old client comes back for the end of its call.
    let id = http.initialize();
    let body = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "evaluate", "arguments": {
        "code": "[true] whileTrue: []", "timeout_ms": 3_000,
    }}});
    let mut reader =
        BufReader::new(http.send("POST", &[("Mcp-Session-Id", &id)], body.to_string().as_bytes()));
    assert_eq!(head(&mut reader).0, 200);
    let mut line = String::new();
    while !line.starts_with("id: ") {
        line.clear();
        assert!(reader.read_line(&mut line).expect("an event") > 0);
    }
    let last = line.trim_start_matches("id: ").trim().to_owned();
    drop(reader);
    let rest = http.raw("GET", &[("Mcp-Session-Id", &id), ("Last-Event-ID", &last)], b"");
    assert_eq!(rest.status, 200);
    assert!(rest.body.contains("eval_limit"), "{}", rest.body);
    assert_eq!(http.raw("DELETE", &[("Mcp-Session-Id", &id)], b"").status, 204);
    assert_eq!(http.raw("DELETE", &[("Mcp-Session-Id", &id)], b"").status, 404);
}

#[test]
fn the_check_looks_at_the_route_as_a_stranger_would() {
    let home = started("mcp-checkhttp", &["--mcp-http"]);
    let checked = home.run(&["mcp", "--check"]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{text}");
    assert!(text.contains("✅ HTTP: http://127.0.0.1:"), "{text}");
    assert!(text.contains("/mcp; policy edit, as"), "{text}");
    // Settings for it are told beside those for the pipe, and name a variable where a token goes.
    for (client, shown) in [
        ("claude-code", "${BEAMTALK_MCP_TOKEN}"),
        ("codex", "bearer_token_env_var"),
        ("vscode", "\"password\": true"),
        ("gemini", "httpUrl"),
    ] {
        let printed = home.run(&["mcp", "--print-config", client]);
        let (own, other) = (
            String::from_utf8_lossy(&printed.stdout),
            String::from_utf8_lossy(&printed.stderr),
        );
        assert!(own.contains("--start") && !own.contains("http://"), "{own}");
        assert!(other.contains("/mcp") && other.contains(shown), "{other}");
        assert!(!other.contains("btk_"), "{other}");
    }
    // What was written into the settings since the workspace started does not hold there, and that is said.
    configure(&home, "[mcp]\npolicy = \"read-only\"\n");
    let checked = home.run(&["mcp", "--check"]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{text}");
    assert!(text.contains("✅ policy: read-only"), "{text}");
    assert!(text.contains("⚠️ HTTP: http://127.0.0.1:"), "{text}");
    assert!(
        text.contains("/mcp; policy edit, as") && text.contains("start the workspace again"),
        "{text}"
    );
}

/// Every setting that is another by now is said to hold only after another start, and what is denied is no fault.
#[test]
fn the_check_compares_all_settings_and_takes_a_denied_tool_for_no_fault() {
    let home = started("mcp-checkall", &["--mcp-http"]);
    let check = || {
        let checked = home.run(&["mcp", "--check"]);
        let text = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(checked.status.success(), "{text}");
        text
    };
    for setting in [
        "approval = \"destructive\"",
        "approval-timeout = 60",
        "deny-tools = [\"kill_actor\"]",
        "deny-paths = [\"secrets/**\"]",
        "loop = \"none\"",
    ] {
        configure(&home, &format!("[mcp]\n{setting}\n"));
        let text = check();
        assert!(
            text.contains("⚠️ HTTP: ") && text.contains("start the workspace again"),
            "{setting}: {text}"
        );
    }
    configure(&home, "");
    assert!(check().contains("✅ HTTP: "));
    let denied = "[mcp]\ndeny-tools = [\"describe\", \"search_docs\"]\n";
    configure(&home, denied);
    let text = check();
    for tool in ["describe", "search_docs"] {
        let told = format!("⚠️ {tool}: the settings deny it");
        assert!(text.contains(&told), "{text}");
    }
    assert!(text.contains("✅ evaluate: 2 + 3 is 5, twice"), "{text}");
    assert!(!text.contains("fault of Beamtalk"), "{text}");
    // Also where the workspace has read the same.
    home.run(&["workspace", "stop"]);
    home.start(&["--mcp-http"]);
    let text = check();
    assert!(text.contains("✅ HTTP: "), "{text}");
    configure(&home, &format!("{denied}policy = \"read-only\"\n"));
    assert!(check().contains("⚠️ HTTP: "));
}

/// To an old client 404 means that its session is gone: a method that is not there has another answer.
#[test]
fn an_old_client_keeps_its_session_after_an_unknown_method() {
    let home = started("mcp-oldmethod", &["--mcp-http"]);
    let http = Http::new(&home, &home.cookie());
    let id = http.initialize();
    for method in ["subscriptions/listen", "tasks/get", "logging/setLevel", "no/such"] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        let answer = http.raw("POST", &[("Mcp-Session-Id", &id)], body.to_string().as_bytes());
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (200, &json!(-32601)),
            "{method}"
        );
    }
}
