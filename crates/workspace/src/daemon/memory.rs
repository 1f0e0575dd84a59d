//! How much memory the machine has, and how much the node takes of it.

use std::path::Path;

/// Half of what this daemon may use, in MiB; 0 where nobody says.
pub(super) fn half() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| total(&text));
    let group = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .find_map(|path| read(path)?.trim().parse::<u64>().ok());
    let bytes = match (machine, group) {
        (Some(machine), Some(group)) => machine.min(group),
        (machine, group) => machine.or(group).unwrap_or(0),
    };
    bytes / 2 / (1024 * 1024)
}

/// Whether the machine is about to end programs for want of memory.
pub(super) fn is_scarce() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match (total(&text), row(&text, "MemAvailable:")) {
        (Some(total), Some(available)) => available < total / 16,
        _ => false,
    }
}

fn total(text: &str) -> Option<u64> {
    row(text, "MemTotal:")
}

/// A row of `/proc/meminfo` in bytes.
fn row(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// What a process holds in memory, in bytes, where the system says.
pub(super) fn resident(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("status")).ok()?;
    row(&text, "VmRSS:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_memory_is_read() {
        let text = "MemTotal:       24629148 kB\nMemFree:        12016444 kB\n";
        assert_eq!(total(text), Some(24_629_148 * 1024));
        assert_eq!(total("MemFree: 3 kB\n"), None);
        assert_eq!(total("MemTotal: many\n"), None);
    }
}
