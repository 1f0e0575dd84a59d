//! Any bytes as terminal output: no panic, no control character left.

pub fn check(bytes: &[u8]) {
    let text = beamtalk_agents::clean(bytes);
    assert!(
        text.chars()
            .all(|letter| matches!(letter, '\n' | '\t') || !letter.is_control())
    );
    assert!(beamtalk_agents::clean_path(&text).starts_with('/'));
}
