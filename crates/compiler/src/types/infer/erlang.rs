//! Calls of Erlang: checked against what is known about the module (language reference 10.5).

use beamtalk_syntax::ast::{Expression, Message};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use ecow::{EcoString, eco_format};

use super::Infer;
use super::block::literal;
use super::flow::Place;
use super::scan;
use crate::codes;
use crate::ffi::{self, Function, Kinds, Looked, Module};
use crate::suggest;
use crate::table::Kind;
use crate::types::form::{Form, Reason, Type};
use crate::types::relate::witness;

/// The class of what stands for an Erlang module.
const PROXY: &str = "ErlangModule";

impl Infer<'_, '_> {
    /// `Erlang lists reverse: x`, or the same with `Erlang lists` in a variable.
    pub(super) fn erlang_call(&mut self, receiver: &Expression, message: &Message) -> Option<Type> {
        let module = match ffi::module_of(receiver) {
            Some(module) => module.clone(),
            None => self.held_module(receiver)?,
        };
        let mut given = Vec::with_capacity(message.arguments.len());
        for argument in &message.arguments {
            given.push(match literal(argument) {
                Some(block) if scan::runs_at_once(&message.selector) => {
                    let result = self.repeated(block, &[]);
                    self.block_type(block, &[], result)
                }
                _ => self.expression(argument),
            });
        }
        let of = self.answered(receiver, &module, message, &given);
        Some(of.unwrap_or_else(|| Type::dynamic(Reason::Ffi)))
    }

    /// The Erlang module that a variable or slot stands for.
    fn held_module(&self, receiver: &Expression) -> Option<EcoString> {
        let place = self
            .place(receiver)
            .filter(|place| matches!(place, Place::Local(_)))?;
        let (class, arguments) = self.flow.get(&place)?.of.class_and_arguments()?;
        match arguments.first().filter(|_| class == PROXY)?.form() {
            Form::Symbol(module) => Some(module.clone()),
            _ => None,
        }
    }

    /// `Erlang lists` by itself: it stands for that module.
    pub(super) fn erlang_module(&self, of: &Type, message: &Message) -> Option<Type> {
        let is_gateway = matches!(of.form(), Form::ClassOf(name) if name == "Erlang");
        let is_module = is_gateway
            && message.arguments.is_empty()
            && self.world.find("Erlang", true, &message.selector).is_none();
        is_module.then(|| Type::generic(PROXY, vec![Type::symbol(message.selector.clone())], false))
    }

    fn answered(
        &mut self,
        receiver: &Expression,
        module: &EcoString,
        message: &Message,
        given: &[Type],
    ) -> Option<Type> {
        let table = self.world.table;
        // What every object understands is asked of the proxy, and of the gateway before it.
        let is_own = |class: &str, is_class: bool, selector: &str| {
            self.world.find(class, is_class, selector).is_some()
        };
        if is_own("Erlang", true, module)
            || is_own("ErlangModule", false, &message.selector)
            || is_own("Object", false, &message.selector)
        {
            return None;
        }
        // The function is the first keyword; the others name arguments.
        let name = message.selector.split(':').next().unwrap_or(&message.selector);
        let arity = message.arguments.len();
        match table.specs().module(module) {
            Looked::Open => None,
            Looked::Missing => {
                let text = eco_format!("Erlang module `{module}` is not on the code path");
                self.tell(
                    Diagnostic::warning(codes::UNRESOLVED_FFI, receiver.span, text)
                        .with_category(Category::UnresolvedFfi),
                );
                None
            }
            Looked::Found(known) => match known.function(name, arity) {
                Some(function) => {
                    self.check_given(module, function, message, given);
                    let answer = known.answer(name, arity)?;
                    let of = self.world.declared(answer, None);
                    (!of.is_dynamic()).then_some(of)
                }
                None => {
                    self.tell_no_function(module, known, name, message);
                    None
                }
            },
        }
    }

    fn tell_no_function(&mut self, module: &str, known: &Module, name: &str, message: &Message) {
        let span = message.parts.first().copied().unwrap_or(message.span);
        let arities = known.arities(name);
        if arities.is_empty() {
            let text = eco_format!("Erlang module `{module}` has no function `{name}`");
            let mut finding =
                Diagnostic::warning(codes::UNRESOLVED_FFI, span, text).with_category(Category::UnresolvedFfi);
            let names = known.functions().iter().map(|function| function.name.as_str());
            if let Some(near) = suggest::nearest(name, names) {
                finding = finding.with_hint(eco_format!("Did you mean '{near}'?"));
            }
            self.tell(finding);
            return;
        }
        let arities: Vec<String> = arities.iter().map(usize::to_string).collect();
        let count = message.arguments.len();
        let plural = if count == 1 { "" } else { "s" };
        let text = eco_format!(
            "{module}:{name}/{} exists but is called with {count} argument{plural}",
            arities.join(", ")
        );
        self.tell(Diagnostic::warning(codes::FFI_ARITY, span, text).with_category(Category::ArityMismatch));
    }

    /// A warning when no value that may be given is of a kind that the function takes, a hint when some are not.
    fn check_given(&mut self, module: &str, function: &Function, message: &Message, given: &[Type]) {
        for (at, (parameter, of)) in function.parameters.iter().zip(given).enumerate() {
            let takes = |member: &Type| {
                let (kinds, atom) = self.kinds(member);
                let is_kind = kinds.meets(parameter.kinds);
                let is_atom = match (&atom, &parameter.atoms) {
                    (Some(atom), Some(atoms)) if kinds == Kinds::ATOM => atoms.contains(atom),
                    _ => true,
                };
                is_kind && is_atom
            };
            let members = of.members();
            let failing: Vec<Type> = members.iter().filter(|member| !takes(member)).cloned().collect();
            if failing.is_empty() {
                continue;
            }
            let severity = if failing.len() == members.len() {
                Severity::Warning
            } else {
                Severity::Hint
            };
            let text = eco_format!(
                "Argument {} of '{}' on Erlang {module} expects {}, got {of}",
                at + 1,
                function.name,
                parameter.text,
            );
            let span = message
                .arguments
                .get(at)
                .map_or(message.span, |argument| argument.span);
            self.tell(
                Diagnostic::new(codes::WRONG_ARGUMENT, severity, span, text)
                    .with_category(Category::Type)
                    .with_witness(witness(&failing)),
            );
        }
    }

    /// The kinds of Erlang terms that values of a type are (language reference 10.3), and the atom if it is one only.
    fn kinds(&self, of: &Type) -> (Kinds, Option<EcoString>) {
        let name = match of.form() {
            Form::Symbol(name) => return (Kinds::ATOM, Some(name.clone())),
            Form::Block { .. } => return (Kinds::FUN, None),
            Form::Tuple(_) => return (Kinds::TUPLE, None),
            Form::ClassOf(_) => return (Kinds::TUPLE, None),
            Form::Class { name, .. } => name.as_str(),
            _ => return (Kinds::ANY, None),
        };
        let table = self.world.table;
        let kinds = match name {
            "Integer" | "Character" => Kinds::INTEGER,
            "Float" => Kinds::FLOAT,
            "Number" => Kinds::INTEGER.or(Kinds::FLOAT),
            "String" | "Binary" => Kinds::BINARY,
            "UndefinedObject" => return (Kinds::ATOM, Some("nil".into())),
            "True" => return (Kinds::ATOM, Some("true".into())),
            "False" => return (Kinds::ATOM, Some("false".into())),
            "Symbol" | "Boolean" => Kinds::ATOM,
            "List" => Kinds::LIST,
            "Tuple" => Kinds::TUPLE,
            "Dictionary" | "Array" | "Set" => Kinds::MAP,
            "Block" => Kinds::FUN,
            "Pid" => Kinds::PID,
            "Port" => Kinds::PORT,
            "Reference" => Kinds::REFERENCE,
            // Roots of classes of many kinds.
            "Object" | "ProtoObject" | "Value" | "Collection" => Kinds::ANY,
            _ if table.inherits_from(name, "Exception") => Kinds::MAP,
            _ => match table.kind(name) {
                Kind::Value => Kinds::MAP,
                Kind::Actor => Kinds::TUPLE,
                Kind::Object => Kinds::ANY,
            },
        };
        (kinds, None)
    }
}
