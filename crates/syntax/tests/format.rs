//! The canonical layout: what it looks like, and that it never changes what a text means.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]

use beamtalk_syntax::{FormatError, dump, format, format_input, parse_file, parse_input};

fn check(path: &std::path::Path, source: &str) -> String {
    let is_input = path.to_str().expect("paths are UTF-8").ends_with(".input.bt");
    let run = if is_input { format_input } else { format };
    let once = run(source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let twice = run(&once).expect("formatted text formats");
    assert_eq!(once, twice, "{}", path.display());
    let parse = if is_input { parse_input } else { parse_file };
    assert_eq!(dump(&parse(source).unit), dump(&parse(&once).unit));
    once
}

#[test]
fn fixtures_have_one_layout() {
    insta::glob!("../fixtures", "valid/*.bt", |path| {
        let source = std::fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(check(path, &source));
    });
}

#[test]
fn fixtures_of_the_formatter_have_one_layout() {
    insta::glob!("../fixtures", "format/*.bt", |path| {
        let source = std::fs::read_to_string(path).unwrap();
        insta::assert_snapshot!(check(path, &source));
    });
}

#[test]
fn syntax_errors_are_refused() {
    assert!(matches!(
        format("Object subclass: A\n  foo => ("),
        Err(FormatError::Syntax(_))
    ));
}

#[test]
fn line_ends_become_lf_with_one_at_the_end() {
    let formatted = format("Object subclass: A\r\n  foo => 1\r\n\r\n\r\n").unwrap();
    assert_eq!(formatted, "Object subclass: A\n  foo => 1\n");
    assert_eq!(format("").unwrap(), "");
}
