//! Directory reads of both dialects, from a snapshot taken at offset 0.

use std::sync::Arc;

use super::handle::ready;
use super::{Need, Node};
use crate::error::Refusal;
use crate::message::Payload;
use crate::stat::{DirectoryEntry, Stat};

pub(super) struct Listing {
    node: Arc<dyn Node>,
    snapshot: Vec<Stat>,
    next: usize,
    offset: u64,
}

impl Listing {
    pub(super) fn new(node: Arc<dyn Node>) -> Self {
        Listing {
            node,
            snapshot: Vec::new(),
            next: 0,
            offset: 0,
        }
    }

    /// `Tread` of 9P2000: whole entries, from the start or where the previous read ended.
    pub(super) async fn read(&mut self, offset: u64, count: u32) -> Result<Payload, Refusal> {
        if offset == 0 {
            self.snapshot = ready(&self.node, Need::List).await?.list()?;
            self.next = 0;
            self.offset = 0;
        } else if offset != self.offset {
            return Err(Refusal::BAD_OFFSET);
        }
        let mut out = Vec::new();
        while let Some(stat) = self.snapshot.get(self.next) {
            let entry = stat.entry();
            if out.len() + entry.len() > count as usize {
                if out.is_empty() {
                    return Err(Refusal::COUNT_TOO_SMALL);
                }
                break;
            }
            out.extend_from_slice(&entry);
            self.next += 1;
        }
        self.offset += out.len() as u64;
        Ok(Payload::from(out))
    }

    /// `Treaddir` of 9P2000.L: `.` and `..` first, offsets number the entries.
    pub(super) async fn readdir(&mut self, offset: u64, count: u32) -> Result<Payload, Refusal> {
        if offset == 0 {
            self.snapshot = ready(&self.node, Need::List).await?.list()?;
        }
        let total = self.snapshot.len() as u64 + 2;
        let mut out = Vec::new();
        let mut at = offset;
        while at < total {
            let entry = self.entry(at).await?;
            let bytes = entry.encode();
            if out.len() + bytes.len() > count as usize {
                if out.is_empty() {
                    return Err(Refusal::COUNT_TOO_SMALL);
                }
                break;
            }
            out.extend_from_slice(&bytes);
            at += 1;
        }
        Ok(Payload::from(out))
    }

    async fn entry(&self, at: u64) -> Result<DirectoryEntry, Refusal> {
        let (qid, name) = match at {
            0 => (ready(&self.node, Need::Step).await?.qid()?, "."),
            1 => {
                let above = self.node.walk("..")?;
                (ready(&above, Need::Step).await?.qid()?, "..")
            }
            _ => {
                let stat = self.snapshot.get(at as usize - 2).ok_or(Refusal::BAD_OFFSET)?;
                (stat.qid, stat.name.as_str())
            }
        };
        let kind = if qid.is_directory() { 4 } else { 8 };
        Ok(DirectoryEntry {
            qid,
            offset: at + 1,
            kind,
            name: name.to_owned(),
        })
    }
}
