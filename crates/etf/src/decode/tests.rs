use num_bigint::BigInt;
use proptest::prelude::*;

use super::{DecodeError, Limits, decode};
use crate::{Term, encode};

fn read(bytes: &[u8]) -> Result<Term, DecodeError> {
    decode(bytes, Limits::default())
}

/// Terms in the form the decoder answers: big integers only outside `i64`, tails never lists.
fn terms() -> impl Strategy<Value = Term> {
    let leaf = prop_oneof![
        "[a-zA-Z@$:_é]{0,40}".prop_map(Term::atom),
        any::<i64>().prop_map(Term::Integer),
        any::<i128>().prop_map(|n| i64::try_from(n).map_or(Term::BigInteger(BigInt::from(n)), Term::Integer)),
        proptest::num::f64::NORMAL.prop_map(Term::Float),
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Term::Binary),
        proptest::collection::vec(any::<u8>(), 0..300)
            .prop_map(|bytes| Term::list(bytes.into_iter().map(|byte| Term::Integer(i64::from(byte))))),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Term::Tuple),
            proptest::collection::vec(inner.clone(), 0..8).prop_map(Term::List),
            proptest::collection::vec(inner.clone(), 1..4)
                .prop_map(|elements| Term::ImproperList(elements, Box::new(Term::atom("end")))),
            proptest::collection::vec((inner.clone(), inner), 0..6).prop_map(Term::Map),
        ]
    })
}

proptest! {
    #[test]
    fn reading_what_was_written_gives_the_same_term(term in terms()) {
        prop_assert_eq!(read(&encode(&term)), Ok(term));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        drop(read(&bytes));
        let mut marked = vec![131];
        marked.extend(bytes);
        drop(read(&marked));
    }

    #[test]
    fn every_cut_is_reported(term in terms(), cut in any::<prop::sample::Index>()) {
        let bytes = encode(&term);
        let kept = cut.index(bytes.len());
        prop_assert!(read(&bytes[..kept]).is_err());
    }

    #[test]
    fn damaged_bytes_never_panic(term in terms(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = encode(&term);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        drop(read(&bytes));
    }
}

#[test]
fn claimed_lengths_do_not_allocate() {
    for tag in [105, 108, 109, 111, 116] {
        assert!(matches!(
            read(&[131, tag, 0xff, 0xff, 0xff, 0xff]),
            Err(DecodeError::Truncated { .. })
        ));
    }
}

#[test]
fn deep_nesting_is_refused() {
    let mut bytes = vec![131];
    bytes.extend(std::iter::repeat_n([104, 1], 100_000).flatten());
    bytes.push(106);
    assert_eq!(read(&bytes), Err(DecodeError::TooDeep { limit: 256 }));
}

#[test]
fn bytes_after_the_term_are_refused() {
    assert_eq!(read(&[131, 106, 106]), Err(DecodeError::Trailing { count: 1 }));
}

#[test]
fn long_input_is_refused_before_reading() {
    let limits = Limits {
        bytes: 2,
        ..Limits::default()
    };
    assert_eq!(
        decode(&[131, 106, 106], limits),
        Err(DecodeError::TooLong { length: 3, limit: 2 })
    );
}

#[test]
fn nested_tails_are_one_list() {
    let bytes = [131, 108, 0, 0, 0, 1, 97, 1, 108, 0, 0, 0, 1, 97, 2, 106];
    assert_eq!(read(&bytes), Ok(Term::list([Term::Integer(1), Term::Integer(2)])));
}

#[test]
fn counts_every_term() {
    let term = Term::list((0..9).map(Term::Integer));
    let bytes = crate::encode(&term);
    let limits = |elements| Limits {
        elements,
        ..Limits::default()
    };
    assert_eq!(decode(&bytes, limits(20)), Ok(term));
    assert_eq!(decode(&bytes, limits(5)), Err(DecodeError::TooMany { limit: 5 }));
}
