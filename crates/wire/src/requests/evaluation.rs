//! Evaluation, and questions about code that run nothing.

use serde::{Deserialize, Serialize};

use super::actors::Step;
use super::field::{request, wanted, words};
use crate::entry::Side;

/// A value that is named by where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(deny_unknown_fields)]
pub struct SelfTarget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub actor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub binding: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub r#ref: Option<String>,
    /// From the outermost value down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub path: Option<Vec<Step>>,
}

wanted! { SelfTarget: "an object with one of actor, binding, class, ref, and perhaps path"; }

request! {
    /// Run code in the session. Output comes before the answer.
    Eval {
        code: String,
        ;
        /// Answer the value of each statement.
        trace: bool,
        /// From the arrival of the request.
        timeout_ms: u64,
        /// What the code is called in locations.
        file: String,
        line: u64,
        /// Answer as `text` what a session shows on so many columns; 0 for everything in one line. The `printString`
        /// if absent.
        width: u64,
        /// In the variables of a handle; `once` for variables that are forgotten afterwards.
        handle: String,
        /// Keep the value and answer a reference to it.
        hold: bool,
        /// What the code may ask of the loop: `none`, `observe`, `post`, `control`; everything if absent.
        loop_right: String,
        /// What `self` is in the code: exactly one of `actor`, `binding`, `class`, `ref`. For an actor the code is one
        /// message to it.
        #[serde(rename = "self")]
        self_: SelfTarget,
    }
}

request! {
    /// Input for an evaluation that waits for it: `value`, or `eof`.
    Stdin {
        /// The `id` of the evaluation.
        r#for: String,
        ;
        value: String,
        eof: bool,
    }
}

request! {
    /// Stop what runs, of one's own session or of another one. The evaluation answers `interrupted`.
    Interrupt {
        ;
        /// The `id` of the evaluation, on whichever connection.
        r#for: String,
        handle: String,
    }
}

request! {
    /// Run a declared workflow of the loop that this workspace hosts, when its turn comes.
    LoopRun {
        workflow: String,
        ;
        /// Files that it is told have changed.
        changed: Vec<String>,
        /// Answer when it has ended.
        wait: bool,
    }
}

request! {
    /// Run a class method as a program.
    RunEntry {
        class: String,
        selector: String,
        ;
        args: Vec<String>,
    }
}

request! {
    /// What may stand at the cursor. Nothing is evaluated.
    Complete {
        code: String,
        ;
        /// Byte offset; the end if absent.
        cursor: u64,
        handle: String,
    }
}

request! {
    /// Modules of Erlang, or functions of one.
    ErlangComplete {
        ;
        prefix: String,
        module: String,
    }
}

request! {
    /// What is at the cursor.
    Hover {
        code: String,
        ;
        /// Byte offset; the end if absent.
        cursor: u64,
    }
}

request! {
    /// What is known of a class or selector.
    Info {
        symbol: String,
    }
}

request! {
    /// Documentation of a class, of a method, or of Erlang.
    Docs {
        ;
        class: String,
        /// Of a finding, as in `E0201`.
        code: String,
        erlang_module: String,
        selector: String,
        side: Side,
    }
}

words! {
    /// What a text is, for checking.
    CheckMode: "expression, method or class" {
        #[default]
        Expression "expression",
        Method "method",
        Class "class",
    }
}

request! {
    /// Findings of the compiler; nothing is installed.
    Diagnostics {
        code: String,
        ;
        mode: CheckMode,
        /// The class of a method: with it the method is compiled and linted, without it only read.
        class: String,
        side: Side,
    }
}

words! {
    /// How generated code is shown.
    CodeForm: "erlang or core" {
        #[default]
        Erlang "erlang",
        Core "core",
    }
}

request! {
    /// The code that the compiler makes of `code`, or of a class.
    ShowCodegen {
        ;
        code: String,
        class: String,
        selector: String,
        form: CodeForm,
    }
}
