//! `MAJOR.MINOR`: minor versions only add.

pub const PROTOCOL: &str = "1.1";

/// The version both sides speak: same major, the lower minor. `None` when the majors differ.
pub fn negotiate(wanted: &str) -> Option<String> {
    let (major, minor) = parts(wanted)?;
    let (our_major, our_minor) = parts(PROTOCOL)?;
    (major == our_major).then(|| format!("{major}.{}", minor.min(our_minor)))
}

fn parts(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = version.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(major) || !is_number(minor) {
        return None;
    }
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::negotiate;

    #[test]
    fn the_lower_minor_of_the_same_major_is_used() {
        assert_eq!(negotiate("1.0").as_deref(), Some("1.0"));
        assert_eq!(negotiate("1.7").as_deref(), Some("1.1"));
        for other in ["2.0", "0.9", "1", "", "1.x", "+1.0", "1.0.0", "99999999999.0"] {
            assert_eq!(negotiate(other), None, "{other}");
        }
    }
}
