//! The processes of a workspace killed at random moments while a client patches, saves and flushes: nothing that was
//! acknowledged is lost, log and image agree, nothing is left running, and the next start is clean.
//!
//! `BEAMTALK_KILLS` says how many, `BEAMTALK_SEED` which ones; the seed is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use beamtalk_client::Connection;
use serde_json::{Map, Value, json};

use crate::home::{Home, block_on, fields, files_below, is_alive, kill, request, wait_until};
use crate::project::write;

/// Kills in an ordinary run of the tests.
const KILLS: u64 = 20;
/// A node that ends a fourth time within a minute is not started again.
const NODE_KILLS: u32 = 3;
const FILE: &str = "src/target.bt";
const KILL_BRIDGE: &str = "Erlang erlang exit: (Erlang erlang whereis: #beamtalk_bridge) with: #kill";

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Daemon,
    Node,
    Worker,
    /// The process in the node that serves the daemon; the node ends with it.
    Bridge,
    /// The connection ends without a farewell.
    Client,
}

/// What the workspace has said it keeps.
#[derive(Default)]
struct Story {
    /// How often this daemon lost its node: one more, and it gives up.
    node_kills: u32,
    /// Class methods of the target that were acknowledged, by the number they answer and are named after.
    acknowledged: BTreeSet<u64>,
    /// Given up on purpose.
    discarded: BTreeSet<u64>,
    /// The last value of the method that changes again and again, and those that may be there instead.
    latest: u64,
    perhaps: BTreeSet<u64>,
    next: u64,
}

/// A request that may find nobody: `None` when the connection is gone.
async fn ask(connection: &Connection, op: &str, with: Value) -> Option<Map<String, Value>> {
    let pending = connection.request(op, fields(with)).ok()?;
    let answer = tokio::time::timeout(Duration::from_secs(30), pending.done()).await;
    answer
        .expect("an answer, or the end of the connection, in time")
        .ok()
}

fn is_good(answer: Option<&Map<String, Value>>) -> bool {
    answer.is_some_and(|answer| !answer.contains_key("error"))
}

async fn has_waiting(connection: &Connection, selector: &str) -> bool {
    let changes = ask(connection, "changes", json!({})).await.unwrap_or_default();
    let waiting = changes.get("waiting").and_then(Value::as_array);
    waiting.is_some_and(|all| all.iter().any(|entry| entry["selector"] == selector))
}

impl Story {
    /// One thing a user does.
    async fn step(&mut self, connection: &Connection, random: &mut Random) {
        match random.below(6) {
            0..=2 => {
                self.next += 1;
                let number = self.next;
                let code = format!("Target class >> m{number} => {number}");
                if is_good(ask(connection, "eval", json!({ "code": code })).await.as_ref()) {
                    self.acknowledged.insert(number);
                }
            }
            // An older one that waits, as it does once a node was lost twice, would replace it when it comes back.
            3 | 4 if !has_waiting(connection, "latest").await => {
                self.next += 1;
                let number = self.next;
                self.perhaps.insert(number);
                let source = format!("latest => {number}");
                let with =
                    json!({"class": "Target", "selector": "latest", "side": "class", "source": source});
                if is_good(ask(connection, "save-method", with).await.as_ref()) {
                    self.latest = number;
                    self.perhaps.clear();
                }
            }
            _ => {
                let flushed = ask(connection, "flush", json!({})).await;
                if is_good(flushed.as_ref()) {
                    let conflicts = flushed.expect("an answer")["conflicts"].clone();
                    let is_clean = conflicts == json!([]);
                    // What led to a conflict nobody made is in the log.
                    let log = if is_clean {
                        None
                    } else {
                        ask(connection, "changes", json!({"all": true})).await
                    };
                    let of_conflict: Vec<Value> = log
                        .iter()
                        .flat_map(|log| log["entries"].as_array().into_iter().flatten())
                        .filter(|entry| entry["selector"] == "latest")
                        .cloned()
                        .collect();
                    assert!(is_clean, "{conflicts}\n{of_conflict:#?}");
                }
            }
        }
    }

    /// Everything acknowledged is in the file, pending or waiting, and the image has what it says it has.
    async fn verify(&mut self, home: &Home, connection: &Connection) {
        let text = std::fs::read_to_string(home.project().join(FILE)).expect("the file");
        let changes = request(connection, "changes", json!({})).await;
        let numbers = |field: &str| -> BTreeSet<u64> {
            let entries = changes[field].as_array().expect("a list").iter();
            let selectors = entries.filter_map(|entry| entry["selector"].as_str());
            selectors
                .filter_map(|selector| selector.strip_prefix('m')?.parse().ok())
                .collect()
        };
        let (pending, waiting) = (numbers("entries"), numbers("waiting"));
        let is_in_file = |number: &u64| text.contains(&format!("class m{number} => {number}\n"));
        let is_kept = |number: &&u64| {
            is_in_file(number)
                || pending.contains(number)
                || waiting.contains(number)
                || self.discarded.contains(number)
        };
        let lost: Vec<&u64> = self
            .acknowledged
            .iter()
            .filter(|number| !is_kept(number))
            .collect();
        assert!(lost.is_empty(), "lost: {lost:?}\n{changes:?}");
        let wanted: Vec<u64> = (1..=self.next)
            .filter(|number| is_in_file(number) || pending.contains(number))
            .collect();
        for some in wanted.chunks(40) {
            let sends: Vec<String> = some.iter().map(|number| format!("Target m{number}")).collect();
            let values: Vec<String> = some.iter().map(ToString::to_string).collect();
            let answer = request(
                connection,
                "eval",
                json!({"code": format!("#({})", sends.join(", "))}),
            )
            .await;
            assert_eq!(
                answer.get("text"),
                Some(&json!(format!("#({})", values.join(", ")))),
                "{answer:?}"
            );
        }
        if let Some(number) = waiting.iter().find(|number| !is_in_file(number)) {
            let answer = request(connection, "eval", json!({"code": format!("Target m{number}")})).await;
            assert_eq!(
                answer["error"]["kind"], "does_not_understand",
                "m{number} waits: {answer:?}"
            );
        }
        let is_waiting = changes["waiting"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["selector"] == "latest"));
        if !is_waiting {
            let answer = request(connection, "eval", json!({"code": "Target latest"})).await;
            let value = answer.get("value").and_then(Value::as_u64).expect("a value");
            assert!(
                value == self.latest || self.perhaps.contains(&value),
                "latest is {value}, not {} or one of {:?}",
                self.latest,
                self.perhaps
            );
        }
    }

    /// What a user makes of changes that wait.
    async fn decide(&mut self, home: &Home, connection: &Connection, random: &mut Random) {
        let changes = request(connection, "changes", json!({})).await;
        let waiting = changes["waiting"].as_array().expect("a list").clone();
        if waiting.is_empty() {
            return;
        }
        // A change of what is changed again meanwhile would be in conflict with that when it comes back.
        let has_latest = waiting.iter().any(|entry| entry["selector"] == "latest");
        match random.below(4) {
            0 if !has_latest => {}
            1 => {
                let answer = request(connection, "discard", json!({"all": true})).await;
                assert!(is_good(Some(&answer)), "{answer:?}");
                // Those of the node that runs now go with those that wait.
                let pending = changes["entries"].as_array().expect("a list");
                let all = waiting.iter().chain(pending);
                let selectors = all.filter_map(|entry| entry["selector"].as_str());
                self.discarded
                    .extend(selectors.filter_map(|name| name.strip_prefix('m')?.parse::<u64>().ok()));
                let answer = request(connection, "eval", json!({"code": "Target latest"})).await;
                self.latest = answer.get("value").and_then(Value::as_u64).expect("a value");
                self.perhaps.clear();
            }
            _ => {
                let answer = request(connection, "restore", json!({"all": true})).await;
                assert!(is_good(Some(&answer)), "{answer:?}");
                assert_eq!(answer["failed"], json!([]), "{answer:?}");
                let left = request(connection, "changes", json!({})).await;
                assert_eq!(left["waiting"], json!([]), "{left:?}");
            }
        }
        self.verify(home, connection).await;
    }
}

/// Wait until the node evaluates again.
async fn wait_for_node(connection: &Connection) {
    let deadline = Instant::now() + Duration::from_secs(40);
    loop {
        let answer = ask(connection, "eval", json!({"code": "2 + 3"}))
            .await
            .expect("a connection");
        if answer.get("value") == Some(&json!(5)) {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "the node did not come back: {answer:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn victims(home: &Home, victim: Victim) -> Vec<u32> {
    let info = home.info();
    let pid = |field: &str| u32::try_from(info[field].as_u64().expect("a pid")).expect("a pid");
    match victim {
        Victim::Daemon => vec![pid("pid")],
        Victim::Node => vec![pid("node_pid")],
        Victim::Client | Victim::Bridge => Vec::new(),
        Victim::Worker => {
            let is_worker = |pid: &u32| {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.contains("compiler-worker")
            };
            home.processes().into_iter().filter(is_worker).collect()
        }
    }
}

/// Every living process of this home, whoever its parent is by now.
fn processes_of(home: &Home) -> BTreeMap<u32, String> {
    let mark = format!("BEAMTALK_HOME={}", home.state().display());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_ours = environment
            .split(|byte| *byte == 0)
            .any(|text| text == mark.as_bytes());
        if is_ours && is_alive(pid) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.insert(pid, String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

fn expect_no_processes(home: &Home) {
    wait_until("nothing is left running", Duration::from_secs(15), || {
        processes_of(home).is_empty()
    });
}

/// One life of a daemon. Answers how many were killed.
async fn life(home: &Home, random: &mut Random, story: &mut Story) -> u64 {
    let mut connection = home.connect().await;
    wait_for_node(&connection).await;
    story.verify(home, &connection).await;
    story.decide(home, &connection, random).await;
    let planned = 1 + random.below(3);
    for killed in 1..=planned {
        let victim = match random.below(10) {
            0..=2 => Victim::Daemon,
            3..=5 if story.node_kills < NODE_KILLS => Victim::Node,
            6 | 7 if story.node_kills < NODE_KILLS => Victim::Bridge,
            8 => Victim::Client,
            _ => Victim::Worker,
        };
        let delay = Duration::from_millis(random.below(300));
        let doomed = victims(home, victim);
        // Only code in the node reaches the bridge; it has a session of its own.
        let assassin = match victim {
            Victim::Bridge => Some(home.connect().await),
            _ => None,
        };
        let killer = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            doomed.into_iter().for_each(kill);
            if let Some(assassin) = assassin {
                let answer = ask(&assassin, "eval", json!({ "code": KILL_BRIDGE })).await;
                assert!(
                    answer.is_some(),
                    "who killed the bridge is answered, or told that the node ended"
                );
            }
        });
        let mut after = 3;
        while after > 0 && !connection.is_lost() {
            after -= u32::from(killer.is_finished());
            story.step(&connection, random).await;
        }
        killer.await.expect("the killer ended");
        match victim {
            Victim::Daemon => {
                story.node_kills = 0;
                expect_no_processes(home);
                return killed;
            }
            Victim::Node | Victim::Bridge => story.node_kills += 1,
            Victim::Client => connection = home.connect().await,
            Victim::Worker => {}
        }
        wait_for_node(&connection).await;
        story.verify(home, &connection).await;
        story.decide(home, &connection, random).await;
    }
    planned
}

#[test]
fn kills_at_random_moments_lose_nothing_acknowledged() {
    let kills = number("BEAMTALK_KILLS").unwrap_or(KILLS);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = number("BEAMTALK_SEED").unwrap_or_else(|| now.map_or(1, |now| now.subsec_nanos().into()));
    println!("BEAMTALK_KILLS={kills} BEAMTALK_SEED={seed}");
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let home = Home::new("kills");
    write(
        &home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    );
    write(&home, FILE, "Object subclass: Target\n  class latest => 0\n");
    let mut story = Story::default();
    let mut killed = 0;
    while killed < kills {
        home.start(&[]);
        killed += block_on(life(&home, &mut random, &mut story));
        if random.below(3) == 0 {
            assert!(home.run(&["workspace", "stop"]).status.success());
            expect_no_processes(&home);
            story.node_kills = 0;
        }
    }
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        story.verify(&home, &connection).await;
    });
    println!(
        "{killed} kills, {} changes acknowledged",
        story.acknowledged.len()
    );
    assert!(
        story.acknowledged.len() as u64 > kills / 2,
        "too few to mean anything"
    );
    let verified = home.run(&["workspace", "audit", "verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
    assert!(home.run(&["workspace", "stop"]).status.success());
    expect_no_processes(&home);
    let sources = files_below(&home.project().join("src"));
    assert_eq!(sources, [home.project().join(FILE)], "no temporary file is left");
}
