//! What a session does with the files of a workspace counts as the tool that does the same, and is refused or held for a
//! person by the same settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamtalk_client::Answer;
use beamtalk_mcp::{Counted, FileDeed, Settings, count, shown_diff};
use beamtalk_ninep::Refusal;
use beamtalk_storage::StateDirectory;
use beamtalk_wire::ErrorKind;
use beamtalk_wire::answers::ApprovalAskAnswer;
use beamtalk_wire::class_file::named_file;
use beamtalk_wire::requests::{ApprovalAsk, Autoflush, Interrupt};

use super::{Link, Live, no_workspace};
use crate::error::refusal;

/// The settings of tools in a project, as the user's and the project's files have them now.
pub type DoorRules = fn(&StateDirectory, &Path) -> Result<DoorSettings, String>;

pub struct DoorSettings {
    pub settings: Settings,
    /// Whether a path of the project may be named, or why not.
    pub names: PathRule,
}

type PathRule = Box<dyn Fn(&str) -> Result<(), String> + Send>;

/// How a session comes to a workspace.
pub(super) struct Door {
    /// The project its directory lies in.
    pub(super) root: PathBuf,
    pub(super) rules: DoorRules,
}

impl Link {
    /// Whether something may be done; asks a person where the settings say so, until they answer. Whoever gives up
    /// waiting withdraws the question.
    pub(crate) async fn permit(self: &Arc<Self>, deed: FileDeed<'_>) -> Result<(), Refusal> {
        let Some(door) = &self.door else { return Ok(()) };
        let denied = |reason: String| refusal(format!("permission denied: {reason}"));
        let counted = {
            let rules = (door.rules)(&self.state, &door.root).map_err(denied)?;
            if let Some((file, _)) = deed
                .text
                .filter(|_| deed.tool == "save_class")
                .and_then(named_file)
            {
                (rules.names)(file).map_err(denied)?;
            }
            count(&rules.settings, deed)
        };
        match counted {
            Counted::Allowed => Ok(()),
            Counted::Denied(reason) => Err(denied(reason)),
            Counted::Held(ask) if deed.tool == "flush" && !deed.loses => {
                let class = deed.text.and_then(|line| line.split_whitespace().nth(1));
                self.hold_flush(*ask, class).await
            }
            Counted::Held(ask) => self.hold(&ask).await,
            Counted::HeldIfFlushed(ask) => match self.ask(&Autoflush { on: None }).await {
                Ok(told) if !told.on => Ok(()),
                // Where it cannot be known it counts as if it were.
                _ => self.hold(&ask).await,
            },
        }
    }

    /// A yes is one to what was shown: where something else would be written by then, the person is asked again.
    async fn hold_flush(self: &Arc<Self>, mut ask: ApprovalAsk, class: Option<&str>) -> Result<(), Refusal> {
        let live = self.live().await?;
        let mut shown = live.pending_diff(class).await?;
        loop {
            ask.diff = Some(shown_diff(&shown)).filter(|diff| !diff.is_empty());
            self.hold(&ask).await?;
            let now = live.pending_diff(class).await?;
            if now == shown {
                return Ok(());
            }
            shown = now;
        }
    }

    async fn hold(self: &Arc<Self>, ask: &ApprovalAsk) -> Result<(), Refusal> {
        let live = self.live().await?;
        let pending = live.connection.send(ask).map_err(|_| no_workspace())?;
        let mut held = Held {
            live: Arc::clone(&live),
            request: Some(pending.id.clone()),
        };
        let message = pending.done().await;
        held.request = None;
        let message = message.map_err(|_| no_workspace())?;
        match Answer::<ApprovalAskAnswer>::read(message).body {
            Ok(said) if said.answer == "approve" => Ok(()),
            Ok(said) => {
                let reason = said.text.filter(|text| !text.is_empty()).unwrap_or(said.answer);
                Err(refusal(format!("not approved: {reason}")))
            }
            Err(error) if error.kind == ErrorKind::Busy => Err(Refusal::TOO_MANY_REQUESTS),
            Err(error) => Err(refusal(format!("not approved: {}", error.message))),
        }
    }
}

/// A question that waits for a person; withdrawn when nobody waits for the answer any more.
struct Held {
    live: Arc<Live>,
    request: Option<String>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.request.take(), tokio::runtime::Handle::try_current()) {
            let live = Arc::clone(&self.live);
            let stop = Interrupt {
                r#for: Some(request),
                handle: None,
            };
            // A workspace that is gone holds nothing.
            runtime.spawn(async move { drop(live.connection.ask(&stop).await) });
        }
    }
}
