//! Raw 9P over one socket, so that the server is measured and not a client library.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use beamtalk_ninep::{Dialect, MSIZE, NOFID, NOTAG, Names, NumericUser, Payload, Reply, Request, Stat};

pub(crate) struct Wire {
    stream: UnixStream,
    next_fid: u32,
    out: Vec<u8>,
    frame: Vec<u8>,
}

const PLAN9: Dialect = Dialect::Plan9;

impl Wire {
    pub(crate) fn attach(socket: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        let mut wire = Wire {
            stream,
            next_fid: 1,
            out: Vec::new(),
            frame: Vec::new(),
        };
        wire.send(
            NOTAG,
            &Request::Version {
                msize: MSIZE,
                version: "9P2000".to_owned(),
            },
        )?;
        wire.receive()?;
        let none = NumericUser::NONE;
        wire.call(&Request::Attach {
            fid: 0,
            afid: NOFID,
            uname: "bench".to_owned(),
            aname: String::new(),
            n_uname: none,
        })?;
        Ok(wire)
    }

    fn send(&mut self, tag: u16, request: &Request) -> anyhow::Result<()> {
        self.out.clear();
        request.encode(tag, PLAN9, &mut self.out);
        self.stream.write_all(&self.out)?;
        Ok(())
    }

    /// The next frame, kept in `frame`.
    fn receive_frame(&mut self) -> anyhow::Result<()> {
        let mut size = [0; 4];
        self.stream.read_exact(&mut size)?;
        self.frame.resize(u32::from_le_bytes(size) as usize - 4, 0);
        self.stream.read_exact(&mut self.frame)?;
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<Reply> {
        self.receive_frame()?;
        let number = self.frame.first().copied().unwrap_or_default();
        let body = self.frame.get(3..).unwrap_or_default();
        match Reply::decode(number, body, PLAN9) {
            Ok(Reply::Error { ename }) => anyhow::bail!(ename),
            Ok(reply) => Ok(reply),
            Err(fault) => anyhow::bail!("{fault:?}"),
        }
    }

    fn call(&mut self, request: &Request) -> anyhow::Result<Reply> {
        self.send(1, request)?;
        self.receive()
    }

    pub(crate) fn open(&mut self, path: &str, mode: u8) -> anyhow::Result<u32> {
        let newfid = self.next_fid;
        self.next_fid += 1;
        let names: Vec<String> = path.split('/').map(str::to_owned).collect();
        let wanted = names.len();
        match self.call(&Request::Walk {
            fid: 0,
            newfid,
            wname: Names(names),
        })? {
            Reply::Walk { wqid } if wqid.len() == wanted => {}
            _ => anyhow::bail!("{path}: not found"),
        }
        self.call(&Request::Open { fid: newfid, mode })?;
        Ok(newfid)
    }

    pub(crate) fn clunk(&mut self, fid: u32) -> anyhow::Result<()> {
        self.call(&Request::Clunk { fid }).map(drop)
    }

    /// One small read with a single receive, as a tuned client does it.
    pub(crate) fn read(&mut self, fid: u32, offset: u64, count: u32) -> anyhow::Result<Vec<u8>> {
        self.send(1, &Request::Read { fid, offset, count })?;
        let mut buffer = [0; 4096];
        let mut filled = 0;
        loop {
            let rest = buffer.get_mut(filled..).unwrap_or_default();
            let got = self.stream.read(rest)?;
            anyhow::ensure!(got > 0, "closed");
            filled += got;
            let size = buffer
                .first_chunk::<4>()
                .map_or(0, |size| u32::from_le_bytes(*size) as usize);
            if filled >= 4 && filled >= size {
                anyhow::ensure!(buffer.get(4) == Some(&117), "not a read");
                return Ok(buffer.get(11..size).unwrap_or_default().to_vec());
            }
        }
    }

    pub(crate) fn start_read(&mut self, fid: u32, count: u32) -> anyhow::Result<()> {
        // The fid is a good tag: each has one read under way.
        self.send(
            1000 + fid as u16,
            &Request::Read {
                fid,
                offset: 0,
                count,
            },
        )
    }

    pub(crate) fn await_read(&mut self) -> anyhow::Result<()> {
        match self.receive()? {
            Reply::Read { data } if !data.is_empty() => Ok(()),
            other => anyhow::bail!("{}", other.name()),
        }
    }

    pub(crate) fn write(&mut self, fid: u32, data: &[u8]) -> anyhow::Result<()> {
        self.call(&Request::Write {
            fid,
            offset: 0,
            data: Payload::from(data.to_vec()),
        })
        .map(drop)
    }

    pub(crate) fn list(&mut self, path: &str) -> anyhow::Result<Vec<String>> {
        let fid = self.open(path, 0)?;
        let mut names = Vec::new();
        let mut offset = 0;
        loop {
            match self.call(&Request::Read {
                fid,
                offset,
                count: MSIZE - 24,
            })? {
                Reply::Read { data } if data.is_empty() => break,
                Reply::Read { data } => {
                    offset += data.len() as u64;
                    let stats = Stat::entries(data.as_ref()).map_err(|fault| anyhow::anyhow!("{fault:?}"))?;
                    names.extend(stats.into_iter().map(|stat| stat.name));
                }
                other => anyhow::bail!("{}", other.name()),
            }
        }
        self.clunk(fid)?;
        Ok(names)
    }

    /// `total` reads with `depth` of them under way.
    pub(crate) fn pipeline(&mut self, fid: u32, depth: u32, count: u32, total: u32) -> anyhow::Result<()> {
        let mut batch = Vec::new();
        let mut buffer = vec![0; 65536];
        let mut waiting = 0_usize;
        let (mut sent, mut answered) = (0, 0);
        while answered < total {
            batch.clear();
            while sent < total && sent - answered < depth {
                Request::Read {
                    fid,
                    offset: 0,
                    count,
                }
                .encode((sent % 60_000) as u16, PLAN9, &mut batch);
                sent += 1;
            }
            self.stream.write_all(&batch)?;
            let got = self.stream.read(buffer.get_mut(waiting..).unwrap_or_default())?;
            anyhow::ensure!(got > 0, "closed");
            waiting += got;
            let mut start = 0;
            while let Some(rest) = buffer.get(start..waiting) {
                let Some(size) = beamtalk_ninep::frame_size(rest) else {
                    break;
                };
                let Some(frame) = rest.get(..size as usize) else {
                    break;
                };
                anyhow::ensure!(frame.get(4) == Some(&117), "not a read");
                answered += 1;
                start += size as usize;
            }
            buffer.copy_within(start..waiting, 0);
            waiting -= start;
        }
        Ok(())
    }

    /// Read a file of `length` bytes again and again until `total` bytes have come.
    pub(crate) fn stream(&mut self, fid: u32, length: u64, total: u64) -> anyhow::Result<u64> {
        const DEPTH: usize = 8;
        let count = 131_072_u32.min(MSIZE - 24);
        let mut offset = 0;
        let mut out = Vec::new();
        let mut ask = |wire: &mut Wire, tag: u16| {
            out.clear();
            Request::Read { fid, offset, count }.encode(tag, PLAN9, &mut out);
            offset = if offset + u64::from(count) >= length {
                0
            } else {
                offset + u64::from(count)
            };
            wire.stream.write_all(&out)
        };
        for tag in 0..DEPTH {
            ask(self, tag as u16)?;
        }
        let mut buffer = vec![0; 1 << 20];
        let (mut filled, mut seen) = (0_usize, 0_u64);
        while seen < total {
            let got = self.stream.read(buffer.get_mut(filled..).unwrap_or_default())?;
            anyhow::ensure!(got > 0, "closed");
            filled += got;
            let mut start = 0;
            while let Some(rest) = buffer.get(start..filled) {
                let Some(size) = beamtalk_ninep::frame_size(rest) else {
                    break;
                };
                let Some(frame) = rest.get(..size as usize) else {
                    break;
                };
                anyhow::ensure!(frame.get(4) == Some(&117), "not a read");
                seen += u64::from(size) - 11;
                let tag = frame
                    .get(5..7)
                    .and_then(<[u8]>::first_chunk::<2>)
                    .map_or(0, |tag| u16::from_le_bytes(*tag));
                start += size as usize;
                ask(self, tag)?;
            }
            buffer.copy_within(start..filled, 0);
            filled -= start;
        }
        for _ in 0..DEPTH {
            // What is still under way, so that the next run starts clean.
            while beamtalk_ninep::frame_size(buffer.get(..filled).unwrap_or_default())
                .is_none_or(|size| filled < size as usize)
            {
                let got = self.stream.read(buffer.get_mut(filled..).unwrap_or_default())?;
                anyhow::ensure!(got > 0, "closed");
                filled += got;
            }
            let size = beamtalk_ninep::frame_size(&buffer).unwrap_or(0) as usize;
            buffer.copy_within(size..filled, 0);
            filled -= size;
        }
        Ok(seen)
    }
}
