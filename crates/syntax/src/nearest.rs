//! Names close to a misspelt one.

/// At most `count` candidates within a small edit distance, nearest first; upper and lower case are equal.
pub fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1) + 1;
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .map(|candidate| (strsim::levenshtein(&wanted, &candidate.to_lowercase()), candidate))
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

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_close_names_are_offered() {
        assert_eq!(nearest("verson", ["version", "name", "licenses"], 3), ["version"]);
        assert_eq!(nearest("VERSION", ["version", "name"], 3), ["version"]);
        assert!(nearest("zzz", ["version", "name"], 3).is_empty());
    }
}
