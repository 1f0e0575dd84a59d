//! Programs give the same walked and compiled: random ones, once without ever making code and then with code from some
//! early call on.

use beamtalk_etf::Term;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};

use crate::image::{Evaluated, Image, field};

/// Programs of one run; a property's usual number of cases would take minutes in a node.
const PROGRAMS: u32 = 120;

/// Locals of the program; `s` and `t` are variables of the session.
const NAMES: [&str; 5] = ["a", "b", "c", "s", "t"];

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
}

/// An expression that answers a number, or fails.
fn number() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => name(),
        3 => (0..20_i32).prop_map(|n| n.to_string()),
        1 => Just("2.5".to_owned()),
        1 => Just("nil".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            4 => (prop::sample::select(vec!["+", "-", "/"]), pair.clone())
                .prop_map(|(operator, (left, right))| format!("({left} {operator} {right})")),
            // Not by each other: squares of squares would outgrow the node.
            1 => (inner.clone(), 0..9_i32).prop_map(|(x, n)| format!("({x} * {n})")),
            2 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(x, yes, no)| format!("({x} < 7 ifTrue: [{yes}] ifFalse: [{no}])")),
            2 => pair.clone().prop_map(|(start, step)| format!("((1 to: 6) inject: {start} into: [:p :q | p + (q * {step})])")),
            1 => pair.prop_map(|(x, y)| format!("([:p | p + {y}] value: {x})")),
            1 => inner.clone().prop_map(|x| format!("((#(3, 1, 2) collect: [:p | p * {x}]) inject: 0 into: [:p :q | p + q])")),
            1 => (inner.clone(), inner.clone()).prop_map(|(x, y)| format!("([{x}] on: Error do: [:e | {y}])")),
            1 => (name(), inner).prop_map(|(x, y)| format!("([{x}] ensure: [{x} := {y}])")),
        ]
    })
}

fn statement() -> impl Strategy<Value = String> {
    let assignment = (name(), number()).prop_map(|(target, value)| format!("{target} := {value}"));
    assignment.prop_recursive(3, 16, 3, |inner| {
        let body = prop::collection::vec(inner, 1..3).prop_map(|body| body.join(". "));
        prop_oneof![
            3 => (2..8_i32, body.clone()).prop_map(|(n, body)| format!("1 to: {n} do: [:i | {body}. u := u + i]")),
            2 => (2..8_i32, body.clone()).prop_map(|(n, body)| format!("{n} timesRepeat: [{body}]")),
            // A counter of its own: one that an inner loop sets back would never end.
            2 => (2..8_i32, any::<u64>(), body.clone()).prop_map(|(n, k, body)| {
                format!("[k{k} := 0. [k{k} < {n}] whileTrue: [k{k} := k{k} + 1. {body}]] value")
            }),
            2 => (2..8_i32, body.clone()).prop_map(|(n, body)| format!("(1 to: {n}) do: [:i | {body}]")),
            2 => body.clone().prop_map(|body| format!("f := [:x | {body}. x]. f value: a. f value: s")),
            1 => body.clone().prop_map(|body| format!("made := made add: [{body}. u]")),
            1 => body.clone().prop_map(|body| format!("[{body}] on: Error do: [:e | u := u + 1]")),
            1 => (name(), body).prop_map(|(x, body)| format!("{x} =:= 3 ifTrue: [{body}] ifFalse: [u := u - 1]")),
        ]
    })
}

/// A condition over numbers and the Boolean `d` of the session.
fn condition() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (name(), prop::sample::select(vec!["<", ">", "=:=", "=/="]), 0..9_i32)
            .prop_map(|(x, operator, n)| format!("{x} {operator} {n}")),
        1 => Just("d".to_owned()),
        1 => (name(), name()).prop_map(|(x, y)| format!("({x} < {y}) and: [d not]")),
    ]
}

/// An expression of a loop that only computes: numbers of the session, which may become floats, fail, or be no numbers.
fn computed() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        5 => name(),
        3 => (0..20_i32).prop_map(|n| n.to_string()),
        1 => Just("i".to_owned()),
        1 => Just("1.5".to_owned()),
        1 => Just("1.0e300".to_owned()),
    ];
    leaf.prop_recursive(3, 10, 2, |inner| {
        let pair = (inner.clone(), inner.clone());
        prop_oneof![
            5 => (prop::sample::select(vec!["+", "-", "%", "/"]), pair.clone())
                .prop_map(|(operator, (left, right))| format!("({left} {operator} {right})")),
            1 => (inner.clone(), 0..9_i32).prop_map(|(x, n)| format!("({x} * {n})")),
            1 => (inner.clone(), 1..9_i32).prop_map(|(x, n)| format!("({x} * {n}.0e150)")),
            1 => (condition(), pair).prop_map(|(test, (yes, no))| format!("({test} ifTrue: [{yes}] ifFalse: [{no}])")),
            1 => (name(), inner).prop_map(|(x, y)| format!("({x} := {y})")),
        ]
    })
}

fn computing() -> impl Strategy<Value = String> {
    let assignment = prop_oneof![
        6 => (name(), computed()).prop_map(|(target, value)| format!("{target} := {value}")),
        1 => condition().prop_map(|test| format!("d := {test}")),
        1 => (name(), computed()).prop_map(|(target, value)| format!("l := {value}. {target} := l")),
    ];
    assignment.prop_recursive(3, 12, 3, |inner| {
        let body = prop::collection::vec(inner, 1..3).prop_map(|body| body.join(". "));
        prop_oneof![
            3 => (2..8_i32, body.clone()).prop_map(|(n, body)| format!("1 to: {n} do: [:i | {body}]")),
            2 => (2..8_i32, body.clone()).prop_map(|(n, body)| format!("{n} timesRepeat: [{body}]")),
            1 => (name(), body.clone()).prop_map(|(x, body)| format!("1 to: {x} % 9 do: [:i | {body}]")),
            2 => (condition(), body.clone()).prop_map(|(test, body)| format!("{test} ifTrue: [{body}]")),
            1 => body.clone().prop_map(|body| format!("(1 to: 5) do: [:i | {body}]")),
            1 => (name(), body).prop_map(|(x, body)| format!("3 timesRepeat: [[{body}] on: Error do: [:e | {x} := 2]]")),
        ]
    })
}

/// Loops at the top level of an input, over variables of the session alone.
fn session_program() -> impl Strategy<Value = String> {
    let first = prop::sample::select(vec!["7", "2.5", "nil", "true", "\"text\""]);
    (first, prop::collection::vec(computing(), 1..4)).prop_map(|(first, statements)| {
        format!(
            "a := 1. b := {first}. c := 3. d := false. i := 11. {}. #(a, b, c, d)",
            statements.join(". ")
        )
    })
}

/// Everything happens in one block, whose last value shows all locals and calls the blocks it has stored.
fn program() -> impl Strategy<Value = String> {
    prop::collection::vec(statement(), 1..5).prop_map(|statements| {
        format!(
            "[a := 1. b := 2. c := 3. u := 0. f := nil. made := #(). {}. \
             made := made collect: [:each | [each value] on: Error do: [:e | e message]]. #(a, b, c, u, made)] value",
            statements.join(". ")
        )
    })
}

/// What of an outcome must be the same: value and its text, or kind, message, hint and place of the error.
fn compared(evaluated: &Evaluated) -> Vec<Option<Term>> {
    let parts = |term: &Term, names: &[&str]| names.iter().map(|name| field(term, name)).collect();
    match &evaluated.outcome {
        Ok(answer) => parts(answer, &["text"]),
        Err(error) => parts(error, &["kind", "message", "hint", "location"]),
    }
}

/// The program's outcome and the session's variables after it.
async fn run(image: &mut Image, threshold: &str, program: &str) -> Vec<Vec<Option<Term>>> {
    image
        .run(&format!(
            "s := 4. t := 5. Erlang beamtalk_walk set_threshold: {threshold}"
        ))
        .await;
    let mut all = Vec::new();
    for input in [program, "s", "t", "#(a, b, c, d)"] {
        let evaluated = image.eval(input).await;
        all.push(compared(&evaluated));
    }
    all
}

#[tokio::test]
async fn programs_are_the_same_walked_and_compiled() {
    compare(&program().boxed()).await;
}

/// Variables of the session have the same values after a loop walked and compiled, held and in the dictionary, also after an
/// error in its middle.
#[tokio::test]
async fn loops_over_the_session_are_the_same_walked_and_compiled() {
    compare(&session_program().boxed()).await;
}

async fn compare(programs: &BoxedStrategy<String>) {
    // Whoever is told of assignments is told of each, so no loop of this image holds variables back.
    let mut reference = Image::start().await;
    let mut image = Image::start().await;
    let watch = "SystemAnnouncer current when: BindingChanged do: [:e | nil]";
    reference.eval(watch).await.outcome.unwrap();
    for image in [&mut reference, &mut image] {
        let variables = "s := 1. t := 2. a := b := c := d := i := 0";
        image.run(variables).await;
    }
    let mut runner = TestRunner::new(Config::default());
    let mut values = 0;
    for _ in 0..PROGRAMS {
        let program = programs.new_tree(&mut runner).unwrap().current();
        let expected = run(&mut reference, "#infinity", &program).await;
        values += u32::from(expected.first().is_some_and(|outcome| outcome.len() == 1));
        for threshold in ["#infinity", "1", "2", "9"] {
            let setting = match threshold {
                "#infinity" => threshold.to_owned(),
                _ => format!("(Tuple withAll: #({threshold}, #wait))"),
            };
            let got = run(&mut image, &setting, &program).await;
            assert_eq!(expected, got, "from call {threshold} on: {program}");
        }
    }
    // Programs that fail compare little.
    assert!(values > PROGRAMS / 5, "only {values} programs gave a value");
}
