//! What a program calls its conversation, so that it can go on with it after a reboot.

use std::path::Path;

use regex::Regex;

use crate::files;

/// Text of an untrusted program becomes an argument of its next start: only plain words are kept.
pub(crate) fn is_plain(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && !id.starts_with('-')
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The last id that the text of a program tells, by the group `id` or the first one.
pub(crate) fn told(pattern: &Regex, text: &str) -> Option<String> {
    let found = pattern.captures_iter(text).last()?;
    let id = found.name("id").or_else(|| found.get(1))?.as_str();
    is_plain(id).then(|| id.to_owned())
}

/// The id a program wrote to a file; links are not followed.
pub(crate) fn written(path: &Path) -> Option<String> {
    let bytes = files::read_limited(path, 4096).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    Some(text.trim().to_owned()).filter(|id| is_plain(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_ids_are_kept() {
        let pattern = Regex::new(r"conversation: (\S+)").unwrap();
        let text = "conversation: first\nconversation: 0f-1.x_Y\n";
        assert_eq!(told(&pattern, text).as_deref(), Some("0f-1.x_Y"));
        let long = "a".repeat(129);
        for bad in ["--dangerous", "a;b", "$(id)", "../x", "", long.as_str()] {
            assert!(!is_plain(bad), "{bad}");
            assert_eq!(told(&pattern, &format!("conversation: {bad}\n")), None, "{bad}");
        }
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("id"), directory.path().join("link"));
        std::fs::write(&file, "abc\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(written(&file).as_deref(), Some("abc"));
        assert_eq!(written(&link), None);
    }
}
