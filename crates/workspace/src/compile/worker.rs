//! The worker process: reads jobs, compiles, answers, until its pipe ends.
//!
//! It holds nothing but a copy of what the daemon told it about classes.

use std::io::{BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use beamtalk_compiler::complete::{self, Binding};
use beamtalk_compiler::lint::lint_file;
use beamtalk_compiler::{
    ClassTable, Dependencies, Origin, Packages, SourceFile, check_file, compile_file, compile_input,
    compile_method, lint_method, remove_method, without_extensions,
};
use beamtalk_syntax::ast::{self, Item};
use beamtalk_syntax::definitions::{self, Key, Outline, class_source, extension_source};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use beamtalk_wire::answers::{CompleteAnswer, Completion, HoverAnswer};
use beamtalk_wire::requests::{CheckMode, ErlangComplete};
use ecow::EcoString;
use rustix::process::{Resource, Rlimit};
use rustix::time::ClockId;
use serde::{Deserialize, Serialize};

use super::diagnostic;
use super::frame;
use super::held::Held;
use super::job::{
    Blob, Definition, Expression, FileName, Found, Job, Knowledge, MethodOwner, Module, Outcome, PackageUse,
    Shape, SourceText, Step, TextOrigin, Variable,
};
use super::redefinition::{redefined_files, without_redefined};

#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) knowledge: Knowledge,
    pub(crate) job: Job,
    pub(crate) cpu_seconds: u64,
}

/// Serve jobs from a pipe until it ends.
pub fn run(input: impl Read, mut output: impl Write) -> std::io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut library = library();
    let mut table = library.clone();
    let mut packages = Packages::default();
    let mut held = Held::default();
    // What the last job made of texts: usually the next one begins with them.
    let mut made: Vec<Arc<SourceFile>> = Vec::new();
    while let Some(frame) = frame::read(&mut input)? {
        let (json, _) = frame::decode(&frame)?;
        let order: Order = serde_json::from_slice(json)?;
        limit_cpu(order.cpu_seconds);
        if order.knowledge.no_ffi {
            library.disable_ffi();
            table.disable_ffi();
        }
        if order.knowledge.reset {
            table = library.clone();
            packages = packages_of(&order.knowledge.packages);
            held.forget();
        }
        let told = &order.knowledge.declare;
        let is_made = !order.knowledge.reset && is_same(told, &made);
        if is_made {
            for (text, file) in told.iter().zip(&made) {
                held.put(text, file);
                table.put(file);
            }
        } else {
            let files: Vec<SourceFile> = told.iter().map(|text| parse(text).0).collect();
            if !order.knowledge.packages.is_empty() && !files.is_empty() {
                files.iter().for_each(|file| packages.declare(file));
                held.set_shared(packages.shared_names().next().is_some());
                table.set_packages(packages.clone());
            }
            for (text, file) in told.iter().zip(files) {
                held.put(text, &file);
                table.take(file);
            }
        }
        table.set_homes(order.knowledge.homes.iter().map(|home| {
            let (class, selector) = (EcoString::from(&home.class), EcoString::from(&home.selector));
            (class, home.is_class_side, selector, parse(&home.file).0)
        }));
        if order.knowledge.no_ffi {
            table.disable_ffi();
        }
        let mut answer = Answer {
            table: &table,
            held: &mut held,
            outcome: Outcome::default(),
            blobs: Vec::new(),
            made: Vec::new(),
        };
        answer.perform(&order.job);
        let outcome = answer.outcome;
        let blobs = answer.blobs;
        made = answer.made;
        frame::write(&mut output, &serde_json::to_vec(&outcome)?, &blobs)?;
    }
    Ok(())
}

/// Whether these are the texts of these files. A file that was made of another by changing a method declares the names
/// that the other declared, so what names mean is still the same.
fn is_same(texts: &[SourceText], files: &[Arc<SourceFile>]) -> bool {
    let is_one = |(text, file): (&SourceText, &Arc<SourceFile>)| *text == source_text(file);
    texts.len() == files.len() && texts.iter().zip(files).all(is_one)
}

fn packages_of(all: &[PackageUse]) -> Packages {
    let mut packages = Packages::default();
    for package in all {
        let dependencies = if package.is_strict {
            Dependencies::Strict
        } else {
            Dependencies::Lenient
        };
        packages.add(
            &package.name,
            package.uses.iter().map(String::as_str),
            dependencies,
        );
    }
    packages
}

/// The library as this binary carries it.
pub(super) fn library() -> ClassTable {
    let mut table = ClassTable::empty();
    for (name, text) in beamtalk_node::library_sources() {
        table.declare(&SourceFile {
            path: EcoString::from(name),
            text: EcoString::from(text),
            unit: beamtalk_syntax::parse_file(text).unit,
            package: Some(EcoString::from("stdlib")),
            module: EcoString::from(beamtalk_compiler::module_name(Some("stdlib"), name)),
            origin: Origin::Library,
        });
    }
    table
}

/// The limit counts from the start of the process, so it moves with every job.
fn limit_cpu(seconds: u64) {
    let used = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    let used = Duration::new(used.tv_sec.unsigned_abs(), 0).as_secs();
    let limits = rustix::process::getrlimit(Resource::Cpu);
    let limit = Rlimit {
        current: Some(used + seconds + 1),
        maximum: limits.maximum,
    };
    // Without the limit the wall-clock limit still holds.
    let _ = rustix::process::setrlimit(Resource::Cpu, limit);
}

pub(super) fn parse(text: &SourceText) -> (SourceFile, Vec<Diagnostic>) {
    let parse = match text.origin {
        TextOrigin::Session => beamtalk_syntax::parse_input(&text.text),
        TextOrigin::Package | TextOrigin::Test => beamtalk_syntax::parse_file(&text.text),
    };
    let file = SourceFile {
        path: EcoString::from(&text.path),
        text: EcoString::from(&text.text),
        unit: parse.unit,
        package: text.package.as_deref().map(EcoString::from),
        module: EcoString::from(&text.module),
        origin: match text.origin {
            TextOrigin::Package => Origin::Package,
            TextOrigin::Test => Origin::Test,
            TextOrigin::Session => Origin::Session,
        },
    };
    (file, parse.diagnostics)
}

fn source_text(file: &SourceFile) -> SourceText {
    SourceText {
        path: file.path.to_string(),
        text: file.text.to_string(),
        package: file.package.as_ref().map(ToString::to_string),
        module: file.module.to_string(),
        origin: match file.origin {
            Origin::Library | Origin::Package => TextOrigin::Package,
            Origin::Test => TextOrigin::Test,
            Origin::Session => TextOrigin::Session,
        },
    }
}

struct Answer<'a> {
    table: &'a ClassTable,
    held: &'a mut Held,
    outcome: Outcome,
    blobs: Vec<Vec<u8>>,
    /// Texts with a method changed, as trees.
    made: Vec<Arc<SourceFile>>,
}

impl Answer<'_> {
    fn perform(&mut self, job: &Job) {
        match job {
            Job::Input {
                code,
                bound,
                file,
                trace,
            } => self.input(code, bound, file.as_deref(), *trace),
            Job::Method {
                class,
                is_class_side,
                selector,
                source,
                shape,
            } => {
                let table = self.table_with(class, shape.as_ref());
                let compiled = compile_method(&table, class, *is_class_side, selector, source);
                self.findings("method", source, &compiled.diagnostics);
                if !self.outcome.has_errors {
                    let definition = self.method_definition(class, *is_class_side, selector, source);
                    self.outcome.definitions.push(definition);
                    self.modules(compiled.modules);
                    self.declares_made(compiled.changed);
                }
            }
            Job::RemoveMethod {
                class,
                is_class_side,
                selector,
            } => {
                let compiled = remove_method(self.table, class, *is_class_side, selector);
                self.findings(class, "", &compiled.diagnostics);
                if !self.outcome.has_errors {
                    let definition = self.method_definition(class, *is_class_side, selector, "");
                    self.outcome.definitions.push(definition);
                    self.modules(compiled.modules);
                    self.declares_made(compiled.changed);
                }
            }
            Job::Files { files } => self.files(files),
            Job::Recheck {
                installed,
                files,
                texts,
            } => self.recheck(installed, files, texts),
            Job::Check {
                code,
                bound: _,
                mode: CheckMode::Method,
                of,
            } => self.check_method(code, of.as_ref()),
            Job::Check {
                code, bound, mode, ..
            } => self.check(code, bound, *mode),
            Job::Complete { code, cursor, bound } => self.complete(code, *cursor, bound),
            Job::Hover { code, cursor, bound } => self.hover(code, *cursor, bound),
        }
    }

    fn input(&mut self, code: &str, bound: &[String], path: Option<&str>, trace: bool) {
        let text = session_text(code, path);
        let (file, parsed) = parse(&text);
        let defines = file
            .unit
            .items
            .iter()
            .any(|item| !matches!(item, Item::Statement(_)));
        let mut table = self.table.clone();
        if defines {
            table.declare(&file);
        }
        let bound = names(bound);
        let mut compiled = compile_input(&file, &table, &bound);
        self.findings(&text.path, code, &parsed);
        self.findings(&text.path, code, &compiled.diagnostics);
        if self.outcome.has_errors {
            return;
        }
        self.outcome.echo = compiled.echo.take().map(Into::into);
        let redefined = redefined_files(self.table, &file);
        if redefined.is_empty() {
            if defines {
                self.define(&file);
                self.declares_input(&file, &compiled.replaced);
            }
        } else {
            self.define(&file);
            table = self.table.clone();
            let modules = self.redefine(&redefined, &mut table);
            let rest = without_redefined(&file, &redefined);
            compiled = compile_input(&rest, &table, &bound);
            compiled.modules.splice(0..0, modules);
            if self.outcome.has_errors {
                return;
            }
            self.declares_input(&rest, &compiled.replaced);
        }
        self.declares_made(compiled.changed);
        self.outcome.assigns = compiled.assigns.iter().map(ToString::to_string).collect();
        self.modules(compiled.modules);
        if trace && compiled.expression.is_some() {
            self.steps(&file, &table, &bound);
        } else {
            self.outcome.expression = compiled.expression.map(|expression| self.expression(expression));
        }
    }

    /// Each statement compiled on its own, with the variables of those before it.
    fn steps(&mut self, file: &SourceFile, table: &ClassTable, bound: &[EcoString]) {
        let mut bound = bound.to_vec();
        for item in &file.unit.items {
            let Item::Statement(statement) = item else {
                continue;
            };
            let mut alone = file.clone();
            alone.unit.items = vec![Item::Statement(statement.clone())];
            let compiled = compile_input(&alone, table, &bound);
            bound.extend(compiled.assigns);
            if let Some(expression) = compiled.expression {
                let expression = self.expression(expression);
                self.outcome.steps.push(Step {
                    source: statement.span.text(&file.text).to_owned(),
                    expression,
                });
            }
        }
    }

    /// Files with new definitions of their classes: compiled where they are, so that a class stays in its package.
    fn redefine(
        &mut self,
        files: &[SourceFile],
        table: &mut ClassTable,
    ) -> Vec<beamtalk_compiler::CompiledModule> {
        for file in files {
            table.declare(file);
        }
        let mut modules = Vec::new();
        for file in files {
            let compiled = compile_file(file, table);
            // The input was checked already; what is found here as well would be told twice.
            if compiled.diagnostics.iter().any(diagnostic::is_error) {
                self.findings(&file.path, &file.text, &compiled.diagnostics);
            }
            modules.extend(compiled.modules);
        }
        self.declares(files);
        modules
    }

    /// What an input defines: its classes, and methods of classes that are there.
    fn define(&mut self, file: &SourceFile) {
        for item in &file.unit.items {
            match item {
                Item::Class(class) => {
                    let known = self.file_of(&class.name.text);
                    self.outcome.definitions.push(Definition {
                        class: class.name.text.to_string(),
                        selector: None,
                        is_class_side: false,
                        source: class_source(&file.text, class).to_owned(),
                        previous: self.class_text(&class.name.text),
                        file: known.map(|known| known.path.to_string()),
                        package: known.and_then(|known| known.package.as_ref().map(Into::into)),
                        is_whole_file: false,
                    });
                }
                Item::Extension(extension) => {
                    let definition = self.method_definition(
                        &extension.target.name.text,
                        extension.method.is_class,
                        &extension.method.head.selector,
                        &extension_source(&file.text, extension),
                    );
                    self.outcome.definitions.push(definition);
                }
                Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => {}
            }
        }
    }

    /// The file of a class that has one.
    fn file_of(&self, class: &str) -> Option<&SourceFile> {
        let known = self.table.source_of(class)?;
        (known.origin != Origin::Session).then_some(known)
    }

    fn class_text(&self, class: &str) -> Option<String> {
        let source = self.table.source_of(class)?;
        let found = class_in(source, class)?;
        Some(class_source(&source.text, found).to_owned())
    }

    fn method_definition(
        &self,
        class: &str,
        is_class_side: bool,
        selector: &str,
        source: &str,
    ) -> Definition {
        let key = Key::method(class, is_class_side, selector);
        let own = self
            .table
            .source_of(class)
            .and_then(|known| source_in(self.table, known, &key))
            // One that stands beside the class in its file is an extension like one in another file.
            .filter(|source| definitions::method_source(source) == *source);
        let elsewhere = self
            .table
            .extension_file(class, is_class_side, selector)
            .filter(|_| own.is_none());
        let (source, previous, file, package) = match elsewhere {
            Some(file) => (
                if source.is_empty() {
                    String::new()
                } else {
                    definitions::as_extension(class, is_class_side, selector, source)
                },
                Outline::of_file(&file.text).source_of(&key),
                Some(file.path.to_string()),
                file.package.as_ref().map(ToString::to_string),
            ),
            None => (
                source.trim().to_owned(),
                own,
                self.file_of(class).map(|known| known.path.to_string()),
                self.table
                    .class(class)
                    .and_then(|entry| entry.package.as_ref().map(ToString::to_string)),
            ),
        };
        Definition {
            class: class.to_owned(),
            selector: Some(selector.to_owned()),
            is_class_side,
            source,
            previous,
            file,
            package,
            is_whole_file: false,
        }
    }

    fn files(&mut self, texts: &[SourceText]) {
        let parsed: Vec<(SourceFile, Vec<Diagnostic>)> = texts.iter().map(parse).collect();
        let mut table = self.table.clone();
        for (file, _) in &parsed {
            table.declare(file);
        }
        let mut modules = Vec::new();
        for (file, diagnostics) in &parsed {
            let compiled = compile_file(file, &table);
            self.findings(&file.path, &file.text, diagnostics);
            self.findings(&file.path, &file.text, &compiled.diagnostics);
            let has_module = compiled.modules.iter().any(|module| module.name == file.module);
            if !has_module && self.table.has_extensions(file) {
                modules.push(without_extensions(file, &table));
            }
            modules.extend(compiled.modules);
            for item in &file.unit.items {
                if let Item::Class(class) = item {
                    self.outcome.definitions.push(Definition {
                        class: class.name.text.to_string(),
                        selector: None,
                        is_class_side: false,
                        source: class_source(&file.text, class).to_owned(),
                        previous: None,
                        file: Some(file.path.to_string()),
                        package: file.package.as_ref().map(ToString::to_string),
                        is_whole_file: false,
                    });
                }
            }
        }
        if !self.outcome.has_errors {
            self.modules(modules);
            let files: Vec<SourceFile> = parsed.into_iter().map(|(file, _)| file).collect();
            self.declares(&files);
        }
    }

    fn recheck(&mut self, installed: &[SourceText], files: &[FileName], texts: &[SourceText]) {
        for (text, looked) in self.held.look(self.table, files, installed) {
            let found = looked.diagnostics().iter();
            let found = found.map(|found| diagnostic::shown(found, &text.path, &text.text));
            self.outcome.diagnostics.extend(found);
            self.outcome.looked_at.push((looked.owner, text.path.clone()));
        }
        for text in texts {
            let (file, diagnostics) = parse(text);
            self.findings(&file.path, &file.text, &diagnostics);
            self.findings(&file.path, &file.text, &check_file(&file, self.table));
        }
    }

    fn check(&mut self, code: &str, bound: &[String], mode: CheckMode) {
        let (file, parsed) = parse(&session_text(code, None));
        let mut table = self.table.clone();
        table.declare(&file);
        // What cannot be read is not worth a word about its style.
        let found = if mode == CheckMode::Class && !parsed.iter().any(diagnostic::is_error) {
            lint_file(&file, &table)
        } else {
            compile_input(&file, &table, &names(bound)).diagnostics
        };
        self.findings("session", code, &parsed);
        self.findings("session", code, &found);
    }

    /// One method alone; of what class it is says more than how it is written.
    fn check_method(&mut self, code: &str, of: Option<&MethodOwner>) {
        let (method, parsed) = beamtalk_syntax::parse_method(code);
        let found = match (of, method) {
            (Some(of), Some(method)) => {
                let table = self.table_with(&of.class, of.shape.as_ref());
                lint_method(&table, &of.class, of.is_class_side, &method.head.selector, code)
            }
            _ => parsed,
        };
        self.findings("method", code, &found);
    }

    /// What is known, and a class that is known only by its shape.
    fn table_with(&self, class: &str, shape: Option<&Shape>) -> ClassTable {
        let mut table = self.table.clone();
        if let (None, Some(shape)) = (table.class(class), shape) {
            table.declare_shape(
                class,
                shape.superclass.as_deref(),
                &names(&shape.slots),
                &names(&shape.class_slots),
            );
        }
        table
    }

    fn complete(&mut self, code: &str, cursor: usize, bound: &[Variable]) {
        let found = complete::complete(self.table, &bindings(bound), code, cursor);
        let items = found.items.iter().map(|item| Completion {
            text: item.text.to_string(),
            kind: item.kind.name().to_owned(),
            detail: item.detail.as_deref().map(str::to_owned),
            origin: item.origin.as_deref().map(str::to_owned),
        });
        let answer = CompleteAnswer {
            completions: items.collect(),
            start: found.start as u64,
        };
        let erlang = found.erlang.map(|wanted| ErlangComplete {
            prefix: Some(found.prefix.to_string()),
            module: match wanted {
                complete::Erlang::Modules => None,
                complete::Erlang::Functions(module) => Some(module.to_string()),
            },
        });
        self.outcome.completion = Found { answer, erlang };
    }

    fn hover(&mut self, code: &str, cursor: usize, bound: &[Variable]) {
        let found = complete::hover(self.table, &bindings(bound), code, cursor);
        self.outcome.hover = found.map_or_else(HoverAnswer::default, |hover| HoverAnswer {
            contents: Some(hover.contents),
            signature: hover.signature.as_deref().map(str::to_owned),
            kind: Some(hover.kind.name().to_owned()),
        });
    }

    fn findings(&mut self, path: &str, text: &str, diagnostics: &[Diagnostic]) {
        for found in diagnostics {
            self.outcome.has_errors |= diagnostic::is_error(found);
            self.outcome
                .diagnostics
                .push(diagnostic::shown(found, path, text));
        }
    }

    fn modules(&mut self, modules: Vec<beamtalk_compiler::CompiledModule>) {
        for module in modules {
            let forms = self.blob(module.forms);
            self.outcome.modules.push(Module {
                name: module.name.into(),
                class: module.class.map(Into::into),
                superclass: module.superclass.map(Into::into),
                forms,
            });
        }
    }

    fn expression(&mut self, expression: beamtalk_compiler::CompiledExpression) -> Expression {
        Expression {
            forms: self.blob(expression.forms),
            is_cast: expression.is_cast,
            is_character: expression.is_character,
        }
    }

    /// What an input defines for itself, each definition as a text of its own; the rest is in the texts of its classes.
    fn declares_input(&mut self, file: &SourceFile, replaced: &[Span]) {
        let text = source_text(file);
        for one in definitions::split(&file.text, |span| !replaced.contains(&span)) {
            self.outcome.declares.push(SourceText {
                text: one,
                ..text.clone()
            });
        }
    }

    fn declares(&mut self, files: &[SourceFile]) {
        self.outcome.declares.extend(files.iter().map(source_text));
    }

    fn declares_made(&mut self, files: Vec<Arc<SourceFile>>) {
        self.outcome
            .declares
            .extend(files.iter().map(|file| source_text(file)));
        self.made = files;
    }

    fn blob(&mut self, bytes: Vec<u8>) -> Blob {
        self.blobs.push(bytes);
        Blob(self.blobs.len() - 1)
    }
}

/// The source of a definition in a text of the table.
fn source_in(table: &ClassTable, file: &SourceFile, key: &Key) -> Option<String> {
    if table.has_names_of_texts() {
        return Outline::of_tree(&file.text, &file.unit).source_of(key);
    }
    let dialect = if file.origin == Origin::Session {
        definitions::Dialect::Input
    } else {
        definitions::Dialect::File
    };
    Outline::new(&file.text, dialect).source_of(key)
}

pub(super) fn class_in<'a>(file: &'a SourceFile, name: &str) -> Option<&'a ast::Class> {
    file.unit.items.iter().find_map(|item| match item {
        Item::Class(class) if class.name.text == name => Some(class),
        _ => None,
    })
}

fn bindings(bound: &[Variable]) -> Vec<Binding> {
    bound
        .iter()
        .map(|variable| Binding {
            name: EcoString::from(&variable.name),
            class: variable.class.as_deref().map(EcoString::from),
        })
        .collect()
}

fn session_text(code: &str, path: Option<&str>) -> SourceText {
    SourceText {
        path: path.unwrap_or("session").to_owned(),
        text: code.to_owned(),
        package: None,
        module: beamtalk_compiler::module_name(None, "session"),
        origin: TextOrigin::Session,
    }
}

fn names(names: &[String]) -> Vec<EcoString> {
    names.iter().map(EcoString::from).collect()
}

#[cfg(test)]
mod tests;
