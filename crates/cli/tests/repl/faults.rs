//! A session whose workspace is taken away from under it.

use serde_json::Value;

use crate::screen::Screen;
use crate::support::Place;

fn node_info(place: &Place) -> Value {
    let workspaces = std::fs::read_dir(place.home().join("workspaces")).unwrap();
    let file = workspaces
        .map(|entry| entry.unwrap().path().join("node.info"))
        .find(|path| path.exists())
        .unwrap();
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn kill(place: &Place, field: &str) {
    let id = i32::try_from(node_info(place)[field].as_i64().unwrap()).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn a_killed_node_comes_back_under_the_session() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    screen.text("6 * 7");
    screen.wait_for_last("> 6 * 7");
    kill(&place, "node_pid");
    screen.wait_for("[workspace] the node ended");
    screen.wait_for("[workspace] the node is up again\n> 6 * 7");
    screen.keys(&["Enter"]);
    screen.wait_for("> 6 * 7\n42\n>");
    screen.evaluate("Erlang erlang halt: 0", "\nError: ");
    screen.wait_for_count("[workspace] the node is up again", 2);
    screen.evaluate("5 + 5", "\n10\n");
    drop(screen);
    place.stop();
}

#[test]
fn a_killed_daemon_ends_the_session_with_3() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    screen.wait_for("[exit 3]");
    drop(screen);
    place.expect_no_processes();
}

#[test]
fn a_daemon_killed_during_an_evaluation_ends_the_session_with_3() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.line("[true] whileTrue: [1]");
    std::thread::sleep(std::time::Duration::from_millis(300));
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    screen.wait_for("[exit 3]");
    drop(screen);
    place.expect_no_processes();
}

#[test]
fn a_new_daemon_is_found_again() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 1", "\n1\n");
    kill(&place, "pid");
    screen.wait_for("Connection lost, reconnecting…");
    place.run(&["workspace", "start"]).expect_code(0);
    screen.wait_for("Reconnected (new session; bindings are gone).\n[beamtalk] session: s-");
    screen.evaluate("2 + 3", "\n5\n");
    drop(screen);
    place.stop();
}

#[test]
fn a_session_is_resumed() {
    let place = Place::new();
    let screen = Screen::repl(&place);
    screen.evaluate("x := 41", "\n41\n");
    screen.evaluate(":reconnect", "\nReconnected (session resumed).\n");
    screen.evaluate("x + 1", "\n42\n");
    drop(screen);
    place.stop();
}
