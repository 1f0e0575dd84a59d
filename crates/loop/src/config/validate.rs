//! Everything that makes a decoded config unusable, in the documented order.

use regex::Regex;

use super::model::{Capture, Config, Hook, Probe, ProbeTarget, Process, Step};
use super::{Problem, RemoteBind, graph};
use crate::pattern::Pattern;

pub(super) fn errors(config: &Config, remote: RemoteBind) -> Vec<Problem> {
    let mut found = Vec::new();
    root_and_watches(config, &mut found);
    processes(config, &mut found);
    hooks(config, &mut found);
    servers(config, remote, &mut found);
    events(config, &mut found);
    workflows(config, &mut found);
    for name in missing(config, &config.startup_workflows) {
        found.push(Problem::new(
            "startup_workflows",
            format!("startup workflow references missing workflow '{name}'"),
        ));
    }
    found
}

fn missing<'a>(config: &'a Config, names: &'a [String]) -> impl Iterator<Item = &'a String> {
    names.iter().filter(|name| !config.workflow.contains_key(*name))
}

fn root_and_watches(config: &Config, found: &mut Vec<Problem>) {
    if !config.root.is_dir() {
        found.push(Problem::new(
            "root",
            format!("config root '{}' does not exist", config.root.display()),
        ));
    }
    if config.watch.is_empty() {
        found.push(Problem::whole("config must define at least one watch group"));
    }
    for (name, _) in config.watch.iter().filter(|(_, group)| group.paths.is_empty()) {
        found.push(Problem::new(
            format!("watch.{name}"),
            format!("watch group '{name}' must define at least one path"),
        ));
    }
    for (name, group) in &config.watch {
        if !config.workflow.contains_key(&group.workflow) {
            found.push(Problem::new(
                format!("watch.{name}"),
                format!(
                    "watch group '{name}' references missing workflow '{}'",
                    group.workflow
                ),
            ));
        }
    }
    for text in &config.ignore {
        if let Err(reason) = Pattern::new(text) {
            found.push(Problem::new(
                "ignore",
                format!("invalid glob '{text}' in ignore: {reason}"),
            ));
        }
    }
    for (name, group) in &config.watch {
        for text in group.paths.iter().chain(&group.ignore) {
            if let Err(reason) = Pattern::new(text) {
                found.push(Problem::new(
                    format!("watch.{name}"),
                    format!("invalid glob '{text}' in watch group '{name}': {reason}"),
                ));
            }
        }
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn is_empty_command(command: &[String]) -> bool {
    command.first().is_none_or(|program| is_blank(program))
}

fn processes(config: &Config, found: &mut Vec<Problem>) {
    type Check = fn(&Config, &Process) -> Vec<String>;
    let checks: [Check; 5] = [command_of, probes_of, rules_of, scope_of, order_of];
    for check in checks {
        for (name, process) in &config.process {
            for text in check(config, process) {
                found.push(Problem::new(
                    format!("process.{name}"),
                    format!("invalid process '{name}': {text}"),
                ));
            }
        }
    }
    let after = |name: &str| {
        let process = config.process.get(name);
        process.map(|process| process.after.iter().map(String::as_str).collect())
    };
    for (name, cycle) in graph::cycles(config.process.keys(), after) {
        found.push(Problem::new(
            format!("process.{name}"),
            format!(
                "invalid process '{name}': after recursion detected: {}",
                cycle.join(" -> ")
            ),
        ));
    }
}

fn order_of(config: &Config, process: &Process) -> Vec<String> {
    process
        .after
        .iter()
        .filter(|name| !config.process.contains_key(*name))
        .map(|name| format!("after references missing process '{name}'"))
        .collect()
}

fn command_of(_: &Config, process: &Process) -> Vec<String> {
    if is_empty_command(&process.command) {
        vec!["process command must not be empty".into()]
    } else {
        Vec::new()
    }
}

fn probes_of(_: &Config, process: &Process) -> Vec<String> {
    let blank = |probe: &Probe| match &probe.target {
        ProbeTarget::Http(url) if is_blank(url) => Some("http probe url must not be empty".to_owned()),
        ProbeTarget::StateKey(key) if is_blank(key) => {
            Some("state_key probe key must not be empty".to_owned())
        }
        ProbeTarget::Http(_) | ProbeTarget::StateKey(_) => None,
    };
    process
        .readiness
        .iter()
        .chain(&process.liveness)
        .filter_map(blank)
        .collect()
}

fn rules_of(_: &Config, process: &Process) -> Vec<String> {
    let mut texts = Vec::new();
    for rule in &process.output.rules {
        if is_blank(&rule.state_key) {
            texts.push("output rule state_key must not be empty".to_owned());
        }
        if let Some(pattern) = &rule.pattern
            && let Err(error) = Regex::new(pattern)
        {
            texts.push(format!(
                "invalid output rule regex '{pattern}': {}",
                one_line(&error)
            ));
        }
    }
    texts
}

fn scope_of(config: &Config, process: &Process) -> Vec<String> {
    unknown_events(config, process.events.as_deref())
}

fn unknown_events(config: &Config, events: Option<&[String]>) -> Vec<String> {
    events
        .unwrap_or_default()
        .iter()
        .filter(|event| !config.event.contains_key(*event))
        .map(|event| format!("events references missing event '{event}'"))
        .collect()
}

fn hooks(config: &Config, found: &mut Vec<Problem>) {
    type Check = fn(&Config, &Hook) -> Vec<String>;
    let checks: [Check; 3] = [hook_itself, observation, |config, hook| {
        unknown_events(config, hook.events.as_deref())
    }];
    for check in checks {
        for (name, hook) in &config.hook {
            for text in check(config, hook) {
                found.push(Problem::new(
                    format!("hook.{name}"),
                    format!("invalid hook '{name}': {text}"),
                ));
            }
        }
    }
    for (name, hook) in &config.hook {
        if let Some(observe) = &hook.observe
            && !is_blank(&observe.workflow)
            && !config.workflow.contains_key(&observe.workflow)
        {
            found.push(Problem::new(
                format!("hook.{name}"),
                format!("hook '{name}' observes missing workflow '{}'", observe.workflow),
            ));
        }
    }
}

fn hook_itself(_: &Config, hook: &Hook) -> Vec<String> {
    let mut texts = Vec::new();
    if is_empty_command(&hook.command) {
        texts.push("hook command must not be empty".to_owned());
    }
    if hook.capture == Capture::Text && hook.state_key.as_deref().is_none_or(is_blank) {
        texts.push("text capture requires state_key".to_owned());
    }
    texts
}

fn observation(_: &Config, hook: &Hook) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(observe) = &hook.observe {
        if is_blank(&observe.workflow) {
            texts.push("observed hook workflow must not be empty".to_owned());
        }
        if observe.interval_ms == 0 {
            texts.push("observed hook interval_ms must be greater than zero".to_owned());
        }
    }
    texts
}

fn servers(config: &Config, remote: RemoteBind, found: &mut Vec<Problem>) {
    let events = config.event_server.address();
    if events.is_none() {
        let text = format!(
            "event_server bind '{}' is not a valid socket address",
            config.event_server.bind
        );
        found.push(Problem::new("event_server", text));
    }
    if config.browser_reload_server.address().is_none() {
        let bind = &config.browser_reload_server.bind;
        let text = format!("browser_reload_server bind '{bind}' is not a valid socket address");
        found.push(Problem::new("browser_reload_server", text));
    }
    if remote == RemoteBind::Refuse && events.is_some_and(|address| !address.ip().is_loopback()) {
        let bind = &config.event_server.bind;
        found.push(Problem::new(
            "event_server",
            format!(
                "event_server bind '{bind}' is not a loopback address; pass --allow-remote-bind to accept \
                 the risk"
            ),
        ));
    }
    if config.watcher.poll_interval_ms == 0 {
        found.push(Problem::new(
            "watcher",
            "watcher poll_interval_ms must be greater than zero",
        ));
    }
}

fn events(config: &Config, found: &mut Vec<Problem>) {
    for (name, event) in &config.event {
        let mut invalid = |text: String| {
            found.push(Problem::new(
                format!("event.{name}"),
                format!("invalid event '{name}': {text}"),
            ));
        };
        if is_blank(&event.state_key) {
            invalid("event state_key must not be empty".into());
        }
        if is_blank(&event.workflow) {
            invalid("event workflow must not be empty".into());
        }
        if let Some(pattern) = &event.pattern
            && let Err(error) = Regex::new(pattern)
        {
            invalid(format!("invalid event regex '{pattern}': {}", one_line(&error)));
        }
    }
    for (name, event) in &config.event {
        if !is_blank(&event.workflow) && !config.workflow.contains_key(&event.workflow) {
            found.push(Problem::new(
                format!("event.{name}"),
                format!("event '{name}' references missing workflow '{}'", event.workflow),
            ));
        }
    }
}

fn workflows(config: &Config, found: &mut Vec<Problem>) {
    let mut invalid = |name: &str, text: String| {
        found.push(Problem::new(
            format!("workflow.{name}"),
            format!("invalid workflow '{name}': {text}"),
        ));
    };
    for (name, _) in config
        .workflow
        .iter()
        .filter(|(_, workflow)| workflow.steps.is_empty())
    {
        invalid(name, "workflow must contain at least one step".into());
    }
    for (name, workflow) in &config.workflow {
        for step in &workflow.steps {
            if let Some((kind, target)) = missing_target(config, step) {
                invalid(name, format!("workflow references missing {kind} '{target}'"));
            }
        }
        for target in missing(config, &workflow.triggers) {
            invalid(name, format!("workflow references missing workflow '{target}'"));
        }
    }
    for (name, cycle) in graph::workflow_cycles(&config.workflow) {
        invalid(
            &name,
            format!("workflow recursion detected: {}", cycle.join(" -> ")),
        );
    }
    for (name, _) in config
        .workflow
        .iter()
        .filter(|(_, workflow)| !workflow.triggers.is_empty())
    {
        for other in graph::ambiguous(&config.workflow, name) {
            invalid(
                name,
                format!("workflow '{other}' would run both inline and as a trigger in one execution"),
            );
        }
    }
}

fn missing_target<'a>(config: &Config, step: &'a Step) -> Option<(&'static str, &'a str)> {
    match step {
        Step::StartProcess(name)
        | Step::StopProcess(name)
        | Step::RestartProcess(name)
        | Step::WaitForProcess(name) => (!config.process.contains_key(name)).then_some(("process", name)),
        Step::RunHook(name) => (!config.hook.contains_key(name)).then_some(("hook", name)),
        Step::RunWorkflow(name) => (!config.workflow.contains_key(name)).then_some(("workflow", name)),
        Step::SleepMs(_) | Step::WriteState { .. } | Step::Log { .. } | Step::NotifyReload => None,
    }
}

/// The gist of a regex error, which draws the pattern over several lines.
pub(super) fn one_line(error: &regex::Error) -> String {
    let text = error.to_string();
    match text
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("error: "))
    {
        Some(reason) => reason.to_owned(),
        None => text.lines().collect::<Vec<_>>().join(" "),
    }
}
