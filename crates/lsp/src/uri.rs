//! URIs of documents: files, unsaved documents, sources of the library and of the running image.

use std::path::{Path, PathBuf};

use gen_lsp_types::Uri;

/// Sources of the standard library, read-only.
pub(crate) const LIBRARY: &str = "beamtalk-stdlib";
/// Sources as the running image has them, read-only.
pub(crate) const LIVE: &str = "beamtalk-live";

/// The scheme of a URI; none if it is no URI.
pub(crate) fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let is_word = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_word.then_some(scheme)
}

/// The file that a URI names.
pub(crate) fn to_path(uri: &str) -> Option<PathBuf> {
    if !scheme(uri)?.eq_ignore_ascii_case("file") {
        return None;
    }
    let (_, rest) = uri.split_once(':')?;
    let path = match rest.strip_prefix("//") {
        // `file://localhost/x` is `/x`; another machine's files are not ours.
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => rest,
    };
    let path = path.split(['?', '#']).next()?;
    let bytes = decode(path)?;
    let text = String::from_utf8(bytes).ok()?;
    (text.starts_with('/') && !text.contains('\0')).then(|| PathBuf::from(text))
}

pub(crate) fn of_path(path: &Path) -> Uri {
    Uri(format!("file://{}", encode(&path.to_string_lossy())))
}

/// What stands behind the scheme of a document that is no file, decoded.
pub(crate) fn name(uri: &str) -> Option<String> {
    let (_, rest) = uri.split_once(':')?;
    let rest = rest.split(['?', '#']).next()?;
    String::from_utf8(decode(rest.trim_start_matches('/'))?).ok()
}

pub(crate) fn of_library(file: &str) -> Uri {
    Uri(format!("{LIBRARY}:/{}", encode(file)))
}

/// The difference between image and disk of a file of a project.
pub(crate) fn of_difference(root: &Path, file: &str) -> Uri {
    let root = encode(&root.to_string_lossy());
    Uri(format!("{LIVE}:/diff/{}?root={root}", encode(file)))
}

/// What a document of the image is about: a class, or the difference of a file, with the project if it is named.
pub(crate) fn of_image(uri: &str) -> Option<(String, Option<PathBuf>)> {
    let root = uri.split_once("?root=").and_then(|(_, root)| decode(root));
    let root = root
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map(PathBuf::from);
    Some((name(uri)?, root))
}

pub(crate) fn of_live_class(root: &Path, class: &str) -> Uri {
    let root = encode(&root.to_string_lossy());
    Uri(format!("{LIVE}:/{}?root={root}", encode(class)))
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else { return None };
        let digit = |byte: u8| char::from(byte).to_digit(16);
        bytes.push(u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()?);
        rest = tail;
    }
    Some(bytes)
}

pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain =
            byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'.' | b'_' | b'~' | b'+' | b'@');
        if is_plain {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_survive_the_way_there_and_back() {
        for path in ["/a/b c.bt", "/ü/é%20.bt", "/x#y?z.bt", "/"] {
            let uri = of_path(Path::new(path));
            assert_eq!(to_path(&uri.0), Some(PathBuf::from(path)), "{uri}");
        }
    }

    #[test]
    fn what_names_no_file_has_no_path() {
        for uri in [
            "",
            "x",
            ":",
            "untitled:Untitled-1",
            "file://other/x",
            "file:///%zz",
            "file:///%",
            "file:///a%00b",
            "http://x/y",
        ] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }

    #[test]
    fn other_spellings_mean_the_same_file() {
        for uri in [
            "file:///a%2Fb",
            "file:/a/b",
            "FILE:///a/b",
            "file://localhost/a/b",
        ] {
            assert_eq!(to_path(uri), Some(PathBuf::from("/a/b")), "{uri}");
        }
    }
}
