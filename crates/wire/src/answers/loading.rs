//! Loading code.

use super::{Conflict, Finding, answer};
use crate::entry::LoggedEntry;

answer! {
    /// An actor that keeps its old code and state.
    MigrationFailure {
        actor: String,
        reason: String,
    }
}

answer! {
    /// Why a file was left out.
    LoadError {
        path: String,
        line: Option<u32>,
        message: String,
        hint: Option<String>,
        kind: Option<String>,
    }
}

answer! {
    #[derive(Default)]
    LoadAnswer {
        classes: Vec<String>,
        errors: Vec<LoadError>,
        ;
        summary: String,
        affected_actors: u64,
        migration_failures: Vec<MigrationFailure>,
        conflicts: Vec<Conflict>,
        changed_count: u64,
        unchanged_count: u64,
        deleted_count: u64,
        disk_changed: Vec<String>,
    }
}

answer! {
    #[derive(Default)]
    SourceAnswer {
        classes: Vec<String>,
        ;
        entries: Vec<LoggedEntry>,
        affected_actors: u64,
        migration_failures: Vec<MigrationFailure>,
    }
}

answer! {
    ReloadAnswer {
        classes: Vec<String>,
        errors: Vec<LoadError>,
        affected_actors: u64,
        migration_failures: Vec<MigrationFailure>,
        findings: Vec<Finding>,
        ;
        conflicts: Vec<Conflict>,
    }
}

answer! {
    LoadedModule {
        name: String,
        class: Option<String>,
        source_file: Option<String>,
        actor_count: u64,
        /// Seconds since 1970.
        load_time: u64,
    }
}

answer! {
    ModulesAnswer {
        modules: Vec<LoadedModule>,
    }
}
