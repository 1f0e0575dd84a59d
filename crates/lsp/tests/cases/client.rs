//! A client in the same process: a project in a directory of its own, the server on a thread.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use beamtalk_lsp::Ended;
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

use crate::source::Case;

/// No answer takes longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Client {
    connection: Connection,
    server: JoinHandle<Ended>,
    directory: tempfile::TempDir,
    root: PathBuf,
    next: i32,
    /// What the server offers.
    pub(crate) capabilities: Value,
}

impl Client {
    /// Write the files of a case, start a server there, open the file with the marker.
    pub(crate) fn start(case: &Case) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let has_manifest = case.files.iter().any(|(path, _)| path == "beamtalk.toml");
        if !has_manifest && case.option("project") != Some("no") {
            let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n";
            std::fs::write(root.join("beamtalk.toml"), manifest).unwrap();
        }
        for (path, text) in &case.files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let (ours, theirs) = Connection::memory();
        let server = std::thread::spawn(move || {
            let setup = beamtalk_lsp::Setup::default();
            beamtalk_lsp::serve(&theirs, setup).unwrap()
        });
        let mut client = Self {
            connection: ours,
            server,
            directory,
            root,
            next: 0,
            capabilities: Value::Null,
        };
        client.initialize(case);
        let text = case.text(&case.marked);
        let uri = client.uri(&case.marked);
        let item = json!({"uri": uri, "languageId": "beamtalk", "version": 1, "text": text});
        client.notify("textDocument/didOpen", json!({ "textDocument": item }));
        if case.option("project") == Some("no") {
            // The folder is read for the file in it.
            client.wait_for("workspace/diagnostic/refresh");
        }
        client
    }

    fn initialize(&mut self, case: &Case) {
        let mut edits =
            json!({"documentChanges": true, "resourceOperations": ["create", "rename", "delete"]});
        if case.option("annotations") != Some("no") {
            edits["changeAnnotationSupport"] = json!({});
        }
        let mut capabilities = json!({
            "textDocument": {"diagnostic": {}},
            "workspace": {"workspaceEdit": edits, "diagnostics": {"refreshSupport": true}},
        });
        if let Some(encoding) = case.option("encoding") {
            capabilities["general"] = json!({"positionEncodings": [encoding]});
        }
        let options: Value = case
            .option("options")
            .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        let params = json!({
            "processId": null,
            "rootUri": format!("file://{}", self.root.display()),
            "capabilities": capabilities,
            "initializationOptions": options,
        });
        let answer = self.request("initialize", params).unwrap();
        self.capabilities = answer["capabilities"].clone();
        self.notify("initialized", json!({}));
        if case.option("project") != Some("no") {
            // The project is read.
            self.wait_for("workspace/diagnostic/refresh");
        }
    }

    pub(crate) fn uri(&self, path: &str) -> String {
        if path.contains(':') {
            return path.to_owned();
        }
        format!("file://{}/{path}", self.root.display())
    }

    /// Where a file of the case is.
    pub(crate) fn path_of(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The path of a file of the case, or the URI as it is.
    pub(crate) fn path(&self, uri: &str) -> String {
        let root = format!("file://{}/", self.root.display());
        uri.strip_prefix(&root).unwrap_or(uri).to_owned()
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        let message = Notification::new(method.to_owned(), params);
        self.connection
            .sender
            .send(Message::Notification(message))
            .unwrap();
    }

    /// Send a request; its answer comes when it comes.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> i32 {
        self.next += 1;
        let message = Request::new(RequestId::from(self.next), method.to_owned(), params);
        self.connection.sender.send(Message::Request(message)).unwrap();
        self.next
    }

    /// The result, or the error as text.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = RequestId::from(self.send(method, params));
        loop {
            if let Message::Response(Response {
                id: known,
                response_result,
            }) = self.receive()
                && known == id
            {
                let root = self.root.display().to_string();
                return response_result
                    .map_err(|error| format!("error {}: {}", error.code, error.message.replace(&root, "")));
            }
        }
    }

    /// Wait until the server asks for something.
    pub(crate) fn wait_for(&self, method: &str) {
        loop {
            if matches!(self.receive(), Message::Request(request) if request.method == method) {
                return;
            }
        }
    }

    pub(crate) fn receive(&self) -> Message {
        self.connection
            .receiver
            .recv_timeout(PATIENCE)
            .expect("the server answers")
    }

    pub(crate) fn finish(mut self) {
        assert_eq!(self.request("shutdown", Value::Null), Ok(Value::Null));
        self.notify("exit", Value::Null);
        assert_eq!(self.server.join().expect("the server lives"), Ended::Properly);
        drop(self.directory);
    }
}
