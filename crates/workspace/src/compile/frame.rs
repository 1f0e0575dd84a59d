//! Framing of the worker's pipe: a length, a JSON text with its length, byte strings with theirs.

use std::io::{self, ErrorKind, Read, Write};

/// No job or answer is longer; a 16 MiB source would be refused before.
pub(crate) const FRAME_LIMIT: usize = 256 * 1024 * 1024;

pub(crate) fn encode(json: &[u8], blobs: &[Vec<u8>]) -> io::Result<Vec<u8>> {
    let parts = || std::iter::once(json).chain(blobs.iter().map(Vec::as_slice));
    let total: usize = parts().map(|part| part.len() + 4).sum();
    let mut frame = Vec::with_capacity(total + 4);
    frame.extend(length(total)?.to_be_bytes());
    for part in parts() {
        frame.extend(length(part.len())?.to_be_bytes());
        frame.extend(part);
    }
    Ok(frame)
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length)
        .ok()
        .filter(|length| *length as usize <= FRAME_LIMIT)
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the frame is too long"))
}

/// The JSON text and the byte strings of a frame without its first length.
pub(crate) fn decode(mut rest: &[u8]) -> io::Result<(&[u8], Vec<Vec<u8>>)> {
    let mut next = || -> io::Result<Option<&[u8]>> {
        if rest.is_empty() {
            return Ok(None);
        }
        let broken = || io::Error::new(ErrorKind::InvalidData, "the frame is broken");
        let (header, after) = rest.split_first_chunk::<4>().ok_or_else(broken)?;
        let length = u32::from_be_bytes(*header) as usize;
        let (part, after) = after.split_at_checked(length).ok_or_else(broken)?;
        rest = after;
        Ok(Some(part))
    };
    let json = next()?.unwrap_or_default();
    let mut blobs = Vec::new();
    while let Some(blob) = next()? {
        blobs.push(blob.to_vec());
    }
    Ok((json, blobs))
}

/// The next frame of a blocking pipe; `None` at its end.
pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut header = [0; 4];
    match input.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let total = u32::from_be_bytes(header) as usize;
    if total > FRAME_LIMIT {
        return Err(io::Error::new(ErrorKind::InvalidData, "the frame is too long"));
    }
    let mut frame = vec![0; total];
    input.read_exact(&mut frame)?;
    Ok(Some(frame))
}

pub(crate) fn write(output: &mut impl Write, json: &[u8], blobs: &[Vec<u8>]) -> io::Result<()> {
    output.write_all(&encode(json, blobs)?)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_come_back(json in prop::collection::vec(any::<u8>(), 0..50),
                            blobs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..4)) {
            let frame = encode(&json, &blobs).expect("short");
            let mut input = frame.as_slice();
            let inner = read(&mut input).expect("whole").expect("one frame");
            let (found, found_blobs) = decode(&inner).expect("whole");
            prop_assert_eq!(found, json.as_slice());
            prop_assert_eq!(found_blobs, blobs);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            drop(decode(&bytes));
            drop(read(&mut bytes.as_slice()));
        }
    }
}
