use proptest::prelude::*;

use std::path::Path;

use super::{
    Change, Dialect, Edit, Fault, Key, Outline, Subject, as_extension, class_changes, edit_tree, join,
    remove_class, restore_class, says, subject,
};
use crate::layout::same_method;

const LAMP: &str = "\
// The lamp of the hall.

/// A lamp.
Actor subclass: Lamp
  state: on = false
  classState: made = 0

  // How it starts.
  class make =>
    self.made := self.made + 1
    self spawn


  /// Is it on?
  isOn => self.on // as asked

  /// The other way.
  sealed toggle =>
    // Twice is nothing.
    self.on := self.on not

Integer >> lamps => (1 to: self) collect: [:_ | Lamp spawn]
";

/// An edit with the key it is about.
type Owned<'a> = (Key, Change<'a>);

fn splice(text: &str, edits: &[Owned]) -> Result<String, (usize, Fault)> {
    let edits: Vec<Edit> = edits
        .iter()
        .map(|(key, change)| Edit { key, change: *change })
        .collect();
    super::edit(text, Dialect::File, &edits)
}

const INSTANCE: bool = false;
const CLASS: bool = true;

fn edit<'a>(is_class: bool, selector: &str, change: Change<'a>) -> Owned<'a> {
    (Key::method("Lamp", is_class, selector), change)
}

fn put<'a>(selector: &str, source: &'a str) -> Owned<'a> {
    edit(INSTANCE, selector, Change::Put(source))
}

fn header(source: &str) -> Owned<'_> {
    (Key::header("Lamp"), Change::Put(source))
}

/// The text with one part replaced by another.
fn lamp_with(old: &str, new: &str) -> String {
    assert_eq!(LAMP.matches(old).count(), 1, "{old}");
    LAMP.replace(old, new)
}

#[test]
fn a_method_is_replaced_where_it_stands() {
    let new = splice(LAMP, &[put("isOn", "isOn => self.on == true")]).unwrap();
    assert_eq!(
        new,
        lamp_with(
            "isOn => self.on // as asked",
            "isOn => self.on == true // as asked"
        )
    );
}

#[test]
fn modifiers_and_documentation_stay_unless_the_source_tells_them() {
    let new = splice(LAMP, &[put("toggle", "toggle =>\n  1\n  2")]).unwrap();
    let body = "sealed toggle =>\n    // Twice is nothing.\n    self.on := self.on not";
    assert_eq!(new, lamp_with(body, "sealed toggle =>\n    1\n    2"));
    let new = splice(LAMP, &[put("toggle", "/// Flip.\ninternal toggle => 1")]).unwrap();
    assert_eq!(
        new,
        lamp_with(
            &format!("/// The other way.\n  {body}"),
            "/// Flip.\n  internal toggle => 1"
        )
    );
}

#[test]
fn a_new_method_comes_after_the_last_one_in_the_indentation_of_the_file() {
    let new = splice(LAMP, &[put("dim:", "dim: by =>\n  self foo\n  by")]).unwrap();
    let last = "self.on := self.on not";
    assert_eq!(
        new,
        lamp_with(last, &format!("{last}\n\n  dim: by =>\n    self foo\n    by"))
    );
    let made = edit(CLASS, "two", Change::Put("two => 2"));
    let new = splice(LAMP, &[made]).unwrap();
    assert_eq!(new, lamp_with(last, &format!("{last}\n\n  class two => 2")));
}

#[test]
fn a_new_method_stands_at_the_margin_where_the_others_do() {
    for head in [
        "Actor subclass: Lamp\n",
        "Actor subclass: Lamp\nstate: on = false\n",
    ] {
        for methods in ["", "\na => 1\n", "\na => 1\n\nb =>\n  self a\n"] {
            let text = format!("{head}{methods}");
            let new = splice(&text, &[put("fresh", "fresh =>\n  self a")]).unwrap();
            let indent = if text.lines().count() == 1 { "  " } else { "" };
            let added = format!("\n\n{indent}fresh =>\n{indent}  self a\n");
            assert_eq!(new, format!("{}{added}", text.trim_end()), "{text}");
        }
    }
    let beside = "Object subclass: Lamp a => 1\n";
    let new = splice(beside, &[put("b", "b => 2")]).unwrap();
    assert!(new.ends_with("\n  b => 2\n"), "{new}");
}

#[test]
fn the_bare_body_of_a_unary_method_gets_its_head() {
    let new = splice(LAMP, &[put("isOn", "self.on")]).unwrap();
    assert_eq!(
        new,
        lamp_with("isOn => self.on // as asked", "isOn =>\n    self.on // as asked")
    );
}

#[test]
fn a_removed_method_takes_its_documentation_with_it() {
    let new = splice(LAMP, &[edit(INSTANCE, "toggle", Change::Remove)]).unwrap();
    let gone =
        "  /// The other way.\n  sealed toggle =>\n    // Twice is nothing.\n    self.on := self.on not\n\n";
    assert_eq!(new, lamp_with(gone, ""));
    let new = splice(LAMP, &[edit(CLASS, "make", Change::Remove)]).unwrap();
    assert!(new.contains("// How it starts."), "{new}");
    assert!(!new.contains("self spawn\n"), "{new}");
    let absent = edit(INSTANCE, "make", Change::Remove);
    assert_eq!(splice(LAMP, &[absent]).unwrap(), LAMP);
}

#[test]
fn several_edits_of_one_text_keep_out_of_each_others_way() {
    let edits = [
        put("isOn", "isOn => 1"),
        edit(INSTANCE, "toggle", Change::Remove),
        put("a", "a => 1"),
        put("b", "b => 2"),
        edit(CLASS, "make", Change::Put("make => 0")),
    ];
    let new = splice(LAMP, &edits).unwrap();
    insta::assert_snapshot!(new);
}

#[test]
fn a_class_without_methods_takes_one() {
    let text = "Object subclass: Lamp\n";
    assert_eq!(
        splice(text, &[put("a", "a => 1")]).unwrap(),
        "Object subclass: Lamp\n\n  a => 1\n"
    );
    let text = "Actor subclass: Lamp\n\tstate: on = 1";
    assert_eq!(
        splice(text, &[put("a", "a =>\n  1")]).unwrap(),
        "Actor subclass: Lamp\n\tstate: on = 1\n\n\ta =>\n  1"
    );
}

#[test]
fn an_extension_is_changed_in_its_file() {
    let lamps = (
        Key::method("Integer", INSTANCE, "lamps"),
        Change::Put("lamps => #()"),
    );
    let new = splice(LAMP, &[lamps]).unwrap();
    assert_eq!(new, lamp_with("(1 to: self) collect: [:_ | Lamp spawn]", "#()"));
}

#[test]
fn a_method_comes_back_to_a_file_that_is_not_its_class_s() {
    let text = "// More.\n\nLamp >> a => 1 // one\n";
    let key = Key::method("Lamp", INSTANCE, "a");
    let source = Outline::of_file(text).source_of(&key).unwrap();
    assert_eq!(source, "Lamp >> a => 1 // one");
    let without = splice(text, &[(key.clone(), Change::Remove)]).unwrap();
    assert_eq!(without, "// More.\n");
    assert_eq!(
        splice(&without, &[(key.clone(), Change::Put(&source))]).unwrap(),
        text
    );
    // In its class the same source is a method of the body.
    let lamp = splice("Actor subclass: Lamp\n", &[(key.clone(), Change::Put(&source))]).unwrap();
    assert_eq!(lamp, "Actor subclass: Lamp\n\n  a => 1 // one\n");
    let bare = Change::Put("a => 1");
    assert_eq!(splice(&without, &[(key, bare)]), Err((0, Fault::NoClass)));
    let side = as_extension("Lamp", true, "make", "/// Made.\nmake => 2");
    assert_eq!(side, "/// Made.\nLamp class >> make => 2");
    assert_eq!(super::method_source(&side), "/// Made.\nmake => 2");
}

#[test]
fn comments_behind_a_definition_belong_to_it() {
    let text = "Actor subclass: Lamp // light\n  state: on = 1 // yes\n\n  a => 1 // first\n\n  b => 2\n";
    let new = |selector: &str, source: &str| splice(text, &[put(selector, source)]).unwrap();
    assert_eq!(new("a", "a => 3"), text.replace("=> 1", "=> 3"));
    assert_eq!(
        new("a", "a => 3 // why"),
        text.replace("=> 1 // first", "=> 3 // why")
    );
    let below = new("b", "b => 4\n// the end");
    assert_eq!(below, text.replace("=> 2", "=> 4\n  // the end"));
    assert_eq!(splice(&below, &[put("b", "b => 4\n// the end")]).unwrap(), below);
    let removed = splice(text, &[edit(INSTANCE, "a", Change::Remove)]).unwrap();
    assert_eq!(removed, text.replace("  a => 1 // first\n\n", ""));
    let header = |source| splice(text, &[header(source)]).unwrap();
    assert_eq!(
        header("Actor subclass: Lamp\n  state: on = 2"),
        text.replace("on = 1", "on = 2")
    );
    assert_eq!(
        header("Actor subclass: Lamp // dark\n  state: on = 1 // no"),
        text.replace("light", "dark").replace("yes", "no")
    );
}

#[test]
fn line_ends_are_those_of_the_file() {
    let text = LAMP.replace('\n', "\r\n");
    let new = splice(&text, &[put("a", "a =>\n  1"), put("isOn", "isOn =>\n  2")]).unwrap();
    assert_eq!(new.replace("\r\n", "").matches('\n').count(), 0);
    assert_eq!(splice(&text, &[put("isOn", "isOn => self.on")]).unwrap(), text);
}

#[test]
fn what_cannot_be_placed_is_told() {
    let elsewhere = (Key::method("Fan", INSTANCE, "a"), Change::Put("a => 1"));
    assert_eq!(splice(LAMP, &[elsewhere]), Err((0, Fault::NoClass)));
    assert_eq!(
        splice(LAMP, &[put("a", "a => (((")]),
        Err((0, Fault::Unplaceable))
    );
    assert_eq!(
        splice(LAMP, &[put("isOn", "other => 1")]),
        Err((0, Fault::Unplaceable))
    );
}

#[test]
fn a_header_changes_where_it_must_and_nowhere_else() {
    let text = "// Top.\n\n/// A lamp.\nActor subclass: Lamp\n  state: on = false\n  // How many.\n  state: count = 0\n\n  a => 1\n";
    let same = "Actor subclass: Lamp\n    state: on = false\n    state: count = 0";
    assert_eq!(splice(text, &[header(same)]).unwrap(), text);
    let wider = "Actor subclass: Lamp\n  state: on = true\n  state: count = 0\n  state: watts = 40";
    let expected = text
        .replace("on = false", "on = true")
        .replace("count = 0\n", "count = 0\n  state: watts = 40\n");
    assert_eq!(splice(text, &[header(wider)]).unwrap(), expected);
    let narrower = "/// The light.\nsealed Actor subclass: Lamp\n  state: count = 0";
    let expected = text
        .replace("A lamp", "The light")
        .replace("Actor sub", "sealed Actor sub")
        .replace("  state: on = false\n", "");
    assert_eq!(splice(text, &[header(narrower)]).unwrap(), expected);
    let bare = "Actor subclass: Lamp";
    let both = splice(
        bare,
        &[
            put("a", "a => 1"),
            header("Actor subclass: Lamp\n  state: on = 1"),
        ],
    )
    .unwrap();
    assert_eq!(both, "Actor subclass: Lamp\n  state: on = 1\n\n  a => 1");
}

#[test]
fn a_class_defined_anew_comes_to_its_single_changes() {
    let anew = "Actor subclass: Lamp\n  state: on = false\n  classState: made = 0\n  isOn => 7\n  dim => 1\n  class make =>\n    self.made := self.made + 1\n    self spawn\n";
    let changes: Vec<(String, bool)> = class_changes("Lamp", LAMP, anew)
        .iter()
        .map(|(key, source)| (key.title(), source.is_some()))
        .collect();
    let expected = [("Lamp>>isOn", true), ("Lamp>>dim", true), ("Lamp>>toggle", false)];
    assert_eq!(
        changes,
        expected.map(|(title, is_there)| (title.to_owned(), is_there))
    );
    assert_eq!(class_changes("Lamp", LAMP, LAMP), []);
    // What stands beside a class extends it.
    let beside = format!("{LAMP}\nLamp >> ext => 1\n");
    assert_eq!(class_changes("Lamp", &beside, LAMP), []);
}

#[test]
fn strings_of_a_bare_body_stay_as_they_are() {
    let body = "x := \"one\n two\n\nthree\"\nx size";
    let new = splice(LAMP, &[put("isOn", body)]).unwrap();
    assert!(new.contains("x := \"one\n two\n\nthree\"\n    x size"), "{new}");
    let definition = super::method_definition("isOn", body);
    let at = definition.text.find("size").unwrap();
    assert_eq!(definition.place_in_source(at), body.find("size").unwrap());
}

#[test]
fn comments_of_a_new_source_are_kept_once() {
    let source = "// Because.\nisOn => 3";
    let new = splice(LAMP, &[put("isOn", source)]).unwrap();
    assert_eq!(new.matches("// Because.").count(), 1, "{new}");
    assert!(new.contains("/// Is it on?"), "{new}");
    let again = splice(&new, &[put("isOn", source)]).unwrap();
    assert_eq!(again, new);
}

#[test]
fn a_class_is_cut_out_and_the_rest_stays() {
    let rest = remove_class(LAMP, "Lamp");
    assert_eq!(
        rest,
        "// The lamp of the hall.\n\nInteger >> lamps => (1 to: self) collect: [:_ | Lamp spawn]\n"
    );
    assert!(Outline::of_file(LAMP).has_more_than("Lamp"));
    assert!(!Outline::of_file("/// D.\nObject subclass: A\n  a => 1\n").has_more_than("A"));
    let commented = "// Mine.\nObject subclass: A\n  a => 1\n\n  // Of A.\n\n// Mine too.\n";
    assert_eq!(remove_class(commented, "A"), "// Mine.\n\n// Mine too.\n");
}

#[test]
fn a_class_that_was_cut_out_comes_back_beside_what_became_of_the_rest() {
    let rest = remove_class(LAMP, "Lamp");
    assert_eq!(restore_class(&rest, LAMP, "Lamp"), LAMP);
    let changed = rest.replace("Lamp spawn", "2");
    let back = restore_class(&changed, LAMP, "Lamp");
    assert_eq!(remove_class(&back, "Lamp"), changed);
    assert_eq!(
        super::class_texts(&back, "Lamp"),
        super::class_texts(LAMP, "Lamp")
    );
    let alone = "// Mine.\n\nObject subclass: A\n  a => 1\n";
    assert_eq!(restore_class("", alone, "A"), alone);
}

/// Every source of the library, and every script of the language's tests.
#[expect(clippy::disallowed_methods, reason = "real sources are files")]
fn sources() -> Vec<(String, Dialect, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    for (directory, extension, dialect) in [
        ("lib", "bt", Dialect::File),
        ("tests/lang", "btscript", Dialect::Input),
    ] {
        let mut pending = vec![root.join(directory)];
        while let Some(directory) = pending.pop() {
            for entry in std::fs::read_dir(&directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else if path.extension().is_some_and(|found| found == extension) {
                    let text = std::fs::read_to_string(&path).unwrap();
                    found.push((path.display().to_string(), dialect, text));
                }
            }
        }
    }
    assert!(found.len() > 100, "{}", found.len());
    found
}

#[test]
fn cut_and_joined_a_text_is_what_it_was() {
    for (path, dialect, text) in sources() {
        let pieces = Outline::new(&text, dialect);
        assert_eq!(join(&pieces.cut()), text, "{path}");
    }
}

#[test]
fn replacing_a_method_of_the_library_changes_nothing_else() {
    for (path, dialect, text) in sources() {
        if dialect == Dialect::Input {
            continue;
        }
        let outline = Outline::of_file(&text);
        let mut keys: Vec<&Key> = outline.keys().collect();
        keys.sort_unstable();
        keys.dedup();
        // One of the file is enough for the change; that nothing changes is asked of each.
        for (index, key) in keys.iter().enumerate().step_by(7) {
            let source = outline.source_of(key).unwrap();
            assert!(says(&text, key, &source), "{path} {}", key.title());
            let super::Member::Method { selector, .. } = &key.member else {
                continue;
            };
            if index > 7 || !selector.chars().all(char::is_alphanumeric) {
                continue;
            }
            let new_source = format!("{selector} =>\n  \"one\n two\" size");
            let new = splice(&text, &[((*key).clone(), Change::Put(&new_source))]).unwrap();
            let changed = Outline::of_file(&new);
            let between = |outline: &Outline| -> Vec<String> {
                let others = outline
                    .cut()
                    .into_iter()
                    .filter(|piece| piece.key.as_ref() != Some(*key));
                others.map(|piece| piece.text.to_owned()).collect()
            };
            assert_eq!(between(&changed), between(&outline), "{path} {}", key.title());
        }
    }
}

fn method_source() -> impl Strategy<Value = String> {
    let statement = prop::sample::select(vec![
        "self.on := 1",
        "x := \"one\n two\"",
        "// a remark",
        "self make; toggle",
        "[:a |\n      a + 1] value: 2",
    ]);
    let indent = prop::sample::select(vec!["  ", "    ", "      "]);
    (prop::collection::vec(statement, 1..4), indent).prop_map(|(statements, indent)| {
        let lines: Vec<String> = statements.iter().map(|line| format!("{indent}{line}")).collect();
        format!("isOn =>\n{}\n{indent}0", lines.join("\n"))
    })
}

proptest! {
    #[test]
    fn putting_what_is_there_changes_nothing(
        members in prop::collection::vec(prop::sample::select(vec![
            "  a => 1\n", "\n", "  // note\n", "  /// Doc.\n  b: x =>\n    x\n", "  class c => \"q\n z\"\n",
            "  sealed d =>\n\n    1 // end\n", "  state: e = 2\n",
        ]), 0..8),
    ) {
        let text = format!("Actor subclass: Lamp\n{}", members.concat());
        let unit = crate::parse_file(&text).unit;
        for method in unit.items.iter().filter_map(|item| match item {
            crate::ast::Item::Class(class) => Some(&class.methods),
            _ => None,
        }).flatten() {
            let source = method.span.text(&text);
            let same = edit(method.is_class, &method.head.selector, Change::Put(source));
            prop_assert_eq!(splice(&text, &[same]).unwrap(), text.clone());
        }
        prop_assert_eq!(splice(&text, &[]).unwrap(), text);
    }

    #[test]
    fn what_was_put_is_found_again(source in method_source(), is_new in any::<bool>()) {
        let text = if is_new { lamp_with("isOn =>", "isLit =>") } else { LAMP.to_owned() };
        let new = splice(&text, &[put("isOn", &source)]).unwrap();
        let again = Outline::of_file(&new).source_of(&Key::method("Lamp", INSTANCE, "isOn")).unwrap();
        let code = if is_new { again.clone() } else { again.split_once('\n').unwrap().1.to_owned() };
        // What stood behind the old one stays.
        let code = code.strip_suffix(" // as asked").unwrap_or(&code);
        prop_assert!(same_method(code, &source), "{}", new);
        prop_assert_eq!(splice(&new, &[put("isOn", &again)]).unwrap(), new);
    }
}

/// A tree that is there is as good as the text: the same text comes of it, with the tree that reading it gives.
#[test]
fn an_edit_of_a_tree_is_an_edit_of_its_text() {
    let key = Key::method("Lamp", INSTANCE, "isOn");
    let unit = crate::parse_file(LAMP).unit;
    for change in [Change::Put("isOn => 3"), Change::Put("isOn =>"), Change::Remove] {
        let edits = [Edit { key: &key, change }];
        let by_text = super::edit(LAMP, Dialect::File, &edits);
        let by_tree = edit_tree(LAMP, &unit, Dialect::File, &edits);
        assert_eq!(by_tree.as_ref().map(|(text, _)| text), by_text.as_ref());
        if let Ok((text, parse)) = by_tree {
            let read = crate::parse_file(&text).unit;
            assert_eq!(format!("{:?}", parse.unit), format!("{read:?}"));
        }
    }
}

#[test]
fn a_definition_is_known_by_its_beginning() {
    let header = |class: &str| Some(Subject::Definition(Key::header(class)));
    assert_eq!(subject(LAMP), header("Lamp"));
    let documented = "// A comment.\n/// About it.\nsealed Value subclass: Point\n  field: x = 0\n  x => 1\n";
    assert_eq!(subject(documented), header("Point"));
    let method = Subject::Definition(Key::method("Lamp", CLASS, "new:"));
    assert_eq!(
        subject("/// About it.\nLamp class >> new: x =>\n  x\n"),
        Some(method)
    );
    assert_eq!(
        subject("type Length = Integer\n"),
        Some(Subject::TypeName("Length".into()))
    );
    assert_eq!(subject("\n// Nothing.\n"), None);
}
