//! The one binary, `beamtalk`: argument types here, one file per command in `commands/`.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

mod commands;
mod config;
mod exit;
mod lock;
mod start_flags;
mod terminal;
mod workspace_link;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::{Exit, Report};
use crate::terminal::{GlobalArguments, Terminal};

/// A live workspace for a developer and their agents.
#[derive(Parser)]
#[command(
    name = "beamtalk",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    global: GlobalArguments,
    /// Print the directory of the runtime and the standard library.
    #[arg(long)]
    print_sysroot: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The server for AI clients alone. Making the arguments of every command touches megabytes of the binary that a small
/// process would keep for nothing.
#[derive(Parser)]
#[command(name = "beamtalk", version, propagate_version = true)]
struct ServerArguments {
    #[command(flatten)]
    global: GlobalArguments,
    #[command(subcommand)]
    command: Server,
}

#[derive(Subcommand)]
enum Server {
    Mcp(commands::mcp::Arguments),
}

impl Arguments {
    fn read(words: &[OsString]) -> Result<Self, clap::Error> {
        if words.get(1).is_some_and(|word| word == "mcp")
            && let Ok(arguments) = ServerArguments::try_parse_from(words)
        {
            let Server::Mcp(server) = arguments.command;
            return Ok(Self {
                global: arguments.global,
                print_sysroot: false,
                command: Some(Command::Mcp(server)),
            });
        }
        Self::try_parse_from(words)
    }
}

#[derive(Subcommand)]
enum Command {
    /// Make a new project.
    New(commands::new::Arguments),
    /// Compile a project, or a single file.
    Build(commands::build::Arguments),
    /// Report everything the compiler finds, building nothing.
    Check(commands::check::Arguments),
    /// Run a class method as a program.
    Run(commands::run::Arguments),
    /// Evaluate expressions in the terminal.
    Repl(commands::repl::Arguments),
    /// Evaluate one expression in the workspace.
    Eval(commands::repl::EvalArguments),
    /// List, start, stop and look at workspaces.
    Workspace(commands::workspace::Arguments),
    /// Open the workspace in a browser.
    Web(commands::web::Arguments),
    /// Bring source files into the standard layout.
    Fmt(commands::fmt::Arguments),
    /// The same as `fmt --check`.
    FmtCheck(commands::fmt::CheckArguments),
    /// Report everything `check` finds, and what is correct but better written otherwise.
    Lint(commands::lint::Arguments),
    /// Tell the share of expressions with a type.
    TypeCoverage(commands::type_coverage::Arguments),
    /// Run tests: test classes, scripts and documentation.
    Test(commands::test::Arguments),
    /// Run expression scripts alone.
    TestScript(commands::test::ScriptArguments),
    /// Run the examples in Markdown files.
    TestDocs(commands::test::DocsArguments),
    /// Remove what was built.
    Clean(commands::clean::Arguments),
    /// Add, remove, list and update dependencies.
    Deps(commands::deps::Arguments),
    /// Show, set or raise the version of the package.
    Version(commands::version::Arguments),
    /// Write files to start from: native modules, type stubs.
    Generate(commands::generate::Arguments),
    /// Check that this system has everything Beamtalk needs.
    Doctor(commands::doctor::Arguments),
    /// Write HTML pages from documentation comments.
    Doc(commands::doc::Arguments),
    /// Show a page of the user guide, a class, a method or an error code.
    Docs(commands::docs::Arguments),
    /// Watch files, supervise processes, run workflows.
    Loop(commands::loop_command::Arguments),
    /// Run agents in tmux and serve them as files.
    Agents(commands::agents::Arguments),
    /// Give an AI client the workspace, over the Model Context Protocol.
    Mcp(commands::mcp::Arguments),
    /// Serve editors, over the Language Server Protocol.
    Lsp(commands::lsp::Arguments),
    /// Read and write files of a 9P server.
    #[command(name = "9p")]
    Ninep(commands::ninep::Arguments),
    /// Make certificates for access from other machines.
    Tls(commands::tls::Arguments),
    /// Print a completion script for a shell.
    Completions(commands::completions::Arguments),
    /// Serve a workspace; started by other commands.
    #[command(hide = true)]
    Daemon(commands::daemon::Arguments),
    /// Compile for a daemon, which starts it.
    #[command(hide = true)]
    CompilerWorker,
    /// Build a project for a daemon, which starts it.
    #[command(hide = true)]
    ProjectImage(commands::project_image::Arguments),
    /// Run programs for a node, which starts it.
    #[command(hide = true)]
    PortHelper,
}

fn main() -> ExitCode {
    if let Some(code) = beamtalk_process::run_guard_if_asked() {
        return code;
    }
    std::panic::set_hook(Box::new(report_panic));
    let words = commands::agents::by_name(std::env::args_os());
    // A launcher of sandboxes may have one thread only.
    if words.iter().any(|word| word == "agents")
        && let Ok(arguments) = Arguments::read(&words)
        && matches!(&arguments.command, Some(Command::Agents(agents)) if agents.is_launcher())
    {
        return execute(arguments).into();
    }
    // The thread that works has room for the deepest tree; a panic in it has been told by the hook. It reads the arguments,
    // too, so that the memory for that is used again.
    let worker = std::thread::Builder::new()
        .stack_size(beamtalk_project::source::STACK)
        .spawn(move || match Arguments::read(&words) {
            Ok(arguments) => execute(arguments),
            Err(error) => refuse_arguments(&words, &error),
        });
    match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(exit)) => exit.into(),
        Ok(Err(_)) | Err(_) => Exit::Internal.into(),
    }
}

fn execute(arguments: Arguments) -> Exit {
    let mut terminal = Terminal::new(&arguments.global);
    run(arguments, &mut terminal).unwrap_or_else(|error| finish(&mut terminal, &error))
}

fn run(arguments: Arguments, terminal: &mut Terminal) -> anyhow::Result<Exit> {
    if arguments.print_sysroot {
        let runtime = beamtalk_node::Runtime::prepare()?;
        terminal.print(runtime.path().display())?;
        return Ok(Exit::Success);
    }
    let Some(command) = arguments.command else {
        return Ok(Exit::Usage);
    };
    match command {
        Command::New(arguments) => commands::new::run(terminal, &arguments),
        Command::Build(arguments) => commands::build::run(terminal, &arguments),
        Command::Check(arguments) => commands::check::run(terminal, &arguments),
        Command::Run(arguments) => commands::run::run(terminal, &arguments),
        Command::Repl(arguments) => commands::repl::run(terminal, arguments),
        Command::Eval(arguments) => commands::repl::run_eval(terminal, arguments),
        Command::Workspace(arguments) => commands::workspace::run(terminal, arguments),
        Command::Web(arguments) => commands::web::run(terminal, &arguments),
        Command::Fmt(arguments) => commands::fmt::run(terminal, &arguments),
        Command::FmtCheck(arguments) => commands::fmt::run(terminal, &arguments.into()),
        Command::Lint(arguments) => commands::lint::run(terminal, &arguments),
        Command::TypeCoverage(arguments) => commands::type_coverage::run(terminal, &arguments),
        Command::Test(arguments) => commands::test::run(terminal, &arguments),
        Command::TestScript(arguments) => commands::test::run_scripts(terminal, &arguments),
        Command::TestDocs(arguments) => commands::test::run_docs(terminal, &arguments),
        Command::Clean(arguments) => commands::clean::run(terminal, &arguments),
        Command::Deps(arguments) => commands::deps::run(terminal, arguments),
        Command::Version(arguments) => commands::version::run(terminal, &arguments),
        Command::Generate(arguments) => commands::generate::run(terminal, &arguments),
        Command::Doctor(arguments) => commands::doctor::run(terminal, &arguments),
        Command::Doc(arguments) => commands::doc::run(terminal, &arguments),
        Command::Docs(arguments) => commands::docs::run(terminal, &arguments),
        Command::Loop(arguments) => commands::loop_command::run(terminal, arguments),
        Command::Agents(arguments) => commands::agents::run(arguments),
        Command::Lsp(arguments) => commands::lsp::run(terminal, &arguments),
        Command::Mcp(arguments) => commands::mcp::run(terminal, &arguments),
        Command::Ninep(arguments) => commands::ninep::run(&arguments),
        Command::Tls(arguments) => commands::tls::run(terminal, &arguments),
        Command::Completions(arguments) => commands::completions::run(terminal, &arguments),
        Command::Daemon(arguments) => commands::daemon::run(&arguments),
        Command::CompilerWorker => commands::daemon::run_compiler_worker(),
        Command::ProjectImage(arguments) => commands::project_image::run(terminal, &arguments),
        Command::PortHelper => {
            beamtalk_process::run_port_helper()?;
            Ok(Exit::Success)
        }
    }
}

/// Help and version are answers; everything else is wrong usage.
fn refuse_arguments(words: &[OsString], error: &clap::Error) -> Exit {
    let exit = match error.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion => Exit::Success,
        _ => Exit::Usage,
    };
    let as_json = (exit == Exit::Usage)
        .then(|| commands::agents::usage_as_json(words, error).or_else(|| usage_as_json(words, error)))
        .flatten();
    // A closed stream leaves nobody to tell.
    match as_json {
        Some(object) => drop(writeln!(std::io::stdout(), "{object}")),
        None => drop(error.print()),
    }
    exit
}

/// Wrong usage as an object, if the arguments, which cannot be read, ask for that.
fn usage_as_json(words: &[OsString], error: &clap::Error) -> Option<String> {
    let words: Vec<&str> = words
        .iter()
        .filter_map(|word| word.to_str())
        .take_while(|word| *word != "--")
        .collect();
    let asked = words
        .iter()
        .any(|word| matches!(*word, "--json" | "--format=json"))
        || words.windows(2).any(|pair| pair == ["--format", "json"]);
    let has_own_form = matches!(words.get(1), Some(&("agents" | "loop" | "9p")));
    (asked && !has_own_form).then(|| {
        let object = serde_json::json!({
            "error": {"kind": "usage", "message": exit::usage_line(error), "hint": "try --help"},
            "exit": Exit::Usage.code(),
        });
        object.to_string()
    })
}

/// Tell about a failure: a line on standard error, or one JSON object on standard output.
fn finish(terminal: &mut Terminal, error: &anyhow::Error) -> Exit {
    let Some(report) = Report::new(error) else {
        return Exit::Success;
    };
    if terminal.is_json() {
        let object = serde_json::json!({
            "error": {"kind": report.kind, "message": report.message, "hint": report.hint},
            "exit": report.exit.code(),
        });
        drop(terminal.print(object));
    } else {
        terminal.error(format_args!("error: {}", report.message));
        if let Some(hint) = report.hint {
            terminal.error(format_args!("hint: {hint}"));
        }
    }
    report.exit
}

fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map_or_else(String::new, |place| format!(" at {place}"));
    let message = panic.payload_as_str().unwrap_or("unknown reason");
    let text = format!(
        "internal error of Beamtalk {}{place}: {message}\nPlease report this with the input that caused it.\n",
        env!("CARGO_PKG_VERSION")
    );
    drop(std::io::stderr().write_all(text.as_bytes()));
}

#[cfg(test)]
mod tests;
