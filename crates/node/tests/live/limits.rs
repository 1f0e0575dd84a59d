//! Evaluations that take too much, are stopped, or wait, each followed by a good one.

use std::time::{Duration, Instant};

use crate::image::{Image, field, text};
use beamtalk_etf::Term;
use beamtalk_node::Answer;

const MEGABYTE_IN_WORDS: i64 = 131_072;

fn detail(error: &Term, name: &str) -> String {
    text(&field(&field(error, "details").unwrap(), name).unwrap())
}

fn limit(image: &mut Image, name: &str, value: i64) {
    image.limits.push((Term::binary(name), Term::Integer(value)));
}

#[tokio::test]
async fn heap_limit() {
    let mut image = Image::start().await;
    limit(&mut image, "heap_words", 64 * MEGABYTE_IN_WORDS);
    image
        .run("kept := 7. counter := 0. count := [counter := counter + 1]")
        .await;
    let failed = image
        .eval("kept := 8. (1 to: 50000000) collect: [:i | i * i]")
        .await;
    let error = failed.outcome.unwrap_err();
    assert_eq!(text(&field(&error, "kind").unwrap()), "eval_limit");
    assert_eq!(detail(&error, "limit"), "heap");
    assert_eq!(
        text(&field(&error, "message").unwrap()),
        "evaluation stopped: heap limit of 64 MiB reached"
    );
    assert_eq!(image.eval("2 + 3").await.shown(), "5");
    // As they were before that evaluation.
    assert_eq!(image.eval("kept").await.shown(), "7");
    // A block still shares its variable with the session.
    assert_eq!(image.eval("count value. count value. counter").await.shown(), "2");
}

#[tokio::test]
async fn time_limit() {
    let mut image = Image::start().await;
    limit(&mut image, "time_ms", 300);
    let error = image.eval("[true] whileTrue: []").await.outcome.unwrap_err();
    assert_eq!(text(&field(&error, "kind").unwrap()), "eval_limit");
    assert_eq!(detail(&error, "limit"), "time");
    assert_eq!(image.eval("2 + 3").await.shown(), "5");
}

#[tokio::test]
async fn interrupt_stops_an_endless_loop() {
    let mut image = Image::start().await;
    image.run("x := 1").await;
    let running = image.send("x := 2. [true] whileTrue: []");
    tokio::time::sleep(Duration::from_millis(200)).await;
    let busy = image.eval("1").await;
    assert_eq!(busy.kind(), "busy");
    let interrupt = image
        .link
        .request(Some("s-1"), "interrupt", Term::Map(Vec::new()));
    let stopped = interrupt.outcome().await.unwrap();
    assert_eq!(field(&stopped, "value"), Some(Term::atom("true")));
    assert_eq!(image.finish(running).await.kind(), "interrupted");
    assert_eq!(image.eval("x").await.shown(), "1");
    let nothing = image
        .link
        .request(Some("s-1"), "interrupt", Term::Map(Vec::new()));
    assert_eq!(
        field(&nothing.outcome().await.unwrap(), "value"),
        Some(Term::atom("false"))
    );
}

#[tokio::test]
async fn output_cap() {
    let mut image = Image::start().await;
    let flood = image
        .eval("1 to: 300000 do: [:i | Transcript show: \"0123456789\"]. 7")
        .await;
    assert_eq!(flood.shown(), "7");
    assert!(flood.output.ends_with("… output truncated (1048576 bytes)"));
    assert_eq!(
        flood.output.len(),
        1_048_576 + "… output truncated (1048576 bytes)".len()
    );
    assert_eq!(image.eval("2 + 3").await.shown(), "5");
}

#[tokio::test]
async fn a_writer_waits_for_credit_and_loses_nothing() {
    let mut image = Image::start().await;
    image.run("1").await;
    let mut reply = image.send("1 to: 60000 do: [:i | Console print: \"0123456789\"]. 7");
    let mut taken = 0;
    while taken < 262_144 {
        match reply.next().await.unwrap() {
            Answer::Out(bytes) => taken += bytes.len(),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(taken, 262_144);
    // Without credit only the first grant comes.
    let more = tokio::time::timeout(Duration::from_millis(500), reply.next()).await;
    assert!(more.is_err(), "{more:?}");
    image.link.credit(reply.id(), 1_000_000);
    let rest = image.finish(reply).await;
    assert_eq!(taken + rest.output.len(), 600_000);
    assert_eq!(rest.shown(), "7");
}

#[tokio::test]
async fn printed_values_are_cut() {
    let mut image = Image::start().await;
    let long = image.eval("\"x\" repeat: 100000").await;
    let shown = long.shown();
    assert!(shown.len() <= 65_536 && shown.ends_with('…'), "{}", shown.len());
    assert_eq!(
        field(&long.outcome.unwrap(), "truncated"),
        Some(Term::atom("true"))
    );
}

#[tokio::test]
async fn input_is_asked_for_and_delivered() {
    let mut image = Image::start().await;
    let mut reply = image.send("Console readLine: \"Name: \"");
    assert_eq!(reply.next().await, Some(Answer::NeedInput("Name: ".to_owned())));
    let args = Term::Map(vec![(Term::binary("value"), Term::binary("Ada\n"))]);
    image
        .link
        .request(Some("s-1"), "stdin", args.clone())
        .outcome()
        .await
        .unwrap();
    assert_eq!(image.finish(reply).await.shown(), "\"Ada\"");
    let late = image.link.request(Some("s-1"), "stdin", args).outcome().await;
    let Err(Answer::Failed(error)) = late else {
        panic!("{late:?}")
    };
    assert_eq!(text(&field(&error, "kind").unwrap()), "no_input_pending");
}

#[tokio::test]
async fn program_exit_ends_the_evaluation_and_nothing_else() {
    let mut image = Image::start().await;
    let ended = image.run("Program exit: 3").await;
    assert_eq!(field(&ended, "exit_code"), Some(Term::Integer(3)));
    assert_eq!(image.eval("System halt: 1").await.kind(), "unsupported");
    assert_eq!(image.eval("2 + 3").await.shown(), "5");
}

#[tokio::test]
async fn actors_outlive_the_evaluation_that_made_them() {
    let mut image = Image::start().await;
    image
        .run("Actor subclass: Bell\n  ring => Transcript show: \"ding\". 1\n  loop => [true] whileTrue: []\n")
        .await;
    image.run("bell := Bell spawn").await;
    let mut hanging = image.send("Bell spawn loop. [true] whileTrue: []");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let interrupt = image
        .link
        .request(Some("s-1"), "interrupt", Term::Map(Vec::new()));
    assert!(matches!(hanging.next().await, Some(Answer::Failed(_))));
    interrupt.outcome().await.unwrap();
    // What an actor prints while it answers belongs to the evaluation that asked.
    assert_eq!(image.eval("bell ring").await.output, "ding");
}

#[tokio::test]
async fn loops_leave_no_atoms_and_no_code() {
    let mut image = Image::start().await;
    let measure = "Erlang erlang system_info: #atom_count";
    for number in 0..100 {
        image.run(&looping(number)).await;
    }
    let before: i64 = image.eval(measure).await.shown().parse().unwrap();
    let started = Instant::now();
    for number in 100..400 {
        image.run(&looping(number)).await;
    }
    let after: i64 = image.eval(measure).await.shown().parse().unwrap();
    assert!(
        after - before < 20,
        "{before} atoms became {after} in {:?}",
        started.elapsed()
    );
}

fn looping(number: i32) -> String {
    format!("b := [:k | k + {number}]. 1 to: {number} do: [:i | b value: i]")
}
