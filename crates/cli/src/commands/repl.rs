//! `beamtalk repl`: expressions in the terminal, over a node of its own.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use beamtalk_compiler::{Origin, SourceFile};
use beamtalk_etf::Term;
use beamtalk_node::{Erlang, Runtime, Worker};
use beamtalk_syntax::Parse;
use beamtalk_syntax::ast::Item;
use ecow::EcoString;

use super::build::policy;
use crate::build::{self, Package};
use crate::exit::Exit;
use crate::findings::severity::Warnings;
use crate::findings::{self, Counts, FileFindings, Finding, Policy};
use crate::live::LiveCompiler;
use crate::project::Project;
use crate::source;
use crate::terminal::Terminal;
use crate::testing::expectation::Outcome;
use crate::testing::run::{evaluation, result_outcome};
use crate::wire;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Evaluate this and leave.
    #[arg(short, value_name = "EXPRESSION")]
    expression: Option<String>,
}

const HELP: &str = "\
Type an expression and press Enter; a class ends with an empty line.
  :help   this text
  :quit   leave (also :exit, Ctrl-D)";

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut session = Session::start(terminal)?;
    if let Some(expression) = &arguments.expression {
        return session.evaluate(terminal, expression);
    }
    let is_interactive = std::io::stdin().is_terminal();
    if is_interactive {
        terminal.status(format_args!(
            "Beamtalk v{}\n`:help` lists the commands, `:quit` leaves.\n",
            env!("CARGO_PKG_VERSION")
        ));
    }
    session.read_loop(terminal, is_interactive)
}

/// A node, what the compiler knows, and the variables assigned so far.
struct Session {
    worker: Worker,
    compiler: LiveCompiler,
    bound: Vec<EcoString>,
}

impl Session {
    fn start(terminal: &mut Terminal) -> anyhow::Result<Self> {
        let erlang = Erlang::find()?;
        let runtime = Runtime::prepare()?;
        let mut worker = Worker::start(&erlang, &runtime, None)?;
        let mut table = source::library_table();
        if let Some(project) = Project::find(Path::new("."))? {
            let package = Package::resolve(project, terminal.network)?;
            let policy = policy(&package, Warnings::Shown);
            // A project that does not build is reported; the session starts without its classes.
            match build::build_with(terminal, &mut worker, &package, &policy, &erlang) {
                Ok(built) => {
                    super::test::declare_package(&package, &mut table)?;
                    super::test::load_package(&mut worker, &built)?;
                }
                Err(error) => terminal.error(format_args!("warning: {error:#}")),
            }
        }
        Ok(Self {
            worker,
            compiler: LiveCompiler::new(table),
            bound: Vec::new(),
        })
    }

    fn read_loop(&mut self, terminal: &mut Terminal, is_interactive: bool) -> anyhow::Result<Exit> {
        let mut last = Exit::Success;
        let mut pending = String::new();
        loop {
            if is_interactive {
                let prompt = if pending.is_empty() { "> " } else { "..> " };
                let mut out = std::io::stdout().lock();
                out.write_all(prompt.as_bytes())?;
                out.flush()?;
            }
            let mut line = String::new();
            let is_end = std::io::stdin().lock().read_line(&mut line)? == 0;
            let line = line.trim_end_matches(['\n', '\r']);
            if pending.is_empty() {
                match line.trim() {
                    ":quit" | ":exit" | ":q" => return Ok(last),
                    ":help" => {
                        terminal.print(HELP)?;
                        continue;
                    }
                    "" if !is_end => continue,
                    command if command.starts_with(':') => {
                        terminal.error(format_args!(
                            "Unknown command {command}; `:help` lists the commands"
                        ));
                        continue;
                    }
                    _ => {}
                }
            } else {
                pending.push('\n');
            }
            pending.push_str(line);
            if is_end || !beamtalk_syntax::is_incomplete(&pending) {
                let input = std::mem::take(&mut pending);
                if !input.trim().is_empty() {
                    last = self.evaluate(terminal, &input)?;
                }
            }
            if is_end {
                return Ok(last);
            }
        }
    }

    fn evaluate(&mut self, terminal: &mut Terminal, input: &str) -> anyhow::Result<Exit> {
        let Parse {
            unit,
            mut diagnostics,
        } = beamtalk_syntax::parse_input(input);
        let defines = unit.items.iter().any(|item| !matches!(item, Item::Statement(_)));
        let file = SourceFile {
            path: EcoString::from("session"),
            text: EcoString::from(input),
            unit,
            package: None,
            module: EcoString::from(beamtalk_compiler::module_name(None, "session")),
            origin: Origin::Session,
        };
        let mut table = self.compiler.table.clone();
        if defines {
            table.declare(&file);
        }
        let compiled = beamtalk_compiler::compile_input(&file, &table, &self.bound);
        diagnostics.extend(compiled.diagnostics);
        let mut counts = Counts::default();
        let findings = FileFindings {
            path: "session".to_owned(),
            text: input.to_owned(),
            findings: diagnostics.iter().map(Finding::from).collect(),
        };
        findings::report(terminal, &findings, &Policy::default(), &mut counts)?;
        if counts.errors > 0 {
            return Ok(Exit::Failure);
        }
        for changed in &compiled.changed {
            table.declare(changed);
        }
        self.compiler.table = table;
        for name in compiled.assigns {
            if !self.bound.contains(&name) {
                self.bound.push(name);
            }
        }
        let request = evaluation(&compiled.modules, compiled.expression.as_ref());
        self.worker.send(&Term::tuple([Term::atom("eval"), request]))?;
        let compiler = &mut self.compiler;
        let reply = self
            .worker
            .receive_serving(&mut |question| compiler.answer(question))?;
        match wire::tagged(&reply) {
            Some(("evaluated", [result])) => match wire::tagged(result) {
                Some(("ended", [Term::Integer(status)])) => {
                    Ok(Exit::Program(u8::try_from(*status).unwrap_or(u8::MAX)))
                }
                _ => show(terminal, &result_outcome(result, compiled.echo.as_deref())),
            },
            _ => Err(wire::unexpected(&reply)),
        }
    }
}

fn show(terminal: &mut Terminal, outcome: &Outcome) -> anyhow::Result<Exit> {
    match outcome {
        Outcome::Shown { printed, .. } => {
            if !printed.is_empty() {
                terminal.print(printed)?;
            }
            Ok(Exit::Success)
        }
        Outcome::Raised(raised) => {
            terminal.error(format_args!("Error: {}", raised.message));
            if let Some(hint) = &raised.hint {
                terminal.error(format_args!("Hint: {hint}"));
            }
            for frame in raised.frames.iter().take(10) {
                terminal.error(format_args!("  at {frame}"));
            }
            Ok(Exit::Failure)
        }
        Outcome::Refused(messages) => {
            terminal.error(format_args!("Error: {}", messages.join("\n")));
            Ok(Exit::Failure)
        }
        Outcome::NotRun(reason) => {
            terminal.error(format_args!("Error: {reason}"));
            Ok(Exit::Failure)
        }
    }
}
