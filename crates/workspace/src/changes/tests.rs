//! The log and the flush against real directories, with deaths at every step.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use beamtalk_storage::{Directory, StateDirectory};
use tempfile::TempDir;

use super::entry::State;
use super::flush::Step;
use super::plan::{ConflictReason, FlushReport};
use super::{AuthorKind, ChangeError, ChangeLog, Filter, Intent, InverseChange, Kind, NewEntry, Side};

const LAMP: &str = "Actor subclass: Lamp\n  state: on = false\n\n  isOn => self.on\n\n  toggle => 1\n";
const FAN: &str = "Actor subclass: Fan\n\n  spin => 1\n";

struct Place {
    root: PathBuf,
    _temporary: TempDir,
}

impl Place {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let place = Self::at(temporary.path().to_owned(), temporary);
        fs::create_dir_all(place.project().join("src")).unwrap();
        place.write("src/Lamp.bt", LAMP);
        place.write("src/Fan.bt", FAN);
        place
    }

    fn at(root: PathBuf, temporary: TempDir) -> Self {
        Self {
            root,
            _temporary: temporary,
        }
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn log(&self) -> ChangeLog {
        open(&self.root)
    }

    fn write(&self, file: &str, text: &str) {
        let mut out = fs::File::create(self.project().join(file)).unwrap();
        out.write_all(text.as_bytes()).unwrap();
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.project().join(file)).unwrap()
    }

    /// Everything in the source directory.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.project().join("src"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn directory(root: &std::path::Path) -> Directory {
    let state = StateDirectory::open(Some(root.join("state"))).unwrap();
    state.root().create_directory("changes").unwrap().0
}

fn open(root: &std::path::Path) -> ChangeLog {
    ChangeLog::open(directory(root), &root.join("project")).unwrap()
}

fn method(class: &str, selector: &str, source: &str) -> NewEntry {
    NewEntry {
        kind: Kind::Instance,
        class: class.to_owned(),
        selector: Some(selector.to_owned()),
        side: Some(Side::Instance),
        intent: Intent::Durable,
        source: Some(source.to_owned()),
        prev_source: None,
        source_file: Some(format!("src/{class}.bt")),
        author: "s1".to_owned(),
        author_kind: AuthorKind::Human,
        not_flushable_reason: None,
    }
}

fn of_class(kind: Kind, class: &str, source: Option<&str>, prev_source: Option<&str>) -> NewEntry {
    NewEntry {
        kind,
        selector: None,
        side: None,
        source: source.map(ToOwned::to_owned),
        prev_source: prev_source.map(ToOwned::to_owned),
        ..method(class, "", "")
    }
}

fn flush(log: &mut ChangeLog) -> FlushReport {
    log.flush(&Filter::default(), "s1").unwrap()
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    let place = Place::new();
    let mut log = place.log();
    let first = log.record(method("Lamp", "isOn", "isOn => true")).unwrap();
    assert!(first.flushable && first.span == Some(44..59), "{first:?}");
    drop(log);
    let lines = place.root.join("state/changes/changes.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&lines).unwrap();
    file.write_all(b"{\"seq\":2,\"ts\":\"20").unwrap();
    let mut log = place.log();
    assert_eq!(log.epoch(), 2);
    let all = log.all().unwrap();
    assert_eq!(all.len(), 1);
    assert!(all[0].orphan && !all[0].active, "{:?}", all[0]);
    assert_eq!(log.source(&all[0].entry).unwrap().unwrap(), "isOn => true");
    assert_eq!(log.active().unwrap().len(), 0);
    assert_eq!(log.record(method("Lamp", "isOn", "isOn => 1")).unwrap().seq, 2);
    assert_eq!(place.log().all().unwrap().len(), 2);
    let mode = fs::metadata(&lines).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_active_view_shows_what_differs_from_disk() {
    let place = Place::new();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Lamp", "isOn", "isOn => 2")).unwrap();
    log.record(method("Lamp", "toggle", "toggle => 1")).unwrap();
    let active: Vec<u64> = log.active().unwrap().iter().map(|view| view.entry.seq).collect();
    assert_eq!(active, [2]);
    assert_eq!(log.dirty().unwrap()["Lamp"], ["isOn"]);
    assert_eq!(log.diff(2).unwrap().lines().count(), 4);
    let view = serde_json::to_value(&log.active().unwrap()[0]).unwrap();
    assert_eq!(view["kind"], "instance");
    assert_eq!(view["author_kind"], "human");
    assert_eq!(log.clear().unwrap(), 3);
    assert!(log.active().unwrap().is_empty());
}

#[test]
fn a_flush_changes_the_method_and_nothing_else() {
    let place = Place::new();
    let lamp = place.project().join("src/Lamp.bt");
    fs::set_permissions(&lamp, fs::Permissions::from_mode(0o640)).unwrap();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Lamp", "isOn", "isOn => 2")).unwrap();
    log.record(method("Lamp", "dim", "dim => 3")).unwrap();
    let report = flush(&mut log);
    assert_eq!((report.flushed, report.files.len()), (2, 1), "{report:?}");
    let expected = LAMP
        .replace("self.on\n", "2\n")
        .replace("toggle => 1", "toggle => 1\n\n  dim => 3");
    assert_eq!(place.read("src/Lamp.bt"), expected);
    assert_eq!(fs::metadata(&lamp).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(log.active().unwrap().is_empty());
    assert!(
        log.all()
            .unwrap()
            .iter()
            .all(|view| view.entry.state == State::Flushed)
    );
    assert_eq!(flush(&mut log), FlushReport::default());
    assert_eq!(place.names(), ["Fan.bt", "Lamp.bt"]);
}

#[test]
fn what_a_filter_leaves_is_flushed_later() {
    let place = Place::new();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    let by_agent = NewEntry {
        author_kind: AuthorKind::Agent,
        ..method("Lamp", "toggle", "toggle => 2")
    };
    log.record(by_agent).unwrap();
    let agents = Filter {
        author_kinds: vec![AuthorKind::Agent],
        ..Filter::default()
    };
    assert_eq!(log.flush(&agents, "s1").unwrap().flushed, 1);
    assert_eq!(
        place.read("src/Lamp.bt"),
        LAMP.replace("toggle => 1", "toggle => 2")
    );
    let report = flush(&mut log);
    assert_eq!((report.flushed, report.conflicts.len()), (1, 0), "{report:?}");
}

#[test]
fn external_edit_conflict() {
    let place = Place::new();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Fan", "spin", "spin => 2")).unwrap();
    let edited = LAMP.replace("toggle => 1", "toggle => 99");
    place.write("src/Lamp.bt", &edited);
    let report = flush(&mut log);
    assert_eq!(report.conflicts[0].reason, ConflictReason::ExternalEdit);
    assert_eq!(report.conflicts[0].seqs, [1]);
    assert_eq!(place.read("src/Lamp.bt"), edited);
    assert_eq!(place.read("src/Fan.bt"), FAN.replace('1', "2"));
    let forced = Filter {
        force_file: Some("src/Lamp.bt".to_owned()),
        ..Filter::default()
    };
    assert_eq!(log.flush(&forced, "s1").unwrap().flushed, 1);
    assert_eq!(place.read("src/Lamp.bt"), edited.replace("self.on\n", "1\n"));
}

#[test]
fn a_missing_file_and_a_vanished_method_are_conflicts() {
    let place = Place::new();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Fan", "spin", "spin => 2")).unwrap();
    fs::remove_file(place.project().join("src/Lamp.bt")).unwrap();
    place.write("src/Fan.bt", "Actor subclass: Fan\n");
    let forced = Filter {
        force_file: Some("src/Fan.bt".to_owned()),
        ..Filter::default()
    };
    let report = log.flush(&forced, "s1").unwrap();
    let reasons: Vec<ConflictReason> = report.conflicts.iter().map(|conflict| conflict.reason).collect();
    assert_eq!(
        reasons,
        [ConflictReason::SpanOutOfRange, ConflictReason::FileMissing]
    );
    assert_eq!(log.active().unwrap().len(), 2);
}

#[test]
fn classes_are_created_and_deleted_only_when_confirmed() {
    let place = Place::new();
    let mut log = place.log();
    let belt = "Value subclass: Belt\n  field: n = 1\n";
    log.record(of_class(Kind::NewClass, "Belt", Some(belt), None))
        .unwrap();
    assert_eq!(
        log.check_new_class("Belt", "src/Belt.bt", false)
            .unwrap_err()
            .kind(),
        "target_exists"
    );
    let added = log
        .record(method("Belt", "twice", "twice => self.n * 2"))
        .unwrap();
    assert!(added.flushable);
    log.record(of_class(Kind::RemoveClass, "Fan", None, Some(FAN)))
        .unwrap();
    let report = flush(&mut log);
    assert_eq!(report.new_classes, ["Belt"]);
    assert_eq!(report.skipped[0].reason, "destructive");
    assert_eq!(
        place.read("src/Belt.bt"),
        format!("{belt}\n  twice => self.n * 2\n")
    );
    assert_eq!(place.names(), ["Belt.bt", "Fan.bt", "Lamp.bt"]);
    let confirmed = Filter {
        confirm_destructive: true,
        ..Filter::default()
    };
    assert_eq!(log.flush(&confirmed, "s1").unwrap().removed_classes, ["Fan"]);
    assert_eq!(place.names(), ["Belt.bt", "Lamp.bt"]);
}

#[test]
fn the_target_of_a_new_class_may_appear_meanwhile() {
    let place = Place::new();
    let mut log = place.log();
    log.record(of_class(
        Kind::NewClass,
        "Belt",
        Some("Value subclass: Belt\n"),
        None,
    ))
    .unwrap();
    place.write("src/Belt.bt", "// mine\n");
    assert_eq!(flush(&mut log).conflicts[0].reason, ConflictReason::TargetExists);
    assert_eq!(place.read("src/Belt.bt"), "// mine\n");
}

#[test]
fn what_is_not_in_the_project_is_never_written() {
    let place = Place::new();
    let mut log = place.log();
    let outside = place.root.join("Out.bt");
    fs::write(&outside, "Object subclass: Out\n  a => 1\n").unwrap();
    symlink(&outside, place.project().join("src/Out.bt")).unwrap();
    symlink(
        place.project().join("src/Lamp.bt"),
        place.project().join("src/Alias.bt"),
    )
    .unwrap();
    let linked = log.record(method("Out", "a", "a => 2")).unwrap();
    assert!(!linked.flushable);
    for file in ["../Out.bt", "/etc/passwd"] {
        let entry = NewEntry {
            source_file: Some(file.to_owned()),
            ..method("Out", "a", "a => 2")
        };
        let reason = log.record(entry).unwrap().not_flushable_reason.unwrap();
        assert_eq!(reason, format!("dependency:{file}"));
    }
    let through = NewEntry {
        source_file: Some("src/Alias.bt".to_owned()),
        ..method("Lamp", "toggle", "toggle => 7")
    };
    log.record(through).unwrap();
    let report = flush(&mut log);
    assert_eq!((report.flushed, report.skipped.len()), (1, 1), "{report:?}");
    assert!(fs::read_to_string(&outside).unwrap().contains("a => 1"));
    assert!(place.read("src/Lamp.bt").contains("toggle => 7"));
    assert!(place.project().join("src/Alias.bt").is_symlink());
}

#[test]
fn ephemeral_changes_are_never_written_and_end_with_a_flush() {
    let place = Place::new();
    let mut log = place.log();
    let tried = NewEntry {
        intent: Intent::Ephemeral,
        ..method("Lamp", "isOn", "isOn => 1")
    };
    log.record(tried.clone()).unwrap();
    assert_eq!(flush(&mut log).skipped[0].reason, "ephemeral");
    assert_eq!(log.entry(1).unwrap().state, State::Pruned);
    assert_eq!(place.read("src/Lamp.bt"), LAMP);
    log.record(tried).unwrap();
    assert_eq!(place.log().entry(2).unwrap().state, State::Pruned);
}

#[test]
fn a_change_is_undone_by_its_inverse() {
    let place = Place::new();
    let mut log = place.log();
    let modified = NewEntry {
        prev_source: Some("isOn => self.on".to_owned()),
        ..method("Lamp", "isOn", "isOn => 1")
    };
    log.record(modified).unwrap();
    log.record(method("Lamp", "dim", "dim => 1")).unwrap();
    log.record(of_class(Kind::RemoveClass, "Fan", None, Some(FAN)))
        .unwrap();
    assert!(matches!(log.revert(1).unwrap(),
        InverseChange::SaveMethod { source, .. } if source == "isOn => self.on"));
    assert!(
        matches!(log.revert(2).unwrap(), InverseChange::RemoveMethod { selector, .. } if selector == "dim")
    );
    assert!(matches!(log.revert(3).unwrap(), InverseChange::InstallClass { source, .. } if source == FAN));
    place.write("src/Fan.bt", "// other\n");
    assert_eq!(log.revert(3).unwrap_err().kind(), "revert_not_possible");
    flush(&mut log);
    assert_eq!(log.revert(1).unwrap_err().kind(), "revert_not_possible");
    assert!(matches!(
        log.revert(9).unwrap_err(),
        ChangeError::NoEntry { seq: 9 }
    ));
}

fn unpacked(path: &std::path::Path) -> String {
    let file = fs::File::open(path).unwrap();
    std::io::read_to_string(flate2::read::GzDecoder::new(file)).unwrap()
}

#[test]
fn old_entries_go_to_the_archive_and_pending_ones_stay() {
    let place = Place::new();
    let mut log = place.log().with_limit(10);
    log.record(method("Lamp", "isOn", "isOn => 0")).unwrap();
    for n in 0..150 {
        let source = format!("spin => {n}");
        log.record(method("Fan", "spin", &source)).unwrap();
        log.clear().unwrap();
    }
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    let count = log.all().unwrap().len();
    assert!((10..=111).contains(&count), "{count}");
    assert_eq!(log.active().unwrap()[0].entry.seq, 152);
    let archive = place.root.join("state/changes/archive");
    let text: String = fs::read_dir(archive)
        .unwrap()
        .map(|entry| unpacked(&entry.unwrap().path()))
        .collect();
    assert!(text.contains("\"source\":\"spin => 0\""), "{text}");
    assert_eq!(text.lines().count() + count, 152);
}

#[test]
fn a_start_from_the_files_alone_keeps_nothing_pending() {
    let place = Place::new();
    let mut log = place.log();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Lamp", "toggle", "toggle => 2")).unwrap();
    log.archive_all().unwrap();
    assert!(log.active().unwrap().is_empty());
    assert_eq!(log.record(method("Lamp", "isOn", "isOn => 3")).unwrap().seq, 3);
    let archived = place.root.join("state/changes/archive/changes-1-1.jsonl.gz");
    assert!(unpacked(&archived).contains("isOn => 1"));
}

// ---- deaths ----

/// Two files change and one goes.
fn prepare(log: &mut ChangeLog) -> Filter {
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(of_class(
        Kind::NewClass,
        "Belt",
        Some("Value subclass: Belt\n"),
        None,
    ))
    .unwrap();
    log.record(of_class(Kind::RemoveClass, "Fan", None, Some(FAN)))
        .unwrap();
    Filter {
        confirm_destructive: true,
        ..Filter::default()
    }
}

fn is_untouched(place: &Place) -> bool {
    place.names() == ["Fan.bt", "Lamp.bt"] && place.read("src/Lamp.bt") == LAMP
}

fn is_complete(place: &Place) -> bool {
    place.names() == ["Belt.bt", "Lamp.bt"] && place.read("src/Lamp.bt") == LAMP.replace("self.on\n", "1\n")
}

#[test]
fn a_death_at_any_step_leaves_all_or_nothing() {
    for fatal in 0.. {
        let place = Place::new();
        let mut log = place.log();
        let filter = prepare(&mut log);
        let mut steps = Vec::new();
        let died = log.flush_watched(&filter, "s1", &mut |step| {
            steps.push(step);
            if steps.len() > fatal {
                return Err(ChangeError::NoEntry { seq: 0 });
            }
            Ok(())
        });
        if died.is_ok() {
            assert_eq!(steps.len(), 9);
            return;
        }
        drop(log);
        let is_committing = steps.contains(&Step::Committing);
        let log = place.log();
        assert_eq!(
            is_complete(&place),
            is_committing,
            "{steps:?} {:?}",
            place.names()
        );
        assert_eq!(
            is_untouched(&place),
            !is_committing,
            "{steps:?} {:?}",
            place.names()
        );
        let flushed = log
            .all()
            .unwrap()
            .iter()
            .all(|view| view.entry.state == State::Flushed);
        assert_eq!(flushed, is_committing);
    }
}

#[test]
fn kill_between_phases_recovers() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().to_owned();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "changes::tests::flush_that_is_killed", "--ignored"])
        .env("CHANGES_ROOT", &root)
        .output()
        .unwrap()
        .status;
    assert!(!status.success());
    let place = Place::at(root, temporary);
    assert!(
        place.names().iter().any(|name| name == "Lamp.bt.tmp"),
        "{:?}",
        place.names()
    );
    place.log();
    assert!(is_complete(&place), "{:?}", place.names());
}

#[test]
#[ignore = "dies; run by kill_between_phases_recovers"]
fn flush_that_is_killed() {
    let root = PathBuf::from(std::env::var_os("CHANGES_ROOT").unwrap());
    let place = Place::new();
    fs::create_dir_all(root.join("project/src")).unwrap();
    for name in ["Lamp.bt", "Fan.bt"] {
        fs::copy(
            place.project().join("src").join(name),
            root.join("project/src").join(name),
        )
        .unwrap();
    }
    let mut log = open(&root);
    let filter = prepare(&mut log);
    let _ = log.flush_watched(&filter, "s1", &mut |step| {
        if step == Step::Committing {
            std::process::abort();
        }
        Ok(())
    });
}

#[test]
fn a_failure_in_phase_a_changes_nothing() {
    let place = Place::new();
    let mut log = place.log();
    let filter = prepare(&mut log);
    place.write("src/Lamp.bt.tmp", "not ours");
    let report = log.flush(&filter, "s1").unwrap();
    assert_eq!(report.conflicts[0].reason, ConflictReason::WriteFailed);
    assert_eq!(place.read("src/Lamp.bt.tmp"), "not ours");
    assert_eq!(place.read("src/Lamp.bt"), LAMP);
    fs::remove_file(place.project().join("src/Lamp.bt.tmp")).unwrap();
    assert_eq!(log.flush(&filter, "s1").unwrap().flushed, 1);
    assert!(is_complete(&place));
}

#[test]
fn a_file_edited_between_the_phases_is_left_alone() {
    let place = Place::new();
    let mut log = place.log();
    let filter = prepare(&mut log);
    let report = log
        .flush_watched(&filter, "s1", &mut |step| {
            if step == Step::Committing {
                place.write("src/Lamp.bt", "// mine\n");
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(report.conflicts[0].reason, ConflictReason::ExternalEdit);
    assert_eq!(place.read("src/Lamp.bt"), "// mine\n");
    assert_eq!(place.names(), ["Belt.bt", "Lamp.bt"]);
    assert_eq!(log.entry(1).unwrap().state, State::Pending);
}
