//! What a run consists of, and what came of it.

use std::time::Duration;

use beamtalk_compiler::{CompiledExpression, CompiledModule};

use beamtalk_syntax::examples::expectation::Expectation;

/// Something that runs in one piece: a test class, a script, a block of documentation.
pub struct Unit {
    /// The class, or the name of the script or block.
    pub name: String,
    /// Relative to the project.
    pub file: String,
    pub line: usize,
    pub work: Work,
}

pub enum Work {
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
pub struct Test {
    pub name: String,
    pub line: usize,
}

/// A script ready to run.
#[derive(Default)]
pub struct CompiledScript {
    /// Modules of loaded files.
    pub preload: Vec<CompiledModule>,
    /// The files they come from.
    pub loads: Vec<std::path::PathBuf>,
    pub inputs: Vec<CompiledInput>,
    /// Faults found before running: bad directives, files that do not load.
    pub faults: Vec<(usize, String)>,
}

impl CompiledScript {
    /// A script that defines something changes the node and must run alone.
    pub fn is_exclusive(&self) -> bool {
        !self.preload.is_empty() || self.inputs.iter().any(|input| !input.modules.is_empty())
    }
}

pub struct CompiledInput {
    pub line: usize,
    /// As it is written.
    pub text: String,
    pub expectation: Option<Expectation>,
    pub modules: Vec<CompiledModule>,
    pub expression: Option<CompiledExpression>,
    /// Printed instead of a value.
    pub echo: Option<String>,
    /// Messages of all diagnostics.
    pub diagnostics: Vec<String>,
    /// Messages of errors: it cannot run.
    pub errors: Vec<String>,
    /// Inputs of scripts without expectation are not run.
    pub is_run: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pass,
    /// An assertion or expectation did not hold.
    Fail,
    Skip,
    /// Some other error.
    Error,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Pass => "pass",
            Status::Fail => "fail",
            Status::Skip => "skip",
            Status::Error => "error",
        }
    }

    pub fn is_failure(self) -> bool {
        matches!(self, Status::Fail | Status::Error)
    }
}

/// One test that has run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Empty for scripts and documentation.
    pub name: String,
    pub line: usize,
    pub status: Status,
    pub duration: Duration,
    pub error: Option<Problem>,
    pub output: String,
}

/// Why a test did not pass.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub kind: String,
    pub message: String,
    /// The assertion that failed.
    pub assertion: Option<String>,
    pub expected: Option<String>,
    pub actual: Option<String>,
    pub hint: Option<String>,
    pub frames: Vec<String>,
}
