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
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        let mut next = vec![previous];
        for (b, above) in right.iter().zip(row.iter().skip(1)) {
            previous = (above + 1).min(previous + 1).min(diagonal + usize::from(a != b));
            diagonal = *above;
            next.push(previous);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
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
