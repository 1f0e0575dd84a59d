//! "Did you mean": the nearest known name.

/// The candidate at the smallest edit distance, if that is at most three and less than half of the name.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 3.min(name.chars().count().div_ceil(2));
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit && *distance > 0)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and substitutions that turn one word into the other.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = i;
        let mut previous = i + 1;
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let cost = if a == *b {
                diagonal
            } else {
                1 + diagonal.min(previous).min(*cell)
            };
            diagonal = *cell;
            *cell = cost;
            previous = cost;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("Tnak", "Tank"), 2);
        assert_eq!(distance("Tank", "Tank"), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
    }

    #[test]
    fn nearest_ignores_far_names() {
        assert_eq!(
            nearest("Intger", ["Integer", "Float"].into_iter()),
            Some("Integer")
        );
        assert_eq!(nearest("Zebra", ["Integer", "Float"].into_iter()), None);
    }
}
