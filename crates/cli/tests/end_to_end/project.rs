use std::fs;

use crate::support::Place;

#[test]
fn a_new_library_builds_passes_its_tests_and_is_formatted() {
    let place = Place::with_project();
    let done = place.run(&["build", "--warnings-as-errors"]).expect_code(0);
    assert!(
        done.stdout
            .ends_with("Build complete: 1 modules in _build/dev/ebin/\n"),
        "{}",
        done.stdout
    );
    let done = place.run(&["test"]).expect_code(0);
    assert!(
        done.stdout.contains("WorkTest: 1 test, 1 passed ✓"),
        "{}",
        done.stdout
    );
    assert!(done.stdout.contains("2 tests, 2 passed"), "{}", done.stdout);
    place.run(&["fmt", "--check"]).expect_code(0);
    place.run(&["lint"]).expect_code(0);
    place.run(&["check"]).expect_code(0);
}

#[test]
fn a_new_application_runs() {
    let place = Place::new();
    place.run(&["new", "clock", "--app"]).expect_code(0);
    let inside = |arguments: &[&str]| {
        crate::support::finish(
            place
                .command(arguments)
                .current_dir(place.directory().join("clock"))
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .unwrap(),
        )
    };
    let done = inside(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "The counter stands at 2.\n");
    inside(&["test"]).expect_code(0);
    inside(&["fmt", "--check"]).expect_code(0);
    inside(&["lint"]).expect_code(0);
}

/// Whatever the README of a new project says works, its session too.
#[test]
fn the_readme_of_a_new_project_is_true() {
    let place = Place::new();
    for arguments in [&["new", "orbit"][..], &["new", "clock", "--app"]] {
        place.run(arguments).expect_code(0);
        let directory = place.directory().join(arguments[1]);
        let inside = |words: &[&str]| {
            let mut command = place.command(words);
            command.current_dir(&directory).stdin(std::process::Stdio::null());
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped());
            crate::support::finish(command.spawn().unwrap()).expect_code(0);
        };
        let readme = fs::read_to_string(directory.join("README.md")).unwrap();
        let commands: Vec<&str> = readme
            .lines()
            .filter_map(|line| line.strip_prefix("beamtalk "))
            .filter_map(|line| line.split('#').next())
            .collect();
        assert!(commands.len() >= 5, "{readme}");
        for command in commands {
            let words: Vec<&str> = command.split_whitespace().collect();
            if words != ["repl"] {
                inside(&words);
            }
        }
        inside(&["test-docs", "README.md"]);
        // What an AI agent is told to write and to run works here.
        inside(&["test-docs", "AGENTS.md"]);
        let agents = fs::read_to_string(directory.join("AGENTS.md")).unwrap();
        let told: Vec<&str> = agents
            .split('`')
            .filter_map(|part| part.strip_prefix("beamtalk "))
            .collect();
        assert!(told.len() >= 5, "{agents}");
        for command in told {
            inside(&command.split_whitespace().collect::<Vec<_>>());
        }
    }
}

#[test]
fn bad_names_and_existing_directories_are_refused() {
    let place = Place::new();
    place.run(&["new", "Orbit"]).expect_code(2);
    place.run(&["new", "crypto"]).expect_code(2);
    place.write("taken/file", "");
    place.run(&["new", "taken"]).expect_code(2);
}

#[test]
fn only_what_changed_is_compiled_again() {
    let place = Place::with_project();
    place.write(
        "src/Base.bt",
        "Value subclass: Base\n  field: a = 1\n\n  twice => self.a * 2\n",
    );
    place.write(
        "src/User.bt",
        "Object subclass: User\n\n  class use => Base new twice\n",
    );
    place.run(&["build"]).expect_code(0);
    let compiled = |place: &Place| {
        let done = place.run(&["build", "-v"]).expect_code(0);
        let line = done
            .stderr
            .lines()
            .find(|line| line.contains("modules to compile"))
            .map(str::to_owned);
        line.unwrap_or_default()
    };
    assert_eq!(compiled(&place), "work: 0 of 3 modules to compile");
    // A body is nobody else's business.
    place.write(
        "src/Base.bt",
        "Value subclass: Base\n  field: a = 1\n\n  twice => self.a + self.a\n",
    );
    assert_eq!(compiled(&place), "work: 1 of 3 modules to compile");
    // A new slot is.
    place.write(
        "src/Base.bt",
        "Value subclass: Base\n  field: a = 1\n  field: b = 1\n\n  twice => self.a * 2\n",
    );
    assert_eq!(compiled(&place), "work: 2 of 3 modules to compile");
    fs::remove_file(place.directory().join("src/User.bt")).unwrap();
    place.run(&["build"]).expect_code(0);
    assert!(
        !place
            .directory()
            .join("_build/dev/ebin/bt@work@user.beam")
            .exists()
    );
}

#[test]
fn every_error_of_every_file_is_reported_and_the_old_output_stays() {
    let place = Place::with_project();
    place.run(&["build"]).expect_code(0);
    place.write(
        "src/One.bt",
        "Object subclass: One\n\n  class a => missing\n\n  class b => gone\n",
    );
    place.write("src/Two.bt", "Object subclass: Two\n\n  class a => [:x x]\n");
    let done = place.run(&["build"]).expect_code(1);
    for part in ["src/One.bt:3:", "src/One.bt:5:", "src/Two.bt:3:"] {
        assert!(done.stderr.contains(part), "{part} in {}", done.stderr);
    }
    assert!(
        place
            .directory()
            .join("_build/dev/ebin/bt@work@work.beam")
            .exists()
    );
    let done = place.run(&["build", "--json"]).expect_code(1);
    let last: serde_json::Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["exit"], 1);
    assert_eq!(last["error"]["kind"], "compile_error");
    let first: serde_json::Value = serde_json::from_str(done.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["file"], "src/One.bt");
    assert_eq!(first["line"], 3);
}

#[test]
fn a_bad_manifest_names_the_line() {
    let place = Place::with_project();
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"work\"\nverson = \"1.0.0\"\n",
    );
    let done = place.run(&["build"]).expect_code(2);
    assert!(
        done.stderr.contains("beamtalk.toml:3: unknown key 'verson'"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("did you mean 'version'?"), "{}", done.stderr);
}

#[test]
fn path_dependencies_are_built_first() {
    let place = Place::with_project();
    place.write(
        "vectors/beamtalk.toml",
        "[package]\nname = \"vectors\"\nversion = \"1.0.0\"\n",
    );
    place.write(
        "vectors/src/Angle.bt",
        "Value subclass: Angle\n  field: degrees = 90\n",
    );
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"work\"\nversion = \"0.1.0\"\n\n[dependencies]\nvectors = { path = \"vectors\" }\n",
    );
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run => Console printLine: Angle new degrees\n",
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "90\n");
    assert!(
        place
            .directory()
            .join("_build/deps/vectors/ebin/bt@vectors@angle.beam")
            .exists()
    );
    place.write(
        "vectors/beamtalk.toml",
        "[package]\nname = \"vectors\"\nversion = \"1.0.0\"\n[dependencies]\nwork = { path = \"..\" }\n",
    );
    let done = place.run(&["build"]).expect_code(2);
    assert!(done.stderr.contains("depend on each other"), "{}", done.stderr);
}

#[test]
fn native_erlang_is_compiled_and_callable() {
    let place = Place::with_project();
    place.write(
        "native/work_native.erl",
        "-module(work_native).\n-export([answer/0]).\nanswer() -> 42.\n",
    );
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run => Console printLine: Erlang work_native answer\n",
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(done.stdout, "42\n");
    place.write(
        "native/work_native.erl",
        "-module(work_native).\n-export([answer/0]).\nanswer( -> 42.\n",
    );
    let done = place.run(&["build"]).expect_code(1);
    assert!(done.stderr.contains("work_native.erl:3:"), "{}", done.stderr);
}

#[test]
fn a_single_file_builds_beside_itself() {
    let place = Place::new();
    place.write("Lone.bt", "Object subclass: Lone\n\n  class run => 1\n");
    let done = place.run(&["build", "Lone.bt"]).expect_code(0);
    assert!(done.stdout.contains("1 modules in build/"), "{}", done.stdout);
    assert!(place.directory().join("build/bt@lone.beam").exists());
}

#[test]
fn any_bytes_give_diagnostics() {
    let place = Place::with_project();
    let mut state: u32 = 7;
    let mut noise = |length: usize| -> Vec<u8> {
        (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect()
    };
    let deep = format!(
        "Object subclass: Deep\n  run => {}1{}\n",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    for (name, bytes) in [
        ("Noise", noise(5_000)),
        ("Text", noise(5_000).iter().map(|byte| byte % 95 + 32).collect()),
        ("Deep", deep.into_bytes()),
        ("Empty", Vec::new()),
        ("Nul", b"Object subclass: Nul\n  run => \0\n".to_vec()),
    ] {
        fs::write(place.directory().join(format!("src/{name}.bt")), bytes).unwrap();
    }
    for command in ["check", "build", "fmt"] {
        let done = place.run(&[command]).expect_code(1);
        assert!(done.stderr.contains("src/Noise.bt:"), "{}", done.stderr);
        assert!(done.stderr.contains("src/Deep.bt:"), "{}", done.stderr);
    }
}

#[test]
fn ten_errors_are_ten_reports_and_many_are_cut() {
    let place = Place::with_project();
    let methods = |count: usize| -> String {
        (0..count)
            .map(|at| format!("  m{at} => gone{at}\n"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    place.write("src/Ten.bt", &format!("Object subclass: Ten\n\n{}", methods(10)));
    let done = place.run(&["check"]).expect_code(1);
    assert_eq!(done.stderr.matches("error[").count(), 10, "{}", done.stderr);
    place.write("src/Ten.bt", &format!("Object subclass: Ten\n\n{}", methods(62)));
    let done = place.run(&["check"]).expect_code(1);
    assert_eq!(done.stderr.matches("error[").count(), 50, "{}", done.stderr);
    assert!(done.stderr.contains("src/Ten.bt: … 12 more"), "{}", done.stderr);
}

#[test]
fn a_program_is_packed_into_one_file() {
    let place = Place::with_project();
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class main: words =>\n    Console printLine: \"Grüße, {words first}\"\n    Program exit: 3\n",
    );
    place
        .run(&["build", "--escript", "--entry", "Main main:", "-o", "greeter"])
        .expect_code(0);
    let first = fs::read(place.directory().join("greeter")).unwrap();
    let done = std::process::Command::new(place.directory().join("greeter"))
        .arg("Ada")
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&done.stdout),
        "Grüße, Ada\n",
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(done.status.code(), Some(3));
    place
        .run(&["build", "--escript", "--entry", "Main main:", "-o", "greeter"])
        .expect_code(0);
    assert!(
        fs::read(place.directory().join("greeter")).unwrap() == first,
        "equal input gives equal bytes"
    );
    place.run(&["build", "--escript"]).expect_code(2);
    place
        .run(&["build", "--escript", "--entry", "nonsense"])
        .expect_code(2);
}

#[test]
fn native_code_sees_all_classes_however_little_changed() {
    let place = Place::with_project();
    let native = |answer: &str| {
        format!(
            "-module(work_native).\n-include(\"beamtalk_classes.hrl\").\n-export([answer/0]).\n\
             answer() -> {{?'BT_Work', {answer}}}.\n"
        )
    };
    place.write("native/work_native.erl", &native("1"));
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run => Console printLine: Erlang work_native answer printString\n",
    );
    let run = |place: &Place| place.run(&["run", "Main", "run"]).expect_code(0).stdout;
    assert_eq!(run(&place), "{#'bt@work@work', 1}\n");
    place.write("native/work_native.erl", &native("2"));
    assert_eq!(run(&place), "{#'bt@work@work', 2}\n");
    // A class that moves is found where it is now.
    fs::create_dir(place.directory().join("src/inner")).unwrap();
    fs::rename(
        place.directory().join("src/Work.bt"),
        place.directory().join("src/inner/Work.bt"),
    )
    .unwrap();
    assert_eq!(run(&place), "{#'bt@work@inner@work', 2}\n");
    // What has no source any more is gone.
    fs::remove_file(place.directory().join("native/work_native.erl")).unwrap();
    place.run(&["build"]).expect_code(0);
    assert!(
        !place
            .directory()
            .join("_build/dev/native/ebin/work_native.beam")
            .exists()
    );
}

#[test]
fn native_modules_collide_with_nobody() {
    let place = Place::with_project();
    let module = |name: &str| format!("-module({name}).\n-export([a/0]).\na() -> 1.\n");
    for name in ["lists", "beamtalk_dispatch", "erlang"] {
        let path = format!("native/{name}.erl");
        place.write(&path, &module(name));
        let done = place.run(&["build"]).expect_code(1);
        assert!(done.stderr.contains("exists already"), "{}", done.stderr);
        fs::remove_file(place.directory().join(path)).unwrap();
    }
    place.write(
        "vectors/beamtalk.toml",
        "[package]\nname = \"vectors\"\nversion = \"1.0.0\"\n",
    );
    place.write("vectors/native/shared_code.erl", &module("shared_code"));
    place.write("native/shared_code.erl", &module("shared_code"));
    place
        .run(&["deps", "add", "vectors", "--path", "vectors"])
        .expect_code(0);
    let done = place.run(&["build"]).expect_code(1);
    assert!(
        done.stderr
            .contains("'shared_code' is in 'vectors' and in 'work'"),
        "{}",
        done.stderr
    );
}

#[test]
fn a_manifest_that_is_no_text_names_the_line() {
    let place = Place::with_project();
    fs::write(
        place.directory().join("beamtalk.toml"),
        b"[package]\nname = \"\xff\"\n",
    )
    .unwrap();
    let done = place.run(&["build"]).expect_code(2);
    assert!(
        done.stderr.contains("beamtalk.toml:2: not UTF-8 text"),
        "{}",
        done.stderr
    );
    place.write(
        "beamtalk.toml",
        "\u{feff}[package]\nname = \"work\"\nversion = \"0.1.0\"\n",
    );
    place.run(&["build"]).expect_code(0);
}
