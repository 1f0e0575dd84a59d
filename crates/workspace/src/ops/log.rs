//! `log`: lines of the image's log, as they stand in its files.

use std::rc::Rc;

use beamtalk_storage::{LogTail, time};
use beamtalk_wire::answers::{LogAnswer, LogLine};
use beamtalk_wire::requests::Log;
use beamtalk_wire::{ErrorBody, ErrorKind, LOG_LEVELS, Op};
use serde::Deserialize;

use crate::workspace::Workspace;

const USUAL: u64 = 200;
const MOST: u64 = 1_000;
/// Bytes of one entry.
const ENTRY: usize = 64 * 1024;
const FILE: &str = "workspace.log";

pub(super) async fn log(workspace: &Rc<Workspace>, request: &Log) -> Result<LogAnswer, ErrorBody> {
    let wanted = match request.level.as_deref() {
        None => LOG_LEVELS.len(),
        Some(name) => LOG_LEVELS
            .iter()
            .position(|level| *level == name)
            .ok_or_else(|| Op::Log.invalid("level", "a level of the log"))?,
    };
    let directory = workspace.directory.directory().clone();
    let read = tokio::task::spawn_blocking(move || {
        let mut tail = LogTail::new(&directory, FILE);
        let mut lines = tail.poll().map_err(|cause| cause.to_string())?;
        lines.extend(tail.rest());
        Ok::<_, String>(entries(&lines))
    });
    let failed = |cause: String| ErrorBody::new(ErrorKind::ReadError, cause);
    let entries = read
        .await
        .map_err(|cause| failed(cause.to_string()))?
        .map_err(failed)?;
    let limit = usize::try_from(request.limit.unwrap_or(USUAL).clamp(1, MOST)).unwrap_or(1);
    let is_meant = |line: &LogLine| {
        let level = LOG_LEVELS.iter().position(|level| *level == line.level);
        request.before.is_none_or(|before| line.seq < before)
            && level.is_none_or(|level| level <= wanted)
            && request.find.as_ref().is_none_or(|find| line.msg.contains(find))
    };
    let mut newest: Vec<LogLine> = entries.into_iter().rev().filter(is_meant).take(limit).collect();
    newest.reverse();
    Ok(LogAnswer { entries: newest })
}

/// Lines as entries: one that begins nothing belongs to the entry before. Its number is made of its time, so that it
/// stays the same when files are put aside.
fn entries(lines: &[Vec<u8>]) -> Vec<LogLine> {
    let mut found: Vec<LogLine> = Vec::new();
    for line in lines {
        let text = String::from_utf8_lossy(line);
        match entry(&text) {
            Some(mut entry) => {
                let at = time::parse_timestamp(&entry.time).unwrap_or_default() * 1_000;
                let last = found.last().map_or(0, |last| last.seq);
                entry.seq = at.max(last + 1);
                found.push(entry);
            }
            None => {
                if let Some(last) = found.last_mut()
                    && last.msg.len() + text.len() < ENTRY
                {
                    last.msg.push('\n');
                    last.msg.push_str(&text);
                }
            }
        }
    }
    found
}

#[derive(Deserialize)]
struct Object {
    time: String,
    level: String,
    #[serde(default)]
    domain: String,
    class: Option<String>,
    selector: Option<String>,
    msg: String,
}

/// `TIME [level] [domain] message`, or a JSON object.
fn entry(line: &str) -> Option<LogLine> {
    let object = if line.starts_with('{') {
        serde_json::from_str::<Object>(line).ok()?
    } else {
        let (time, rest) = line.split_once(" [")?;
        let (level, rest) = rest.split_once("] [")?;
        let (domain, msg) = rest.split_once("] ")?;
        if !LOG_LEVELS.contains(&level) {
            return None;
        }
        let place = msg.split_once(' ').filter(|(place, _)| place.contains(">>"));
        let parts = place.and_then(|(place, _)| place.split_once(">>"));
        Object {
            time: time.to_owned(),
            level: level.to_owned(),
            domain: domain.to_owned(),
            class: parts.map(|(class, _)| class.to_owned()),
            selector: parts.map(|(_, selector)| selector.to_owned()),
            msg: match place {
                Some((_, msg)) => msg.to_owned(),
                None => msg.to_owned(),
            },
        }
    };
    let mut msg = object.msg;
    if msg.len() > ENTRY {
        msg.truncate(msg.floor_char_boundary(ENTRY));
    }
    Some(LogLine {
        seq: 0,
        time: object.time,
        level: object.level,
        domain: object.domain,
        class: object.class,
        selector: object.selector,
        msg,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line belongs to an entry, and numbers grow with the lines.
    #[test]
    fn lines_become_entries() {
        let text = [
            "2026-01-05T09:14:07.221Z [info] [user] Lamp>>toggle switched on",
            "2026-01-05T09:14:07.221Z [error] [otp] crash",
            "  with a stack",
            r#"{"time":"2026-01-05T09:14:08.000Z","level":"debug","domain":"user","msg":"x"}"#,
        ];
        let lines: Vec<Vec<u8>> = text.iter().map(|line| line.as_bytes().to_vec()).collect();
        let found = entries(&lines);
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[0].class.as_deref(), found[0].msg.as_str()),
            (Some("Lamp"), "switched on")
        );
        assert_eq!(found[1].msg, "crash\n  with a stack");
        assert!(found[0].seq < found[1].seq && found[1].seq < found[2].seq);
        assert_eq!(found[2].level, "debug");
    }
}
