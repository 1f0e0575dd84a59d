use super::*;
use crate::{SourceFile, module_name};

const LIBRARY: &[(&str, &str)] = &[
    (
        "ProtoObject",
        "abstract nil subclass: ProtoObject\n  class -> Self class => @primitive\n",
    ),
    (
        "Object",
        "ProtoObject subclass: Object\n  /// Answer whether this is nil.\n  isNil -> Boolean => false\n  \
         printString -> String => @primitive\n  internal secret => 1\n",
    ),
    (
        "Value",
        "Object subclass: Value\n  sealed class new -> Self => @primitive\n",
    ),
    (
        "Actor",
        "Object subclass: Actor\n  sealed class spawn -> Self => @primitive\n",
    ),
    (
        "Boolean",
        "abstract Value subclass: Boolean\n  not -> Boolean => @primitive\n",
    ),
    ("True", "Boolean subclass: True\n"),
    (
        "Behaviour",
        "abstract Object subclass: Behaviour\n  name -> Symbol => @primitive\n",
    ),
    ("Class", "Behaviour subclass: Class\n"),
    (
        "Symbol",
        "Object subclass: Symbol\n  asString -> String => @primitive\n",
    ),
    (
        "String",
        "Value subclass: String\n  size -> Integer => @primitive\n  uppercase -> Self => @primitive\n  \
         at: index :: Integer -> Character | Nil => @primitive\n",
    ),
    (
        "Character",
        "Value subclass: Character\n  isLetter -> Boolean => @primitive\n",
    ),
    (
        "Integer",
        "Value subclass: Integer\n  + other :: Number -> Integer => @primitive\n  isEven -> Boolean => @primitive\n  \
         asString -> String => @primitive\n",
    ),
    (
        "Dictionary",
        "Value subclass: Dictionary\n  at: key => @primitive\n  at: key put: value -> Self => @primitive\n  \
         at: key ifAbsent: block => @primitive\n",
    ),
    ("Erlang", "Object subclass: Erlang\n"),
];

const LAMP: &str = "/// A lamp.\nActor subclass: Lamp\n  /// Does it burn?\n  state: on :: Boolean = false\n  \
                    state: label :: String = \"\"\n  classState: made :: Integer = 0\n\n  \
                    /// Switch it.\n  toggle -> Boolean => self.on := self.on not\n  \
                    named: text :: String -> Self => self.label := text\n  class standard -> Lamp => self spawn\n";

fn declare(table: &mut ClassTable, name: &str, text: &str, origin: Origin, package: Option<&str>) {
    table.declare(&SourceFile {
        path: format!("src/{name}.bt").into(),
        text: text.into(),
        unit: beamtalk_syntax::parse_input(text).unit,
        module: module_name(package, name).into(),
        package: package.map(EcoString::from),
        origin,
    });
}

fn table() -> ClassTable {
    let mut table = ClassTable::empty();
    for (name, text) in LIBRARY {
        declare(&mut table, name, text, Origin::Library, Some("stdlib"));
    }
    declare(&mut table, "Lamp", LAMP, Origin::Package, Some("light"));
    let point = "Value subclass: Point\n  field: x :: Integer = 0\n  field: name :: Nickname = nil\n";
    declare(&mut table, "Point", point, Origin::Session, None);
    declare(
        &mut table,
        "Nickname",
        "type Nickname = String | Nil\n",
        Origin::Package,
        Some("light"),
    );
    declare(
        &mut table,
        "Double",
        "/// Twice.\nInteger >> double -> Integer => self + self\n",
        Origin::Session,
        None,
    );
    table
}

fn bindings() -> Vec<Binding> {
    [
        ("lamp", Some("Lamp")),
        ("lantern", None),
        ("kind", Some("Lamp class")),
    ]
    .map(|(name, class)| Binding {
        name: name.into(),
        class: class.map(EcoString::from),
    })
    .to_vec()
}

/// Completes at the `|` of the code.
fn at_bar(code: &str) -> Completions {
    let cursor = code.find('‖').unwrap_or(code.len());
    complete(&table(), &bindings(), &code.replace('‖', ""), cursor)
}

fn texts(code: &str) -> Vec<String> {
    at_bar(code)
        .items
        .into_iter()
        .map(|item| item.text.to_string())
        .collect()
}

#[test]
fn a_receiver_is_known_by_literal_binding_class_and_chain() {
    for (code, expected) in [
        ("3 is‖", vec!["isEven", "isNil"]),
        ("\"a\" up‖", vec!["uppercase"]),
        ("#a as‖", vec!["asString"]),
        ("lamp to‖", vec!["toggle"]),
        ("lamp toggle n‖", vec!["not"]),
        ("3 asString si‖", vec!["size"]),
        ("3 asString uppercase si‖", vec!["size"]),
        ("(3 asString) si‖", vec!["size"]),
        ("Lamp st‖", vec!["standard"]),
        ("kind st‖", vec!["standard"]),
        ("Lamp spawn tog‖", vec!["toggle"]),
        ("Lamp standard tog‖", vec!["toggle"]),
        ("lamp class st‖", vec!["standard"]),
        ("lamp class na‖", vec!["name"]),
        ("3 + 4 isE‖", vec!["isEven"]),
        ("(3 + 4) dou‖", vec!["double"]),
        ("(\"a\" at: 1) isL‖", vec!["isLetter"]),
        ("lamp toggle; na‖", vec!["named:"]),
        ("Point new name si‖", vec!["size"]),
        ("(Point x: 1 name: nil) with‖", vec!["withName:", "withX:"]),
        ("x := 3 asString. x si‖", vec!["size"]),
        ("x := 3 asString\nx si‖", vec!["size"]),
        ("[:each :: Lamp | each to‖]", vec!["toggle"]),
        ("[:each :: Lamp | each to‖", vec!["toggle"]),
        ("#(1, lamp to‖", vec!["toggle"]),
    ] {
        assert_eq!(texts(code), expected, "{code}");
    }
}

#[test]
fn an_item_tells_its_signature_and_where_it_comes_from() {
    let completions = at_bar("lamp named‖");
    assert_eq!(completions.start, 5);
    assert_eq!(
        completions.items,
        [Completion {
            text: "named:".into(),
            kind: Kind::Method,
            detail: Some("named: text :: String -> Self".into()),
            origin: Some("Lamp".into()),
        }]
    );
    let overridden = at_bar("3 printS‖").items;
    assert_eq!(overridden[0].origin.as_deref(), Some("Object"));
    let constructor = &at_bar("Point x‖").items[0];
    assert_eq!(
        (constructor.text.as_str(), constructor.detail.as_deref()),
        ("x:name:", Some("x:name: -> Self"))
    );
}

#[test]
fn names_complete_where_no_receiver_is() {
    assert_eq!(texts("la‖"), ["lamp", "lantern"]);
    assert_eq!(texts("3 foo: la‖"), ["lamp", "lantern"]);
    assert_eq!(texts("La‖"), ["Lamp"]);
    assert_eq!(texts("light@La‖"), ["light@Lamp"]);
    assert_eq!(texts("local := 3. lo‖"), ["local"]);
    assert_eq!(texts("[:local | lo‖ ]"), ["local"]);
    assert_eq!(texts("x :: La‖"), ["Lamp"]);
    assert_eq!(texts("tr‖"), ["true"]);
    let all = at_bar("‖");
    assert!(
        all.items
            .iter()
            .any(|item| item.text == "Lamp" && item.kind == Kind::Class)
    );
    assert!(
        all.items
            .iter()
            .any(|item| item.text == "lamp" && item.detail.as_deref() == Some("Lamp"))
    );
    assert!(all.items.iter().all(|item| !item.text.contains("zz")));
}

#[test]
fn keyword_messages_complete_part_by_part() {
    assert_eq!(texts("#{} at‖"), ["at:", "at:ifAbsent:", "at:put:"]);
    assert_eq!(texts("#{} at:‖"), ["at:", "at:ifAbsent:", "at:put:"]);
    assert_eq!(texts("#{} at:p‖"), ["at:put:"]);
    assert_eq!(texts("#{} at: 1 p‖"), ["printString", "put:"]);
    assert_eq!(texts("#{} at: (1 p‖"), ["printString"]);
    assert_eq!(texts("#{} at: 1 if‖"), ["ifAbsent:"]);
}

#[test]
fn the_class_around_gives_self_super_and_fields() {
    let body = |text: &str| {
        format!("Actor subclass: Lamp\n  state: on = false\n  test =>\n    {text}\n  other => 1\n")
    };
    assert_eq!(texts(&body("self to‖")), ["toggle"]);
    assert_eq!(texts(&body("self.o‖")), ["on"]);
    assert_eq!(texts(&body("self.label si‖")), ["size"]);
    assert_eq!(texts(&body("super isN‖")), ["isNil"]);
    assert_eq!(texts("Lamp >> foo: n :: Integer => n isE‖"), ["isEven"]);
    assert_eq!(texts("Lamp class >> foo => self.ma‖"), ["made"]);
}

#[test]
fn nothing_completes_in_text_comments_symbols_and_numbers() {
    for code in [
        "\"la‖",
        "\"la‖\"",
        "// la‖",
        "/* la‖ */",
        "#la‖",
        "3la‖",
        "lamp La‖",
    ] {
        assert_eq!(texts(code), Vec::<String>::new(), "{code}");
    }
    assert_eq!(texts("\"text {la‖}\""), ["lamp", "lantern"]);
}

#[test]
fn an_unknown_receiver_offers_what_any_class_has() {
    assert_eq!(texts("lantern togg‖"), ["toggle"]);
    assert_eq!(texts("lantern ‖"), Vec::<String>::new());
}

#[test]
fn internal_methods_of_the_library_stay_hidden() {
    assert_eq!(texts("3 sec‖"), Vec::<String>::new());
}

#[test]
fn erlang_names_are_left_to_the_node() {
    assert_eq!(at_bar("Erlang li‖").erlang, Some(Erlang::Modules));
    assert_eq!(
        at_bar("Erlang lists re‖").erlang,
        Some(Erlang::Functions("lists".into()))
    );
    assert_eq!(
        at_bar("(Erlang lists) re‖").erlang,
        Some(Erlang::Functions("lists".into()))
    );
    assert_eq!(at_bar("Erlang lists re‖").prefix, "re");
}

#[test]
fn any_cursor_in_any_text_is_fine() {
    let code = "lamp é: [:x | #(1, \"{y}\"] // ü\nActor subclass: X\n  state: a = 1\n  m => self.a ; b: )";
    for cursor in 0..code.len() + 3 {
        complete(&table(), &bindings(), code, cursor);
        hover(&table(), &bindings(), code, cursor);
    }
}

fn hover_at(code: &str) -> Option<Hover> {
    let cursor = code.find('‖').unwrap_or(code.len());
    hover(&table(), &bindings(), &code.replace('‖', ""), cursor)
}

#[test]
fn hover_tells_signature_class_and_documentation() {
    let method = hover_at("lamp tog‖gle").unwrap();
    assert_eq!(
        method,
        Hover {
            contents: "```beamtalk\ntoggle -> Boolean\n```\n*Lamp*\n\nSwitch it.".into(),
            signature: Some("toggle -> Boolean".into()),
            kind: Kind::Method,
        }
    );
    let inherited = hover_at("3 asString isN‖il").unwrap();
    assert!(
        inherited.contents.contains("*Object*\n\nAnswer whether"),
        "{}",
        inherited.contents
    );
    let extension = hover_at("3 dou‖ble").unwrap();
    assert!(extension.contents.contains("Twice."), "{}", extension.contents);
    let class = hover_at("La‖mp spawn").unwrap();
    assert_eq!(
        class.contents,
        "```beamtalk\nActor subclass: Lamp\n```\n\nA lamp."
    );
    let variable = hover_at("la‖mp toggle").unwrap();
    assert_eq!(
        (variable.signature.as_deref(), variable.kind),
        (Some("lamp :: Lamp"), Kind::Variable)
    );
    let field = hover_at("Lamp >> foo => self.o‖n").unwrap();
    assert!(field.contents.contains("Does it burn?"), "{}", field.contents);
    let keyword = hover_at("#{} at: 1 pu‖t: 2").unwrap();
    assert_eq!(keyword.signature.as_deref(), Some("at: key put: value -> Self"));
    let unknown = hover_at("lantern tog‖gle").unwrap();
    assert!(
        unknown.contents.contains("Implemented by Lamp"),
        "{}",
        unknown.contents
    );
}

#[test]
fn hover_is_silent_where_there_is_nothing_to_say() {
    for code in ["", "3‖", "\"la‖mp\"", "// la‖mp", "lamp frob‖nicate", "Lm‖ap new"] {
        assert_eq!(hover_at(code), None, "{code}");
    }
}
