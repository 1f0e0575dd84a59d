//! Any bytes as a term: no panic, bounded by the limits, and what was read is written and read alike.

use beamtalk_etf::{Limits, decode, encode};

pub fn check(bytes: &[u8]) {
    let limits = Limits {
        bytes: 1 << 20,
        depth: 64,
        elements: 10_000,
    };
    if let Ok(term) = decode(bytes, limits) {
        let again = encode(&term);
        assert_eq!(decode(&again, limits).as_ref(), Ok(&term));
    }
    drop(decode(bytes, Limits::default()));
}
