//! What can be followed: events, raw output, the chat log.

use std::sync::Arc;

use beamtalk_ninep::Refusal;

use super::TreeNode;
use super::kinds::Feed;
use crate::access::Level;
use crate::bytelog::Taken;
use crate::daemon::Hub;
use crate::error::refusal;
use crate::session::shared::SessionShared;

fn unknown() -> Refusal {
    refusal("unknown command")
}

fn number(text: &str) -> Result<u64, Refusal> {
    text.trim().parse().map_err(|_| unknown())
}

pub(super) struct EventFeed {
    pub(super) hub: Arc<Hub>,
    pub(super) level: Level,
    pub(super) next: u64,
    pub(super) kinds: Vec<String>,
    pub(super) source: Option<String>,
}

impl Feed for EventFeed {
    fn take(&mut self, count: usize) -> Taken {
        let (level, kinds, source) = (&self.level, &self.kinds, &self.source);
        let visible = |event: &crate::events::Event| {
            TreeNode::sees(level, event)
                && (kinds.is_empty() || kinds.contains(&event.kind))
                && source.as_ref().is_none_or(|source| *source == event.source)
        };
        match self.hub.events.take(&mut self.next, count, visible) {
            Taken::Nothing if self.hub.is_stopping() => Taken::End,
            other => other,
        }
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        match line.split_once(' ') {
            Some(("since", seq)) => self.next = number(seq)?.saturating_add(1),
            Some(("type", kinds)) => {
                self.kinds = kinds.split(',').map(|kind| kind.trim().to_owned()).collect();
            }
            Some(("source", source)) => {
                let name = source.trim();
                self.source = Some(self.hub.participant(name).unwrap_or_else(|| name.to_owned()));
            }
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

fn is_gone(hub: &Hub, session: &SessionShared) -> bool {
    hub.is_stopping() || hub.session(&session.id).is_err()
}

pub(super) struct OutputFeed {
    pub(super) hub: Arc<Hub>,
    pub(super) session: Arc<SessionShared>,
    pub(super) offset: u64,
}

impl Feed for OutputFeed {
    fn take(&mut self, count: usize) -> Taken {
        match self.session.output.read(self.offset, count) {
            Ok(bytes) if bytes.is_empty() && is_gone(&self.hub, &self.session) => Taken::End,
            Ok(bytes) if bytes.is_empty() => Taken::Nothing,
            Ok(bytes) => {
                self.offset += bytes.len() as u64;
                Taken::Data(bytes)
            }
            Err(_) if is_gone(&self.hub, &self.session) => Taken::End,
            Err(refused) => {
                // Told once; the next read goes on with what is kept.
                self.offset = self.session.output.extent().base;
                Taken::Failed(refused)
            }
        }
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        let extent = self.session.output.extent();
        match line.split_once(' ') {
            Some(("tail", bytes)) => self.offset = extent.end.saturating_sub(number(bytes)?).max(extent.base),
            Some(("from", offset)) => self.offset = number(offset)?.min(extent.end),
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

pub(super) struct ChatFeed {
    pub(super) hub: Arc<Hub>,
    pub(super) session: Arc<SessionShared>,
    pub(super) offset: u64,
}

impl Feed for ChatFeed {
    fn take(&mut self, count: usize) -> Taken {
        match self.session.chat.since(self.offset) {
            None => {
                self.offset = self.session.chat.end();
                Taken::Failed(refusal("output trimmed"))
            }
            Some(bytes) if bytes.is_empty() && is_gone(&self.hub, &self.session) => Taken::End,
            Some(bytes) if bytes.is_empty() => Taken::Nothing,
            Some(mut bytes) => {
                // As many whole lines as fit; a longer line is cut.
                if bytes.len() > count {
                    let head = bytes.get(..count).unwrap_or_default();
                    let end = head
                        .iter()
                        .rposition(|byte| *byte == b'\n')
                        .map_or(count, |at| at + 1);
                    bytes.truncate(end);
                }
                self.offset += bytes.len() as u64;
                Taken::Data(bytes)
            }
        }
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        match line.split_once(' ') {
            Some(("tail", bytes)) => {
                let kept = self.session.chat.length();
                self.offset = self.session.chat.end() - number(bytes)?.min(kept);
                Ok(())
            }
            _ => Err(unknown()),
        }
    }
}

/// Questions for a person as they are asked and answered.
pub(super) struct ApprovalFeed {
    pub(super) hub: Arc<Hub>,
    /// The session that looks, which sees what it asked and nothing else.
    pub(super) own: Option<String>,
    pub(super) last: u64,
}

impl Feed for ApprovalFeed {
    fn take(&mut self, count: usize) -> Taken {
        let mut out = Vec::new();
        for (number, line) in self.hub.approvals.after(self.last) {
            if !out.is_empty() && out.len() + line.len() > count {
                break;
            }
            self.last = number;
            let is_own = |own: &String| line.contains(&format!("\"session\":\"{own}\""));
            if self.own.as_ref().is_none_or(is_own) {
                out.extend_from_slice(line.as_bytes());
            }
        }
        match out.is_empty() {
            false => Taken::Data(out),
            true if self.hub.is_stopping() => Taken::End,
            true => Taken::Nothing,
        }
    }

    fn command(&mut self, _: &str) -> Result<(), Refusal> {
        Err(unknown())
    }
}
