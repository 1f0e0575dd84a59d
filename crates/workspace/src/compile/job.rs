//! What a compiler worker is asked and what it answers, as data.
//!
//! One frame each way: a JSON text and then byte strings (forms), so that forms travel as they are.

use beamtalk_wire::answers::{CompleteAnswer, Diagnostic, HoverAnswer};
use beamtalk_wire::requests::{CheckMode, ErlangComplete};
use serde::{Deserialize, Serialize};

/// A source text with everything needed to parse and declare it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Relative to the project, or `session`.
    pub path: String,
    pub text: String,
    pub package: Option<String>,
    /// The BEAM module of the file's class or extensions.
    pub module: String,
    pub origin: TextOrigin,
}

/// A file of the image, whose text the worker knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileName {
    pub package: Option<String>,
    pub path: String,
    /// When its text was told: a job about another text is another job.
    pub moment: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextOrigin {
    Package,
    Test,
    Session,
}

/// A package of the program and the packages it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageUse {
    pub name: String,
    pub uses: Vec<String>,
    /// `strict-deps = true`.
    pub is_strict: bool,
}

/// What the worker has to know before the job: all declarations, or those since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knowledge {
    /// Forget everything but the library first.
    pub reset: bool,
    pub declare: Vec<SourceText>,
    /// The packages of the project, dependencies first.
    pub packages: Vec<PackageUse>,
    /// `--no-ffi`: sends to `Erlang` are errors.
    pub no_ffi: bool,
    /// All methods that were taken out of files which extended classes with them.
    pub homes: Vec<HomeText>,
}

/// The file to which a method belongs that it does not have now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeText {
    pub class: String,
    pub is_class_side: bool,
    pub selector: String,
    pub file: SourceText,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "kebab-case")]
pub enum Job {
    /// One input of a session.
    Input {
        code: String,
        /// Variables that exist.
        bound: Vec<String>,
        file: Option<String>,
        /// Each statement on its own.
        trace: bool,
    },
    /// One method of a class that is there.
    Method {
        class: String,
        is_class_side: bool,
        selector: String,
        source: String,
        shape: Option<Shape>,
    },
    /// A class without one of its methods.
    RemoveMethod {
        class: String,
        is_class_side: bool,
        selector: String,
    },
    /// Whole files, together.
    Files { files: Vec<SourceText> },
    /// What is found in files of the image and in texts of sessions, as if `installed` were loaded. Files that were
    /// looked at before and rest on what changed since are looked at too.
    Recheck {
        installed: Vec<SourceText>,
        files: Vec<FileName>,
        texts: Vec<SourceText>,
    },
    /// Findings only.
    Check {
        code: String,
        bound: Vec<String>,
        mode: CheckMode,
        /// What a method is one of.
        of: Option<MethodOwner>,
    },
    /// What is under or before the cursor; the answer is in `data`.
    Complete {
        code: String,
        cursor: usize,
        bound: Vec<Variable>,
    },
    Hover {
        code: String,
        cursor: usize,
        bound: Vec<Variable>,
    },
}

/// A session variable and the class of its value, as far as known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub class: Option<String>,
}

/// The side of a class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodOwner {
    pub class: String,
    pub is_class_side: bool,
    pub shape: Option<Shape>,
}

/// A class that has no source text, such as one made by a ClassBuilder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub superclass: Option<String>,
    pub slots: Vec<String>,
    pub class_slots: Vec<String>,
}

/// What may stand at a cursor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    pub answer: CompleteAnswer,
    /// Names that only the node knows.
    pub erlang: Option<ErlangComplete>,
}

/// The answer to a job. `modules`, `expression` and `steps` are empty when there are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub modules: Vec<Module>,
    pub expression: Option<Expression>,
    pub steps: Vec<Step>,
    /// What to print instead of a value.
    pub echo: Option<String>,
    pub assigns: Vec<String>,
    /// Texts to declare once the modules are loaded.
    pub declares: Vec<SourceText>,
    /// Classes and methods that the job defines.
    pub definitions: Vec<Definition>,
    /// As §10.3 has them, with `file`.
    pub diagnostics: Vec<Diagnostic>,
    pub has_errors: bool,
    /// The files that were looked at: the class of each, and its path.
    #[serde(default)]
    pub looked_at: Vec<(String, String)>,
    pub completion: Found,
    pub hover: HoverAnswer,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    pub name: String,
    pub class: Option<String>,
    pub superclass: Option<String>,
    pub forms: Blob,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    pub forms: Blob,
    pub is_cast: bool,
    pub is_character: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub source: String,
    pub expression: Expression,
}

/// One thing an input or a method job defines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definition {
    pub class: String,
    /// `None` for a class as a whole.
    pub selector: Option<String>,
    pub is_class_side: bool,
    pub source: String,
    /// What it replaces.
    pub previous: Option<String>,
    /// The file of the class, `None` when it has none.
    pub file: Option<String>,
    /// The package of the class; `stdlib` for the library.
    pub package: Option<String>,
    /// `source` is the text of the whole file.
    #[serde(default)]
    pub is_whole_file: bool,
}

/// The place of a byte string among those that follow the JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob(pub usize);
