use std::path::Path;

use super::*;
use crate::config::{RemoteBind, check};

fn order(text: &str, top: &str) -> Vec<String> {
    let text = format!("watch.w = {{ paths = [\"go\"], workflow = \"{top}\" }}\n{text}");
    let config = check(Path::new("/tmp/devloop.toml"), &text, RemoteBind::Refuse)
        .valid()
        .unwrap();
    let mut execution = Execution::new(
        Request::new(top, Source::Watch, Vec::new(), Vec::new()),
        0,
        Numbers::default(),
    );
    let mut order = Vec::new();
    loop {
        match execution.next(&config, 0) {
            Next::Begins(run) if run.role == Role::Inline => {}
            Next::Begins(run) => order.push(format!("begin {}", run.workflow)),
            Next::Perform(Step::Log { message, .. }) => {
                order.push(message);
                execution.step_done();
            }
            Next::Perform(_) => execution.step_done(),
            Next::Ends(_, Some(place)) => order.push(format!("done {} {}", place.workflow, place.index)),
            Next::Ends(_, None) => {}
            Next::Finished => return order,
        }
    }
}

fn log(name: &str) -> String {
    format!("{{ action = \"log\", message = \"{name}\" }}")
}

fn run(name: &str) -> String {
    format!("{{ action = \"run_workflow\", workflow = \"{name}\" }}")
}

fn workflow(name: &str, steps: &[String], triggers: &[&str]) -> String {
    format!(
        "workflow.{name} = {{ steps = [{}], triggers = {triggers:?} }}\n",
        steps.join(", ")
    )
}

#[test]
fn triggers_run_depth_first_and_once() {
    let text = [
        workflow("a", &[log("a")], &["b", "c"]),
        workflow("b", &[log("b")], &["d"]),
        workflow("c", &[log("c")], &["d"]),
        workflow("d", &[log("d")], &[]),
    ]
    .concat();
    assert_eq!(
        order(&text, "a"),
        ["begin a", "a", "begin b", "b", "begin d", "d", "begin c", "c"]
    );
}

#[test]
fn triggers_of_an_inline_workflow_come_before_the_next_step() {
    let text = [
        workflow("s", &[run("x"), log("end")], &[]),
        workflow("x", &[log("x")], &["r"]),
        workflow("r", &[log("r")], &[]),
    ]
    .concat();
    assert_eq!(
        order(&text, "s"),
        ["begin s", "x", "begin r", "r", "done s 1", "end"]
    );
}

#[test]
fn an_inline_workflow_runs_again_but_triggers_once() {
    let text = [
        workflow("s", &[run("x"), run("x")], &[]),
        workflow("x", &[log("x")], &["r"]),
        workflow("r", &[log("r")], &[]),
    ]
    .concat();
    assert_eq!(
        order(&text, "s"),
        ["begin s", "x", "begin r", "r", "done s 1", "x", "done s 2"]
    );
}

#[test]
fn steps_know_who_holds_them() {
    let text = format!(
        "watch.w = {{ paths = [\"go\"], workflow = \"s\" }}\n{}{}",
        workflow("s", &[run("x"), log("end")], &[]),
        workflow("x", &[log("x")], &[])
    );
    let config = check(Path::new("/tmp/devloop.toml"), &text, RemoteBind::Refuse)
        .valid()
        .unwrap();
    let places: Vec<(String, usize)> = Execution::foresee(&config, "s")
        .into_iter()
        .map(|(place, _)| (place.workflow, place.index))
        .collect();
    assert_eq!(places, [("x".to_owned(), 1), ("s".to_owned(), 2)]);
}
