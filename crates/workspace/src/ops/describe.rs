//! What the workspace is.

use beamtalk_wire::answers::{
    Capabilities, DescribeAnswer, FileAccess, LimitsInForce, OpDescription, Versions,
};
use beamtalk_wire::requests::Field;
use beamtalk_wire::{Op, PROTOCOL, limits};

use crate::workspace::Workspace;

pub(super) fn describe(workspace: &Workspace) -> DescribeAnswer {
    let options = &workspace.options;
    DescribeAnswer {
        ops: Op::ALL
            .iter()
            .map(|op| (op.name().to_owned(), about(*op)))
            .collect(),
        versions: Versions {
            protocol: PROTOCOL.to_owned(),
            beamtalk: env!("CARGO_PKG_VERSION").to_owned(),
        },
        capabilities: capabilities(options.capabilities()),
        limits: LimitsInForce {
            inbound_frame: limits::INBOUND_FRAME as u64,
            outbound_frame: limits::OUTBOUND_FRAME as u64,
            open_requests: limits::OPEN_REQUESTS as u64,
            waiting_evals: limits::WAITING_EVALUATIONS as u64,
            eval_heap_mb: options.eval_max_heap_mb,
            eval_timeout_s: options.eval_timeout_s,
            eval_output: limits::EVAL_OUTPUT as u64,
            eval_text: limits::EVAL_TEXT as u64,
            session_grace_s: options.session_grace_s,
            compiler_memory_mb: options.compiler_memory_mb,
            compiler_timeout_s: options.compiler_timeout_s,
        },
    }
}

fn capabilities(stored: beamtalk_storage::Capabilities) -> Capabilities {
    Capabilities {
        subprocess: stored.subprocess,
        ffi: stored.ffi,
        http: stored.http,
        fs: match stored.fs {
            beamtalk_storage::FileAccess::ReadWrite => FileAccess::ReadWrite,
            beamtalk_storage::FileAccess::ReadOnly => FileAccess::ReadOnly,
        },
    }
}

fn about(op: Op) -> OpDescription {
    let field = |field: &Field| {
        let mark = if field.is_optional { "?" } else { "" };
        format!("{}{mark}", field.name())
    };
    OpDescription {
        class: op.access(),
        fields: op.fields().iter().map(field).collect(),
        audit: op.audit().map(str::to_owned),
    }
}
