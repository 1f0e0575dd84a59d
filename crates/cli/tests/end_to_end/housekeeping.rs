//! `clean` and `generate`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::Place;

#[test]
fn clean_removes_what_was_built_and_says_so() {
    let place = Place::with_project();
    place.write(
        "vectors/beamtalk.toml",
        "[package]\nname = \"vectors\"\nversion = \"1.0.0\"\n",
    );
    place
        .run(&["deps", "add", "vectors", "--path", "vectors"])
        .expect_code(0);
    place.run(&["build"]).expect_code(0);
    let has = |path: &str| place.directory().join(path).exists();
    let done = place.run(&["clean", "--dry-run"]).expect_code(0);
    assert_eq!(done.stdout, "Would remove _build/dev\n");
    assert!(has("_build/dev/ebin"));
    let done = place.run(&["clean"]).expect_code(0);
    assert_eq!(done.stdout, "Removed _build/dev\n");
    assert!(!has("_build/dev") && has("_build/deps/vectors"));
    place.run(&["build"]).expect_code(0);
    let done = place.run(&["clean", "--deps"]).expect_code(0);
    assert_eq!(done.stdout, "Removed _build/deps\n");
    assert!(has("_build/dev"));
    place.run(&["build"]).expect_code(0);
    let done = place.run(&["clean", "--all"]).expect_code(0);
    assert_eq!(done.stdout, "Removed _build/deps\nRemoved _build/dev\n");
    assert!(place.run(&["clean", "--all"]).expect_code(0).stdout.is_empty());
    place.run(&["clean", "--all", "--deps"]).expect_code(2);
    assert!(has("src") && has("vectors/beamtalk.toml"));
}

#[test]
fn clean_follows_no_link() {
    let place = Place::with_project();
    place.write("precious/file", "");
    let precious = place.directory().join("precious");
    fs::create_dir(place.directory().join("_build")).unwrap();
    symlink(&precious, place.directory().join("_build/dev")).unwrap();
    place.run(&["clean", "--all"]).expect_code(0);
    assert!(!place.directory().join("_build/dev").exists());
    fs::remove_dir(place.directory().join("_build")).unwrap();
    symlink(&precious, place.directory().join("_build")).unwrap();
    place.run(&["clean", "--all"]).expect_code(2);
    assert!(precious.join("file").exists());
}

#[test]
fn a_native_module_is_written_once_and_compiles() {
    let place = Place::with_project();
    place.write(
        "src/Vault.bt",
        "Object subclass: Vault native: work_vault\n\n  class open: path :: String -> Vault => self delegate\n\n  \
         class open -> Vault => self delegate\n\n  at: key put: value -> Vault => self delegate\n\n  \
         at: key or: other -> Vault => self delegate\n\n  twice => 2\n",
    );
    place.write(
        "src/Bell.bt",
        "Actor subclass: Bell native: work_bell\n\n  ring: times :: Integer -> Integer => self delegate\n",
    );
    let done = place.run(&["generate", "native", "Vault"]).expect_code(0);
    assert_eq!(done.stdout, "native/work_vault.erl\n");
    let text = place.read("native/work_vault.erl");
    for part in [
        "-module(work_vault).",
        "-export([at/3, open/0, open/1]).",
        "%% class open: path :: String -> Vault",
        "%% at: key put: value -> Vault\n%% at: key or: other -> Vault\n",
        "at(_Self, _Key, _Value) ->",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("twice"));
    place.run(&["generate", "native", "Bell"]).expect_code(0);
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run =>\n    bell := Bell spawn\n    \
         [bell ring: 3] on: Error do: [:e | Console printLine: e message]\n    \
         [Vault open] on: Error do: [:e | Console printLine: e message]\n",
    );
    let done = place.run(&["run", "Main", "run"]).expect_code(0);
    assert_eq!(
        done.stdout.matches("not_implemented").count(),
        2,
        "{}",
        done.stdout
    );
    assert!(!done.stderr.contains("Warning"), "{}", done.stderr);
    place.write("native/work_vault.erl", "mine");
    place.run(&["generate", "native", "Vault"]).expect_code(2);
    assert_eq!(place.read("native/work_vault.erl"), "mine");
    place
        .run(&["generate", "native", "Vault", "--force"])
        .expect_code(0);
    assert_eq!(place.read("native/work_vault.erl"), text);
    place.run(&["generate", "native", "Work"]).expect_code(2);
    let done = place.run(&["generate", "native", "Valt"]).expect_code(1);
    assert!(done.stderr.contains("did you mean 'Vault'?"), "{}", done.stderr);
}

#[test]
fn stubs_are_classes_that_call_the_module() {
    let place = Place::with_project();
    place.write(
        "native/work_sum.erl",
        "-module(work_sum).\n-export([add/2, find/1, 'odd name'/0]).\n\n\
         -spec add(First :: integer(), integer()) -> number().\nadd(A, B) -> A + B.\n\n\
         -spec find(atom()) -> {ok, [binary()]} | {error, missing}.\nfind(_) -> {ok, []}.\n'odd name'() -> ok.\n",
    );
    place.run(&["build"]).expect_code(0);
    let done = place
        .run(&["generate", "stubs", "work_sum", "lists"])
        .expect_code(0);
    assert_eq!(done.stdout, "stubs/work_sum.bt\nstubs/lists.bt\n");
    let text = place.read("stubs/work_sum.bt");
    for part in [
        "typed Object subclass: ErlangWorkSum native: work_sum\n",
        "  class add: first :: Integer argument2: argument2 :: Integer -> Number =>\n    self delegate\n",
        "-> Result(List(String | Binary), #missing) =>",
        "// odd name/0 cannot be a method",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    place.run(&["fmt", "--check", "stubs"]).expect_code(0);
    place.write("src/ErlangLists.bt", &place.read("stubs/lists.bt"));
    place.write(
        "src/Main.bt",
        "Object subclass: Main\n\n  class run => Console printLine: (ErlangLists seq: 1 to: 3) printString\n",
    );
    place.run(&["build", "--warnings-as-errors"]).expect_code(0);
    assert_eq!(
        place.run(&["run", "Main", "run"]).expect_code(0).stdout,
        "#(1, 2, 3)\n"
    );
    let done = place
        .run(&["generate", "stubs", "no_such", "-o", "elsewhere"])
        .expect_code(1);
    assert!(done.stderr.contains("module 'no_such'"), "{}", done.stderr);
    assert!(!place.directory().join("elsewhere").exists());
    place.run(&["generate", "stubs", "../x"]).expect_code(2);
    place.run(&["generate", "stubs"]).expect_code(2);
    let beams = place.directory().join("_build/dev/native/ebin");
    let beams = beams.to_str().unwrap();
    place
        .run(&[
            "generate",
            "stubs",
            "work_sum",
            "--native-dir",
            beams,
            "-o",
            "other",
        ])
        .expect_code(0);
    assert_eq!(place.read("other/work_sum.bt"), text);
}
