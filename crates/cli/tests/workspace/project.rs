//! A project with several classes, odd spacing and a dependency, and a client that works on it.

use beamtalk_client::Connection;
use serde_json::{Map, Value, json};

use crate::home::{Home, eval, kind, request};

pub(crate) const LAMP: &str = "// A lamp, with odd spacing.

/// Gives light.
Actor subclass: Lamp
  state: on = false
  state: count =   0


  /// Is it on?
  isOn   =>   self.on

  // a stray comment
  toggle =>
    self.count := self.count + 1.   // counted
    self.on := self.on not

  class   make => Lamp spawn


  last => 99
";

pub(crate) const FILES: [(&str, &str); 7] = [
    (
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.3.0\"\n\n[dependencies]\nparts = { path = \"../parts\" }\n",
    ),
    ("src/lamp.bt", LAMP),
    (
        "src/room.bt",
        "Object subclass: Room\n  class light => Lamp spawn isOn\n  class size => Screw size\n",
    ),
    (
        "src/main.bt",
        "Object subclass: Main\n  class run: args =>\n    Transcript show: \"hi\"; cr.\n    args size\n  class leave => Program exit: 4\n",
    ),
    (
        "../parts/beamtalk.toml",
        "[package]\nname = \"parts\"\nversion = \"0.1.0\"\n",
    ),
    (
        "../parts/src/screw.bt",
        "Object subclass: Screw\n  class size => 4\n",
    ),
    ("../parts/src/nut.bt", "Object subclass: Nut\n  class size => 5\n"),
];

pub(crate) fn write(home: &Home, file: &str, text: &str) {
    let path = home.project().join(file);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

pub(crate) fn read(home: &Home, file: &str) -> String {
    std::fs::read_to_string(home.project().join(file)).expect("a file")
}

pub(crate) fn exists(home: &Home, file: &str) -> bool {
    home.project().join(file).exists()
}

/// A home whose project is written.
pub(crate) fn written(name: &str) -> Home {
    let home = Home::new(name);
    for (file, text) in FILES {
        write(&home, file, text);
    }
    home
}

/// The same, and its workspace runs.
pub(crate) fn started(name: &str, flags: &[&str]) -> Home {
    let home = written(name);
    home.start(flags);
    home
}

/// A connection with the short words of these tests.
pub(crate) struct Client(pub(crate) Connection);

impl Client {
    pub(crate) async fn of(home: &Home) -> Self {
        Self(home.connect().await)
    }

    pub(crate) async fn ask(&self, op: &str, fields: Value) -> Map<String, Value> {
        request(&self.0, op, fields).await
    }

    /// The answer of a request that goes well.
    pub(crate) async fn good(&self, op: &str, fields: Value) -> Map<String, Value> {
        let answer = self.ask(op, fields.clone()).await;
        assert_eq!(kind(&answer), "none", "{op} {fields}: {answer:?}");
        answer
    }

    pub(crate) async fn refused(&self, op: &str, fields: Value) -> String {
        kind(&self.ask(op, fields).await).to_owned()
    }

    pub(crate) async fn value(&self, code: &str) -> Value {
        let answer = eval(&self.0, code).await;
        assert_eq!(kind(&answer), "none", "{code}: {answer:?}");
        answer["value"].clone()
    }

    pub(crate) async fn text(&self, code: &str) -> String {
        let answer = eval(&self.0, code).await;
        assert_eq!(kind(&answer), "none", "{code}: {answer:?}");
        answer["text"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) async fn error(&self, code: &str) -> String {
        kind(&eval(&self.0, code).await).to_owned()
    }

    pub(crate) async fn save(&self, class: &str, selector: &str, source: &str) -> u64 {
        let fields = json!({"class": class, "selector": selector, "source": source});
        let answer = self.good("save-method", fields).await;
        answer["entry"]["seq"].as_u64().expect("an entry")
    }

    /// The titles of what is pending.
    pub(crate) async fn pending(&self) -> Vec<String> {
        let answer = self.good("changes", json!({})).await;
        let entries = answer["entries"].as_array().expect("entries");
        let title = |entry: &Value| match entry["selector"].as_str() {
            Some(selector) => format!("{} {selector}", entry["class"].as_str().unwrap_or_default()),
            None => format!(
                "{} {}",
                entry["kind"].as_str().unwrap_or_default(),
                entry["class"].as_str().unwrap_or_default()
            ),
        };
        entries.iter().map(title).collect()
    }
}
