use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::{Done, Place};

/// The JSON lines of a command.
fn lines(done: &Done) -> Vec<Value> {
    done.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn codes(done: &Done) -> Vec<String> {
    lines(done)
        .iter()
        .filter_map(|line| {
            Some(format!(
                "{}:{} {}",
                line["file"].as_str()?,
                line["line"],
                line["code"].as_str()?
            ))
        })
        .collect()
}

const FAULTY: &str = "Value subclass: Orbit
  field: radius = (1)

  // ünder: kept
  area => ^(self.radius) * 3
\x20\x20
  twice: x =>
    @expect unused
    x foo
    (x foo) bar
";

const FIXED: &str = "Value subclass: Orbit
  field: radius = 1

  // ünder: kept
  area => self.radius * 3
\x20\x20
  twice: x =>
    x foo
    x foo bar
";

/// What is named is looked at wherever it lies, with what the project has and without the project seeing it; what has nothing
/// to look at is no success.
#[test]
fn a_named_file_is_looked_at_wherever_it_lies() {
    let place = Place::with_project();
    place.write("src/Sun.bt", "Value subclass: Sun\n  class one => self new\n");
    place.write(
        "priv/deep/Orbit.bt",
        &FAULTY.replace("radius * 3", "radius * Sun one"),
    );
    place.write("priv/Broken.bt", "Value subclass: Broken\n  run => (\n");
    place.write("priv/notes.txt", "nothing\n");
    for path in ["priv/deep/Orbit.bt", "priv/deep", "./priv/deep/"] {
        let done = place.run(&["lint", "--json", path]).expect_code(1);
        assert_eq!(codes(&done)[0], "priv/deep/Orbit.bt:2 L0102", "{done:?}");
        assert!(!done.stdout.contains("Sun"), "{done:?}");
        let done = place.run(&["check", "--json", path]).expect_code(0);
        assert_eq!(codes(&done), ["priv/deep/Orbit.bt:8 W0208"], "{done:?}");
    }
    place.run(&["check", "priv/Broken.bt"]).expect_code(1);
    place.run(&["check", "priv"]).expect_code(1);
    place.run(&["lint", "priv/deep", "--fix"]).expect_code(0);
    // The project is what it was.
    let whole = place.directory().display().to_string();
    for path in [".", &whole, "src"] {
        place.run(&["check", path]).expect_code(0);
        place.run(&["lint", path]).expect_code(0);
    }
    fs::create_dir(place.directory().join("empty")).unwrap();
    for path in ["empty", "priv/notes.txt"] {
        for command in ["lint", "check"] {
            let done = place.run(&[command, path]).expect_code(2);
            assert!(done.stderr.contains("has no Beamtalk files"), "{done:?}");
        }
    }
}

#[test]
fn findings_fail_the_command_and_fixes_keep_every_other_byte() {
    let place = Place::with_project();
    place.run(&["lint"]).expect_code(0);
    place.write("src/Orbit.bt", FAULTY);
    let path = place.directory().join("src/Orbit.bt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // Nothing of it is the compiler's business, but for the directive.
    let done = place.run(&["check", "--json"]).expect_code(0);
    assert_eq!(codes(&done), ["src/Orbit.bt:8 W0208"]);
    let done = place.run(&["lint", "--json"]).expect_code(1);
    assert_eq!(
        codes(&done),
        [
            "src/Orbit.bt:2 L0102",
            "src/Orbit.bt:5 L0101",
            "src/Orbit.bt:5 L0102",
            "src/Orbit.bt:8 W0208",
            "src/Orbit.bt:10 L0102",
        ]
    );
    let all = lines(&done);
    assert_eq!(all[1]["severity"], "lint");
    assert_eq!(all[1]["category"], "lint");
    assert_eq!(all[1]["column"], 11);
    let last = all.last().unwrap();
    assert_eq!(last["exit"], 1);
    assert_eq!(last["error"]["kind"], "lint_findings");
    let done = place.run(&["lint"]).expect_code(1);
    assert!(done.stdout.is_empty(), "{}", done.stdout);
    assert!(
        done.stderr.contains("lint[L0101]: needless `^`"),
        "{}",
        done.stderr
    );
    assert_eq!(place.read("src/Orbit.bt"), FAULTY);
    place.run(&["lint", "--fix"]).expect_code(0);
    assert_eq!(place.read("src/Orbit.bt"), FIXED);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn hints_alone_pass_and_the_table_decides() {
    let place = Place::with_project();
    place.write(
        "src/Orbit.bt",
        "Value subclass: Orbit\n  one => ^1\n  two: x => 2\n",
    );
    place.run(&["lint"]).expect_code(1);
    let manifest = place.read("beamtalk.toml");
    let with = |lint: &str, unused: &str| {
        let table = format!("{manifest}\n[diagnostics]\nlint = \"{lint}\"\nunused = \"{unused}\"\n");
        place.write("beamtalk.toml", &table);
    };
    with("off", "hint");
    let done = place.run(&["lint"]).expect_code(0);
    assert!(done.stderr.contains("hint[W0202]"), "{}", done.stderr);
    with("warn", "off");
    let done = place.run(&["check"]).expect_code(0);
    assert!(!done.stderr.contains("L0101"), "{}", done.stderr);
    let done = place.run(&["lint"]).expect_code(1);
    assert!(done.stderr.contains("warning[L0101]"), "{}", done.stderr);
}

#[test]
fn directives_silence_findings_and_are_named_when_they_do_not() {
    let place = Place::with_project();
    place.write(
        "src/Orbit.bt",
        "Value subclass: Orbit\n  @expect lint\n  one => ^1\n\n  @expect lint\n  two => 2\n",
    );
    let done = place.run(&["lint", "--json"]).expect_code(1);
    assert_eq!(codes(&done), ["src/Orbit.bt:5 W0208"]);
    // What the linter needs, the compiler does not call needless; what nobody needs, both do.
    let done = place.run(&["check", "--json"]).expect_code(0);
    assert_eq!(codes(&done), ["src/Orbit.bt:5 W0208"]);
}

#[test]
fn a_file_and_a_directory_are_linted_alone() {
    let place = Place::with_project();
    place.write("src/One.bt", "Value subclass: One\n  one => ^1\n");
    place.write("src/deep/Two.bt", "Value subclass: Two\n  two => ^One new one\n");
    place.write(
        "native/other.erl",
        "-module(other).\n-export([a/0]).\na() -> 'bt@work@one'.\n",
    );
    let of = |path: &str| codes(&place.run(&["lint", "--json", path]).expect_code(1));
    assert_eq!(of("src/One.bt"), ["src/One.bt:2 L0101"]);
    assert_eq!(of("src/deep"), ["src/deep/Two.bt:2 L0101"]);
    assert_eq!(
        of("native"),
        ["native/other.erl:1 L0301", "native/other.erl:3 L0501"]
    );
    place.run(&["lint", "nowhere"]).expect_code(2);
}

#[test]
fn broken_files_are_reported_and_left_alone() {
    let place = Place::with_project();
    let broken = "Value subclass: Broken\n  one => ^(1\n  two => ^2\n";
    place.write("src/Broken.bt", broken);
    fs::write(place.directory().join("src/Bytes.bt"), [0xff, 0xfe, 0x28]).unwrap();
    place.write("src/Empty.bt", "");
    let done = place.run(&["lint", "--fix", "--json"]).expect_code(1);
    assert!(
        codes(&done).iter().any(|code| code.starts_with("src/Broken.bt:")),
        "{}",
        done.stdout
    );
    assert!(
        codes(&done).contains(&"src/Bytes.bt:1 E0901".to_owned()),
        "{}",
        done.stdout
    );
    assert_eq!(place.read("src/Broken.bt"), broken);
}

#[test]
fn type_coverage_names_what_is_dynamic() {
    let place = Place::with_project();
    place.write(
        "src/Orbit.bt",
        "Value subclass: Orbit\n  one -> Integer => 1\n  two: x => x\n  three => self one\n",
    );
    let done = place
        .run(&[
            "type-coverage",
            "--class",
            "Orbit",
            "--detail",
            "--at-least",
            "75",
        ])
        .expect_code(0);
    assert!(
        done.stdout.contains("src/Orbit.bt:3:13  unannotated parameter"),
        "{}",
        done.stdout
    );
    assert!(
        done.stdout.contains("Type coverage: 75.0 % (3 of 4 expressions)"),
        "{}",
        done.stdout
    );
    let done = place
        .run(&["type-coverage", "src/Orbit.bt", "--at-least", "76", "--json"])
        .expect_code(1);
    let all = lines(&done);
    assert_eq!(all[0]["percent"], 75.0);
    assert_eq!(all[0]["classes"][0]["class"], "Orbit");
    assert_eq!(all[1]["error"]["kind"], "type_coverage");
    place.run(&["type-coverage", "--class", "Nowhere"]).expect_code(2);
    place.run(&["type-coverage", "--at-least", "101"]).expect_code(2);
}
