//! Selectors as file names.

/// The file name of a selector.
pub(crate) fn encode(selector: &str) -> String {
    match selector {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => selector.replace('%', "%25").replace('/', "%2F"),
    }
}

/// The selector a file name stands for; every selector has one name only.
pub(crate) fn decode(name: &str) -> Option<String> {
    let selector = name.replace("%2E", ".").replace("%2F", "/").replace("%25", "%");
    (encode(&selector) == name).then_some(selector)
}

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_selector_has_one_name_without_a_slash() {
        for (selector, name) in [
            ("isOn", "isOn"),
            ("at:put:", "at:put:"),
            ("/", "%2F"),
            ("//", "%2F%2F"),
            ("%", "%25"),
            (".", "%2E"),
            ("..", "%2E%2E"),
        ] {
            assert_eq!(encode(selector), name);
            assert_eq!(decode(name).as_deref(), Some(selector));
        }
        for name in ["%", "%2f", "%41", "%2Ex", "."] {
            assert_eq!(decode(name), None, "{name}");
        }
        for text in ["", "is on", "4913", "press~", ".press.swp", "a:b", "#press#"] {
            assert!(!is_selector(text), "{text}");
        }
        for text in ["press", "at:put:", "<=", "//", "->"] {
            assert!(is_selector(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn names_lead_back_to_their_selector(selector in "\\PC{1,12}") {
            let name = encode(&selector);
            prop_assert!(!name.contains('/') && name != "." && name != "..");
            prop_assert_eq!(decode(&name), Some(selector));
        }
    }
}
