//! Sessions.

use super::field::{request, words};

request! {
    /// All sessions.
    Sessions {}
}

request! {
    /// The variables of a session.
    Bindings {
        ;
        /// With text and class; so if absent.
        values: bool,
        handle: String,
        /// Whose names; each is answered with its own scope then.
        scope: BindingScope,
    }
}

words! {
    /// For whom a name is bound.
    BindingScope: "session, workspace, global or all" {
        /// For one session.
        #[default]
        Session "session",
        /// For all sessions, by the user.
        Workspace "workspace",
        /// For all sessions, by the workspace itself.
        Global "global",
        All "all",
    }
}

words! {
    /// From where a name is taken.
    UnbindScope: "session or workspace" {
        #[default]
        Session "session",
        Workspace "workspace",
    }
}

request! {
    /// Forget one variable of one's own session, or a name that is bound for all.
    Unbind {
        name: String,
        ;
        scope: UnbindScope,
    }
}

request! {
    /// Forget the variables of one's own session.
    Clear {}
}

request! {
    /// Make a session with a copy of the variables.
    Clone {}
}

request! {
    /// End the session now.
    Close {}
}

request! {
    /// Make a handle: variables that belong to who asks and outlive the connection.
    HandleOpen {}
}

request! {
    /// Forget a handle and its variables.
    HandleClose {
        handle: String,
    }
}

request! {
    /// One's own handles.
    HandleList {}
}

request! {
    /// Keep what a person is asked until the answer comes; it can be taken once, within ten minutes, by who kept it.
    QuestionKeep {
        text: String,
    }
}

request! {
    /// Take a question that was kept.
    QuestionTake {
        state: String,
    }
}

request! {
    /// Start work that goes on without its client: a call of a tool, as the MCP server orders it.
    JobStart {
        order: String,
    }
}

request! {
    /// How far one's own work is; with `wait_ms` not before it has ended, or so much time has passed.
    JobGet {
        job: String,
        ;
        wait_ms: u64,
    }
}

request! {
    /// Stop one's own work.
    JobCancel {
        job: String,
    }
}

request! {
    /// Hold a call until a person answers. The answer comes when they have, or when their time is over.
    ApprovalAsk {
        tool: String,
        summary: String,
        /// The arguments as text.
        text: String,
        ;
        /// What it would do, as JSON.
        effect: String,
        diff: String,
        /// How long they may take.
        timeout_s: u64,
        /// Whether the very same call may be approved always.
        may_be_rule: bool,
    }
}

request! {
    /// The calls that wait for a person: all for the owner at a terminal or page, one's own otherwise.
    Approvals {
        ;
        /// Rules of `approve always` instead.
        rules: bool,
    }
}

request! {
    /// Answer for a person.
    ApprovalAnswer {
        /// The call that waits, or a rule.
        r#for: String,
        /// `approve`, `always`, `reject`, `text`, or `forget` for a rule.
        answer: String,
        ;
        /// A reason, or the answer to a question.
        text: String,
        /// Of what was shown; without it nothing is approved.
        sha256: String,
    }
}

request! {
    /// One's own calls through MCP in the last day, counted by tool and outcome.
    AuditSummary {}
}
