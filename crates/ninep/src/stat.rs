//! Qids, stat entries and directory entries.

use crate::codec::{Cursor, DecodeFault, Field};
use crate::message::Dialect;

/// Mode bits of 9P2000.
pub mod mode {
    pub const DIRECTORY: u32 = 0x8000_0000;
    pub const APPEND: u32 = 0x4000_0000;
    pub const EXCLUSIVE: u32 = 0x2000_0000;
    pub const AUTH: u32 = 0x0800_0000;
    pub const TEMPORARY: u32 = 0x0400_0000;
}

/// What a qid says about its file, as the top byte of the mode.
pub struct QidKind;

impl QidKind {
    pub const DIRECTORY: u8 = 0x80;
    pub const APPEND: u8 = 0x40;
    pub const AUTH: u8 = 0x08;
    pub const FILE: u8 = 0;
}

/// The identity of a file as the server knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qid {
    pub kind: u8,
    pub version: u32,
    pub path: u64,
}

impl Qid {
    pub fn is_directory(self) -> bool {
        self.kind & QidKind::DIRECTORY != 0
    }
}

/// What `stat` tells about a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub kind: u16,
    pub device: u32,
    pub qid: Qid,
    pub mode: u32,
    pub atime: u32,
    pub mtime: u32,
    pub length: u64,
    pub name: String,
    pub uid: String,
    pub gid: String,
    pub muid: String,
}

impl Stat {
    /// The stat of a `Twstat` that changes nothing.
    pub fn dont_touch() -> Self {
        Stat {
            kind: u16::MAX,
            device: u32::MAX,
            qid: Qid {
                kind: u8::MAX,
                version: u32::MAX,
                path: u64::MAX,
            },
            mode: u32::MAX,
            atime: u32::MAX,
            mtime: u32::MAX,
            length: u64::MAX,
            ..Stat::default()
        }
    }

    pub fn is_directory(&self) -> bool {
        self.mode & mode::DIRECTORY != 0
    }

    /// The bytes of a directory read: `size[2]` and the fields.
    pub fn entry(&self) -> Vec<u8> {
        let dialect = Dialect::Plan9;
        let mut body = Vec::with_capacity(64 + self.name.len());
        self.kind.put(dialect, &mut body);
        self.device.put(dialect, &mut body);
        self.qid.put(dialect, &mut body);
        self.mode.put(dialect, &mut body);
        self.atime.put(dialect, &mut body);
        self.mtime.put(dialect, &mut body);
        self.length.put(dialect, &mut body);
        for text in [&self.name, &self.uid, &self.gid, &self.muid] {
            text.put(dialect, &mut body);
        }
        let mut out = Vec::with_capacity(body.len() + 2);
        (body.len() as u16).put(dialect, &mut out);
        out.append(&mut body);
        out
    }

    /// Read one entry of a directory read.
    pub fn get_entry(cursor: &mut Cursor<'_>) -> Result<Self, DecodeFault> {
        let size = u16::get(cursor)?;
        let bytes = cursor.take(usize::from(size))?;
        let mut inner = Cursor::new(bytes, cursor.dialect);
        let stat = Stat {
            kind: u16::get(&mut inner)?,
            device: u32::get(&mut inner)?,
            qid: Qid::get(&mut inner)?,
            mode: u32::get(&mut inner)?,
            atime: u32::get(&mut inner)?,
            mtime: u32::get(&mut inner)?,
            length: u64::get(&mut inner)?,
            name: String::get(&mut inner)?,
            uid: String::get(&mut inner)?,
            gid: String::get(&mut inner)?,
            muid: String::get(&mut inner)?,
        };
        inner.end()?;
        Ok(stat)
    }

    /// All entries of the bytes a directory read returned.
    pub fn entries(bytes: &[u8]) -> Result<Vec<Stat>, DecodeFault> {
        let mut cursor = Cursor::new(bytes, Dialect::Plan9);
        let mut stats = Vec::new();
        while !cursor.is_empty() {
            stats.push(Stat::get_entry(&mut cursor)?);
        }
        Ok(stats)
    }
}

/// An entry of `Rreaddir`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub qid: Qid,
    pub offset: u64,
    pub kind: u8,
    pub name: String,
}

impl DirectoryEntry {
    pub fn encode(&self) -> Vec<u8> {
        let dialect = Dialect::Linux;
        let mut out = Vec::with_capacity(24 + self.name.len());
        self.qid.put(dialect, &mut out);
        self.offset.put(dialect, &mut out);
        self.kind.put(dialect, &mut out);
        self.name.put(dialect, &mut out);
        out
    }

    pub fn entries(bytes: &[u8]) -> Result<Vec<DirectoryEntry>, DecodeFault> {
        let mut cursor = Cursor::new(bytes, Dialect::Linux);
        let mut entries = Vec::new();
        while !cursor.is_empty() {
            entries.push(DirectoryEntry {
                qid: Qid::get(&mut cursor)?,
                offset: u64::get(&mut cursor)?,
                kind: u8::get(&mut cursor)?,
                name: String::get(&mut cursor)?,
            });
        }
        Ok(entries)
    }
}
