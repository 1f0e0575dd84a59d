//! `loop graph`: who sets which workflow in motion, as text or for Graphviz.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use crate::config::{Config, Step};

/// One line per entry point and workflow.
pub fn graph_text(config: &Config) -> String {
    let mut text = String::new();
    for (kind, name, workflow, note) in entries(config) {
        let name = if name.is_empty() {
            String::new()
        } else {
            format!(" {name}")
        };
        put(&mut text, &format!("{kind}{name} -> {workflow}{note}\n"));
    }
    for (name, workflow) in &config.workflow {
        let steps: Vec<String> = workflow.steps.iter().map(short).collect();
        let triggers = match workflow.triggers.as_slice() {
            [] => String::new(),
            triggers => format!("; => {}", triggers.join(", ")),
        };
        put(
            &mut text,
            &format!("workflow {name}: {}{triggers}\n", steps.join(", ")),
        );
    }
    text
}

/// Kind, name, workflow and a note in brackets, for everything that begins an execution.
fn entries(config: &Config) -> Vec<(&'static str, &str, &str, String)> {
    let startup = config
        .startup_workflows
        .iter()
        .map(|workflow| ("startup", "", workflow.as_str(), String::new()));
    let watches = config.watch.iter().map(|(name, group)| {
        (
            "watch",
            name.as_str(),
            group.workflow.as_str(),
            format!(" ({})", group.paths.join(", ")),
        )
    });
    let events = config.event.iter().map(|(name, event)| {
        (
            "event",
            name.as_str(),
            event.workflow.as_str(),
            format!(" (state {})", event.state_key),
        )
    });
    let observed = config.hook.iter().filter_map(|(name, hook)| {
        let observe = hook.observe.as_ref()?;
        Some(("observe", name.as_str(), observe.workflow.as_str(), String::new()))
    });
    startup.chain(watches).chain(events).chain(observed).collect()
}

fn short(step: &Step) -> String {
    match step {
        Step::StartProcess(name) => format!("start {name}"),
        Step::StopProcess(name) => format!("stop {name}"),
        Step::RestartProcess(name) => format!("restart {name}"),
        Step::WaitForProcess(name) => format!("wait {name}"),
        Step::RunHook(name) => format!("hook {name}"),
        Step::RunWorkflow(name) => format!("-> {name}"),
        Step::SleepMs(duration) => format!("sleep {duration}"),
        Step::WriteState { key, .. } => format!("write {key}"),
        Step::Log { .. } => "log".to_owned(),
        Step::NotifyReload => "reload".to_owned(),
    }
}

/// The same for programs: `kind` of a node is `startup`, `watch`, `event`, `observe`, `workflow`, `process` or `hook`, of
/// an edge `entry`, `inline`, `trigger` or `uses`.
#[derive(Debug, Serialize)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Node {
    pub id: String,
    pub kind: &'static str,
    pub name: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Edge {
    pub from: String,
    pub to: String,
    pub kind: &'static str,
}

/// Who sets what in motion; nodes in the order of their ids.
pub fn graph(config: &Config) -> Graph {
    let mut nodes = BTreeSet::new();
    let mut edges: Vec<Edge> = Vec::new();
    let mut node = |kind: &'static str, name: &str| {
        let id = if name.is_empty() {
            kind.to_owned()
        } else {
            format!("{kind} {name}")
        };
        nodes.insert(Node {
            id: id.clone(),
            kind,
            name: name.to_owned(),
        });
        id
    };
    let mut edge = |from: &str, to: String, kind| {
        let edge = Edge {
            from: from.to_owned(),
            to,
            kind,
        };
        if kind != "uses" || !edges.contains(&edge) {
            edges.push(edge);
        }
    };
    for (kind, name, workflow, _) in entries(config) {
        let from = node(kind, name);
        edge(&from, node("workflow", workflow), "entry");
    }
    for (name, workflow) in &config.workflow {
        let from = node("workflow", name);
        for step in &workflow.steps {
            match step {
                Step::RunWorkflow(other) => edge(&from, node("workflow", other), "inline"),
                Step::StartProcess(other)
                | Step::StopProcess(other)
                | Step::RestartProcess(other)
                | Step::WaitForProcess(other) => edge(&from, node("process", other), "uses"),
                Step::RunHook(other) => edge(&from, node("hook", other), "uses"),
                Step::SleepMs(_) | Step::WriteState { .. } | Step::Log { .. } | Step::NotifyReload => {}
            }
        }
        for other in &workflow.triggers {
            edge(&from, node("workflow", other), "trigger");
        }
    }
    Graph {
        nodes: nodes.into_iter().collect(),
        edges,
    }
}

/// The same as a Graphviz document.
pub fn graph_dot(config: &Config) -> String {
    let graph = graph(config);
    let mut text = String::from("digraph loop {\n");
    for node in &graph.nodes {
        let id = quote(&node.id);
        let shape = match node.kind {
            "workflow" => format!("shape=box, label={}", quote(&node.name)),
            "process" | "hook" => format!("shape=plaintext, label={}", quote(&node.name)),
            _ => "shape=ellipse".to_owned(),
        };
        put(&mut text, &format!("  {id} [{shape}];\n"));
    }
    for edge in &graph.edges {
        let style = match edge.kind {
            "inline" => " [style=solid]",
            "trigger" => " [style=dashed]",
            "uses" => " [style=dotted]",
            _ => "",
        };
        put(
            &mut text,
            &format!("  {} -> {}{style};\n", quote(&edge.from), quote(&edge.to)),
        );
    }
    text.push_str("}\n");
    text
}

fn quote(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n")
    )
}

fn put(text: &mut String, line: &str) {
    text.write_str(line).expect("writing to a text cannot fail");
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{RemoteBind, check};

    fn config(text: &str) -> Config {
        check(Path::new("/tmp/devloop.toml"), text, RemoteBind::Refuse)
            .valid()
            .unwrap()
    }

    #[test]
    fn the_text_reads_as_documented() {
        let config = config(
            r#"
            startup_workflows = ["boot"]
            watch.css.paths = ["css/"]
            event.page = { state_key = "page", workflow = "publish" }
            process.server.command = ["x"]
            hook.build.command = ["x"]
            hook.poll = { command = ["x"], capture = "json", observe = { workflow = "css" } }
            workflow.boot.steps = [{ action = "start_process", process = "server" }, { action = "wait_for_process", process = "server" }, { action = "run_workflow", workflow = "publish" }]
            workflow.css = { steps = [{ action = "run_hook", hook = "build" }], triggers = ["notify"] }
            workflow.notify.steps = [{ action = "notify_reload" }]
            workflow.publish.steps = [{ action = "write_state", key = "url", value = "" }, { action = "log", message = "x" }, { action = "sleep_ms", duration_ms = 5 }]
            "#,
        );
        assert_eq!(
            graph_text(&config),
            "startup -> boot\n\
             watch css -> css (css/)\n\
             event page -> publish (state page)\n\
             observe poll -> css\n\
             workflow boot: start server, wait server, -> publish\n\
             workflow css: hook build; => notify\n\
             workflow notify: reload\n\
             workflow publish: write url, log, sleep 5\n"
        );
        let dot = graph_dot(&config);
        assert!(dot.contains("\"workflow css\" -> \"workflow notify\" [style=dashed];"));
        assert!(dot.contains("\"hook build\" [shape=plaintext, label=\"build\"];"));
        assert_eq!(dot, graph_dot(&config));
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quote("a\"b\\c"), "\"a\\\"b\\\\c\"");
    }
}
