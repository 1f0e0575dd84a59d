//! E6 to E12, E24: processes, their restarts, probes and output.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Place, holds_for, is_alive, touch, wait_for};

fn pid_in(place: &Place, file: &str) -> u32 {
    wait_for(file, || place.read(file).trim().parse().ok())
}

#[test]
fn e6_the_whole_group_is_stopped_and_stdin_stays_open() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.tree.command = ["sh", "-c", "sleep 1000 & echo $! > kid.pid; cat"]
process.stubborn.command = ["sh", "-c", "trap '' TERM; while :; do sleep 1; done"]
workflow.go.steps = [{ action = "stop_process", process = "tree" }, { action = "log", message = "tree gone" }, { action = "stop_process", process = "stubborn" }, { action = "log", message = "stubborn gone" }]
"#,
    );
    let run = place.start();
    let kid = pid_in(&place, "kid.pid");
    holds_for(Duration::from_secs(3), "nothing ends", || {
        is_alive(kid) && !run.log().contains("exited")
    });
    touch(&place.path("go"));
    run.wait_count("tree gone", 1);
    assert!(!is_alive(kid));
    let began = Instant::now();
    run.wait_count("stubborn gone", 1);
    let took = began.elapsed();
    assert!(took > Duration::from_millis(4400), "{took:?}");
    holds_for(Duration::from_millis(700), "neither is restarted", || {
        run.count("started process tree") == 1
    });
    run.stop();
}

#[test]
fn e7_restarts_back_off() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.crash = { command = ["sh", "-c", "date +%s%N >> starts; exit 3"], restart = "always" }
workflow.go.steps = [{ action = "restart_process", process = "crash" }]
"#,
    );
    let run = place.start();
    place.wait_lines("starts", 4);
    run.wait_log("restarting process crash in 4000 ms (attempt 4)");
    touch(&place.path("go"));
    place.wait_lines("starts", 6);
    let starts: Vec<f64> = place
        .read("starts")
        .lines()
        .map(|line| line.parse::<f64>().unwrap() / 1e9)
        .collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // None comes before its time; how long after is the machine's.
    for (gap, delay) in gaps.iter().zip([0.5, 1.0, 2.0]).chain([(&gaps[4], 0.5)]) {
        assert!(*gap > delay - 0.02, "{gaps:?}");
    }
    // The one on request did not wait for the delay, which would have made it attempt 5; the sequence begins anew.
    let log = run.log();
    let delays: Vec<&str> = log
        .lines()
        .filter_map(|line| Some(line.split_once("restarting process crash in ")?.1))
        .take(5)
        .collect();
    let attempts = [
        "500 ms (attempt 1)",
        "1000 ms (attempt 2)",
        "2000 ms (attempt 3)",
        "4000 ms (attempt 4)",
    ];
    assert_eq!(delays, [&attempts[..], &attempts[..1]].concat());
    assert!(log.contains("process crash exited with exit status: 3"));
    run.stop();
}

#[test]
fn e8_each_policy_restarts_what_it_should() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.fine = { command = ["sh", "-c", "echo x >> fine; exit 0"], restart = "on_failure" }
process.bad = { command = ["sh", "-c", "echo x >> bad; exit 1"], restart = "never" }
process.killed = { command = ["sh", "-c", "echo x >> killed; kill -9 $$"], restart = "on_failure" }
workflow.go.steps = [{ action = "log", message = "go" }]
"#,
    );
    let run = place.start();
    place.wait_lines("killed", 3);
    assert_eq!(place.lines("fine"), 1);
    assert_eq!(place.lines("bad"), 1);
    assert!(
        run.log()
            .contains("process killed exited with signal: 9 (SIGKILL)")
    );
    run.stop();
}

#[test]
fn e9_output_rules_feed_readiness_and_templates() {
    let place = Place::new(
        r#"
startup_workflows = ["boot"]
[watch.go]
paths = ["go"]
[process.srv]
command = ["sh", "-c", "sleep 1; printf '\\033[32mport 7431\\033[0m\\r\\n' >&2; sleep 1000"]
autostart = false
[process.srv.output]
inherit = false
rules = [{ state_key = "port", pattern = "^port (\\d+)$" }]
[process.srv.readiness]
kind = "state_key"
key = "port"
interval_ms = 100
[workflow.boot]
steps = [{ action = "start_process", process = "srv" }, { action = "wait_for_process", process = "srv" }, { action = "write_state", key = "url", value = "http://127.0.0.1:{{ port }}/{{missing}}" }, { action = "log", message = "at {{url}}", style = "boxed" }]
[workflow.go]
steps = [{ action = "restart_process", process = "srv" }, { action = "log", message = "port is [{{port}}]" }]
"#,
    );
    let run = place.start();
    place.wait_state("port", json!("7431"));
    place.wait_state("url", json!("http://127.0.0.1:7431/"));
    assert_eq!(run.count("process srv is ready via state key port"), 1);
    let said = run.said();
    let at = said
        .iter()
        .position(|line| line == "|  at http://127.0.0.1:7431/  |")
        .unwrap();
    let edge = format!("+{}+", "-".repeat(29));
    assert_eq!((&said[at - 1], &said[at + 1]), (&edge, &edge));
    assert!(!run.out().contains("port") && !run.log().contains("[sh srv]"));
    touch(&place.path("go"));
    run.wait_count("port is []", 1);
    place.wait_state("port", json!("7431"));
    run.stop();
}

#[test]
fn e10_the_address_of_a_tunnel_is_found() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.tunnel.command = ["sh", "-c", "echo 'visit https://example.org or'; echo '| https://two-red-figs.trycloudflare.com |'; sleep 1000"]
process.tunnel.output = { rules = [{ state_key = "tunnel", extract = "url_token" }] }
workflow.go.steps = [{ action = "log", message = "{{tunnel}}" }]
"#,
    );
    let run = place.start();
    place.wait_state("tunnel", json!("https://two-red-figs.trycloudflare.com"));
    run.wait_out("[sh tunnel] | https://two-red-figs.trycloudflare.com |\n");
    run.wait_out("[sh tunnel] visit https://example.org or\n");
    run.stop();
}

const READINESS: &str = r#"
startup_workflows = ["boot", "after"]
[watch.go]
paths = ["go"]
[process.web]
command = COMMAND
autostart = false
[process.web.readiness]
kind = "http"
url = "http://127.0.0.1:9/"
interval_ms = 100
timeout_ms = 700
[workflow.boot]
steps = [{ action = "start_process", process = "web" }, { action = "wait_for_process", process = "web" }, { action = "log", message = "unreachable" }]
[workflow.after]
steps = [{ action = "log", message = "after" }]
[workflow.go]
steps = [{ action = "log", message = "still here" }]
"#;

#[test]
fn e11_a_readiness_timeout_does_not_end_the_run() {
    let place = Place::new(&READINESS.replace("COMMAND", "[\"sleep\", \"1000\"]"));
    let run = place.start();
    let log = run.log();
    let error = log.lines().find(|line| line.contains(" ERROR ")).unwrap();
    assert!(
        error.contains("workflow failed; continuing runtime workflow=boot"),
        "{error}"
    );
    assert!(error.contains(
        "boot step 2 wait_for_process: timed out waiting for process 'web' probe http://127.0.0.1:9/"
    ));
    assert_eq!(run.count("unreachable"), 0);
    assert_eq!(run.count("after"), 1);
    let status: serde_json::Value = serde_json::from_slice(&place.cli(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["processes"][0]["state"], "starting");
    assert!(is_alive(
        u32::try_from(status["processes"][0]["pid"].as_u64().unwrap()).unwrap()
    ));
    touch(&place.path("go"));
    run.wait_count("still here", 1);
    run.stop();
}

#[test]
fn e11_an_early_exit_fails_the_wait_at_once() {
    let place = Place::new(
        &READINESS
            .replace("COMMAND", "[\"false\"]")
            .replace("700", "20000"),
    );
    let began = Instant::now();
    let run = place.start();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert!(
        run.log()
            .contains("process 'web' exited with exit status: 1 while waiting for readiness")
    );
    run.stop();
}

#[test]
fn e12_a_process_that_is_not_alive_is_restarted() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.live.command = ["sh", "-c", "echo x >> starts; echo up=yes; sleep 1000"]
process.live.restart = "on_failure"
process.live.liveness = { kind = "state_key", key = "up", interval_ms = 200 }
process.live.output = { rules = [{ state_key = "up", pattern = "up=(.*)" }] }
workflow.go.steps = [{ action = "write_state", key = "up", value = "" }]
"#,
    );
    let run = place.start();
    place.wait_state("up", json!("yes"));
    holds_for(Duration::from_secs(3), "a live process stays", || {
        place.lines("starts") == 1
    });
    touch(&place.path("go"));
    run.wait_log("liveness probe failed for live");
    place.wait_lines("starts", 2);
    place.wait_state("up", json!("yes"));
    run.stop();
}

#[test]
fn http_probes_follow_a_server() {
    // Answers 302 to `/` and 200 to `/ok`, as often as asked.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 2048];
            let count = stream.read(&mut bytes).unwrap_or(0);
            let answer = if bytes[..count].starts_with(b"GET /ok ") {
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            } else {
                "HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            };
            drop(stream.write_all(answer.as_bytes()));
        }
    });
    let place = Place::new(&format!(
        r#"
startup_workflows = ["boot"]
watch.go = {{ paths = ["go"], workflow = "boot" }}
process.web = {{ command = ["sleep", "1000"], readiness = {{ kind = "http", url = "http://{address}/" }}, liveness = {{ kind = "http", url = "http://{address}/ok", interval_ms = 50 }} }}
workflow.boot.steps = [{{ action = "wait_for_process", process = "web" }}]
"#
    ));
    let run = place.start();
    assert_eq!(
        run.count(&format!("process web is healthy at http://{address}/")),
        1
    );
    wait_for("ready", || {
        let status: serde_json::Value =
            serde_json::from_slice(&place.cli(&["status", "--json"]).stdout).ok()?;
        (status["processes"][0]["state"] == "ready").then_some(())
    });
    run.stop();
}

#[test]
fn e24_output_keeps_its_shape() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
process.noisy.command = ["./noisy"]
workflow.go.steps = [{ action = "log", message = "{{evil}}" }]
hook.evil = { command = ["printf", '\033[2Jx\ny'], capture = "text", state_key = "evil", observe = { workflow = "go", interval_ms = 60000 } }
"#,
    );
    place.write_program(
        "noisy",
        "#!/bin/sh\nprintf '10%%\\r20%%\\r\\n\\n\\316'\nsleep 0.3\nprintf '\\274'\n",
    );
    let run = place.start();
    run.wait_log("process noisy exited");
    run.wait_count("\\x1b[2Jx\\ny", 1);
    run.wait_out("μ\n");
    let out = run.out();
    let own: String = out
        .lines()
        .filter(|line| !line.contains("printf evil"))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(own, "[noisy noisy] 10%\n[noisy noisy] 20%\n\n[noisy noisy] μ\n");
    let line = run
        .log()
        .lines()
        .find(|line| line.contains("\\x1b"))
        .unwrap()
        .to_owned();
    assert!(!line.contains('\u{1b}'));
    run.stop();
}
