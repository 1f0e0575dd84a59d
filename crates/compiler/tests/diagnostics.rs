//! What the compiler says about faulty sources. Each snapshot shows the source and the findings.

#[path = "support/library.rs"]
mod support;

use beamtalk_compiler::{Origin, compile_file, compile_input};

use support::{library, render, source_file};

fn findings(source: &str, origin: Origin) -> String {
    let mut table = library();
    let (file, syntax) = source_file("Demo", source, origin);
    assert!(syntax.is_empty(), "the source must parse: {syntax:?}");
    table.declare(&file);
    let diagnostics = if origin == Origin::Session {
        compile_input(&file, &table, &[]).diagnostics
    } else {
        compile_file(&file, &table).diagnostics
    };
    render(source, &diagnostics)
}

macro_rules! findings {
    ($name:ident, $origin:ident, $source:literal) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(findings($source, Origin::$origin));
        }
    };
}

findings!(
    messages_that_a_certain_receiver_does_not_understand_are_hints,
    Package,
    "Value subclass: Demo
  field: size = 1

  run: x =>
    3 plus: 4
    3 + 4 =:= 7
    x plus: 4
    self plus: 4
    Demo new size
    (Demo new withSize: 3) sise
    Demo new sise; isNil
    Demo make
    Demo name
    @expect dnu
    Demo make
"
);

findings!(
    a_class_that_answers_everything_understands_everything,
    Package,
    "Value subclass: Demo
  doesNotUnderstand: selector args: list => list

  run => Demo new sise
"
);

findings!(
    undefined_names_are_named,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  area => width * hight\n"
);
findings!(
    slots_must_be_declared,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  area => self.widht\n"
);
findings!(
    values_do_not_change,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  grow => self.width := 2\n"
);
findings!(
    test_cases_may_assign_their_fields,
    Package,
    "TestCase subclass: Demo\n  field: width = 1\n  grow => self.width := 2\n"
);
findings!(
    state_in_a_value,
    Package,
    "Value subclass: Demo\n  state: width = 1\n  area => self.width\n"
);
findings!(
    field_in_an_actor,
    Package,
    "Actor subclass: Demo\n  field: width = 1\n  area => self.width\n"
);
findings!(
    data_in_an_object,
    Package,
    "Object subclass: Demo\n  field: width = 1\n  area => self.width\n"
);
findings!(sealed_class, Package, "Integer subclass: Demo\n  area => 1\n");
findings!(
    sealed_method,
    Package,
    "Object subclass: Demo\n  yourself => 1\n  class name => 2\n"
);
findings!(superclass_cycle, Package, "Demo subclass: Demo\n  area => 1\n");
findings!(
    slot_clash,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  field: width = 2\n  field: Width = 3\n"
);
findings!(
    actor_new,
    Package,
    "Actor subclass: Demo\n  state: n = 0\n  class make => Demo new\n  class other => Demo new: #{#n => 1}\n"
);
findings!(
    object_new,
    Package,
    "Object subclass: Demo\n  class make => Demo new\n"
);
findings!(
    abstract_new,
    Package,
    "abstract Value subclass: Demo\n  class make => Demo new\n"
);
findings!(
    exceptions_have_a_constructor,
    Package,
    "Exception subclass: Demo\n  class make => Demo new\n"
);
findings!(
    expect_silences_an_error,
    Package,
    "Actor subclass: Demo\n  class make =>\n    @expect actor_new\n    Demo new\n"
);
findings!(
    stale_expect,
    Package,
    "Object subclass: Demo\n  class make =>\n    @expect actor_new\n    1\n"
);
findings!(new_in_a_session_warns, Session, "Actor new");
findings!(
    equality_is_not_dispatched,
    Package,
    "Value subclass: Demo\n  =:= other => other\n"
);
findings!(
    primitives_belong_to_the_library,
    Package,
    "Object subclass: Demo\n  area => @primitive\n"
);
findings!(
    unused_and_shadowed,
    Package,
    "Object subclass: Demo\n  run: list =>\n    total := 0\n    list do: [:list | list isNil]\n    other: 1\n"
);
findings!(
    unused_variable,
    Package,
    "Object subclass: Demo\n  run: list =>\n    total := 0\n    _quiet := 1\n    [:x | 3]\n"
);
findings!(
    unreachable_code,
    Package,
    "Object subclass: Demo\n  run =>\n    ^1\n    2\n"
);
findings!(
    constant_condition,
    Package,
    "Object subclass: Demo\n  run => true ifTrue: [1] ifFalse: [2]\n"
);
findings!(
    redundant_assignment,
    Package,
    "Object subclass: Demo\n  run: x =>\n    x := x\n    x\n"
);
findings!(
    super_initialize,
    Package,
    "Actor subclass: Demo\n  initialize => super initialize\n"
);
findings!(
    result_match_needs_both_cases,
    Package,
    "Object subclass: Demo\n  run: r => r match: [Result ok: v -> v]\n"
);
findings!(
    result_match_with_both_cases,
    Package,
    "Object subclass: Demo\n  run: r => r match: [Result ok: v -> v; Result error: _ -> nil]\n"
);
findings!(
    character_pattern,
    Package,
    "Object subclass: Demo\n  run: r => r match: [c :: Character -> c; _ -> nil]\n"
);
findings!(
    unresolved_class_suggests,
    Package,
    "Object subclass: Demo\n  run => Intger new\n"
);
findings!(
    unknown_type_suggests,
    Package,
    "Object subclass: Demo\n  run: x :: Intger -> Intger => x\n"
);
findings!(
    supervision_policy,
    Package,
    "Actor subclass: Demo\n  class supervisionPolicy => #always\n"
);
findings!(
    instance_field_in_class_method,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  class make => self.width\n"
);
findings!(self_outside_methods, Session, "self foo");
findings!(
    foreign_field,
    Package,
    "Object subclass: Demo\n  run: other => other.width\n"
);
findings!(
    cast_to_a_value,
    Package,
    "Value subclass: Demo\n  run => self go!\n"
);
findings!(
    extension_conflict,
    Package,
    "Object subclass: Demo\n  area => 1\n\nDemo >> area => 2\n"
);
findings!(
    alias_cycle,
    Package,
    "type First = Second\n\ntype Second = First\n"
);
findings!(
    parameters_have_names_of_their_own,
    Package,
    "Object subclass: Demo
  class at: x put: x => x
  class run => #([:a :b :a | a + b], [:_ :_ | 1])
"
);
findings!(
    parameters_of_an_input_have_names_of_their_own,
    Session,
    "[:x :x | x]\n"
);
findings!(alias_of_one_letter, Package, "type A = Integer\n");
findings!(
    protocol_extends_unknown,
    Package,
    "Protocol define: Sized extending: Countable\n  size -> Integer\n"
);
findings!(
    native_rules,
    Package,
    "Actor subclass: Demo native: demo_server\n  state: x = 1\n  poke => self delegate\n"
);
findings!(
    standard_names_are_taken,
    Package,
    "Object subclass: Integer\n  area => 1\n"
);
findings!(
    unknown_slot_key,
    Package,
    "Value subclass: Demo\n  field: width = 1\n  class make => Demo new: #{#wdth => 2}\n"
);
findings!(
    ten_errors_are_ten,
    Package,
    "Object subclass: Demo\n  a => x1\n  b => x2\n  c => x3\n  d => x4\n  e => x5\n  f => x6\n  g => x7\n  h => x8\n  i => x9\n  j => x10\n"
);

#[test]
fn every_code_is_unique_and_well_formed() {
    let mut seen = std::collections::BTreeSet::new();
    for (code, about) in beamtalk_compiler::codes::ALL {
        assert!(seen.insert(code), "{code} twice");
        assert_eq!(code.len(), 5, "{code}");
        assert!(about.ends_with('.'), "{code}: {about}");
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    let source = "Value subclass: Demo\n  field: a = 1\n  field: b = 2\n  c: x => [:y | x + y + self.a]\n";
    let compile = || {
        let mut table = library();
        let (file, _) = source_file("Demo", source, Origin::Package);
        table.declare(&file);
        compile_file(&file, &table)
            .modules
            .into_iter()
            .map(|module| module.forms)
            .collect::<Vec<_>>()
    };
    assert_eq!(compile(), compile());
}

/// Calls of Erlang that are visible, and classes with a backing module, where the table says they are switched off.
#[test]
fn erlang_switched_off_is_an_error_outside_the_library() {
    let mut table = library();
    table.disable_ffi();
    let codes = |text: &str, origin| -> Vec<String> {
        let (file, _) = source_file("Demo", text, origin);
        let mut table = table.clone();
        table.declare(&file);
        let found = if origin == Origin::Session {
            compile_input(&file, &table, &[]).diagnostics
        } else {
            compile_file(&file, &table).diagnostics
        };
        found
            .iter()
            .map(|diagnostic| diagnostic.code.to_string())
            .filter(|code| code == "E0501")
            .collect()
    };
    let call = "Object subclass: Demo\n  class go => Erlang lists reverse: #(1)\n  class module => Erlang\n";
    let backed = "Object subclass: Demo native: demo\n  go -> Integer => self delegate\n";
    assert_eq!(codes(call, Origin::Package).len(), 2);
    assert_eq!(codes(backed, Origin::Package).len(), 1);
    assert_eq!(codes("Erlang lists reverse: #(1)", Origin::Session).len(), 1);
    assert!(codes(call, Origin::Library).is_empty());
    assert!(codes(backed, Origin::Library).is_empty());
}
