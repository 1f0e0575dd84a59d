//! Beamtalk as far as it is worth guessing.

use beamtalk_fuzz::Grammar;

pub const GRAMMAR: Grammar = Grammar(&[
    (
        "unit",
        &[
            "<statements>",
            "<class>\n<statements>",
            "<class>\n\n<class>",
            "<alias>\n\n<statements>",
            "<extension>\n<statements>",
            "<protocol>\n",
            "<doc><class>",
        ],
    ),
    (
        "doc",
        &[
            "/// Text.\n",
            "/// <string>\n/// ```beamtalk\n/// <expression>\n/// ```\n",
            "// note\n",
            "/* a */\n",
            "",
        ],
    ),
    (
        "class",
        &[
            "Object subclass: A\n<member>",
            "Value subclass: <upper>\n<member><member><member>",
            "Actor subclass: <upper>\n<member><member>",
            "abstract sealed typed internal <upper> subclass: <upper>(A, B :: Printable)\n<member>",
            "geo@Shape(Integer) subclass: <upper> native: <lower> handleScope: #process\n<member>",
        ],
    ),
    (
        "member",
        &[
            "  m => 1\n",
            "  field: <lower> :: <type> = <expression>\n",
            "  state: <lower> = <expression>\n",
            "  classState: <lower> = <expression>\n",
            "<doc>  <modifier><head> -> <type> =>\n    <statement>\n    <statement>\n",
            "  <modifier><head> => <expression>\n",
            "  @expect type \"why\"\n  <head> => @primitive\n",
            "  <head> =>\n    <keyword_send>\n",
            "\n",
        ],
    ),
    (
        "modifier",
        &["", "class ", "sealed ", "internal ", "class sealed internal "],
    ),
    (
        "head",
        &[
            "<lower>",
            "<operator> <lower>",
            "<keyword> <lower>",
            "<keyword> <lower> :: <type> <keyword> <lower>",
        ],
    ),
    ("alias", &["type Way = #n | #s", "internal type <upper> = <type>"]),
    (
        "protocol",
        &[
            "Protocol define: Sized\n  size -> Integer",
            "Protocol define: <upper>(E) extending: <upper>\n  class <head> -> <type>\n  <head>",
        ],
    ),
    (
        "extension",
        &[
            "A >> m => 1",
            "<upper> class >> <modifier><head> -> <type> => <statement>",
            "geo@<upper> >> <head> =>\n  <statement>\n  <statement>\n",
        ],
    ),
    (
        "statements",
        &[
            "<statement>",
            "<statement>\n<statement>",
            "<statement>. <statement>",
            "<statement>\n<statement>\n<statement>\n",
        ],
    ),
    (
        "statement",
        &[
            "1",
            "<expression>",
            "<lower> := <expression>",
            "<lower> :: <type> := <expression>",
            "self.<lower> := <expression>",
            "<pattern> := <expression>",
            "^ <expression>",
            "<unary>!",
            "@expect dnu\n<expression>",
            "<doc><expression>",
        ],
    ),
    (
        "expression",
        &[
            "1",
            "<primary>",
            "<unary>",
            "<binary>",
            "<keyword_send>",
            "<cascade>",
            "<match>",
            "(<expression>)",
            "<lower> := <expression>",
        ],
    ),
    ("unary", &["<primary> <lower>", "<primary>", "<unary> <lower>"]),
    (
        "binary",
        &[
            "<unary> <operator> <unary>",
            "<binary> <operator> <unary>",
            "<binary>\n  <operator> <unary>",
        ],
    ),
    (
        "keyword_send",
        &[
            "<unary> <keyword> <unary>",
            "<binary> <keyword> <binary> <keyword> <block>",
            "<unary>\n    <keyword> <block>\n    <keyword> <binary>",
        ],
    ),
    (
        "cascade",
        &[
            "<unary>; <lower>",
            "<keyword_send>; <lower>; <keyword> <unary>",
            "<unary>;\n    <lower>;\n    <operator> <unary>",
        ],
    ),
    (
        "match",
        &[
            "<primary> match: [<arm>]",
            "<primary> match: [<arm>; <arm>]",
            "<primary> matchExhaustive: [\n  <arm>\n  <arm>\n]",
        ],
    ),
    (
        "arm",
        &[
            "_ -> 1",
            "<pattern> -> <expression>",
            "<pattern> when: [<expression>] -> <expression>",
            "<pattern> -> [<statements>]",
        ],
    ),
    (
        "pattern",
        &[
            "_",
            "<lower>",
            "<number>",
            "<string>",
            "<symbol>",
            "nil",
            "<lower> :: <upper>",
            "{<pattern>, <pattern>}",
            "#[<pattern>, ...<lower>]",
            "#(<pattern>, <pattern>)",
            "#{#k => <pattern>}",
            "Result ok: <pattern>",
            "<<<lower>:16/unsigned-little, <lower>/binary>>",
        ],
    ),
    (
        "primary",
        &[
            "1",
            "<number>",
            "<string>",
            "<symbol>",
            "<character>",
            "<block>",
            "<collection>",
            "<lower>",
            "<upper>",
            "self",
            "super",
            "nil",
            "true",
            "self.<lower>",
            "(<expression>)",
            "geo@<upper>",
        ],
    ),
    (
        "block",
        &[
            "[]",
            "[<statements>]",
            "[:<lower> | <statements>]",
            "[:<lower> :: <type> :<lower> |\n  <statements>\n]",
        ],
    ),
    (
        "collection",
        &[
            "#()",
            "#(<expression>, <expression>)",
            "#(<expression> | <unary>)",
            "#[<expression>, <expression>,]",
            r#"#{<symbol> => <expression>, "k" => <expression>}"#,
            "{<expression>, <expression>}",
        ],
    ),
    (
        "type",
        &[
            "Integer",
            "<upper>",
            "<symbol>",
            "Self",
            "Self class",
            "List(<type>)",
            "Block(<type>, <type>)",
            "<type> | <type>",
            "<type> & <type>",
            r#"<type> \ <symbol>"#,
            "(<type>)",
            "nil",
            "<upper> class",
        ],
    ),
    (
        "string",
        &[
            r#""""#,
            r#""a""#,
            r#""a{<expression>}b""#,
            r#""""x""""#,
            r#""\{\n\"""#,
            r#""{"n{<expression>}"}""#,
            "\"line\nline\"",
            r#""é😀""#,
        ],
    ),
    ("symbol", &["#a", "#at:put:", "#+", "#'odd one'", "#=:="]),
    ("character", &["$a", r#"$\n"#, "$ ", r#"$""#, "$é"]),
    (
        "number",
        &[
            "0",
            "-1",
            "16rFF",
            "1_000",
            "2.5",
            "1e9",
            "-2.5e-3",
            "36rZZ",
            "123456789012345678901234567890",
        ],
    ),
    (
        "operator",
        &[
            "+", "-", "*", "/", "**", "++", "->", ">>", "=:=", "<=", ">", "==", "%", "/=",
        ],
    ),
    (
        "keyword",
        &[
            "at:", "put:", "ifTrue:", "ifFalse:", "do:", "x:", "on:", "match:", "when:",
        ],
    ),
    (
        "lower",
        &[
            "a", "b", "x", "size", "value", "class", "type", "internal", "_", "field", "__x",
        ],
    ),
    ("upper", &["A", "Foo", "Integer", "Result", "Rect", "T"]),
]);
