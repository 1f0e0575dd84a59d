//! Any bytes as lines of an AI client: each request gets one answer.

pub fn check(bytes: &[u8]) {
    beamtalk_mcp::read_strange_lines(bytes);
}
