use super::{Expectation, Outcome, Raised, displayed, matches};

fn shown(printed: &str) -> Outcome {
    Outcome::Shown {
        printed: printed.to_owned(),
        displayed: None,
    }
}

fn is_met(expectation: &str, outcome: &Outcome) -> bool {
    Expectation::parse(expectation).is_met(outcome, &[])
}

#[test]
fn plain_text_must_be_equal() {
    assert!(is_met("3", &shown("3")));
    assert!(is_met("  3 ", &shown("3")));
    assert!(!is_met("3", &shown("33")));
}

#[test]
fn wildcards_are_anchored_at_both_ends() {
    assert!(matches("Actor(Kettle, _)", "Actor(Kettle, 0.123.0)"));
    assert!(!matches("Actor(Kettle, _)", "An Actor(Kettle, 0.1.0)"));
    assert!(!matches("Actor(Kettle, _)", "Actor(Kettle, 0.1.0) more"));
    assert!(matches("_ and _", "this and that"));
    assert!(matches("_middle_", "in the middle of"));
    assert!(!matches("a_", "b"));
    assert!(matches("a _ c", "a b c"));
}

#[test]
fn fixed_parts_may_not_overlap() {
    assert!(!matches("ab _ab", "ab ab"[..3].trim()));
    assert!(!matches("aa_ aa", "aa"));
}

#[test]
fn an_underscore_inside_a_word_is_itself() {
    assert!(matches("does_not_understand", "does_not_understand"));
    assert!(!matches("does_not_understand", "does not understand"));
}

#[test]
fn escapes_stand_for_their_character() {
    assert!(matches(r#""a\nb""#, "\"a\nb\""));
    assert!(matches(r"a\\b", r"a\b"));
    assert!(matches(r#"\"x\""#, "\"x\""));
}

#[test]
fn strings_and_symbols_may_be_expected_in_human_form() {
    let outcome = Outcome::Shown {
        printed: "\"hi\"".to_owned(),
        displayed: Some("hi".to_owned()),
    };
    assert!(is_met("\"hi\"", &outcome));
    assert!(is_met("hi", &outcome));
    let empty = Outcome::Shown {
        printed: "\"\"".to_owned(),
        displayed: Some(String::new()),
    };
    assert!(is_met("", &empty));
}

#[test]
fn an_error_is_known_by_kind_tag_or_text() {
    let raised = Outcome::Raised(Raised {
        kind: "type_error".to_owned(),
        tag: Some("badarith".to_owned()),
        printed: "cannot divide by zero\nHint: check it".to_owned(),
        ..Raised::default()
    });
    for text in [
        "ERROR: type_error",
        "ERROR: badarith",
        "ERROR: divide by",
        "ERROR: Hint: check",
    ] {
        assert!(is_met(text, &raised), "{text}");
    }
    assert!(!is_met("ERROR: other", &raised));
    assert!(!is_met("_", &raised));
    assert!(!is_met("ERROR: 3", &shown("3")));
}

#[test]
fn compile_errors_are_errors() {
    let refused = Outcome::Refused(vec!["Undefined variable: x".to_owned()]);
    assert!(is_met("ERROR: Undefined variable", &refused));
    assert!(is_met("ERROR: undefined_variable", &refused));
    assert!(!is_met("_", &refused));
}

#[test]
fn warnings_are_looked_up_among_the_diagnostics() {
    let found = ["Unresolved class `Foo`".to_owned()];
    assert!(Expectation::parse("WARNING: Unresolved").is_met(&shown("1"), &found));
    assert!(!Expectation::parse("NO-WARNING: Unresolved").is_met(&shown("1"), &found));
    assert!(Expectation::parse("NO-WARNING: Unresolved").is_met(&shown("1"), &[]));
}

#[test]
fn text_and_symbols_have_a_human_form() {
    assert_eq!(displayed("\"a \"\"b\"\"\"").as_deref(), Some("a \"b\""));
    assert_eq!(displayed("#at:put:").as_deref(), Some("at:put:"));
    assert_eq!(displayed("#'two words'").as_deref(), Some("two words"));
    for other in ["#(1, 2)", "#[1]", "#{#a => 1}", "#Pid<0.1.0>", "42", "nil"] {
        assert_eq!(displayed(other), None, "{other}");
    }
}
