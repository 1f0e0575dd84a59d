use proptest::prelude::*;

use super::{Change, Edit, Fault, find_method, splice};
use crate::changes::entry::Side;

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

fn edit<'a>(side: Side, selector: &'a str, change: Change<'a>) -> Edit<'a> {
    Edit {
        class: "Lamp",
        side,
        selector,
        span: None,
        change,
    }
}

fn put<'a>(selector: &'a str, source: &'a str) -> Edit<'a> {
    edit(Side::Instance, selector, Change::Put(source))
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
    let made = edit(Side::Class, "two", Change::Put("two => 2"));
    let new = splice(LAMP, &[made]).unwrap();
    assert_eq!(new, lamp_with(last, &format!("{last}\n\n  class two => 2")));
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
    let new = splice(LAMP, &[edit(Side::Instance, "toggle", Change::Remove)]).unwrap();
    let gone =
        "  /// The other way.\n  sealed toggle =>\n    // Twice is nothing.\n    self.on := self.on not\n\n";
    assert_eq!(new, lamp_with(gone, ""));
    let new = splice(LAMP, &[edit(Side::Class, "make", Change::Remove)]).unwrap();
    assert!(new.contains("// How it starts."), "{new}");
    assert!(!new.contains("self spawn\n"), "{new}");
    let absent = edit(Side::Instance, "make", Change::Remove);
    assert_eq!(splice(LAMP, &[absent]).unwrap(), LAMP);
}

#[test]
fn several_edits_of_one_text_keep_out_of_each_others_way() {
    let edits = [
        put("isOn", "isOn => 1"),
        edit(Side::Instance, "toggle", Change::Remove),
        put("a", "a => 1"),
        put("b", "b => 2"),
        edit(Side::Class, "make", Change::Put("make => 0")),
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
    let lamps = Edit {
        class: "Integer",
        ..put("lamps", "lamps => #()")
    };
    let new = splice(LAMP, &[lamps]).unwrap();
    assert_eq!(new, lamp_with("(1 to: self) collect: [:_ | Lamp spawn]", "#()"));
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
    let gone = 3..9;
    let vanished = Edit {
        span: Some(&gone),
        ..put("dim", "dim => 1")
    };
    assert_eq!(splice(LAMP, &[vanished]), Err((0, Fault::NoMethod)));
    let elsewhere = Edit {
        class: "Fan",
        ..put("a", "a => 1")
    };
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
        let unit = beamtalk_syntax::parse_file(&text).unit;
        for method in unit.items.iter().filter_map(|item| match item {
            beamtalk_syntax::ast::Item::Class(class) => Some(&class.methods),
            _ => None,
        }).flatten() {
            let source = method.span.text(&text);
            let side = if method.is_class { Side::Class } else { Side::Instance };
            let same = edit(side, &method.head.selector, Change::Put(source));
            prop_assert_eq!(splice(&text, &[same]).unwrap(), text.clone());
        }
        prop_assert_eq!(splice(&text, &[]).unwrap(), text);
    }

    #[test]
    fn what_was_put_is_found_again(source in method_source(), is_new in any::<bool>()) {
        let text = if is_new { lamp_with("isOn =>", "isLit =>") } else { LAMP.to_owned() };
        let new = splice(&text, &[put("isOn", &source)]).unwrap();
        let found = find_method(&new, "Lamp", Side::Instance, "isOn").unwrap();
        prop_assert!(super::same_method(&new[found.clone()], &source), "{}", new);
        let again = new[found].to_owned();
        prop_assert_eq!(splice(&new, &[put("isOn", &again)]).unwrap(), new);
    }
}
