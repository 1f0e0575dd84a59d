//! Trees and files on top of the requests.

use std::time::Duration;

use super::{Client, Pending};
use crate::error::{Error, Refusal};
use crate::message::{Dialect, Names, Payload, Reply, Request};
use crate::stat::{Stat, mode};

/// Files that are read together. Their answers fit into what a server lets wait for its client.
const BATCH: usize = 32;

/// Fids, or why there is none.
type Fids = Vec<Result<u32, Error>>;

/// An attached tree; paths are relative to its root.
pub struct Attachment {
    client: Client,
    fid: u32,
}

/// An open file.
pub struct File {
    client: Client,
    fid: u32,
    iounit: u32,
    offset: u64,
    open: bool,
}

fn names(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

impl Attachment {
    pub(super) fn new(client: Client, fid: u32) -> Self {
        Attachment { client, fid }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A new fid for `path`.
    pub fn walk(&self, path: &str) -> Result<u32, Error> {
        let newfid = self.client.new_fid();
        let names = names(path);
        let mut from = self.fid;
        let mut chunks = names.chunks(16).peekable();
        loop {
            let chunk = chunks.next().unwrap_or_default();
            let outcome = self.client.call(&Request::Walk {
                fid: from,
                newfid,
                wname: Names(chunk.to_vec()),
            });
            let missing = match outcome {
                Ok(Reply::Walk { wqid }) if wqid.len() == chunk.len() => None,
                Ok(Reply::Walk { wqid }) => Some(self.why_not(from, chunk, wqid.len())),
                Ok(_) => Some(Error::Refused(Refusal::NOT_FOUND)),
                Err(error) => Some(error),
            };
            if let Some(error) = missing {
                if from == newfid {
                    self.clunk(newfid);
                }
                return Err(error);
            }
            from = newfid;
            if chunks.peek().is_none() {
                return Ok(newfid);
            }
        }
    }

    /// Why a walk ended after `steps`: only a walk that fails at its first step is told.
    fn why_not(&self, from: u32, names: &[String], steps: usize) -> Error {
        let there = self.client.new_fid();
        let (before, after) = names.split_at_checked(steps).unwrap_or_default();
        let walk = |fid, newfid, names: &[String]| {
            let wname = Names(names.to_vec());
            self.client.call(&Request::Walk { fid, newfid, wname })
        };
        match walk(from, there, before) {
            Ok(Reply::Walk { wqid }) if wqid.len() == steps => {}
            _ => return Error::Refused(Refusal::NOT_FOUND),
        }
        let refused = walk(there, there, after.get(..1).unwrap_or_default());
        self.clunk(there);
        refused.err().unwrap_or(Error::Refused(Refusal::NOT_FOUND))
    }

    fn clunk(&self, fid: u32) {
        // A fid that cannot be clunked is gone all the same.
        drop(self.client.call(&Request::Clunk { fid }));
    }

    /// Open with the modes of 9P2000: 0 read, 1 write, 2 both, plus 0x10 to truncate.
    pub fn open(&self, path: &str, mode: u8) -> Result<File, Error> {
        let fid = self.walk(path)?;
        let request = match self.client.dialect() {
            Dialect::Plan9 => Request::Open { fid, mode },
            Dialect::Linux => {
                let truncate = if mode & 0x10 == 0 { 0 } else { 0o1000 };
                Request::Lopen {
                    fid,
                    flags: u32::from(mode & 3) | truncate | 0o4000,
                }
            }
        };
        self.opened(fid, &request)
    }

    fn opened(&self, fid: u32, request: &Request) -> Result<File, Error> {
        match self.client.call(request) {
            Ok(Reply::Open { iounit, .. } | Reply::Lopen { iounit, .. } | Reply::Create { iounit, .. }) => {
                Ok(File::new(self.client.clone(), fid, iounit))
            }
            Ok(other) => Err(Error::Unexpected {
                asked: "Topen",
                got: other.name().to_owned(),
            }),
            Err(error) => {
                self.clunk(fid);
                Err(error)
            }
        }
    }

    pub fn create(&self, path: &str, perm: u32, mode: u8) -> Result<File, Error> {
        let (directory, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let fid = self.walk(directory)?;
        self.opened(
            fid,
            &Request::Create {
                fid,
                name: name.to_owned(),
                perm,
                mode,
            },
        )
    }

    pub fn remove(&self, path: &str) -> Result<(), Error> {
        let fid = self.walk(path)?;
        self.client.call(&Request::Remove { fid }).map(drop)
    }

    /// The stat of a file; 9P2000 only.
    pub fn stat(&self, path: &str) -> Result<Stat, Error> {
        let fid = self.walk(path)?;
        let outcome = self.client.call(&Request::Stat { fid });
        self.clunk(fid);
        match outcome? {
            Reply::Stat { stat } => Ok(stat),
            other => Err(Error::Unexpected {
                asked: "Tstat",
                got: other.name().to_owned(),
            }),
        }
    }

    /// The entries of a directory in the server's order; 9P2000 only.
    pub fn list(&self, path: &str) -> Result<Vec<Stat>, Error> {
        let bytes = self.open(path, 0)?.read_to_end()?;
        Stat::entries(&bytes).map_err(|_| Error::Malformed)
    }

    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        let mut file = self.open(path, 0)?;
        let bytes = file.read_to_end()?;
        file.close()?;
        Ok(bytes)
    }

    /// The contents of files of one directory, of about the lengths that are told, asked for together: one after the
    /// other each would cost the way there and back five times. What cannot be read is an error of its own.
    pub fn read_all(
        &self,
        directory: &str,
        files: &[(&str, u64)],
    ) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        let from = self.walk(directory)?;
        let mut contents = Vec::with_capacity(files.len());
        for batch in files.chunks(BATCH) {
            match self.read_batch(from, batch) {
                Ok(read) => contents.extend(read),
                Err(error) => {
                    self.clunk(from);
                    return Err(error);
                }
            }
        }
        self.clunk(from);
        // What does not fit into one answer is read as everything else.
        for (content, (name, length)) in contents.iter_mut().zip(files) {
            if *length >= u64::from(self.one_read()) && content.is_ok() {
                *content = self.read(&format!("{directory}/{name}"));
            }
        }
        Ok(contents)
    }

    /// The bytes that one answer can carry.
    fn one_read(&self) -> u32 {
        self.client.msize() - 24
    }

    fn read_batch(&self, from: u32, files: &[(&str, u64)]) -> Result<Vec<Result<Vec<u8>, Error>>, Error> {
        let mut fids: Fids = files.iter().map(|_| Ok(self.client.new_fid())).collect();
        self.each(&mut fids, |fid, at| Request::Walk {
            fid: from,
            newfid: fid,
            wname: Names(
                files
                    .get(at)
                    .map(|(name, _)| (*name).to_owned())
                    .into_iter()
                    .collect(),
            ),
        })?;
        let mut walked: Fids = fids.iter().flatten().copied().map(Ok).collect();
        let dialect = self.client.dialect();
        self.each(&mut fids, |fid, _| match dialect {
            Dialect::Plan9 => Request::Open { fid, mode: 0 },
            Dialect::Linux => Request::Lopen { fid, flags: 0o4000 },
        })?;
        let read = self.each(&mut fids, |fid, at| Request::Read {
            fid,
            offset: 0,
            // One more than there should be: a file that grew meanwhile is seen to have.
            count: files
                .get(at)
                .and_then(|(_, length)| u32::try_from(length + 1).ok())
                .map_or(self.one_read(), |count| count.min(self.one_read())),
        })?;
        self.each(&mut walked, |fid, _| Request::Clunk { fid })?;
        let contents = fids.into_iter().zip(read).map(|(fid, reply)| match reply {
            Some(Reply::Read { data }) => Ok(data.as_ref().to_vec()),
            _ => Err(fid.err().unwrap_or(Error::Malformed)),
        });
        Ok(contents.collect())
    }

    /// Ask the same of each fid that is there, all at once. One whose question fails is not there any more.
    fn each(
        &self,
        fids: &mut Fids,
        request: impl Fn(u32, usize) -> Request,
    ) -> Result<Vec<Option<Reply>>, Error> {
        let numbered = fids.iter().enumerate();
        let requests: Vec<Request> = numbered
            .filter_map(|(at, fid)| Some(request(*fid.as_ref().ok()?, at)))
            .collect();
        let mut pending = self.client.start_all(&requests)?.into_iter();
        let mut replies = Vec::with_capacity(fids.len());
        for fid in fids {
            let asked = if fid.is_ok() { pending.next() } else { None };
            let reply = match asked.map(|asked| asked.wait(self.client.patience())) {
                Some(Err(error)) => {
                    *fid = Err(error);
                    None
                }
                Some(Ok(reply)) => Some(reply),
                None => None,
            };
            replies.push(reply);
        }
        Ok(replies)
    }

    pub fn read_text(&self, path: &str) -> Result<String, Error> {
        String::from_utf8(self.read(path)?).map_err(|_| Error::Malformed)
    }

    /// Open for writing with truncation, write everything, close.
    pub fn write(&self, path: &str, data: &[u8]) -> Result<(), Error> {
        let mut file = self.open(path, 0x11)?;
        file.write_document(data)?;
        file.close()
    }

    /// Write a request and read its answer on the same fid.
    pub fn rpc(&self, path: &str, data: &[u8]) -> Result<Vec<u8>, Error> {
        let mut file = self.open(path, 2)?;
        file.write_document(data)?;
        let bytes = file.read_to_end()?;
        file.close()?;
        Ok(bytes)
    }

    pub fn is_directory(&self, path: &str) -> Result<bool, Error> {
        Ok(self.stat(path)?.mode & mode::DIRECTORY != 0)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        self.clunk(self.fid);
    }
}

impl File {
    pub(super) fn new(client: Client, fid: u32, iounit: u32) -> Self {
        let iounit = if iounit == 0 { client.msize() - 24 } else { iounit };
        File {
            client,
            fid,
            iounit,
            offset: 0,
            open: true,
        }
    }

    /// Another handle on the same open file, for a thread that writes while this one reads.
    #[must_use]
    pub fn writer(&self) -> File {
        File {
            client: self.client.clone(),
            open: false,
            ..*self
        }
    }

    pub fn fid(&self) -> u32 {
        self.fid
    }

    pub fn iounit(&self) -> u32 {
        self.iounit
    }

    /// Ask for the next piece without waiting for it.
    pub fn start_read(&self) -> Result<Pending, Error> {
        self.client.start(&Request::Read {
            fid: self.fid,
            offset: self.offset,
            count: self.iounit,
        })
    }

    /// The next piece; empty at the end of the file.
    pub fn read_next(&mut self, limit: Option<Duration>) -> Result<Payload, Error> {
        let pending = self.start_read()?;
        self.finish_read(pending, limit)
    }

    /// Wait for a piece that was asked for.
    pub fn finish_read(&mut self, pending: Pending, limit: Option<Duration>) -> Result<Payload, Error> {
        self.taken(pending.wait(limit)?)
    }

    fn taken(&mut self, reply: Reply) -> Result<Payload, Error> {
        match reply {
            Reply::Read { data } => {
                self.offset += data.len() as u64;
                Ok(data)
            }
            other => Err(Error::Unexpected {
                asked: "Tread",
                got: other.name().to_owned(),
            }),
        }
    }

    /// The next piece, of at most `count` bytes. It is given up when nobody wants it any more, which is asked each time
    /// after `slice`.
    pub fn read_wanted(
        &mut self,
        count: u32,
        slice: Duration,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Payload, Error> {
        let mut pending = self.client.start(&Request::Read {
            fid: self.fid,
            offset: self.offset,
            count: count.min(self.iounit),
        })?;
        loop {
            match pending.wait_a_while(slice) {
                Ok(outcome) => return self.taken(outcome?),
                Err(waiting) if is_wanted() => pending = waiting,
                Err(waiting) => {
                    waiting.flush()?;
                    return Err(Error::TimedOut);
                }
            }
        }
    }

    pub fn read_to_end(&mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        loop {
            let piece = self.read_next(None)?;
            if piece.is_empty() {
                return Ok(bytes);
            }
            bytes.extend_from_slice(piece.as_ref());
        }
    }

    /// Start reading at `offset` next.
    pub fn seek(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// One write as it is; longer data than fits is cut into pieces.
    pub fn write_at(&self, mut offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut pieces = data.chunks(self.iounit as usize);
        loop {
            let piece = pieces.next().unwrap_or_default();
            self.client.call(&Request::Write {
                fid: self.fid,
                offset,
                data: Payload::from(piece.to_vec()),
            })?;
            offset += piece.len() as u64;
            if pieces.len() == 0 {
                return Ok(());
            }
        }
    }

    /// Send a whole document in as few writes as possible and make it take effect.
    pub fn write_document(&mut self, data: &[u8]) -> Result<(), Error> {
        self.write_at(0, data)?;
        let last = data.chunks(self.iounit as usize).last().map_or(0, <[u8]>::len);
        if last != 0 && (last.is_multiple_of(4096) || last == self.iounit as usize) {
            self.write_at(data.len() as u64, &[])?;
        }
        self.offset = 0;
        Ok(())
    }

    /// Clunk, telling what the server says to it.
    pub fn close(mut self) -> Result<(), Error> {
        self.open = false;
        self.client.call(&Request::Clunk { fid: self.fid }).map(drop)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.open {
            // Nobody is left to hear of an error.
            drop(self.client.call(&Request::Clunk { fid: self.fid }));
        }
    }
}
