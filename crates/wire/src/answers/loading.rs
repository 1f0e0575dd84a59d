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
        path: Option<String>,
        line: Option<u32>,
        message: String,
        hint: Option<String>,
        kind: String,
    }
}

answer! {
    #[derive(Default)]
    LoadAnswer {
        #[serde(default)]
        classes: Vec<String>,
        #[serde(default)]
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

impl LoadAnswer {
    /// Together with what was loaded besides.
    pub fn add(&mut self, more: Self) {
        fn join<T>(all: &mut Option<Vec<T>>, more: Option<Vec<T>>) {
            if let Some(more) = more {
                all.get_or_insert_default().extend(more);
            }
        }
        self.classes.extend(more.classes);
        self.errors.extend(more.errors);
        join(&mut self.migration_failures, more.migration_failures);
        join(&mut self.conflicts, more.conflicts);
        if let Some(more) = more.affected_actors {
            *self.affected_actors.get_or_insert(0) += more;
        }
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
