//! "Did you mean": the nearest known name.

/// The candidate at the smallest edit distance, if that is at most three and less than half of the name; of selectors equally
/// near, one with as many arguments.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 3.min(name.chars().count().div_ceil(2));
    let arguments = |selector: &str| selector.matches(':').count();
    let wanted = arguments(name);
    candidates
        .map(|candidate| {
            let distance = strsim::levenshtein(name, candidate);
            (distance, arguments(candidate) != wanted, candidate)
        })
        .filter(|(distance, _, _)| *distance <= limit && *distance > 0)
        .min()
        .map(|(_, _, candidate)| candidate)
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
        assert_eq!(nearest("ab:", ["abc", "ax:"].into_iter()), Some("ax:"));
        assert_eq!(nearest("Zebra", ["Integer", "Float"].into_iter()), None);
    }
}
