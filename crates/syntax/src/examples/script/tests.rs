use super::{Load, Style, parse};
use crate::examples::expectation::Expectation;

fn text(expected: &str) -> Expectation {
    Expectation::Text(expected.to_owned())
}

#[test]
fn inputs_take_the_expectation_on_the_next_line() {
    let script = parse("// a comment\n1 + 2\n// => 3\n\nx := 4\n", Style::Script, 1);
    let found: Vec<_> = script
        .inputs
        .iter()
        .map(|input| (input.line, input.text.as_str(), input.expectation.clone()))
        .collect();
    assert_eq!(found, [(2, "1 + 2", Some(text("3"))), (5, "x := 4", None)]);
}

#[test]
fn indented_lines_belong_to_the_input_above() {
    let script = parse(
        "Actor subclass: K\n  state: a = 1\n  a => self.a\n// => K\n",
        Style::Script,
        1,
    );
    assert_eq!(script.inputs.len(), 1);
    assert_eq!(
        script.inputs[0].text,
        "Actor subclass: K\n  state: a = 1\n  a => self.a"
    );
    assert_eq!(script.inputs[0].expectation, Some(text("K")));
}

#[test]
fn open_brackets_continue_the_input() {
    let script = parse("#(1,\n2)\n// => #(1, 2)\n", Style::Script, 1);
    assert_eq!(script.inputs[0].text, "#(1,\n2)");
}

#[test]
fn loads_are_read_anywhere() {
    let script = parse(
        "1\n// => 1\n// @load test/K.bt\n// @load-error b.bt => Cannot subclass\n// @load\n",
        Style::Script,
        1,
    );
    assert_eq!(
        script.loads,
        [
            Load {
                line: 3,
                path: "test/K.bt".to_owned(),
                error: None
            },
            Load {
                line: 4,
                path: "b.bt".to_owned(),
                error: Some("Cannot subclass".to_owned())
            },
        ]
    );
    assert_eq!(script.malformed, [(5, "// @load".to_owned())]);
}

#[test]
fn documentation_may_expect_on_the_same_line() {
    let script = parse(
        "a := 1\na + 1   // => 2\na + 2\n// => 3",
        Style::Documentation,
        10,
    );
    let found: Vec<_> = script
        .inputs
        .iter()
        .map(|input| (input.line, input.text.as_str(), input.expectation.clone()))
        .collect();
    assert_eq!(
        found,
        [
            (10, "a := 1", None),
            (11, "a + 1", Some(text("2"))),
            (12, "a + 2", Some(text("3")))
        ]
    );
}

#[test]
fn scripts_keep_trailing_comments_in_the_input() {
    let script = parse("1 // => 1\n// => 1\n", Style::Script, 1);
    assert_eq!(script.inputs[0].text, "1 // => 1");
}
