//! Actors.

use super::answer;
use crate::requests::Step;

answer! {
    Actor {
        pid: String,
        class: String,
        module: Option<String>,
        /// Seconds since 1970.
        spawned_at: Option<u64>,
        name: Option<String>,
    }
}

answer! {
    ActorsAnswer {
        actors: Vec<Actor>,
    }
}

answer! {
    #[derive(Eq)]
    InspectedField {
        name: Step,
        label: String,
        text: String,
        class: String,
        /// There is something inside.
        drillable: bool,
    }
}

answer! {
    InspectAnswer {
        kind: String,
        class: String,
        fields: Vec<InspectedField>,
        total: u64,
    }
}

answer! {
    /// Of a dead process, the status only.
    PidStats {
        status: String,
        ;
        queue_len: u64,
        memory: u64,
        reductions: u64,
        current_function: String,
    }
}

answer! {
    /// All of `stats` once more, but `status`, which is the answer's own.
    PidStatsAnswer {
        stats: PidStats,
        ;
        queue_len: u64,
        memory: u64,
        reductions: u64,
        current_function: String,
    }
}

answer! {
    SupervisedProcess {
        pid: String,
        parent: Option<String>,
        name: Option<String>,
        kind: String,
        class: Option<String>,
        child_count: u64,
    }
}

answer! {
    SupervisionTreeAnswer {
        nodes: Vec<SupervisedProcess>,
    }
}
