//! The compiler as a running node asks for it: one method, one class, one file again.

use std::sync::Arc;

use beamtalk_compiler::{
    ClassTable, CompiledModule, SourceFile, compile_file, compile_method, remove_method,
};
use beamtalk_etf::{Term, read};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use ecow::EcoString;

/// Answers the questions of a node about code.
pub struct LiveCompiler {
    pub table: ClassTable,
}

impl LiveCompiler {
    pub fn new(table: ClassTable) -> Self {
        Self { table }
    }

    /// `{ok, [Forms]}` or `{error, Text}`.
    pub fn answer(&mut self, question: &Term) -> Term {
        let outcome = match read::tagged(question) {
            Some((
                "compile",
                [
                    Term::Atom(class),
                    Term::Atom(side),
                    Term::Atom(selector),
                    source,
                    superclass,
                    slots,
                    class_slots,
                ],
            )) => {
                self.know(class, superclass, slots, class_slots);
                self.compile(class, side == "class", selector, &read::text(source))
            }
            Some(("removed", [Term::Atom(class), Term::Atom(side), Term::Atom(selector)])) => {
                let removed = remove_method(&self.table, class, side == "class", selector);
                self.accept(removed.modules, removed.changed, &removed.diagnostics)
            }
            Some(("reload", [Term::Atom(class), file])) => self.reload(class, &read::text(file)),
            _ => Err("the node asked something this version does not know".to_owned()),
        };
        match outcome {
            Ok(modules) => Term::tuple([
                Term::atom("ok"),
                Term::list(modules.into_iter().map(|module| Term::Binary(module.forms))),
            ]),
            Err(text) => Term::tuple([Term::atom("error"), Term::binary(text)]),
        }
    }

    /// Classes made by a ClassBuilder have no source; their shape is enough.
    fn know(&mut self, class: &str, superclass: &Term, slots: &Term, class_slots: &Term) {
        if self.table.class(class).is_some() {
            return;
        }
        let superclass = match superclass {
            Term::Atom(name) if name != "nil" => Some(name.as_str()),
            _ => None,
        };
        self.table
            .declare_shape(class, superclass, &atoms(slots), &atoms(class_slots));
    }

    fn compile(
        &mut self,
        class: &str,
        is_class_side: bool,
        selector: &str,
        source: &str,
    ) -> Result<Vec<CompiledModule>, String> {
        let compiled = compile_method(&self.table, class, is_class_side, selector, source);
        self.accept(compiled.modules, compiled.changed, &compiled.diagnostics)
    }

    fn accept(
        &mut self,
        modules: Vec<CompiledModule>,
        changed: Vec<Arc<SourceFile>>,
        diagnostics: &[Diagnostic],
    ) -> Result<Vec<CompiledModule>, String> {
        let errors = errors(diagnostics);
        if !errors.is_empty() {
            return Err(errors);
        }
        for file in &changed {
            self.table.put(file);
        }
        Ok(modules)
    }

    fn reload(&mut self, class: &str, path: &str) -> Result<Vec<CompiledModule>, String> {
        let known = self
            .table
            .source_of(class)
            .ok_or_else(|| format!("{class} has no source file"))?;
        let bytes =
            beamtalk_storage::read_written(path.as_ref()).map_err(|cause| format!("{path}: {cause}"))?;
        let text = String::from_utf8(bytes).map_err(|cause| format!("{path}: {cause}"))?;
        let parse = beamtalk_syntax::parse_file(&text);
        let found = errors(&parse.diagnostics);
        if !found.is_empty() {
            return Err(found);
        }
        let file = SourceFile {
            text: EcoString::from(text),
            unit: parse.unit,
            path: known.path.clone(),
            package: known.package.clone(),
            module: known.module.clone(),
            origin: known.origin,
        };
        let mut table = self.table.clone();
        table.declare(&file);
        let compiled = compile_file(&file, &table);
        let found = errors(&compiled.diagnostics);
        if !found.is_empty() {
            return Err(found);
        }
        self.table = table;
        Ok(compiled.modules)
    }
}

fn atoms(term: &Term) -> Vec<EcoString> {
    match term {
        Term::List(elements) => elements
            .iter()
            .filter_map(|element| match element {
                Term::Atom(name) => Some(name.clone()),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn errors(diagnostics: &[Diagnostic]) -> String {
    let messages: Vec<&str> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| diagnostic.message.as_str())
        .collect();
    messages.join("\n")
}
