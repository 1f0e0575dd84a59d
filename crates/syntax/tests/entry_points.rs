//! The entry points: whole files, session input, lone methods, incomplete input, documentation.

use std::fmt::Write;

use beamtalk_syntax::ast::{ExpressionKind, Item};
use beamtalk_syntax::{codes, is_incomplete, parse_body, parse_file, parse_input, parse_method};

fn messages(source: &str) -> Vec<String> {
    parse_input(source)
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.message.to_string())
        .collect()
}

#[test]
fn open_text_is_incomplete() {
    for source in [
        "(",
        "[1",
        "#(1,",
        "#{#a =>",
        "x match: [",
        "\"abc",
        "\"abc {",
        "\"abc {x",
        "/* abc",
        "x foo:",
        "x +",
        "x :=",
        "x foo;",
        "^",
        "x := [:a |",
        "a ->",
        "Foo >> bar =>",
        "Object subclass: A",
        "Object subclass: A\n  state: x = 1",
        "Object subclass: A\n  foo =>",
        "Object subclass: A\n  foo => (",
        "Protocol define: P\n  size",
    ] {
        assert!(is_incomplete(source), "{source:?}");
    }
}

#[test]
fn whole_text_is_complete() {
    for source in [
        "",
        "1",
        "x foo",
        "(1)",
        ")",
        "[1]]",
        "( ]",
        "x foo!",
        "x.",
        "#at:",
        "\"a{b}c\"",
        "// [",
        "/* ( */ 1",
        "$(",
        "$\"",
        "#'('",
        "Object subclass: A\n",
        "Object subclass: A\n  foo => 1",
        "Object subclass: A\n  foo => 1\n\n",
        "Protocol define: P\n  size\n",
        "Object subclass: A\n  foo => 1\nA foo",
        "Foo >> bar => 1",
    ] {
        assert!(!is_incomplete(source), "{source:?}");
    }
}

#[test]
fn one_method_alone() {
    let (method, faults) = parse_method("/// Doc.\nat: i put: v =>\n  x foo\n  y");
    let method = method.unwrap();
    assert_eq!((method.head.selector.as_str(), method.body.len()), ("at:put:", 2));
    assert_eq!(method.doc.as_deref(), Some("Doc."));
    assert!(faults.is_empty());
}

#[test]
fn a_second_method_is_trailing() {
    let (_, faults) = parse_method("foo => 1\nbar => 2");
    let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(
        messages,
        ["expected a single method definition, found trailing tokens after the method body"]
    );
}

#[test]
fn a_bare_body_is_no_method_but_a_body() {
    for source in ["self foo", "x foo\ny bar", "@primitive", "1"] {
        assert!(parse_method(source).0.is_none());
        let (body, faults) = parse_body(source);
        assert!(!body.is_empty());
        assert!(faults.is_empty(), "{faults:?}");
    }
}

#[test]
fn doc_comments_attach_to_the_declaration_below() {
    let source = "/// First.\n\n/// Second.\n/// More.\n@expect all\nObject subclass: A\n  /// Slot.\n  field: x\n  /// Method.\n  foo => 1\n";
    let parse = parse_file(source);
    let Some(Item::Class(class)) = parse.unit.items.first() else {
        panic!("a class")
    };
    assert_eq!(class.doc.as_deref(), Some("Second.\nMore."));
    assert_eq!(
        class.slots.first().and_then(|slot| slot.doc.as_deref()),
        Some("Slot.")
    );
    assert_eq!(
        class.methods.first().and_then(|method| method.doc.as_deref()),
        Some("Method.")
    );
    let warnings: Vec<_> = parse
        .diagnostics
        .iter()
        .map(|warning| (warning.span.start, warning.message.as_str()))
        .collect();
    assert_eq!(warnings, [(0, "doc comment not attached to any declaration")]);
}

#[test]
fn a_byte_order_mark_is_ignored() {
    assert!(messages("\u{feff}x foo").is_empty());
    assert!(
        parse_file("\u{feff}Object subclass: A\n  foo => 1\n")
            .diagnostics
            .is_empty()
    );
}

#[test]
fn line_ends_may_be_crlf() {
    let parse = parse_file("/// Doc.\r\nObject subclass: A\r\n  foo =>\r\n    1\r\n  bar => 2\r\n");
    assert!(parse.diagnostics.is_empty());
    let Some(Item::Class(class)) = parse.unit.items.first() else {
        panic!("a class")
    };
    assert_eq!((class.doc.as_deref(), class.methods.len()), (Some("Doc."), 2));
}

#[test]
fn spans_cover_their_text() {
    let source = "x := a foo: 1 bar: [:y | y + 1]";
    let parse = parse_input(source);
    let Some(Item::Statement(statement)) = parse.unit.items.first() else {
        panic!("a statement")
    };
    assert_eq!(statement.span.text(source), source);
    let ExpressionKind::Assign { value, .. } = &statement.expression.kind else {
        panic!("an assignment")
    };
    let ExpressionKind::Send(send) = &value.kind else {
        panic!("a send")
    };
    assert_eq!(send.message.span.text(source), "foo: 1 bar: [:y | y + 1]");
    let parts: Vec<_> = send.message.parts.iter().map(|part| part.text(source)).collect();
    assert_eq!(parts, ["foo:", "bar:"]);
    let Some(ExpressionKind::Block(block)) = send.message.arguments.get(1).map(|argument| &argument.kind)
    else {
        panic!("a block")
    };
    assert_eq!(block.body_span.text(source), " y + 1");
}

#[test]
fn ten_faults_are_ten_reports() {
    let mut source = String::from("Object subclass: Ten\n");
    for index in 0..10 {
        let _ = writeln!(source, "  method{index} => x foo: )");
    }
    assert_eq!(parse_file(&source).diagnostics.len(), 10);
}

#[test]
fn the_wildcard_is_readable_in_a_session_only() {
    assert!(messages("_ foo").is_empty());
    assert_eq!(
        messages("Object subclass: A\n  foo => _"),
        ["`_` is a wildcard and cannot be read"]
    );
}

#[test]
fn every_code_has_a_word_of_explanation() {
    assert!(
        codes::ALL
            .iter()
            .all(|(code, text)| code.len() == 5 && !text.is_empty())
    );
}
