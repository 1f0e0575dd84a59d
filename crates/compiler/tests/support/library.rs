//! A small library, and findings as text.

use beamtalk_compiler::{ClassTable, Origin, SourceFile, module_name};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::LineIndex;

/// Enough of the library to know the kinds.
const LIBRARY: &[(&str, &str)] = &[
    (
        "ProtoObject",
        "abstract nil subclass: ProtoObject\n  class => @primitive\n",
    ),
    (
        "Object",
        "ProtoObject subclass: Object\n  isNil => false\n  sealed yourself => self\n  sealed delegate => @primitive\n",
    ),
    (
        "Value",
        "Object subclass: Value\n  sealed class new => @primitive\n  sealed class new: d => @primitive\n",
    ),
    (
        "Actor",
        "Object subclass: Actor\n  sealed class spawn => @primitive\n  sealed class new => @primitive\n  sealed class new: d => @primitive\n",
    ),
    (
        "Behaviour",
        "abstract Object subclass: Behaviour\n  sealed name => @primitive\n",
    ),
    ("Class", "sealed Behaviour subclass: Class\n  isClass => true\n"),
    (
        "Integer",
        "sealed Value subclass: Integer\n  + other => @primitive\n",
    ),
    (
        "Exception",
        "Object subclass: Exception\n  class new => @primitive\n",
    ),
    ("Result", "sealed Value subclass: Result\n  field: isOk\n"),
    ("TestCase", "Value subclass: TestCase\n  setUp => self\n"),
];

pub(crate) fn source_file(name: &str, text: &str, origin: Origin) -> (SourceFile, Vec<Diagnostic>) {
    let parse = if origin == Origin::Session {
        beamtalk_syntax::parse_input(text)
    } else {
        beamtalk_syntax::parse_file(text)
    };
    let package = (origin != Origin::Session).then(|| "demo".into());
    let file = SourceFile {
        path: format!("src/{name}.bt").into(),
        text: text.into(),
        unit: parse.unit,
        module: module_name(package.as_deref(), name).into(),
        package,
        origin,
    };
    (file, parse.diagnostics)
}

pub(crate) fn library() -> ClassTable {
    let mut table = ClassTable::empty();
    for (name, text) in LIBRARY {
        let (file, diagnostics) = source_file(name, text, Origin::Library);
        assert!(diagnostics.is_empty(), "{name}: {diagnostics:?}");
        table.declare(&file);
    }
    table
}

pub(crate) fn render(source: &str, diagnostics: &[Diagnostic]) -> String {
    let lines = LineIndex::new(source);
    let mut out = format!("SOURCE\n{source}\nOUTPUT\n");
    for diagnostic in diagnostics {
        let position = lines.position(source, diagnostic.span.start);
        out += &format!(
            "{}:{} {} {:?}: {}\n",
            position.line, position.column, diagnostic.code, diagnostic.severity, diagnostic.message
        );
        if let Some(hint) = &diagnostic.hint {
            out += &format!("    hint: {hint}\n");
        }
    }
    out
}
