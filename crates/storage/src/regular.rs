//! Reading a file whose place others can write to: whatever stands there, reading it ends.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{self, Mode, OFlags};

/// The content of a regular file of at most `limit` bytes. Anything else in its place, such as a pipe that nobody
/// writes to, a device or a directory, is an error at once.
pub fn read_regular(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for its other end unless told not to; a regular file does not care.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let too_large = || io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {limit} bytes"));
    if found.len() > limit {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(found.len()).unwrap_or_default());
    // It may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(bytes)
}

/// The largest text of a person that is read whole.
const MAX_TEXT: u64 = 64 << 20;

/// A text that a person wrote, such as a source file. Whatever else stands in its place is an error at once.
pub fn read_written(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path, MAX_TEXT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::read_regular;

    /// A regular file within the limit is read, also through a link; everything else is refused without waiting.
    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let base = tempfile::tempdir().unwrap();
        let place = |name: &str| base.path().join(name);
        std::fs::write(place("file"), "12345").unwrap();
        symlink("file", place("link")).unwrap();
        assert_eq!(read_regular(&place("file"), 5).unwrap(), b"12345");
        assert_eq!(read_regular(&place("link"), 5).unwrap(), b"12345");
        assert_eq!(
            read_regular(&place("file"), 4).unwrap_err().kind(),
            std::io::ErrorKind::FileTooLarge
        );
        mknodat(CWD, place("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        symlink("pipe", place("to-pipe")).unwrap();
        symlink("nowhere", place("nowhere")).unwrap();
        std::fs::create_dir(place("directory")).unwrap();
        let _socket = UnixListener::bind(place("socket")).unwrap();
        let sparse = std::fs::File::create(place("sparse")).unwrap();
        sparse.set_len(3 << 30).unwrap();
        for odd in [
            "pipe",
            "to-pipe",
            "nowhere",
            "directory",
            "socket",
            "sparse",
            "missing",
        ] {
            assert!(read_regular(&place(odd), 1 << 20).is_err(), "{odd}");
        }
        assert!(read_regular(std::path::Path::new("/dev/zero"), 1 << 20).is_err());
    }
}
