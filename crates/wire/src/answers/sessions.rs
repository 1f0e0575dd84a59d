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
        /// `session`, `workspace` or `global`; when it was asked for.
        scope: String,
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

answer! {
    JobAnswer {
        /// `tk_` and 22 letters that say nothing.
        job: String,
        /// `working`, `completed`, `failed` or `cancelled`.
        state: String,
        /// ISO 8601.
        created: String,
        updated: String,
        /// How long it is kept, from its beginning.
        ttl_ms: u64,
        ;
        message: String,
        /// The result of the call as JSON, or why it was lost.
        result: String,
    }
}

answer! {
    ApprovalAskAnswer {
        /// Its name.
        approval: String,
        /// `approve`, `reject`, `no answer`, or the answer to a question.
        answer: String,
        ;
        text: String,
    }
}

answer! {
    Approval {
        id: String,
        /// Who asks: `owner`, `token:NAME`, `session:ID`.
        who: String,
        tool: String,
        summary: String,
        text: String,
        /// Over everything that is shown.
        sha256: String,
        /// Unix seconds.
        asked: u64,
        expires: u64,
        /// Whether `always` is possible.
        may_be_rule: bool,
        ;
        effect: String,
        diff: String,
    }
}

answer! {
    ApprovalRule {
        id: String,
        tool: String,
        text: String,
    }
}

answer! {
    #[derive(Default)]
    ApprovalsAnswer {
        approvals: Vec<Approval>,
        rules: Vec<ApprovalRule>,
    }
}

answer! {
    ToolCount {
        tool: String,
        outcome: String,
        count: u64,
        ;
        /// Why it was refused.
        error_kind: String,
    }
}

answer! {
    AuditSummaryAnswer {
        counts: Vec<ToolCount>,
    }
}
