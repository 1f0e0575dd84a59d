//! The core against a world made of plain values.

mod world;

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::{RemoteBind, check};
use world::World;

/// Answers the core as the shell does, and checks what must always hold.
const SLEEPY: &str = "debounce_ms = 100\nwatch.go.paths = [\"*\"]\n\
    workflow.go.steps = [{ action = \"sleep_ms\", duration_ms = 1000 }, { action = \"log\", message = \"{{last_changed_files}}\" }]\n";

#[test]
fn a_change_during_a_run_becomes_exactly_one_more_run() {
    let mut world = World::new(SLEEPY);
    world.change("a");
    world.pass(150);
    world.change("b");
    world.pass(300);
    world.change("c");
    world.pass(5000);
    assert_eq!(world.runs("go"), 2);
    let lists: Vec<&String> = world.said.iter().filter(|line| line.starts_with('[')).collect();
    assert_eq!(lists, ["[\"a\"]", "[\"b\",\"c\"]"]);
}

#[test]
fn scratch_files_request_nothing() {
    let mut world = World::new(SLEEPY);
    world.missing.insert("scratch".into());
    world.feed(Event::Changed {
        changes: vec![Change {
            path: "scratch".into(),
            known: false,
        }],
        at: 0,
    });
    world.pass(5000);
    assert_eq!(world.runs("go"), 0);
    world.missing.insert("removed".into());
    world.change("removed");
    world.pass(5000);
    assert_eq!(world.runs("go"), 1);
}

#[test]
fn a_failed_step_ends_the_execution_and_nothing_else() {
    let mut world = World::new(
        "watch.go.paths = [\"*\"]\nhook.h.command = [\"x\"]\n\
         workflow.go = { steps = [{ action = \"run_hook\", hook = \"h\" }, { action = \"log\", message = \"never\" }], triggers = [\"t\"] }\n\
         workflow.t.steps = [{ action = \"log\", message = \"never\" }]\n",
    );
    world.change("a");
    world.pass(300);
    world.finish_hook(Err("hook 'h' failed with exit status: 7".into()));
    assert!(world.said.contains(
        &"workflow failed; continuing runtime workflow=go error=go step 1 run_hook: hook 'h' failed with exit status: 7"
            .to_owned()
    ));
    world.change("b");
    world.pass(300);
    world.finish_hook(Ok(Captured::Nothing));
    assert_eq!(world.runs("go"), 2);
    assert_eq!(world.said.iter().filter(|line| *line == "never").count(), 2);
}

const EVENTS: &str = "watch.go.paths = [\"x\"]\n\
    event.e = { state_key = \"k\", workflow = \"go\", pattern = \"^[a-z]+$\" }\n\
    workflow.go.steps = [{ action = \"log\", message = \"got {{k}}\" }]\n";

#[test]
fn posts_are_judged_saved_and_answered() {
    let mut world = World::new(EVENTS);
    world.post(1, "e", "abc");
    world.post(2, "e", "abc");
    world.post(3, "e", "ABC");
    world.post(4, "nope", "abc");
    assert_eq!(world.answered[&1], Verdict::Accepted { changed: true });
    assert_eq!(world.answered[&2], Verdict::Accepted { changed: false });
    assert_eq!(world.answered[&3], Verdict::Pattern);
    assert_eq!(world.answered[&4], Verdict::Unknown);
    assert_eq!(world.runs("go"), 1);
    assert_eq!(world.finished[&1], Ok(()));
    assert_eq!(world.disk["k"], json!("abc"));
    world.disk_fails = true;
    world.post(5, "e", "xyz");
    assert_eq!(world.answered[&5], Verdict::State);
    assert_eq!(world.core.values()["k"], json!("abc"));
    assert_eq!(world.runs("go"), 1);
    world.disk_fails = false;
    world.feed(Event::Shutdown {
        line: "end".into(),
        reason: "test".into(),
    });
    assert_eq!(world.ended, Some(0));
}

#[test]
fn a_host_may_ask_for_declared_workflows_only() {
    let mut world = World::new(SLEEPY);
    let ask = |workflow: &str, waiter| Event::Requested {
        workflow: workflow.into(),
        changed: vec!["b".into(), "a".into(), "b".into()],
        waiter,
    };
    world.feed(ask("nope", 1));
    assert_eq!(world.finished[&1], Err("no workflow named 'nope'".into()));
    world.feed(ask("go", 2));
    world.pass(2000);
    assert_eq!(world.finished[&2], Ok(()));
    assert!(world.said.contains(&"[\"a\",\"b\"]".to_owned()));
    world.feed(Event::Shutdown {
        line: "end".into(),
        reason: "test".into(),
    });
    assert_eq!(world.ended, Some(0));
}

#[test]
fn polls_run_beside_the_lane_and_fire_on_change() {
    let mut world = World::new(
        "watch.go.paths = [\"*\"]\n\
         hook.h = { command = [\"x\"], capture = \"text\", state_key = \"k\", observe = { workflow = \"seen\", interval_ms = 300 } }\n\
         workflow.go.steps = [{ action = \"sleep_ms\", duration_ms = 1000 }]\n\
         workflow.seen.steps = [{ action = \"log\", message = \"{{k}}\" }]\n",
    );
    assert_eq!(world.hooks.len(), 1);
    world.finish_hook(Ok(Captured::Text("one".into())));
    assert_eq!(world.runs("seen"), 1);
    world.change("a");
    world.pass(280);
    assert_eq!(world.runs("go"), 1);
    world.pass(500);
    assert_eq!(world.hooks.len(), 1, "an execution delays no poll");
    // A slow poll delays no execution, and is judged by the state it finds when it ends.
    world.pass(5000);
    world.change("b");
    world.pass(300);
    assert_eq!(world.runs("go"), 2);
    world.finish_hook(Ok(Captured::Text("one".into())));
    world.pass(299);
    assert!(world.hooks.is_empty());
    assert_eq!(world.runs("seen"), 1);
    world.pass(1);
    world.finish_hook(Ok(Captured::Text("two".into())));
    world.pass(2000);
    assert_eq!(world.runs("seen"), 2);
}

#[test]
fn a_single_run_ends_with_what_came_of_it() {
    let text = "startup_workflows = [\"bad\", \"ok\"]\nwatch.go = { paths = [\"x\"], workflow = \"ok\" }\n\
        process.p.command = [\"x\"]\nhook.h.command = [\"x\"]\n\
        workflow.bad.steps = [{ action = \"run_hook\", hook = \"h\" }]\n\
        workflow.ok.steps = [{ action = \"log\", message = \"ok {{last_changed_files}}\" }]\n";
    let plan = Plan {
        once: true,
        changed: vec!["go".into()],
        ..Plan::default()
    };
    let mut world = World::with(text, plan);
    world.finish_hook(Err("no".into()));
    assert!(world.said.contains(&"ok [\"go\"]".to_owned()));
    assert_eq!(world.ended, None);
    world.all_gone();
    assert_eq!(world.ended, Some(1));
}

#[test]
fn a_process_that_cannot_start_ends_the_startup() {
    let text = "watch.go = { paths = [\"x\"], workflow = \"ok\" }\nprocess.p.command = [\"x\"]\n\
        workflow.ok.steps = [{ action = \"log\", message = \"ok\" }]\n";
    let config = check(Path::new("/tmp/devloop.toml"), text, RemoteBind::Refuse)
        .valid()
        .unwrap();
    let mut core = Core::new(Arc::new(config), Plan::default(), BTreeMap::new());
    core.handle(0, Event::Begin);
    let failed = Event::SpawnFailed {
        process: "p".into(),
        generation: 1,
        reason: "no".into(),
    };
    assert!(matches!(
        core.handle(0, failed).last(),
        Some(Effect::End { code: 1 })
    ));
}

#[test]
fn many_steps_that_need_no_waiting_do_not_pile_up() {
    let steps = vec!["{ action = \"start_process\", process = \"p\" }"; 20_000].join(", ");
    let mut world = World::new(&format!(
        "watch.go.paths = [\"x\"]\nprocess.p.command = [\"x\"]\nworkflow.go.steps = [{steps}]\n"
    ));
    world.change("x");
    world.pass(300);
    assert_eq!(
        world
            .core
            .status(0, 1, WatchStatus::default(), Servers::default())
            .workflows[0]
            .runs,
        1
    );
}

#[test]
fn a_workflow_that_triggers_itself_is_named_once() {
    let mut world = World::new(
        "debounce_ms = 10\nwatch.go.paths = [\"x\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n",
    );
    for _ in 0..30 {
        world.change("x");
        world.pass(20);
    }
    let warning = "workflow 'go' appears to trigger itself through 'x'";
    assert_eq!(world.said.iter().filter(|line| *line == warning).count(), 1);
}

#[test]
fn every_run_has_a_cause() {
    let mut world = World::new(
        "debounce_ms = 10\nwatch.rust = { paths = [\"src/**\"], workflow = \"build\" }\n\
         event.e = { state_key = \"k\", workflow = \"inner\" }\n\
         workflow.build = { steps = [{ action = \"run_workflow\", workflow = \"inner\" }], triggers = [\"publish\"] }\n\
         workflow.inner.steps = [{ action = \"log\", message = \"inner\" }]\n\
         workflow.publish.steps = [{ action = \"notify_reload\" }]\n",
    );
    world.change("src/a.rs");
    world.pass(100);
    world.post(1, "e", "x");
    let status = world
        .core
        .status(world.now, 1, WatchStatus::default(), Servers::default());
    let causes: Vec<String> = status.runs.iter().map(|run| run.cause.join(ARROW)).collect();
    let file = "file src/a.rs (modified) → watch rust → workflow build";
    assert_eq!(
        causes,
        [
            file.to_owned(),
            format!("{file} → inline inner"),
            format!("{file} → trigger publish"),
            "event e → workflow inner".to_owned(),
        ]
    );
    assert!(status.runs.iter().all(|run| run.result == "ok"));
    let runs: Vec<u64> = status.workflows.iter().map(|workflow| workflow.runs).collect();
    assert_eq!(runs, [1, 2, 1], "inline and triggered ones count like others");
    assert_eq!((status.reloads, world.reloads), (1, 1));
    assert_eq!(world.runs("inner"), 2);
}

const BUSY: &str = "debounce_ms = 10\nwatch.go = { paths = [\"*\"], on_busy = \"restart\" }\nhook.h.command = [\"x\"]\n\
    workflow.go = { steps = [{ action = \"run_hook\", hook = \"h\" }, { action = \"sleep_ms\", duration_ms = 1000 }, { action = \"log\", message = \"{{last_changed_files}}\" }], triggers = [\"after\"] }\n\
    workflow.after.steps = [{ action = \"log\", message = \"after\" }]\n";

#[test]
fn a_busy_workflow_begins_anew_with_the_changes_of_both() {
    let mut world = World::new(BUSY);
    world.change("a");
    world.pass(20);
    assert_eq!(world.hooks.len(), 1);
    // While its hook runs, and while it sleeps.
    world.change("b");
    world.pass(20);
    assert_eq!((world.runs("go"), world.hooks.len()), (2, 1));
    world.finish_hook(Ok(Captured::Nothing));
    world.change("c");
    world.pass(20);
    assert_eq!((world.runs("go"), world.hooks.len()), (3, 1));
    world.finish_hook(Ok(Captured::Nothing));
    world.pass(2000);
    assert_eq!(world.said.iter().filter(|line| line.starts_with('[')).count(), 1);
    assert!(world.said.contains(&"[\"a\",\"b\",\"c\"]".to_owned()));
    assert_eq!(world.runs("after"), 1);
}

#[test]
fn excluded_paths_count_only_where_they_are_not_excluded() {
    let mut world = World::new(
        "debounce_ms = 10\nwatch.all = { paths = [\"*\"] }\nwatch.clean = { paths = [\"*\"], ignore_files = true }\n\
         workflow.all.steps = [{ action = \"log\", message = \"all\" }]\n\
         workflow.clean.steps = [{ action = \"log\", message = \"clean {{last_changed_files}}\" }]\n",
    );
    world.excluded.insert("junk".into());
    world.change("junk");
    world.pass(50);
    assert_eq!((world.runs("all"), world.runs("clean")), (1, 0));
    world.change("junk");
    world.change("good");
    world.pass(50);
    assert!(world.said.contains(&"clean [\"good\"]".to_owned()));
}

const ORDERED: &str = "watch.go.paths = [\"*\"]\nworkflow.go.steps = [{ action = \"start_process\", process = \"db\" }]\n\
    process.app = { command = [\"x\"], after = [\"db\", \"cache\"] }\nprocess.cache.command = [\"x\"]\n\
    process.db = { command = [\"x\"], readiness = { kind = \"state_key\", key = \"up\", interval_ms = 100, timeout_ms = 1000 } }\n";

#[test]
fn a_process_starts_when_those_before_it_are_ready_and_stops_before_them() {
    let mut world = World::new(ORDERED);
    assert!(!world.alive.contains_key("app"));
    assert!(world.alive.contains_key("db") && world.alive.contains_key("cache"));
    assert!(
        world.said.contains(&"loop ready".to_owned()),
        "nobody waits for it"
    );
    world.core.state.set(world.now, "up", json!("yes"));
    world.pass(200);
    assert!(world.alive.contains_key("app"));
    world.feed(Event::Shutdown {
        line: "end".into(),
        reason: "test".into(),
    });
    assert_eq!(world.stopping.keys().collect::<Vec<_>>(), ["app"]);
    world.one_gone();
    assert_eq!(world.stopping.keys().collect::<Vec<_>>(), ["cache", "db"]);
    world.all_gone();
    assert_eq!(world.ended, Some(0));
}

#[test]
fn a_process_whose_dependency_fails_is_not_started_and_the_run_goes_on() {
    let mut world = World::new(ORDERED);
    world.pass(1500);
    let text = "failed to start process 'app': 'db' did not become ready in time";
    assert!(world.said.contains(&text.to_owned()), "{:?}", world.said);
    assert!(!world.alive.contains_key("app") && world.ended.is_none());
    // Asked for by somebody, it fails for the same reason, at once.
    world.feed(Event::Operate {
        process: "app".into(),
        operation: Operation::Start,
        waiter: 7,
    });
    assert_eq!(world.finished[&7], Err(text.to_owned()));
}

#[test]
fn one_process_is_operated_by_name() {
    let mut world = World::new(ORDERED);
    let ask = |process: &str, operation, waiter| Event::Operate {
        process: process.into(),
        operation,
        waiter,
    };
    world.feed(ask("nobody", Operation::Stop, 1));
    assert_eq!(world.finished[&1], Err("no process named 'nobody'".into()));
    world.feed(ask("cache", Operation::Restart, 2));
    assert!(!world.finished.contains_key(&2));
    world.all_gone();
    assert_eq!(world.finished[&2], Ok(()));
    world.feed(ask("cache", Operation::Stop, 3));
    world.feed(Event::Shutdown {
        line: "end".into(),
        reason: "test".into(),
    });
    assert_eq!(world.finished[&3], Err("the loop is shutting down".into()));
}

#[test]
fn another_config_touches_only_what_differs() {
    let text = |db: &str, extra: &str| {
        format!(
            "debounce_ms = 10\nwatch.go.paths = [\"*\"]\nworkflow.go.steps = [{{ action = \"log\", message = \"{db}\" }}]\n\
             process.db.command = [\"{db}\"]\nprocess.same.command = [\"x\"]\n{extra}"
        )
    };
    let config = |text: &str| {
        let checked = check(Path::new("/tmp/devloop.toml"), text, RemoteBind::Refuse);
        Arc::new(checked.valid().unwrap())
    };
    let mut world = World::new(&text("one", "process.old.command = [\"x\"]\n"));
    let before = world.alive.clone();
    world.feed(Event::Reconfigured(config(&text(
        "two",
        "process.new.command = [\"x\"]\n",
    ))));
    assert_eq!(world.stopping.keys().collect::<Vec<_>>(), ["db", "old"]);
    world.all_gone();
    assert_eq!(world.alive.keys().collect::<Vec<_>>(), ["db", "new", "same"]);
    assert_eq!(world.alive["same"], before["same"], "it was left alone");
    assert_ne!(world.alive["db"], before["db"]);
    world.change("a");
    world.pass(50);
    assert!(world.said.contains(&"two".to_owned()));
    world.feed(Event::Shutdown {
        line: "end".into(),
        reason: "test".into(),
    });
    world.all_gone();
    assert_eq!(world.ended, Some(0));
}

const EVERYTHING: &str = r#"
debounce_ms = 50
startup_workflows = ["boot"]
watch.go = { paths = ["*"], workflow = "go", on_busy = "restart" }
watch.other = { paths = ["b*"], workflow = "other" }
process.r = { command = ["x"], after = ["p"], restart = "on_failure" }
process.p = { command = ["x"], restart = "always", readiness = { kind = "http", url = "http://x", timeout_ms = 2000 }, liveness = { kind = "state_key", key = "k" }, output.rules = [{ state_key = "port", pattern = "x" }] }
process.q = { command = ["x"], autostart = false, restart = "on_failure" }
hook.h = { command = ["x"], capture = "text", state_key = "t" }
hook.o = { command = ["x"], capture = "json", observe = { workflow = "other", interval_ms = 400 } }
event.e = { state_key = "k", workflow = "go" }
workflow.boot.steps = [{ action = "run_hook", hook = "h" }, { action = "wait_for_process", process = "p" }]
workflow.go = { steps = [{ action = "write_state", key = "w", value = "{{k}}" }, { action = "run_hook", hook = "h" }, { action = "restart_process", process = "q" }, { action = "sleep_ms", duration_ms = 30 }], triggers = ["other"] }
workflow.other.steps = [{ action = "stop_process", process = "q" }, { action = "start_process", process = "p" }, { action = "notify_reload" }]
"#;

/// A process whose restart falls due together with the end of a sleep: it is started after the
/// next workflow has begun to change the state.
#[test]
fn a_restart_beside_a_workflow_that_begins_finds_the_file_right() {
    keeps_the_promises(&[
        (2, 0, false),
        (2, 0, false),
        (7, 0, false),
        (4, 0, false),
        (1, 470, false),
        (2, 0, true),
        (1, 30, false),
    ]);
}

#[test]
fn what_changes_while_a_save_is_answered_reaches_the_file() {
    let mut world = World::new(SLEEPY);
    world.pass(1000);
    world.core.state.set(world.now, "a", json!(1));
    // The window closes and the save falls due in one tick; the workflow begins between the two
    // answers.
    world.feed(Event::Changed {
        changes: vec![Change {
            path: "a".into(),
            known: true,
        }],
        at: world.now - 50,
    });
    world.pass(50);
    assert_eq!(world.runs("go"), 1);
    world.pass(100);
    assert_eq!(&world.disk, world.core.values());
}

#[test]
fn a_post_of_a_value_that_waits_to_be_saved_is_answered_when_it_is() {
    let mut world = World::new(EVENTS);
    world.disk_fails = true;
    world.core.state.set(0, "k", json!("abc"));
    world.post(1, "e", "abc");
    assert_eq!(world.answered[&1], Verdict::State);
    world.disk_fails = false;
    world.post(2, "e", "abc");
    assert_eq!(world.answered[&2], Verdict::Accepted { changed: false });
    assert_eq!(world.disk["k"], json!("abc"));
}

proptest! {
    #[test]
    fn any_sequence_of_events_keeps_the_promises(
        events in proptest::collection::vec((0u8..16, 0u64..700, any::<bool>()), 0..80),
    ) {
        keeps_the_promises(&events);
    }
}

/// Whatever happens in whatever order: one execution at a time, the file right before every
/// child, no start after the end has begun, every post answered, the file right soon after the
/// last change, and a shutdown that ends.
fn keeps_the_promises(events: &[(u8, u64, bool)]) {
    let mut world = World::new(EVERYTHING);
    let (mut posts, mut operated) = (0, 0);
    for &(kind, time, flag) in events {
        match kind {
            0 => world.change(if flag { "a" } else { "b" }),
            1 => world.pass(time),
            2 => world.finish_hook(if flag {
                Ok(Captured::Text(time.to_string()))
            } else {
                Err("no".into())
            }),
            3 => {
                let Value::Object(members) = json!({ "o": time, "k": "v" }) else {
                    unreachable!()
                };
                world.finish_hook(Ok(Captured::Json(members)));
            }
            4 => world.exit("p", i32::from(flag)),
            5 => world.exit("q", i32::from(flag)),
            6 => world.all_gone(),
            7 => {
                posts += 1;
                world.post(posts, "e", &(time % 3).to_string());
            }
            8 => {
                if let Some(id) = world.probes.pop_first() {
                    world.feed(Event::Probed {
                        id,
                        answer: if flag { Ok(()) } else { Err("no".into()) },
                    });
                }
            }
            9 => {
                let generation = world.alive.get("p").copied().unwrap_or(0);
                world.feed(Event::Matched {
                    process: "p".into(),
                    generation,
                    key: "port".into(),
                    value: time.to_string(),
                });
            }
            10 => world.disk_fails = flag,
            11 => world.spawn_fails = flag && time < 100,
            13 => {
                let operations = [Operation::Start, Operation::Stop, Operation::Restart];
                let names = ["p", "q", "r"];
                operated += 1;
                world.feed(Event::Operate {
                    process: names[(time % 3) as usize].into(),
                    operation: operations[(time / 3 % 3) as usize],
                    waiter: 1_000_000 + operated,
                });
            }
            14 => {
                let config =
                    EVERYTHING.replace("interval_ms = 400", &format!("interval_ms = {}", 400 + time % 2));
                let config = config.replace(
                    "debounce_ms = 50",
                    if flag {
                        "debounce_ms = 40"
                    } else {
                        "debounce_mode = \"quiet\""
                    },
                );
                let config = config.replace(
                    "command = [\"x\"], after",
                    if flag {
                        "command = [\"y\"], after"
                    } else {
                        "command = [\"x\"], after"
                    },
                );
                let checked = check(Path::new("/tmp/devloop.toml"), &config, RemoteBind::Refuse);
                world.feed(Event::Reconfigured(Arc::new(checked.valid().unwrap())));
            }
            15 => world.exit("r", i32::from(flag)),
            _ => world.pass(10),
        }
        if world.ended.is_some() {
            break;
        }
    }
    if world.ended.is_none() {
        world.disk_fails = false;
        if !world.closing {
            world.feed(Event::Shutdown {
                line: "end".into(),
                reason: "test".into(),
            });
        }
        for _ in 0..10 {
            if world.ended.is_none() {
                world.all_gone();
                world.pass(1000);
            }
        }
    }
    assert!(world.ended.is_some(), "the run did not end");
    assert_eq!(world.answered.len() as u64, posts);
    let answers = world.finished.keys().filter(|waiter| **waiter > 1_000_000);
    assert_eq!(answers.count() as u64, operated, "every operation is answered");
    assert!(world.alive.is_empty());
}
