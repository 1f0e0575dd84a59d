//! What the operating system refuses, as the library reports it: the kind, and a message with receiver and selector.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Done, Place, finish};

/// A user that owns nothing.
const STRANGER: u32 = 65_534;

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn run(command: &mut Command) -> Done {
    finish(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

fn allow(place: &Place, path: &str, mode: u32) {
    fs::set_permissions(place.directory().join(path), Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_stranger_is_told_what_is_denied() {
    let place = Place::new();
    for (path, mode) in [("secret", 0o000), ("plain", 0o444), ("script.sh", 0o444)] {
        place.write(path, "#!/bin/sh\n");
        allow(&place, path, mode);
    }
    place.write("closed/in", "x");
    place.write("fixed/file", "x");
    place.write("denied.btscript", include_str!("denied.btscript"));
    allow(&place, "closed", 0o000);
    allow(&place, "fixed", 0o555);
    fs::create_dir(place.home()).unwrap();
    for path in [place.home(), place.directory()] {
        belongs_to_stranger(&path);
    }
    let Some(mut command) = as_stranger(&place, &["test", "denied.btscript"]) else {
        return;
    };
    let done = run(&mut command);
    for path in ["closed", "fixed"] {
        allow(&place, path, 0o755);
    }
    done.expect_code(0);
}

/// Nothing is refused to root, so the test becomes somebody else.
fn belongs_to_stranger(path: &Path) {
    if is_root() {
        chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
    }
}

/// The command as somebody who owns nothing here; `None` where the binary is out of reach for them.
fn as_stranger(place: &Place, arguments: &[&str]) -> Option<Command> {
    let program = place.command(arguments);
    if !is_root() {
        return Some(program);
    }
    if !reaches_the_binary() {
        return None;
    }
    fs::set_permissions(place.home().parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(place.directory())
        .env("BEAMTALK_HOME", place.home());
    Some(command)
}

/// A project that cannot be written is there to be looked at and evaluated.
#[test]
fn a_read_only_project_is_evaluated() {
    let place = Place::with_project();
    place.write("src/Lamp.bt", "Object subclass: Lamp\n  class watts => 40\n");
    let _ = fs::remove_dir_all(place.home());
    fs::create_dir(place.home()).unwrap();
    fs::set_permissions(place.home(), Permissions::from_mode(0o700)).unwrap();
    belongs_to_stranger(&place.home());
    for path in ["src", "."] {
        allow(&place, path, 0o555);
    }
    let outcome = as_stranger(&place, &["repl", "-e", "Lamp watts + 2"]).map(|mut command| run(&mut command));
    if let Some(mut stop) = as_stranger(&place, &["workspace", "stop", "--force"]) {
        run(&mut stop);
    }
    for path in ["src", "."] {
        allow(&place, path, 0o755);
    }
    if let Some(done) = outcome {
        assert_eq!(done.expect_code(0).stdout, "42\n");
    }
    assert!(!place.directory().join("_build").exists());
}

fn reaches_the_binary() -> bool {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"])
        .args([env!("CARGO_BIN_EXE_beamtalk"), "--version"]);
    command.output().is_ok_and(|output| output.status.success())
}

/// A file system of 64 kB, mounted where nobody else sees it.
#[test]
fn a_full_disk_is_told() {
    let place = Place::new();
    fs::create_dir(place.directory().join("disk")).unwrap();
    place.write("full.btscript", include_str!("full_disk.btscript"));
    let program = place.command(&["test", "full.btscript"]);
    let mut command = Command::new("unshare");
    command
        .args(if is_root() {
            &["--mount"][..]
        } else {
            &["--user", "--map-root-user", "--mount"]
        })
        .args([
            "sh",
            "-c",
            "mount -t tmpfs -o size=64k tmpfs disk || exit 99; exec \"$0\" \"$@\"",
        ])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(place.directory())
        .env("BEAMTALK_HOME", place.home());
    let done = run(&mut command);
    if done.code == Some(99) || done.stderr.contains("unshare") {
        println!(
            "skipped: this machine lets nobody mount a file system: {}",
            done.stderr
        );
        return;
    }
    done.expect_code(0);
}
