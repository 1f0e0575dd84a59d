//! Live editing.

use super::{Finding, MigrationFailure, answer};
use crate::entry::LoggedEntry;

answer! {
    SaveMethodAnswer {
        entry: Option<LoggedEntry>,
        findings: Vec<Finding>,
    }
}

answer! {
    SaveClassAnswer {
        classes: Vec<String>,
        entry: LoggedEntry,
        ;
        affected_actors: u64,
        migration_failures: Vec<MigrationFailure>,
    }
}

answer! {
    PrecheckMethodAnswer {
        findings: Vec<Finding>,
        checked: u64,
        not_checked: u64,
        total_candidates: u64,
        cap_note: Option<String>,
        checked_owners: Vec<String>,
    }
}

answer! {
    FindingsAnswer {
        checked: u64,
        stale: u64,
        findings: Vec<Finding>,
    }
}
