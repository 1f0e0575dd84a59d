//! The functions of Erlang modules, as far as their specifications name their parameters. Read when somebody asks.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use beamtalk_compiler::ffi::Module;
use beamtalk_project::specs::Specs;

type Known = Mutex<HashMap<String, Option<Arc<Module>>>>;

/// A module of OTP, or of what a project has built of its `native/`.
pub(crate) fn module(root: &Path, name: &str) -> Option<Arc<Module>> {
    static SPECS: OnceLock<Specs> = OnceLock::new();
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let own = root.join("_build/dev/native/ebin").join(format!("{name}.beam"));
    if own.is_file() {
        // May be built again at any time.
        let functions = Specs::default().functions(name, &own).ok()?;
        return Some(Arc::new(Module::new(functions)));
    }
    let known = KNOWN.get_or_init(Known::default);
    if let Some(found) = known.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
        return found.clone();
    }
    let specs = SPECS.get_or_init(|| Specs::installed(Vec::new()));
    let functions = specs
        .find(name)
        .and_then(|path| specs.functions(name, &path).ok());
    let module = functions.map(|functions| Arc::new(Module::new(functions)));
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    known.insert(name.to_owned(), module.clone());
    module
}
