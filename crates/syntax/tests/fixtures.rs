//! Every fixture parses to a reviewed tree and a reviewed list of diagnostics.
//!
//! Files named `*.input.bt` are session input, the others are package files.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]

use std::fmt::Write;
use std::path::Path;

use beamtalk_syntax::diagnostic::Severity;
use beamtalk_syntax::span::LineIndex;
use beamtalk_syntax::{Parse, dump, parse_file, parse_input};

fn parse(path: &Path, source: &str) -> Parse {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("fixtures have names");
    if name.ends_with(".input.bt") {
        parse_input(source)
    } else {
        parse_file(source)
    }
}

fn describe(source: &str, parse: &Parse) -> String {
    let index = LineIndex::new(source);
    let mut text = dump(&parse.unit);
    if !parse.diagnostics.is_empty() {
        text.push_str("---\n");
    }
    for diagnostic in &parse.diagnostics {
        let position = index.position(source, diagnostic.span.start);
        let _ = writeln!(
            text,
            "{}:{} {} {}",
            position.line, position.column, diagnostic.code, diagnostic.message
        );
    }
    text
}

fn check_spans(source: &str, parse: &Parse) {
    for diagnostic in &parse.diagnostics {
        let span = diagnostic.span;
        assert!(
            source.get(span.start as usize..span.end as usize).is_some(),
            "{diagnostic:?}"
        );
    }
}

#[test]
fn valid_fixtures_have_no_diagnostics() {
    insta::glob!("../fixtures", "valid/*.bt", |path| {
        let source = std::fs::read_to_string(path).unwrap();
        let parse = parse(path, &source);
        check_spans(&source, &parse);
        insta::assert_snapshot!(describe(&source, &parse));
        let faults: Vec<_> = parse
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .collect();
        assert!(faults.is_empty(), "{faults:#?}");
    });
}

#[test]
fn invalid_fixtures_report_every_fault() {
    insta::glob!("../fixtures", "invalid/*.bt", |path| {
        let source = std::fs::read_to_string(path).unwrap();
        let parse = parse(path, &source);
        check_spans(&source, &parse);
        insta::assert_snapshot!(describe(&source, &parse));
        assert!(!parse.diagnostics.is_empty());
    });
}
