//! The counters that the compiler puts into the code.

use std::sync::Mutex;

/// Where the counters of each part of the program are.
static RANGES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called for each part of the program before `main`.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, stop: *mut u8) {
    if let Ok(mut ranges) = RANGES.lock() {
        let range = (start as usize, stop as usize);
        if range.0 < range.1 && !ranges.contains(&range) {
            ranges.push(range);
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_start: *const usize, _stop: *const usize) {}

/// What was reached so far, by counter: a bit for each power of two of how often.
pub(crate) struct Coverage {
    counters: Vec<&'static mut [u8]>,
    reached: Vec<Vec<u8>>,
}

impl Coverage {
    pub(crate) fn new() -> Self {
        let ranges = RANGES.lock().map(|ranges| ranges.clone()).unwrap_or_default();
        let counters: Vec<&'static mut [u8]> = ranges
            .into_iter()
            // SAFETY: the compiler hands over memory of this size that lives as long as the program; only the code that
            // counts writes to it, on this thread.
            .map(|(start, stop)| unsafe { std::slice::from_raw_parts_mut(start as *mut u8, stop - start) })
            .collect();
        let reached = counters.iter().map(|part| vec![0; part.len()]).collect();
        Self { counters, reached }
    }

    /// How many places there are, and how many were reached.
    pub(crate) fn size(&self) -> (usize, usize) {
        let all = self.reached.iter().map(Vec::len).sum();
        let seen = self.reached.iter().flatten().filter(|bits| **bits != 0).count();
        (all, seen)
    }

    pub(crate) fn clear(&mut self) {
        for part in &mut self.counters {
            part.fill(0);
        }
    }

    /// Whether the last run reached something new.
    pub(crate) fn is_new(&mut self) -> bool {
        let mut is_new = false;
        for (part, reached) in self.counters.iter().zip(&mut self.reached) {
            // Most counters are zero: eight at a time.
            for (counts, seen) in part.chunks(8).zip(reached.chunks_mut(8)) {
                if <[u8; 8]>::try_from(counts).is_ok_and(|counts| u64::from_ne_bytes(counts) == 0) {
                    continue;
                }
                for (count, bits) in counts.iter().zip(seen) {
                    if *count != 0 {
                        let bit = 1 << (7 - count.leading_zeros().min(7));
                        is_new |= *bits & bit == 0;
                        *bits |= bit;
                    }
                }
            }
        }
        is_new
    }
}
