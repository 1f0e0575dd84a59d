//! Image and disk apart: broken files, files that changed since they were loaded, the record of loaded classes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::home::{Home, block_on, eval, kill, kind, request, wait_until};
use crate::project::write;

const MANIFEST: &str = "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n";

/// A project of four classes, one of them below another.
fn orbit(home: &Home) {
    write(home, "beamtalk.toml", MANIFEST);
    write(home, "src/base.bt", "Object subclass: Base\n  class one => 1\n");
    write(
        home,
        "src/derived.bt",
        "Base subclass: Derived\n  class two => self one + 1\n",
    );
    write(
        home,
        "src/user.bt",
        "Object subclass: User\n  class three => Base one + 2\n",
    );
    write(
        home,
        "src/alone.bt",
        "Object subclass: Alone\n  class four => 4\n",
    );
}

const BROKEN: &str = "Object subclass: Base\n  class one => [\n";

fn paths(answer: &serde_json::Map<String, Value>) -> Vec<String> {
    let errors = answer["errors"].as_array().expect("errors");
    let paths = errors.iter().filter_map(|error| error["path"].as_str());
    paths.map(str::to_owned).collect()
}

#[test]
fn a_broken_file_leaves_the_others_loaded_at_the_start() {
    let home = Home::new("brokenstart");
    orbit(&home);
    write(&home, "src/base.bt", BROKEN);
    std::fs::write(
        home.project().join("src/bytes.bt"),
        b"Object subclass: Bytes\n  // \xff\n",
    )
    .expect("a file");
    let started = home.run(&["workspace", "start"]);
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(started.status.success(), "{told}");
    assert!(told.contains("error: src/base.bt:2: "), "{told}");
    assert!(told.contains("error: src/bytes.bt:"), "{told}");
    assert!(
        told.contains("src/derived.bt: not loaded: Class 'Base' not found"),
        "{told}"
    );
    assert!(
        told.contains("not loaded because of errors: src/base.bt, src/bytes.bt, src/derived.bt;"),
        "{told}"
    );
    block_on(async {
        let connection = home.connect().await;
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
        // What uses the class works as far as it does not need it.
        assert_eq!(eval(&connection, "User name").await["value"], "User");
        assert_eq!(kind(&eval(&connection, "User three").await), "class_not_found");
        assert_eq!(kind(&eval(&connection, "Derived two").await), "class_not_found");
        write(&home, "src/base.bt", "Object subclass: Base\n  class one => 10\n");
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(paths(&synced), ["src/bytes.bt"]);
        assert_eq!(eval(&connection, "Derived two + User three").await["value"], 23);
    });
}

#[test]
fn a_broken_file_keeps_its_class_and_lets_the_others_change() {
    let home = Home::new("brokensync");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        write(&home, "src/base.bt", BROKEN);
        write(
            &home,
            "src/derived.bt",
            "Base subclass: Derived\n  class two => self one + 20\n",
        );
        write(
            &home,
            "src/alone.bt",
            "Object subclass: Alone\n  class four => 44\n",
        );
        write(
            &home,
            "src/later.bt",
            "Base subclass: Later\n  class five => self one + 4\n",
        );
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(paths(&synced), ["src/base.bt"]);
        assert_eq!(synced["disk_changed"].as_array().map(Vec::len), Some(4));
        let value = eval(&connection, "#(Base one, Derived two, Alone four, Later five)").await;
        assert_eq!(value["text"], "#(1, 21, 44, 5)");
        // One file of a class reloaded by itself fails and changes nothing.
        assert_eq!(
            kind(&request(&connection, "reload", json!({"class": "Base"})).await),
            "compile_failed"
        );
        assert_eq!(eval(&connection, "Base one").await["value"], 1);
        // The image took another kind of class for this one: a refusal of the image, not of the compiler.
        write(&home, "src/alone.bt", "Actor subclass: Alone\n  four => 4\n");
        write(
            &home,
            "src/later.bt",
            "Base subclass: Later\n  class five => 55\n",
        );
        let synced = request(&connection, "load-project", json!({})).await;
        let mut refused = paths(&synced);
        refused.sort();
        assert_eq!(refused, ["src/alone.bt", "src/base.bt"]);
        assert_eq!(eval(&connection, "Later five + Alone four").await["value"], 99);
    });
}

#[test]
fn a_directory_is_loaded_without_its_broken_files() {
    let home = Home::new("brokendir");
    home.start(&[]);
    write(&home, "loose/base.bt", BROKEN);
    write(
        &home,
        "loose/derived.bt",
        "Base subclass: Derived\n  class two => 2\n",
    );
    write(
        &home,
        "loose/alone.bt",
        "Object subclass: Alone\n  class four => 4\n",
    );
    block_on(async {
        let connection = home.connect().await;
        let loaded = request(&connection, "load-file", json!({"path": "loose"})).await;
        assert_eq!(loaded["classes"], json!(["Alone"]));
        let mut broken = paths(&loaded);
        broken.dedup();
        assert_eq!(broken, ["loose/base.bt", "loose/derived.bt"]);
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
        let one = request(&connection, "load-file", json!({"path": "loose/base.bt"})).await;
        assert_eq!(kind(&one), "compile_failed");
    });
}

#[test]
fn a_broken_test_leaves_the_other_tests_loaded() {
    let home = Home::new("brokentest");
    orbit(&home);
    let good = "TestCase subclass: GoodTest\n  testFour => self assert: Alone four equals: 4\n";
    write(&home, "test/good_test.bt", good);
    write(
        &home,
        "test/bad_test.bt",
        "TestCase subclass: BadTest\n  testX => [\n",
    );
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let loaded = request(&connection, "load-tests", json!({})).await;
        assert_eq!(paths(&loaded), ["test/bad_test.bt"]);
        assert_eq!(loaded["summary"], "Reloaded 1 of 2 files");
        let tested = request(&connection, "test", json!({"class": "GoodTest"})).await;
        assert_eq!(kind(&tested), "none");
    });
}

#[test]
fn whoever_attaches_is_told_that_the_disk_is_ahead() {
    let home = Home::new("ahead");
    orbit(&home);
    write(
        &home,
        "test/four_test.bt",
        "TestCase subclass: FourTest\n  testFour => self assert: Alone four equals: 4\n",
    );
    home.start(&[]);
    let said = |words: &[&str]| {
        let output = home.run(words);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(said(&["eval", "Alone four"]), "");
    write(
        &home,
        "src/alone.bt",
        "Object subclass: Alone\n  class four => 44\n",
    );
    assert_eq!(
        said(&["eval", "Alone four"]),
        "1 file changed on disk since it was loaded (:sync loads it)\n"
    );
    write(&home, "src/more.bt", "Object subclass: More\n  class five => 5\n");
    let two = "2 files changed on disk since they were loaded (:sync loads them)";
    assert!(said(&["run", "Alone", "four", "--connect"]).contains(two));
    block_on(async {
        let (connection, mut events) = home.try_connect("mcp").await.expect("a connection");
        let event = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
        let event = event.expect("in time").expect("an event");
        assert_eq!(event["event"], "disk_changed");
        assert_eq!(event["data"]["files"], json!(["src/alone.bt", "src/more.bt"]));
        let asked = request(&connection, "changes", json!({"disk": true})).await;
        assert_eq!(asked["disk_changed"], json!(["src/alone.bt", "src/more.bt"]));
    });
    // A text that is as it was when it was loaded is no change.
    write(
        &home,
        "src/alone.bt",
        "Object subclass: Alone\n  class four => 4\n",
    );
    assert!(said(&["eval", "1"]).contains("1 file changed"));
    assert!(said(&["test", "--connect"]).contains("1 file changed on disk"));
    assert_eq!(said(&["eval", "More five"]), "", "the tests loaded it");
    std::fs::remove_file(home.project().join("src/more.bt")).expect("removed");
    assert!(said(&["eval", "1"]).contains("1 file changed on disk"));
}

#[test]
fn what_is_flushed_or_reloaded_is_not_ahead() {
    let home = Home::new("level");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let changed =
            async || request(&connection, "changes", json!({"disk": true})).await["disk_changed"].clone();
        eval(&connection, "Alone class >> four => 40").await;
        assert_eq!(
            changed().await,
            json!([]),
            "a change of the image is none of the disk"
        );
        assert_eq!(kind(&request(&connection, "flush", json!({})).await), "none");
        assert_eq!(changed().await, json!([]));
        write(
            &home,
            "src/base.bt",
            "Object subclass: Base\n  class one => 100\n",
        );
        assert_eq!(changed().await, json!(["src/base.bt"]));
        request(&connection, "reload", json!({"class": "Base"})).await;
        assert_eq!(changed().await, json!([]));
    });
}

fn classes(home: &Home) -> Vec<String> {
    let text = std::fs::read(home.workspace().join("metadata.json")).expect("metadata");
    let metadata: Value = serde_json::from_slice(&text).expect("JSON");
    let classes = metadata["classes"].as_array().expect("classes").iter();
    classes
        .filter_map(|class| class["name"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn the_loaded_classes_are_on_record_while_the_workspace_runs_and_after_it_was_killed() {
    let home = Home::new("record");
    orbit(&home);
    let info = home.start(&[]);
    assert_eq!(classes(&home), ["Alone", "Base", "Derived", "User"]);
    block_on(async {
        let connection = home.connect().await;
        write(&home, "src/more.bt", "Object subclass: More\n  class five => 5\n");
        request(&connection, "load-project", json!({})).await;
        wait_until("the new class is on record", Duration::from_secs(10), || {
            classes(&home).contains(&"More".to_owned())
        });
        request(&connection, "remove-class", json!({"class": "Alone"})).await;
        wait_until("the removed class is not", Duration::from_secs(10), || {
            classes(&home) == ["Base", "Derived", "More", "User"]
        });
    });
    kill(u32::try_from(info["pid"].as_u64().expect("a pid")).expect("a pid"));
    assert_eq!(classes(&home), ["Base", "Derived", "More", "User"]);
}

/// An edit made while the workspace starts is what the image runs, or it stays in its file; it is never written over.
#[test]
fn an_edit_during_the_start_is_never_lost() {
    for delay in [50, 150, 300, 600] {
        let home = Home::new("editstart");
        orbit(&home);
        let file = home.project().join("src/base.bt");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(delay));
                std::fs::write(&file, "Object subclass: Base\n  class one => 4711\n").expect("the edit");
            });
            home.start(&[]);
        });
        block_on(async {
            let connection = home.connect().await;
            let runs = eval(&connection, "Base one").await["value"].clone();
            let saved = json!({"class": "Base", "side": "class", "source": "one => 3"});
            request(&connection, "save-method", saved).await;
            let flushed = request(&connection, "flush", json!({})).await;
            let text = std::fs::read_to_string(&file).expect("the file");
            assert!(
                runs == 4711 || text.contains("4711"),
                "{delay} ms: {runs} {text} {flushed:?}"
            );
        });
    }
}

/// What was built is taken away while a workspace starts: its classes are there all the same.
#[test]
fn a_build_that_is_removed_during_the_start_is_made_again() {
    let home = Home::new("cleanstart");
    orbit(&home);
    let built = home.project().join("_build");
    let described = || {
        let output = home.run(&["--json", "project-image", "."]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(described().contains("orbit@alone.beam"));
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let built = &built;
        scope.spawn(move || {
            while is_done.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                drop(std::fs::remove_dir_all(built));
                std::thread::sleep(Duration::from_millis(70));
            }
        });
        for _ in 0..6 {
            // Whoever removes it all the time gets an error, not an image without classes.
            let image = described();
            assert!(
                image.contains("orbit@alone.beam") || image.contains("\"error\""),
                "{image}"
            );
        }
        drop(done);
    });
    drop(std::fs::remove_dir_all(&built));
    assert!(described().contains("orbit@alone.beam"));
}

/// Exporting traces replaces nothing.
#[test]
fn an_export_of_traces_is_a_new_file() {
    let home = Home::new("exporttraces");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        for path in ["src/base.bt", "beamtalk.toml"] {
            let before = std::fs::read(home.project().join(path)).expect("the file");
            let refused = request(&connection, "export-traces", json!({"path": path})).await;
            assert_eq!(kind(&refused), "target_exists");
            assert_eq!(
                std::fs::read(home.project().join(path)).expect("the file"),
                before
            );
        }
        let exported = request(&connection, "export-traces", json!({"path": "new.jsonl"})).await;
        assert_eq!(exported["count"], 0);
    });
}

/// A class that was typed is not replaced by one of its name that comes from a file, and stays as it is.
#[test]
fn a_typed_class_does_not_give_way_to_a_file() {
    let home = Home::new("namesake");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "Object subclass: Late\n  class q => \"typed\"").await;
        let file = "Object subclass: Late\n  class mine => \"hours\"\n";
        write(&home, "src/Late.bt", file);
        write(&home, "../else/Late.bt", file);
        write(
            &home,
            "src/alone.bt",
            "Object subclass: Alone\n  class four => 44\n",
        );
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(paths(&synced), ["src/Late.bt"]);
        let told = synced["errors"][0].to_string();
        assert!(
            told.contains("change 1: ")
                && told.contains("Late of src/Late.bt")
                && told.contains(":discard Late"),
            "{told}"
        );
        for path in ["src/Late.bt", "../else/Late.bt"] {
            let refused = request(&connection, "load-file", json!({ "path": path })).await;
            assert_eq!(kind(&refused), "reload_failed", "{path}");
        }
        assert_eq!(eval(&connection, "Late q").await["value"], "typed");
        assert_eq!(
            eval(&connection, "Alone four").await["value"],
            44,
            "the others are loaded"
        );
        // Set aside, the file's class comes; in the same words nothing is a change.
        request(&connection, "discard", json!({"class": "Late"})).await;
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(paths(&synced), [""; 0]);
        assert_eq!(eval(&connection, "Late mine").await["value"], "hours");
        eval(&connection, "Object subclass: Same\n  class q => 1").await;
        eval(&connection, "Same class >> r => 2").await;
        write(
            &home,
            "src/Same.bt",
            "// Written.\nObject subclass: Same\n\n  class q => 1\n\n  class r => 2\n",
        );
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(paths(&synced), [""; 0]);
        assert_eq!(eval(&connection, "Same q + Same r").await["value"], 3);
        let changes = request(&connection, "changes", json!({})).await;
        assert_eq!(changes["entries"], json!([]));
    });
}

/// What was typed in an earlier run is not put in the place of a class that a file has by now.
#[test]
fn a_typed_class_of_an_earlier_run_does_not_replace_that_of_a_file() {
    let home = Home::new("namesakerestore");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "Object subclass: Late\n  class q => \"typed\"").await;
        eval(&connection, "Late class >> r => 2").await;
    });
    home.run(&["workspace", "stop"]);
    write(
        &home,
        "src/Late.bt",
        "Object subclass: Late\n  class mine => \"hours\"\n",
    );
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let restored = request(&connection, "restore", json!({"all": true})).await;
        assert_eq!(restored["entries"], json!([]));
        let told = restored["failed"].to_string();
        assert!(
            told.contains("src/Late.bt") && told.contains(":discard 1"),
            "{told}"
        );
        assert_eq!(restored["failed"].as_array().map(Vec::len), Some(2));
        assert_eq!(eval(&connection, "Late mine").await["value"], "hours");
        assert_eq!(kind(&eval(&connection, "Late q").await), "does_not_understand");
        let changes = request(&connection, "changes", json!({})).await;
        assert_eq!(changes["waiting"].as_array().map(Vec::len), Some(2));
    });
}

/// Files are compared with what the image has, not with what was loaded from them last.
#[test]
fn a_file_put_back_to_what_it_was_before_a_flush_is_loaded() {
    let home = Home::new("putback");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let source = home.project().join("src/alone.bt");
        let before = std::fs::read_to_string(&source).expect("a file");
        let save = json!({"class": "Alone", "selector": "four", "side": "class", "source": "four => 5"});
        request(&connection, "save-method", save).await;
        request(&connection, "flush", json!({})).await;
        assert_eq!(eval(&connection, "Alone four").await["value"], 5);
        write(&home, "src/alone.bt", &before);
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(synced["summary"], "Reloaded 1 of 4 files (3 unchanged)");
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
        let synced = request(&connection, "load-project", json!({})).await;
        assert_eq!(synced["summary"], "Reloaded 0 of 4 files (4 unchanged)");
        // The same after it was loaded by itself in between, and after its class was removed.
        write(&home, "src/alone.bt", &before.replace('4', "6"));
        request(&connection, "reload", json!({"class": "Alone"})).await;
        write(&home, "src/alone.bt", &before);
        request(&connection, "load-project", json!({})).await;
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
        request(&connection, "remove-class", json!({"class": "Alone"})).await;
        request(&connection, "flush", json!({"confirm_destructive": true})).await;
        assert!(!source.exists());
        request(&connection, "load-project", json!({})).await;
        write(&home, "src/alone.bt", &before);
        request(&connection, "load-project", json!({})).await;
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
        // At once, without a sync in which the file was missing.
        request(&connection, "remove-class", json!({"class": "Alone"})).await;
        request(&connection, "flush", json!({"confirm_destructive": true})).await;
        write(&home, "src/alone.bt", &before);
        request(&connection, "load-project", json!({})).await;
        assert_eq!(eval(&connection, "Alone four").await["value"], 4);
    });
}
