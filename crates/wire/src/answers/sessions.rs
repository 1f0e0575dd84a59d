//! Sessions.

use std::collections::BTreeMap;

use super::answer;

answer! {
    SessionInfo {
        id: String,
        client: String,
        peer: String,
        /// Seconds since 1970.
        connected_at: u64,
        busy: bool,
    }
}

answer! {
    SessionsAnswer {
        sessions: Vec<SessionInfo>,
    }
}

answer! {
    /// Empty when values were not asked for.
    BoundValue {
        ;
        text: String,
        class: String,
    }
}

answer! {
    #[derive(Default)]
    BindingsAnswer {
        bindings: BTreeMap<String, BoundValue>,
    }
}

answer! {
    CloneAnswer {
        /// The new one.
        session: String,
    }
}

answer! {
    HandleOpenAnswer {
        /// `ev_` and 22 letters that say nothing.
        handle: String,
    }
}

answer! {
    HandleInfo {
        handle: String,
        busy: bool,
        /// Seconds since it was last used.
        idle_s: u64,
    }
}

answer! {
    HandleListAnswer {
        handles: Vec<HandleInfo>,
    }
}

answer! {
    QuestionKeepAnswer {
        /// `rq_` and 22 letters that say nothing.
        state: String,
    }
}

answer! {
    QuestionTakeAnswer {
        text: String,
    }
}
