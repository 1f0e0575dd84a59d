//! The development loop: watched, and with the right to, steered.

use std::time::Instant;

use beamtalk_wire::requests;
use serde_json::Value;

pub(crate) use super::parts::Nothing;
use super::parts::{input, output, passed_on};
use super::{Context, Failure};
use crate::data::{Data, Fields};
use crate::host::{Host, LoopCommand};
use crate::named_secrets;
use crate::settings::LoopRight;

passed_on! {
    /// As `beamtalk loop status --json`.
    LoopStatus {
        schema: "integer",
        phase: "string",
        since: "string",
        pid: "integer",
        config: "string",
        root: "string",
        state_file: "string",
        watch: "object",
        processes: "array",
        lane: "object",
        workflows: "array",
        events: "array",
        servers: "object",
        runs: "array",
        reloads: "integer",
        detached: "array",
    }
}

pub(crate) async fn loop_status<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<LoopStatus, Failure> {
    context.loop_right(LoopRight::Observe)?;
    let status = context.host.loop_command(LoopCommand::Status).await?;
    Ok(Fields::new(status).into())
}

output! {
    LoopGraph {
        text: Data,
    }
}

fn text(value: &Value) -> Data {
    Data::new(value.as_str().unwrap_or_default())
}

pub(crate) async fn loop_graph<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<LoopGraph, Failure> {
    context.loop_right(LoopRight::Observe)?;
    let graph = context.host.loop_command(LoopCommand::Graph).await?;
    Ok(LoopGraph { text: text(&graph) })
}

input! {
    LoopState {
        ;
        /// One key; all if absent.
        key: String,
    }
}

output! {
    LoopStates {
        /// By key.
        state: Fields,
    }
}

pub(crate) async fn loop_state<H: Host>(
    context: &Context<'_, H>,
    input: LoopState,
) -> Result<LoopStates, Failure> {
    context.loop_right(LoopRight::Observe)?;
    let state = context
        .host
        .loop_command(LoopCommand::State { key: input.key })
        .await?;
    Ok(LoopStates {
        state: Fields::new(named_secrets::masked_value(state)),
    })
}

input! {
    LoopOutput {
        /// A process of the loop.
        process: String,
        ;
        /// How many of the last lines; 100 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        lines: u64,
    }
}

output! {
    LoopText {
        text: Data,
    }
}

pub(crate) async fn loop_output<H: Host>(
    context: &Context<'_, H>,
    input: LoopOutput,
) -> Result<LoopText, Failure> {
    context.loop_right(LoopRight::Observe)?;
    let command = LoopCommand::Output {
        process: input.process,
        lines: input.lines.unwrap_or(100),
    };
    let said = context.host.loop_command(command).await?;
    Ok(LoopText { text: text(&said) })
}

input! {
    PostEvent {
        /// A declared event.
        event: String,
        /// Its value.
        #[cfg_attr(feature = "schema", schemars(length(max = 65_536)))]
        value: String,
    }
}

output! {
    Posted {
        changed: bool,
    }
}

pub(crate) async fn post_event<H: Host>(
    context: &Context<'_, H>,
    input: PostEvent,
) -> Result<Posted, Failure> {
    context.loop_right(LoopRight::Post)?;
    let command = LoopCommand::Post {
        event: input.event,
        value: input.value,
    };
    let changed = context.host.loop_command(command).await?;
    Ok(Posted {
        changed: changed == Value::Bool(true),
    })
}

input! {
    RunWorkflow {
        /// A declared workflow.
        workflow: String,
        ;
        /// Files that it is told have changed.
        #[cfg_attr(feature = "schema", schemars(length(max = 1000)))]
        changed: Vec<String>,
        /// Wait for its end; so if absent.
        wait: bool,
    }
}

output! {
    Ran {
        /// `ok`, `failed`, or `queued` if its end was not waited for.
        result: String,
        ms: u64,
        ;
        error: Data,
    }
}

pub(crate) async fn run_workflow<H: Host>(
    context: &Context<'_, H>,
    input: RunWorkflow,
) -> Result<Ran, Failure> {
    context.loop_right(LoopRight::Control)?;
    let started = Instant::now();
    let waits = input.wait != Some(false);
    let request = requests::LoopRun {
        workflow: input.workflow,
        changed: input.changed,
        wait: Some(waits),
    };
    let answer = context.ask(&request).await?.answer;
    let result = match (&answer.failure, waits) {
        (_, false) => "queued",
        (None, true) => "ok",
        (Some(_), true) => "failed",
    };
    Ok(Ran {
        result: result.to_owned(),
        ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        error: answer.failure.map(Data::new),
    })
}

/// What is done to a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Command {
    #[default]
    Start,
    Stop,
    Restart,
}

input! {
    ControlProcess {
        /// A declared process.
        process: String,
        /// What to do.
        command: Command,
    }
}

output! {
    Controlled {
        /// Of the process afterwards.
        state: Data,
    }
}

pub(crate) async fn control_process<H: Host>(
    context: &Context<'_, H>,
    input: ControlProcess,
) -> Result<Controlled, Failure> {
    context.loop_right(LoopRight::Control)?;
    let command = match input.command {
        Command::Start => "start",
        Command::Stop => "stop",
        Command::Restart => "restart",
    };
    let command = LoopCommand::Control {
        process: input.process.clone(),
        command: command.to_owned(),
    };
    context.host.loop_command(command).await?;
    let status = context.host.loop_command(LoopCommand::Status).await?;
    let processes = status["processes"].as_array().into_iter().flatten();
    let state = processes
        .filter(|process| process["name"] == input.process.as_str())
        .find_map(|process| process["state"].as_str());
    Ok(Controlled {
        state: Data::new(state.unwrap_or_default()),
    })
}
