//! Questions to a person.

use beamtalk_wire::requests;

use super::{Context, Failure, Nothing};
use crate::data::Data;
use crate::host::Host;
use crate::tools::parts::{input, output};

output! {
    HeldCall {
        id: String,
        tool: String,
        summary: Data,
        /// Unix seconds.
        asked: u64,
        expires: u64,
        state: String,
        ;
        /// Why it was refused.
        reason: Data,
    }
}

output! {
    HeldCalls {
        approvals: Vec<HeldCall>,
    }
}

pub(crate) async fn list_approvals<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<HeldCalls, Failure> {
    let found = context
        .ask(&requests::Approvals::default())
        .await?
        .answer
        .approvals;
    let one = |held: beamtalk_wire::answers::Approval| HeldCall {
        id: held.id,
        tool: held.tool,
        summary: Data::new(held.summary),
        asked: held.asked,
        expires: held.expires,
        state: "waiting".to_owned(),
        reason: None,
    };
    Ok(HeldCalls {
        approvals: found.into_iter().map(one).collect(),
    })
}

input! {
    AskPerson {
        /// What to ask.
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 4096)))]
        question: String,
        ;
        /// Answers to choose from.
        #[cfg_attr(feature = "schema", schemars(length(max = 6)))]
        choices: Vec<String>,
        /// How long to wait, in seconds; 600 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
        timeout: u64,
    }
}

output! {
    PersonSaid {
        ;
        /// Nobody answered in time.
        no_answer: bool,
        /// `approve`, `reject`, or their words.
        answer: Data,
        note: Data,
    }
}

pub(crate) async fn ask_person<H: Host>(
    context: &Context<'_, H>,
    input: AskPerson,
) -> Result<PersonSaid, Failure> {
    let choices = input.choices.unwrap_or_default();
    let mut text = beamtalk_wire::escape(&input.question);
    for choice in &choices {
        text.push_str("\n- ");
        text.push_str(&beamtalk_wire::escape(choice));
    }
    context.progress.wait(Some("waiting for a person".to_owned()));
    let request = requests::ApprovalAsk {
        tool: "ask_person".to_owned(),
        summary: "A question to you".to_owned(),
        text,
        effect: None,
        diff: None,
        timeout_s: Some(input.timeout.unwrap_or(600)),
        may_be_rule: Some(false),
    };
    let said = context.ask(&request).await;
    context.progress.wait(None);
    let said = said?.answer;
    Ok(match said.answer.as_str() {
        "no answer" => PersonSaid {
            no_answer: Some(true),
            answer: None,
            note: None,
        },
        "text" => PersonSaid {
            no_answer: None,
            answer: said.text.map(Data::new),
            note: None,
        },
        word => PersonSaid {
            no_answer: None,
            answer: Some(Data::new(word)),
            note: said.text.map(Data::new),
        },
    })
}
