//! "Did you mean": the nearest known name.

/// The candidate at the smallest edit distance, if that is at most three and less than half of the name.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 3.min(name.chars().count().div_ceil(2));
    candidates
        .map(|candidate| (strsim::levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit && *distance > 0)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_ignores_far_names() {
        assert_eq!(
            nearest("Intger", ["Integer", "Float"].into_iter()),
            Some("Integer")
        );
        assert_eq!(nearest("Zebra", ["Integer", "Float"].into_iter()), None);
    }
}
