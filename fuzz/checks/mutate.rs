//! The same mutations on every run: seeds in, broken seeds out.

/// A sequence that looks random and can be seen again.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

/// `count` mutations of the seeds, each with a few cuts, flips and splices.
pub fn each_mutation(seeds: &[Vec<u8>], count: usize, mut look: impl FnMut(&[u8])) {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for seed in seeds {
        look(seed);
    }
    for _ in 0..count {
        let mut bytes = seeds[numbers.below(seeds.len())].clone();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(bytes.len() + 1);
            match numbers.below(6) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, numbers.below(256) as u8),
                2 if at < bytes.len() => bytes[at] = numbers.below(256) as u8,
                3 if at < bytes.len() => bytes[at] ^= 1 << numbers.below(8),
                4 if at < bytes.len() => {
                    bytes.remove(at);
                }
                _ => {
                    let other = &seeds[numbers.below(seeds.len())];
                    let from = numbers.below(other.len() + 1);
                    let to = from + numbers.below(other.len() + 1 - from);
                    let piece = other[from..to].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes.truncate(64 << 10);
        look(&bytes);
    }
}
