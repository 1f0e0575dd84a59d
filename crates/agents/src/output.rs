//! Captured terminal output: segments of equal size, so that an offset names a place for ever.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use rustix::buffer::spare_capacity;

use crate::bytelog::Signal;
use crate::error::refusal;
use crate::files;

/// Bytes per segment.
pub(crate) const SEGMENT: u64 = 4 << 20;

pub(crate) fn segment_path(directory: &Path, index: u64) -> PathBuf {
    directory.join(format!("{index:06}.log"))
}

/// The indexes of the segments on disk, in order.
pub(crate) fn segments(directory: &Path) -> Vec<u64> {
    let mut found: Vec<u64> = files::names(directory)
        .iter()
        .filter_map(|name| name.strip_suffix(".log")?.parse().ok())
        .collect();
    found.sort_unstable();
    found
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

/// The output of one session.
pub(crate) struct Output {
    directory: PathBuf,
    extent: Mutex<Extent>,
    pub(crate) signal: Signal,
    limit: u64,
}

impl Output {
    pub(crate) fn open(directory: PathBuf, limit: u64) -> std::io::Result<Self> {
        files::make_directory(&directory)?;
        let output = Output {
            directory,
            extent: Mutex::new(Extent::default()),
            signal: Signal::default(),
            limit,
        };
        output.refresh();
        Ok(output)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn extent(&self) -> Extent {
        *self
            .extent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Look at the files again; tells how many bytes are new.
    pub(crate) fn refresh(&self) -> u64 {
        let all = segments(&self.directory);
        let new = match (all.first(), all.last()) {
            (Some(first), Some(last)) => {
                let length =
                    std::fs::metadata(segment_path(&self.directory, *last)).map_or(0, |meta| meta.len());
                Extent {
                    base: first * SEGMENT,
                    end: last * SEGMENT + length,
                }
            }
            _ => Extent::default(),
        };
        let mut extent = self
            .extent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let grown = new.end.saturating_sub(extent.end);
        *extent = new;
        drop(extent);
        if new.end - new.base > self.limit
            && let Some(oldest) = all.first()
            && all.len() > 1
            && std::fs::remove_file(segment_path(&self.directory, *oldest)).is_ok()
        {
            return grown + self.refresh();
        }
        if grown > 0 {
            self.signal.bump();
        }
        grown
    }

    /// At most `count` bytes from `offset` on; empty at the end.
    pub(crate) fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>, Refusal> {
        self.read_with(&mut None, offset, count)
    }

    /// The same, keeping the segment open for the next read.
    pub(crate) fn read_with(
        &self,
        open: &mut Option<(u64, File)>,
        offset: u64,
        count: usize,
    ) -> Result<Vec<u8>, Refusal> {
        let extent = self.extent();
        if offset < extent.base {
            return Err(refusal("output trimmed"));
        }
        let wanted = count.min(usize::try_from(extent.end.saturating_sub(offset)).unwrap_or(count));
        let mut out = Vec::with_capacity(wanted);
        while out.len() < wanted {
            let at = offset + out.len() as u64;
            let index = at / SEGMENT;
            if open.as_ref().is_none_or(|(known, _)| *known != index) {
                let file = File::open(segment_path(&self.directory, index))
                    .map_err(|_| refusal("output trimmed"))?;
                *open = Some((index, file));
            }
            let Some((_, file)) = open else { break };
            match rustix::io::pread(&*file, spare_capacity(&mut out), at % SEGMENT) {
                Ok(0) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(refusal("output trimmed")),
            }
        }
        out.truncate(wanted);
        Ok(out)
    }

    /// Everything from `offset` on, at most the last `limit` bytes of it.
    pub(crate) fn tail(&self, offset: u64, limit: u64) -> Vec<u8> {
        let extent = self.extent();
        let from = offset.max(extent.base).max(extent.end.saturating_sub(limit));
        self.read(from, limit as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Extent, Output, SEGMENT, segment_path};

    fn grow(directory: &std::path::Path, index: u64, bytes: &[u8]) {
        crate::files::appender(&segment_path(directory, index))
            .unwrap()
            .write_all(bytes)
            .unwrap();
    }

    #[test]
    fn offsets_run_over_segments_and_old_ones_are_trimmed() {
        let base = tempfile::tempdir().unwrap();
        let output = Output::open(base.path().join("output"), SEGMENT + 100).unwrap();
        grow(output.directory(), 0, &vec![b'a'; SEGMENT as usize]);
        grow(output.directory(), 1, b"bcd");
        assert_eq!(output.refresh(), SEGMENT + 3);
        assert_eq!(output.read(SEGMENT - 1, 10).unwrap(), b"abcd");
        assert_eq!(output.read(SEGMENT + 3, 10).unwrap(), b"");
        grow(output.directory(), 1, &[b'e'; 200]);
        assert_eq!(output.refresh(), 200);
        assert_eq!(
            output.extent(),
            Extent {
                base: SEGMENT,
                end: SEGMENT + 203
            }
        );
        assert_eq!(output.read(5, 10).unwrap_err().text, "output trimmed");
        assert_eq!(output.tail(0, 2), b"ee");
    }
}
