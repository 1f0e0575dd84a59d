use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;

use super::{SessionName, WorkspaceId};
use crate::{Class, StorageError};

#[test]
fn ids_of_paths_are_the_documented_ones() {
    let id = |path: &str| WorkspaceId::for_root(Path::new(path)).unwrap().to_string();
    assert_eq!(id("/home/ada/orbit"), "d0dc08b498b6");
    assert_eq!(id("/srv/demo"), "926574b4279e");
}

#[test]
fn a_path_that_is_not_text_is_wrong_usage() {
    let error = WorkspaceId::for_root(Path::new(OsStr::from_bytes(b"/srv/\xff"))).unwrap_err();
    assert_eq!(error.class(), Class::Usage);
    assert_eq!(error.class().exit_code(), 2);
}

#[test]
fn names_that_are_none_are_refused_by_flag_and_by_variable() {
    assert_eq!(WorkspaceId::named("Orbit_2-x").unwrap().as_str(), "Orbit_2-x");
    let error = WorkspaceId::named("my orbit").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Workspace name must contain only letters, numbers, '-' or '_'"
    );
    assert_eq!(error.class(), Class::Usage);
    for name in ["", "..", "a/b", "a\\b", "a\0b", "ä", "shell-1", &"x".repeat(65)] {
        assert!(WorkspaceId::named(name).is_err(), "{name:?}");
    }
    assert!(WorkspaceId::named("shell-").is_ok());
    assert!(WorkspaceId::named("shell-1a").is_ok());

    let from =
        |value: &str| WorkspaceId::from_environment(OsStr::new(value)).map(|id| id.map(|id| id.to_string()));
    assert_eq!(from("").unwrap(), None);
    assert_eq!(from("my-orbit").unwrap().as_deref(), Some("my-orbit"));
    for name in ["a/b", "my orbit", "../ä", " ", "shell-77", &"x".repeat(65)] {
        let error = from(name).unwrap_err();
        assert!(matches!(error, StorageError::InvalidVariable { .. }), "{name:?}");
        assert_eq!(error.class(), Class::Usage);
        assert!(
            error.to_string().starts_with("BEAMTALK_WORKSPACE is '"),
            "{error}"
        );
    }
    assert!(WorkspaceId::from_environment(OsStr::from_bytes(b"a\xff")).is_err());
}

#[test]
fn sessions_are_named_after_the_workspace_or_the_terminal() {
    let id = WorkspaceId::named("orbit").unwrap();
    assert_eq!(SessionName::choose(Some(&id), 7).as_str(), "orbit");
    let terminal = SessionName::choose(None, 7);
    assert_eq!(terminal.as_str(), "shell-7");
    assert_eq!(terminal.beside(&id).as_str(), "shell-7-orbit");
    assert!(SessionName::parse("shell-7-orbit").is_ok());
    for name in ["", ".", "..", "a/b", "../x", "a.b"] {
        assert!(SessionName::parse(name).is_err(), "{name:?}");
    }
}

proptest! {
    #[test]
    fn every_root_has_a_name_that_is_safe_as_a_file(path in "/\\PC{0,80}") {
        let id = WorkspaceId::for_root(Path::new(&path)).unwrap();
        prop_assert_eq!(id.as_str().len(), 12);
        prop_assert!(id.as_str().bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
        prop_assert_eq!(WorkspaceId::named(id.as_str()).unwrap(), id);
    }

    #[test]
    fn no_text_becomes_an_id_that_leaves_its_directory(text in any::<String>()) {
        let names = [WorkspaceId::named(&text).ok(), WorkspaceId::from_environment(OsStr::new(&text)).ok().flatten()];
        for id in names.into_iter().flatten() {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            prop_assert!((1..=64).contains(&id.as_str().len()) && id.as_str().bytes().all(is_plain));
        }
    }
}
