use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

use super::{Action, Daemon, Model, Pane, Row, Source};

fn row(id: &str) -> Row {
    Row {
        id: id.to_owned(),
        cells: [id, "echo", "idle", "-", "-", "/tmp"].map(str::to_owned),
        pid: None,
    }
}

fn model() -> Model {
    Model {
        rows: vec![row("aaaaaaaa"), row("bbbbbbbb")],
        connected: true,
        ..Model::default()
    }
}

/// The last action of a few keys; `\u{4}` stands for C-d.
fn press(model: &mut Model, keys: &str) -> Action {
    let mut action = Action::None;
    for letter in keys.chars() {
        let (code, modifiers) = match letter {
            '\u{4}' => (KeyCode::Char('d'), KeyModifiers::CONTROL),
            '\u{e}' => (KeyCode::Char('n'), KeyModifiers::CONTROL),
            '\n' => (KeyCode::Enter, KeyModifiers::NONE),
            '\u{1b}' => (KeyCode::Esc, KeyModifiers::NONE),
            other => (KeyCode::Char(other), KeyModifiers::NONE),
        };
        action = model.press(KeyEvent::new(code, modifiers));
    }
    action
}

fn inbox(folder: &'static str) -> (Pane, Vec<Value>) {
    let messages = vec![
        json!({"id": "m1", "type": "QUERY_REQUEST", "subject": "s", "body": "text"}),
        json!({"id": "m2", "type": "REVIEW_REQUEST"}),
    ];
    let pane = Pane::Inbox {
        folder,
        messages: messages.clone(),
        selected: 0,
    };
    (pane, messages)
}

#[test]
fn a_prompt_has_several_lines_and_is_sent_by_control_d() {
    let mut model = model();
    let action = press(&mut model, "j one\ntwo\u{4}");
    assert_eq!(
        action,
        Action::Write("bbbbbbbb".to_owned(), "in", "one\ntwo".to_owned())
    );
    // Kept until it is known to have arrived.
    assert!(matches!(&model.submitted, Some(Pane::Field { editor, .. }) if editor.text == "one\ntwo"));
    assert_eq!(press(&mut model, " never\u{1b}"), Action::None);
    assert!(model.panes.is_empty());
}

#[test]
fn pasted_lines_do_not_send() {
    let mut model = model();
    press(&mut model, " ");
    model.paste("one\r\ntwo\u{4}");
    assert_eq!(
        press(&mut model, "\u{4}"),
        Action::Write("aaaaaaaa".to_owned(), "in", "one\ntwo\u{4}".to_owned())
    );
    press(&mut model, "/");
    model.paste("one\ntwo");
    press(&mut model, "\n");
    assert_eq!(model.filter, "one two");
}

#[test]
fn killing_asks_first() {
    let mut model = model();
    assert_eq!(press(&mut model, "Kn"), Action::None);
    assert_eq!(
        press(&mut model, "Ky"),
        Action::Ctl("aaaaaaaa".to_owned(), "kill")
    );
}

#[test]
fn the_selected_session_stays_selected_when_others_come() {
    let mut model = model();
    press(&mut model, "\u{e}");
    assert_eq!(model.current().as_deref(), Some("bbbbbbbb"));
    model.show_rows(vec![row("cccccccc"), row("aaaaaaaa"), row("bbbbbbbb")]);
    assert_eq!(model.current().as_deref(), Some("bbbbbbbb"));
    model.wanted = Some("cccccccc".to_owned());
    model.show_rows(vec![row("cccccccc"), row("bbbbbbbb")]);
    assert_eq!(model.current().as_deref(), Some("cccccccc"));
}

#[test]
fn the_filter_narrows_the_table() {
    let mut model = model();
    press(&mut model, "/bbb\n");
    assert_eq!(model.current().as_deref(), Some("bbbbbbbb"));
    assert_eq!(press(&mut model, "q"), Action::Quit);
}

#[test]
fn starting_asks_for_backend_level_and_directory() {
    let mut model = model();
    assert_eq!(press(&mut model, "s"), Action::ChooseBackend);
    let items = ["echo", "shell"].map(|name| (name.to_owned(), format!("{name} ready")));
    model.open_choice("backend", super::Chosen::Backend, items.to_vec());
    press(&mut model, "j\njjj\n");
    let Some(Pane::Field { editor, .. }) = model.panes.last() else {
        panic!("{:?}", model.panes);
    };
    let here = editor.text.clone();
    assert_eq!(
        press(&mut model, "/sub\n"),
        Action::New {
            backend: "shell".to_owned(),
            level: "high".to_owned(),
            directory: format!("{here}/sub"),
        }
    );
}

#[test]
fn mail_is_written_step_by_step() {
    let mut model = model();
    let action = press(&mut model, "m\nj\nhello\nfirst\nsecond\u{4}");
    assert_eq!(
        action,
        Action::Send {
            to: "aaaaaaaa".to_owned(),
            kind: "QUERY_REQUEST".to_owned(),
            subject: "hello".to_owned(),
            body: "first\nsecond".to_owned(),
        }
    );
}

#[test]
fn only_requests_in_the_inbox_can_be_answered() {
    let mut model = model();
    let (pane, messages) = inbox("inbox");
    model.panes.push(pane);
    assert_eq!(press(&mut model, "a"), Action::None);
    assert_eq!(
        press(&mut model, "ja"),
        Action::Answer(Box::new(messages[1].clone()), "approved", String::new())
    );
    assert_eq!(
        press(&mut model, "xtoo big\n"),
        Action::Answer(Box::new(messages[1].clone()), "rejected", "too big".to_owned())
    );
    assert_eq!(press(&mut model, "d"), Action::Complete("m2".to_owned()));
    model.panes = vec![inbox("completed").0];
    for key in ["ja", "x", "d"] {
        assert_eq!(press(&mut model, key), Action::None);
    }
}

#[test]
fn closing_a_message_leads_back_to_the_inbox() {
    let mut model = model();
    let (pane, _) = inbox("inbox");
    model.panes.push(pane.clone());
    press(&mut model, "\n");
    assert!(matches!(model.panes.last(), Some(Pane::Text { text, .. }) if text == "text"));
    press(&mut model, "\u{1b}");
    assert_eq!(model.panes, [pane]);
    press(&mut model, "\u{1b}");
    assert!(model.panes.is_empty());
}

#[test]
fn escape_and_a_key_read_in_one_piece_are_two_keys() {
    let mut model = model();
    press(&mut model, "m");
    assert_eq!(model.panes.len(), 1);
    let action = model.press(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::ALT));
    assert!(model.panes.is_empty());
    assert_eq!(action, Action::Quit);
}

#[test]
fn growing_texts_scroll_from_their_end() {
    let mut model = model();
    assert_eq!(
        press(&mut model, "v"),
        Action::Show(
            "output of aaaaaaaa".to_owned(),
            Source::File("aaaaaaaa/output".to_owned())
        )
    );
    let text = |source| Pane::Text {
        title: String::new(),
        source,
        text: String::new(),
        scrolled: 0,
    };
    for (source, keys, expected) in [
        (Some(Source::Events), "kkj", 1),
        (Some(Source::Events), "gG", 0),
        (None, "jjk", 1),
        (None, "Gg", 0),
    ] {
        model.panes = vec![text(source)];
        press(&mut model, keys);
        assert!(matches!(model.panes.last(), Some(Pane::Text { scrolled, .. }) if *scrolled == expected));
    }
}

#[test]
fn the_daemon_is_started_and_stopped_from_its_pane() {
    let mut model = model();
    assert_eq!(press(&mut model, "d"), Action::Daemon(Daemon::Look));
    model.panes.push(Pane::Daemon("runs".to_owned()));
    assert_eq!(press(&mut model, "T"), Action::Daemon(Daemon::Stop));
    model.panes.push(Pane::Daemon("does not run".to_owned()));
    assert_eq!(press(&mut model, "s"), Action::Daemon(Daemon::Start));
}
