//! Observation and the server itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer;
use crate::event::Channel;
use crate::op::Access;

answer! {
    ChannelsAnswer {
        /// All that are active now.
        channels: Vec<Channel>,
    }
}

answer! {
    Trace {
        actor: String,
        class: Option<String>,
        selector: String,
        mode: String,
        outcome: String,
        duration_ns: u64,
        timestamp_ns: i64,
    }
}

answer! {
    GetTracesAnswer {
        traces: Vec<Trace>,
    }
}

answer! {
    TraceStats {
        actor: String,
        class: Option<String>,
        selector: String,
        calls: u64,
        ok: u64,
        errors: u64,
        timeouts: u64,
        total_duration_ns: u64,
        avg_duration_ns: u64,
        min_duration_ns: u64,
        max_duration_ns: u64,
    }
}

answer! {
    ActorStatsAnswer {
        stats: Vec<TraceStats>,
    }
}

answer! {
    ExportTracesAnswer {
        path: String,
        count: u64,
    }
}

answer! {
    LogLevelAnswer {
        level: String,
    }
}

answer! {
    OpDescription {
        class: Access,
        /// Those that may be left out end in `?`.
        fields: Vec<String>,
        /// The type of the audit record.
        audit: Option<String>,
    }
}

answer! {
    Versions {
        protocol: String,
        beamtalk: String,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub enum FileAccess {
    #[serde(rename = "rw")]
    ReadWrite,
    #[serde(rename = "ro")]
    ReadOnly,
}

answer! {
    Capabilities {
        subprocess: bool,
        ffi: bool,
        http: bool,
        fs: FileAccess,
    }
}

answer! {
    LimitsInForce {
        inbound_frame: u64,
        outbound_frame: u64,
        open_requests: u64,
        waiting_evals: u64,
        eval_heap_mb: u64,
        eval_timeout_s: u64,
        eval_output: u64,
        eval_text: u64,
        session_grace_s: u64,
        compiler_memory_mb: u64,
        compiler_timeout_s: u64,
    }
}

answer! {
    DescribeAnswer {
        ops: BTreeMap<String, OpDescription>,
        versions: Versions,
        capabilities: Capabilities,
        limits: LimitsInForce,
    }
}

answer! {
    AuditState {
        ok: bool,
        /// The number of the last record; 0 before the first.
        seq: u64,
        /// Records that could not be written and are not yet confessed in the trail.
        lost: u64,
        text: bool,
        required: bool,
        ;
        error: String,
    }
}

answer! {
    /// Bytes, by what they are for.
    NodeMemory {
        total: u64,
        processes: u64,
        system: u64,
        atom: u64,
        binary: u64,
        code: u64,
        ets: u64,
    }
}

answer! {
    LoadedProject {
        name: String,
        version: String,
        classes: u64,
    }
}

answer! {
    HealthAnswer {
        workspace_id: String,
        nonce: String,
        /// `up`, `starting`, `down` or `failed`.
        node: String,
        uptime_s: u64,
        connections: u64,
        sessions: u64,
        restarts: u64,
        queue_drops: u64,
        compiler_kills: u64,
        audit: AuditState,
        last_error: Option<String>,
        ;
        /// While the node is up.
        memory: NodeMemory,
        processes: u64,
        run_queue: u64,
        /// What is loaded of the project, if there is one.
        project: LoadedProject,
    }
}
