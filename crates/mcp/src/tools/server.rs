//! What holds here, and the files of the project on disk.

use std::collections::BTreeMap;

use beamtalk_wire::{answers, requests};

use super::parts::{FoundFault, faults, input, output};
use super::{Context, Failure};
use crate::data::Data;
use crate::host::Host;
use crate::settings::{Approval, Policy, Settings, Toolset, Way};

input! { Describe {} }

output! {
    Limits {
        /// Longest `timeout_ms` of evaluate.
        eval_ceiling_ms: u64,
        message_bytes: u64,
        result_bytes: u64,
        sessions: u64,
        session_idle_s: u64,
    }
}

output! {
    WorkspaceState {
        running: bool,
        ;
        /// `up`, `starting`, `down` or `failed`.
        node: String,
        id: String,
        uptime_s: u64,
        restarts: u64,
        project: String,
        last_error: Data,
    }
}

output! {
    Description {
        policy: String,
        toolsets: Vec<String>,
        /// How to get tools that are not in the list.
        more_tools: String,
        versions: BTreeMap<String, String>,
        limits: Limits,
        workspace: WorkspaceState,
        /// What guards what.
        evaluate_note: String,
        loop_right: String,
        ;
        /// Such as `narrowed by user`.
        policy_note: String,
        /// What code may use, if a workspace runs.
        capabilities: answers::Capabilities,
    }
}

const NOTE: &str = "evaluate runs code with the user's rights; the policy restrains tools, not that code";

/// What guards what: a boundary is only what the client cannot change and nothing runs behind.
fn note(settings: &Settings) -> String {
    let is_guarded = settings.way != Way::Stdio;
    let text = match (settings.policy, settings.approval) {
        (Policy::ReadOnly, _) => "read-only: nothing can be evaluated or changed from here",
        (_, Approval::Execute) => "everything that runs waits for a person's yes",
        _ => NOTE,
    };
    let is_closed = settings.policy == Policy::ReadOnly || settings.approval == Approval::Execute;
    let kind = if is_guarded && is_closed {
        "This is a boundary: you cannot change it."
    } else {
        "This is a guardrail against accidents, no boundary."
    };
    let held = match settings.approval {
        Approval::Off | Approval::Execute => "",
        Approval::Destructive => " What loses something waits for a person's yes.",
        Approval::Write => " Writing files and steering the loop wait for a person's yes.",
    };
    format!("{text}. {kind}{held}")
}

fn names(settings: &Settings) -> Vec<String> {
    settings
        .toolsets
        .iter()
        .map(|set| set.name().to_owned())
        .collect()
}

pub(crate) async fn describe<H: Host>(context: &Context<'_, H>, _: Describe) -> Result<Description, Failure> {
    let settings = context.settings;
    let (workspace, capabilities) = if context.host.is_connected() {
        state(context).await
    } else {
        (stopped(None), None)
    };
    let versions = [
        ("beamtalk", env!("CARGO_PKG_VERSION").to_owned()),
        ("mcp", crate::VERSIONS.join(", ")),
        ("protocol", beamtalk_wire::PROTOCOL.to_owned()),
    ];
    Ok(Description {
        policy: settings.policy.name().to_owned(),
        policy_note: settings.narrowed_by.map(|by| format!("narrowed by {by}")),
        toolsets: names(settings),
        more_tools: more_tools(settings),
        versions: versions.map(|(name, version)| (name.to_owned(), version)).into(),
        limits: Limits {
            eval_ceiling_ms: u64::try_from(settings.eval_ceiling.as_millis()).unwrap_or(u64::MAX),
            message_bytes: crate::LINE_LIMIT as u64,
            result_bytes: crate::fit::RESULT_BYTES as u64,
            sessions: beamtalk_wire::limits::HANDLES as u64,
            session_idle_s: settings.session_idle.as_secs(),
        },
        workspace,
        capabilities,
        evaluate_note: note(settings),
        loop_right: settings.loop_right.name().to_owned(),
    })
}

/// Where the person says how much may be done, for a client that comes in this way.
fn more_tools(settings: &Settings) -> String {
    let sets = Toolset::WORDS.join(",");
    match settings.way {
        Way::Stdio | Way::Door => format!(
            "start the server with --toolsets {sets},all; policy full is allowed by the user's config.toml: [mcp] max-policy"
        ),
        Way::Http => format!(
            "the user's config.toml says which there are: [mcp] toolsets, of {sets},all; a policy is the token's: beamtalk workspace token create NAME --mcp POLICY"
        ),
    }
}

fn stopped(last_error: Option<Data>) -> WorkspaceState {
    WorkspaceState {
        running: false,
        node: None,
        id: None,
        uptime_s: None,
        restarts: None,
        project: None,
        last_error,
    }
}

async fn state<H: Host>(context: &Context<'_, H>) -> (WorkspaceState, Option<answers::Capabilities>) {
    let health = match context.ask(&requests::Health { brief: Some(true) }).await {
        Ok(asked) => asked.answer,
        Err(error) => return (stopped(Some(Data::new(&error.message))), None),
    };
    let capabilities = context.host.capabilities().await;
    let state = WorkspaceState {
        running: true,
        node: Some(health.node),
        id: Some(health.workspace_id),
        uptime_s: Some(health.uptime_s),
        restarts: Some(health.restarts),
        project: health.project.map(|project| project.name),
        last_error: health.last_error.map(Data::new),
    };
    (state, capabilities)
}

input! {
    Lint {
        ;
        /// A file or directory of the project; all if absent.
        path: String,
    }
}

output! {
    Linted {
        findings: Vec<FoundFault>,
    }
}

/// What the linter says, but nothing of files that the client may not name: a directory does not open what is in it.
async fn found<H: Host>(
    context: &Context<'_, H>,
    path: Option<String>,
) -> Result<Vec<answers::Diagnostic>, Failure> {
    let path = path.map(|path| context.host.inside(&path)).transpose()?;
    let mut found = context.host.lint(path.as_deref()).await?;
    let closed = context.host.closed_below(".");
    found.retain(|one| {
        let is_open = |file: &str| context.host.inside(file).is_ok();
        let names_closed = closed.iter().any(|file| one.message.contains(file.as_str()));
        one.file.as_deref().is_none_or(is_open) && !names_closed
    });
    Ok(found)
}

pub(crate) async fn lint<H: Host>(context: &Context<'_, H>, input: Lint) -> Result<Linted, Failure> {
    let found = found(context, input.path).await?;
    Ok(Linted {
        findings: faults(&found),
    })
}

output! {
    TypeCoverage {
        /// Expressions with a type.
        typed: u64,
        total: u64,
        percent: f64,
    }
}

output! {
    Summary {
        total: u64,
        /// How many findings of each code.
        codes: BTreeMap<String, u64>,
        type_coverage: TypeCoverage,
    }
}

pub(crate) async fn diagnostic_summary<H: Host>(
    context: &Context<'_, H>,
    input: Lint,
) -> Result<Summary, Failure> {
    let path = input
        .path
        .as_deref()
        .map(|path| context.host.inside(path))
        .transpose()?;
    let found = found(context, input.path).await?;
    let (typed, all) = context.host.type_coverage(path.as_deref()).await?;
    let mut codes = BTreeMap::new();
    for one in &found {
        let code = one.code.clone().unwrap_or_else(|| one.severity.name().to_owned());
        *codes.entry(code).or_insert(0) += 1;
    }
    Ok(Summary {
        total: found.len() as u64,
        codes,
        type_coverage: TypeCoverage {
            typed,
            total: all,
            percent: percent(typed, all),
        },
    })
}

/// To one digit and never rounded up; nothing to type is all typed.
fn percent(typed: u64, total: u64) -> f64 {
    if total == 0 {
        return 100.0;
    }
    (typed.saturating_mul(1_000) / total) as f64 / 10.0
}
