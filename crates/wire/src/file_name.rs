//! Selectors and other names as file names.

/// The file name of a name.
pub fn encode(name: &str) -> String {
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => name.replace('%', "%25").replace('/', "%2F"),
    }
}

/// The name a file name stands for; every name has one file name only.
pub fn decode(file: &str) -> Option<String> {
    let name = file.replace("%2E", ".").replace("%2F", "/").replace("%25", "%");
    (encode(&name) == file).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_name_has_one_file_name_without_a_slash() {
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
    }

    proptest! {
        #[test]
        fn file_names_lead_back_to_their_name(selector in "\\PC{1,12}") {
            let name = encode(&selector);
            prop_assert!(!name.contains('/') && name != "." && name != "..");
            prop_assert_eq!(decode(&name), Some(selector));
        }
    }
}
