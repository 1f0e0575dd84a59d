use crate::support::Place;

const LAMP: &str = "Actor subclass: Lamp\n  state: on = false\n\n  toggle => self.on := self.on not\n";

#[test]
fn failures_are_told_with_expectation_and_place() {
    let place = Place::with_project();
    place.write(
        "test/OrbitTest.bt",
        "TestCase subclass: OrbitTest\n\n  testGood => self assert: 1 + 1 equals: 2\n\n  testPeriod =>\n    \
         Console printLine: \"noise\"\n    self assert: 5399 equals: 5400\n\n  testSkipped => self skip: \"later\"\n",
    );
    let done = place.run(&["test", "--seed", "81"]).expect_code(1);
    for part in [
        "OrbitTest: 3 tests, 1 passed, 1 skipped, 1 failed ✗",
        "FAIL OrbitTest >> testPeriod",
        "  assert:equals: failed\n  Expected: 5400\n  Actual:   5399\n  at test/OrbitTest.bt:7\n",
        "noise",
        "3 files, 5 tests, 3 passed, 1 skipped, 1 failed (",
    ] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
    assert!(done.stderr.contains("81"), "{}", done.stderr);
}

#[test]
fn machine_formats_agree_with_the_text() {
    let place = Place::with_project();
    place.write(
        "test/BadTest.bt",
        "TestCase subclass: BadTest\n\n  testBad => self assert: 1 equals: 2\n",
    );
    let done = place
        .run(&["test", "--json", "--junit", "out.xml"])
        .expect_code(1);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["total"], 3);
    assert_eq!(json["failed"], 1);
    let failed = json["tests"]
        .as_array()
        .unwrap()
        .iter()
        .find(|test| test["status"] == "fail")
        .unwrap();
    assert_eq!(failed["class"], "BadTest");
    assert_eq!(failed["name"], "testBad");
    assert_eq!(failed["file"], "test/BadTest.bt");
    assert_eq!(failed["line"], 3);
    assert_eq!(failed["error"]["kind"], "assertion_failed");
    let junit = place.read("out.xml");
    assert!(
        junit.contains("<testcase classname=\"BadTest\" name=\"testBad\""),
        "{junit}"
    );
}

#[test]
fn filters_select() {
    let place = Place::with_project();
    place.write(
        "test/ATest.bt",
        "TestCase subclass: ATest\n\n  testOne => nil\n\n  testTwo => nil\n",
    );
    let count = |filter: &str| {
        let done = place.run(&["test", "--json", "--filter", filter]);
        let json: serde_json::Value = serde_json::from_str(done.stdout.lines().next().unwrap()).unwrap();
        json["total"].as_u64().unwrap()
    };
    assert_eq!(count("ATest"), 2);
    assert_eq!(count("ATest>>testTwo"), 1);
    assert_eq!(count("/One$/"), 1);
    // Nothing to run is told alike; only who asked for something that is not there has failed.
    let done = place.run(&["test", "--filter", "nothing at all"]).expect_code(1);
    assert_eq!(done.stdout, "No tests found\n");
    let empty = Place::new();
    empty.write(
        "beamtalk.toml",
        "[package]\nname = \"empty\"\nversion = \"0.1.0\"\n",
    );
    assert_eq!(empty.run(&["test"]).expect_code(0).stdout, "No tests found\n");
    place.run(&["test", "--filter", "/(/"]).expect_code(2);
    place.run(&["test", "no/such/path"]).expect_code(2);
}

#[test]
fn a_test_that_does_not_end_fails_in_time() {
    let place = Place::with_project();
    place.write(
        "test/SlowTest.bt",
        "TestCase subclass: SlowTest\n\n  testForever => [true] whileTrue: [Erlang timer sleep: 10]\n\n  testQuick => nil\n",
    );
    let done = place.run(&["test", "--timeout", "0.3"]).expect_code(1);
    assert!(
        done.stdout.contains("SlowTest: 2 tests, 1 passed, 1 failed"),
        "{}",
        done.stdout
    );
}

#[test]
fn files_that_do_not_compile_fail_alone() {
    let place = Place::with_project();
    place.write(
        "test/BrokenTest.bt",
        "TestCase subclass: BrokenTest\n\n  testX => undefinedThing\n",
    );
    let done = place.run(&["test"]).expect_code(1);
    assert!(done.stdout.contains("FAIL test/BrokenTest.bt"), "{}", done.stdout);
    assert!(
        done.stdout.contains("WorkTest: 1 test, 1 passed"),
        "{}",
        done.stdout
    );
}

#[test]
fn fixtures_are_visible_without_a_manifest() {
    let place = Place::new();
    place.write("test/fixtures/deep/lamp.bt", LAMP);
    place.write(
        "test/unit/lamp_test.bt",
        "TestCase subclass: LampTest\n\n  testToggle => self assert: Lamp spawn toggle\n",
    );
    let done = place.run(&["test"]).expect_code(0);
    assert!(
        done.stdout.contains("LampTest: 1 test, 1 passed"),
        "{}",
        done.stdout
    );
}

#[test]
fn scripts_are_judged_line_by_line() {
    let place = Place::new();
    place.write("test/other/Lamp.bt", LAMP);
    place.write(
        "test/lamp.btscript",
        "// @load test/other/Lamp.bt\nlamp := Lamp spawn\n// => Actor(Lamp, _)\nlamp toggle\n// => true\n\
         lamp frobnicate\n// => ERROR: does_not_understand\nValue subclass: Point\n  field: x = 1\n// => Point\n\
         Point new\n// => Point(x: 1)\n1 / 0\n// => ERROR: badarith\nunknown + 1\n// => ERROR: Undefined variable\n",
    );
    place.run(&["test-script", "test/lamp.btscript"]).expect_code(0);
    place.write("test/bad.btscript", "1 + 1\n// => 3\n2 + 2\n// => 4\n5\n");
    let done = place.run(&["test-script", "test/bad.btscript"]).expect_code(1);
    assert!(
        done.stdout.contains("test/bad.btscript:1: expected 3"),
        "{}",
        done.stdout
    );
    assert!(
        done.stderr
            .contains("test/bad.btscript:5: input without expectation"),
        "{}",
        done.stderr
    );
}

#[test]
fn scripts_do_not_see_each_others_classes() {
    let place = Place::new();
    for (name, value) in [("a", 1), ("b", 2), ("c", 3)] {
        let text = format!(
            "Value subclass: Shared\n  field: value = {value}\n// => Shared\nShared new value\n// => {value}\n"
        );
        place.write(&format!("test/{name}.btscript"), &text);
    }
    place.write("test/d.btscript", "Shared new\n// => ERROR: class_not_found\n");
    place.run(&["test"]).expect_code(0);
}

#[test]
fn examples_in_markdown_share_their_variables() {
    let place = Place::new();
    place.write("fix/Lamp.bt", LAMP);
    place.write(
        "guide.md",
        "# Guide\n<!-- btfixture: fix/Lamp.bt -->\n```beamtalk\nlamp := Lamp spawn\nlamp toggle   // => true\n```\n\n\
         ```beamtalk\nlamp toggle\n// => false\n```\n",
    );
    place.run(&["test-docs", "guide.md"]).expect_code(0);
    place.write("bad.md", "```beamtalk\n1 // => 2\n```\n");
    place.run(&["test-docs", "bad.md"]).expect_code(1);
}

#[test]
fn native_tests_run_as_eunit() {
    let place = Place::with_project();
    place.write(
        "native/test/work_tests.erl",
        "-module(work_tests).\n-export([add_test/0]).\nadd_test() -> 3 = 1 + 2.\n",
    );
    let done = place.run(&["test"]).expect_code(0);
    assert!(
        done.stdout.contains("work_tests: 1 test, 1 passed"),
        "{}",
        done.stdout
    );
}
