//! Memory of a process that waits. Starting and the first calls go through much of the program once; what was needed for
//! that is given back to the system, which reads it again from the file should it be needed.

/// Give back the pages of code and constants, and what the allocator holds free.
#[cfg(target_os = "linux")]
pub fn give_back() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, length) in maps.lines().filter_map(unchanged) {
        discard(start, length);
    }
    trim();
}

#[cfg(not(target_os = "linux"))]
pub fn give_back() {}

/// Start and length of a mapping, if it is what the file has: code, or the constants before it, which begin with the head of
/// the file. Other mappings that cannot be written may have been until their addresses were entered.
#[cfg(any(target_os = "linux", test))]
fn unchanged(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = usize::from_str_radix(words.next()?, 16).ok()?;
    let file = words.nth(1)?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    let is_unchanged = rights == "r-xp" || rights == "r--p" && offset == 0;
    (is_unchanged && file != "0").then_some((start, length))
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix is built without its calls for memory")]
fn discard(start: usize, length: usize) {
    let place = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: these pages were mapped from a file and never written, so the next use finds the same in them again.
    let _ = unsafe { libc::madvise(place, length, libc::MADV_DONTNEED) };
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no crate of ours offers it")]
fn trim() {
    // SAFETY: it touches nothing that is in use.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(all(target_os = "linux", not(target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_files_have_is_given_back() {
        let of = |rights: &str, offset: &str, file: &str| {
            unchanged(&format!("1000-3000 {rights} {offset} fe:00 {file} /bin/x"))
        };
        assert_eq!(of("r-xp", "4000", "77"), Some((0x1000, 0x2000)));
        assert_eq!(of("r--p", "0000", "77"), Some((0x1000, 0x2000)));
        for (rights, offset, file) in [
            // Addresses that were entered at the start.
            ("r--p", "9000", "77"),
            ("rw-p", "0000", "77"),
            ("rwxp", "4000", "77"),
            ("r-xs", "4000", "77"),
            ("r-xp", "0000", "0"),
            ("r--p", "0000", "0"),
        ] {
            assert_eq!(of(rights, offset, file), None, "{rights} {offset} {file}");
        }
        assert_eq!(unchanged("nonsense"), None);
        // What runs now goes on.
        give_back();
    }
}
