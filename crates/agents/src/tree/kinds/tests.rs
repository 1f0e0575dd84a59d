//! Committing documents: what is final, what is refused, what is a new request.

use std::sync::{Arc, Mutex};

use beamtalk_ninep::{Refusal, WriteAnswer};

use super::{Buffer, Commit};

type Seen = Arc<Mutex<Vec<String>>>;

fn buffer(start: &str, per_request: bool) -> (Buffer, Seen) {
    let seen: Seen = Arc::default();
    let log = Arc::clone(&seen);
    let commit: Commit = Arc::new(move |bytes| {
        log.lock().unwrap().push(String::from_utf8(bytes).unwrap());
        Box::pin(std::future::ready(Ok(())))
    });
    (
        Buffer::new(start.as_bytes().to_vec(), per_request, 10_000, 8168, commit),
        seen,
    )
}

fn done(answer: WriteAnswer) -> Result<(), Refusal> {
    match answer {
        WriteAnswer::Now(outcome) => outcome,
        WriteAnswer::Later(_) => Ok(()),
    }
}

#[test]
fn a_short_write_commits_and_a_page_waits() {
    let (mut document, seen) = buffer("", false);
    done(document.write(0, &[b'a'; 4096])).unwrap();
    assert!(seen.lock().unwrap().is_empty());
    done(document.write(4096, b"end")).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
    assert_eq!(seen.lock().unwrap()[0].len(), 4099);
    done(document.finish()).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[test]
fn what_waits_is_committed_by_an_empty_write_or_at_the_end() {
    for by_write in [true, false] {
        let (mut document, seen) = buffer("", false);
        done(document.write(0, &[b'a'; 8168])).unwrap();
        assert!(seen.lock().unwrap().is_empty());
        done(if by_write {
            document.write(8168, b"")
        } else {
            document.finish()
        })
        .unwrap();
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
}

#[test]
fn writes_patch_the_current_content() {
    let (mut document, seen) = buffer("hello", false);
    done(document.write(1, b"a")).unwrap();
    assert_eq!(seen.lock().unwrap()[0], "hallo");
    assert_eq!(done(document.write(6, b"x")).unwrap_err().text, "bad offset");
    assert_eq!(
        done(document.write(0, &[0; 10_001])).unwrap_err().text,
        "too large"
    );
}

#[test]
fn every_commit_of_a_request_file_starts_anew() {
    let (mut requests, seen) = buffer("", true);
    done(requests.write(0, b"one")).unwrap();
    done(requests.write(3, b"two")).unwrap();
    done(requests.write(6, b"")).unwrap();
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
}

#[test]
fn an_empty_first_write_commits_nothing_but_emptiness() {
    let (mut document, seen) = buffer("", false);
    done(document.write(0, b"")).unwrap();
    assert_eq!(*seen.lock().unwrap(), [""]);
}

#[test]
fn cutting_to_nothing_is_a_change_only_where_it_empties() {
    for empties in [true, false] {
        let (mut document, seen) = buffer("kept", false);
        if empties {
            document = document.emptied_by_truncation();
        }
        document.set_length(0).unwrap();
        done(document.finish()).unwrap();
        assert_eq!(seen.lock().unwrap().len(), usize::from(empties));
    }
}
