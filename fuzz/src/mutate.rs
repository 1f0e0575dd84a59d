//! Inputs made from others.

/// A sequence that looks random and can be seen again.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    31,
    32,
    63,
    64,
    100,
    127,
    128,
    255,
    256,
    511,
    512,
    1000,
    1024,
    4095,
    4096,
    32767,
    32768,
    65535,
    65536,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    u64::MAX,
];

/// A changed copy of `base`; pieces come from `other` and from the words of the target.
pub(crate) fn mutate(
    numbers: &mut Numbers,
    base: &[u8],
    other: &[u8],
    words: &[&[u8]],
    length: usize,
) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for _ in 0..1 << numbers.below(5) {
        step(numbers, &mut bytes, other, words, length);
    }
    bytes.truncate(length);
    bytes
}

fn range(numbers: &mut Numbers, length: usize) -> (usize, usize) {
    let from = numbers.below(length + 1);
    let most = (length - from).min(1 << numbers.below(9));
    (from, from + numbers.below(most + 1))
}

fn step(numbers: &mut Numbers, bytes: &mut Vec<u8>, other: &[u8], words: &[&[u8]], length: usize) {
    let at = numbers.below(bytes.len() + 1);
    let is_inside = at < bytes.len();
    match numbers.below(14) {
        0 => {
            let (from, to) = range(numbers, bytes.len());
            bytes.drain(from..to);
        }
        1 => bytes.insert(at, numbers.below(256) as u8),
        2 if is_inside => bytes[at] = numbers.below(256) as u8,
        3 if is_inside => bytes[at] ^= 1 << numbers.below(8),
        4 if is_inside => {
            bytes[at] = bytes[at].wrapping_add((numbers.below(17) as u8).wrapping_sub(8));
        }
        5 => {
            let (from, to) = range(numbers, bytes.len());
            let piece = bytes[from..to].to_vec();
            bytes.splice(at..at, piece);
        }
        6 | 7 => {
            let (from, to) = range(numbers, other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        8 if !words.is_empty() => {
            let word = words[numbers.below(words.len())];
            bytes.splice(at..at, word.iter().copied());
        }
        9 if !words.is_empty() => {
            let word = words[numbers.below(words.len())];
            let end = (at + word.len()).min(bytes.len());
            bytes.splice(at..end, word.iter().copied());
        }
        10 => {
            let number = NUMBERS[numbers.below(NUMBERS.len())];
            let width = 1 << numbers.below(4);
            let all = if numbers.below(2) == 0 {
                number.to_le_bytes()[..width].to_vec()
            } else {
                number.to_be_bytes()[8 - width..].to_vec()
            };
            let end = (at + width).min(bytes.len());
            bytes.splice(at..end, all);
        }
        11 => {
            let number = NUMBERS[numbers.below(NUMBERS.len())];
            bytes.splice(at..at, number.to_string().into_bytes());
        }
        12 => {
            // The same many times.
            let piece = {
                let (from, to) = range(numbers, bytes.len());
                bytes[from..to].to_vec()
            };
            let many = piece.repeat(1 << numbers.below(6));
            bytes.splice(at..at, many.into_iter().take(length));
        }
        _ => {
            // The rest of another input.
            let from = numbers.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
    }
    bytes.truncate(2 * length);
}
