//! E1 to E5, E23: what is watched and what a change sets in motion.

use std::time::Duration;

use serde_json::json;

use crate::support::{Place, holds_for};

#[test]
fn e1_default_workflow_name_and_a_star_that_crosses_slashes() {
    let place = Place::new(
        r#"
root = "."
debounce_ms = 100
[watch.notes]
paths = ["notes/*.txt"]
[workflow.notes]
steps = [{ action = "log", message = "notes changed" }]
"#,
    );
    std::fs::create_dir_all(place.path("notes/deep")).unwrap();
    let run = place.start();
    place.write("notes/a.txt", "1");
    place.write("notes/deep/b.txt", "1");
    run.wait_count("notes changed", 1);
    place.wait_state("last_changed_files", json!(["notes/a.txt", "notes/deep/b.txt"]));
    assert_eq!(place.state()["last_workflow"], "notes");
    assert_eq!(
        place.state()["root"],
        json!(place.path("").to_str().unwrap().trim_end_matches('/'))
    );
    assert_eq!(run.count("running workflow notes"), 1);

    place.write("notes/c.md", "1");
    holds_for(
        Duration::from_millis(400),
        "a file that matches nothing runs nothing",
        || run.count("notes changed") == 1,
    );
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(place.path("notes/a.txt"), std::fs::Permissions::from_mode(0o640)).unwrap();
    run.wait_count("notes changed", 2);
    assert_eq!(place.read("notes/a.txt"), "1");
    holds_for(Duration::from_millis(400), "reading is no change", || {
        run.count("notes changed") == 2
    });
    run.stop();
}

#[test]
fn e2_a_directory_target_that_does_not_exist_yet() {
    let place = Place::new(
        r#"
debounce_ms = 100
watch.site.paths = ["content/"]
workflow.site.steps = [{ action = "log", message = "site" }]
"#,
    );
    let run = place.start();
    place.write("tmp/x/p.md", "1");
    std::fs::rename(place.path("tmp"), place.path("content")).unwrap();
    run.wait_count("site", 1);
    place.wait_state("last_changed_files", json!(["content/x/p.md"]));
    holds_for(Duration::from_millis(300), "one run", || run.count("site") == 1);
    std::fs::remove_dir_all(place.path("content")).unwrap();
    run.wait_count("site", 2);
    holds_for(Duration::from_millis(300), "one run for the removal", || {
        run.count("site") == 2
    });
    place.write("content/q.md", "1");
    run.wait_count("site", 3);
    place.wait_state("last_changed_files", json!(["content/q.md"]));
    run.stop();
}

#[test]
fn e3_atomic_saves_and_scratch_files() {
    let place = Place::new(
        r#"
debounce_ms = 200
watch.src.paths = ["src/"]
workflow.src.steps = [{ action = "log", message = "src" }]
"#,
    );
    place.write("src/a.c", "0");
    let run = place.start();
    for round in 1..=11 {
        place.write("src/4913", "");
        std::fs::remove_file(place.path("src/4913")).unwrap();
        place.write("src/a.c~tmp", &round.to_string());
        std::fs::rename(place.path("src/a.c~tmp"), place.path("src/a.c")).unwrap();
        run.wait_count("src", round);
        place.wait_state("last_changed_files", json!(["src/a.c"]));
    }
    holds_for(Duration::from_millis(500), "eleven saves, eleven runs", || {
        run.count("src") == 11
    });
    run.stop();
}

#[test]
fn e4_groups_merge_and_run_in_name_order() {
    let place = Place::new(
        r#"
debounce_ms = 150
[watch.one]
paths = ["a/*"]
workflow = "zeta"
[watch.two]
paths = ["b/*"]
workflow = "zeta"
[watch.three]
paths = ["a/*"]
workflow = "alpha"
[workflow.alpha]
steps = [{ action = "log", message = "alpha" }]
[workflow.zeta]
steps = [{ action = "log", message = "zeta" }]
"#,
    );
    std::fs::create_dir(place.path("a")).unwrap();
    std::fs::create_dir(place.path("b")).unwrap();
    let run = place.start();
    place.write("a/1", "");
    place.write("b/2", "");
    run.wait_count("zeta", 1);
    place.wait_state("last_changed_files", json!(["a/1", "b/2"]));
    assert_eq!(place.state()["last_workflow"], "zeta");
    let said: Vec<String> = run
        .said()
        .into_iter()
        .filter(|line| line == "alpha" || line == "zeta")
        .collect();
    assert_eq!(said, ["alpha", "zeta"]);
    run.stop();
}

#[test]
fn e5_changes_during_a_run_wait_and_merge() {
    let place = Place::new(
        r#"
debounce_ms = 100
watch.go.paths = ["in/*"]
hook.stamp.command = ["sh", "-c", 'echo "$DEVLOOP_CHANGED_FILES_JSON" >> runs.txt']
workflow.go.steps = [{ action = "run_hook", hook = "stamp" }, { action = "sleep_ms", duration_ms = 2000 }]
"#,
    );
    std::fs::create_dir(place.path("in")).unwrap();
    let run = place.start();
    place.write("in/a", "");
    place.wait_lines("runs.txt", 1);
    place.write("in/b", "");
    holds_for(
        Duration::from_millis(500),
        "the first run is not interrupted",
        || place.lines("runs.txt") == 1,
    );
    place.write("in/c", "");
    place.wait_lines("runs.txt", 2);
    holds_for(Duration::from_millis(500), "exactly two runs", || {
        place.read("runs.txt") == "[\"in/a\"]\n[\"in/b\",\"in/c\"]\n"
    });
    run.stop();
}

fn own_files_and_version_control(kind: &str) {
    let place = Place::new(&format!(
        r#"
debounce_ms = 50
watcher = {{ kind = "{kind}", poll_interval_ms = 100 }}
watch.all.paths = ["**/*"]
workflow.all.steps = [{{ action = "write_state", key = "n", value = "{{{{last_changed_files}}}}" }}]
"#
    ));
    std::fs::create_dir(place.path(".git")).unwrap();
    let run = place.start();
    place.write("a", "one");
    run.wait_count("running workflow all", 1);
    place.wait_state("n", json!("[\"a\"]"));
    std::thread::sleep(Duration::from_millis(300));
    place.write("a", "two");
    run.wait_count("running workflow all", 2);
    place.write(".git/index", "x");
    holds_for(
        Duration::from_secs(3),
        "own files and version control are silent",
        || run.count("running workflow all") == 2,
    );
    run.stop();
}

#[test]
fn e23_own_files_and_version_control_are_ignored_when_polling() {
    own_files_and_version_control("poll");
}

#[test]
fn e23_own_files_and_version_control_are_ignored_natively() {
    own_files_and_version_control("native");
}

#[test]
fn every_file_of_a_branch_switch_is_reported() {
    let place = Place::new(
        r#"
debounce_ms = 100
watch.src.paths = ["src/**/*.c"]
hook.note.command = ["sh", "-c", 'echo "$DEVLOOP_CHANGED_FILES_JSON" >> seen']
workflow.src.steps = [{ action = "run_hook", hook = "note" }]
"#,
    );
    let run = place.start();
    for directory in 0..50 {
        for file in 0..40 {
            place.write(&format!("src/d{directory}/f{file}.c"), "x");
        }
    }
    crate::support::wait_for("all files", || {
        let mut seen = std::collections::BTreeSet::new();
        for line in place.read("seen").lines() {
            let list: Vec<String> = serde_json::from_str(line).ok()?;
            seen.extend(list);
        }
        (seen.len() == 2000).then_some(())
    });
    run.stop();
}

#[test]
fn a_link_to_a_file_elsewhere_is_followed() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("real.txt"), "1").unwrap();
    let place = Place::new(
        "debounce_ms = 50\nwatch.go.paths = [\"link.txt\", \"dirs/\"]\n\
         workflow.go.steps = [{ action = \"log\", message = \"go\" }]\n",
    );
    std::os::unix::fs::symlink(outside.path().join("real.txt"), place.path("link.txt")).unwrap();
    std::fs::create_dir(place.path("dirs")).unwrap();
    let run = place.start();
    std::fs::write(outside.path().join("real.txt"), "2").unwrap();
    run.wait_count("go", 1);
    place.wait_state("last_changed_files", json!(["link.txt"]));
    // A link to a directory is reported under the link's path.
    std::fs::create_dir(outside.path().join("tree")).unwrap();
    std::fs::write(outside.path().join("tree/f"), "1").unwrap();
    std::os::unix::fs::symlink(outside.path().join("tree"), place.path("dirs/tree")).unwrap();
    place.wait_state("last_changed_files", json!(["dirs/tree/f"]));
    run.stop();
}

#[test]
fn a_workflow_that_writes_what_it_watches_is_named() {
    let place = Place::new(
        r#"
debounce_ms = 10
watch.go.paths = ["go"]
hook.again.command = ["sh", "-c", "date +%N > go"]
workflow.go.steps = [{ action = "run_hook", hook = "again" }]
"#,
    );
    let run = place.start();
    place.write("go", "1");
    run.wait_log("workflow 'go' appears to trigger itself through 'go'");
    run.wait_count("running workflow go", 20);
    assert_eq!(run.log().matches("appears to trigger itself").count(), 1);
    run.stop();
}

#[test]
fn a_changed_config_is_mentioned_and_not_applied() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n",
    );
    let run = place.start();
    place.write("devloop.toml", "nonsense");
    run.wait_log("devloop.toml changed; restart the loop to apply it");
    place.write("go", "1");
    run.wait_count("go", 1);
    // With a broken config the loop could not be found; `--config` is not needed for signals.
    run.stop();
}
