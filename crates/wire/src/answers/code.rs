//! Questions about code.

use serde::{Deserialize, Serialize};

use super::{Diagnostic, Site, answer};

answer! {
    Completion {
        text: String,
        kind: String,
        detail: Option<String>,
        origin: Option<String>,
    }
}

answer! {
    #[derive(Default)]
    CompleteAnswer {
        completions: Vec<Completion>,
        /// Byte offset of what they replace.
        start: u64,
    }
}

answer! {
    ErlangCompleteAnswer {
        completions: Vec<Completion>,
    }
}

answer! {
    #[derive(Default)]
    HoverAnswer {
        /// Markdown.
        contents: Option<String>,
        signature: Option<String>,
        kind: Option<String>,
    }
}

answer! {
    ClassInfo {
        found: bool,
        symbol: String,
        /// `class`.
        kind: String,
        superclass: Option<String>,
        superclass_chain: Vec<String>,
        methods: Vec<String>,
        class_methods: Vec<String>,
        slots: Vec<String>,
        class_slots: Vec<String>,
        source: Option<String>,
        package: Option<String>,
        line: Option<u64>,
        doc: Option<String>,
    }
}

answer! {
    SelectorInfo {
        found: bool,
        symbol: String,
        /// `selector`.
        kind: String,
        implementors: Vec<Site>,
    }
}

/// What a symbol is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(untagged)]
pub enum SymbolInfo {
    Class(Box<ClassInfo>),
    Selector(SelectorInfo),
    Unknown { found: bool, symbol: String },
}

answer! {
    InfoAnswer {
        info: SymbolInfo,
    }
}

answer! {
    DocsAnswer {
        /// Markdown.
        docs: String,
    }
}

answer! {
    DiagnosticsAnswer {
        diagnostics: Vec<Diagnostic>,
    }
}

answer! {
    /// One of both, by the form that was asked for.
    #[derive(Default)]
    ShowCodegenAnswer {
        ;
        erlang: String,
        core_erlang: String,
    }
}
