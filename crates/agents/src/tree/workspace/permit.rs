//! What writing, evaluating or removing counts as: the tool that does the same.

use std::sync::Arc;

use beamtalk_mcp::FileDeed;
use beamtalk_ninep::{Answer, Refusal};
use beamtalk_wire::commands;

use super::super::open::detached;
use super::{Spot, WorkspaceNode, result};
use crate::error::refusal;

/// A tool, and whether something is lost by what it is used for here.
type Deed = (&'static str, bool);

impl WorkspaceNode {
    /// What a written document does.
    fn writing(&self) -> Deed {
        match &self.spot {
            Spot::Method { .. } => ("save_method", false),
            Spot::NewClass(_) | Spot::OfClass(..) => ("save_class", false),
            // The Transcript is written by code.
            _ => ("evaluate", false),
        }
    }

    pub(super) fn removal(&self) -> Deed {
        match &self.spot {
            Spot::Class(_) => ("remove_class", true),
            _ => ("remove_method", false),
        }
    }

    /// What a line of a control file does; `None` for one that will be refused.
    fn line(&self, word: &str) -> Option<Deed> {
        match (&self.spot, word) {
            (Spot::OfActor(..), "stop" | "kill") => Some(("kill_actor", true)),
            (Spot::OfChanges(_), "flush") => Some(("flush", false)),
            (Spot::OfChanges(_), "revert") => Some(("revert_change", false)),
            (Spot::OfChanges(_), "clear") => Some(("flush", true)),
            _ => None,
        }
    }

    /// An error unless it may be done now. A refusal is recorded; what is done is recorded where that is done.
    pub(super) async fn permit(
        &self,
        op: &'static str,
        (tool, loses): Deed,
        text: Option<&str>,
    ) -> Result<(), Refusal> {
        let deed = FileDeed {
            tool,
            loses,
            path: self.path().trim_start_matches('/'),
            text,
        };
        let outcome = self.link.permit(deed).await;
        if let Err(refused) = &outcome {
            let entry = self
                .tree
                .entry(op)
                .with("tool", tool)
                .with("result", result(&outcome));
            self.tree.hub.audit.write(entry)?;
            if let (Some(class), Some(_)) = (self.spot.class(), text) {
                self.link.forget_error(class);
                self.link.note_error(class, &refused.text);
            }
        }
        outcome
    }

    pub(super) async fn permit_written(&self, op: &'static str, bytes: &[u8]) -> Result<(), Refusal> {
        let text = String::from_utf8_lossy(bytes);
        self.permit(op, self.writing(), Some(&text)).await
    }

    /// Run the commands of one write, all of which may be done.
    pub(super) fn run_permitted(self: Arc<Self>, text: String) -> Answer<String> {
        Box::pin(async move {
            let commands = commands(&text).ok_or_else(|| refusal("unknown command"))?;
            for words in &commands {
                if let Some(deed) = words.first().and_then(|word| self.line(word)) {
                    self.permit("ctl", deed, Some(&words.join(" "))).await?;
                }
            }
            detached(self.run_commands(commands)).await
        })
    }
}
