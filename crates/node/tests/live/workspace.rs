//! The objects of a workspace, reload on living actors, events and logs, in a real node.

use std::time::Duration;

use crate::image::{Image, field, text};
use beamtalk_etf::Term;
use beamtalk_node::{Answer, NodeMessage};

fn map<const N: usize>(pairs: [(&str, Term); N]) -> Term {
    Term::Map(
        pairs
            .into_iter()
            .map(|(key, value)| (Term::binary(key), value))
            .collect(),
    )
}

#[tokio::test]
async fn bindings_are_a_live_view() {
    let mut image = Image::start().await;
    image.run("x := 7").await;
    assert_eq!(
        image.eval("Session current bindings at: #x put: 8").await.shown(),
        "8"
    );
    assert_eq!(image.eval("x").await.shown(), "8");
    assert_eq!(
        image
            .eval("Session current bindings at: #noSuchName")
            .await
            .shown(),
        "nil"
    );
    assert_eq!(
        image
            .eval("Workspace globals includesKey: #Transcript")
            .await
            .shown(),
        "true"
    );
    assert_eq!(image.eval("Session current bindings keys").await.shown(), "#(#x)");
    assert_eq!(image.eval("Session current clear").await.shown(), "nil");
    assert_eq!(image.eval("Session current bindings size").await.shown(), "0");
    assert_eq!(image.eval("x").await.kind(), "undefined_variable");
}

#[tokio::test]
async fn names_are_shared_and_guarded() {
    let mut image = Image::start().await;
    assert_eq!(image.eval("Workspace bind: 42 as: #answer").await.shown(), "nil");
    let told = image.event("globals").await;
    assert_eq!(field(&told, "names"), Some(Term::list([Term::binary("answer")])));
    image.bound.push("answer".into());
    assert_eq!(image.eval("answer").await.shown(), "42");
    assert_eq!(
        image.eval("Workspace bind: 1 as: #Transcript").await.kind(),
        "name_conflict"
    );
    assert_eq!(
        image.eval("Workspace bind: 1 as: #Integer").await.kind(),
        "name_conflict"
    );
    assert_eq!(
        image.eval("Workspace unbind: #nothing").await.kind(),
        "name_not_found"
    );
    image.run("Workspace unbind: #answer").await;
    assert_eq!(image.eval("answer").await.kind(), "undefined_variable");
}

#[tokio::test]
async fn another_session_is_read_only() {
    let mut image = Image::start().await;
    let other = image
        .link
        .request(Some("s-2"), "session-start", map([("kind", Term::binary("mcp"))]));
    other.outcome().await.unwrap();
    assert_eq!(image.eval("Workspace sessions size").await.shown(), "2");
    assert_eq!(
        image.eval("(Session withId: \"s-2\") kind").await.shown(),
        "\"mcp\""
    );
    assert_eq!(
        image
            .eval("(Session withId: \"s-2\") bindings at: #a put: 1")
            .await
            .kind(),
        "cross_session_mutation_unsupported"
    );
    assert_eq!(image.eval("Session withId: \"s-9\"").await.shown(), "nil");
}

#[tokio::test]
async fn the_image_asks_and_is_answered() {
    let mut image = Image::start().await;
    image.run("Actor subclass: Lamp\n  state: on = false\n").await;
    let reply = image.send("Lamp compile: #isOn source: \"isOn => self.on\"");
    let (number, session, op, args) = image.asked().await;
    assert_eq!((session.as_deref(), op.as_str()), (Some("s-1"), "save-method"));
    assert_eq!(text(&field(&args, "selector").unwrap()), "isOn");
    let refusal = map([
        ("kind", Term::binary("compile_failed")),
        ("message", Term::binary("not today")),
    ]);
    image.link.answer(number, Err(refusal));
    let failed = image.finish(reply).await;
    assert_eq!(failed.kind(), "compile_failed");
    let reply = image.send("Workspace flush");
    let (number, _, op, _) = image.asked().await;
    assert_eq!(op, "flush");
    let answer = map([
        ("flushed", Term::Integer(2)),
        ("files", Term::list([Term::binary("src/Lamp.bt")])),
    ]);
    image.link.answer(number, Ok(answer));
    assert!(image.finish(reply).await.shown().contains("#flushed => 2"));
}

#[tokio::test]
async fn living_actors_take_the_new_shape() {
    let mut image = Image::start().await;
    let lamp = |state: &str| format!("Actor subclass: Lamp\n{state}  toggle => self.on := self.on not\n");
    image.run(&lamp("  state: on = false\n  state: old = 1\n")).await;
    image.run("lamp := Lamp spawn. lamp toggle").await;
    let reloaded = image
        .run(&lamp("  state: on = false\n  state: watts = 40\n"))
        .await;
    assert_eq!(
        field(&reloaded, "classes"),
        Some(Term::list([Term::binary("Lamp")]))
    );
    image.run("Lamp >> watts => self.watts").await;
    assert_eq!(image.eval("lamp watts").await.shown(), "40");
    assert_eq!(image.eval("lamp toggle").await.shown(), "false");
    assert_eq!(
        image.eval("Value subclass: Lamp\n  field: on = 1\n").await.kind(),
        "incompatible_reload"
    );
    assert_eq!(image.eval("lamp watts").await.shown(), "40");
    image.run("Transcript recent").await;
    let log = image.log();
    assert!(
        log.contains("[warning] [runtime] Lamp: removed slots (old) of 1 actor(s) are dropped"),
        "{log}"
    );
}

#[tokio::test]
async fn methods_and_classes_are_taken_out() {
    let mut image = Image::start().await;
    image
        .run("Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n")
        .await;
    image.run("lamp := Lamp spawn").await;
    let method = [
        ("class", Term::binary("Lamp")),
        ("selector", Term::binary("toggle")),
    ];
    let call = |op, args| image.link.request(None, op, args).outcome();
    call("remove-method", map(method.clone())).await.unwrap();
    let again = call("remove-method", map(method)).await;
    let living = call(
        "remove-class",
        map([
            ("class", Term::binary("Lamp")),
            ("stop_actors", Term::atom("false")),
        ]),
    )
    .await;
    let gone = call("remove-class", map([("class", Term::binary("Lamp"))])).await;
    assert_eq!(field(&gone.unwrap(), "stopped_actors"), Some(Term::Integer(1)));
    let missing = call("remove-class", map([("class", Term::binary("Lamp"))])).await;
    for (outcome, kind) in [
        (again, "selector_not_found"),
        (living, "actors_exist"),
        (missing, "class_not_found"),
    ] {
        let Err(Answer::Failed(error)) = outcome else {
            panic!("{kind}: {outcome:?}")
        };
        assert_eq!(text(&field(&error, "kind").unwrap()), kind);
    }
    assert_eq!(image.eval("lamp isAlive").await.shown(), "false");
}

#[tokio::test]
async fn events_come_for_channels_that_are_watched() {
    let mut image = Image::start().await;
    image
        .run("Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n")
        .await;
    let channels = ["transcript", "actors", "classes", "bindings", "object", "logs"];
    let shown = image.eval("lamp := Lamp spawn. lamp pid asString").await.shown();
    let actor = shown
        .trim_matches(|found: char| !found.is_ascii_digit())
        .to_owned();
    image.link.control(
        "subscribe",
        map([
            ("channels", Term::list(channels.map(Term::binary))),
            ("actors", Term::list([Term::binary(&actor)])),
        ]),
    );
    tokio::time::sleep(Duration::from_millis(200)).await;
    image.run("Transcript show: \"hello\"").await;
    assert_eq!(text(&field(&image.event("text").await, "text").unwrap()), "hello");
    image.run("lamp toggle").await;
    assert_eq!(
        field(&image.event("changed").await, "fields"),
        Some(Term::list([Term::binary("on")]))
    );
    // Gone before anybody came to watch it, and in order all the same.
    let code =
        "Erlang sys suspend: #beamtalk_announcer. Lamp spawn stop. Erlang sys resume: #beamtalk_announcer";
    image.run(code).await;
    assert_eq!(
        text(&field(&image.event("spawned").await, "class").unwrap()),
        "Lamp"
    );
    assert_eq!(
        text(&field(&image.event("stopped").await, "reason").unwrap()),
        "normal"
    );
    image.run("Logger warn: \"look\"").await;
    assert_eq!(text(&field(&image.event("entry").await, "msg").unwrap()), "look");
    image.run("Value subclass: Point2\n  field: x = 1\n").await;
    assert_eq!(
        text(&field(&image.event("loaded").await, "class").unwrap()),
        "Point2"
    );
}

#[tokio::test]
async fn log_lines_hide_secrets() {
    let mut image = Image::start().await;
    image
        .run("Logger info: \"login\" metadata: #{#password => \"hunter2\", #who => \"ada\"}")
        .await;
    image.run("Beamtalk logFormat: #json").await;
    image
        .run("Logger info: \"again\" metadata: #{#apiToken => \"hunter2\"}")
        .await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let log = image.log();
    assert!(log.contains(" [info] [user] login password=*** who=ada"), "{log}");
    assert!(log.contains("\"msg\":\"again\""), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    assert_eq!(
        image.eval("Beamtalk logLevel: #loud").await.kind(),
        "argument_error"
    );
}

#[tokio::test]
async fn capabilities_that_are_off_are_refused_and_told() {
    let mut image = Image::start_without(&["ffi", "subprocess"]).await;
    assert_eq!(
        image.eval("Erlang lists reverse: #(1, 2)").await.kind(),
        "capability_disabled"
    );
    let told = image.event("capability_disabled").await;
    assert_eq!(text(&field(&told, "what").unwrap()), "ffi");
    assert_eq!(image.eval("OS run: \"true\"").await.kind(), "capability_disabled");
    assert_eq!(image.eval("1 + 2").await.shown(), "3");
}

#[tokio::test]
async fn values_have_a_json_form() {
    let mut image = Image::start().await;
    let mut value = async |input: &str| field(&image.run(input).await, "value").unwrap();
    assert_eq!(
        value("9007199254740991").await,
        Term::Integer(9_007_199_254_740_991)
    );
    assert_eq!(value("9007199254740992").await, Term::binary("9007199254740992"));
    assert_eq!(value("nil").await, Term::atom("nil"));
    assert_eq!(value("#sym").await, Term::binary("sym"));
    assert_eq!(value("2.5").await, Term::Float(2.5));
    assert_eq!(
        value("#(1, \"a\", true)").await,
        Term::list([Term::Integer(1), Term::binary("a"), Term::atom("true")])
    );
    assert_eq!(value("#{#a => 1}").await, map([("a", Term::Integer(1))]));
    assert_eq!(value("#{1 => 2}").await, Term::binary("#{1 => 2}"));
    assert_eq!(value("Integer").await, Term::binary("Integer"));
}

#[tokio::test]
async fn sessions_are_cloned_and_closed() {
    let mut image = Image::start().await;
    image.run("x := 7").await;
    let clone = image
        .link
        .request(Some("s-1"), "clone", map([("session", Term::binary("s-3"))]));
    assert_eq!(
        field(&clone.outcome().await.unwrap(), "names"),
        Some(Term::list([Term::binary("x")]))
    );
    let bindings = image.link.request(Some("s-3"), "bindings", map([]));
    let shown = field(&bindings.outcome().await.unwrap(), "bindings").unwrap();
    assert_eq!(text(&field(&field(&shown, "x").unwrap(), "text").unwrap()), "7");
    image
        .link
        .request(Some("s-3"), "session-close", map([]))
        .outcome()
        .await
        .unwrap();
    let gone = image
        .link
        .request(Some("s-3"), "bindings", map([]))
        .outcome()
        .await;
    let Err(Answer::Failed(error)) = gone else {
        panic!("{gone:?}")
    };
    assert_eq!(text(&field(&error, "kind").unwrap()), "session_not_found");
}

impl Image {
    /// The data of the next event of that name.
    async fn event(&mut self, wanted: &str) -> Term {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(5), self.messages.recv()).await;
            match next.unwrap_or_else(|_| panic!("no event '{wanted}'")).unwrap() {
                NodeMessage::Event { name, data, .. } if name == wanted => return data,
                _ => {}
            }
        }
    }

    /// The next question of the image.
    async fn asked(&mut self) -> (i64, Option<String>, String, Term) {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(5), self.messages.recv()).await;
            if let NodeMessage::Ask {
                number,
                session,
                op,
                args,
            } = next.unwrap().unwrap()
            {
                return (number, session, op, args);
            }
        }
    }
}
