//! The messages of both dialects as data. One table gives type numbers, fields, encoding,
//! decoding and the text form used by traces and `9p -D`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::codec::{Cursor, DecodeFault, Field};
use crate::stat::{Qid, Stat};
use crate::trace::Show;

/// The two dialects served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// 9P2000.
    Plan9,
    /// 9P2000.L.
    Linux,
}

impl Dialect {
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Plan9 => "9P2000",
            Dialect::Linux => "9P2000.L",
        }
    }
}

/// The names of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

/// `n_uname`, present in 9P2000.L only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumericUser(pub u32);

impl NumericUser {
    pub const NONE: NumericUser = NumericUser(u32::MAX);

    pub fn uid(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.0)
    }
}

/// Bytes of a read or write; cloned and cut without copying.
#[derive(Clone, Default)]
pub struct Payload {
    bytes: Option<Arc<Vec<u8>>>,
    range: Range<usize>,
}

impl Payload {
    /// A part of shared bytes; the range is cut to what exists.
    pub fn shared(bytes: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        let end = range.end.min(bytes.len());
        let start = range.start.min(end);
        Payload {
            bytes: Some(bytes),
            range: start..end,
        }
    }

    pub fn len(&self) -> usize {
        self.range.len()
    }

    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    #[must_use]
    pub fn cut(mut self, limit: usize) -> Self {
        self.range.end = self.range.end.min(self.range.start.saturating_add(limit));
        self
    }

    /// Without the first `count` bytes.
    #[must_use]
    pub fn skip(mut self, count: usize) -> Self {
        self.range.start = self.range.start.saturating_add(count).min(self.range.end);
        self
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        let range = 0..bytes.len();
        Payload {
            bytes: Some(Arc::new(bytes)),
            range,
        }
    }
}

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        self.bytes
            .as_ref()
            .and_then(|bytes| bytes.get(self.range.clone()))
            .unwrap_or_default()
    }
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        self.as_ref() == other.as_ref()
    }
}

impl Eq for Payload {}

impl fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Payload({} bytes)", self.len())
    }
}

macro_rules! messages {
    ($(#[$doc:meta])* $kind:ident $letter:literal {
        $($number:literal $name:ident $dialects:ident { $($field:ident: $type:ty),* $(,)? })*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $kind { $($name { $($field: $type),* }),* }

        impl $kind {
            /// The type number on the wire.
            pub fn number(&self) -> u8 {
                match self { $($kind::$name { .. } => $number),* }
            }

            /// Protocol spelling, as `Twalk`.
            pub fn name(&self) -> &'static str {
                match self { $($kind::$name { .. } => concat!($letter, stringify!($name))),* }
            }

            /// Read the fields of a message of type `number`.
            pub fn decode(number: u8, body: &[u8], dialect: Dialect) -> Result<Self, DecodeFault> {
                let mut cursor = Cursor::new(body, dialect);
                let message = match number {
                    $($number if in_dialect(stringify!($dialects), dialect) => {
                        $kind::$name { $($field: <$type>::get(&mut cursor)?),* }
                    })*
                    _ => return Err(DecodeFault::Unknown),
                };
                cursor.end()?;
                Ok(message)
            }

            fn put_fields(&self, dialect: Dialect, out: &mut Vec<u8>) {
                match self { $($kind::$name { $($field),* } => { $($field.put(dialect, out);)* })* }
            }

            /// Append the whole message, size included.
            pub fn encode(&self, tag: u16, dialect: Dialect, out: &mut Vec<u8>) {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                out.push(self.number());
                tag.put(dialect, out);
                self.put_fields(dialect, out);
                let size = (out.len() - start) as u32;
                if let Some(field) = out.get_mut(start..start + 4) {
                    field.copy_from_slice(&size.to_le_bytes());
                }
            }

            /// The text form of traces, with its tag.
            pub fn show(&self, tag: u16) -> String {
                let mut text = format!("{}{} tag {tag}", $letter, self.name().to_ascii_lowercase().split_off(1));
                match self { $($kind::$name { $($field),* } => {
                    $(
                        if let Some(shown) = $field.shown() {
                            text.push(' ');
                            text.push_str(stringify!($field));
                            text.push(' ');
                            text.push_str(&shown);
                        }
                    )*
                })* }
                text
            }
        }
    };
}

fn in_dialect(dialects: &str, dialect: Dialect) -> bool {
    match dialects {
        "linux" => dialect == Dialect::Linux,
        "plan9" => dialect == Dialect::Plan9,
        _ => true,
    }
}

messages! {
    /// What a client sends.
    Request "T" {
        100 Version both { msize: u32, version: String }
        102 Auth both { afid: u32, uname: String, aname: String, n_uname: NumericUser }
        104 Attach both { fid: u32, afid: u32, uname: String, aname: String, n_uname: NumericUser }
        108 Flush both { oldtag: u16 }
        110 Walk both { fid: u32, newfid: u32, wname: Names }
        112 Open plan9 { fid: u32, mode: u8 }
        114 Create plan9 { fid: u32, name: String, perm: u32, mode: u8 }
        116 Read both { fid: u32, offset: u64, count: u32 }
        118 Write both { fid: u32, offset: u64, data: Payload }
        120 Clunk both { fid: u32 }
        122 Remove both { fid: u32 }
        124 Stat plan9 { fid: u32 }
        126 Wstat plan9 { fid: u32, stat: Stat }
        8 Statfs linux { fid: u32 }
        12 Lopen linux { fid: u32, flags: u32 }
        14 Lcreate linux { fid: u32, name: String, flags: u32, mode: u32, gid: u32 }
        22 Readlink linux { fid: u32 }
        24 Getattr linux { fid: u32, mask: u64 }
        26 Setattr linux { fid: u32, valid: u32, mode: u32, uid: u32, gid: u32, size: u64,
                           atime: u64, atime_ns: u64, mtime: u64, mtime_ns: u64 }
        40 Readdir linux { fid: u32, offset: u64, count: u32 }
        50 Fsync linux { fid: u32, datasync: Option<u32> }
        52 Lock linux { fid: u32, kind: u8, flags: u32, start: u64, length: u64, proc_id: u32, client_id: String }
        54 Getlock linux { fid: u32, kind: u8, start: u64, length: u64, proc_id: u32, client_id: String }
        76 Unlinkat linux { fid: u32, name: String, flags: u32 }
    }
}

messages! {
    /// What a server answers.
    Reply "R" {
        101 Version both { msize: u32, version: String }
        103 Auth both { aqid: Qid }
        105 Attach both { qid: Qid }
        107 Error plan9 { ename: String }
        109 Flush both { }
        111 Walk both { wqid: Vec<Qid> }
        113 Open plan9 { qid: Qid, iounit: u32 }
        115 Create plan9 { qid: Qid, iounit: u32 }
        117 Read both { data: Payload }
        119 Write both { count: u32 }
        121 Clunk both { }
        123 Remove both { }
        125 Stat plan9 { stat: Stat }
        127 Wstat plan9 { }
        7 Lerror linux { ecode: u32 }
        9 Statfs linux { kind: u32, bsize: u32, blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64,
                         fsid: u64, namelen: u32 }
        13 Lopen linux { qid: Qid, iounit: u32 }
        15 Lcreate linux { qid: Qid, iounit: u32 }
        25 Getattr linux { valid: u64, qid: Qid, mode: u32, uid: u32, gid: u32, nlink: u64, rdev: u64, size: u64,
                           blksize: u64, blocks: u64, atime: u64, atime_ns: u64, mtime: u64, mtime_ns: u64,
                           ctime: u64, ctime_ns: u64, btime: u64, btime_ns: u64, generation: u64, data_version: u64 }
        27 Setattr linux { }
        41 Readdir linux { data: Payload }
        51 Fsync linux { }
        53 Lock linux { status: u8 }
        55 Getlock linux { kind: u8, start: u64, length: u64, proc_id: u32, client_id: String }
        77 Unlinkat linux { }
    }
}
