//! Any text as a config of the loop: no panic; what is wrong with it is said.

use std::path::Path;

use beamtalk_loop::config::{RemoteBind, check as read};

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let loaded = read(Path::new("/strange/devloop.toml"), text, RemoteBind::Refuse);
    assert!(
        loaded.config.is_some() || !loaded.errors.is_empty(),
        "refused without a word"
    );
}
