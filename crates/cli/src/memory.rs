//! Memory of a server that waits. Starting and the first calls go through much of the program once; what was needed for
//! that is given back to the system, which reads it again from the file should it be needed.

/// Give back the pages of code, and what the allocator holds free.
#[cfg(target_os = "linux")]
pub(crate) fn give_back() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    for (start, length) in maps.lines().filter_map(code) {
        discard(start, length);
    }
    trim();
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn give_back() {}

/// Start and length of a mapping, if it is code of a file.
#[cfg(any(target_os = "linux", test))]
fn code(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let file = words.nth(2)?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
    (rights == "r-xp" && file != "0").then_some((start, length))
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "rustix is built without its calls for memory")]
fn discard(start: usize, length: usize) {
    let place = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: these pages were mapped from a file and cannot be written, so the next use finds the same in them again.
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
    fn only_code_of_files_is_given_back() {
        let code_of =
            |rights: &str, file: &str| code(&format!("1000-3000 {rights} 0000 fe:00 {file} /bin/x"));
        assert_eq!(code_of("r-xp", "77"), Some((0x1000, 0x2000)));
        for (rights, file) in [
            ("r--p", "77"),
            ("rw-p", "77"),
            ("rwxp", "77"),
            ("r-xs", "77"),
            ("r-xp", "0"),
        ] {
            assert_eq!(code_of(rights, file), None, "{rights} {file}");
        }
        assert_eq!(code("nonsense"), None);
        // What runs now goes on.
        give_back();
    }
}
