//! What is legal in a config but most likely not meant.

use std::collections::BTreeMap;

use regex::Regex;

use super::model::{Capture, Config, Extract, event_variable};
use super::{Problem, reachable};
use crate::pattern::Pattern;

pub(super) fn warnings(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    paths(config, &mut found);
    rules(config, &mut found);
    for (name, hook) in &config.hook {
        if hook.observe.is_some() && hook.capture == Capture::Ignore {
            found.push(Problem::new(
                format!("hook.{name}"),
                format!("hook '{name}' is observed but captures nothing, so it can never fire"),
            ));
        }
    }
    events(config, &mut found);
    if config
        .browser_reload_server
        .address()
        .is_some_and(|address| !address.ip().is_loopback())
    {
        let bind = &config.browser_reload_server.bind;
        found.push(Problem::new(
            "browser_reload_server",
            format!("browser_reload_server bind '{bind}' is not a loopback address"),
        ));
    }
    let reached = reachable(config);
    for name in config
        .workflow
        .keys()
        .filter(|name| !reached.contains(name.as_str()))
    {
        found.push(Problem::new(
            format!("workflow.{name}"),
            format!("nothing can reach workflow '{name}'"),
        ));
    }
    found
}

fn paths(config: &Config, found: &mut Vec<Problem>) {
    for (name, group) in &config.watch {
        for text in &group.paths {
            let table = format!("watch.{name}");
            if text.starts_with('/') || text.split('/').any(|segment| segment == "..") {
                found.push(Problem::new(
                    table,
                    format!("path '{text}' in watch group '{name}' leaves root and never matches"),
                ));
            } else if let Ok(pattern) = Pattern::new(text)
                && let Some(literal) = pattern.literal()
                && config.root.join(literal).is_dir()
            {
                found.push(Problem::new(
                    table,
                    format!(
                        "path '{text}' in watch group '{name}' is a directory; write '{literal}/' to watch what \
                         is inside"
                    ),
                ));
            }
        }
    }
}

fn rules(config: &Config, found: &mut Vec<Problem>) {
    for (name, process) in &config.process {
        for rule in process
            .output
            .rules
            .iter()
            .filter(|rule| rule.extract == Extract::Regex)
        {
            let key = &rule.state_key;
            let text = match &rule.pattern {
                None => {
                    format!("output rule for '{key}' of process '{name}' has no pattern and never matches")
                }
                Some(pattern) => match Regex::new(pattern) {
                    Ok(regex) if rule.capture_group >= regex.captures_len() as u64 => format!(
                        "output rule for '{key}' of process '{name}' asks for capture group {}, which the \
                         pattern lacks",
                        rule.capture_group
                    ),
                    Ok(_) | Err(_) => continue,
                },
            };
            found.push(Problem::new(format!("process.{name}"), text));
        }
    }
}

fn events(config: &Config, found: &mut Vec<Problem>) {
    let mut variables: BTreeMap<String, &str> = BTreeMap::new();
    for (name, event) in &config.event {
        if let Some(pattern) = &event.pattern
            && !(pattern.starts_with('^') && pattern.ends_with('$') && !pattern.ends_with("\\$"))
        {
            found.push(Problem::new(
                format!("event.{name}"),
                format!("pattern '{pattern}' of event '{name}' is not anchored with ^ and $"),
            ));
        }
        let variable = event_variable(name);
        if let Some(other) = variables.insert(variable.clone(), name) {
            found.push(Problem::new(
                format!("event.{name}"),
                format!("events '{other}' and '{name}' both map to {variable}; '{name}' wins"),
            ));
        }
    }
}
