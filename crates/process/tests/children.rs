//! Programs started and stopped for real.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed; helpers are no exception"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use beamtalk_process::{Child, Error, Group, Spec, Stdin, Stop, find_program, spawn};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn shell(script: &str, directory: &Path, stdin: Stdin) -> Child {
    let spec = Spec {
        program: PathBuf::from("/bin/sh"),
        name: "sh".into(),
        arguments: vec!["-c".into(), script.into()],
        directory: directory.to_owned(),
        environment: BTreeMap::from([("GIVEN".into(), Some("value".into())), ("HOME".into(), None)]),
        stdin,
    };
    spawn(&spec).unwrap()
}

async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    child
        .take_stdout()
        .unwrap()
        .read_to_string(&mut text)
        .await
        .unwrap();
    text
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let limit = Duration::from_secs(30);
    runtime.block_on(async {
        tokio::time::timeout(limit, test)
            .await
            .expect("the test took too long");
    });
}

#[test]
fn a_child_gets_its_environment_and_directory_and_ends() {
    run(async {
        let place = tempfile::tempdir().unwrap();
        let here = place.path().canonicalize().unwrap();
        let mut child = shell("echo \"$GIVEN|$HOME|$PWD\"; cat", &here, Stdin::Null);
        assert_eq!(output(&mut child).await, format!("value||{}\n", here.display()));
        assert!(child.wait().await.unwrap().success());
        assert!(child.is_gone());
    });
}

#[test]
fn a_stop_ends_the_whole_group() {
    run(async {
        let mut child = shell("sleep 1000 & sleep 1000 & cat", Path::new("/"), Stdin::Held);
        let group = child.group();
        assert!(!group.is_empty());
        let began = Instant::now();
        child.stop(Stop::default()).await;
        assert!(began.elapsed() < Duration::from_secs(4));
        assert!(group.is_empty());
        // Once more is no trouble.
        child.stop(Stop::default()).await;
    });
}

#[test]
fn a_group_that_ignores_the_signal_is_killed_after_the_grace() {
    run(async {
        let mut child = shell(
            "trap '' TERM; echo up; while :; do sleep 1; done",
            Path::new("/"),
            Stdin::Held,
        );
        let mut byte = [0; 3];
        child.take_stdout().unwrap().read_exact(&mut byte).await.unwrap();
        let began = Instant::now();
        child
            .stop(Stop {
                grace: Duration::from_millis(300),
                ..Stop::default()
            })
            .await;
        assert!(began.elapsed() >= Duration::from_millis(300));
        assert!(child.group().is_empty());
    });
}

#[test]
fn leftovers_are_told_from_a_group_that_is_gone() {
    run(async {
        let mut child = shell("sleep 1000 >/dev/null 2>&1 &", Path::new("/"), Stdin::Null);
        assert!(child.wait().await.unwrap().success());
        assert!(!child.is_gone());
        child.stop(Stop::default()).await;
        assert!(child.is_gone());
    });
}

#[test]
fn descendants_that_left_the_group_are_stopped_too() {
    run(async {
        let script = "setsid sh -c 'echo $$; exec sleep 1000' & wait";
        let mut child = shell(script, Path::new("/"), Stdin::Held);
        let mut pipe = child.take_stdout().unwrap();
        let mut text = String::new();
        while !text.ends_with('\n') {
            text.push(char::from(pipe.read_u8().await.unwrap()));
        }
        let stray = Group::of(text.trim().parse().unwrap()).unwrap();
        assert!(!stray.is_empty());
        child.stop(Stop::default()).await;
        assert!(stray.is_empty());
    });
}

#[test]
fn a_held_input_stays_open_while_waiting_and_a_piped_one_can_be_written() {
    run(async {
        let mut child = shell("cat; echo end", Path::new("/"), Stdin::Held);
        assert!(
            tokio::time::timeout(Duration::from_millis(200), child.wait())
                .await
                .is_err()
        );
        child.stop(Stop::default()).await;
        let mut child = shell("read line; echo \"<$line>\"", Path::new("/"), Stdin::Piped);
        child.take_stdin().unwrap().write_all(b"word\n").await.unwrap();
        assert_eq!(output(&mut child).await, "<word>\n");
    });
}

#[test]
fn programs_are_found_as_documented() {
    let base = Path::new("/base");
    assert_eq!(find_program("/bin/x", base, None).unwrap(), Path::new("/bin/x"));
    assert_eq!(
        find_program("./bin/x", base, None).unwrap(),
        Path::new("/base/./bin/x")
    );
    assert_eq!(
        find_program("sh", base, Some("/nope:/bin".as_ref())).unwrap(),
        Path::new("/bin/sh")
    );
    assert!(matches!(
        find_program("sh", base, Some("/nope".as_ref())),
        Err(Error::NotOnPath { .. })
    ));
}

#[test]
fn what_cannot_start_says_why() {
    run(async {
        let mut spec = Spec {
            program: PathBuf::from("/no/such/program"),
            name: "x".into(),
            arguments: Vec::new(),
            directory: PathBuf::from("/"),
            environment: BTreeMap::new(),
            stdin: Stdin::Null,
        };
        assert!(matches!(spawn(&spec), Err(Error::Start { .. })));
        spec.program = PathBuf::from("/bin/sh");
        spec.directory = PathBuf::from("/no/such/directory");
        assert!(matches!(spawn(&spec), Err(Error::Directory { .. })));
    });
}
