//! Actors: their list, their insides, their end.

use beamtalk_wire::answers;
use beamtalk_wire::requests::{self, Scope, Step};

use super::parts::{input, output, page};
use super::{Context, Failure};
use crate::confirmation::Effect;
use crate::data::Data;
use crate::host::{Host, HostError, failure};
use crate::named_secrets;

input! {
    ListActors {
        ;
        /// Only actors of this class.
        class: String,
        /// How many; 200 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
    }
}

output! {
    ActorRow {
        pid: String,
        class: String,
        ;
        name: String,
        /// Seconds since 1970.
        spawned_at: u64,
    }
}

output! {
    ActorList {
        actors: Vec<ActorRow>,
        total: u64,
    }
}

pub(crate) async fn list_actors<H: Host>(
    context: &Context<'_, H>,
    input: ListActors,
) -> Result<ActorList, Failure> {
    let request = requests::Actors {
        class: input.class,
        ..requests::Actors::default()
    };
    let all = context.ask(&request).await?.answer.actors;
    let one = |actor: answers::Actor| ActorRow {
        pid: actor.pid,
        class: actor.class,
        name: actor.name,
        spawned_at: actor.spawned_at,
    };
    Ok(ActorList {
        total: all.len() as u64,
        actors: page(all.into_iter().map(one).collect(), input.limit, 200),
    })
}

/// The pid of an actor that is named by its pid or its registered name.
pub(crate) async fn pid_of<H: Host>(host: &H, actor: &str) -> Result<String, HostError> {
    let is_pid = actor
        .trim_matches(['<', '>'])
        .split('.')
        .all(|part| part.parse::<u32>().is_ok());
    if is_pid {
        return Ok(actor.to_owned());
    }
    let all = host.ask(&requests::Actors::default()).await?.answer.actors;
    let found = all.into_iter().find(|one| one.name.as_deref() == Some(actor));
    found.map(|one| one.pid).ok_or_else(|| {
        let shown = beamtalk_wire::escape(&actor.chars().take(64).collect::<String>());
        let error = failure("actor_not_alive", format!("there is no actor '{shown}'"));
        Box::new(error.hint("list_actors shows those that live"))
    })
}

input! {
    Inspect {
        ;
        /// A pid such as `<0.187.0>`, or a registered name.
        actor: String,
        /// A variable of `session`.
        binding: String,
        /// A handle `ev_…`.
        session: String,
        /// Names of fields, or numbers of elements as text, from the outside in.
        path: Vec<String>,
        /// Of 50 elements, from 1.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        page: u64,
    }
}

output! {
    Field {
        /// For `path`.
        name: String,
        label: Data,
        text: Data,
        class: String,
        /// There is something inside.
        drillable: bool,
    }
}

output! {
    Inspected {
        kind: String,
        class: String,
        fields: Vec<Field>,
        /// How many fields there are in all.
        total: u64,
        ;
        text: Data,
    }
}

pub(crate) async fn inspect<H: Host>(context: &Context<'_, H>, input: Inspect) -> Result<Inspected, Failure> {
    super::one_of(&[
        ("actor", input.actor.is_some()),
        ("binding", input.binding.is_some()),
    ])?;
    let actor = match &input.actor {
        Some(actor) => Some(pid_of(context.host, actor).await?),
        None => None,
    };
    let handle = match input.session {
        Some(session) => Some(session),
        None => context.own_handle.lock().await.clone(),
    };
    let step = |step: String| match step.parse() {
        Ok(number) => Step::Number(number),
        Err(_) => Step::Name(step),
    };
    let way = input.binding.iter().chain(input.path.iter().flatten());
    let is_secret = way.into_iter().any(|name| named_secrets::is_secret(name));
    let request = requests::Inspect {
        actor,
        handle: handle.filter(|_| input.binding.is_some()),
        binding: input.binding,
        path: input.path.map(|path| path.into_iter().map(step).collect()),
        page: input.page,
        ..requests::Inspect::default()
    };
    let answer = context.ask(&request).await?.answer;
    let seen = Inspected::from(answer);
    Ok(if is_secret { seen.masked() } else { seen })
}

impl Inspected {
    /// What is inside of something secret is secret.
    fn masked(mut self) -> Self {
        let mask = || Data::new(named_secrets::MASK);
        self.text = self.text.map(|_| mask());
        self.fields.iter_mut().for_each(|field| field.text = mask());
        self
    }
}

impl From<answers::InspectAnswer> for Inspected {
    fn from(answer: answers::InspectAnswer) -> Self {
        let one = |field: answers::InspectedField| {
            let name = match field.name {
                Step::Name(name) => name,
                Step::Number(number) => number.to_string(),
            };
            Field {
                text: Data::named(&name, &field.text),
                label: Data::new(&field.label),
                name: beamtalk_wire::escape(&name),
                class: field.class,
                drillable: field.drillable,
            }
        };
        Self {
            kind: answer.kind,
            class: answer.class,
            fields: answer.fields.into_iter().map(one).collect(),
            total: answer.total,
            text: answer.text.map(|text| Data::named("", text)),
        }
    }
}

/// An actor's class and fields, and how it does.
pub(crate) async fn actor_value<H: Host>(host: &H, actor: &str) -> Result<serde_json::Value, HostError> {
    let actor = pid_of(host, actor).await?;
    let bare = |pid: &str| pid.trim_matches(['<', '>']).to_owned();
    let all = host.ask(&requests::Actors::default()).await?.answer.actors;
    let own = all.into_iter().find(|one| bare(&one.pid) == bare(&actor));
    let request = requests::Inspect {
        actor: Some(actor.clone()),
        ..requests::Inspect::default()
    };
    let seen = Inspected::from(host.ask(&request).await?.answer);
    let stats = host.ask(&requests::PidStats { actor }).await?.answer;
    let mut value = serde_json::to_value(seen).unwrap_or_default();
    value["name"] = own.and_then(|own| own.name).into();
    value["queue"] = stats.queue_len.into();
    Ok(value)
}

/// The pid, without brackets, and the class of an actor.
pub(crate) async fn actor_place<H: Host>(host: &H, actor: &str) -> Result<(String, String), HostError> {
    let pid = pid_of(host, actor).await?;
    let bare = pid.trim_matches(['<', '>']).to_owned();
    let all = host.ask(&requests::Actors::default()).await?.answer.actors;
    let found = all
        .into_iter()
        .find(|one| one.pid.trim_matches(['<', '>']) == bare);
    match found {
        Some(found) => Ok((bare, found.class)),
        None => Err(failure("actor_not_alive", format!("there is no actor {bare}"))),
    }
}

input! {
    SupervisionTree {
        ;
        /// `default`, or `system` for the runtime's own too.
        scope: Scope,
    }
}

output! {
    Node {
        pid: String,
        kind: String,
        child_count: u64,
        ;
        parent: String,
        name: String,
        class: String,
    }
}

output! {
    Tree {
        nodes: Vec<Node>,
    }
}

pub(crate) async fn supervision_tree<H: Host>(
    context: &Context<'_, H>,
    input: SupervisionTree,
) -> Result<Tree, Failure> {
    let request = requests::SupervisionTree { scope: input.scope };
    let answer = context.ask(&request).await?.answer;
    let one = |node: answers::SupervisedProcess| Node {
        pid: node.pid,
        kind: node.kind,
        child_count: node.child_count,
        parent: node.parent,
        name: node.name,
        class: node.class,
    };
    Ok(Tree {
        nodes: answer.nodes.into_iter().map(one).collect(),
    })
}

input! {
    KillActor {
        /// A pid such as `<0.187.0>`, or a registered name.
        actor: String,
        ;
        /// Let it finish what it does; true if absent.
        graceful: bool,
        /// The person said yes. Asked for where the client can ask.
        confirm: bool,
    }
}

output! {
    Killed {
        stopped: bool,
    }
}

pub(crate) async fn kill_actor<H: Host>(
    context: &Context<'_, H>,
    input: KillActor,
) -> Result<Killed, Failure> {
    let pid = pid_of(context.host, &input.actor).await?;
    let all = context.ask(&requests::Actors::default()).await?.answer.actors;
    let bare = pid.trim_matches(['<', '>']);
    let found = all
        .iter()
        .find(|actor| actor.pid.trim_matches(['<', '>']) == bare);
    let summary = match found {
        Some(found) => format!(
            "Stop the actor {} of class {}? Its state is lost.",
            found.pid, found.class
        ),
        // Who said yes to its end is told that there is nothing left to end.
        None if context.granted.is_some() => {
            format!("The actor {pid} has ended meanwhile. Nothing would stop.")
        }
        None => {
            let error = failure("actor_not_alive", format!("{pid} does not live"));
            return Err(Failure::Error(Box::new(
                error.hint("list_actors shows those that live"),
            )));
        }
    };
    let effect = Effect {
        summary,
        action: format!("Stop {pid}"),
        actors: u64::from(found.is_some()),
        ..Effect::default()
    };
    context.confirm(input.confirm, effect)?;
    let request = requests::Kill {
        actor: pid,
        graceful: input.graceful,
    };
    let stopped = context.ask(&request).await?.answer.value;
    Ok(Killed { stopped })
}
