use crate::support::Place;

const UGLY: &str = "Object   subclass:  Ugly\n  class   run   =>   1+2\n";

#[test]
fn files_are_formatted_once() {
    let place = Place::with_project();
    place.write("src/Ugly.bt", UGLY);
    let done = place.run(&["fmt", "--check"]).expect_code(1);
    assert!(done.stdout.contains("--- src/Ugly.bt"), "{}", done.stdout);
    assert_eq!(place.read("src/Ugly.bt"), UGLY);
    place.run(&["fmt"]).expect_code(0);
    assert_ne!(place.read("src/Ugly.bt"), UGLY);
    place.run(&["fmt-check"]).expect_code(0);
}

#[test]
fn standard_input_is_formatted_to_standard_output() {
    let place = Place::new();
    let done = place.run_with_input(&["fmt", "-"], UGLY).expect_code(0);
    assert!(
        done.stdout.starts_with("Object subclass: Ugly\n"),
        "{}",
        done.stdout
    );
}

#[test]
fn a_file_with_syntax_errors_is_left_alone() {
    let place = Place::with_project();
    place.write("src/Bad.bt", "Object subclass: Bad\n  run => [1 +\n");
    place.write("src/Ugly.bt", UGLY);
    place.run(&["fmt"]).expect_code(1);
    assert_eq!(place.read("src/Bad.bt"), "Object subclass: Bad\n  run => [1 +\n");
    assert_ne!(place.read("src/Ugly.bt"), UGLY);
}

#[test]
fn scripts_are_checked_but_never_rewritten() {
    let place = Place::with_project();
    place.write("test/a.btscript", "1   +   2\n// => 3\n[1 +\n// => ERROR: _\n");
    place.run(&["fmt", "--check"]).expect_code(0);
    place.write("test/b.btscript", "1\n// => 1\n\n(1 +\n// => 1\n");
    let done = place.run(&["fmt"]).expect_code(1);
    assert!(done.stderr.contains("test/b.btscript:4:"), "{}", done.stderr);
}
