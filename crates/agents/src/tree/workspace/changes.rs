//! The change log: what is pending, what a flush would write, new entries as they come.

use std::collections::BTreeMap;
use std::sync::Arc;

use beamtalk_ninep::{OpenFile, OpenRequest, Refusal};
use beamtalk_wire::EntryView;
use beamtalk_wire::requests::{Changes, ClearChanges, Diff, Flush, Revert};

use super::super::kinds::{Feed, StreamFile};
use super::{WorkspaceNode, is_over};
use crate::bytelog::Taken;
use crate::daemon::Hub;
use crate::error::refusal;
use crate::link::{Failure, Live, entry_line};

const USAGE: &str = "usage: flush [<Class>] | revert <seq> | clear";

fn failed(failure: Failure) -> Refusal {
    match failure {
        Failure::Told(error) => refusal(format!("invalid change: {}", error.message)),
        Failure::Gone(refused) => refused,
    }
}

impl Live {
    /// What a flush would write: all of it, or of one class.
    pub(crate) async fn pending_diff(&self, class: Option<&str>) -> Result<String, Refusal> {
        let told = self.ask(&Changes::default()).await.map_err(failed)?;
        let is_meant = |view: &&EntryView| {
            let is_pending = view.active && !view.shadowed && view.entry.flushable;
            is_pending && class.is_none_or(|class| view.entry.class == class)
        };
        let mut diff = String::new();
        for view in told.entries.iter().filter(is_meant) {
            let seq = view.entry.seq;
            diff.push_str(&self.ask(&Diff { seq }).await.map_err(failed)?.diff);
        }
        Ok(diff)
    }
}

impl WorkspaceNode {
    /// The values of the change log, all or one.
    pub(super) async fn change_contents(
        &self,
        live: &Live,
        one: Option<&'static str>,
    ) -> Result<BTreeMap<&'static str, Arc<Vec<u8>>>, Refusal> {
        let is_wanted = |name: &str| one.is_none_or(|one| one == name);
        let mut contents = BTreeMap::new();
        if is_wanted("log") {
            let request = Changes {
                all: Some(true),
                disk: None,
            };
            let told = live.ask(&request).await?;
            let mut entries: Vec<_> = told.entries.iter().chain(&told.waiting).collect();
            entries.sort_by_key(|view| view.entry.seq);
            entries.dedup_by_key(|view| view.entry.seq);
            let lines: String = entries
                .iter()
                .map(|view| entry_line(&view.entry, view.active))
                .collect();
            contents.insert("log", Arc::new(lines.into_bytes()));
        }
        if is_wanted("pending") || is_wanted("diff") {
            let told = live.ask(&Changes::default()).await?;
            let pending = told.entries.iter().filter(|view| view.active && !view.shadowed);
            let titles: String = pending.map(|view| format!("{}\n", view.entry.title())).collect();
            let diff = if is_wanted("diff") {
                live.pending_diff(None).await?
            } else {
                String::new()
            };
            contents.insert("pending", Arc::new(titles.into_bytes()));
            contents.insert("diff", Arc::new(diff.into_bytes()));
        }
        Ok(contents)
    }

    pub(super) async fn run_change(&self, words: &[&str]) -> Result<String, Refusal> {
        let live = self.link.live().await?;
        match words {
            ["flush", class @ ..] if class.len() < 2 => {
                let request = Flush {
                    class: class.first().map(|class| (*class).to_owned()),
                    ..Flush::default()
                };
                let told = live.ask(&request).await.map_err(failed)?;
                Ok(told.summary())
            }
            ["revert", seq] => {
                let seq = seq.parse().map_err(|_| refusal(USAGE))?;
                let told = live.ask(&Revert { seq }).await.map_err(failed)?;
                let title = told
                    .entry
                    .map_or_else(|| format!("change {seq}"), |logged| logged.entry.title());
                Ok(format!("reverted {title}\n"))
            }
            ["clear"] => {
                let told = live.ask(&ClearChanges {}).await.map_err(failed)?;
                let ending = if told.cleared == 1 { "" } else { "s" };
                Ok(format!("cleared {} change{ending}\n", told.cleared))
            }
            [] | ["flush" | "revert" | "clear", ..] => Err(refusal(USAGE)),
            _ => Err(refusal("unknown command")),
        }
    }

    pub(super) fn follow_changes(&self, live: Arc<Live>, request: OpenRequest) -> Box<dyn OpenFile> {
        let signal = live.signal.subscribe();
        let last = live.known.log.after(0).last().map_or(0, |(seq, _)| *seq);
        let feed = EntryFeed {
            hub: Arc::clone(&self.tree.hub),
            live,
            last,
        };
        Box::new(StreamFile::new(Box::new(feed), signal, request.fills_buffers))
    }
}

/// Entries after a number.
struct EntryFeed {
    hub: Arc<Hub>,
    live: Arc<Live>,
    last: u64,
}

impl Feed for EntryFeed {
    fn take(&mut self, count: usize) -> Taken {
        let mut out = Vec::new();
        for (seq, line) in self.live.known.log.after(self.last) {
            if !out.is_empty() && out.len() + line.len() > count {
                break;
            }
            out.extend_from_slice(line.as_bytes());
            self.last = seq;
        }
        match out.is_empty() {
            false => Taken::Data(out),
            true if is_over(&self.live, &self.hub) => Taken::End,
            true => Taken::Nothing,
        }
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        let seq = line
            .strip_prefix("since ")
            .and_then(|seq| seq.trim().parse().ok());
        self.last = seq.ok_or_else(|| refusal("unknown command"))?;
        Ok(())
    }
}
