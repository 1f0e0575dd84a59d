//! Mail between sessions and the user.

use serde_json::{Value, json};

use super::{Context, Failure, session};
use crate::data::Fields;
use crate::host::{Host, HostError};
use crate::tools::parts::{input, output};

/// Messages that are looked through.
const MESSAGES: usize = 200;

input! {
    SendMessage {
        /// Who gets it: a session, or `user`.
        to: String,
        /// Its kind, such as `PROMPT_REQUEST`.
        r#type: String,
        /// What it is about.
        #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
        subject: String,
        /// Its text.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        body: String,
    }
}

output! {
    Sent {
        sent: bool,
        ;
        /// The message's name, where the receiver's box can be read.
        id: String,
    }
}

/// The name of the newest message in a box that says this.
async fn find_sent<H: Host>(context: &Context<'_, H>, place: &str, message: &Value) -> Option<String> {
    let mut names = context.names(format!("{place}/inbox")).await.ok()?;
    names.sort_unstable();
    // The names sort by time; it is one of the last.
    for name in names.into_iter().rev().take(8) {
        let text = context.read(format!("{place}/inbox/{name}")).await.ok()?;
        let found: Value = serde_json::from_str(&text).ok()?;
        if ["type", "subject", "body"]
            .iter()
            .all(|field| found[*field] == message[*field])
        {
            return found["id"].as_str().map(str::to_owned);
        }
    }
    None
}

pub(crate) async fn send_message<H: Host>(
    context: &Context<'_, H>,
    input: SendMessage,
) -> Result<Sent, Failure> {
    let message = json!({"to": input.to, "type": input.r#type, "subject": input.subject, "body": input.body});
    let place = format!("{}/mail", context.mailbox());
    context.write(place, message.to_string()).await?;
    let id = match mailbox(&input.to) {
        Ok(place) => find_sent(context, &place, &message).await,
        Err(_) => None,
    };
    Ok(Sent { sent: true, id })
}

/// The place of a mailbox.
fn mailbox(name: &str) -> Result<String, HostError> {
    match name {
        "user" => Ok("agents/user".to_owned()),
        id => session(id),
    }
}

input! {
    CheckInbox {
        ;
        /// Put the message aside as handled; so if absent.
        complete: bool,
    }
}

output! {
    Inbox {
        /// How many more there are.
        left: u64,
        ;
        message: Fields,
    }
}

pub(crate) async fn check_inbox<H: Host>(
    context: &Context<'_, H>,
    input: CheckInbox,
) -> Result<Inbox, Failure> {
    let place = context.mailbox();
    let mut names = context.names(format!("{place}/inbox")).await?;
    names.sort_unstable();
    let Some(first) = names.first() else {
        return Ok(Inbox {
            left: 0,
            message: None,
        });
    };
    let text = context.read(format!("{place}/inbox/{first}")).await?;
    if input.complete != Some(false) {
        let id = first.trim_end_matches(".json");
        context
            .write(format!("{place}/ctl"), format!("complete {id}"))
            .await?;
    }
    Ok(Inbox {
        left: names.len() as u64 - 1,
        message: Some(Fields::read(&text)),
    })
}

input! {
    MailHistory {
        /// Whose mail: a session, or `user`.
        agent_id: String,
        ;
        /// Only of this day, as 2026-01-31.
        date: String,
        /// Only with this text in it.
        #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
        pattern: String,
    }
}

output! {
    Messages {
        messages: Vec<Fields>,
    }
}

pub(crate) async fn mail_history<H: Host>(
    context: &Context<'_, H>,
    input: MailHistory,
) -> Result<Messages, Failure> {
    let place = mailbox(&input.agent_id)?;
    let mut found = Vec::new();
    for held in ["inbox", "completed"] {
        let mut names = context.names(format!("{place}/{held}")).await?;
        names.sort_unstable();
        for name in names.into_iter().rev().take(MESSAGES) {
            let text = context.read(format!("{place}/{held}/{name}")).await?;
            let is_wanted = input
                .pattern
                .as_ref()
                .is_none_or(|pattern| text.contains(pattern))
                && input.date.as_ref().is_none_or(|date| text.contains(date));
            if is_wanted {
                found.push(Fields::read(&text));
            }
        }
    }
    Ok(Messages { messages: found })
}
