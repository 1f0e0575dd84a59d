//! Names close to a misspelt one.

/// At most `count` candidates within a small edit distance, nearest first.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let limit = (wanted.chars().count() / 3).max(1) + 1;
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|candidate| (distance(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored
        .into_iter()
        .take(count)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Levenshtein distance, upper and lower case being equal.
fn distance(left: &str, right: &str) -> usize {
    strsim::levenshtein(&left.to_lowercase(), &right.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("Same", "same"), 0);
    }

    #[test]
    fn only_close_names_are_offered() {
        assert_eq!(nearest("verson", ["version", "name", "licenses"], 3), ["version"]);
        assert!(nearest("zzz", ["version", "name"], 3).is_empty());
    }
}
