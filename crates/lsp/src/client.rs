//! What the client can do, and how it wants things.

use gen_lsp_types::InitializeParams;
use serde_json::Value;

/// Settings from `initializationOptions` and `workspace/didChangeConfiguration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Live answers beside those from files.
    pub(crate) delegates: bool,
    pub(crate) library_directory: Option<String>,
    pub(crate) max_files: usize,
    pub(crate) hints: Hints,
    pub(crate) live: Saving,
}

/// What saving a file does to a running image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saving {
    Nothing,
    /// It is loaded.
    Loads,
    /// Only the command loads it.
    Waits,
}

/// Which inlay hints are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) locals: bool,
    pub(crate) blocks: bool,
    pub(crate) dynamic: bool,
    pub(crate) ffi: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            delegates: false,
            library_directory: None,
            max_files: 5_000,
            hints: Hints {
                locals: true,
                blocks: true,
                dynamic: true,
                ffi: true,
            },
            live: Saving::Loads,
        }
    }
}

impl Settings {
    /// The same with what a client says about some of them; what makes no sense is left as it was.
    pub(crate) fn with(mut self, options: &Value) -> Self {
        if let Some(delegates) = options["delegateToRuntime"].as_bool() {
            self.delegates = delegates;
        }
        self.live = match options["live"].as_str() {
            Some("off") => Saving::Nothing,
            Some("onSave") => Saving::Loads,
            Some("onCommand") => Saving::Waits,
            _ => self.live,
        };
        if let Some(directory) = options["stdlibSourceDir"].as_str() {
            self.library_directory = Some(directory.to_owned()).filter(|directory| !directory.is_empty());
        }
        if let Some(count) = options["maxPreloadFiles"].as_u64() {
            self.max_files = usize::try_from(count).unwrap_or(usize::MAX);
        }
        let hints = &options["inlayHints"];
        let hint = |name: &str, old: bool| hints[name].as_bool().unwrap_or(old);
        self.hints = Hints {
            locals: hint("locals", self.hints.locals),
            blocks: hint("blockParameters", self.hints.blocks),
            dynamic: hint("dynamic", self.hints.dynamic),
            ffi: hint("ffiParameters", self.hints.ffi),
        };
        self
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Client {
    pub(crate) settings: Settings,
    /// It asks for diagnostics itself.
    pub(crate) pulls_diagnostics: bool,
    pub(crate) refreshes_diagnostics: bool,
    pub(crate) refreshes_lenses: bool,
    pub(crate) annotates_changes: bool,
    pub(crate) renames_files: bool,
    pub(crate) registers_watchers: bool,
    pub(crate) shows_documents: bool,
    /// Wants to know how the workspace is and what it prints.
    pub(crate) follows_workspace: bool,
}

impl Client {
    pub(crate) fn new(params: &InitializeParams) -> Self {
        let capabilities = serde_json::to_value(&params.capabilities).unwrap_or_default();
        let can = |path: &str| capabilities.pointer(path).is_some_and(|value| *value == true);
        let has = |path: &str| capabilities.pointer(path).is_some_and(|value| !value.is_null());
        let operations = capabilities.pointer("/workspace/workspaceEdit/resourceOperations");
        let operation = |name: &str| {
            operations
                .and_then(Value::as_array)
                .is_some_and(|all| all.iter().any(|one| one == name))
        };
        let changes = can("/workspace/workspaceEdit/documentChanges");
        Self {
            settings: Settings::default()
                .with(params.initialization_options.as_ref().unwrap_or(&Value::Null)),
            pulls_diagnostics: has("/textDocument/diagnostic"),
            refreshes_diagnostics: can("/workspace/diagnostics/refreshSupport"),
            refreshes_lenses: can("/workspace/codeLens/refreshSupport"),
            annotates_changes: changes && has("/workspace/workspaceEdit/changeAnnotationSupport"),
            renames_files: changes && operation("rename"),
            registers_watchers: can("/workspace/didChangeWatchedFiles/dynamicRegistration"),
            shows_documents: can("/window/showDocument/support"),
            follows_workspace: params
                .initialization_options
                .as_ref()
                .is_some_and(|options| options["events"] == true),
        }
    }
}
