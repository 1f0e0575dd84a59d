//! What a run consists of, and what came of it.

use std::time::Duration;

use beamtalk_compiler::{CompiledExpression, CompiledModule};

use super::expectation::Expectation;

/// Something that runs in one piece: a test class, a script, a block of documentation.
pub(crate) struct Unit {
    /// The class, or the name of the script or block.
    pub(crate) name: String,
    /// Relative to the project.
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Class {
        class: String,
        tests: Vec<Test>,
    },
    Script(CompiledScript),
    /// Native EUnit module.
    Native {
        path: std::path::PathBuf,
    },
    /// A file that does not compile, with its diagnostics.
    Broken {
        message: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) name: String,
    pub(crate) line: usize,
}

/// A script ready to run.
#[derive(Default)]
pub(crate) struct CompiledScript {
    /// Modules of loaded files.
    pub(crate) preload: Vec<CompiledModule>,
    /// The files they come from.
    pub(crate) loads: Vec<std::path::PathBuf>,
    pub(crate) inputs: Vec<CompiledInput>,
    /// Faults found before running: bad directives, files that do not load.
    pub(crate) faults: Vec<(usize, String)>,
}

impl CompiledScript {
    /// A script that defines something changes the node and must run alone.
    pub(crate) fn is_exclusive(&self) -> bool {
        !self.preload.is_empty() || self.inputs.iter().any(|input| !input.modules.is_empty())
    }
}

pub(crate) struct CompiledInput {
    pub(crate) line: usize,
    /// As it is written.
    pub(crate) text: String,
    pub(crate) expectation: Option<Expectation>,
    pub(crate) modules: Vec<CompiledModule>,
    pub(crate) expression: Option<CompiledExpression>,
    /// Printed instead of a value.
    pub(crate) echo: Option<String>,
    /// Messages of all diagnostics.
    pub(crate) diagnostics: Vec<String>,
    /// Messages of errors: it cannot run.
    pub(crate) errors: Vec<String>,
    /// Inputs of scripts without expectation are not run.
    pub(crate) is_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pass,
    /// An assertion or expectation did not hold.
    Fail,
    Skip,
    /// Some other error.
    Error,
}

impl Status {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Skip => "skip",
            Status::Error => "error",
        }
    }

    pub(crate) fn is_failure(self) -> bool {
        matches!(self, Status::Fail | Status::Error)
    }
}

/// One test that has run.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// Empty for scripts and documentation.
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) status: Status,
    pub(crate) duration: Duration,
    pub(crate) error: Option<Problem>,
    pub(crate) output: String,
}

/// Why a test did not pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problem {
    pub(crate) kind: String,
    pub(crate) message: String,
    /// The assertion that failed.
    pub(crate) assertion: Option<String>,
    pub(crate) expected: Option<String>,
    pub(crate) actual: Option<String>,
    pub(crate) hint: Option<String>,
    pub(crate) frames: Vec<String>,
}
