//! A node with one session, and the compiler in front of it.

use std::fs::File;
use std::os::fd::OwnedFd;

use beamtalk_compiler::{ClassTable, Origin, SourceFile};
use beamtalk_etf::Term;
use beamtalk_node::{Answer, Erlang, NodeLink, NodeMessage, NodeOptions, Reply, Runtime, library_sources};
use tokio::sync::mpsc;

pub(crate) struct Image {
    pub(crate) link: NodeLink,
    pub(crate) messages: mpsc::Receiver<NodeMessage>,
    pub(crate) directory: tempfile::TempDir,
    pub(crate) limits: Vec<(Term, Term)>,
    table: ClassTable,
    pub(crate) bound: Vec<ecow::EcoString>,
}

/// Output and outcome of one evaluation.
#[derive(Debug)]
pub(crate) struct Evaluated {
    pub(crate) output: String,
    pub(crate) outcome: Result<Term, Term>,
}

impl Evaluated {
    pub(crate) fn shown(&self) -> String {
        text(&field(self.outcome.as_ref().unwrap(), "text").unwrap())
    }

    pub(crate) fn kind(&self) -> String {
        text(&field(self.outcome.as_ref().unwrap_err(), "kind").unwrap())
    }
}

impl Image {
    pub(crate) async fn start() -> Self {
        Self::start_without(&[]).await
    }

    pub(crate) async fn start_without(capabilities: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let log = File::create(directory.path().join("node.log")).unwrap();
        let options = NodeOptions {
            directory: directory.path().to_owned(),
            log: OwnedFd::from(log),
            crash_dump: directory.path().join("crash.dump"),
            max_processes: 250_000,
            distribution: None,
            disabled_capabilities: capabilities.iter().map(|&name| name.to_owned()).collect(),
        };
        let runtime = Runtime::prepare().unwrap();
        let (link, messages) = NodeLink::start(&Erlang::find().unwrap(), &runtime, options).unwrap();
        let session = link.request(Some("s-1"), "session-start", Term::Map(Vec::new()));
        session.outcome().await.unwrap();
        Self {
            link,
            messages,
            directory,
            limits: Vec::new(),
            table: library_table(),
            bound: Vec::new(),
        }
    }

    /// The text the node wrote to its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("node.log")).unwrap()
    }

    /// Compile an input and send it.
    pub(crate) fn send(&mut self, input: &str) -> Reply {
        let args = self.compile(input);
        self.link.request(Some("s-1"), "eval", args)
    }

    pub(crate) async fn eval(&mut self, input: &str) -> Evaluated {
        let reply = self.send(input);
        self.finish(reply).await
    }

    /// Evaluate what does not fail.
    pub(crate) async fn run(&mut self, input: &str) -> Term {
        self.eval(input).await.outcome.unwrap()
    }

    /// Take all output, granting credit as it comes.
    pub(crate) async fn finish(&self, mut reply: Reply) -> Evaluated {
        let mut output = Vec::new();
        loop {
            match reply.next().await.unwrap() {
                Answer::Out(bytes) => {
                    self.link.credit(reply.id(), bytes.len());
                    output.extend(bytes);
                }
                Answer::NeedInput(prompt) => panic!("nobody answers {prompt}"),
                Answer::Done(term) => return evaluated(output, Ok(term)),
                Answer::Failed(term) => return evaluated(output, Err(term)),
                Answer::NodeGone(status) => panic!("the node ended: {status:?}\n{}", self.log()),
            }
        }
    }

    fn compile(&mut self, input: &str) -> Term {
        let file = SourceFile {
            path: "session".into(),
            text: input.into(),
            unit: beamtalk_syntax::parse_input(input).unit,
            package: None,
            module: beamtalk_compiler::module_name(None, "session").into(),
            origin: Origin::Session,
        };
        self.table.declare(&file);
        let compiled = beamtalk_compiler::compile_input(&file, &self.table, &self.bound);
        for changed in &compiled.changed {
            self.table.declare(changed);
        }
        for name in compiled.assigns {
            if !self.bound.contains(&name) {
                self.bound.push(name);
            }
        }
        let mut args = self.limits.clone();
        let modules = compiled.modules.iter().map(|module| Term::binary(&module.forms));
        args.push((Term::binary("modules"), Term::list(modules)));
        if let Some(expression) = compiled.expression {
            args.push((Term::binary("expression"), Term::Binary(expression.forms)));
            args.push((Term::binary("is_cast"), boolean(expression.is_cast)));
            args.push((Term::binary("is_character"), boolean(expression.is_character)));
        }
        Term::Map(args)
    }
}

fn evaluated(output: Vec<u8>, outcome: Result<Term, Term>) -> Evaluated {
    Evaluated {
        output: String::from_utf8(output).unwrap(),
        outcome,
    }
}

fn boolean(value: bool) -> Term {
    Term::atom(if value { "true" } else { "false" })
}

pub(crate) fn field(term: &Term, name: &str) -> Option<Term> {
    let Term::Map(pairs) = term else {
        panic!("no map: {term:?}")
    };
    let key = Term::binary(name);
    pairs
        .iter()
        .find(|(found, _)| *found == key)
        .map(|(_, value)| value.clone())
}

pub(crate) fn text(term: &Term) -> String {
    match term {
        Term::Binary(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}

fn library_table() -> ClassTable {
    let mut table = ClassTable::empty();
    for (name, text) in library_sources() {
        table.declare(&SourceFile {
            path: name.into(),
            text: text.into(),
            unit: beamtalk_syntax::parse_file(text).unit,
            package: Some("stdlib".into()),
            module: beamtalk_compiler::module_name(Some("stdlib"), name).into(),
            origin: Origin::Library,
        });
    }
    table
}
