//! What a session has used, as its backend reports it, and the limit it was given. Nothing is estimated.

use std::path::Path;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::files;

/// What one turn used; what was not reported is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Amount {
    pub(crate) seconds: f64,
    pub(crate) tokens_in: Option<u64>,
    pub(crate) tokens_out: Option<u64>,
    pub(crate) cost: Option<f64>,
}

/// What all turns used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) turns: u64,
    #[serde(flatten)]
    pub(crate) total: Amount,
    pub(crate) last: Option<Amount>,
}

/// Programs may report anything: what is too much stays the most there is.
fn sum<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(add(one, other)),
        (one, other) => one.or(other),
    }
}

fn sum_tokens(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    sum(one, other, u64::saturating_add)
}

impl Usage {
    pub(crate) fn read(directory: &Path) -> Self {
        let bytes = files::read_limited(&directory.join("usage.json"), 1 << 16);
        bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default()
    }

    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        files::replace(&directory.join("usage.json"), self.to_json().as_bytes())
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Count a turn.
    pub(crate) fn add(&mut self, turn: Amount) {
        self.turns += 1;
        self.total = Amount {
            seconds: self.total.seconds + turn.seconds,
            tokens_in: sum_tokens(self.total.tokens_in, turn.tokens_in),
            tokens_out: sum_tokens(self.total.tokens_out, turn.tokens_out),
            cost: sum(self.total.cost, turn.cost, |one, other| {
                (one + other).min(f64::MAX)
            }),
        };
        self.last = Some(turn);
    }
}

/// What a turn's text reports: the last line that matches counts, with the groups `in`, `out` and `cost`.
pub(crate) fn reported(pattern: Option<&Regex>, text: &str, ms: u64) -> Amount {
    let found = pattern.and_then(|pattern| pattern.captures_iter(text).last());
    // `1,234` and `12k` are how programs write such numbers.
    let number = |name: &str| {
        let text = found.as_ref()?.name(name)?.as_str().replace([',', '_'], "");
        let (digits, scale) = match text.strip_suffix(['k', 'K']) {
            Some(digits) => (digits.to_owned(), 1000.0),
            None => (text, 1.0),
        };
        let value: f64 = digits.parse().ok()?;
        (value.is_finite() && value >= 0.0).then_some(value * scale)
    };
    Amount {
        seconds: ms as f64 / 1000.0,
        tokens_in: number("in").map(|count| count as u64),
        tokens_out: number("out").map(|count| count as u64),
        cost: number("cost"),
    }
}

/// A limit; prompts are refused once it is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Budget {
    cost: Option<f64>,
    tokens: Option<u64>,
    turns: Option<u64>,
}

impl Budget {
    /// `cost=1.5 tokens=20000 turns=10`, any of them; nothing is no limit.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut budget = Self::default();
        for word in text.split_whitespace() {
            match word.split_once('=')? {
                ("cost", value) => {
                    let cost: f64 = value.parse().ok()?;
                    budget.cost = Some(cost).filter(|cost| cost.is_finite() && *cost >= 0.0);
                    budget.cost?;
                }
                ("tokens", value) => budget.tokens = Some(value.parse().ok()?),
                ("turns", value) => budget.turns = Some(value.parse().ok()?),
                _ => return None,
            }
        }
        Some(budget)
    }

    pub(crate) fn is_reached(&self, usage: &Usage) -> bool {
        let total = &usage.total;
        let tokens = sum_tokens(total.tokens_in, total.tokens_out);
        let cost = matches!((self.cost, total.cost), (Some(limit), Some(used)) if used >= limit);
        let tokens = matches!((self.tokens, tokens), (Some(limit), Some(used)) if used >= limit);
        cost || tokens || self.turns.is_some_and(|limit| usage.turns >= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reported_stays_unknown() {
        let pattern = Regex::new(r"in (?<in>\S+) out (?<out>\S+)(?: cost \$(?<cost>\S+))?").unwrap();
        let mut usage = Usage::default();
        usage.add(reported(Some(&pattern), "in 1,200 out 3k cost $0.25\nbye", 1500));
        usage.add(reported(Some(&pattern), "nothing here", 500));
        assert_eq!(usage.turns, 2);
        assert_eq!(usage.total.tokens_in, Some(1200));
        assert_eq!(usage.total.tokens_out, Some(3000));
        assert_eq!(usage.total.cost, Some(0.25));
        assert_eq!(usage.last.unwrap().tokens_in, None);
        assert_eq!(reported(None, "in 1 out 2", 0).tokens_in, None);
        let back: Usage = serde_json::from_str(&usage.to_json()).unwrap();
        assert_eq!(back, usage);
    }

    /// A program that reports as much as there is neither ends the daemon nor gets its budget back.
    #[test]
    fn too_much_stays_too_much() {
        let much = Amount {
            seconds: 1.0,
            tokens_in: Some(u64::MAX),
            tokens_out: Some(u64::MAX),
            cost: Some(f64::MAX),
        };
        let mut usage = Usage::default();
        usage.add(much);
        usage.add(much);
        let back: Usage = serde_json::from_str(&usage.to_json()).unwrap();
        assert_eq!(
            (back.total.tokens_in, back.total.cost),
            (Some(u64::MAX), Some(f64::MAX))
        );
        for limit in ["cost=5", "tokens=5"] {
            assert!(Budget::parse(limit).unwrap().is_reached(&back), "{limit}");
        }
    }

    #[test]
    fn a_budget_is_reached_by_what_was_reported_only() {
        let budget = Budget::parse("tokens=100 turns=3\n").unwrap();
        let mut usage = Usage::default();
        usage.add(Amount::default());
        assert!(!budget.is_reached(&usage));
        usage.add(Amount {
            tokens_in: Some(60),
            tokens_out: Some(40),
            ..Amount::default()
        });
        assert!(budget.is_reached(&usage));
        assert!(Budget::parse("turns=0").unwrap().is_reached(&Usage::default()));
        assert!(!Budget::parse("").unwrap().is_reached(&usage));
        for bad in ["cost", "cost=x", "cost=-1", "cost=NaN", "hours=3", "turns=1.5"] {
            assert_eq!(Budget::parse(bad), None, "{bad}");
        }
    }
}
