//! The graph of workflows: cycles, ambiguous triggers, what can be reached.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Config, Step, Workflow};

type Workflows = BTreeMap<String, Workflow>;

fn inline(workflow: &Workflow) -> impl Iterator<Item = &str> {
    workflow.steps.iter().filter_map(|step| match step {
        Step::RunWorkflow(name) => Some(name.as_str()),
        Step::StartProcess(_)
        | Step::StopProcess(_)
        | Step::RestartProcess(_)
        | Step::WaitForProcess(_)
        | Step::RunHook(_)
        | Step::SleepMs(_)
        | Step::WriteState { .. }
        | Step::Log { .. }
        | Step::NotifyReload => None,
    })
}

fn triggers(workflow: &Workflow) -> impl Iterator<Item = &str> {
    workflow.triggers.iter().map(String::as_str)
}

fn edges<'a>(workflows: &'a Workflows, name: &str) -> BTreeSet<&'a str> {
    workflows
        .get(name)
        .into_iter()
        .flat_map(|workflow| inline(workflow).chain(triggers(workflow)))
        .filter(|next| workflows.contains_key(*next))
        .collect()
}

/// The cycles of inline runs and triggers.
pub(super) fn workflow_cycles(workflows: &Workflows) -> Vec<(String, Vec<String>)> {
    cycles(workflows.keys(), |name| Some(edges(workflows, name)))
}

/// One cycle for each name that is the smallest member of one: the names from that member back
/// to itself. `edges` says where a name leads; nothing is said of a name that is unknown.
pub(super) fn cycles<'a>(
    names: impl Iterator<Item = &'a String>,
    edges: impl Fn(&str) -> Option<BTreeSet<&'a str>>,
) -> Vec<(String, Vec<String>)> {
    names
        .filter_map(|start| shortest_cycle(&edges, start).map(|cycle| (start.clone(), cycle)))
        .collect()
}

/// The shortest way from `start` back to itself through larger names only.
fn shortest_cycle<'a>(
    edges: &impl Fn(&str) -> Option<BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = std::collections::VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for next in edges(at).unwrap_or_default() {
            if next == start {
                let mut path = vec![start.to_owned()];
                let mut back = at;
                while back != start {
                    path.push(back.to_owned());
                    back = came_from.get(back).copied().unwrap_or(start);
                }
                path.push(start.to_owned());
                path.reverse();
                return Some(path);
            }
            if next > start && !came_from.contains_key(next) {
                came_from.insert(next, at);
                open.push_back(next);
            }
        }
    }
    None
}

/// Whether `top` is on a cycle or leads to one.
fn recurs(workflows: &Workflows, top: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![top];
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            open.extend(edges(workflows, at));
        }
    }
    let edges = |name: &str| Some(edges(workflows, name));
    seen.iter().any(|name| shortest_cycle(&edges, name).is_some())
}

/// The workflows that one execution of `top` would run both inline and as a trigger. One that
/// never ends has no answer; it is reported for that.
pub(super) fn ambiguous(workflows: &Workflows, top: &str) -> Vec<String> {
    if recurs(workflows, top) {
        return Vec::new();
    }
    let mut triggered = BTreeSet::new();
    let mut inlined = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(top, false)];
    while let Some((at, inside)) = open.pop() {
        if !seen.insert((at, inside)) {
            continue;
        }
        let Some(workflow) = workflows.get(at) else {
            continue;
        };
        for next in inline(workflow) {
            inlined.insert(next);
            open.push((next, true));
        }
        for next in triggers(workflow) {
            if inside {
                inlined.insert(next);
            } else {
                triggered.insert(next);
            }
            open.push((next, inside));
        }
    }
    triggered
        .intersection(&inlined)
        .map(|name| (*name).to_owned())
        .collect()
}

/// The workflows that startup, a watch, an event or an observed hook can set in motion.
pub(crate) fn reachable(config: &Config) -> BTreeSet<&str> {
    let mut open: Vec<&str> = config.startup_workflows.iter().map(String::as_str).collect();
    open.extend(config.watch.values().map(|group| group.workflow.as_str()));
    open.extend(config.event.values().map(|event| event.workflow.as_str()));
    open.extend(
        config
            .hook
            .values()
            .filter_map(|hook| hook.observe.as_ref())
            .map(|observe| observe.workflow.as_str()),
    );
    let mut seen = BTreeSet::new();
    while let Some(at) = open.pop() {
        if config.workflow.contains_key(at) && seen.insert(at) {
            open.extend(edges(&config.workflow, at));
        }
    }
    seen
}
