//! Large hostile texts parse in linear time and bounded stack.

use std::fmt::Write;

use beamtalk_syntax::{dump, format_input, is_incomplete, parse_file, parse_input, parse_method};

fn survive(source: &str) {
    let _ = dump(&parse_file(source).unit);
    let _ = dump(&parse_input(source).unit);
    let _ = parse_method(source);
    let _ = is_incomplete(source);
}

#[test]
fn repeated_fragments_are_survived() {
    let fragments = [
        "(",
        "[",
        "{",
        "#(",
        "#[",
        "#{",
        "\"{",
        "\"",
        "\"{\" ",
        "\"{a ",
        ")",
        "]",
        "}",
        "([{",
        "((]]",
        "a ",
        "a + ",
        "a ** ",
        "a := ",
        "1 := ",
        "^",
        "a; ",
        "a foo: ",
        "x match: [",
        "x match: [a -> ",
        "<<",
        "<<a, ",
        "a :: (",
        "a :: A(",
        "#(a | ",
        "{a, ",
        "...",
        "/*",
        "//\n",
        "///\n",
        "@expect dnu ",
        "a.b",
        ".",
        "!",
        "a!",
        "$",
        "#",
        "'",
        "~",
        "`",
        "é",
        "A >> b :: (\n",
        "A >> b => (\n",
        "A subclass: B\n",
        "A subclass: B\n  a => [\n",
        "sealed ",
        "Result ok: ",
        "nil := ",
        "\"{[",
        "[:a ",
        "a -> ",
        "a:",
        "a: b ",
        "-1 ",
        "=> ",
        "\n a",
        "Protocol define: A\n  a =>\n",
        "[a: ] ",
    ];
    for fragment in fragments {
        survive(&fragment.repeat(100_000 / fragment.len()));
    }
}

#[test]
fn members_of_all_depths_are_survived() {
    let mut source = String::from("Object subclass: Deep\n");
    for depth in 0..300 {
        let _ = writeln!(source, "{}foo{depth} => [", " ".repeat(depth));
    }
    survive(&source);
}

#[test]
fn nesting_up_to_the_limit_is_accepted() {
    let deepest = format!("{}1{}", "(".repeat(64), ")".repeat(64));
    assert!(parse_input(&deepest).diagnostics.is_empty());
    assert!(format_input(&deepest).is_ok());
    let too_deep = format!("({deepest})");
    let messages: Vec<_> = parse_input(&too_deep)
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.message.clone())
        .collect();
    assert_eq!(messages, ["Expression nesting is too deep (maximum 64 levels)"]);
}

#[test]
fn long_numbers_are_read() {
    let source = "9".repeat(100_000);
    assert!(parse_input(&source).diagnostics.is_empty());
}
