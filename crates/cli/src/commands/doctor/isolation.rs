//! What a node opened, as the system tells it and not the node.

use std::collections::BTreeSet;
use std::path::Path;

/// Processes named `epmd`.
pub(super) fn epmds() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "epmd")
        })
        .collect()
}

/// Addresses a process listens on; `None` where the system does not tell.
pub(super) fn listeners(pid: u32) -> Option<Vec<String>> {
    let sockets: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .ok()?
        .filter_map(|entry| {
            let target = std::fs::read_link(entry.ok()?.path()).ok()?;
            inode(&target)
        })
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        found.extend(listening(&text, &sockets));
    }
    Some(found)
}

/// `socket:[123]`.
fn inode(target: &Path) -> Option<String> {
    let name = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
    Some(name.to_owned())
}

/// Local addresses of the sockets in a table of the system that are among `inodes` and listen.
fn listening(table: &str, inodes: &BTreeSet<String>) -> Vec<String> {
    const LISTEN: &str = "0A";
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_listening = *fields.get(3)? == LISTEN && inodes.contains(*fields.get(9)?);
            is_listening.then(|| fields.get(1).map(|address| (*address).to_owned()))?
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::net::TcpListener;

    use super::{listeners, listening};

    #[test]
    fn a_listening_socket_is_seen() {
        let before = listeners(std::process::id()).unwrap().len();
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = format!(":{:04X}", socket.local_addr().unwrap().port());
        let found = listeners(std::process::id()).unwrap();
        assert!(found.iter().any(|address| address.ends_with(&port)), "{found:?}");
        assert!(found.len() > before);
    }

    #[test]
    fn connections_and_sockets_of_others_do_not_count() {
        let table = "  sl  local_address rem_address st tx rx tr when retrnsmt uid timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 0 0 0 0 0 11 1\n\
            1: 0100007F:1F91 00000000:0000 01 0 0 0 0 0 12 1\n";
        let table = table.replace(" 0 0 0 0 0 1", " 00000000:00000000 00:00000000 00000000 0 0 1");
        let own = |inode: &str| BTreeSet::from([inode.to_owned()]);
        assert_eq!(listening(&table, &own("11")), ["0100007F:1F90"]);
        assert!(listening(&table, &own("12")).is_empty());
        assert!(listening(&table, &own("99")).is_empty());
    }
}
