//! The text form of messages: `Twalk tag 1 fid 0 newfid 1 wname [mail unread]`.
//!
//! `9p -D` prints it, and the trace tests read requests and compare replies in it.

use crate::message::{Names, NumericUser, Payload, Request};
use crate::stat::{Qid, Stat};

/// How a field looks in a trace; `None` leaves it out.
pub(crate) trait Show {
    fn shown(&self) -> Option<String>;
}

macro_rules! plain {
    ($($type:ty)*) => {$(
        impl Show for $type {
            fn shown(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}
plain!(u8 u16 u32 u64);

impl Show for String {
    fn shown(&self) -> Option<String> {
        Some(quote(self.as_bytes()))
    }
}

impl Show for Payload {
    fn shown(&self) -> Option<String> {
        Some(quote(self.as_ref()))
    }
}

impl Show for Names {
    fn shown(&self) -> Option<String> {
        Some(format!("[{}]", self.0.join(" ")))
    }
}

impl Show for NumericUser {
    fn shown(&self) -> Option<String> {
        self.uid().map(|uid| uid.to_string())
    }
}

impl Show for Option<u32> {
    fn shown(&self) -> Option<String> {
        self.map(|value| value.to_string())
    }
}

impl Show for Qid {
    fn shown(&self) -> Option<String> {
        let mut text = format!("0x{:x}.{}", self.path, self.version);
        for (bit, letter) in [(0x80, ".d"), (0x40, ".a"), (0x08, ".A")] {
            if self.kind & bit != 0 {
                text.push_str(letter);
            }
        }
        Some(text)
    }
}

impl Show for Vec<Qid> {
    fn shown(&self) -> Option<String> {
        let qids: Vec<String> = self.iter().filter_map(Show::shown).collect();
        Some(format!("[{}]", qids.join(" ")))
    }
}

impl Show for Stat {
    fn shown(&self) -> Option<String> {
        Some(format!(
            "{} {} {} m {:o} l {}",
            quote(self.name.as_bytes()),
            quote(self.uid.as_bytes()),
            self.qid.shown().unwrap_or_default(),
            self.mode,
            self.length
        ))
    }
}

/// Bytes between apostrophes, with `\n`, `\t`, `\'`, `\\` and `\xNN`.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("'");
    for byte in bytes {
        match byte {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\'' => text.push_str("\\'"),
            b'\\' => text.push_str("\\\\"),
            0x20..=0x7e => text.push(char::from(*byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('\'');
    text
}

fn unquote(token: &str) -> Option<Vec<u8>> {
    let inner = token.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut bytes = Vec::new();
    let mut rest = inner.chars();
    while let Some(letter) = rest.next() {
        if letter != '\\' {
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        match rest.next()? {
            'n' => bytes.push(b'\n'),
            't' => bytes.push(b'\t'),
            'x' => {
                let digits: String = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).ok()?);
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Some(bytes)
}

/// Split at blanks; `'…'` and `[…]` stay whole.
fn tokens(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut current = String::new();
    let mut closing: Option<char> = None;
    let mut escaped = false;
    for letter in line.chars() {
        match closing {
            None if letter.is_whitespace() => {
                if !current.is_empty() {
                    out.push(std::mem::take(&mut current));
                }
                continue;
            }
            None if letter == '\'' => closing = Some('\''),
            None if letter == '[' => closing = Some(']'),
            Some(end) if letter == end && !escaped => closing = None,
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        current.push(letter);
    }
    if !current.is_empty() {
        out.push(current);
    }
    out
}

/// The fields of a trace line, by name.
struct Fields(Vec<(String, String)>);

impl Fields {
    fn find(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str, otherwise: u64) -> Option<u64> {
        match self.find(name) {
            None => Some(otherwise),
            Some(text) => match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => match text.strip_prefix("0o") {
                    Some(octal) => u64::from_str_radix(octal, 8).ok(),
                    None => text.parse().ok(),
                },
            },
        }
    }

    fn int(&self, name: &str, otherwise: u32) -> Option<u32> {
        self.number(name, u64::from(otherwise))?.try_into().ok()
    }

    fn text(&self, name: &str) -> Option<String> {
        match self.find(name) {
            None => Some(String::new()),
            Some(token) if token.starts_with('\'') => String::from_utf8(unquote(token)?).ok(),
            Some(token) => Some(token.to_owned()),
        }
    }

    fn user(&self) -> Option<NumericUser> {
        self.int("n_uname", u32::MAX).map(NumericUser)
    }
}

/// Read a request line of a trace; fields left out are 0, empty, `NOFID` or "don't touch".
pub fn parse_request(line: &str) -> Option<(u16, Request)> {
    let tokens = tokens(line);
    let mut rest = tokens.into_iter();
    let name = rest.next()?;
    let mut pairs = Vec::new();
    while let Some(key) = rest.next() {
        pairs.push((key, rest.next()?));
    }
    let f = Fields(pairs);
    let fid = f.int("fid", 0)?;
    let tag = f
        .number("tag", if name == "Tversion" { 0xffff } else { 1 })?
        .try_into()
        .ok()?;
    let request = match name.as_str() {
        "Tversion" => Request::Version {
            msize: f.int("msize", 8192)?,
            version: f.text("version")?,
        },
        "Tauth" => Request::Auth {
            afid: f.int("afid", 0)?,
            uname: f.text("uname")?,
            aname: f.text("aname")?,
            n_uname: f.user()?,
        },
        "Tattach" => Request::Attach {
            fid,
            afid: f.int("afid", crate::NOFID)?,
            uname: f.text("uname")?,
            aname: f.text("aname")?,
            n_uname: f.user()?,
        },
        "Tflush" => Request::Flush {
            oldtag: f.number("oldtag", 0)?.try_into().ok()?,
        },
        "Twalk" => {
            let names = f
                .find("wname")
                .unwrap_or("[]")
                .trim_start_matches('[')
                .trim_end_matches(']');
            let wname = Names(names.split_whitespace().map(str::to_owned).collect());
            Request::Walk {
                fid,
                newfid: f.int("newfid", fid)?,
                wname,
            }
        }
        "Topen" => Request::Open {
            fid,
            mode: f.number("mode", 0)?.try_into().ok()?,
        },
        "Tcreate" => Request::Create {
            fid,
            name: f.text("name")?,
            perm: f.int("perm", 0o600)?,
            mode: f.number("mode", 0)?.try_into().ok()?,
        },
        "Tread" => Request::Read {
            fid,
            offset: f.number("offset", 0)?,
            count: f.int("count", 8000)?,
        },
        "Twrite" => Request::Write {
            fid,
            offset: f.number("offset", 0)?,
            data: Payload::from(unquote(f.find("data").unwrap_or("''"))?),
        },
        "Tclunk" => Request::Clunk { fid },
        "Tremove" => Request::Remove { fid },
        "Tstat" => Request::Stat { fid },
        "Twstat" => {
            let mut stat = Stat::dont_touch();
            stat.name = f.text("name")?;
            stat.length = f.number("length", u64::MAX)?;
            stat.mode = f.int("mode", u32::MAX)?;
            Request::Wstat { fid, stat }
        }
        "Tstatfs" => Request::Statfs { fid },
        "Tlopen" => Request::Lopen {
            fid,
            flags: f.int("flags", 0)?,
        },
        "Tlcreate" => Request::Lcreate {
            fid,
            name: f.text("name")?,
            flags: f.int("flags", 0)?,
            mode: 0o600,
            gid: 0,
        },
        "Treadlink" => Request::Readlink { fid },
        "Tgetattr" => Request::Getattr {
            fid,
            mask: f.number("mask", 0x7ff)?,
        },
        "Tsetattr" => Request::Setattr {
            fid,
            valid: f.int("valid", 0)?,
            mode: f.int("mode", 0)?,
            uid: f.int("uid", 0)?,
            gid: f.int("gid", 0)?,
            size: f.number("size", 0)?,
            atime: 0,
            atime_ns: 0,
            mtime: 0,
            mtime_ns: 0,
        },
        "Treaddir" => Request::Readdir {
            fid,
            offset: f.number("offset", 0)?,
            count: f.int("count", 8000)?,
        },
        "Tfsync" => Request::Fsync { fid, datasync: None },
        "Tlock" => Request::Lock {
            fid,
            kind: 0,
            flags: 0,
            start: 0,
            length: 0,
            proc_id: 1,
            client_id: f.text("client_id")?,
        },
        "Tgetlock" => Request::Getlock {
            fid,
            kind: 1,
            start: 0,
            length: 0,
            proc_id: 1,
            client_id: f.text("client_id")?,
        },
        "Tunlinkat" => Request::Unlinkat {
            fid,
            name: f.text("name")?,
            flags: 0,
        },
        _ => return None,
    };
    Some((tag, request))
}
