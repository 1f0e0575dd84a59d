//! The log and the flush against real directories, with deaths at every step.

mod removals;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use beamtalk_storage::{Directory, StateDirectory};
use tempfile::TempDir;

use beamtalk_syntax::definitions::{Key, Outline};

use super::entry::State;
use super::flush::Step;
use super::plan::{ConflictReason, FlushReport};
use super::{AuthorKind, ChangeError, ChangeLog, Filter, Intent, Kind, NewEntry, Settled, Side};

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
        base: base_of(class, selector),
        is_whole_file: false,
        source_file: Some(format!("src/{class}.bt")),
        author: "s1".to_owned(),
        author_kind: AuthorKind::Human,
        not_flushable_reason: None,
    }
}

/// What the image loaded for a method.
fn base_of(class: &str, selector: &str) -> Option<String> {
    let text = loaded().remove(&format!("src/{class}.bt"))?;
    Outline::of_file(&text).text_of(&Key::method(class, false, selector))
}

fn loaded() -> BTreeMap<String, String> {
    let files = [("src/Lamp.bt", LAMP), ("src/Fan.bt", FAN)];
    files
        .map(|(file, text)| (file.to_owned(), text.to_owned()))
        .into()
}

fn of_class(kind: Kind, class: &str, source: Option<&str>, prev_source: Option<&str>) -> NewEntry {
    NewEntry {
        kind,
        selector: None,
        side: None,
        source: source.map(ToOwned::to_owned),
        prev_source: prev_source.map(ToOwned::to_owned),
        base: prev_source.map(ToOwned::to_owned),
        is_whole_file: kind == Kind::NewClass && prev_source.is_none(),
        ..method(class, "", "")
    }
}

fn new_belt(source: &str) -> NewEntry {
    of_class(Kind::NewClass, "Belt", Some(source), None)
}

fn confirmed() -> Filter {
    Filter {
        confirm_destructive: true,
        ..Filter::default()
    }
}

/// A place and its log.
fn fresh() -> (Place, ChangeLog) {
    let place = Place::new();
    let log = place.log();
    (place, log)
}

fn flush(log: &mut ChangeLog) -> FlushReport {
    log.flush(&Filter::default(), "s1", &loaded()).unwrap()
}

#[test]
fn what_was_acknowledged_is_there_after_a_crash() {
    let (place, mut log) = fresh();
    let first = log.record(method("Lamp", "isOn", "isOn => true")).unwrap();
    assert!(first.flushable && first.base_ref.is_some(), "{first:?}");
    drop(log);
    let lines = place.root.join("state/changes/changes.jsonl");
    let mut file = fs::OpenOptions::new().append(true).open(&lines).unwrap();
    file.write_all(b"{\"seq\":2,\"ts\":\"20").unwrap();
    let mut log = place.log();
    assert_eq!((log.epoch(), log.waiting().unwrap().len()), (2, 1));
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
    let (_place, mut log) = fresh();
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
            .all(|view| view.entry.settled == Some(Settled::Flushed))
    );
    assert_eq!(flush(&mut log), FlushReport::default());
    assert_eq!(place.names(), ["Fan.bt", "Lamp.bt"]);
}

#[test]
fn only_the_changes_that_were_named_are_flushed() {
    let (place, mut log) = fresh();
    let first = log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    let second = log.record(method("Lamp", "toggle", "toggle => 2")).unwrap();
    let named = |seqs: Vec<u64>| Filter {
        seqs: Some(seqs),
        ..Filter::default()
    };
    assert_eq!(log.flush(&named(Vec::new()), "s1", &loaded()).unwrap().flushed, 0);
    assert_eq!(
        log.flush(&named(vec![second.seq]), "s1", &loaded())
            .unwrap()
            .flushed,
        1
    );
    assert_eq!(
        place.read("src/Lamp.bt"),
        LAMP.replace("toggle => 1", "toggle => 2")
    );
    // One that was replaced meanwhile is not what was looked at.
    log.record(method("Lamp", "isOn", "isOn => 3")).unwrap();
    assert_eq!(
        log.flush(&named(vec![first.seq]), "s1", &loaded())
            .unwrap()
            .flushed,
        0
    );
}

#[test]
fn what_a_filter_leaves_is_flushed_later() {
    let (place, mut log) = fresh();
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
    assert_eq!(log.flush(&agents, "s1", &loaded()).unwrap().flushed, 1);
    assert_eq!(
        place.read("src/Lamp.bt"),
        LAMP.replace("toggle => 1", "toggle => 2")
    );
    let report = flush(&mut log);
    assert_eq!((report.flushed, report.conflicts.len()), (1, 0), "{report:?}");
}

#[test]
fn the_same_method_changed_on_both_sides_is_a_conflict() {
    let (place, mut log) = fresh();
    // The edit on disk comes before the change: the base is what the image loaded, not what is found then.
    let edited = LAMP.replace("isOn => self.on", "isOn => 99");
    place.write("src/Lamp.bt", &edited);
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Fan", "spin", "spin => 2")).unwrap();
    let report = flush(&mut log);
    assert_eq!(report.conflicts[0].reason, ConflictReason::ExternalEdit);
    assert_eq!(report.conflicts[0].detail.as_deref(), Some("Lamp>>isOn"));
    assert_eq!(report.conflicts[0].seqs, [1]);
    assert_eq!(place.read("src/Lamp.bt"), edited);
    assert_eq!(place.read("src/Fan.bt"), FAN.replace('1', "2"));
    // The disk's version of now becomes the base: the next flush replaces that one and no later one.
    let now = Outline::of_file(&edited).text_of(&Key::method("Lamp", false, "isOn"));
    log.rebase(1, now.as_deref()).unwrap();
    let later = edited.replace("99", "98");
    place.write("src/Lamp.bt", &later);
    assert_eq!(flush(&mut log).conflicts.len(), 1);
    assert_eq!(place.read("src/Lamp.bt"), later);
    place.write("src/Lamp.bt", &edited);
    assert_eq!(flush(&mut log).flushed, 1);
    assert_eq!(place.read("src/Lamp.bt"), edited.replace("99", "1"));
}

#[test]
fn different_methods_changed_on_both_sides_are_merged() {
    let (place, mut log) = fresh();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Lamp", "dim", "dim => 3")).unwrap();
    let edited = LAMP.replace("toggle => 1", "toggle => 99\n\n  // mine\n  glow => 4");
    place.write("src/Lamp.bt", &edited);
    let report = flush(&mut log);
    assert_eq!(
        (report.flushed, report.merged.len(), report.conflicts.len()),
        (2, 1, 0)
    );
    let expected = edited
        .replace("self.on\n", "1\n")
        .replace("glow => 4", "glow => 4\n\n  dim => 3");
    assert_eq!(place.read("src/Lamp.bt"), expected);
    // Only what was written moved its base.
    let base = report.bases[0].1.as_deref().unwrap();
    assert!(
        base.contains("toggle => 1\n") && base.contains("isOn => 1") && !base.contains("glow"),
        "{base}"
    );
}

#[test]
fn the_same_text_on_both_sides_is_settled() {
    let (place, mut log) = fresh();
    log.record(method("Lamp", "isOn", "isOn =>\n  self.on not"))
        .unwrap();
    let edited = LAMP.replace("isOn => self.on", "isOn =>\n    self.on not");
    place.write("src/Lamp.bt", &edited);
    assert!(log.active().unwrap().is_empty());
    assert_eq!(flush(&mut log).files.len(), 0);
    assert_eq!(log.entry(1).unwrap().settled, Some(Settled::Flushed));
    assert_eq!(place.read("src/Lamp.bt"), edited);
}

#[test]
fn a_class_defined_anew_keeps_what_appeared_on_disk() {
    let (place, mut log) = fresh();
    let edited = LAMP.replace("toggle => 1", "toggle => 1\n\n  glow => 4");
    place.write("src/Lamp.bt", &edited);
    let anew = "Actor subclass: Lamp\n  state: on = true\n  isOn => 5";
    log.record(of_class(
        Kind::NewClass,
        "Lamp",
        Some(anew),
        Some(LAMP.trim_end()),
    ))
    .unwrap();
    let report = flush(&mut log);
    assert_eq!((report.conflicts.len(), report.flushed), (0, 3), "{report:?}");
    assert_eq!(
        place.read("src/Lamp.bt"),
        "Actor subclass: Lamp\n  state: on = true\n\n  isOn => 5\n\n  glow => 4\n"
    );
}

#[test]
fn a_file_that_does_not_parse_is_left_alone() {
    let (place, mut log) = fresh();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    let broken = LAMP.replace("toggle => 1", "toggle => (((");
    place.write("src/Lamp.bt", &broken);
    let report = flush(&mut log);
    assert!(
        report.conflicts[0].detail.as_ref().unwrap().starts_with("line 6"),
        "{report:?}"
    );
    assert_eq!(place.read("src/Lamp.bt"), broken);
}

#[test]
fn a_missing_file_and_a_vanished_method_are_conflicts() {
    let (place, mut log) = fresh();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    log.record(method("Fan", "spin", "spin => 2")).unwrap();
    fs::remove_file(place.project().join("src/Lamp.bt")).unwrap();
    place.write("src/Fan.bt", "Actor subclass: Fan\n");
    let report = flush(&mut log);
    let reasons: Vec<ConflictReason> = report.conflicts.iter().map(|conflict| conflict.reason).collect();
    assert_eq!(
        reasons,
        [ConflictReason::SpanOutOfRange, ConflictReason::FileMissing]
    );
    assert_eq!(log.active().unwrap().len(), 2);
}

#[test]
fn the_base_stays_while_an_entry_is_pending() {
    let (place, mut log) = fresh();
    log.record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    // The image has loaded the file again meanwhile; the next change of the same method says so.
    let moved = NewEntry {
        base: Some("isOn => 99".to_owned()),
        ..method("Lamp", "isOn", "isOn => 2")
    };
    let entry = log.record(moved.clone()).unwrap();
    assert_eq!(log.base(&entry).unwrap().as_deref(), Some("isOn => self.on"));
    drop(log);
    let mut log = place.log();
    assert_eq!(log.waiting().unwrap().len(), 1, "the later one stands for both");
    // What waits is not in the image, which has loaded the file as it is now.
    let entry = log.record(moved).unwrap();
    assert_eq!(log.base(&entry).unwrap().as_deref(), Some("isOn => 99"));
    let report = flush(&mut log);
    assert_eq!(
        (report.flushed, report.conflicts.len()),
        (0, 1),
        "somebody wrote it since"
    );
    place.write(
        "src/Lamp.bt",
        &LAMP.replace("self.on\n\n  toggle", "99\n\n  toggle"),
    );
    assert_eq!(flush(&mut log).flushed, 1);
    assert!(
        log.entry(1).unwrap().is_waiting(),
        "a flush never writes what waits"
    );
}

#[test]
fn classes_are_created_and_deleted_only_when_confirmed() {
    let (place, mut log) = fresh();
    let belt = "Value subclass: Belt\n  field: n = 1\n";
    log.record(new_belt(belt)).unwrap();
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
    let report = log.flush(&confirmed(), "s1", &loaded()).unwrap();
    assert_eq!((report.removed_classes.len(), report.flushed), (1, 1));
    assert_eq!(place.names(), ["Belt.bt", "Lamp.bt"]);
}

#[test]
fn the_target_of_a_new_class_may_appear_meanwhile() {
    let (place, mut log) = fresh();
    log.record(new_belt("Value subclass: Belt\n")).unwrap();
    place.write("src/Belt.bt", "// mine\n");
    assert_eq!(flush(&mut log).conflicts[0].reason, ConflictReason::TargetExists);
    assert_eq!(place.read("src/Belt.bt"), "// mine\n");
}

#[test]
fn what_is_not_in_the_project_is_never_written() {
    let (place, mut log) = fresh();
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
    let (place, mut log) = fresh();
    let tried = NewEntry {
        intent: Intent::Ephemeral,
        ..method("Lamp", "isOn", "isOn => 1")
    };
    log.record(tried.clone()).unwrap();
    assert_eq!(flush(&mut log).skipped[0].reason, "ephemeral");
    assert_eq!(log.entry(1).unwrap().settled, Some(Settled::Pruned));
    assert_eq!(place.read("src/Lamp.bt"), LAMP);
    log.record(tried).unwrap();
    assert_eq!(place.log().entry(2).unwrap().settled, Some(Settled::Pruned));
}

#[test]
fn lines_with_impossible_numbers_are_put_aside() {
    let place = Place::new();
    place.log().record(method("Lamp", "isOn", "isOn => 1")).unwrap();
    let log = place.root.join("state/changes/changes.jsonl");
    let line = fs::read_to_string(&log).unwrap();
    let hostile: String = [u64::MAX, u64::MAX - 1]
        .map(|seq| line.replace("\"seq\":1,", &format!("\"seq\":{seq},")))
        .concat();
    let epoch = line
        .replace("\"seq\":1,", "\"seq\":2,")
        .replace("\"epoch\":1,", &format!("\"epoch\":{},", u64::MAX));
    fs::write(&log, format!("{line}{hostile}{epoch}{line}")).unwrap();
    fs::write(place.root.join("state/changes/epoch"), format!("{}\n", u64::MAX)).unwrap();
    let mut log = place.log();
    assert_eq!(log.all().unwrap().len(), 1);
    assert_eq!(log.epoch(), 2);
    assert_eq!(log.record(method("Lamp", "isOn", "isOn => 2")).unwrap().seq, 2);
    let aside = fs::read_to_string(place.root.join("state/changes/archive/damaged.jsonl")).unwrap();
    assert_eq!(aside.matches("isOn => 1").count(), 4, "{aside}");
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
    let (place, mut log) = fresh();
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
    log.record(new_belt("Value subclass: Belt\n")).unwrap();
    log.record(of_class(Kind::RemoveClass, "Fan", None, Some(FAN)))
        .unwrap();
    confirmed()
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
        let died = log.flush_watched(&filter, "s1", &loaded(), &mut |step| {
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
            .all(|view| view.entry.settled == Some(Settled::Flushed));
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
    fs::write(
        place.root.join("state/changes/.tmp-left"),
        "of a writer that was killed",
    )
    .unwrap();
    place.log();
    assert!(is_complete(&place), "{:?}", place.names());
    assert!(!place.root.join("state/changes/.tmp-left").exists());
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
    let _ = log.flush_watched(&filter, "s1", &loaded(), &mut |step| {
        if step == Step::Committing {
            std::process::abort();
        }
        Ok(())
    });
}

#[test]
fn a_failure_in_phase_a_changes_nothing() {
    let (place, mut log) = fresh();
    let filter = prepare(&mut log);
    place.write("src/Lamp.bt.tmp", "not ours");
    let report = log.flush(&filter, "s1", &loaded()).unwrap();
    assert_eq!(report.conflicts[0].reason, ConflictReason::WriteFailed);
    assert_eq!(place.read("src/Lamp.bt.tmp"), "not ours");
    assert_eq!(place.read("src/Lamp.bt"), LAMP);
    fs::remove_file(place.project().join("src/Lamp.bt.tmp")).unwrap();
    assert_eq!(log.flush(&filter, "s1", &loaded()).unwrap().flushed, 2);
    assert!(is_complete(&place));
}

#[test]
fn a_file_edited_between_the_phases_is_left_alone() {
    let (place, mut log) = fresh();
    let filter = prepare(&mut log);
    let report = log
        .flush_watched(&filter, "s1", &loaded(), &mut |step| {
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
