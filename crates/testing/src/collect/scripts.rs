//! Compiling the inputs of scripts ahead of running them. What an input defines or assigns is known to the
//! inputs after it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use beamtalk_compiler::types::Type;
use beamtalk_compiler::{ClassTable, Origin, SourceFile, compile_next_input, ffi};
use beamtalk_project::Project;
use beamtalk_project::source::Text;
use beamtalk_project::specs::Specs;
use beamtalk_syntax::Parse;
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::diagnostic::Severity;
use beamtalk_syntax::examples::expectation::Expectation;
use beamtalk_syntax::examples::script::{Input, Load, Script, Style};
use ecow::EcoString;

use super::parse_test_file;
use crate::units::{CompiledInput, CompiledScript};

/// What the inputs so far say about the variables of a script.
#[derive(Default)]
struct Variables {
    bound: Vec<EcoString>,
    /// What each was assigned. None where that is not known: an input that may have stopped before it assigned, or a block
    /// that may assign at any time.
    types: BTreeMap<EcoString, Option<Type>>,
    /// Those that blocks assign.
    open: BTreeSet<EcoString>,
}

impl Variables {
    fn held(&self) -> Vec<(EcoString, Type)> {
        let known = self.types.iter();
        known
            .filter_map(|(name, of)| Some((name.clone(), of.clone()?)))
            .collect()
    }

    fn assigned(&mut self, names: Vec<EcoString>, types: Vec<(EcoString, Option<Type>)>, may_raise: bool) {
        for (name, of) in types {
            if of.is_none() {
                self.open.insert(name.clone());
            }
            if of.is_none() || names.contains(&name) {
                let is_sure = !may_raise && !self.open.contains(&name);
                self.types.insert(name, of.filter(|_| is_sure));
            }
        }
        for name in names {
            if !self.bound.contains(&name) {
                self.bound.push(name);
            }
        }
    }
}

/// What is expected of an input does not say that it comes to its end.
fn may_raise(input: &Input) -> bool {
    matches!(
        input.expectation,
        Some(Expectation::Error(_) | Expectation::Warning(_) | Expectation::NoWarning(_))
    )
}

pub struct ScriptCompiler<'a> {
    pub project: &'a Project,
    table: &'a ClassTable,
    /// Files whose classes are loaded anyway.
    known: BTreeSet<PathBuf>,
    specs: Specs,
}

impl<'a> ScriptCompiler<'a> {
    pub fn new(project: &'a Project, table: &'a ClassTable, known: BTreeSet<PathBuf>) -> Self {
        Self {
            project,
            table,
            known,
            specs: Specs::of_scripts(project),
        }
    }

    pub fn compile(&self, path: &Path, shown: &str, script: &Script, style: Style) -> CompiledScript {
        let mut compiled = CompiledScript::default();
        for (line, text) in &script.malformed {
            compiled
                .faults
                .push((*line, format!("cannot read the directive: {text}")));
        }
        let mut table = self.table.clone();
        for load in &script.loads {
            self.load(path, load, &mut table, &mut compiled);
        }
        let mut variables = Variables::default();
        for input in &script.inputs {
            let input = self.input(shown, input, style, &mut table, &mut variables);
            compiled.inputs.push(input);
        }
        compiled
    }

    fn load(&self, script: &Path, load: &Load, table: &mut ClassTable, compiled: &mut CompiledScript) {
        let Some(path) = self.find(script, &load.path) else {
            compiled
                .faults
                .push((load.line, format!("cannot load {}: no such file", load.path)));
            return;
        };
        if load.error.is_none() && self.known.contains(&path) {
            return;
        }
        let text = match Text::read(&path, &self.project.root) {
            Ok(text) => text,
            Err(error) => {
                compiled.faults.push((load.line, format!("{error:#}")));
                return;
            }
        };
        let parsed = parse_test_file(self.project, text);
        let mut with_file = table.clone();
        with_file.declare(&parsed.file);
        let outcome = beamtalk_compiler::compile_file(&parsed.file, &with_file);
        let errors: Vec<String> = parsed
            .diagnostics
            .iter()
            .chain(&outcome.diagnostics)
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.message.to_string())
            .collect();
        match (&load.error, errors.as_slice()) {
            (None, []) => {
                *table = with_file;
                compiled.preload.extend(outcome.modules);
                compiled.loads.push(path);
            }
            (None, errors) => {
                compiled.faults.push((
                    load.line,
                    format!("cannot load {}: {}", load.path, errors.join("; ")),
                ));
            }
            (Some(wanted), errors) => {
                if !errors.iter().any(|error| error.contains(wanted.as_str())) {
                    let found = if errors.is_empty() {
                        "it loads".to_owned()
                    } else {
                        errors.join("; ")
                    };
                    let message = format!("loading {} should fail with: {wanted}; but {found}", load.path);
                    compiled.faults.push((load.line, message));
                }
            }
        }
    }

    /// Relative to the package root, then to the script's directory and each directory above it.
    fn find(&self, script: &Path, path: &str) -> Option<PathBuf> {
        let above = script
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(&self.project.root));
        std::iter::once(self.project.root.as_path())
            .chain(above)
            .map(|directory| directory.join(path))
            .find(|candidate| candidate.is_file())
            .and_then(|found| std::fs::canonicalize(found).ok())
    }

    fn input(
        &self,
        shown: &str,
        input: &Input,
        style: Style,
        table: &mut ClassTable,
        variables: &mut Variables,
    ) -> CompiledInput {
        let is_run = input.expectation.is_some() || style == Style::Documentation;
        let mut result = CompiledInput {
            line: input.line,
            text: input.text.clone(),
            expectation: input.expectation.clone(),
            modules: Vec::new(),
            expression: None,
            echo: None,
            diagnostics: Vec::new(),
            errors: Vec::new(),
            is_run,
        };
        if !is_run {
            return result;
        }
        // Empty lines before the text give frames and diagnostics the line numbers of the script.
        let text = format!("{}{}", "\n".repeat(input.line.saturating_sub(1)), input.text);
        let Parse { unit, diagnostics } = beamtalk_syntax::parse_input(&text);
        let defines = unit.items.iter().any(|item| !matches!(item, Item::Statement(_)));
        let file = SourceFile {
            path: EcoString::from(shown),
            text: EcoString::from(text),
            unit,
            package: None,
            module: EcoString::from(beamtalk_compiler::module_name(None, "script")),
            origin: Origin::Session,
        };
        let mut with_input = table.clone();
        with_input.set_specs(self.specs.later(ffi::modules(&file).into_iter().collect()));
        if defines {
            with_input.declare(&file);
        }
        let compiled = compile_next_input(&file, &with_input, &variables.bound, &variables.held());
        for diagnostic in diagnostics.iter().chain(&compiled.diagnostics) {
            let mut message = diagnostic.message.to_string();
            if let Some(hint) = &diagnostic.hint {
                message.push('\n');
                message.push_str(hint);
            }
            if diagnostic.severity == Severity::Error {
                result.errors.push(message.clone());
            }
            result.diagnostics.push(message);
        }
        if result.errors.is_empty() {
            for changed in &compiled.changed {
                with_input.declare(changed);
            }
            *table = with_input;
            variables.assigned(compiled.assigns, compiled.types, may_raise(input));
            result.modules = compiled.modules;
            result.expression = compiled.expression;
            result.echo = compiled.echo.map(|echo| echo.to_string());
        }
        result
    }
}
