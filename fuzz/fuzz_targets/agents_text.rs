//! Any bytes as terminal output or command line: no panic, no control character left.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = beamtalk_agents::clean(bytes);
    assert!(text.chars().all(|letter| matches!(letter, '\n' | '\t') || !letter.is_control()));
    drop(beamtalk_agents::split_words(&text));
    assert!(beamtalk_agents::clean_path(&text).starts_with('/'));
});
