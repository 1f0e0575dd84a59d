//! Any bytes as a message of either dialect: no panic, and what was read is written back alike.

use beamtalk_ninep::{Dialect, DirectoryEntry, Reply, Request, Stat, parse_request};

pub fn check(bytes: &[u8]) {
    let Some((number, body)) = bytes.split_first() else {
        return;
    };
    for dialect in [Dialect::Plan9, Dialect::Linux] {
        if let Ok(request) = Request::decode(*number, body, dialect) {
            let mut again = Vec::new();
            request.encode(1, dialect, &mut again);
            drop(request.show(1));
            assert_eq!(Request::decode(*number, &again[7..], dialect), Ok(request));
        }
        if let Ok(reply) = Reply::decode(*number, body, dialect) {
            let mut again = Vec::new();
            reply.encode(1, dialect, &mut again);
            drop(reply.show(1));
            assert_eq!(Reply::decode(*number, &again[7..], dialect), Ok(reply));
        }
    }
    drop(Stat::entries(bytes));
    drop(DirectoryEntry::entries(bytes));
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(parse_request(text));
    }
}
