//! `beamtalk workspace approvals`: calls of AI clients that wait for a person.

use beamtalk_client::Connection;
use beamtalk_repl::approvals;
use beamtalk_wire::Operation;
use beamtalk_wire::requests::{ApprovalAnswer, Approvals};
use clap::Subcommand;

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::{attached, find_place};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Answer>,
    /// Show the rules of `always` instead.
    #[arg(long)]
    rules: bool,
}

#[derive(Subcommand)]
enum Answer {
    /// Let a call go on.
    Approve {
        /// Its name, such as ap-5f09c1d2.
        id: String,
        /// Let the very same call go on from now on without asking.
        #[arg(long)]
        always: bool,
    },
    /// Do not let it.
    Reject {
        /// Its name.
        id: String,
        /// Why, for the client.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Forget a rule.
    Forget {
        /// Its name.
        id: String,
    },
}

async fn ask<O: Operation>(connection: &Connection, request: &O) -> anyhow::Result<O::Answer> {
    connection.ask(request).await.map_err(|cause| {
        let fault = Fault {
            exit: Exit::Failure,
            kind: "approval",
            message: cause.to_string(),
            hint: None,
        };
        fault.into()
    })
}

pub(super) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let info = place.running()?.ok_or_else(|| Fault {
        exit: Exit::NotRunning,
        kind: "no_workspace",
        message: "no workspace runs here, so nothing waits".to_owned(),
        hint: None,
    })?;
    attached(&place, &info, async |connection, _| {
        let wanted = Approvals {
            rules: Some(arguments.rules),
        };
        let found = ask(&connection, &wanted).await?;
        let said = match &arguments.command {
            None if arguments.rules => {
                print(terminal, &found.rules, approvals::rules(&found.rules))?;
                return Ok(Exit::Success);
            }
            None => {
                print(terminal, &found.approvals, approvals::list(&found.approvals))?;
                return Ok(Exit::Success);
            }
            Some(Answer::Approve { id, always }) => {
                let one = found.approvals.iter().find(|approval| approval.id == *id);
                if let Some(one) = one {
                    terminal.status(approvals::one(one));
                }
                ApprovalAnswer {
                    r#for: id.clone(),
                    answer: if *always { "always" } else { "approve" }.to_owned(),
                    text: None,
                    sha256: one.map(|one| one.sha256.clone()),
                }
            }
            Some(Answer::Reject { id, reason }) => ApprovalAnswer {
                r#for: id.clone(),
                answer: "reject".to_owned(),
                text: reason.clone(),
                sha256: None,
            },
            Some(Answer::Forget { id }) => ApprovalAnswer {
                r#for: id.clone(),
                answer: "forget".to_owned(),
                text: None,
                sha256: None,
            },
        };
        ask(&connection, &said).await?;
        Ok(Exit::Success)
    })
}

fn print(terminal: &mut Terminal, all: &impl serde::Serialize, text: String) -> anyhow::Result<()> {
    if terminal.is_json() {
        terminal.print(serde_json::to_string(all)?)?;
    } else {
        terminal.print(text)?;
    }
    Ok(())
}
