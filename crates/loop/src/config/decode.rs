//! TOML to [`Config`], keeping places: every wrong key is reported, not only the first.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::model::{
    Backoff, BodyStyle, Capture, Config, DebounceMode, EventDeclaration, EventServer, Extract, Hook,
    LogStyle, Observe, OnBusy, Output, Probe, ProbeTarget, Process, ReloadServer, Restart, Rule, Step,
    StopSignal, WatchGroup, Watcher, WatcherKind, Workflow,
};
use super::{Problem, clean, place};

pub(super) struct Decoded {
    pub(super) result: Result<Config, Vec<Problem>>,
    pub(super) unknown: Vec<Problem>,
}

pub(super) fn decode(file: &Path, text: &str) -> Decoded {
    let mut decoder = Decoder {
        file,
        text,
        errors: Vec::new(),
        unknown: Vec::new(),
    };
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let span = error.span().unwrap_or(0..0);
            decoder.fail(span, "", error.message());
            return Decoded {
                result: Err(decoder.errors),
                unknown: Vec::new(),
            };
        }
    };
    let span = document.span();
    let config = decoder.config(Table::new(String::new(), document.get_ref(), span));
    let result = if decoder.errors.is_empty() {
        Ok(config)
    } else {
        Err(decoder.errors)
    };
    Decoded {
        result,
        unknown: decoder.unknown,
    }
}

struct Decoder<'a> {
    file: &'a Path,
    text: &'a str,
    errors: Vec<Problem>,
    unknown: Vec<Problem>,
}

type Value<'a> = Spanned<DeValue<'a>>;

/// A table being decoded: what was asked for is known, the rest is not.
struct Table<'a> {
    path: String,
    entries: BTreeMap<&'a str, (&'a Value<'a>, Range<usize>)>,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'a> Table<'a> {
    fn new(path: String, table: &'a DeTable<'a>, span: Range<usize>) -> Self {
        let entries = table
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), (value, key.span())))
            .collect();
        Self {
            path,
            entries,
            span,
            known: Vec::new(),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<&'a Value<'a>> {
        self.known.push(key);
        self.entries.get(key).map(|(value, _)| *value)
    }

    /// Whether a key that is otherwise a table holds the word `change`, which is then taken.
    fn take_change(&mut self, key: &'static str) -> bool {
        let value = self.entries.get(key).map(|(value, _)| value.get_ref());
        let found = matches!(value, Some(DeValue::String(word)) if word.as_ref() == "change");
        if found {
            self.known.push(key);
        }
        found
    }

    fn key_path(&self, key: &str) -> String {
        join(&self.path, key)
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

impl Decoder<'_> {
    fn fail(&mut self, span: Range<usize>, path: &str, reason: &str) {
        let (line, column) = place(self.text.as_bytes(), span.start);
        // The reason of a syntax error may span lines; a problem is one line.
        let reason = reason.lines().collect::<Vec<_>>().join(", ");
        let text = format!(
            "failed to parse config at {}: {line}:{column}: {reason}",
            self.file.display()
        );
        self.errors.push(Problem {
            text,
            path: (!path.is_empty()).then(|| path.to_owned()),
        });
    }

    fn wrong(&mut self, value: &Value<'_>, path: &str, expected: &str) {
        let found = kind(value.get_ref());
        self.fail(
            value.span(),
            path,
            &format!("'{path}' must be {expected}, not {found}"),
        );
    }

    fn missing(&mut self, table: &Table<'_>, key: &str) {
        let path = table.key_path(key);
        self.fail(table.span.clone(), &path, &format!("missing key '{path}'"));
    }

    /// Warn about the keys of `table` that nothing asked for.
    fn finish(&mut self, table: &Table<'_>) {
        for key in table.entries.keys().filter(|key| !table.known.contains(key)) {
            let mut text = format!("unknown key '{}'", table.key_path(key));
            let near = table
                .known
                .iter()
                .filter(|known| strsim::levenshtein(known, key) <= 2)
                .collect::<Vec<_>>();
            if let [known] = near.as_slice() {
                text = format!("{text}, did you mean '{known}'?");
            }
            self.unknown.push(Problem::new(table.key_path(key), text));
        }
    }

    fn string(&mut self, value: &Value<'_>, path: &str) -> Option<String> {
        if let DeValue::String(text) = value.get_ref() {
            Some(text.as_ref().to_owned())
        } else {
            self.wrong(value, path, "a string");
            None
        }
    }

    fn text(&mut self, table: &mut Table<'_>, key: &'static str) -> Option<String> {
        let value = table.take(key)?;
        self.string(value, &table.key_path(key))
    }

    fn required_text(&mut self, table: &mut Table<'_>, key: &'static str) -> String {
        if table.entries.contains_key(key) {
            return self.text(table, key).unwrap_or_default();
        }
        table.known.push(key);
        self.missing(table, key);
        String::new()
    }

    fn integer(&mut self, table: &mut Table<'_>, key: &'static str, default: u64) -> u64 {
        let Some(value) = table.take(key) else {
            return default;
        };
        let path = table.key_path(key);
        if let DeValue::Integer(number) = value.get_ref() {
            if let Ok(number) = u64::from_str_radix(number.as_str(), number.radix()) {
                return number;
            }
            self.fail(
                value.span(),
                &path,
                &format!("'{path}' must be a whole number from 0 to {}", u64::MAX),
            );
        } else {
            self.wrong(value, &path, "an integer");
        }
        default
    }

    /// An integer that must lie in `range`; anything else is an error with its place.
    fn ranged(
        &mut self,
        table: &mut Table<'_>,
        key: &'static str,
        default: u64,
        range: Range<u64>,
        rule: &str,
    ) -> u64 {
        let number = self.integer(table, key, default);
        if !range.contains(&number)
            && let Some((value, _)) = table.entries.get(key)
        {
            let path = table.key_path(key);
            self.fail(value.span(), &path, &format!("'{path}' must be {rule}"));
        }
        number
    }

    fn boolean(&mut self, table: &mut Table<'_>, key: &'static str, default: bool) -> bool {
        let Some(value) = table.take(key) else {
            return default;
        };
        if let DeValue::Boolean(answer) = value.get_ref() {
            return *answer;
        }
        self.wrong(value, &table.key_path(key), "true or false");
        default
    }

    fn choice<T: Copy>(
        &mut self,
        table: &mut Table<'_>,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let value = table.take(key)?;
        let path = table.key_path(key);
        let text = self.string(value, &path)?;
        let found = choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(name, _)| format!("'{name}'")).collect();
            self.fail(
                value.span(),
                &path,
                &format!(
                    "unknown value '{text}' for '{path}', expected one of {}",
                    names.join(", ")
                ),
            );
        }
        found
    }

    fn strings(&mut self, table: &mut Table<'_>, key: &'static str) -> Option<Vec<String>> {
        let value = table.take(key)?;
        let path = table.key_path(key);
        let DeValue::Array(items) = value.get_ref() else {
            self.wrong(value, &path, "a list of strings");
            return None;
        };
        Some(items.iter().filter_map(|item| self.string(item, &path)).collect())
    }

    fn required_strings(&mut self, table: &mut Table<'_>, key: &'static str) -> Vec<String> {
        if table.entries.contains_key(key) {
            return self.strings(table, key).unwrap_or_default();
        }
        table.known.push(key);
        self.missing(table, key);
        Vec::new()
    }

    fn environment(&mut self, table: &mut Table<'_>) -> BTreeMap<String, String> {
        let Some(entries) = self.table(table, "env") else {
            return BTreeMap::new();
        };
        entries
            .entries
            .iter()
            .filter_map(|(key, (value, _))| {
                let path = entries.key_path(key);
                if key.is_empty() || key.contains(['=', '\0']) {
                    self.fail(value.span(), &path, &format!("'{key}' cannot name a variable"));
                    return None;
                }
                Some(((*key).to_owned(), self.string(value, &path)?))
            })
            .collect()
    }

    fn table<'a>(&mut self, table: &mut Table<'a>, key: &'static str) -> Option<Table<'a>> {
        let value = table.take(key)?;
        self.as_table(value, table.key_path(key))
    }

    fn as_table<'a>(&mut self, value: &'a Value<'a>, path: String) -> Option<Table<'a>> {
        if let DeValue::Table(entries) = value.get_ref() {
            return Some(Table::new(path, entries, value.span()));
        }
        self.wrong(value, &path, "a table");
        None
    }

    /// The tables `[KEY.NAME]`, each decoded by `decode`.
    fn tables<T>(
        &mut self,
        table: &mut Table<'_>,
        key: &'static str,
        mut decode: impl FnMut(&mut Self, &str, &mut Table<'_>) -> T,
    ) -> BTreeMap<String, T> {
        let Some(outer) = self.table(table, key) else {
            return BTreeMap::new();
        };
        let mut found = BTreeMap::new();
        for (name, (value, _)) in &outer.entries {
            if let Some(mut inner) = self.as_table(value, outer.key_path(name)) {
                let decoded = decode(self, name, &mut inner);
                self.finish(&inner);
                found.insert((*name).to_owned(), decoded);
            }
        }
        found
    }

    fn config(&mut self, mut table: Table<'_>) -> Config {
        let directory = self.file.parent().unwrap_or(Path::new("/")).to_owned();
        let root = clean(&directory.join(self.text(&mut table, "root").unwrap_or_else(|| ".".into())));
        let state_file = match self.text(&mut table, "state_file") {
            Some(path) => clean(&directory.join(path)),
            None => root.join(".devloop/state.json"),
        };
        let config = Config {
            file: self.file.to_owned(),
            debounce_ms: self.integer(&mut table, "debounce_ms", 250),
            debounce_mode: self
                .choice(
                    &mut table,
                    "debounce_mode",
                    &[("window", DebounceMode::Window), ("quiet", DebounceMode::Quiet)],
                )
                .unwrap_or_default(),
            reload_config: self.boolean(&mut table, "reload_config", false),
            startup_workflows: self.strings(&mut table, "startup_workflows").unwrap_or_default(),
            ignore: self.strings(&mut table, "ignore").unwrap_or_default(),
            watcher: self.watcher(&mut table),
            watch: self.tables(&mut table, "watch", |decoder, name, table| WatchGroup {
                paths: decoder.required_strings(table, "paths"),
                workflow: decoder.text(table, "workflow").unwrap_or_else(|| name.to_owned()),
                ignore: decoder.strings(table, "ignore").unwrap_or_default(),
                ignore_files: decoder.boolean(table, "ignore_files", false),
                on_busy: decoder
                    .choice(
                        table,
                        "on_busy",
                        &[("queue", OnBusy::Queue), ("restart", OnBusy::Restart)],
                    )
                    .unwrap_or(OnBusy::Queue),
            }),
            process: self.tables(&mut table, "process", |decoder, _, table| decoder.process(table)),
            hook: self.tables(&mut table, "hook", |decoder, _, table| decoder.hook(table)),
            event_server: self.event_server(&mut table),
            browser_reload_server: self.reload_server(&mut table),
            event: self.tables(&mut table, "event", |decoder, _, table| EventDeclaration {
                state_key: decoder.required_text(table, "state_key"),
                workflow: decoder.required_text(table, "workflow"),
                pattern: decoder.text(table, "pattern"),
                max_per_second: decoder.ranged(table, "max_per_second", 20, 1..1001, "from 1 to 1000"),
            }),
            workflow: self.tables(&mut table, "workflow", |decoder, _, table| {
                decoder.workflow(table)
            }),
            root,
            state_file,
        };
        self.finish(&table);
        config
    }

    fn watcher(&mut self, table: &mut Table<'_>) -> Watcher {
        let mut watcher = Watcher {
            kind: WatcherKind::Native,
            poll_interval_ms: 250,
        };
        if let Some(mut inner) = self.table(table, "watcher") {
            let kinds = [("native", WatcherKind::Native), ("poll", WatcherKind::Poll)];
            watcher.kind = self.choice(&mut inner, "kind", &kinds).unwrap_or(watcher.kind);
            watcher.poll_interval_ms = self.integer(&mut inner, "poll_interval_ms", 250);
            self.finish(&inner);
        }
        watcher
    }

    fn event_server(&mut self, table: &mut Table<'_>) -> EventServer {
        let mut server = EventServer {
            bind: "127.0.0.1:0".into(),
            allow_origins: Vec::new(),
        };
        if let Some(mut inner) = self.table(table, "event_server") {
            server.bind = self.text(&mut inner, "bind").unwrap_or(server.bind);
            server.allow_origins = self.strings(&mut inner, "allow_origins").unwrap_or_default();
            self.finish(&inner);
        }
        server
    }

    fn reload_server(&mut self, table: &mut Table<'_>) -> ReloadServer {
        let mut server = ReloadServer {
            bind: "127.0.0.1:0".into(),
        };
        if let Some(mut inner) = self.table(table, "browser_reload_server") {
            server.bind = self.text(&mut inner, "bind").unwrap_or(server.bind);
            self.finish(&inner);
        }
        server
    }

    fn process(&mut self, table: &mut Table<'_>) -> Process {
        let restarts = [
            ("never", Restart::Never),
            ("on_failure", Restart::OnFailure),
            ("always", Restart::Always),
        ];
        let signals = [
            ("SIGTERM", StopSignal::Term),
            ("SIGINT", StopSignal::Int),
            ("SIGQUIT", StopSignal::Quit),
            ("SIGHUP", StopSignal::Hup),
        ];
        Process {
            command: self.required_strings(table, "command"),
            cwd: self.text(table, "cwd").map(PathBuf::from),
            autostart: self.boolean(table, "autostart", true),
            restart: self.choice(table, "restart", &restarts).unwrap_or(Restart::Never),
            env: self.environment(table),
            readiness: self.probe(table, "readiness"),
            liveness: self.probe(table, "liveness"),
            output: self.output(table, BodyStyle::Plain, Rules::Allowed),
            events: self.strings(table, "events"),
            stop_signal: self
                .choice(table, "stop_signal", &signals)
                .unwrap_or(StopSignal::Term),
            stop_grace_ms: self.integer(table, "stop_grace_ms", 5000),
            backoff: self.backoff(table),
            after: self.strings(table, "after").unwrap_or_default(),
            log: self.text(table, "log").map(PathBuf::from),
            detached: self.boolean(table, "detached", false),
        }
    }

    fn backoff(&mut self, table: &mut Table<'_>) -> Backoff {
        let mut backoff = Backoff::default();
        if let Some(mut inner) = self.table(table, "backoff") {
            backoff.initial_ms = self.integer(&mut inner, "initial_ms", backoff.initial_ms);
            backoff.max_ms = self.integer(&mut inner, "max_ms", backoff.max_ms);
            backoff.reset_after_ms = self.integer(&mut inner, "reset_after_ms", backoff.reset_after_ms);
            self.finish(&inner);
        }
        backoff
    }

    fn probe(&mut self, table: &mut Table<'_>, key: &'static str) -> Option<Probe> {
        #[derive(Clone, Copy)]
        enum Kind {
            Http,
            StateKey,
        }
        let mut inner = self.table(table, key)?;
        if !inner.entries.contains_key("kind") {
            self.missing(&inner, "kind");
        }
        let kinds = [("http", Kind::Http), ("state_key", Kind::StateKey)];
        let kind = self.choice(&mut inner, "kind", &kinds).unwrap_or(Kind::Http);
        let url = self.text(&mut inner, "url").unwrap_or_default();
        let state_key = self.text(&mut inner, "key").unwrap_or_default();
        let probe = Probe {
            target: match kind {
                Kind::Http => ProbeTarget::Http(url),
                Kind::StateKey => ProbeTarget::StateKey(state_key),
            },
            interval_ms: self.integer(&mut inner, "interval_ms", 500).max(10),
            timeout_ms: self.integer(&mut inner, "timeout_ms", 15_000),
            failures: self.ranged(&mut inner, "failures", 1, 1..u64::MAX, "1 or more"),
        };
        self.finish(&inner);
        Some(probe)
    }

    fn output(&mut self, table: &mut Table<'_>, style: BodyStyle, rules: Rules) -> Output {
        let mut output = Output::new(style);
        let Some(mut inner) = self.table(table, "output") else {
            return output;
        };
        output.inherit = self.boolean(&mut inner, "inherit", true);
        let styles = [("plain", BodyStyle::Plain), ("dim", BodyStyle::Dim)];
        output.body_style = self.choice(&mut inner, "body_style", &styles).unwrap_or(style);
        if rules == Rules::Allowed
            && let Some(value) = inner.take("rules")
        {
            let path = inner.key_path("rules");
            if let DeValue::Array(items) = value.get_ref() {
                output.rules = items.iter().filter_map(|item| self.rule(item, &path)).collect();
            } else {
                self.wrong(value, &path, "a list of tables");
            }
        }
        self.finish(&inner);
        output
    }

    fn rule(&mut self, value: &Value<'_>, path: &str) -> Option<Rule> {
        let mut table = self.as_table(value, path.to_owned())?;
        let extracts = [("regex", Extract::Regex), ("url_token", Extract::UrlToken)];
        let rule = Rule {
            state_key: self.required_text(&mut table, "state_key"),
            extract: self
                .choice(&mut table, "extract", &extracts)
                .unwrap_or(Extract::Regex),
            pattern: self.text(&mut table, "pattern"),
            capture_group: self.integer(&mut table, "capture_group", 1),
        };
        self.finish(&table);
        Some(rule)
    }

    fn hook(&mut self, table: &mut Table<'_>) -> Hook {
        let captures = [
            ("ignore", Capture::Ignore),
            ("text", Capture::Text),
            ("json", Capture::Json),
        ];
        let has_timeout = table.entries.contains_key("timeout_ms");
        let timeout = self.ranged(table, "timeout_ms", 1, 1..u64::MAX, "greater than zero");
        let quiet_polls = table.take_change("output");
        Hook {
            command: self.required_strings(table, "command"),
            cwd: self.text(table, "cwd").map(PathBuf::from),
            env: self.environment(table),
            output: if quiet_polls {
                Output::new(BodyStyle::Dim)
            } else {
                self.output(table, BodyStyle::Dim, Rules::Refused)
            },
            capture: self
                .choice(table, "capture", &captures)
                .unwrap_or(Capture::Ignore),
            state_key: self.text(table, "state_key"),
            observe: self.observe(table),
            events: self.strings(table, "events"),
            timeout_ms: has_timeout.then_some(timeout),
            quiet_polls,
            detached: self.boolean(table, "detached", false),
        }
    }

    fn observe(&mut self, table: &mut Table<'_>) -> Option<Observe> {
        let mut inner = self.table(table, "observe")?;
        let observe = Observe {
            workflow: self.required_text(&mut inner, "workflow"),
            interval_ms: self.integer(&mut inner, "interval_ms", 1000),
        };
        self.finish(&inner);
        Some(observe)
    }

    fn workflow(&mut self, table: &mut Table<'_>) -> Workflow {
        let path = table.key_path("steps");
        let value = table.take("steps");
        let steps = if let Some(DeValue::Array(items)) = value.map(Spanned::get_ref) {
            let step = |(index, item)| self.step(item, format!("{path}[{}]", index + 1));
            items.iter().enumerate().filter_map(step).collect()
        } else {
            match value {
                Some(value) => self.wrong(value, &path, "a list of steps"),
                None => self.missing(table, "steps"),
            }
            Vec::new()
        };
        Workflow {
            steps,
            triggers: self.strings(table, "triggers").unwrap_or_default(),
        }
    }

    fn step(&mut self, value: &Value<'_>, path: String) -> Option<Step> {
        const ACTIONS: [&str; 10] = [
            "start_process",
            "stop_process",
            "restart_process",
            "wait_for_process",
            "run_hook",
            "run_workflow",
            "sleep_ms",
            "write_state",
            "log",
            "notify_reload",
        ];
        let mut table = self.as_table(value, path)?;
        if !table.entries.contains_key("action") {
            self.missing(&table, "action");
            return None;
        }
        let action = self.choice(&mut table, "action", &ACTIONS.map(|name| (name, name)))?;
        let step = match action {
            "start_process" => Step::StartProcess(self.required_text(&mut table, "process")),
            "stop_process" => Step::StopProcess(self.required_text(&mut table, "process")),
            "restart_process" => Step::RestartProcess(self.required_text(&mut table, "process")),
            "wait_for_process" => Step::WaitForProcess(self.required_text(&mut table, "process")),
            "run_hook" => Step::RunHook(self.required_text(&mut table, "hook")),
            "run_workflow" => Step::RunWorkflow(self.required_text(&mut table, "workflow")),
            "sleep_ms" => {
                if !table.entries.contains_key("duration_ms") {
                    self.missing(&table, "duration_ms");
                }
                Step::SleepMs(self.integer(&mut table, "duration_ms", 0))
            }
            "write_state" => Step::WriteState {
                key: self.required_text(&mut table, "key"),
                value: self.required_text(&mut table, "value"),
            },
            "log" => {
                let styles = [("plain", LogStyle::Plain), ("boxed", LogStyle::Boxed)];
                Step::Log {
                    message: self.required_text(&mut table, "message"),
                    style: self
                        .choice(&mut table, "style", &styles)
                        .unwrap_or(LogStyle::Plain),
                }
            }
            _ => Step::NotifyReload,
        };
        self.finish(&table);
        Some(step)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rules {
    Allowed,
    Refused,
}
