//! The tree and the kernel, on real files.

use std::path::Path;

use super::native::Native;
use super::thread::Scanner;
use super::tree::Tree;
use super::*;
use crate::core::Change;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    fn write(&self, relative: &str, text: &str) {
        std::fs::create_dir_all(self.path(relative).parent().unwrap()).unwrap();
        std::fs::write(self.path(relative), text).unwrap();
    }

    fn scope(&self, paths: &str) -> Scope {
        let text = format!(
            "watch.w = {{ paths = {paths} }}\nworkflow.w.steps = [{{ action = \"notify_reload\" }}]\n"
        );
        let config = crate::config::check(
            &self.path("devloop.toml"),
            &text,
            crate::config::RemoteBind::Refuse,
        );
        Scope::new(&config.valid().unwrap())
    }

    fn native(&self, paths: &str) -> Native {
        Native::new(self.scope(paths), usize::MAX).unwrap()
    }
}

fn paths(mut changes: Vec<Change>) -> Vec<String> {
    changes.sort_by(|left, right| left.path.cmp(&right.path));
    changes.dedup_by(|left, right| left.path == right.path);
    changes.into_iter().map(|change| change.path).collect()
}

/// What the kernel tells; it does so before the writing call returns.
fn changed(native: &mut Native) -> Vec<String> {
    paths(native.read().unwrap().changes)
}

#[test]
fn saves_renames_and_removals_are_reported() {
    let place = Place::new();
    place.write("src/a.c", "1");
    place.write("other/x.c", "1");
    let mut native = place.native("[\"src/\"]");
    assert_eq!(native.tree.file_count(), 1);
    place.write("src/a.c", "2");
    assert_eq!(changed(&mut native), ["src/a.c"]);
    std::fs::rename(place.path("src/a.c"), place.path("src/b.c")).unwrap();
    assert_eq!(changed(&mut native), ["src/a.c", "src/b.c"]);
    std::fs::remove_file(place.path("src/b.c")).unwrap();
    assert_eq!(changed(&mut native), ["src/b.c"]);
    place.write("other/x.c", "2");
    std::fs::create_dir(place.path("src/empty")).unwrap();
    assert_eq!(changed(&mut native), [""; 0]);
    assert_eq!(native.tree.file_count(), 0);
}

#[test]
fn directories_that_come_and_go_bring_and_take_their_files() {
    let place = Place::new();
    let mut native = place.native("[\"content/\"]");
    place.write("tmp/x/p.md", "1");
    std::fs::rename(place.path("tmp"), place.path("content")).unwrap();
    assert_eq!(changed(&mut native), ["content/x/p.md"]);
    // Watched at once: the next change in it is seen.
    place.write("content/x/q.md", "1");
    assert_eq!(changed(&mut native), ["content/x/q.md"]);
    std::fs::rename(place.path("content"), place.path("away")).unwrap();
    assert_eq!(changed(&mut native), ["content/x/p.md", "content/x/q.md"]);
    place.write("away/x/p.md", "2");
    assert_eq!(changed(&mut native), [""; 0]);
    std::fs::rename(place.path("away"), place.path("content")).unwrap();
    assert_eq!(changed(&mut native), ["content/x/p.md", "content/x/q.md"]);
    std::fs::remove_dir_all(place.path("content")).unwrap();
    assert_eq!(changed(&mut native), ["content/x/p.md", "content/x/q.md"]);
    assert_eq!(native.tree.directory_count(), 1);
}

#[test]
fn an_ancestor_of_a_target_may_be_replaced() {
    let place = Place::new();
    place.write("a/b/c.txt", "1");
    let mut native = place.native("[\"a/b/c.txt\"]");
    std::fs::rename(place.path("a"), place.path("z")).unwrap();
    assert_eq!(changed(&mut native), ["a/b/c.txt"]);
    place.write("a/b/c.txt", "2");
    assert_eq!(changed(&mut native), ["a/b/c.txt"]);
}

#[test]
fn only_directories_that_can_match_are_watched() {
    let place = Place::new();
    for directory in ["src/deep/er", "lib", "node_modules/x", ".git/objects"] {
        std::fs::create_dir_all(place.path(directory)).unwrap();
    }
    let native = place.native("[\"src/*.c\", \"lib/one.txt\"]");
    // Root, src, src/deep, src/deep/er, lib.
    assert_eq!(native.tree.directory_count(), 5);
}

#[test]
fn links_to_directories_are_followed_once() {
    let place = Place::new();
    place.write("src/real/f.c", "1");
    std::os::unix::fs::symlink(place.path("src/real"), place.path("src/link")).unwrap();
    std::os::unix::fs::symlink(place.path("src"), place.path("src/real/up")).unwrap();
    let mut native = place.native("[\"src/\"]");
    assert_eq!(native.tree.file_count(), 1);
    place.write("src/real/f.c", "2");
    assert_eq!(changed(&mut native), ["src/real/f.c"]);
}

#[test]
fn names_that_are_not_text_are_reported_with_replacements() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let mut native = place.native("[\"*\"]");
    std::fs::write(
        place
            .directory
            .path()
            .join(std::ffi::OsStr::from_bytes(b"a\xff.c")),
        "1",
    )
    .unwrap();
    assert_eq!(changed(&mut native), ["a\u{fffd}.c"]);
}

#[test]
fn a_full_queue_is_noticed_and_a_scan_finds_the_differences() {
    let place = Place::new();
    place.write("d/same", "1");
    let mut native = place.native("[\"d/\"]");
    let limit: usize = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    for index in 0..=limit / 2 {
        std::fs::write(place.path(&format!("d/{}", index % 500)), index.to_string()).unwrap();
    }
    let reading = native.read().unwrap();
    assert!(reading.overflow);
    place.write("d/late", "1");
    native.read().unwrap();
    std::fs::remove_file(place.path("d/7")).unwrap();
    let mut changes = Vec::new();
    native.tree.rescan(&mut changes);
    assert_eq!(paths(changes.clone()), ["d/7"], "only the difference is reported");
    changes.clear();
    native.tree.rescan(&mut changes);
    assert_eq!(changes, []);
}

#[test]
fn directories_beyond_the_limit_of_watches_are_compared_instead() {
    let place = Place::new();
    for name in ["a", "b", "c", "d"] {
        place.write(&format!("src/{name}/f"), "1");
    }
    let mut native = Native::new(place.scope("[\"src/\"]"), 4).unwrap();
    assert_eq!(native.tree.directory_count(), 6);
    assert_eq!(native.tree.unwatched_count(), 2);
    for name in ["a", "b", "c", "d"] {
        place.write(&format!("src/{name}/g"), "1");
    }
    let mut seen = native.read().unwrap().changes;
    assert_eq!(paths(seen.clone()).len(), 2);
    native.tree.rescan_unwatched(&mut seen);
    assert_eq!(paths(seen), ["src/a/g", "src/b/g", "src/c/g", "src/d/g"]);
}

#[test]
fn a_backend_set_up_anew_misses_nothing() {
    let place = Place::new();
    place.write("src/a", "1");
    let mut native = place.native("[\"src/\"]");
    place.write("src/b", "1");
    assert_eq!(paths(native.recreate().unwrap()), ["src/b"]);
    place.write("src/c", "1");
    assert_eq!(changed(&mut native), ["src/c"]);
}

#[test]
fn scanning_sees_equal_sizes_and_equal_times_of_young_files() {
    let place = Place::new();
    place.write("src/a", "one");
    let mut tree = Tree::new(place.scope("[\"src/\"]"), Scanner, true);
    tree.build();
    let mut changes = Vec::new();
    tree.rescan(&mut changes);
    assert_eq!(changes, []);
    let file = std::fs::File::options()
        .write(true)
        .open(place.path("src/a"))
        .unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    std::io::Write::write_all(&mut &file, b"two").unwrap();
    file.set_modified(before).unwrap();
    tree.rescan(&mut changes);
    assert_eq!(paths(changes), ["src/a"]);
}

#[test]
fn a_scan_follows_directories_as_the_kernel_does() {
    let place = Place::new();
    let mut tree = Tree::new(place.scope("[\"content/\"]"), Scanner, true);
    tree.build();
    let mut scan = || {
        let mut changes = Vec::new();
        tree.rescan(&mut changes);
        paths(changes)
    };
    place.write("content/x/p", "1");
    assert_eq!(scan(), ["content/x/p"]);
    std::fs::rename(place.path("content/x"), place.path("content/y")).unwrap();
    assert_eq!(scan(), ["content/x/p", "content/y/p"]);
    std::fs::remove_dir_all(place.path("content")).unwrap();
    assert_eq!(scan(), ["content/y/p"]);
    assert_eq!(scan(), [""; 0]);
}

#[test]
fn own_files_are_told_apart() {
    let text = "watch.w.paths = [\"*\"]\nworkflow.w.steps = [{ action = \"notify_reload\" }]\n\
                process.p = { command = [\"x\"], log = \"logs/p.log\" }\n";
    let config = crate::config::check(
        Path::new("/r/devloop.toml"),
        text,
        crate::config::RemoteBind::Refuse,
    );
    let own = OwnFiles::new(&config.config.unwrap());
    for path in ["logs/p.log", "logs/p.log.1", "logs/p.log.3"] {
        assert!(own.contains(path), "{path}");
    }
    for path in ["logs/p.log.4", "logs/p.logs", "logs/q.log"] {
        assert!(!own.contains(path), "{path}");
    }
    for path in [
        ".devloop/state.json",
        ".devloop/state.json.tmp-12",
        ".devloop/state.json.lock",
        ".devloop/loop.sock",
        ".devloop/events.log",
        ".devloop/events.log.1",
        ".devloop/events.log.new",
        ".devloop/detached.json.tmp-12",
    ] {
        assert!(own.contains(path), "{path}");
    }
    for path in [
        ".devloop/other",
        "state.json",
        ".devloop/state.json.bak",
        "events.log",
        "x/events.log",
    ] {
        assert!(!own.contains(path), "{path}");
    }
}

/// A watcher that goes tells what happened before: the one that takes its place took that for the beginning.
#[tokio::test]
async fn what_happened_before_a_watcher_goes_is_told() {
    use std::sync::mpsc;

    use crate::config::{Watcher, WatcherKind};

    for kind in [WatcherKind::Native, WatcherKind::Poll] {
        let place = Place::new();
        place.write("src/a", "1");
        let watcher = Watcher {
            kind,
            poll_interval_ms: if kind == WatcherKind::Poll { 200 } else { 600_000 },
        };
        let ((heard, told), (go_on, waits)) = (mpsc::channel(), mpsc::channel());
        let teller: Teller = Box::new(move |notice| {
            let Notice::Changed(changes, _) = notice else {
                return true;
            };
            heard.send(paths(changes)).unwrap();
            // It is busy with this one while the next change is made and the watcher goes.
            waits.recv().is_ok()
        });
        let watching = start(place.scope("[\"src/**\"]"), watcher, teller).await.unwrap();
        place.write("src/b", "1");
        assert_eq!(told.recv().unwrap(), ["src/b"]);
        place.write("src/c", "1");
        drop(watching);
        // The kernel may tell of one change in several pieces.
        let mut later = Vec::new();
        while !later.contains(&"src/c".to_owned()) {
            go_on.send(()).unwrap();
            later.extend(told.recv().expect("the change before the end"));
        }
        drop(go_on);
        assert!(told.recv().is_err(), "it has ended");
    }
}
