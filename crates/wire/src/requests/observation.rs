//! Observation and the server itself.

use std::collections::BTreeMap;

use super::field::request;
use crate::event::Channel;

request! {
    /// Listen to channels.
    Subscribe {
        channels: Vec<Channel>,
        ;
        /// For `object`.
        actor: String,
        /// For `logs`: this one and graver.
        level: String,
        /// By channel: first what was told after this number.
        since: BTreeMap<String, u64>,
    }
}

request! {
    /// Listen no more.
    Unsubscribe {
        channels: Vec<Channel>,
    }
}

request! {
    /// Record messages between actors.
    EnableTracing {}
}

request! {
    /// Record no more.
    DisableTracing {}
}

request! {
    /// Forget what was recorded.
    ClearTraces {}
}

request! {
    /// Messages between actors, newest first.
    GetTraces {
        ;
        actor: String,
        selector: String,
        class: String,
        /// `ok`, `error` or `timeout`.
        outcome: String,
        min_duration_ns: u64,
        /// 100 if absent.
        limit: u64,
    }
}

request! {
    /// Messages counted by actor and selector.
    ActorStats {
        ;
        actor: String,
    }
}

request! {
    /// Write messages between actors to a file.
    ExportTraces {
        ;
        path: String,
        actor: String,
        selector: String,
        class: String,
        /// `ok`, `error` or `timeout`.
        outcome: String,
        min_duration_ns: u64,
        limit: u64,
    }
}

request! {
    /// Record that a tool was called through MCP. Texts of the call are not sent.
    McpCall {
        tool: String,
        /// `R`, `X` or `XD`.
        class: String,
        era: String,
        /// `ok`, `error`, `denied`, `declined`, `cancelled` or `limit`.
        outcome: String,
        ;
        /// The client's word for itself.
        client_info: String,
        /// Of the arguments.
        sha256: String,
        bytes: u64,
        ms: u64,
        error_kind: String,
        /// How many alike this one stands for.
        count: u64,
        /// The `traceparent` of the call.
        trace: String,
        /// `stdio`, `http` or `door`.
        way: String,
        /// The name of the person's answer to it.
        approval: String,
        /// The task it was the work of.
        task: String,
    }
}

request! {
    /// Read or set the level of the log.
    LogLevel {
        ;
        level: String,
    }
}

request! {
    /// What there is: operations, versions, capabilities, limits.
    Describe {}
}

request! {
    /// How the workspace does.
    Health {
        ;
        /// Only what the daemon knows: without the numbers that the node is asked for.
        brief: bool,
    }
}

request! {
    /// Stop the workspace.
    Shutdown {
        ;
        /// Without waiting for what runs.
        force: bool,
    }
}
