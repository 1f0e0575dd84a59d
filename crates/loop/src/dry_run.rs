//! `loop run --dry-run`: what would happen, said without doing any of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use regex::Regex;

use crate::config::{Config, Step, event_variable};
use crate::core::Foresight;
use crate::pattern::Groups;

/// The outcome of a dry run.
pub struct Foreseen {
    pub text: String,
    /// False when an event would be refused.
    pub accepted: bool,
}

/// Foresee the start, the given changes and the given events.
pub fn dry_run(config: &Config, changes: &[String], events: &[(String, String)]) -> Foreseen {
    let mut text = String::from("startup\n");
    for (name, process) in config.process.iter().filter(|(_, process)| process.autostart) {
        put(&mut text, &format!("  start process {name}\n"));
        command(config, &process.command, process.cwd.as_ref(), &mut text);
        variables(
            config,
            &process.env,
            process.events.as_deref(),
            ("startup", &[]),
            &mut text,
        );
    }
    for workflow in &config.startup_workflows {
        execution(config, workflow, &[], &mut text);
    }
    let groups = Groups::new(config);
    let mut requests: BTreeMap<&str, BTreeSet<&String>> = BTreeMap::new();
    for path in changes {
        let matching = groups.matching(path);
        if matching.is_empty() {
            put(&mut text, &format!("change {path}: no group matches\n"));
        }
        for (group, workflow) in matching {
            put(
                &mut text,
                &format!("change {path}: group {group} -> workflow {workflow}\n"),
            );
            requests.entry(workflow).or_default().insert(path);
        }
    }
    for (workflow, changed) in requests {
        let changed: Vec<String> = changed.into_iter().cloned().collect();
        execution(config, workflow, &changed, &mut text);
    }
    let mut accepted = true;
    for (name, value) in events {
        accepted &= event(config, name, value, &mut text);
    }
    Foreseen { text, accepted }
}

fn event(config: &Config, name: &str, value: &str, text: &mut String) -> bool {
    let Some(event) = config.event.get(name) else {
        put(text, &format!("event {name}: rejected, not declared\n"));
        return false;
    };
    let pattern = event
        .pattern
        .as_deref()
        .and_then(|pattern| Regex::new(pattern).ok());
    if pattern.is_some_and(|pattern| !pattern.is_match(value)) {
        put(
            text,
            &format!("event {name}: rejected, the value does not match the pattern\n"),
        );
        return false;
    }
    put(
        text,
        &format!(
            "event {name}: accepted, sets {} -> workflow {}\n",
            event.state_key, event.workflow
        ),
    );
    execution(config, &event.workflow, &[], text);
    true
}

fn execution(config: &Config, workflow: &str, changed: &[String], text: &mut String) {
    put(
        text,
        &format!("  workflow {workflow} changed {}\n", serde_json::json!(changed)),
    );
    for (place, step) in Foresight::foresee(config, workflow) {
        let what = match &step {
            Step::WriteState { key, value } => format!("{key} = {value}"),
            Step::Log { message, .. } => message.clone(),
            Step::SleepMs(duration) => duration.to_string(),
            Step::StartProcess(_)
            | Step::StopProcess(_)
            | Step::RestartProcess(_)
            | Step::WaitForProcess(_)
            | Step::RunHook(_)
            | Step::RunWorkflow(_)
            | Step::NotifyReload => step.target().unwrap_or_default().to_owned(),
        };
        let line = format!(
            "    {} step {} {} {what}",
            place.workflow, place.index, place.action
        );
        put(text, &format!("{}\n", line.trim_end()));
        match &step {
            Step::RunHook(name) => {
                if let Some(hook) = config.hook.get(name) {
                    command(config, &hook.command, hook.cwd.as_ref(), text);
                    let cause = (place.workflow.as_str(), changed);
                    variables(config, &hook.env, hook.events.as_deref(), cause, text);
                }
            }
            Step::StartProcess(name) | Step::RestartProcess(name) => {
                if let Some(process) = config.process.get(name) {
                    command(config, &process.command, process.cwd.as_ref(), text);
                    let cause = ("startup", [].as_slice());
                    variables(config, &process.env, process.events.as_deref(), cause, text);
                }
            }
            Step::StopProcess(_)
            | Step::WaitForProcess(_)
            | Step::RunWorkflow(_)
            | Step::SleepMs(_)
            | Step::WriteState { .. }
            | Step::Log { .. }
            | Step::NotifyReload => {}
        }
    }
}

fn command(config: &Config, command: &[String], cwd: Option<&PathBuf>, text: &mut String) {
    let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
    put(text, &format!("      command {}\n", words.join(" ")));
    let directory = cwd.map_or_else(|| config.root.clone(), |cwd| config.root.join(cwd));
    put(text, &format!("      cwd {}\n", directory.display()));
}

fn variables(
    config: &Config,
    own: &BTreeMap<String, String>,
    scope: Option<&[String]>,
    (workflow, changed): (&str, &[String]),
    text: &mut String,
) {
    let mut set = own.clone();
    set.insert("DEVLOOP_ROOT".into(), config.root.display().to_string());
    set.insert("DEVLOOP_STATE".into(), config.state_file.display().to_string());
    set.insert("DEVLOOP_WORKFLOW".into(), workflow.to_owned());
    set.insert(
        "DEVLOOP_CHANGED_FILES_JSON".into(),
        serde_json::json!(changed).to_string(),
    );
    if !config.event.is_empty() && scope != Some(&[]) {
        let base = format!("http://{}", address(&config.event_server.bind));
        set.insert("DEVLOOP_EVENTS_BASE_URL".into(), base.clone());
        set.insert("DEVLOOP_EVENTS_TOKEN".into(), "<token>".into());
        for name in config
            .event
            .keys()
            .filter(|name| scope.is_none_or(|scope| scope.contains(name)))
        {
            set.insert(event_variable(name), format!("{base}/events/{name}"));
        }
    }
    if config.uses_reload() {
        let base = address(&config.browser_reload_server.bind);
        set.insert(
            "DEVLOOP_BROWSER_EVENTS_URL".into(),
            format!("http://{base}{}", crate::reload::PATH),
        );
    }
    for (name, value) in set {
        put(text, &format!("      env {name}={}\n", quote(&value)));
    }
}

/// The address as far as it is known before binding.
fn address(bind: &str) -> String {
    bind.strip_suffix(":0")
        .map_or_else(|| bind.to_owned(), |host| format!("{host}:<port>"))
}

fn quote(word: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+<>".contains(letter);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

fn put(text: &mut String, line: &str) {
    text.write_str(line).expect("writing to a text cannot fail");
}
