use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use super::RotatingLog;
use crate::StateDirectory;

#[test]
fn lines_move_through_the_numbers_and_the_oldest_goes() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let mut log = RotatingLog::open(state.root().clone(), "a.log", 10, 2).unwrap();
    for number in 0..8 {
        log.write_whole(format!("line{number}\n").as_bytes()).unwrap();
    }
    let read = |name: &str| fs::read_to_string(state.path().join(name)).unwrap();
    // Six bytes each: a second line would go over ten.
    assert_eq!(read("a.log"), "line7\n");
    assert_eq!(read("a.log.1"), "line6\n");
    assert_eq!(read("a.log.2"), "line5\n");
    assert_eq!(state.root().names().unwrap(), ["a.log", "a.log.1", "a.log.2"]);
    for name in RotatingLog::files(state.root(), "a.log").unwrap() {
        let mode = fs::metadata(state.path().join(&name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    fs::write(state.path().join("a.log.10"), "").unwrap();
    fs::write(state.path().join("a.log.old"), "").unwrap();
    let files = RotatingLog::files(state.root(), "a.log").unwrap();
    assert_eq!(files, ["a.log.10", "a.log.2", "a.log.1", "a.log"]);
}

#[test]
fn a_line_written_in_pieces_stays_in_one_file() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let mut log = RotatingLog::open(state.root().clone(), "a.log", 10, 9).unwrap();
    for number in 0..9 {
        writeln!(log, "line {number} of nine").unwrap();
    }
    for name in RotatingLog::files(state.root(), "a.log").unwrap() {
        let text = fs::read_to_string(state.path().join(name)).unwrap();
        assert!(
            text.starts_with("line ") && text.ends_with(" of nine\n"),
            "{text}"
        );
    }
    // Without an end of line the limit still holds, if later.
    for _ in 0..100 {
        log.write_all(b"endless").unwrap();
    }
    assert!(fs::metadata(state.path().join("a.log")).unwrap().len() < 40);
}

#[test]
fn a_log_goes_on_after_opening_again_and_a_long_line_has_a_file_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let open = || RotatingLog::open(state.root().clone(), "a.log", 10, 2).unwrap();
    open().write_whole(b"one\n").unwrap();
    let mut log = open();
    log.write_whole(b"two\n").unwrap();
    log.write_whole(b"longer than the limit\n").unwrap();
    let read = |name: &str| fs::read_to_string(state.path().join(name)).unwrap();
    assert_eq!(read("a.log.1"), "one\ntwo\n");
    assert_eq!(read("a.log"), "longer than the limit\n");
    // Moved away by another program; SIGHUP.
    fs::rename(state.path().join("a.log"), state.path().join("away")).unwrap();
    log.reopen().unwrap();
    log.write_whole(b"new\n").unwrap();
    assert_eq!(read("a.log"), "new\n");
    assert_eq!(read("away"), "longer than the limit\n");
}
