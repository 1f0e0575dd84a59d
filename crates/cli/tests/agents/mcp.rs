//! AI clients and the agents: tools that act through the tree, and the server behind the door of a session.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::support::World;
use serde_json::{Value, json};

/// A server over its standard input and output.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Client {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 1,
        }
    }

    /// The owner's own, with everything it can have.
    fn of_owner(world: &World) -> Self {
        std::fs::create_dir_all(world.path("home/.beamtalk")).unwrap();
        let config = world.path("home/.beamtalk/config.toml");
        std::fs::write(&config, "[mcp]\nmax-policy = \"full\"\nloop = \"control\"\n").unwrap();
        let (text, status) = world.run("chmod 700 $HOME/.beamtalk; chmod 600 $HOME/.beamtalk/config.toml");
        assert_eq!(status, 0, "{text}");
        let mut command = world.command("beamtalk");
        std::fs::create_dir_all(world.path("tmp")).unwrap();
        command
            .args(["mcp", "--toolsets", "all", "--policy", "full"])
            .env("TMPDIR", world.path("tmp"));
        Self::start(command)
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let id = self.next;
        self.next += 1;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(self.input, "{line}").unwrap();
        let mut answer = String::new();
        self.output.read_line(&mut answer).unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap_or_else(|_| panic!("{method}: {answer:?}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: Value) -> (bool, Value) {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{tool}: {result}"));
        (result["isError"] == false, value)
    }

    fn good(&mut self, tool: &str, arguments: Value) -> Value {
        let (is_good, value) = self.call(tool, arguments);
        assert!(is_good, "{tool}: {value}");
        value
    }

    fn bad(&mut self, tool: &str, arguments: Value) -> Value {
        let (is_good, value) = self.call(tool, arguments);
        assert!(!is_good, "{tool}: {value}");
        value["error"].clone()
    }

    /// The names of the tools.
    fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({}))["tools"].clone();
        let names = listed.as_array().unwrap().iter();
        names
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// Sessions are made, prompted, looked at and ended by tools, with the answers the tree gives; its refusals are errors
/// of kind `agents` in its own words.
#[test]
fn sessions_are_worked_with_through_tools() {
    let world = World::started();
    let mut client = Client::of_owner(&world);
    assert_eq!(client.good("list_sessions", json!({}))["sessions"], json!([]));
    let work = world.path("work").display().to_string();
    let made = client.good(
        "create_session",
        json!({"backend": "shell", "cwd": work, "alias": "build"}),
    );
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(
        (&made["backend"], &made["alias"], &made["cwd"]),
        (&json!("shell"), &json!("build"), &json!(work))
    );
    world.value(&format!("beamtalk 9p read agent/{id}/wait"));
    let said = client.good(
        "prompt_session",
        json!({"session_id": id, "text": "echo $((6*7))", "wait": true}),
    );
    assert!(said["output"].as_str().unwrap().contains("42"), "{said}");
    assert!(said["turn"].as_u64().unwrap() >= 1, "{said}");
    // One that is busy lets the next prompt wait for its turn.
    let first = client.good("prompt_session", json!({"session_id": id, "text": "sleep 100"}));
    assert!(first.get("queued").is_none(), "{first}");
    let second = client.good("prompt_session", json!({"session_id": id, "text": "echo second"}));
    assert_eq!(second["queued"], 0, "{second}");
    let refused = client.bad(
        "prompt_session",
        json!({"session_id": id, "text": "x", "queue": false}),
    );
    assert_eq!(
        (&refused["kind"], &refused["message"]),
        (&json!("agents"), &json!("session busy"))
    );
    client.good(
        "control_session",
        json!({"session_id": id, "command": "interrupt"}),
    );
    world.until(&format!("beamtalk 9p read agent/{id}/log | grep -q '^second'"));
    let output = client.good("read_output", json!({"session_id": id, "tail": 4096}));
    assert!(output["text"].as_str().unwrap().contains("second"), "{output}");
    let unknown = client.bad("read_output", json!({"session_id": "nobody"}));
    assert_eq!(unknown["kind"], "agents");
    // Mail has a name, and is handled once.
    let sent = client.good(
        "send_message",
        json!({"to": id, "type": "QUERY_REQUEST", "subject": "size", "body": "how big?"}),
    );
    let history = client.good("mail_history", json!({"agent_id": id}));
    assert_eq!(history["messages"][0]["id"], sent["id"], "{history}");
    assert_eq!(
        client.good("mail_search", json!({"agent_id": id, "pattern": "no such"}))["messages"],
        json!([])
    );
    assert_eq!(client.good("check_inbox", json!({}))["left"], 0);
    let roles = client.good("list_roles", json!({}))["items"].to_string();
    assert!(roles.contains("\"reviewer\""), "{roles}");
    // Files of the tree, and what is closed.
    let names = client.good("list_files", json!({"path": "agents"}))["names"].to_string();
    assert!(names.contains(&id), "{names}");
    let state = client.good("read_file", json!({"path": format!("agents/{id}/backend")}));
    assert_eq!(state["text"], "shell\n");
    for path in [
        "tokens",
        "agents/tokens",
        "agents/audit",
        "agents/../tokens",
        "agents/roles/developer",
    ] {
        assert_eq!(
            client.bad("write_file", json!({"path": path, "text": "x"}))["kind"],
            "path_denied",
            "{path}"
        );
    }
    // A directory is listed, not read.
    let directory = client.bad("read_file", json!({"path": "agents"}));
    assert!(
        directory["message"].as_str().unwrap().contains("list_files"),
        "{directory}"
    );
    let skills = client.good("list_skills", json!({}))["items"].to_string();
    assert!(!skills.contains("\"."), "{skills}");
    // A write that loses something has no argument to confirm it with, and does not say so.
    let kill = json!({"path": format!("agents/{id}/ctl"), "text": "kill"});
    let would = client.bad("write_file", kill);
    assert_eq!(would["kind"], "confirmation_needed");
    assert!(!would["hint"].as_str().unwrap().contains("argument"), "{would}");
    // What ends a session needs a yes.
    let would = client.bad("kill_agent", json!({"session_id": id}));
    assert_eq!(would["kind"], "confirmation_needed");
    assert_eq!(
        client.good("kill_agent", json!({"session_id": id, "confirm": true}))["killed"],
        true
    );
    assert_eq!(client.good("list_sessions", json!({}))["sessions"], json!([]));
    // A worktree needs a repository, and says so in the tree's words.
    let no = client.bad(
        "create_session",
        json!({"backend": "shell", "cwd": work, "worktree": true}),
    );
    assert_eq!(no["message"], "not a git repository");
    let not = client.bad("set_state", json!({"state": "idle"}));
    assert_eq!(not["kind"], "agents");
}

/// A file is the tool that does the same however its commands are written, and as often as they are; sessions work where a
/// client may name files.
#[test]
fn no_way_of_writing_a_command_leads_around_the_policy() {
    let world = World::started();
    std::fs::create_dir_all(world.path("work/.git")).unwrap();
    let mut command = world.command("beamtalk");
    command.args(["mcp", "--toolsets", "all"]);
    let mut client = Client::start(command);
    let id = client.good("create_session", json!({"backend": "shell", "cwd": "."}))["id"].clone();
    let id = id.as_str().unwrap().to_owned();
    world.value(&format!("beamtalk 9p read agent/{id}/wait"));
    let ctl = format!("agents/{id}/ctl");
    for text in [
        "kill",
        "\"kill\"",
        "'kill'",
        "k\"ill\"",
        "refresh\n'ki'll",
        "\"discard\" agents/x",
        "clear-queue",
        "unqueue q1",
        "merge",
    ] {
        let denied = client.bad("write_file", json!({"path": ctl, "text": text}));
        assert_eq!(denied["kind"], "policy_denied", "{text}: {denied}");
    }
    let unknown = client.bad("write_file", json!({"path": ctl, "text": "stop\nfrobnicate"}));
    assert_eq!(unknown["kind"], "path_denied", "{unknown}");
    let open = client.bad("write_file", json!({"path": ctl, "text": "refresh\n\"kill"}));
    assert_eq!(open["kind"], "invalid_parameter", "{open}");
    for cwd in ["/", "..", ".git"] {
        for (tool, more) in [
            ("create_session", json!({})),
            ("spawn_agent", json!({"role": "reviewer"})),
        ] {
            let mut arguments = more;
            arguments["backend"] = "shell".into();
            arguments["cwd"] = cwd.into();
            assert_eq!(client.bad(tool, arguments)["kind"], "path_denied", "{tool} {cwd}");
        }
    }
    let new = |text: &str| json!({"path": "agents/ctl", "text": text});
    for text in [
        "\"new\" shell /",
        "new shell alias=a .git",
        "reload",
        "\"prune\"",
        "recover",
    ] {
        assert_eq!(
            client.bad("write_file", new(text))["kind"],
            "path_denied",
            "{text}"
        );
    }
    assert_eq!(
        client.bad("write_file", new("new shell"))["kind"],
        "invalid_parameter"
    );
    let work = world.path("work").display().to_string();
    let many = format!("new shell {work}\n").repeat(10);
    assert_eq!(client.bad("write_file", new(&many))["kind"], "rate_limited");
    let sessions = client.good("list_sessions", json!({}))["sessions"].clone();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    for path in ["audit", "agents/audit"] {
        assert_eq!(
            client.bad("read_file", json!({"path": path}))["kind"],
            "path_denied"
        );
    }
    // Nor past the question of a policy that allows it.
    let mut owner = Client::of_owner(&world);
    let asked = owner.bad("write_file", json!({"path": ctl, "text": "\"kill\""}));
    assert_eq!(asked["kind"], "confirmation_needed", "{asked}");
}

/// A program runs in a sandbox and an empty directory of its own; what it said and how it ended are told, and nothing
/// of it is left.
#[test]
fn programs_run_apart_and_leave_nothing() {
    let world = World::started();
    let mut client = Client::of_owner(&world);
    let told = client.good("execute_code", json!({"code": "ls\necho here >&2\nexit 3"}));
    assert_eq!(
        (&told["output"], &told["status"]),
        (&json!("output\nprogram\nhere\n"), &json!(3))
    );
    let other = client.good(
        "execute_code",
        json!({"code": "print(6 * 7)", "language": "python"}),
    );
    assert_eq!((&other["output"], &other["status"]), (&json!("42\n"), &json!(0)));
    let odd = client.bad("execute_code", json!({"code": "1", "language": "cobol"}));
    assert_eq!(
        (&odd["kind"], &odd["details"]["path"]),
        (&json!("invalid_parameter"), &json!("/language"))
    );
    let long = client.bad("execute_code", json!({"code": "sleep 100", "timeout": 1}));
    assert_eq!(long["kind"], "eval_limit", "{long}");
    world.until("test -z \"$(beamtalk 9p read agent/list)\"");
    let (left, _) = world.run("ls $W/tmp");
    assert_eq!(left, "");
}

/// A client inside a session reaches the server through the session's door alone: with the session's name, within the
/// rights of its backend, and flags only narrow them; what it opened ends with the session.
#[test]
fn a_client_in_a_session_speaks_through_its_door() {
    let world = World::new();
    world.config(
        "backends/writer.yaml",
        "command: [\"{SELF}\", \"agents\", \"drive\", \"shell\"]\nstart: {ready: hook, regex: '^agent> $'}\n\
         idle: {mode: hook}\nrestart: {policy: never}\nworkspace: write\n",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    std::fs::create_dir_all(world.path("work/src")).unwrap();
    std::fs::write(
        world.path("work/beamtalk.toml"),
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    std::fs::write(
        world.path("work/src/lamp.bt"),
        "Actor subclass: Lamp\n  state: on = false\n\n  on => self.on\n",
    )
    .unwrap();
    world.value("beamtalk workspace start");
    let new = |backend: &str| {
        world.value(&format!(
            "beamtalk agents new {backend} $W/work --wait 2> /dev/null"
        ))
    };
    let (reader, writer) = (new("shell"), new("writer"));
    // The owner has a server of their own; nobody opens that of a session.
    let (refused, _) = world.run(&format!("beamtalk 9p read agent/{writer}/mcp"));
    assert!(refused.contains("permission denied"), "{refused}");
    let at = |id: &str, flags: &[&str]| {
        let mut command = world.command("beamtalk");
        command
            .arg("mcp")
            .args(flags)
            .env("AGENT_ID", id)
            .env("NAMESPACE", world.namespace().join("doors").join(id));
        Client::start(command)
    };
    let mut client = at(&writer, &[]);
    let described = client.good("describe", json!({}));
    assert_eq!(described["policy"], "edit", "{described}");
    assert!(
        described["toolsets"].to_string().contains("agents"),
        "{described}"
    );
    let made = client.good("evaluate", json!({"code": "x := 6 * 7", "session": "new"}));
    let handle = made["session"].as_str().unwrap().to_owned();
    assert_eq!(
        client.good("evaluate", json!({"code": "x + 1", "session": handle}))["text"],
        "43"
    );
    // Values with secret names are not shown by files either.
    let class =
        "Actor subclass: Conn\n  state: password = \"PWSEC1\"\n  state: login = #{#apiToken => \"PWSEC2\"}\n";
    client.good("evaluate", json!({"code": class}));
    client.good("evaluate", json!({"code": "Conn spawn. nil"}));
    let actors = client.good("list_actors", json!({"class": "Conn"}));
    let pid = actors["actors"][0]["pid"].as_str().unwrap();
    let pid = pid.trim_matches(['<', '>']).to_owned();
    for file in ["state", "state.json"] {
        let path = format!("actors/{pid}/{file}");
        let shown = client.good("read_file", json!({"path": path}))["text"].to_string();
        assert!(
            shown.contains("password") && shown.contains("apiToken") && !shown.contains("PWSEC"),
            "{shown}"
        );
    }
    assert_eq!(
        client.good("set_state", json!({"state": "running"}))["state"],
        "running"
    );
    client.good("set_state", json!({"state": "idle"}));
    assert_eq!(
        client.bad("remove_class", json!({"class": "Lamp", "confirm": true}))["kind"],
        "policy_denied"
    );
    // Questions about the server are answered where nothing of the owner's can be read or written.
    for (id, count, evaluates) in [(&writer, 10, "2 + 3 is 5, twice"), (&reader, 5, "not tried")] {
        let ask = |flag: &str| {
            let mut command = world.command("beamtalk");
            command
                .args(["mcp", flag])
                .env("AGENT_ID", id)
                .env("NAMESPACE", world.namespace().join("doors").join(id))
                .env("HOME", "/proc/none");
            let done = command.output().unwrap();
            let text = String::from_utf8_lossy(&done.stdout).into_owned();
            assert!(done.status.success(), "{flag}: {text} {done:?}");
            text
        };
        let tools = ask("--list-tools");
        assert!(
            tools.lines().count() > count && tools.contains("describe"),
            "{tools}"
        );
        let checked = ask("--check");
        assert!(
            checked.contains(evaluates) && checked.contains("describe: "),
            "{checked}"
        );
    }
    // What the session opened is the session's: the owner does not find it.
    let mut owner = Client::of_owner(&world);
    assert_eq!(
        owner.bad("evaluate", json!({"code": "x", "session": handle}))["kind"],
        "session_not_found"
    );
    drop(client);
    // A later server of the same session does, even one that only reads.
    let mut narrow = at(&writer, &["--policy", "read-only", "--toolsets", "core"]);
    assert_eq!(narrow.good("describe", json!({}))["policy"], "read-only");
    assert!(!narrow.tools().contains(&"evaluate".to_owned()));
    let bound = narrow.good("bindings", json!({"session": handle}));
    assert_eq!(bound["bindings"]["x"]["text"], "42", "{bound}");
    // A backend that only reads has a server that only reads, whatever the flags say.
    let mut reading = at(&reader, &["--policy", "full", "--toolsets", "all"]);
    assert_eq!(reading.good("describe", json!({}))["policy"], "read-only");
    let denied = reading.bad("evaluate", json!({"code": "1"}));
    assert_eq!(
        (&denied["kind"], &denied["details"]["by"]),
        (&json!("policy_denied"), &json!("role"))
    );
    // What it says of itself and to others is its own affair all the same, and that of nobody else.
    assert!(reading.tools().contains(&"set_state".to_owned()));
    reading.good("set_state", json!({"state": "running"}));
    let own = |id: &str| json!({"path": format!("agents/{id}/state"), "text": "idle"});
    reading.good("write_file", own(&reader));
    assert_eq!(reading.bad("write_file", own(&writer))["kind"], "policy_denied");
    reading.good("check_inbox", json!({}));
    let letter = json!({"to": "user", "type": "QUERY_REQUEST", "subject": "s", "body": "b"});
    reading.good("send_message", letter);
    let prompt = json!({"path": format!("agents/{reader}/in"), "text": "ls"});
    assert_eq!(reading.bad("write_file", prompt)["kind"], "policy_denied");
    let file = reading.bad("list_files", json!({"path": format!("agents/{reader}/info")}));
    assert!(file["message"].as_str().unwrap().contains("read_file"), "{file}");
    let (audit, _) = world.run("beamtalk workspace audit --type mcp --json");
    assert!(audit.contains(&format!("session:{writer}")), "{audit}");
    assert!(audit.contains("\"way\":\"door\""), "{audit}");
    // Each sees the count of its own calls alone.
    let summary = |client: &mut Client| {
        let read = client.ask("resources/read", json!({"uri": "beamtalk://audit/summary"}));
        read["contents"][0]["text"].as_str().unwrap().to_owned()
    };
    let (of_session, of_owner) = (summary(&mut narrow), summary(&mut owner));
    assert!(of_session.contains("set_state"), "{of_session}");
    assert!(!of_owner.contains("set_state"), "{of_owner}");
    assert!(of_owner.contains("session_not_found"), "{of_owner}");
    // The end of the session is the end of its server.
    world.value(&format!("beamtalk agents kill {reader}"));
    let mut rest = String::new();
    assert_eq!(reading.output.read_line(&mut rest).unwrap(), 0, "{rest}");
    // Inside the sandbox it is the same.
    let script = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    std::fs::write(world.path("work/line"), format!("{script}\n")).unwrap();
    let said = world.value(&format!(
        "beamtalk agents prompt {writer} --wait 'beamtalk mcp < line'"
    ));
    assert!(said.contains("\"protocolVersion\":\"2025-11-25\""), "{said}");
    // The end of the session is the end of its variables: who spoke for it now would find them closed.
    world.value(&format!("beamtalk agents kill {writer}"));
    let mut command = world.command("beamtalk");
    command.args(["mcp", "--door", &writer, "--door-workspace", "write"]);
    let mut ghost = Client::start(command);
    let since = std::time::Instant::now();
    let ended = loop {
        let (is_good, value) = ghost.call("evaluate", json!({"code": "x", "session": handle}));
        // One that ran when the variables went is stopped.
        if !is_good && value["error"]["kind"] != "interrupted" {
            break value["error"].clone();
        }
        assert!(
            since.elapsed() < std::time::Duration::from_mins(1),
            "it is still open"
        );
    };
    assert_eq!(
        (&ended["kind"], &ended["details"]["reason"]),
        (&json!("session_expired"), &json!("closed"))
    );
    world.value("beamtalk workspace stop --force");
}

/// The agents' tools are the same over HTTP: a token that may change has the owner's level, one that only reads sees
/// neither mailboxes nor approvals nor the audit.
#[test]
fn the_tools_of_the_agents_are_reached_by_http() {
    let world = World::started();
    std::fs::write(
        world.path("work/beamtalk.toml"),
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    world.value("beamtalk workspace start --mcp-http");
    let status: Value = serde_json::from_str(&world.value("beamtalk --json workspace status")).unwrap();
    let port = u16::try_from(status["port"].as_u64().unwrap()).unwrap();
    let token = |policy: &str| {
        world.value(&format!(
            "beamtalk workspace token create t-{policy} --mcp {policy} 2>/dev/null"
        ))
    };
    let call = |secret: &str, tool: &str, arguments: Value| -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {secret}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut stream, &mut text).unwrap();
        let json = text
            .lines()
            .find(|line| line.starts_with('{'))
            .unwrap_or_else(|| panic!("{text}"));
        let answer: Value = serde_json::from_str(json).unwrap();
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str(text).unwrap()
    };
    let (wide, narrow) = (token("edit"), token("read-only"));
    let work = world.path("work").display().to_string();
    let made = call(&wide, "create_session", json!({"backend": "echo", "cwd": work}));
    let id = made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    let listed = call(&narrow, "list_sessions", json!({}));
    assert_eq!(listed["sessions"][0]["id"], id.as_str(), "{listed}");
    assert!(call(&wide, "mail_history", json!({"agent_id": "user"}))["messages"].is_array());
    for (tool, arguments) in [
        ("mail_history", json!({"agent_id": "user"})),
        ("mail_history", json!({"agent_id": id})),
        ("list_files", json!({"path": "agents/approvals"})),
        ("list_files", json!({"path": "agents/user"})),
    ] {
        let refused = call(&narrow, tool, arguments.clone());
        assert_eq!(
            refused["error"]["message"], "permission denied",
            "{tool} {arguments}"
        );
    }
    let denied = call(&narrow, "create_session", json!({"backend": "echo", "cwd": work}));
    assert_eq!(denied["error"]["kind"], "policy_denied");
    // Who comes by HTTP is no session.
    let nobody = call(&wide, "set_state", json!({"state": "idle"}));
    assert_eq!(nobody["error"]["kind"], "agents");
    world.value("beamtalk workspace stop --force");
}

/// The daemon of the agents is its user's and shows one workspace; a client of another project sees nothing of it and does
/// nothing to it.
#[test]
fn the_tree_shows_a_client_no_workspace_but_its_own() {
    let world = World::with_workspace();
    world.value("beamtalk eval 'Transcript show: \"OF-THE-HOUSE\". Fan spawn. nil'");
    let actor = world.value("beamtalk 9p ls agent/actors | grep -v '[.]json' | head -1");
    let actor = actor.trim();
    let mut own = Client::of_owner(&world);
    let read = |path: &str| json!({"path": path});
    let source = own.good("read_file", read("classes/Fan/.source"));
    assert!(source["text"].to_string().contains("Moves air"), "{source}");
    let other = world.path("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(
        other.join("beamtalk.toml"),
        "[package]\nname = \"other\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    let mut command = world.command("beamtalk");
    command
        .args(["mcp", "--toolsets", "all", "--policy", "full"])
        .env("TMPDIR", world.path("tmp"))
        .current_dir(&other);
    let mut client = Client::start(command);
    for path in [
        "classes/Fan/.source".to_owned(),
        "/classes/Fan/speed".to_owned(),
        "transcript".to_owned(),
        "changes/log".to_owned(),
        format!("actors/{actor}/state"),
        "loop/status".to_owned(),
        "eval".to_owned(),
    ] {
        let refused = client.bad("read_file", read(&path));
        assert_eq!(refused["kind"], "path_denied", "{path}: {refused}");
        assert!(refused["hint"].to_string().contains("read_source"), "{refused}");
    }
    for path in ["classes", "actors", "changes", "loop"] {
        assert_eq!(
            client.bad("list_files", read(path))["kind"],
            "path_denied",
            "{path}"
        );
    }
    let write = json!({"path": "loop/events/saved", "text": "1"});
    assert_eq!(client.bad("write_file", write)["kind"], "path_denied");
    // Its agents are the user's, whatever the project.
    client.good("list_files", read("agents"));
    own.good("read_file", read("transcript"));
}
