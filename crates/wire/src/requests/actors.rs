//! Actors.

use serde::{Deserialize, Serialize};

use super::field::{request, wanted, words};

/// A pid, with or without its brackets.
pub type ActorName = String;

words! {
    /// By what living actors are put in order.
    ActorOrder: "class, name, queue, memory, reductions or age" {
        #[default]
        Class "class",
        Name "name",
        Queue "queue",
        Memory "memory",
        Reductions "reductions",
        Age "age",
    }
}

request! {
    /// Living actors: all of them, or a window with `offset` or `limit`.
    Actors {
        ;
        class: String,
        /// How many to leave out.
        offset: u64,
        /// At most 500; 50 if absent.
        limit: u64,
        sort: ActorOrder,
        descending: bool,
        /// Only those with this text in pid, class or name.
        find: String,
        /// With queue, memory, reductions and what they work on.
        stats: bool,
    }
}

/// A field of a value, by name or number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum Step {
    Name(String),
    Number(u64),
}

wanted! { Vec<Step>: "a list of names and numbers"; }

request! {
    /// Look into an actor, a variable, a class, or a value that is held.
    Inspect {
        ;
        actor: ActorName,
        binding: String,
        class: String,
        /// What `eval` with `hold` answered.
        r#ref: String,
        /// From the outermost value down.
        path: Vec<Step>,
        /// Of 50 elements, from 1.
        page: u64,
        /// How many elements to leave out, instead of `page`.
        offset: u64,
        /// At most 500; 50 if absent.
        limit: u64,
        /// Answer where the first entry with this key, name or index is, in `at`, and the window that begins there.
        find: String,
        /// Answer the messages it understands too.
        understands: bool,
        /// Whose variable it is.
        handle: String,
    }
}

words! {
    /// By what actors are put in order.
    TopOrder: "queue, memory, reductions, class or name" {
        #[default]
        Queue "queue",
        Memory "memory",
        Reductions "reductions",
        Class "class",
        Name "name",
    }
}

request! {
    /// The actors that come first in an order, and how many there are of each class.
    TopActors {
        ;
        /// `queue` if absent. Numbers: the largest first.
        sort: TopOrder,
        /// At most 200; 50 if absent.
        limit: u64,
    }
}

request! {
    /// How a process does.
    PidStats {
        actor: ActorName,
    }
}

words! {
    /// Which processes.
    Scope: "default or system" {
        #[default]
        Default "default",
        System "system",
    }
}

request! {
    /// Supervisors and what they supervise.
    SupervisionTree {
        ;
        /// `system` is not for observers.
        scope: Scope,
    }
}

request! {
    /// End an actor.
    Kill {
        actor: ActorName,
        ;
        /// Let it end by itself; so if absent.
        graceful: bool,
    }
}
