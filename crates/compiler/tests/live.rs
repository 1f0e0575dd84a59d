//! What is compiled when one method of a class is replaced or removed.

use beamtalk_compiler::{
    ClassTable, CompiledMethod, Origin, SourceFile, compile_method, lint_method, module_name, remove_method,
};

const VALVE: &str = "\
Object subclass: Valve
  /// Turns it.
  sealed turn => 1
  twice => self turn; turn
  alone =>
    \"one
 two\"
  down: n => self down: n - 1
";

fn table() -> ClassTable {
    let mut table = ClassTable::empty();
    for (name, text, origin) in [
        ("Object", "nil subclass: Object\n", Origin::Library),
        ("Valve", VALVE, Origin::Package),
    ] {
        table.declare(&SourceFile {
            path: format!("src/{name}.bt").into(),
            text: text.into(),
            unit: beamtalk_syntax::parse_file(text).unit,
            package: Some("demo".into()),
            module: module_name(Some("demo"), name).into(),
            origin,
        });
    }
    table
}

fn modules(compiled: &CompiledMethod) -> Vec<&str> {
    assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
    compiled
        .modules
        .iter()
        .map(|module| module.name.as_str())
        .collect()
}

#[test]
fn a_method_nobody_else_calls_is_compiled_alone() {
    for selector in ["twice", "alone"] {
        let compiled = compile_method(&table(), "Valve", false, selector, "7");
        let [name] = modules(&compiled)[..] else { panic!() };
        assert!(name.starts_with("bt@patch@valve@"), "{name}");
        assert!(
            compiled.changed[0]
                .text
                .contains(&format!("  {selector} =>\n    7"))
        );
    }
    let recursive = compile_method(&table(), "Valve", false, "down:", "down: n => self down: n");
    assert!(modules(&recursive)[0].starts_with("bt@patch@"));
}

#[test]
fn a_method_that_others_call_takes_its_class_along() {
    let compiled = compile_method(&table(), "Valve", false, "turn", "turn => 2");
    assert_eq!(modules(&compiled), ["bt@demo@valve"]);
    // Documentation, modifiers and the lines of strings stay.
    assert_eq!(compiled.changed[0].text, VALVE.replace("turn => 1", "turn => 2"));
}

#[test]
fn in_a_large_class_only_those_that_reach_it_directly_are_compiled_with_it() {
    let mut text = String::from(
        "Object subclass: Tower\n  top => self middle + 1\n  middle => self base + 1\n  base => 1\n",
    );
    for n in 0..40 {
        text.push_str(&format!("  other{n} => {n}\n  class base{n} => self make{n}\n"));
    }
    let mut table = table();
    table.declare(&SourceFile {
        path: "src/Tower.bt".into(),
        text: text.as_str().into(),
        unit: beamtalk_syntax::parse_file(&text).unit,
        package: Some("demo".into()),
        module: module_name(Some("demo"), "Tower").into(),
        origin: Origin::Package,
    });
    let count = |selector: &str| {
        let compiled = compile_method(&table, "Tower", false, selector, "5");
        let names = modules(&compiled);
        assert!(
            names.iter().all(|name| name.starts_with("bt@patch@tower@")),
            "{names:?}"
        );
        names.len()
    };
    assert_eq!(
        (count("top"), count("middle"), count("base"), count("other3")),
        (1, 2, 3, 1)
    );
    assert_eq!(modules(&remove_method(&table, "Tower", false, "base")).len(), 2);
}

#[test]
fn findings_are_where_they_are_in_the_source_that_was_given() {
    for (source, expected) in [
        ("alone => nope", "nope"),
        ("  alone =>\n    self turn.\n    nope", "nope"),
        ("self turn.\nself turn.\n  nope", "nope"),
        ("nope", "nope"),
    ] {
        let compiled = compile_method(&table(), "Valve", false, "alone", source);
        let [found] = compiled.diagnostics.as_slice() else {
            panic!("{source}: {:?}", compiled.diagnostics)
        };
        assert_eq!(found.span.text(source), expected, "{source}");
    }
}

#[test]
fn a_removed_method_that_nobody_calls_needs_no_code() {
    let removed = remove_method(&table(), "Valve", false, "alone");
    assert!(removed.modules.is_empty());
    assert!(!removed.changed[0].text.contains("alone"));
    let removed = remove_method(&table(), "Valve", false, "turn");
    assert_eq!(modules(&removed), ["bt@demo@valve"]);
}

#[test]
fn documentation_above_a_method_belongs_to_it() {
    let source = "/// Turn it.\n///\n/// Twice.\nalone => 2";
    let compiled = compile_method(&table(), "Valve", false, "alone", source);
    assert_eq!(compiled.diagnostics, []);
    assert_eq!(compiled.modules.len(), 1);
    let wrong = "/// Turn it.\nalone => Nonesuch new";
    let compiled = compile_method(&table(), "Valve", false, "alone", wrong);
    let at = wrong.find("Nonesuch").unwrap() as u32;
    assert_eq!(compiled.diagnostics[0].span.start, at);
}

/// The linter speaks of one method as it does of a file, in the places of its source; where it may not, it does not.
#[test]
fn a_method_alone_is_linted_where_it_stands() {
    let source = "/// Turns it.\ntwice => ^self turn";
    let found = lint_method(&table(), "Valve", false, "twice", source);
    let [lint] = &found[..] else { panic!("{found:?}") };
    let [edit] = &lint.edits[..] else {
        panic!("{lint:?}")
    };
    assert!(lint.code.starts_with('L'), "{lint:?}");
    assert!(edit.span.text(source).starts_with('^'), "{edit:?}");
    let mended = source.replacen(edit.span.text(source), edit.text, 1);
    assert!(lint_method(&table(), "Valve", false, "twice", &mended).is_empty());
    // What cannot be compiled is not worth a word about its style.
    let refused = lint_method(&table(), "Valve", false, "twice", "twice => ^(self turn");
    assert!(
        !refused.is_empty() && refused.iter().all(|found| found.code.starts_with('E')),
        "{refused:?}"
    );
}
