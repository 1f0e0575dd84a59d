//! Listings: names, long lines, and what `stat` prints.

use std::io::Write;

use beamtalk_ninep::{Stat, mode};
use beamtalk_storage::time::{Civil, now_seconds};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Name,
    Time,
    AsSent,
}

impl Order {
    pub(super) fn of(unsorted: bool, by_time: bool) -> Self {
        match (unsorted, by_time) {
            (true, _) => Order::AsSent,
            (false, true) => Order::Time,
            (false, false) => Order::Name,
        }
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const HALF_A_YEAR: u64 = 182 * 86_400;

fn quoted(name: &str) -> String {
    let plain = !name.is_empty()
        && !name
            .chars()
            .any(|c| c.is_whitespace() || c == '\'' || c.is_control());
    if plain {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "''"))
    }
}

fn type_letters(stat: &Stat) -> String {
    [
        (mode::DIRECTORY, 'd'),
        (mode::APPEND, 'a'),
        (mode::EXCLUSIVE, 'l'),
        (mode::AUTH, 'A'),
    ]
    .iter()
    .filter(|(bit, _)| stat.mode & bit != 0)
    .map(|(_, letter)| letter)
    .collect()
}

fn date(seconds: u64, now: u64) -> String {
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = Civil::of(seconds);
    let name = usize::try_from(month - 1)
        .ok()
        .and_then(|index| MONTHS.get(index))
        .unwrap_or(&"???");
    if now.saturating_sub(seconds) > HALF_A_YEAR {
        format!("{name} {day:>2}  {year}")
    } else {
        format!("{name} {day:>2} {hour:02}:{minute:02}")
    }
}

fn long_line(stat: &Stat, now: u64) -> String {
    let kind = type_letters(stat).chars().next().unwrap_or('-');
    let mut permissions = String::new();
    for shift in [6, 3, 0] {
        for (bit, letter) in [(4, 'r'), (2, 'w'), (1, 'x')] {
            permissions.push(if stat.mode >> shift & bit == 0 {
                '-'
            } else {
                letter
            });
        }
    }
    let when = date(u64::from(stat.mtime), now);
    format!(
        "{kind}-{permissions} M {} {} {} {} {when} {}",
        stat.device,
        stat.uid,
        stat.gid,
        stat.length,
        quoted(&stat.name)
    )
}

pub(super) fn print(
    out: &mut impl Write,
    mut stats: Vec<Stat>,
    order: Order,
    long: bool,
) -> std::io::Result<()> {
    match order {
        Order::Name => stats.sort_by(|one, other| one.name.cmp(&other.name)),
        Order::Time => stats.sort_by_key(|stat| std::cmp::Reverse(stat.mtime)),
        Order::AsSent => {}
    }
    let now = now_seconds();
    for stat in &stats {
        if long {
            writeln!(out, "{}", long_line(stat, now))?;
        } else {
            writeln!(out, "{}", quoted(&stat.name))?;
        }
    }
    Ok(())
}

/// `'name' 'uid' 'gid' 'muid' q (path vers type) m 0mode at T mt T l LEN t 0 d 0`.
pub(super) fn stat_line(stat: &Stat) -> String {
    format!(
        "'{}' '{}' '{}' '{}' q ({:016x} {} {}) m 0{:o} at {} mt {} l {} t {} d {}",
        stat.name,
        stat.uid,
        stat.gid,
        stat.muid,
        stat.qid.path,
        stat.qid.version,
        type_letters(stat),
        stat.mode,
        stat.atime,
        stat.mtime,
        stat.length,
        stat.kind,
        stat.device
    )
}

#[cfg(test)]
mod tests {
    use beamtalk_ninep::{Qid, Stat, mode};

    use super::{long_line, stat_line};

    fn user() -> Stat {
        Stat {
            qid: Qid {
                kind: 0x80,
                version: 1,
                path: 0x1f,
            },
            mode: mode::DIRECTORY | 0o700,
            mtime: 1_767_225_661,
            atime: 1_767_225_661,
            name: "user".to_owned(),
            uid: "ana".to_owned(),
            gid: "ana".to_owned(),
            muid: "ana".to_owned(),
            ..Stat::default()
        }
    }

    #[test]
    fn long_lines_look_like_the_guide() {
        assert_eq!(
            long_line(&user(), 1_767_225_700),
            "d-rwx------ M 0 ana ana 0 Jan  1 00:01 user"
        );
        assert_eq!(
            long_line(&user(), 1_800_000_000),
            "d-rwx------ M 0 ana ana 0 Jan  1  2026 user"
        );
        let odd = Stat {
            name: "it's here".to_owned(),
            ..user()
        };
        assert!(long_line(&odd, 1_767_225_700).ends_with("'it''s here'"));
    }

    #[test]
    fn stat_lines_show_everything() {
        assert_eq!(
            stat_line(&user()),
            "'user' 'ana' 'ana' 'ana' q (000000000000001f 1 d) m 020000000700 at 1767225661 mt 1767225661 l 0 t 0 d 0"
        );
    }
}
