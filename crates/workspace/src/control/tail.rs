//! `audit-tail` and `log-tail`: the lines of a log, and on request those that come.

use std::time::Duration;

use beamtalk_storage::LogTail;
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde_json::{Value, json};

use crate::gate::ControlCall;
use crate::workspace::Workspace;

/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);
/// About how much text goes into one frame.
const FRAME_BYTES: usize = 1 << 20;

pub(super) struct Tail {
    log: LogTail,
    /// How many lines were read.
    count: u64,
    numbering: Numbering,
}

/// What `from` counts.
#[derive(Clone, Copy)]
enum Numbering {
    /// The `seq` of records.
    Sequence,
    /// Lines, from 0 for the oldest that is kept.
    Lines,
}

impl Tail {
    /// The log a request wants to read, if it is such a request.
    pub(super) fn of(workspace: &Workspace, request: &Value) -> Option<Self> {
        let (name, numbering) = match request["op"].as_str()? {
            "audit-tail" => ("audit.log", Numbering::Sequence),
            "log-tail" => ("workspace.log", Numbering::Lines),
            _ => return None,
        };
        Some(Self {
            log: LogTail::new(workspace.directory.directory(), name),
            count: 0,
            numbering,
        })
    }

    /// Answer with frames of lines. The last frame says that it is; with `follow` there is none.
    pub(super) async fn send(mut self, call: &ControlCall) {
        let from = match &call.request["from"] {
            Value::Null => Some(0),
            number => number.as_u64(),
        };
        let Some(from) = from else {
            let error = ErrorBody::new(ErrorKind::InvalidParameter, "'from' is a whole number, 0 or more");
            call.answer.send(json!({"error": error})).await;
            return;
        };
        let is_followed = call.request["follow"] == true;
        loop {
            let lines = match self.log.poll() {
                Ok(lines) => lines,
                Err(error) => {
                    let error = ErrorBody::new(ErrorKind::ReadError, error.to_string());
                    call.answer.send(json!({"error": error})).await;
                    return;
                }
            };
            let mut frames = self.frames(lines, from);
            if !is_followed {
                let last = frames.pop().unwrap_or_default();
                for lines in frames {
                    call.answer.send(json!({"lines": lines})).await;
                }
                call.answer.send(json!({"lines": last, "done": true})).await;
                return;
            }
            for lines in frames {
                if !call.answer.send(json!({"lines": lines})).await {
                    return;
                }
            }
            tokio::select! {
                () = call.answer.closed() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// The wanted lines, in pieces that fit.
    fn frames(&mut self, lines: Vec<Vec<u8>>, from: u64) -> Vec<Vec<String>> {
        let mut frames: Vec<Vec<String>> = Vec::new();
        let mut room = 0;
        for line in lines {
            let line = String::from_utf8_lossy(&line).into_owned();
            let number = match self.numbering {
                Numbering::Lines => Some(self.count),
                Numbering::Sequence => {
                    let record: Option<Value> = serde_json::from_str(&line).ok();
                    record.and_then(|record| record["seq"].as_u64())
                }
            };
            self.count += 1;
            if number.is_none_or(|number| number < from) {
                continue;
            }
            let size = line.len();
            match frames.last_mut() {
                Some(frame) if size <= room => {
                    room -= size;
                    frame.push(line);
                }
                _ => {
                    room = FRAME_BYTES.saturating_sub(size);
                    frames.push(vec![line]);
                }
            }
        }
        frames
    }
}
