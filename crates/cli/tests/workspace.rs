//! A workspace through the real binary: its boundary, its faults, its protocol, live editing of a project.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]

#[path = "workspace/apart.rs"]
mod apart;
#[path = "workspace/boundary.rs"]
mod boundary;
#[path = "workspace/containment.rs"]
mod containment;
#[path = "workspace/documents.rs"]
mod documents;
#[path = "workspace/editing.rs"]
mod editing;
#[path = "workspace/extensions.rs"]
mod extensions;
#[path = "workspace/faults.rs"]
mod faults;
#[path = "workspace/home.rs"]
mod home;
#[path = "workspace/kills.rs"]
mod kills;
#[path = "workspace/looking.rs"]
mod looking;
#[path = "workspace/lsp.rs"]
mod lsp;
#[path = "workspace/mcp.rs"]
mod mcp;
#[path = "workspace/objects.rs"]
mod objects;
#[path = "workspace/orders.rs"]
mod orders;
#[path = "workspace/project.rs"]
mod project;
#[path = "workspace/protocol.rs"]
mod protocol;
#[path = "workspace/raw.rs"]
mod raw;
#[path = "workspace/redefining.rs"]
mod redefining;
#[path = "workspace/removing.rs"]
mod removing;
#[path = "shared/runtime.rs"]
mod runtime;
#[path = "workspace/sessions.rs"]
mod sessions;
#[path = "workspace/sides.rs"]
mod sides;
#[path = "workspace/table.rs"]
mod table;
#[path = "workspace/transcripts.rs"]
mod transcripts;
#[path = "workspace/waiting.rs"]
mod waiting;
