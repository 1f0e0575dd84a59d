//! Real nodes behind a `NodeLink`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "live/boundary.rs"]
mod boundary;
#[path = "live/hot.rs"]
mod hot;
#[path = "live/image.rs"]
mod image;
#[path = "live/limits.rs"]
mod limits;
#[path = "live/link.rs"]
mod link;
#[path = "live/workspace.rs"]
mod workspace;
