//! `beamtalk lsp` beside a running workspace, through the real binary: what an editor sees of the image, and what
//! saving does to it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::home::{Home, block_on};
use crate::project::{Client, LAMP, read, started, write};

const LIMIT: Duration = Duration::from_mins(1);

/// A server as an editor runs it.
struct Editor {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// What came while something else was waited for.
    kept: Vec<Value>,
    next: u64,
    root: String,
}

impl Drop for Editor {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Editor {
    fn start(home: &Home, options: Value) -> Self {
        let mut child = home
            .command(&["lsp"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server");
        let output = child.stdout.take().expect("a pipe");
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = message(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let root = home.project().canonicalize().expect("a project");
        let mut editor = Self {
            input: child.stdin.take().expect("a pipe"),
            child,
            messages,
            kept: Vec::new(),
            next: 0,
            root: root.display().to_string(),
        };
        let params = json!({
            "processId": null,
            "rootUri": format!("file://{}", editor.root),
            "capabilities": {"window": {"showDocument": {"support": true}}},
            "initializationOptions": options,
        });
        editor.request("initialize", params).expect("a server");
        editor.notify("initialized", json!({}));
        editor
    }

    fn uri(&self, path: &str) -> String {
        format!("file://{}/{path}", self.root)
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.wait(|message| message["id"] == id && message.get("method").is_none());
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    fn command(&mut self, command: &str, argument: Value) -> Result<Value, Value> {
        let params = json!({"command": command, "arguments": [argument]});
        self.request("workspace/executeCommand", params)
    }

    /// The first message of a kind, whether it came already or comes in time.
    fn wait(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_meant) {
            return self.kept.remove(at);
        }
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self
                .messages
                .recv_timeout(left)
                .expect("the server says it in time");
            if is_meant(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    /// Wait for a state of the workspace.
    fn status(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        self.wait(|message| message["method"] == "beamtalk/status" && is_meant(&message["params"]))
    }

    fn open(&mut self, path: &str, text: &str) {
        let item = json!({"uri": self.uri(path), "languageId": "beamtalk", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({ "textDocument": item }));
    }

    /// Change a document and save it, as a person does.
    fn save(&mut self, home: &Home, path: &str, version: u32, text: &str) {
        let document = json!({"uri": self.uri(path), "version": version});
        let changes = json!([{ "text": text }]);
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": changes}),
        );
        write(home, path, text);
        let document = json!({"uri": self.uri(path)});
        self.notify("textDocument/didSave", json!({ "textDocument": document }));
    }

    fn lenses(&mut self, path: &str) -> Vec<String> {
        let params = json!({"textDocument": {"uri": self.uri(path)}});
        let answer = self.request("textDocument/codeLens", params).expect("lenses");
        let lenses = answer.as_array().expect("lenses").iter();
        lenses
            .filter_map(|lens| lens["command"]["title"].as_str().map(str::to_owned))
            .collect()
    }
}

fn message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

#[test]
fn an_editor_sees_actors_and_unflushed_changes_and_flushes_them() {
    let home = started("lsp-live", &[]);
    let mut editor = Editor::start(&home, json!({"events": true}));
    editor.open("src/lamp.bt", LAMP);
    editor.status(|state| state["state"] == "running");
    assert_eq!(editor.lenses("src/lamp.bt"), [""; 0]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("a := Lamp spawn").await;
        client.text("b := Lamp spawn").await;
        client.text("Lamp >> isOn => 7").await;
    });
    editor.status(|state| state["actors"] == 2 && state["unflushed"] == 1);
    assert_eq!(editor.lenses("src/lamp.bt"), ["live: 2 actors", "unflushed"]);
    let actors = editor.command("beamtalk.actors", json!({})).expect("actors");
    assert_eq!(actors["actors"][0]["class"], "Lamp");
    // What the slots of living actors hold is told beside what is declared.
    let line = LAMP
        .lines()
        .position(|line| line.contains("state: on"))
        .expect("a slot");
    let here = json!({
        "textDocument": {"uri": editor.uri("src/lamp.bt")},
        "position": {"line": line, "character": LAMP.lines().nth(line).and_then(|text| text.find("on")).expect("on")},
    });
    // It tells what it sees in a tenth of a second: on a busy machine that may be fewer, or none.
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let hover = editor
            .request("textDocument/hover", here.clone())
            .expect("a hover");
        let told = hover["contents"]["value"].as_str().expect("a text").to_owned();
        if told.ends_with("*Observed: `False` in 2 of 2 actors*") {
            break;
        }
        let is_partial = told.ends_with("*Observed: `False` in 1 of 2 actors*") || !told.contains("Observed");
        assert!(is_partial && Instant::now() < deadline, "{told}");
    }
    // The source as the image has it is a document.
    let live = editor.request("beamtalk/fetchContent", json!({"uri": "beamtalk-live:/Lamp"}));
    assert!(
        live.expect("a source")["text"]
            .as_str()
            .expect("text")
            .contains("isOn => 7")
    );
    // A flush changes the file, and the editor that has it open is told how.
    let flushed = editor.command("beamtalk.flush", json!({})).expect("a flush");
    assert_eq!(flushed["flushed"], json!(["src/lamp.bt"]));
    assert!(read(&home, "src/lamp.bt").contains("isOn => 7"));
    let edit = editor.wait(|message| message["method"] == "workspace/applyEdit");
    assert!(edit["params"]["edit"].to_string().contains("isOn => 7"));
    editor.status(|state| state["unflushed"] == 0);
    let value = editor
        .command(
            "beamtalk.evaluate",
            json!({"uri": editor.uri("src/lamp.bt"), "text": "Lamp spawn isOn + 1"}),
        )
        .expect("an answer");
    assert_eq!((&value["ok"], &value["value"]), (&json!(true), &json!("8")));
}

#[test]
fn saving_a_file_loads_it_unless_the_person_wants_otherwise() {
    let home = started("lsp-save", &[]);
    let mut editor = Editor::start(&home, json!({"events": true}));
    editor.open("src/lamp.bt", LAMP);
    editor.status(|state| state["state"] == "running");
    editor.save(
        &home,
        "src/lamp.bt",
        2,
        &LAMP.replace("last => 99", "last => 100"),
    );
    editor.wait(|message| message.to_string().contains("loaded into the image"));
    let last = || {
        block_on(async {
            let client = Client::of(&home).await;
            client.value("Lamp spawn last").await
        })
    };
    assert_eq!(last(), 100);
    // A text that does not compile leaves the image as it is.
    editor.save(&home, "src/lamp.bt", 3, &LAMP.replace("last => 99", "last => (("));
    editor.wait(|message| message.to_string().contains("not loaded"));
    assert_eq!(last(), 100);
    // Only on command.
    editor.notify(
        "workspace/didChangeConfiguration",
        json!({"settings": {"beamtalk": {"live": "onCommand"}}}),
    );
    editor.save(
        &home,
        "src/lamp.bt",
        4,
        &LAMP.replace("last => 99", "last => 101"),
    );
    let loaded = editor.command("beamtalk.load", json!({"uri": editor.uri("src/lamp.bt")}));
    assert_eq!(loaded.expect("loaded")["loaded"], json!(["Lamp"]));
    assert_eq!(last(), 101);
}

#[test]
fn a_conflict_is_a_diagnostic_with_ways_out() {
    let home = started("lsp-clash", &[]);
    let mut editor = Editor::start(&home, json!({"events": true}));
    editor.open("src/lamp.bt", LAMP);
    editor.status(|state| state["state"] == "running");
    block_on(async {
        let client = Client::of(&home).await;
        client.text("Lamp >> last => 1").await;
    });
    editor.status(|state| state["unflushed"] == 1);
    let mine = LAMP.replace("last => 99", "last => 2");
    editor.save(&home, "src/lamp.bt", 2, &mine);
    editor.status(|state| state["conflicts"] == 1);
    let published = editor.wait(|message| {
        message["method"] == "textDocument/publishDiagnostics"
            && message.to_string().contains("external_edit")
    });
    let found = published["params"]["diagnostics"]
        .as_array()
        .expect("diagnostics");
    let conflict = found
        .iter()
        .find(|one| one["code"] == "external_edit")
        .expect("a conflict");
    let params = json!({
        "textDocument": {"uri": editor.uri("src/lamp.bt")},
        "range": conflict["range"],
        "context": {"diagnostics": [], "only": ["quickfix"]},
    });
    let actions = editor
        .request("textDocument/codeAction", params)
        .expect("actions");
    let titles: Vec<&str> = actions
        .as_array()
        .expect("actions")
        .iter()
        .filter_map(|action| action["title"].as_str())
        .collect();
    assert_eq!(
        titles,
        [
            "Take the image's version",
            "Take the disk's version",
            "Show the difference"
        ]
    );
    let run = |editor: &mut Editor, action: &Value| {
        let command = action["command"]["command"]
            .as_str()
            .expect("a command")
            .to_owned();
        editor.command(&command, action["command"]["arguments"][0].clone())
    };
    let shown = run(&mut editor, &actions[2]).expect("a difference");
    assert!(
        shown["diff"].as_str().expect("text").contains("+  last => 1"),
        "{shown}"
    );
    let document = editor.wait(|message| message["method"] == "window/showDocument");
    let content = editor.request("beamtalk/fetchContent", json!({"uri": document["params"]["uri"]}));
    assert_eq!(content.expect("text")["text"], shown["diff"]);
    run(&mut editor, &actions[1]).expect("the disk's version");
    editor.status(|state| state["conflicts"] == 0 && state["unflushed"] == 0);
    block_on(async {
        let client = Client::of(&home).await;
        assert_eq!(client.value("Lamp spawn last").await, 2);
    });
    assert_eq!(read(&home, "src/lamp.bt"), mine);
}

#[test]
fn the_server_notices_a_workspace_that_comes_and_goes_and_starts_none() {
    let home = Home::new("lsp-none");
    write(
        &home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.3.0\"\n",
    );
    write(&home, "src/lamp.bt", LAMP);
    let mut editor = Editor::start(&home, json!({"events": true}));
    editor.open("src/lamp.bt", LAMP);
    let refused = editor.command("beamtalk.flush", json!({"uri": editor.uri("src/lamp.bt")}));
    assert!(
        refused.expect_err("no workspace")["message"]
            .to_string()
            .contains("no workspace runs")
    );
    assert!(!home.state().join("workspaces").exists(), "nothing was started");
    let report = home.run(&["lsp", "--check"]);
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(
        text.contains("--  workspace") && text.contains("beamtalk repl"),
        "{text}"
    );
    home.start(&[]);
    editor.status(|state| state["state"] == "running");
    let report = home.run(&["lsp", "--check"]);
    assert!(String::from_utf8_lossy(&report.stdout).contains("ok  workspace"));
    assert!(home.run(&["workspace", "stop"]).status.success());
    editor.status(|state| state["state"] == "none");
}
