//! Disks that are full or cannot be written, and homes behind a link: what is said, and what is not done.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::desk::{Desk, done, kill};

/// A small disk under a directory; `None` where mounting one takes rights we lack.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn new(path: PathBuf) -> Option<Self> {
        fs::create_dir_all(&path).unwrap();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs"])
            .arg(&path);
        if done(&mut mount).code != 0 {
            return None;
        }
        Some(Self { path })
    }

    /// Use up all that is left.
    fn fill(&self) {
        let mut dd = Command::new("dd");
        let file = format!("of={}", self.filler().display());
        let full = done(dd.args(["if=/dev/zero", "bs=4096", &file]));
        assert!(full.err.contains("No space left"), "{full:?}");
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }

    fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    fn remount(&self, how: &str) {
        let mut mount = Command::new("mount");
        let mounted = done(mount.args(["-o", &format!("remount,{how}")]).arg(&self.path));
        assert_eq!(mounted.code, 0, "{mounted:?}");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(done(Command::new("umount").arg("-l").arg(&self.path)));
        if let Some(directory) = self.path.parent() {
            drop(fs::remove_dir_all(directory));
        }
    }
}

/// A desk whose home is a small disk; its workspaces end before the disk goes.
struct Small {
    desk: Desk,
    disk: Disk,
}

impl Small {
    fn new(name: &str) -> Option<Self> {
        let desk = Desk::new(name);
        let disk = Disk::new(desk.state())?;
        Some(Self { desk, disk })
    }
}

/// Evaluate something that leaves a file; says if it ran.
fn runs(desk: &Desk, name: &str) -> bool {
    let file = desk.project().join(name);
    let code = format!("File writeAll: \"{}\" contents: \"x\"", file.display());
    let ended = desk.run(&["eval", &code]);
    let has_run = file.exists();
    assert_eq!(ended.code == 0, has_run, "what is refused did not run: {ended:?}");
    if !has_run {
        assert!(ended.err.contains("nothing was done"), "{ended:?}");
        assert!(
            ended.err.contains("audit.log") && ended.err.contains("No space left"),
            "{ended:?}"
        );
    }
    has_run
}

#[test]
fn a_full_disk_does_not_end_the_workspace() {
    let Some(Small { desk, disk }) = &Small::new("fullhome") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    desk.run(&["workspace", "start"]).expect(0);
    desk.run(&["eval", "Workspace bind: 42 as: #keep"]).expect(0);
    disk.fill();
    for number in 0..30 {
        let answer = desk.run(&["eval", &format!("{number} + 1")]).expect(0);
        assert_eq!(answer.out, format!("{}\n", number + 1));
    }
    disk.free();
    assert_eq!(
        desk.run(&["eval", "keep"]).expect(0).out,
        "42\n",
        "the image is the same"
    );
    desk.run(&["workspace", "stop"]).expect(0);
}

#[test]
fn nothing_runs_whose_record_cannot_be_written() {
    let Some(Small { desk, disk }) = &Small::new("fulldisk") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    desk.run(&["workspace", "start", "--audit-required"]).expect(0);
    assert!(runs(desk, "first"));
    desk.run(&["workspace", "audit", "verify"]).expect(0);
    let begun = desk.run(&["workspace", "audit", "--type", "begin"]).expect(0).out;
    assert!(begun.contains("op=eval") && begun.contains("sha256="), "{begun}");

    disk.fill();
    // The last page of the file has room for a few more.
    let last = (0..40).find(|number| !runs(desk, &format!("page-{number}")));
    assert!(last.is_some(), "the disk is full");
    assert!(!runs(desk, "second"));
    assert!(!runs(desk, "third"));
    let is_refused = |number: usize| {
        let created = desk.run(&["workspace", "token", "create", &format!("laptop-{number}")]);
        if created.code == 0 {
            return false;
        }
        assert!(!created.out.contains("btk_"), "{created:?}");
        assert!(created.err.contains("No space left"), "{created:?}");
        true
    };
    assert!((0..40).any(is_refused), "no right is given unrecorded");
    let status = desk.run(&["workspace", "status"]).expect(0).out;
    assert!(
        status.contains("cannot be written") && status.contains("lost"),
        "{status}"
    );
    // Looking needs no record.
    let found = desk.run(&["workspace", "audit", "verify"]).expect(1);
    assert!(
        found.out.contains("missing") && !found.out.contains("none missing"),
        "{found:?}"
    );

    disk.free();
    assert!(runs(desk, "fourth"));
    let found = desk.run(&["workspace", "audit", "verify"]).expect(1);
    assert!(found.err.contains("could not be written"), "{found:?}");
    let verdict = desk
        .run(&["--json", "workspace", "audit", "verify"])
        .expect(1)
        .json();
    assert!(verdict["missing"].as_u64().unwrap() >= 3, "{verdict}");
    desk.run(&["workspace", "stop"]).expect(0);
}

#[test]
fn what_ran_is_never_called_refused_and_losses_survive_a_kill() {
    let Some(Small { desk, disk }) = &Small::new("fillsup") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    // Records with texts longer than a page: no room is left for one by chance.
    desk.run(&["workspace", "start", "--audit-required", "--audit-text"])
        .expect(0);
    assert!(runs(desk, "first"));
    // The evaluation itself uses up the disk, so that its outcome cannot be recorded.
    let code = format!(
        "Erlang os cmd: \"dd if=/dev/zero bs=4096 of={} 2>/dev/null; echo ran\" // {}",
        disk.filler().display(),
        "x".repeat(10_000)
    );
    let ended = desk.run(&["eval", &code]).expect(0);
    assert!(ended.out.contains("ran"), "{ended:?}");
    assert!(
        ended.err.contains("its outcome could not be recorded"),
        "{ended:?}"
    );
    let last = (0..40).find(|number| !runs(desk, &format!("page-{number}")));
    assert!(last.is_some(), "the disk is full");
    kill(desk.info()["pid"].as_u64().unwrap());
    disk.free();
    let found = desk.run(&["workspace", "audit", "verify"]).expect(1);
    assert!(!found.out.contains("none missing"), "{found:?}");
    assert!(runs(desk, "third"));
    let found = desk.run(&["workspace", "audit", "verify"]).expect(1);
    assert!(found.err.contains("could not be written"), "{found:?}");
    desk.run(&["workspace", "stop"]).expect(0);
}

#[test]
fn a_home_that_cannot_be_written_is_named_with_its_cause() {
    let Some(Small { desk, disk }) = &Small::new("nohome") else {
        println!("skipped: mounting a small disk needs root");
        return;
    };
    let home = desk.state().display().to_string();
    disk.fill();
    for words in [
        &["eval", "1"][..],
        &["workspace", "start"],
        &["workspace", "token", "create", "x"],
        &["tls", "init"],
    ] {
        let refused = desk.run(words).expect(5);
        assert!(
            refused.err.contains("No space left on device"),
            "{words:?} {refused:?}"
        );
        assert!(refused.err.contains(&home), "{words:?} {refused:?}");
        assert!(
            refused.err.contains("make room on the disk"),
            "{words:?} {refused:?}"
        );
    }
    disk.free();
    disk.remount("ro");
    for words in [&["eval", "1"][..], &["workspace", "start"], &["tls", "init"]] {
        let refused = desk.run(words).expect(5);
        assert!(
            refused.err.contains("Read-only file system"),
            "{words:?} {refused:?}"
        );
        assert!(refused.err.contains(&home), "{words:?} {refused:?}");
        assert!(refused.err.contains("mounted read-only"), "{words:?} {refused:?}");
    }
    disk.remount("rw");
    assert_eq!(desk.run(&["eval", "3 + 4"]).expect(0).out, "7\n");
    desk.run(&["workspace", "stop"]).expect(0);
}

#[test]
fn a_home_behind_a_link_is_resolved_once_and_named() {
    let desk = Desk::new("linked");
    let real = desk.project().join("real");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let link = desk.project().join("link");
    symlink(&real, &link).unwrap();
    let run = |home: &Path, words: &[&str]| done(desk.command(words).env("BEAMTALK_HOME", home));
    run(&link, &["workspace", "start"]).expect(0);
    let status = run(&link, &["--json", "workspace", "status"]).expect(0).json();
    let real_path = real.display().to_string();
    assert_eq!(status["home"], real_path.as_str());
    assert!(
        status["socket"].as_str().unwrap().starts_with(&real_path),
        "{status}"
    );
    let told = run(&link, &["workspace", "status"]).expect(0).out;
    assert!(told.contains(&real_path) && !told.contains("/link"), "{told}");
    // By either name it is the same one.
    assert_eq!(
        run(&real, &["--json", "workspace", "status"]).expect(0).json()["pid"],
        status["pid"]
    );
    // A link that leads elsewhere later does not take the running one with it.
    let other = desk.project().join("other");
    fs::create_dir(&other).unwrap();
    fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert_eq!(run(&real, &["eval", "3 + 4"]).expect(0).out, "7\n");
    assert!(
        fs::read_dir(&other).unwrap().next().is_none(),
        "nothing of it is there"
    );
    run(&real, &["workspace", "stop"]).expect(0);
}

#[test]
fn what_a_killed_writer_left_in_the_change_log_goes() {
    let desk = Desk::new("leftover");
    desk.run(&["eval", "Lamp >> isOn => true"]).expect(0);
    let changes = desk.workspace().join("changes");
    kill(desk.info()["pid"].as_u64().unwrap());
    let left = [changes.join(".tmp-0123"), changes.join("sources/.tmp-4567")];
    for file in &left {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "half").unwrap();
    }
    desk.run(&["eval", "1"]).expect(0);
    for file in &left {
        assert!(!file.exists(), "{}", file.display());
    }
}
