//! `approvals`: what waits for a person, and the answers.

use beamtalk_ninep::Attachment;
use clap::Subcommand;
use serde_json::Value;

use super::context::{Client, Failure, say};
use crate::exit::Exit;

#[derive(Subcommand)]
pub(super) enum ApprovalCommand {
    /// Show one in full.
    Show { id: String },
    /// Let it go on.
    Approve {
        id: String,
        /// The very same call from now on too; for tool calls only.
        #[arg(long)]
        always: bool,
    },
    /// Do not let it.
    Reject { id: String, reason: Vec<String> },
    /// Answer a question.
    Answer {
        id: String,
        #[arg(required = true)]
        text: Vec<String>,
    },
}

/// Text of somebody else, for a terminal: nothing in it commands it.
fn plain(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { ' ' } else { c };
    text.chars().map(shown).collect()
}

fn field<'a>(request: &'a Value, name: &str) -> &'a str {
    request.get(name).and_then(Value::as_str).unwrap_or("-")
}

fn waiting(tree: &Attachment) -> Result<Vec<Value>, Failure> {
    let text = tree.read_text("approvals/pending")?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

fn request(tree: &Attachment, id: &str) -> Result<Value, Failure> {
    let text = tree.read_text(&format!("approvals/{id}/request"))?;
    serde_json::from_str(&text).map_err(|cause| Failure::plain(cause.to_string()))
}

fn show(request: &Value) -> Result<(), Failure> {
    for name in ["id", "session", "kind", "summary"] {
        say(&format!("{name}: {}", plain(field(request, name))))?;
    }
    for name in ["command", "diff"] {
        if let Some(text) = request.get(name).and_then(Value::as_str) {
            say(&format!("{name}:"))?;
            for line in plain(text).lines() {
                say(&format!("    {line}"))?;
            }
        }
    }
    Ok(())
}

pub(super) fn run(client: &Client, command: Option<ApprovalCommand>) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    let (id, answer) = match command {
        None => {
            let waiting = waiting(&tree)?;
            if client.json {
                client.print(&Value::Array(waiting))?;
                return Ok(Exit::Success);
            }
            if !waiting.is_empty() {
                say("ID           KIND      SESSION   SUMMARY")?;
            }
            for request in &waiting {
                let summary = plain(field(request, "summary")).replace('\n', " ");
                say(&format!(
                    "{:<12} {:<9} {:<9} {}",
                    field(request, "id"),
                    field(request, "kind"),
                    field(request, "session"),
                    summary.chars().take(100).collect::<String>()
                ))?;
            }
            return Ok(Exit::Success);
        }
        Some(ApprovalCommand::Show { id }) => {
            let request = request(&tree, &id)?;
            if client.json {
                client.print(&request)?;
            } else {
                show(&request)?;
            }
            return Ok(Exit::Success);
        }
        Some(ApprovalCommand::Approve { id, always }) => {
            let always = if always { " always" } else { "" };
            // A yes is for what is shown here. One that was answered meanwhile says so itself.
            let hash = match request(&tree, &id) {
                Ok(request) => {
                    if !client.json {
                        show(&request)?;
                    }
                    format!(" sha256={}", field(&request, "sha256"))
                }
                Err(_) => String::new(),
            };
            (id, format!("approve{always}{hash}"))
        }
        Some(ApprovalCommand::Reject { id, reason }) => (id, format!("reject {}", reason.join(" "))),
        Some(ApprovalCommand::Answer { id, text }) => (id, format!("answer {}", text.join(" "))),
    };
    tree.write(&format!("approvals/{id}/answer"), answer.as_bytes())?;
    client.done()
}
