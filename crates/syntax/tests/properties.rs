//! What holds for every text: no panic, no hang, spans on character boundaries, a stable layout.

use beamtalk_syntax::diagnostic::Severity;
use beamtalk_syntax::{
    FormatError, Parse, dump, format, format_input, is_incomplete, parse_file, parse_input, parse_method,
};
use proptest::prelude::*;

const TOKENS: &[&str] = &[
    "foo",
    "bar",
    "_",
    "__x",
    "Foo",
    "Result",
    "at:",
    "put:",
    "match:",
    "when:",
    "ok:",
    "self",
    "super",
    "nil",
    "true",
    "class",
    "sealed",
    "internal",
    "type",
    "Protocol",
    "define:",
    "subclass:",
    "native:",
    "field:",
    "state:",
    "handleScope:",
    "1",
    "-1",
    "2.5",
    "16rFF",
    "9r9",
    "$a",
    "$ ",
    "\"text\"",
    "\"a {",
    "} b\"",
    "\"",
    "{",
    "}",
    "#a",
    "#at:put:",
    "#'q'",
    "#",
    "#(",
    "#[",
    "#{",
    "(",
    ")",
    "[",
    "]",
    "[:x |",
    "+",
    "-",
    "**",
    "<",
    "->",
    ">>",
    "<<",
    "=>",
    "=",
    "==",
    "&",
    "\\",
    ",",
    ":=",
    "::",
    ":",
    "...",
    ".",
    "^",
    ";",
    "!",
    "|",
    "pkg@Name",
    "@",
    "@primitive",
    "@expect dnu",
    "@foo",
    "// c\n",
    "/// d\n",
    "/* c */",
    "/*",
    "~",
    "é",
    "`",
    "\n",
    "\n  ",
    "\n    ",
    "Foo >> bar =>",
    "Object subclass: A\n  ",
    "foo =>",
    "x foo: 1 bar: 2",
];

fn soup() -> impl Strategy<Value = String> {
    let token = (
        proptest::sample::select(TOKENS),
        proptest::sample::select(&["", " ", " ", " ", "\n", "\n  "][..]),
    );
    proptest::collection::vec(token, 0..60).prop_map(|tokens| {
        tokens
            .into_iter()
            .fold(String::new(), |text, (token, gap)| text + token + gap)
    })
}

/// Texts that mostly parse: expressions of the grammar, with `·` where white space may stand.
fn expression() -> impl Strategy<Value = String> {
    let leaf = proptest::sample::select(
        &[
            "x",
            "Foo",
            "pkg@Foo",
            "self",
            "self.f",
            "nil",
            "1",
            "-2",
            "1_0.5e3",
            "16rFF",
            "$a",
            "$ ",
            "#sym",
            "#at:put:",
            "\"text\"",
            "\"a\"\"b\"",
            "\"two\nlines\"",
            "super foo",
            "#()",
            "[]",
            "#{}",
        ][..],
    )
    .prop_map(String::from);
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("{a} foo")),
            inner.clone().prop_map(|a| format!("(·{a}·)")),
            inner.clone().prop_map(|a| format!("(x·:=·{a})")),
            inner.clone().prop_map(|a| format!("\"pre {{·{a}·}} post\"")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("(·{a}·+·{b}·*·2·-·1)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}·foo: ·{b}·bar:·[:x :: (A | B)|·{a}])")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}·longerSelector: {b};·cr;·show: 1;·+ 2)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[·:p·|·{a}.·^{b}·]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a} go!\n·{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("#(·{a},·{b}·|·rest)")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("#[{a}·,·{b},·]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("#{{·#k·=>·{a},·(x)·=>·{b}·}}")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!(
                "({a} match:·[·n :: Foo·when:·[{b}]·->·{c};·{{#ok, -1}}·->·x·:=·{a}\n·<<a:8, b/binary>>·->·{b}·])"
            )),
        ]
    })
}

fn trivia() -> impl Strategy<Value = Vec<&'static str>> {
    let gaps = &[
        "",
        "",
        " ",
        " ",
        " ",
        "\n",
        "\n    ",
        " // note\n  ",
        " /* note */ ",
        "\n\n\n  // alone\n  ",
        "/* two\n   lines */",
    ][..];
    proptest::collection::vec(proptest::sample::select(gaps), 40)
}

/// Puts gaps, in turn, where `·` marks a place for white space.
fn fill(template: &str, gaps: &[&str]) -> String {
    let mut gaps = gaps.iter().cycle();
    let mut text = String::new();
    for char in template.chars() {
        if char == '·' {
            text.push_str(gaps.next().copied().unwrap_or(" "));
        } else {
            text.push(char);
        }
    }
    text
}

fn check_parse(source: &str, parse: &Parse) {
    let _ = dump(&parse.unit);
    let spans = parse.diagnostics.iter().map(|diagnostic| diagnostic.span);
    for span in spans.chain(parse.unit.comments.iter().map(|comment| comment.span)) {
        assert!(
            source.get(span.start as usize..span.end as usize).is_some(),
            "{span:?} of {source:?}"
        );
    }
    assert!(parse.diagnostics.is_sorted_by_key(|diagnostic| diagnostic.span));
}

fn check_text(source: &str) {
    check_parse(source, &parse_file(source));
    check_parse(source, &parse_input(source));
    let _ = parse_method(source);
    let _ = is_incomplete(source);
    check_layout(source, format, parse_file);
    check_layout(source, format_input, parse_input);
}

fn check_layout(source: &str, run: fn(&str) -> Result<String, FormatError>, parse: fn(&str) -> Parse) {
    let once = match run(source) {
        Ok(once) => once,
        Err(FormatError::Syntax(_)) => return,
        Err(FormatError::Changed) => panic!("formatting changes {source:?}"),
    };
    assert_eq!(dump(&parse(source).unit), dump(&parse(&once).unit));
    let twice = run(&once).unwrap_or_else(|error| panic!("{error}: {once:?}"));
    assert_eq!(once, twice, "of {source:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup_never_panics(source in soup()) {
        check_text(&source);
    }

    #[test]
    fn any_text_never_panics(source in "\\PC{0,200}") {
        check_text(&source);
    }

    #[test]
    fn any_ascii_never_panics(source in "[ -~\n]{0,200}") {
        check_text(&source);
    }

    #[test]
    fn statements_keep_their_meaning(template in expression(), gaps in trivia()) {
        check_text(&fill(&format!("·x·:=·{template}·.·y foo!·\n{template}·"), &gaps));
    }

    #[test]
    fn members_keep_their_meaning(template in expression(), gaps in trivia()) {
        let source = format!(
            "/// Doc.\nObject subclass: Sample·\n  field: a :: A | nil =·{template}\n  at: i·put: v -> T =>·{template}\n\
             ·   ·{template}·\n  /// Doc.\n  @expect dnu\n  other =>·{template}·\nA >> b =>·{template}·\nA >> c => 1"
        );
        // Lines inside a member are indented.
        let gaps: Vec<String> = gaps.iter().map(|gap| gap.replace('\n', "\n      ")).collect();
        let gaps: Vec<&str> = gaps.iter().map(String::as_str).collect();
        check_text(&fill(&source, &gaps));
    }
}

#[test]
fn valid_expressions_are_generated() {
    let source = fill("·x·:=·(·1·+·2·)·.·y foo!", &[" ", "\n  "]);
    let faults = parse_input(&source).diagnostics;
    assert!(
        faults.iter().all(|fault| fault.severity != Severity::Error),
        "{faults:?}"
    );
}
