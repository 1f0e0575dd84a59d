//! Removed classes: out of a file that holds more, with one that does not, beside other changes of it.

use super::*;

const HOST: &str = "// Mine.\n\nObject subclass: Host\n  class a => 1\n\nInteger >> trip => self * 3\n";

/// A file with a class and a method of another, and the log after that method was changed and the class removed.
fn with_shared() -> (Place, ChangeLog) {
    let place = Place::new();
    place.write("src/Host.bt", HOST);
    let mut log = place.log();
    let trip = NewEntry {
        source: Some("Integer >> trip => 44".to_owned()),
        base: Some("Integer >> trip => self * 3".to_owned()),
        source_file: Some("src/Host.bt".to_owned()),
        ..method("Integer", "trip", "")
    };
    log.record(trip).unwrap();
    log.record(of_class(Kind::RemoveClass, "Host", None, Some(HOST)))
        .unwrap();
    (place, log)
}

fn flush_shared(log: &mut ChangeLog, confirm_destructive: bool) -> FlushReport {
    let filter = Filter {
        confirm_destructive,
        ..Filter::default()
    };
    let mut loaded = loaded();
    loaded.insert("src/Host.bt".to_owned(), HOST.to_owned());
    log.flush(&filter, "s1", &loaded).unwrap()
}

#[test]
fn a_class_is_cut_out_of_a_file_that_holds_more_and_the_rest_is_written() {
    let (place, mut log) = with_shared();
    let without = HOST
        .replace("self * 3", "44")
        .replace("Object subclass: Host\n  class a => 1\n\n", "");
    let report = flush_shared(&mut log, false);
    assert_eq!((report.flushed, report.files.len()), (2, 1), "{report:?}");
    assert_eq!(report.removed_classes, ["Host"]);
    assert_eq!(place.read("src/Host.bt"), without);
    assert!(log.active().unwrap().is_empty());
}

#[test]
fn a_removal_in_conflict_leaves_its_file_and_everything_that_is_pending_in_it() {
    let (place, mut log) = with_shared();
    let edited = HOST.replace("class a => 1", "class a => 1\n  // Precious.");
    place.write("src/Host.bt", &edited);
    let report = flush_shared(&mut log, true);
    assert_eq!(report.conflicts[0].detail.as_deref(), Some("Host"), "{report:?}");
    assert_eq!(report.conflicts[0].seqs, [1, 2]);
    assert_eq!(place.read("src/Host.bt"), edited);
    assert_eq!(log.active().unwrap().len(), 2);
    // A file that is gone has no class that went, and no place for what was changed.
    fs::remove_file(place.project().join("src/Host.bt")).unwrap();
    let report = flush_shared(&mut log, false);
    assert_eq!(report.removed_classes, ["Host"]);
    assert_eq!(report.conflicts[0].reason, ConflictReason::FileMissing);
    assert_eq!(report.conflicts[0].seqs, [1]);
    assert_eq!(log.entry(1).unwrap().state, State::Pending);
}

#[test]
fn a_file_with_nothing_but_comments_left_goes_only_when_that_is_confirmed() {
    let place = Place::new();
    let solo =
        "// LICENSE\n\n/// Alone.\nObject subclass: Solo\n  class a => 1\n  // Of the class.\n\n// footer\n";
    place.write("src/Solo.bt", solo);
    let mut log = place.log();
    log.record(of_class(Kind::RemoveClass, "Solo", None, Some(solo)))
        .unwrap();
    let report = flush_shared(&mut log, false);
    assert_eq!(report.skipped[0].reason, "destructive", "{report:?}");
    assert_eq!(place.read("src/Solo.bt"), solo);
    let report = flush_shared(&mut log, true);
    assert_eq!(report.removed_classes, ["Solo"]);
    assert!(!place.project().join("src/Solo.bt").exists());
}

#[test]
fn what_a_class_that_was_never_written_leaves_behind_is_written() {
    let place = Place::new();
    let mut log = place.log();
    let belt = "Value subclass: Belt\n  field: n = 1\n\nInteger >> belts => 1\n";
    log.record(of_class(Kind::NewClass, "Belt", Some(belt), None))
        .unwrap();
    let belts = NewEntry {
        source: Some("Integer >> belts => 1".to_owned()),
        source_file: Some("src/Belt.bt".to_owned()),
        base: None,
        ..method("Integer", "belts", "")
    };
    log.record(belts).unwrap();
    let removal = NewEntry {
        base: None,
        ..of_class(Kind::RemoveClass, "Belt", None, Some(belt))
    };
    log.record(removal).unwrap();
    let report = flush_shared(&mut log, false);
    assert_eq!((report.flushed, report.conflicts.len()), (1, 0), "{report:?}");
    assert_eq!(place.read("src/Belt.bt"), "Integer >> belts => 1\n");
    assert!(log.active().unwrap().is_empty());
}

#[test]
fn loading_a_file_keeps_removals_and_the_other_changes_of_the_image() {
    let (_place, log) = with_shared();
    let merge = log.merge("src/Host.bt", HOST).unwrap();
    let expected = HOST
        .replace("Object subclass: Host\n  class a => 1\n\n", "")
        .replace("self * 3", "44");
    assert_eq!(merge.text.as_deref(), Some(expected.as_str()), "{merge:?}");
    assert!(merge.settled.is_empty() && merge.conflict.is_none(), "{merge:?}");
    let merge = log.merge("src/Host.bt", &expected).unwrap();
    assert_eq!(merge.settled, [1, 2]);
}
