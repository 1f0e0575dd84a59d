//! What can be a file of the image.

pub(crate) use beamtalk_wire::file_name::{decode, encode};

/// Whether a method can be called so: a name, keywords, or signs.
pub(crate) fn is_selector(text: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    if let Some(keywords) = text.strip_suffix(':') {
        return keywords.split(':').all(is_name);
    }
    let is_sign = |c: char| "+-*/\\%=<>~&|@,!?^#$".contains(c);
    is_name(text) || (!text.is_empty() && text.chars().all(is_sign))
}

/// Whether a class can be called so.
pub(crate) fn is_class(name: &str) -> bool {
    name.starts_with(char::is_uppercase) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_editors_for_their_own_files_are_no_selectors() {
        for text in ["", "is on", "4913", "press~", ".press.swp", "a:b", "#press#"] {
            assert!(!is_selector(text), "{text}");
        }
        for text in ["press", "at:put:", "<=", "//", "->"] {
            assert!(is_selector(text), "{text}");
        }
    }
}
