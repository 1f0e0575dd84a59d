//! A real node behind a `NodeLink`.

use std::time::{Duration, Instant};

use crate::image::{Image, field, text};
use beamtalk_etf::Term;
use beamtalk_node::{Answer, NodeMessage};

#[tokio::test]
async fn evaluates_with_variables_that_stay() {
    let mut image = Image::start().await;
    assert_eq!(image.eval("1 + 2").await.shown(), "3");
    assert_eq!(image.eval("x := 40").await.shown(), "40");
    assert_eq!(image.eval("x + 2").await.shown(), "42");
    let failed = image.eval("x frobnicate").await;
    assert_eq!(failed.kind(), "does_not_understand");
    assert_eq!(image.eval("x").await.shown(), "40");
}

#[tokio::test]
async fn output_comes_before_the_value() {
    let mut image = Image::start().await;
    let done = image
        .eval("3 timesRepeat: [Transcript show: \"tick\"; cr]. 42")
        .await;
    assert_eq!(done.output, "tick\ntick\ntick\n");
    assert_eq!(done.shown(), "42");
}

#[tokio::test]
async fn classes_and_actors_live_in_the_image() {
    let mut image = Image::start().await;
    let source = "Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n";
    let defined = image.eval(source).await;
    assert_eq!(
        field(&defined.outcome.unwrap(), "classes"),
        Some(Term::list([Term::binary("Lamp")]))
    );
    image.run("lamp := Lamp spawn").await;
    assert_eq!(image.eval("lamp toggle").await.shown(), "true");
    assert_eq!(image.eval("lamp toggle").await.shown(), "false");
}

#[tokio::test]
async fn a_killed_node_fails_what_is_open() {
    let mut image = Image::start().await;
    image.run("1").await;
    let mut open = image.send("[true] whileTrue: []");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let pid = i32::try_from(image.link.pid()).unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    assert!(matches!(open.next().await, Some(Answer::NodeGone(Some(_)))));
    assert_eq!(open.next().await, None);
    let after = image
        .link
        .request(None, "ping", Term::Map(Vec::new()))
        .outcome()
        .await;
    assert!(matches!(after, Err(Answer::NodeGone(Some(_)))));
    while let Some(message) = image.messages.recv().await {
        if let NodeMessage::Exited(status) = message {
            assert!(!status.unwrap().success());
            return;
        }
    }
    panic!("the end of the node was not told");
}

#[tokio::test]
async fn the_end_of_the_pipe_ends_the_node() {
    let mut image = Image::start().await;
    image.run("1").await;
    let started = Instant::now();
    let status = image.link.stop(Duration::from_secs(10)).await;
    assert_eq!(status.and_then(|status| status.code()), Some(0));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn unknown_requests_are_refused() {
    let image = Image::start().await;
    let outcome = image
        .link
        .request(None, "no-such-op", Term::Map(Vec::new()))
        .outcome()
        .await;
    let Err(Answer::Failed(error)) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(text(&field(&error, "kind").unwrap()), "unknown_op");
}
