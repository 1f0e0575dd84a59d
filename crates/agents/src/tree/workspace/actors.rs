//! Living actors: what they are, what they know, how they are ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use beamtalk_ninep::Refusal;
use beamtalk_wire::ErrorKind;
use beamtalk_wire::answers::{Actor, InspectAnswer};
use beamtalk_wire::requests::{Inspect, Kill, PidStats, SupervisionTree};
use serde_json::{Map, Value, json};

use super::{WorkspaceNode, find_actor};
use crate::error::refusal;
use crate::link::{Failure, Live, bare};

/// Fields that are shown.
const FIELDS: u64 = 500;
const USAGE: &str = "usage: stop | kill";

fn gone(failure: Failure) -> Refusal {
    match failure {
        Failure::Told(error) if matches!(error.kind, ErrorKind::ActorNotAlive | ErrorKind::InvalidActor) => {
            Refusal::NOT_FOUND
        }
        failure => failure.into(),
    }
}

fn line(text: &str) -> Vec<u8> {
    if text.is_empty() {
        Vec::new()
    } else {
        format!("{text}\n").into_bytes()
    }
}

impl WorkspaceNode {
    /// The values of an actor, all or one.
    pub(super) async fn actor_contents(
        &self,
        live: &Live,
        name: &str,
        one: Option<&'static str>,
    ) -> Result<BTreeMap<&'static str, Arc<Vec<u8>>>, Refusal> {
        let actor = find_actor(live, name).await?;
        let is_wanted = |name: &str| one.is_none_or(|one| one == name);
        let mut contents = BTreeMap::new();
        contents.insert("class", line(&actor.class));
        if is_wanted("name") {
            contents.insert("name", line(&name_of(live, &actor).await?.unwrap_or_default()));
        }
        if is_wanted("state") || is_wanted("state.json") {
            let request = Inspect {
                actor: Some(actor.pid.clone()),
                limit: Some(FIELDS),
                ..Inspect::default()
            };
            let told = live.ask(&request).await.map_err(gone)?;
            let (text, json) = state(&told);
            contents.insert("state", text);
            contents.insert("state.json", json);
        }
        if is_wanted("info") {
            contents.insert("info", info(live, &actor).await?);
        }
        Ok(contents
            .into_iter()
            .map(|(name, bytes)| (name, Arc::new(bytes)))
            .collect())
    }

    pub(super) async fn stop_actor(&self, name: &str, words: &[&str]) -> Result<String, Refusal> {
        let graceful = match words {
            ["stop"] => true,
            ["kill"] => false,
            [] => return Err(refusal(USAGE)),
            _ => return Err(refusal("unknown command")),
        };
        let live = self.link.live().await?;
        let request = Kill {
            actor: find_actor(&live, name).await?.pid,
            graceful: Some(graceful),
        };
        live.ask(&request).await.map_err(gone)?;
        Ok(String::new())
    }
}

/// Names are given and taken without a word: it is asked for.
async fn name_of(live: &Live, actor: &Actor) -> Result<Option<String>, Refusal> {
    let request = beamtalk_wire::requests::Actors {
        class: Some(actor.class.clone()),
        ..Default::default()
    };
    let told = live.ask(&request).await?;
    let found = told
        .actors
        .into_iter()
        .find(|other| bare(&other.pid) == bare(&actor.pid));
    found.map(|actor| actor.name).ok_or(Refusal::NOT_FOUND)
}

fn state(told: &InspectAnswer) -> (Vec<u8>, Vec<u8>) {
    let mut text = String::new();
    let mut fields = Map::new();
    for field in &told.fields {
        // A value on several lines would be taken for several fields.
        text.push_str(&format!("{}: {}\n", field.label, field.text.replace('\n', "\\n")));
        fields.insert(field.label.clone(), Value::from(field.text.as_str()));
    }
    (
        text.into_bytes(),
        format!("{}\n", Value::Object(fields)).into_bytes(),
    )
}

async fn info(live: &Live, actor: &Actor) -> Result<Vec<u8>, Refusal> {
    let request = PidStats {
        actor: actor.pid.clone(),
    };
    let told = live.ask(&request).await.map_err(gone)?;
    let tree = live.ask(&SupervisionTree::default()).await?;
    let own = tree
        .nodes
        .iter()
        .find(|process| bare(&process.pid) == bare(&actor.pid));
    let supervisor = own.and_then(|process| process.parent.as_deref()).map(bare);
    let info = json!({
        "pid": bare(&actor.pid), "class": actor.class, "mailbox": told.stats.queue_len,
        "memory": told.stats.memory, "reductions": told.stats.reductions, "supervisor": supervisor,
    });
    Ok(format!("{info}\n").into_bytes())
}
