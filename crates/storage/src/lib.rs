//! The state directory: safe files, secrets, ids, locks, records of a workspace, rotating logs.
