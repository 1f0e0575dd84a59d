//! `build --release`, `build --escript`, and the flags of the standard library.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::running::is_listening;
use crate::support::{Place, finish, wait_until};

/// An application with a dependency and native code.
fn application(place: &Place) {
    place.write(
        "beamtalk.toml",
        "[package]\nname = \"work\"\nversion = \"2.1.0\"\n\n[dependencies]\nvectors = { path = \"vectors\" }\n\n\
         [application]\nsupervisor = \"WorkSup\"\n\n[native]\napplications = [\"inets\"]\n",
    );
    place.write(
        "vectors/beamtalk.toml",
        "[package]\nname = \"vectors\"\nversion = \"1.0.0\"\n",
    );
    place.write(
        "vectors/src/Angle.bt",
        "Value subclass: Angle\n\n  class degrees => 90\n",
    );
    place.write(
        "native/work_clock.erl",
        "-module(work_clock).\n-export([tick/0]).\ntick() -> 41 + 1.\n",
    );
    place.write(
        "src/WorkSup.bt",
        "Supervisor subclass: WorkSup\n\n  class children => #(Worker)\n",
    );
    place.write(
        "src/Worker.bt",
        "Actor subclass: Worker\n  state: n = 0\n\n  initialize =>\n    \
         Console printLine: \"up {Angle degrees} {Erlang work_clock tick} {WorkspaceInterface current isNil}\"\n\n  \
         terminate: reason => Console printLine: \"down\"\n",
    );
}

/// Every file below a directory with its bytes, its mode and its time.
fn contents(directory: &Path) -> BTreeMap<String, (Vec<u8>, u32, i64)> {
    fn walk(directory: &Path, base: &Path, found: &mut BTreeMap<String, (Vec<u8>, u32, i64)>) {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            let bytes = if metadata.is_dir() {
                walk(&entry.path(), base, found);
                Vec::new()
            } else {
                fs::read(entry.path()).unwrap()
            };
            let name = entry.path().strip_prefix(base).unwrap().display().to_string();
            found.insert(name, (bytes, metadata.mode(), metadata.mtime()));
        }
    }
    let mut found = BTreeMap::new();
    walk(directory, directory, &mut found);
    found
}

fn start(program: &Path, place: &Place, argument: &str) -> Child {
    // Neither Erlang nor Beamtalk can be found.
    Command::new(program)
        .arg(argument)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("BEAMTALK_HOME", place.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Whether a process has an internet socket.
fn listens(id: u32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{id}/fd")).unwrap();
    descriptors
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| is_listening(id, &target.to_string_lossy()))
}

#[test]
fn a_release_runs_alone_until_it_is_told_to_stop() {
    let place = Place::with_project();
    application(&place);
    let done = place.run(&["build", "--release"]).expect_code(0);
    assert!(
        done.stdout.ends_with("modules in _build/dev/ebin/\n"),
        "{}",
        done.stdout
    );
    let release = place.directory().join("_build/prod/rel/work");
    let program = release.join("bin/work");
    let done = finish(start(&program, &place, "version")).expect_code(0);
    assert_eq!(done.stdout, "work 2.1.0\n");
    finish(start(&program, &place, "sideways")).expect_code(2);
    assert!(release.join("releases/2.1.0/start.boot").is_file());
    let files = contents(&release);
    for part in [
        "lib/work-2.1.0/ebin/work_clock.beam",
        "lib/vectors-1.0.0/ebin/vectors.app",
    ] {
        assert!(files.contains_key(part), "{part}");
    }
    for prefix in ["lib/kernel-", "lib/stdlib-", "lib/inets-"] {
        assert!(files.keys().any(|name| name.starts_with(prefix)), "{prefix}");
    }
    for name in ["bridge", "eval", "session", "worker", "change_log", "image_ops"] {
        let file = format!("/ebin/beamtalk_{name}.beam");
        assert!(!files.keys().any(|known| known.ends_with(&file)), "{file}");
    }
    assert!(!files.keys().any(|name| name.ends_with("/epmd")));
    // A link to the program is as good as the program.
    let link = place.directory().join("link");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    let mut child = start(&link, &place, "foreground");
    let mut output = child.stdout.take().unwrap();
    let mut text = vec![0; 32];
    let read = std::io::Read::read(&mut output, &mut text).unwrap();
    assert_eq!(String::from_utf8_lossy(&text[..read]), "up 90 42 true\n");
    assert!(!listens(child.id()));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut output, &mut rest).unwrap();
    assert!(rest.contains("down\n"), "{rest}");
    finish(child).expect_code(0);
}

#[test]
fn equal_input_gives_an_equal_release() {
    let build = |epoch: Option<&str>| {
        let place = Place::with_project();
        application(&place);
        let mut command = place.command(&["build", "--release", "--quiet"]);
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        assert!(command.status().unwrap().success());
        contents(&place.directory().join("_build/prod/rel/work"))
    };
    let first = build(None);
    let second = build(None);
    for (name, file) in &first {
        assert!(second.get(name) == Some(file), "{name} differs");
        assert_eq!(file.2, 0, "{name}");
    }
    assert_eq!(first.len(), second.len());
    assert!(
        build(Some("1600000000"))
            .values()
            .all(|file| file.2 == 1_600_000_000)
    );
}

#[test]
fn a_release_that_cannot_start_says_why() {
    let place = Place::with_project();
    let done = place.run(&["build", "--release"]).expect_code(2);
    assert!(done.stderr.contains("[application]"), "{}", done.stderr);
    application(&place);
    place.write(
        "src/Worker.bt",
        "Actor subclass: Worker\n  state: n = 0\n\n  initialize => self error: \"no tea\"\n",
    );
    place.run(&["build", "--release"]).expect_code(0);
    let program = place.directory().join("_build/prod/rel/work/bin/work");
    let done = finish(start(&program, &place, "foreground")).expect_code(1);
    assert!(done.stderr.contains("no tea"), "{}", done.stderr);
    place
        .run(&["build", "--release", "--escript", "--entry", "A b"])
        .expect_code(2);
    place.run(&["build", "--entry", "A b"]).expect_code(2);
    place.run(&["build", "-o", "x"]).expect_code(2);
}

#[test]
fn an_executable_is_the_same_wherever_it_is_made() {
    let build = |epoch: Option<&str>| {
        let place = Place::with_project();
        application(&place);
        place.write(
            "src/Main.bt",
            "Object subclass: Main\n\n  class main: words =>\n    Transcript show: \"log\"; cr\n    \
             (Value classBuilder) name: #Made; register\n    \
             Console printLine: \"{words size} {Angle degrees} {Erlang work_clock tick} {WorkspaceInterface current isNil}\"\n",
        );
        let mut command = place.command(&[
            "build",
            "--escript",
            "--entry",
            "Main main:",
            "-o",
            "tool",
            "--quiet",
        ]);
        if let Some(epoch) = epoch {
            command.env("SOURCE_DATE_EPOCH", epoch);
        }
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let path = place.directory().join("tool");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        let done = Command::new(&path).args(["a", "b"]).output().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            "log\n2 90 42 true\n",
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        fs::read(path).unwrap()
    };
    let first = build(None);
    assert!(first == build(None), "two builds differ");
    assert!(first != build(Some("1600000000")), "the time is not used");
    let text = String::from_utf8_lossy(&first);
    for name in ["bridge", "eval", "session", "worker", "change_log"] {
        assert!(!text.contains(&format!("beamtalk_{name}.beam")), "{name}");
    }
    assert!(text.contains("beamtalk_dispatch.beam"));
}

#[test]
fn primitives_are_for_the_library_or_allowed() {
    let place = Place::with_project();
    place.write(
        "src/Odd.bt",
        "Object subclass: Odd\n\n  class twice: n -> Integer => @primitive \"work_odd:twice\"\n",
    );
    place.write(
        "native/work_odd.erl",
        "-module(work_odd).\n-export([twice/2]).\ntwice(_, N) -> 2 * N.\n",
    );
    let done = place.run(&["build"]).expect_code(1);
    assert!(done.stderr.contains("error[E0221]"), "{}", done.stderr);
    let done = place.run(&["build", "--allow-primitives"]).expect_code(0);
    assert!(done.stderr.contains("warning[E0221]"), "{}", done.stderr);
    place.run(&["build"]).expect_code(1);
    let done = place
        .run(&["build", "--stdlib-mode", "--jobs", "1"])
        .expect_code(0);
    assert!(!done.stderr.contains("E0221"), "{}", done.stderr);
    assert!(
        place
            .directory()
            .join("_build/dev/ebin/bt@stdlib@odd.beam")
            .exists()
    );
    // A directory of classes without a manifest, as the library is one.
    let bare = Place::new();
    bare.write("lib/Odd.bt", &place.read("src/Odd.bt"));
    bare.run(&["build", "lib"]).expect_code(2);
    bare.run(&["build", "--stdlib-mode", "lib"]).expect_code(0);
    assert!(
        bare.directory()
            .join("lib/_build/dev/ebin/bt@stdlib@odd.beam")
            .exists()
    );
}

#[test]
fn a_failed_release_leaves_no_half_of_one() {
    let place = Place::with_project();
    application(&place);
    place.run(&["build", "--release"]).expect_code(0);
    let text = place
        .read("beamtalk.toml")
        .replace("\"inets\"", "\"no_such_application\"");
    place.write("beamtalk.toml", &text);
    let done = place.run(&["build", "--release"]).expect_code(5);
    assert!(done.stderr.contains("no_such_application"), "{}", done.stderr);
    let releases = place.directory().join("_build/prod/rel");
    assert!(wait_until(|| fs::read_dir(&releases).unwrap().count() == 1));
    let done = finish(start(&releases.join("work/bin/work"), &place, "version")).expect_code(0);
    assert_eq!(done.stdout, "work 2.1.0\n");
}
