use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beamtalk_storage::{Capabilities, RotatingLog, StateDirectory, StorageError};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    Audit, AuditError, AuditOptions, AuditReader, AuditSize, Event, FILE, Fault, Filter, KINDS, Lines,
    Outcome, Who, parse_since,
};

const SMALL: AuditSize = AuditSize {
    file_bytes: 600,
    old_files: 3,
};

struct Place {
    _home: TempDir,
    state: StateDirectory,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
        Self { _home: home, state }
    }

    fn open(&self, size: AuditSize) -> Audit {
        self.open_with(size, AuditOptions::default())
    }

    fn open_with(&self, size: AuditSize, options: AuditOptions) -> Audit {
        Audit::open_in(self.state.root(), size, options).unwrap()
    }

    fn reader(&self) -> AuditReader {
        AuditReader::in_directory(self.state.root())
    }

    fn path(&self) -> std::path::PathBuf {
        self.state.path().join(FILE)
    }

    fn numbers(&self, filter: Filter) -> Vec<u64> {
        self.reader()
            .read(filter)
            .unwrap()
            .map(|record| record.unwrap().seq)
            .collect()
    }
}

fn who(session: &str) -> Who {
    Who {
        peer: Some("127.0.0.1:51022".to_owned()),
        client: Some("repl".to_owned()),
        session: Some(session.to_owned()),
        auth: Some("cookie".to_owned()),
    }
}

fn eval(audit: &Audit, text: &str, session: &str) {
    let event = Event::Eval {
        source: audit.source(text),
        ms: 3,
        outcome: Outcome::Ok,
        error_kind: None,
    };
    audit.record(event.by(who(session))).unwrap();
}

#[test]
fn a_record_has_the_documented_form() {
    let place = Place::new();
    let audit = place.open(AuditSize::default());
    eval(&audit, "2 + 3", "s-7f2a");
    let text = fs::read_to_string(place.path()).unwrap();
    let (head, tail) = text.split_once(r#""seq":1,"#).unwrap();
    assert!(
        head.starts_with(r#"{"ts":"20"#) && head.ends_with(r#"Z","#),
        "{head}"
    );
    assert_eq!(
        tail,
        concat!(
            r#""type":"eval","peer":"127.0.0.1:51022","client":"repl","session":"s-7f2a","auth":"cookie","#,
            r#""sha256":"777e6971be9f36a99a2731f434d1bbaf8534ebd1be7cb2857573eefc50b43ed2","bytes":5,"ms":3,"outcome":"ok"}"#,
            "\n"
        )
    );
    assert_eq!(fs::metadata(place.path()).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn source_text_is_kept_only_if_asked_for() {
    let place = Place::new();
    eval(&place.open(AuditSize::default()), "password := 7", "s-1");
    assert!(!fs::read_to_string(place.path()).unwrap().contains("password"));
    let options = AuditOptions {
        text: true,
        required: false,
    };
    eval(
        &place.open_with(AuditSize::default(), options),
        "lamp toggle",
        "s-1",
    );
    assert!(
        fs::read_to_string(place.path())
            .unwrap()
            .contains(r#""text":"lamp toggle""#)
    );
}

#[test]
fn a_line_end_in_a_field_does_not_make_a_second_record() {
    let place = Place::new();
    let audit = place.open(AuditSize::default());
    eval(&audit, "1", "s-1\n{\"seq\":9}\n");
    let found = place.reader().verify().unwrap();
    assert_eq!((found.records, found.faults.len()), (1, 0));
}

#[test]
fn every_type_is_listed_and_carries_its_fields() {
    let text = || "x".to_owned();
    let place = Place::new();
    let audit = place.open(AuditSize::default());
    let events = [
        Event::Start {
            version: text(),
            bind: text(),
            tls: false,
            capabilities: Capabilities::default(),
        },
        Event::Stop { reason: text() },
        Event::Connect {},
        Event::Disconnect {
            code: 1000,
            duration_ms: 5,
        },
        Event::AuthOk { role: text() },
        Event::AuthFail {
            reason: text(),
            bytes: 3,
            count: 2,
        },
        Event::Begin {
            op: text(),
            target: Some(text()),
            source: Some(audit.source("x")),
        },
        Event::Eval {
            source: audit.source("x"),
            ms: 1,
            outcome: Outcome::Interrupted,
            error_kind: Some(text()),
        },
        Event::Load {
            what: text(),
            path: Some(text()),
            classes: vec![text()],
            sha256: Some(text()),
        },
        Event::Method {
            class: text(),
            selector: text(),
            side: text(),
            intent: text(),
            sha256: Some(text()),
        },
        Event::Remove {
            class: text(),
            selector: None,
        },
        Event::Flush {
            class: None,
            files: vec![text()],
            destructive: true,
        },
        Event::Kill {
            actor: text(),
            class: None,
        },
        Event::Test {
            target: text(),
            outcome: text(),
        },
        Event::Run {
            target: text(),
            outcome: text(),
        },
        Event::CapabilityDisabled {
            what: text(),
            detail: text(),
        },
        Event::PolicyDenied {
            what: text(),
            detail: text(),
        },
        Event::Doc {
            path: text(),
            sha256: None,
        },
        Event::Tree {
            path: text(),
            sha256: None,
        },
        Event::Mcp {
            principal: text(),
            call: Box::default(),
        },
        Event::Limit {
            what: text(),
            detail: text(),
            count: None,
        },
        Event::Rotate { action: text() },
        Event::Token {
            action: text(),
            name: text(),
        },
        Event::Login { action: text() },
        Event::NodeExit { reason: text() },
        Event::CompilerKilled { reason: text() },
    ];
    let kinds: Vec<&str> = events.iter().map(Event::kind).collect();
    assert_eq!(kinds, KINDS);
    for event in events {
        audit.record(event.by(Who::default())).unwrap();
    }
    let records: Vec<_> = place
        .reader()
        .read(Filter::default())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(records.len(), KINDS.len());
    assert_eq!(records[5].fields["count"], json!(2));
    assert_eq!(records[0].fields["capabilities"]["fs"], json!("rw"));
    assert!(records[2].fields.keys().eq(["seq", "ts", "type"]));
}

#[test]
fn rotation_and_restart_keep_the_numbers_without_gaps() {
    let place = Place::new();
    for _ in 0..5 {
        let audit = place.open(SMALL);
        for _ in 0..7 {
            eval(&audit, "lamp toggle", "s-1");
        }
    }
    let found = place.reader().verify().unwrap();
    assert_eq!(found.faults, []);
    assert_eq!(found.last, Some(35));
    assert!(found.records >= 4 && found.records < 35, "{found:?}");
    let first = found.first.unwrap();
    assert_eq!(place.numbers(Filter::default()), (first..=35).collect::<Vec<_>>());
    // A crash between the two steps of a rotation: no current file.
    fs::rename(place.path(), place.state.path().join("audit.log.1")).unwrap();
    let audit = place.open(SMALL);
    assert_eq!(audit.state().seq, 35);
    eval(&audit, "1", "s-1");
    assert_eq!(audit.state().seq, 36);
}

#[test]
fn a_missing_or_altered_record_is_found() {
    let place = Place::new();
    let audit = place.open(AuditSize::default());
    for _ in 0..6 {
        eval(&audit, "1", "s-1");
    }
    let text = fs::read_to_string(place.path()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.remove(3);
    lines[1] = "{}";
    let half = &lines[4][..20];
    lines[4] = half;
    fs::write(place.path(), lines.join("\n")).unwrap();
    let found = place.reader().verify().unwrap();
    let file = FILE.to_owned();
    assert_eq!(
        found.faults,
        [
            Fault::NotARecord {
                file: file.clone(),
                line: 2
            },
            Fault::Gap {
                file: file.clone(),
                line: 3,
                expected: 2,
                found: 3
            },
            Fault::Gap {
                file: file.clone(),
                line: 4,
                expected: 4,
                found: 5
            },
            Fault::Torn { file, line: 5 },
            Fault::EndMissing { count: 1, last: 6 },
        ]
    );
    assert_eq!(found.missing, 3, "the second, the fourth and the last");
}

#[test]
fn records_are_found_by_type_session_and_time() {
    let place = Place::new();
    let audit = place.open(SMALL);
    for session in ["s-1", "s-2", "s-1"] {
        eval(&audit, "1", session);
        audit.record(Event::Connect {}.by(who(session))).unwrap();
    }
    let evals = Filter {
        kinds: vec!["eval".to_owned(), "kill".to_owned()],
        ..Filter::default()
    };
    assert_eq!(place.numbers(evals.clone()), [1, 3, 5]);
    let mine = Filter {
        session: Some("s-1".to_owned()),
        ..evals
    };
    assert_eq!(place.numbers(mine), [1, 5]);
    let now = beamtalk_storage::time::now_millis();
    let since = |text: &str| Filter {
        since: parse_since(text, now),
        ..Filter::default()
    };
    assert_eq!(place.numbers(since("2h")).len(), 6);
    assert!(place.numbers(since("2099-01-01T00:00:00Z")).is_empty());
    assert_eq!(parse_since("90m", 90 * 60_000 + 5), Some(5));
    assert_eq!(parse_since("1970-01-01T00:00:01.500Z", now), Some(1500));
    for text in ["", "h", "2w", "-2h", "2 h", "99999999999999999999d", "ä"] {
        assert_eq!(parse_since(text, now), None, "{text}");
    }
}

#[test]
fn following_sees_every_record_once_across_rotations() {
    let place = Place::new();
    let mut tail = place.reader().follow(Filter {
        session: Some("s-1".to_owned()),
        ..Filter::default()
    });
    assert_eq!(tail.poll().unwrap(), []);
    let audit = place.open(AuditSize {
        old_files: 8,
        ..SMALL
    });
    let mut seen = Vec::new();
    // One, then more than fit into a file, then more than fit into two.
    for burst in [1, 3, 5, 1] {
        for _ in 0..burst {
            eval(&audit, "1", "s-1");
            audit.record(Event::Connect {}.by(who("s-2"))).unwrap();
        }
        seen.extend(tail.poll().unwrap().into_iter().map(|record| record.seq));
    }
    assert_eq!(seen, (0..10).map(|number| 2 * number + 1).collect::<Vec<_>>());
    // Half a line is not yet a record.
    let line = r#"{"seq":21,"session":"s-1"}"#;
    let (one, other) = line.split_at(9);
    let append = |text: &str| {
        let mut file = OpenOptions::new().append(true).open(place.path()).unwrap();
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    append(one);
    assert_eq!(tail.poll().unwrap(), []);
    append(other);
    append("\n");
    assert_eq!(tail.poll().unwrap()[0].line, line);
}

/// A disk that takes nothing for as long as it is told to.
#[derive(Debug)]
struct Faulty {
    log: RotatingLog,
    is_full: Arc<AtomicBool>,
}

impl Lines for Faulty {
    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        if self.is_full.load(Ordering::Relaxed) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.log.append(line)
    }

    fn given_up_for(&self, line: &[u8]) -> Option<String> {
        self.log.given_up_for(line)
    }

    fn reopen(&mut self) -> Result<(), StorageError> {
        self.log.reopen()
    }
}

impl Place {
    /// A trail that is required, on a disk that can be full.
    fn open_on(&self, is_full: &Arc<AtomicBool>) -> Audit {
        let options = AuditOptions {
            text: false,
            required: true,
        };
        let log = RotatingLog::open(self.state.root().clone(), FILE, 1 << 20, 3).unwrap();
        let is_full = Arc::clone(is_full);
        Audit::open_with(self.state.root(), Box::new(Faulty { log, is_full }), options).unwrap()
    }
}

fn begin(audit: &Audit) -> Result<Option<u64>, AuditError> {
    let event = || Event::Begin {
        op: "eval".to_owned(),
        target: None,
        source: Some(audit.source("1")),
    };
    audit.begin(|| event().by(who("s-1")))
}

#[test]
fn what_is_about_to_be_done_is_recorded_first_or_refused() {
    let place = Place::new();
    let is_full = Arc::new(AtomicBool::new(false));
    let audit = place.open_on(&is_full);
    assert_eq!(begin(&audit).unwrap(), Some(1));
    is_full.store(true, Ordering::Relaxed);
    let refusal = begin(&audit).unwrap_err().to_string();
    assert!(refusal.contains("audit.log: "), "{refusal}");
    assert!(audit.record(Event::Connect {}.by(who("s-1"))).is_err());
    let state = audit.state();
    assert!(!state.ok && state.error.is_some());
    assert_eq!((state.seq, state.lost), (1, 2));
    let found = place.reader().verify().unwrap();
    assert_eq!((found.missing, found.faults), (2, vec![Fault::LostAtEnd(2)]));
    is_full.store(false, Ordering::Relaxed);
    assert_eq!(begin(&audit).unwrap(), Some(3), "the second confesses");
    assert!(audit.state().ok);
    let text = fs::read_to_string(place.path()).unwrap();
    let confession: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        (&confession["what"], &confession["count"]),
        (&json!("audit"), &json!(2))
    );
    let found = place.reader().verify().unwrap();
    assert_eq!(
        (found.missing, found.faults.len()),
        (2, 1),
        "confessed is not undone"
    );
    // Where the trail is not required nothing is written before.
    let audit = place.open(AuditSize::default());
    assert_eq!(begin(&audit).unwrap(), None);
}

#[test]
fn a_loss_confessed_while_the_trail_is_checked_counts_once() {
    let place = Place::new();
    let is_full = Arc::new(AtomicBool::new(false));
    let audit = place.open_on(&is_full);
    begin(&audit).unwrap();
    is_full.store(true, Ordering::Relaxed);
    assert!(begin(&audit).is_err());
    let before = fs::read(place.state.path().join("audit.state")).unwrap();
    is_full.store(false, Ordering::Relaxed);
    begin(&audit).unwrap();
    // What one sees who reads the mark before and the records after.
    fs::write(place.state.path().join("audit.state"), before).unwrap();
    let found = place.reader().verify().unwrap();
    assert_eq!((found.missing, found.faults.len()), (1, 1));
}

#[test]
fn a_limit_of_an_evaluation_is_no_loss() {
    let place = Place::new();
    let audit = place.open(AuditSize::default());
    let limit = Event::Limit {
        what: "eval".to_owned(),
        detail: "3 seconds".to_owned(),
        count: None,
    };
    audit.record(limit.by(who("s-1"))).unwrap();
    assert_eq!(place.reader().verify().unwrap().faults, []);
}

#[test]
fn a_rotation_that_fails_costs_no_old_file() {
    let place = Place::new();
    let audit = place.open(AuditSize {
        file_bytes: 1,
        old_files: 2,
    });
    for _ in 0..3 {
        eval(&audit, "1", "s-1");
    }
    // The fresh file cannot be made.
    let obstacle = place.state.path().join("audit.log.new");
    fs::create_dir(&obstacle).unwrap();
    for _ in 0..5 {
        assert!(audit.record(Event::Connect {}.by(who("s-1"))).is_err());
    }
    assert_eq!(place.numbers(Filter::default()), [1, 2, 3]);
    fs::remove_dir(obstacle).unwrap();
    audit.record(Event::Connect {}.by(who("s-1"))).unwrap();
    assert_eq!(audit.state().seq, 5);
}

proptest! {

    #[test]
    fn whatever_is_lost_is_counted(steps in proptest::collection::vec(0_u8..4, 1..40)) {
        let place = Place::new();
        let is_full = Arc::new(AtomicBool::new(false));
        let mut audit = place.open_on(&is_full);
        let (mut written, mut lost) = (0_u64, 0_u64);
        for step in steps {
            match step {
                0 => is_full.store(true, Ordering::Relaxed),
                1 => is_full.store(false, Ordering::Relaxed),
                // The daemon is killed and started again.
                2 => {
                    drop(audit);
                    audit = place.open_on(&is_full);
                }
                _ => match audit.record(Event::Connect {}.by(who("s-1"))) {
                    Ok(_) => written += 1,
                    Err(_) => lost += 1,
                },
            }
        }
        let found = place.reader().verify().unwrap();
        prop_assert_eq!(found.missing, lost);
        prop_assert_eq!(found.faults.is_empty(), lost == 0);
        let kinds = Filter { kinds: vec!["connect".to_owned()], ..Filter::default() };
        prop_assert_eq!(place.numbers(kinds).len() as u64, written);
    }

    #[test]
    fn no_record_is_taken_away_unnoticed(
        count in 1_usize..40,
        taken in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        end in 0_usize..4,
        file in proptest::option::of(0_u32..4),
        takes_state in any::<bool>(),
        goes_on in 0_usize..8,
    ) {
        let place = Place::new();
        let audit = place.open(SMALL);
        for _ in 0..count {
            eval(&audit, "lamp toggle", "s-1");
        }
        drop(audit);
        let whole = place.reader().verify().unwrap();
        prop_assert_eq!(&whole.faults, &[]);
        let all = place.numbers(Filter::default());
        let mut gone: Vec<u64> = taken.iter().map(|index| *index.get(&all)).collect();
        gone.extend(all.iter().rev().take(end));
        let path = |number: u32| match number {
            0 => place.path(),
            number => place.state.path().join(format!("{FILE}.{number}")),
        };
        for number in 0..=3 {
            let Ok(text) = fs::read_to_string(path(number)) else { continue };
            let seq = |line: &str| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap();
            if file == Some(number) {
                gone.extend(text.lines().map(seq));
                fs::remove_file(path(number)).unwrap();
            } else {
                let kept: String = text.split_inclusive('\n').filter(|line| !gone.contains(&seq(line))).collect();
                fs::write(path(number), kept).unwrap();
            }
        }
        gone.sort_unstable();
        gone.dedup();
        if takes_state {
            fs::remove_file(place.state.path().join("audit.state")).unwrap();
        }
        let is_touched = takes_state || !gone.is_empty();
        let found = place.reader().verify().unwrap();
        prop_assert_eq!(found.faults.is_empty(), !is_touched, "{:?}", found);
        if !takes_state {
            prop_assert_eq!(found.missing, gone.len() as u64);
        }
        // Nor does a start of the daemon make it good, until the records around are given up themselves.
        let audit = place.open(AuditSize::default());
        for _ in 0..goes_on {
            eval(&audit, "lamp toggle", "s-2");
        }
        let found = place.reader().verify().unwrap();
        // All of it and what is remembered of it: a trail that begins.
        if !(takes_state && gone.len() == all.len()) {
            prop_assert_eq!(found.faults.is_empty(), !is_touched, "{:?}", found);
        }
    }

    #[test]
    fn a_trail_cut_at_any_byte_goes_on_and_tells_what_is_gone(count in 1_usize..6, cut in 0_usize..2000, text in "\\PC{0,30}") {
        let place = Place::new();
        let audit = place.open(AuditSize::default());
        for _ in 0..count {
            eval(&audit, &text, &text);
        }
        drop(audit);
        let content = fs::read(place.path()).unwrap();
        let cut = cut % (content.len() + 1);
        let kept = &content[..cut];
        fs::write(place.path(), kept).unwrap();
        // Whole lines, and a last one that lacks nothing but its end.
        let lines = kept.split(|byte| *byte == b'\n').count() - 1;
        let has_whole_part = content.get(cut) == Some(&b'\n');
        let left = lines + usize::from(has_whole_part);
        let gone = (count - left) as u64;

        let audit = place.open(AuditSize::default());
        prop_assert_eq!(audit.state().seq, count as u64);
        prop_assert_eq!(place.reader().verify().unwrap().missing, gone);
        eval(&audit, &text, "s-2");
        let found = place.reader().verify().unwrap();
        prop_assert_eq!(found.missing, gone);
        prop_assert_eq!(found.faults.is_empty(), gone == 0);
        prop_assert_eq!(found.records, left as u64 + 1);
        prop_assert_eq!(found.last, Some(count as u64 + 1));
    }
}
