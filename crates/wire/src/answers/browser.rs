//! What a client that shows everything needs beside the rest.

use std::collections::BTreeMap;

use super::{LoadError, answer};

answer! {
    ReplayAnswer {
        /// The number of the last frame there is.
        last: u64,
        /// How many finished requests are no longer kept.
        lost: u64,
        /// Requests that were begun and are not answered yet.
        open: Vec<String>,
    }
}

answer! {
    DeskItem {
        text: String,
        version: u64,
        /// Milliseconds since 1970.
        at: u64,
    }
}

answer! {
    DeskReadAnswer {
        items: BTreeMap<String, DeskItem>,
    }
}

answer! {
    DeskWriteAnswer {
        version: u64,
    }
}

answer! {
    /// Byte offsets; `end` is after its last byte.
    InputPlace {
        start: u64,
        end: u64,
        line: u64,
    }
}

answer! {
    DocCell {
        index: u64,
        start: u64,
        end: u64,
        inputs: Vec<InputPlace>,
    }
}

answer! {
    DocCellsAnswer {
        cells: Vec<DocCell>,
    }
}

answer! {
    DocumentInfo {
        path: String,
        /// The first heading; else the name of the file.
        title: String,
        /// How many blocks of code are run as examples.
        cells: u64,
        bytes: u64,
        /// Milliseconds since 1970.
        changed_at: u64,
    }
}

answer! {
    DocListAnswer {
        documents: Vec<DocumentInfo>,
    }
}

answer! {
    DocReadAnswer {
        text: String,
        sha256: String,
        /// Whether the one who asked may write it.
        writable: bool,
    }
}

answer! {
    DocWriteAnswer {
        sha256: String,
        /// Classes that were loaded.
        classes: Vec<String>,
        /// Why the image keeps the code it had; the file is written all the same.
        errors: Vec<LoadError>,
    }
}

answer! {
    TranscriptEntry {
        seq: u64,
        /// Milliseconds since 1970.
        at: u64,
        text: String,
        ;
        /// The session, `agent NAME` or the actor that wrote it.
        by: String,
    }
}

answer! {
    TranscriptAnswer {
        entries: Vec<TranscriptEntry>,
        /// The number of the oldest that is kept; 0 when there is none.
        first: u64,
    }
}

answer! {
    VitalsAnswer {
        /// What the numbers of a sample are; the first is the time in milliseconds since 1970.
        fields: Vec<String>,
        samples: Vec<Vec<f64>>,
    }
}

answer! {
    LogLine {
        seq: u64,
        time: String,
        level: String,
        domain: String,
        class: Option<String>,
        selector: Option<String>,
        msg: String,
    }
}

answer! {
    LogAnswer {
        entries: Vec<LogLine>,
    }
}

answer! {
    AuditTrailAnswer {
        /// As they stand in the trail.
        records: Vec<serde_json::Map<String, serde_json::Value>>,
        /// The numbers of the oldest and the newest record there is; 0 when there is none.
        first: u64,
        last: u64,
        /// Numbers before which some are missing.
        gaps: Vec<u64>,
    }
}

answer! {
    AutoflushAnswer {
        on: bool,
    }
}

answer! {
    FormatAnswer {
        text: String,
    }
}

answer! {
    TreeListAnswer {
        names: Vec<String>,
    }
}

answer! {
    TreeReadAnswer {
        data: String,
        /// Nothing follows.
        end: bool,
    }
}

answer! {
    TreeWriteAnswer {
        /// What the file answers; empty if it does not.
        answer: String,
    }
}
