//! Packing a built program into one executable file that needs only `erl`.

use std::path::Path;

use beamtalk_etf::{Term, read};
use beamtalk_node::{Erlang, Runtime, Worker};

use super::graph::native_output;
use super::{Built, path_term};
use crate::error::{At, Result};
use crate::fault::Fault;

/// Runtime modules that a packed program has not got: they serve the binary, the daemon and sessions. Those ending in
/// `_` stand for all that start so.
const LEFT_OUT: &[&str] = &[
    "beamtalk_worker",
    "beamtalk_test_job",
    "beamtalk_library",
    "beamtalk_specs",
    "beamtalk_release_plan",
    "beamtalk_eval",
    "beamtalk_eval_",
    "beamtalk_session",
    "beamtalk_session_",
    "beamtalk_terminal_",
    "beamtalk_image_ops",
    "beamtalk_image_ops_",
    "beamtalk_change_log",
    "beamtalk_bridge",
    "beamtalk_bridge_",
];

/// Exceptions: small modules that others call whether or not there is a workspace.
const KEPT: &[&str] = &["beamtalk_bridge_events", "beamtalk_bridge_value"];

/// Whether a packed program goes without a module of the runtime.
pub fn is_left_out(module: &str) -> bool {
    !KEPT.contains(&module)
        && LEFT_OUT
            .iter()
            .any(|left| module == *left || (left.ends_with('_') && module.starts_with(left)))
}

/// The Unix time that packed files carry, so that equal input gives equal bytes.
pub fn source_time() -> Result<u64, Fault> {
    match std::env::var("SOURCE_DATE_EPOCH") {
        Err(_) => Ok(0),
        // The four digits of a year are all that an archive can hold.
        Ok(text) => text
            .parse()
            .ok()
            .filter(|seconds| *seconds < 4_000_000_000)
            .ok_or_else(|| {
                Fault::usage(
                    "bad_time",
                    format!("SOURCE_DATE_EPOCH is '{text}', which is not a number of seconds"),
                )
            }),
    }
}

/// The message that starts a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub class: String,
    pub selector: String,
}

impl Entry {
    /// Class and selector, refused before anything starts when they cannot be sent.
    pub fn new(class: &str, selector: &str) -> Result<Self, Fault> {
        let is_class = class.len() <= 255
            && class.starts_with(char::is_uppercase)
            && class.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_class {
            return Err(Fault::usage(
                "bad_entry",
                format!("'{class}' is not a class name"),
            ));
        }
        let name = selector.strip_suffix(':').unwrap_or(selector);
        let is_name = selector.len() <= 255
            && name.starts_with(|c: char| c.is_lowercase() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            let message = format!("'{selector}' is neither a unary selector nor one keyword such as main:");
            return Err(Fault::usage("bad_entry", message));
        }
        Ok(Self {
            class: class.to_owned(),
            selector: selector.to_owned(),
        })
    }

    /// `Class selector`, as `--entry` takes it.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        match text.split_whitespace().collect::<Vec<_>>().as_slice() {
            [class, selector] => Self::new(class, selector),
            _ => Err(Fault::usage(
                "bad_entry",
                format!("'{text}' is not \"Class selector\""),
            )),
        }
    }

    /// Whether the program receives the words of its command line.
    pub fn takes_words(&self) -> bool {
        self.selector.ends_with(':')
    }
}

/// Write the executable file of a built package.
pub fn escript(built: &Built, entry: &Entry, path: &Path) -> Result<()> {
    let time = source_time()?;
    let erlang = Erlang::find()?;
    let runtime = Runtime::prepare()?;
    let mut code = Vec::new();
    add_directory(&mut code, &runtime.ebin())?;
    let mut modules = Vec::new();
    let mut applications = Vec::new();
    for plan in &built.plans {
        for name in &plan.module_names {
            let beam = read(&plan.output.join(format!("{name}.beam")))?;
            modules.push(Term::tuple([Term::atom(name.as_str()), beam]));
        }
        let native = native_output(&plan.output);
        if native.is_dir() {
            add_directory(&mut code, &native)?;
        }
        applications.extend(
            plan.native_applications
                .iter()
                .map(|name| Term::atom(name.as_str())),
        );
    }
    let pair = |key: &str, value: Term| (Term::atom(key), value);
    let job = Term::Map(vec![
        pair("image", read(&runtime.image())?),
        pair("modules", Term::List(modules)),
        pair("applications", Term::List(applications)),
        pair("class", Term::atom(entry.class.as_str())),
        pair("selector", Term::atom(entry.selector.as_str())),
    ]);
    let mut worker = Worker::start(&erlang, &runtime, None)?;
    let path = std::path::absolute(path)?;
    worker.send(&Term::tuple([
        Term::atom("escript"),
        path_term(&path),
        Term::List(code),
        job,
        Term::Integer(i64::try_from(time).unwrap_or_default()),
    ]))?;
    let reply = worker.receive()?;
    match read::tagged(&reply) {
        Some(("escript", [outcome])) => match read::tagged(outcome) {
            Some(("ok", _)) => Ok(()),
            Some(("error", [text])) => Err(Fault::failure("escript", read::text(text)).into()),
            _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
        },
        _ => Err(beamtalk_node::Error::unexpected(&reply).into()),
    }
}

fn add_directory(code: &mut Vec<Term>, directory: &Path) -> Result<()> {
    for path in crate::files::find(directory, &["beam", "app"])? {
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .unwrap_or_default();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if !is_left_out(stem) {
            code.push(Term::tuple([Term::string(name), read(&path)?]));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Term> {
    std::fs::read(path).map(Term::Binary).at("cannot read", path)
}
