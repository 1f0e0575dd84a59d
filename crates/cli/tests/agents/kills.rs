//! Daemon, tmux server and backends are killed at random moments while clients write and read.
//! Afterwards everything that was answered for is there, once, and every session works.
//!
//! `BEAMTALK_KILLS` is how many, `BEAMTALK_SEED` repeats a run.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::support::World;
use beamtalk_ninep::{Attachment, Client, Dialect, Error};
use serde_json::{Value, json};

const SESSIONS: usize = 3;
/// How long anything may take to answer or to recover.
const PATIENCE: Duration = Duration::from_mins(1);

/// Quick to restart, and mail stays where it is put.
const BACKEND: &str = "command: [\"{SELF}\", \"agents\", \"drive\", \"echo\"]\n\
    start: {ready: hook, regex: '^agent> $'}\nidle: {mode: hook}\n\
    restart: {policy: on-failure, delay_ms: 200, max: 1000, continue: false}\n\
    mail: {deliver: off}\nbest_effort: true\n";

/// A small generator: the run can be repeated from its seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn attach(socket: &Path) -> Result<Attachment, Error> {
    let stream = UnixStream::connect(socket)?;
    // An answer that never comes is a fault of its own, and must not hang the test.
    stream.set_read_timeout(Some(PATIENCE))?;
    Client::new(stream, Dialect::Plan9, 65536, false)?.attach(None, "tester", "agents")
}

/// What the clients were told, to be checked at the end.
#[derive(Default)]
struct Answered {
    /// Subjects of accepted messages, by receiver.
    mail: BTreeMap<String, BTreeSet<String>>,
    /// Prompts that were delivered, by session.
    prompts: BTreeMap<String, BTreeSet<String>>,
    /// Contexts tried after the last accepted one, that one first.
    contexts: BTreeMap<String, Vec<String>>,
    /// Events seen, by number.
    events: BTreeMap<u64, String>,
    refused: BTreeMap<String, usize>,
}

impl Answered {
    fn summary(&self) -> String {
        let count = |map: &BTreeMap<String, BTreeSet<String>>| map.values().map(BTreeSet::len).sum::<usize>();
        format!(
            "answered: {} messages, {} prompts, {} events; refused {:?}",
            count(&self.mail),
            count(&self.prompts),
            self.events.len(),
            self.refused
        )
    }
}

struct Run {
    socket: PathBuf,
    ids: Vec<String>,
    stop: AtomicBool,
    answered: Mutex<Answered>,
}

impl Run {
    fn on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn pick(&self, dice: &mut Dice) -> String {
        self.ids[dice.roll(self.ids.len() as u64) as usize].clone()
    }

    /// A connection, as soon as there is a daemon.
    fn tree(&self) -> Option<Attachment> {
        while self.on() {
            if let Ok(tree) = attach(&self.socket) {
                return Some(tree);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Work until told to stop, with a new connection after every lost one.
    fn keep(&self, mut work: impl FnMut(&Attachment) -> Result<(), Error>) {
        while let Some(tree) = self.tree() {
            while self.on() {
                match work(&tree) {
                    Ok(()) => {}
                    Err(Error::Refused(refused)) => {
                        let mut answered = self.answered.lock().unwrap();
                        *answered.refused.entry(refused.text.to_string()).or_default() += 1;
                        drop(answered);
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    Err(_) => break,
                }
            }
        }
    }

    fn write_mail(&self, mut dice: Dice) {
        let mut number = 0;
        self.keep(|tree| {
            number += 1;
            let to = if dice.roll(4) == 0 {
                "user".to_owned()
            } else {
                self.pick(&mut dice)
            };
            let from = self.pick(&mut dice);
            let subject = format!("message {number}");
            let message =
                json!({"to": to, "type": "QUERY_REQUEST", "subject": subject, "body": "x".repeat(200)});
            tree.write(&format!("{from}/mail"), message.to_string().as_bytes())?;
            self.answered
                .lock()
                .unwrap()
                .mail
                .entry(to)
                .or_default()
                .insert(subject);
            std::thread::sleep(Duration::from_millis(dice.roll(20)));
            Ok(())
        });
    }

    fn write_prompts(&self, mut dice: Dice) {
        let mut number = 0;
        self.keep(|tree| {
            number += 1;
            let id = self.pick(&mut dice);
            let text = format!("prompt {number}.");
            tree.write(&format!("{id}/in"), text.as_bytes())?;
            self.answered
                .lock()
                .unwrap()
                .prompts
                .entry(id)
                .or_default()
                .insert(text);
            Ok(())
        });
    }

    fn write_contexts(&self, mut dice: Dice) {
        let mut number = 0;
        self.keep(|tree| {
            number += 1;
            let id = self.pick(&mut dice);
            let text = format!("context {number}");
            let tried = |done: bool| {
                let mut answered = self.answered.lock().unwrap();
                let list = answered.contexts.entry(id.clone()).or_default();
                if done {
                    list.clear();
                }
                list.push(text.clone());
            };
            tried(false);
            // Without truncation: emptying would be a write of its own.
            let mut file = tree.open(&format!("{id}/context"), 1)?;
            file.write_document(format!("{text:>20}").as_bytes())?;
            tried(true);
            std::thread::sleep(Duration::from_millis(50));
            Ok(())
        });
    }

    fn read_events(&self) {
        let mut last: Option<u64> = None;
        while let Some(tree) = self.tree() {
            let Ok(mut file) = tree.open("events", 2) else {
                continue;
            };
            if let Some(seq) = last
                && file.write_at(0, format!("since {seq}").as_bytes()).is_err()
            {
                continue;
            }
            let mut rest = Vec::new();
            while self.on() {
                let piece = match file.read_next(Some(Duration::from_millis(500))) {
                    Ok(piece) if piece.is_empty() => break,
                    Ok(piece) => piece,
                    Err(Error::TimedOut) => continue,
                    Err(_) => break,
                };
                rest.extend_from_slice(piece.as_ref());
                while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = rest.drain(..=end).collect();
                    let event: Value = serde_json::from_slice(&line).unwrap();
                    let seq = event["seq"].as_u64().unwrap();
                    assert_ne!(event["type"], "Lost", "the reader kept up");
                    if let Some(last) = last {
                        assert_eq!(seq, last + 1, "an event is missing or came twice");
                    }
                    last = Some(seq);
                    let id = event["id"].as_str().unwrap().to_owned();
                    self.answered.lock().unwrap().events.insert(seq, id);
                }
            }
        }
    }

    fn read_files(&self, mut dice: Dice) {
        self.keep(|tree| {
            let id = self.pick(&mut dice);
            for file in ["state", "info", "log", "out", "output"] {
                tree.read(&format!("{id}/{file}"))?;
            }
            for line in tree.read_text("list")?.lines() {
                assert_eq!(line.split('\t').count(), 6, "{line}");
            }
            Ok(())
        });
    }
}

/// Kill one of the three kinds; the daemon is started again at once.
fn kill_something(world: &World, run: &Run, dice: &mut Dice) -> &'static str {
    match dice.roll(4) {
        0 | 1 => {
            world.run("kill -9 $(cat $NAMESPACE/anvilsrv.pid)");
            // Sometimes at once, sometimes after a while.
            std::thread::sleep(Duration::from_millis(dice.roll(2) * dice.roll(600)));
            world.until("beamtalk agents start");
            "daemon"
        }
        2 => {
            world.run("kill -9 $(tmux -S $NAMESPACE/tmux.sock display-message -p '#{pid}')");
            "tmux"
        }
        _ => {
            let id = run.pick(dice);
            world.run(&format!(
                "pid=$(beamtalk 9p read agent/{id}/pid) && test -n \"$pid\" && kill -9 $pid"
            ));
            "backend"
        }
    }
}

#[test]
fn whatever_is_killed_at_random_nothing_answered_is_lost() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("BEAMTALK_KILLS").unwrap_or(20);
    let seed = number("BEAMTALK_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64 | 1
    });
    println!("BEAMTALK_KILLS={kills} BEAMTALK_SEED={seed}");
    let world = World::new();
    world.config("backends/quick.yaml", BACKEND);
    world.config("global.yaml", "limits: {inbox: 100000}\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    let ids: Vec<String> = (0..SESSIONS)
        .map(|_| world.value("beamtalk agents new quick /tmp --wait"))
        .collect();
    let run = Run {
        socket: world.namespace().join("agent"),
        ids,
        stop: AtomicBool::new(false),
        answered: Mutex::default(),
    };
    let mut killed: BTreeMap<&str, usize> = BTreeMap::new();
    let dice = |number: u64| Dice(seed.wrapping_mul(number * 2 + 3) | 1);
    std::thread::scope(|scope| {
        scope.spawn(|| run.write_mail(dice(1)));
        scope.spawn(|| run.write_prompts(dice(2)));
        scope.spawn(|| run.write_contexts(dice(3)));
        scope.spawn(|| run.read_files(dice(4)));
        scope.spawn(|| run.read_events());
        let mut dice = dice(0);
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(100 + dice.roll(900)));
            *killed.entry(kill_something(&world, &run, &mut dice)).or_default() += 1;
        }
        run.stop.store(true, Ordering::Relaxed);
    });
    println!("killed {killed:?}; {}", run.answered.lock().unwrap().summary());
    check(&world, &run);
    // The next start finds everything in order, and when all is stopped nothing is left.
    world.check(
        "beamtalk agents stop >/dev/null; beamtalk agents start",
        "anvilsrv started successfully\n",
    );
    for id in &run.ids {
        world.check(&format!("beamtalk agents wait {id}"), "idle\n");
    }
    world.value("beamtalk agents stop --kill-sessions");
    assert_eq!(world.processes(), Vec::<String>::new());
    world.check("ls -A $NAMESPACE", "");
}

fn check(world: &World, run: &Run) {
    let answered = run.answered.lock().unwrap();
    // Every session is there and works.
    for id in &run.ids {
        world.until(&format!("test \"$(beamtalk agents state {id})\" = idle"));
        world.until(&format!(
            "beamtalk agents prompt {id} 'still here' --wait --timeout 20 | tail -1 | grep -qx 'echo: still here'"
        ));
    }
    assert_eq!(
        world.value("beamtalk 9p read agent/list | wc -l"),
        SESSIONS.to_string()
    );
    let tree = attach(&run.socket).unwrap();
    // Every message is in exactly one box.
    let mut boxes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for who in run.ids.iter().map(String::as_str).chain(["user"]) {
        for which in ["inbox", "completed", "outbox"] {
            for stat in tree.list(&format!("{who}/{which}")).unwrap() {
                let text = tree.read_text(&format!("{who}/{which}/{}", stat.name)).unwrap();
                let message: Value = serde_json::from_str(&text).unwrap();
                let subject = message["subject"].as_str().unwrap().to_owned();
                boxes.entry(subject).or_default().push(format!("{who}/{which}"));
            }
        }
    }
    for (subject, places) in &boxes {
        assert_eq!(places.len(), 1, "{subject}: {places:?}");
    }
    for (to, subjects) in &answered.mail {
        for subject in subjects {
            assert_eq!(
                boxes.get(subject),
                Some(&vec![format!("{to}/inbox")]),
                "{subject}"
            );
        }
    }
    // Every delivered prompt is in the log, once.
    for (id, prompts) in &answered.prompts {
        let log = tree.read_text(&format!("{id}/log")).unwrap();
        for prompt in prompts {
            let said = format!("USER:\n{prompt}\n");
            assert_eq!(log.matches(&said).count(), 1, "{id}: {prompt}");
        }
    }
    // The context is the last one accepted, or one whose answer got lost.
    for (id, tried) in &answered.contexts {
        let now = tree.read_text(&format!("{id}/context")).unwrap();
        assert!(
            tried.iter().any(|text| *text == now.trim()),
            "{id}: {now:?} of {tried:?}"
        );
    }
    // What a reader has seen happened, and is still told.
    let kept: BTreeMap<u64, String> = tree
        .read_text("events.json")
        .unwrap()
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            (
                event["seq"].as_u64().unwrap(),
                event["id"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let oldest = kept.keys().next().copied().unwrap_or_default();
    for (seq, id) in answered.events.iter().filter(|(seq, _)| **seq >= oldest) {
        assert_eq!(kept.get(seq), Some(id), "event {seq}");
    }
    assert!(
        !answered.mail.is_empty() && !answered.prompts.is_empty(),
        "nothing was tried"
    );
}
