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
        ;
        /// These with `stats`.
        queue_len: u64,
        memory: u64,
        reductions: u64,
        /// What it works on.
        message: String,
    }
}

answer! {
    ActorsAnswer {
        actors: Vec<Actor>,
        ;
        /// Of a window: how many there are.
        total: u64,
        /// So many of them were looked at for the order, because there are too many.
        sampled: u64,
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
    /// Messages that come from one class.
    Understood {
        class: String,
        selectors: Vec<String>,
    }
}

answer! {
    InspectAnswer {
        kind: String,
        class: String,
        fields: Vec<InspectedField>,
        total: u64,
        ;
        /// `sorted`, or `unsorted` for a dictionary too large to be put in order.
        order: String,
        /// With `find`: how many entries stand before the one that was found. Absent when none was.
        at: u64,
        /// The value itself, as tools print it.
        text: String,
        /// With `understands`: from its own class up.
        understands: Vec<Understood>,
    }
}

answer! {
    ClassCount {
        class: String,
        count: u64,
    }
}

answer! {
    TopActor {
        pid: String,
        class: String,
        name: Option<String>,
        queue_len: u64,
        memory: u64,
        reductions: u64,
        /// What it works on; `null` when it waits.
        message: Option<String>,
    }
}

answer! {
    TopActorsAnswer {
        actors: Vec<TopActor>,
        total: u64,
        /// The largest count first.
        classes: Vec<ClassCount>,
    }
}

answer! {
    /// Of a dead process, the status only.
    ProcessStats {
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
        stats: ProcessStats,
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
        ;
        /// Of a supervisor: `one_for_one`, `one_for_all`, `rest_for_one` or `simple_one_for_one`.
        strategy: String,
    }
}

answer! {
    SupervisionTreeAnswer {
        nodes: Vec<SupervisedProcess>,
    }
}
