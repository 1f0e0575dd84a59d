//! Messages: which methods they reach, what these are given, what they answer.

use std::rc::Rc;

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Message};
use ecow::EcoString;

use super::block::{MAX_LOOPS, literal};
use super::flow::Place;
use super::solve::{parameters, settled};
use super::{Infer, MethodRef, scan};
use crate::resolve::unparenthesized;
use crate::table::Origin;
use crate::types::form::{Form, Reason, Type};
use crate::types::world::{Bindings, Found, Signature, What, bound};

/// Protocols extend each other no deeper than this.
const MAX_PROTOCOLS: usize = 32;

/// One method that a message may reach.
pub(crate) struct Candidate<'a> {
    /// The member of the receiver's type that has it.
    pub(crate) member: Type,
    pub(crate) found: Found<'a>,
    pub(crate) signature: Rc<Signature>,
    /// What the type parameters of its class stand for, and `Self`.
    class: Bindings,
    /// What those of the method stand for, as far as arguments say.
    solved: Bindings,
    /// The receiver's own arguments were written down.
    is_declared: bool,
}

impl Candidate<'_> {
    fn all(&self) -> Bindings {
        let mut all = self.class.clone();
        for (name, of) in &self.solved {
            match all.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) if known.is_dynamic() => {}
                Some(_) => {}
                None => all.push((name.clone(), of.clone())),
            }
        }
        all
    }

    /// What an argument has to be, with what is known so far.
    pub(crate) fn wanted(&self, index: usize) -> Option<Type> {
        let declared = self.signature.parameters.get(index)?.as_ref()?;
        Some(settled(declared, &self.all(), self.is_declared))
    }

    /// The same for judging an argument: what was only seen so far and not promised takes anything.
    pub(crate) fn promised(&self, index: usize) -> Option<Type> {
        let declared = self.signature.parameters.get(index)?.as_ref()?;
        let promised = |name: &EcoString| {
            bound(&self.class, name).filter(|_| self.is_declared || name.starts_with("Self"))
        };
        if let Form::Parameter(name) = declared.form()
            && promised(name).is_none()
            && let Some(protocol) = self.protocol_of(name)
        {
            return Some(Type::protocol(protocol));
        }
        let put = |name: &EcoString| Some(promised(name).unwrap_or_else(|| Type::dynamic(Reason::Argument)));
        Some(declared.replace(&put, true))
    }

    /// The protocol that whatever stands for a type parameter of the class conforms to.
    fn protocol_of(&self, parameter: &str) -> Option<EcoString> {
        let (_, class) = self.found.owner.declaration()?;
        let mut parameters = class.type_parameters.iter();
        let declared = parameters.find(|it| it.name.text == parameter)?;
        declared.bound.as_ref().map(|bound| bound.text.clone())
    }
}

/// What a receiver makes of a message.
pub(crate) enum Reached<'a> {
    Method(Box<Candidate<'a>>),
    /// A protocol says what it answers.
    Answer(Type),
    /// It certainly has no method for it.
    Nothing,
    /// Too little is known.
    Unknown(Reason),
}

impl<'a> Infer<'_, 'a> {
    pub(super) fn send(&mut self, receiver: &Expression, messages: &[Message]) -> Type {
        if let [message] = messages {
            self.receiver = None;
            if let Some(of) = self.erlang_call(receiver, message) {
                self.receiver = None;
                return of;
            }
            if let Some(of) = self.control(receiver, message) {
                self.receiver = None;
                return of;
            }
        }
        let is_super = matches!(receiver.kind, ExpressionKind::Super);
        let is_at_once = |message: &Message| {
            scan::runs_at_once(&message.selector) && !self.world.table.is_user_selector(&message.selector)
        };
        let of = match literal(receiver) {
            _ if is_super => self.inferred(receiver),
            Some(block) if messages.iter().all(is_at_once) => {
                let result = self.repeated(block, &[]);
                let of = self.block_type(block, &[], result);
                if self.is_told() {
                    self.out.types.push((receiver.span, of.clone()));
                }
                of
            }
            _ => self.expression(receiver),
        };
        let mut last = Type::never();
        for message in messages {
            last = self.message(receiver, &of, message, is_super);
        }
        let is_never = of.is_never();
        self.receiver = Some(of);
        if is_never { Type::never() } else { last }
    }

    /// The answer to one message.
    fn message(&mut self, receiver: &Expression, of: &Type, message: &Message, is_super: bool) -> Type {
        let selector = message.selector.as_str();
        if matches!(selector, "==" | "/=" | "=:=" | "=/=") {
            let arguments: Vec<Type> = message.arguments.iter().map(|it| self.expression(it)).collect();
            self.check_comparison(receiver, of, message, &arguments);
            return Type::boolean();
        }
        if let Some(of) = self.special(receiver, of, message) {
            return of;
        }
        let tested = self.tested_getter(receiver, of, message);
        let mut candidates: Vec<Candidate<'a>> = Vec::new();
        let mut unknown = None;
        let mut failing: Vec<Type> = Vec::new();
        let mut answers: Vec<Type> = Vec::new();
        for member in of.members() {
            match self.reach(member, selector, is_super) {
                Reached::Method(candidate) => candidates.push(*candidate),
                Reached::Answer(of) => answers.push(of),
                Reached::Nothing if self.is_allowed(receiver, member, selector) => {
                    unknown = Some(Reason::Receiver);
                }
                Reached::Nothing => failing.push(member.clone()),
                Reached::Unknown(reason) => unknown = Some(reason),
            }
        }
        if !failing.is_empty() {
            self.tell_unknown(receiver, of, &failing, message, is_super);
        }
        if self.is_told() && !candidates.is_empty() {
            let span = message.parts.first().copied().unwrap_or(message.span);
            let targets = candidates.iter().map(|candidate| MethodRef {
                class: candidate.found.owner.name.clone(),
                is_class_side: candidate.found.is_class,
                selector: message.selector.clone(),
            });
            let targets = targets.collect();
            self.out.targets.push((span, targets));
        }
        let is_open = unknown.is_some() || !answers.is_empty();
        let arguments = self.arguments(&mut candidates, message, is_open);
        self.check_arguments(&candidates, message, &arguments, is_open || !failing.is_empty());
        self.check_internal(&candidates, message);
        self.check_maker(receiver, of, message);
        self.check_side(receiver, of, message);
        self.check_sendable(receiver, of, message, &arguments);
        self.effects(receiver, of);
        for candidate in &candidates {
            answers.push(self.answer(receiver, candidate, message, &arguments));
        }
        if let Some(reason) = unknown {
            answers.push(Type::dynamic(reason));
        }
        if answers.is_empty() {
            // Nobody answers it; that was told, and what follows should not be told again.
            return Type::dynamic(Reason::Receiver);
        }
        if arguments.iter().any(Type::is_never) && !message.arguments.is_empty() {
            let is_block = |at: usize| message.arguments.get(at).is_some_and(|it| literal(it).is_some());
            let diverges = arguments
                .iter()
                .enumerate()
                .any(|(at, of)| of.is_never() && !is_block(at));
            if diverges {
                return Type::never();
            }
        }
        tested.unwrap_or_else(|| Type::union(answers))
    }

    /// What a test said about the field of a Value that is read again.
    fn tested_getter(&self, receiver: &Expression, of: &Type, message: &Message) -> Option<Type> {
        if !message.arguments.is_empty() || of.class_name().is_none() {
            return None;
        }
        let place = self.place(receiver)?;
        let version = self.held(&place)?.version;
        let place = Place::Getter(Box::new(place), version, message.selector.clone());
        self.flow.get(&place).map(|held| held.of.clone())
    }

    /// Sends that may assign the slots of `self`.
    fn effects(&mut self, receiver: &Expression, of: &Type) {
        let is_own = matches!(
            unparenthesized(receiver).kind,
            ExpressionKind::SelfReference | ExpressionKind::Super
        );
        let is_block = of.is_dynamic()
            || of
                .members()
                .iter()
                .any(|member| member.class_name() == Some("Block"));
        if is_own || is_block {
            self.forget_slots();
        }
    }

    /// What a member of the receiver's type makes of a message.
    pub(in crate::types) fn reach(&self, member: &Type, selector: &str, is_super: bool) -> Reached<'a> {
        let world = self.world;
        let (class, arguments, is_class, is_declared): (EcoString, &[Type], bool, bool) = match member.form()
        {
            Form::Class {
                name,
                arguments,
                is_declared,
            } => (name.clone(), arguments, false, *is_declared),
            Form::ClassOf(name) => (name.clone(), &[], true, false),
            Form::Parameter(name) => {
                return match self.bound_of(name) {
                    Some(protocol) => self.reach_protocol(member, &protocol, selector),
                    None => self.reach_anything(selector),
                };
            }
            Form::Dynamic(_) => return self.reach_anything(selector),
            Form::Never => return Reached::Unknown(Reason::Receiver),
            Form::Protocol(name) => return self.reach_protocol(member, name, selector),
            Form::Intersection(members) => {
                let mut last = Reached::Unknown(Reason::Receiver);
                for part in members {
                    match self.reach(part, selector, is_super) {
                        Reached::Nothing => {}
                        found @ (Reached::Method(_) | Reached::Answer(_)) => return found,
                        unknown @ Reached::Unknown(_) => last = unknown,
                    }
                }
                return last;
            }
            _ => match member.class_name() {
                Some(name) => (name.into(), &[], false, false),
                None => return Reached::Unknown(Reason::Receiver),
            },
        };
        let found = match self.own.as_ref().filter(|_| is_super) {
            Some(own) => world.find_above(&own.home, own.is_class, selector),
            None => world.find(&class, is_class, selector),
        };
        let Some(found) = found else {
            return if world.is_known(&class, is_class) {
                Reached::Nothing
            } else {
                Reached::Unknown(Reason::Receiver)
            };
        };
        let signature = world.signature(&found, selector);
        let mut bindings = if is_class == found.is_class && !is_class {
            world.bindings(&class, arguments, &found.owner.name)
        } else {
            Bindings::new()
        };
        if is_class {
            bindings.push(("Self class".into(), member.clone()));
        } else {
            bindings.push(("Self".into(), member.clone()));
            bindings.push(("Self class".into(), Type::class_of(class)));
        }
        Reached::Method(Box::new(Candidate {
            member: member.clone(),
            found,
            signature,
            class: bindings,
            solved: Bindings::new(),
            is_declared,
        }))
    }

    /// The protocol that a type parameter of the class around conforms to.
    fn bound_of(&self, parameter: &str) -> Option<EcoString> {
        let own = self.own.as_ref()?;
        let (_, class) = self.world.table.class(&own.home)?.declaration()?;
        let mut parameters = class.type_parameters.iter();
        let bound = parameters.find(|it| it.name.text == parameter)?.bound.as_ref()?;
        let protocol = self.world.table.protocol(&bound.text);
        protocol.map(|_| bound.text.clone())
    }

    /// What every object answers the same way.
    fn reach_anything(&self, selector: &str) -> Reached<'a> {
        let known = self.world.find("Object", false, selector).and_then(|found| {
            let result = self.world.signature(&found, selector).result.clone()?;
            let is_plain = !result.has_parameters() && !result.is_dynamic() && !result.is_never();
            is_plain.then_some(result)
        });
        known.map_or(Reached::Unknown(Reason::Receiver), Reached::Answer)
    }

    fn reach_protocol(&self, member: &Type, name: &EcoString, selector: &str) -> Reached<'a> {
        // What every object has; what else the object has nobody can tell.
        if let Some(answer) = self.protocol_answer(name, selector) {
            let own = |name: &EcoString| (name == "Self").then(|| member.clone());
            return Reached::Answer(answer.replace(&own, true));
        }
        let Some(found) = self.world.find("Object", false, selector) else {
            return Reached::Unknown(Reason::Receiver);
        };
        let signature = self.world.signature(&found, selector);
        Reached::Method(Box::new(Candidate {
            member: member.clone(),
            found,
            signature,
            class: vec![("Self".into(), member.clone())],
            solved: Bindings::new(),
            is_declared: false,
        }))
    }

    /// What a protocol, or one that it extends, says that a message answers.
    fn protocol_answer(&self, protocol: &str, selector: &str) -> Option<Type> {
        let mut next = self.world.table.protocol(protocol);
        // A circle is told where it is declared.
        for _ in 0..MAX_PROTOCOLS {
            let (_, declared) = next?.declaration()?;
            let mut signatures = declared.signatures.iter();
            if let Some(found) = signatures.find(|it| !it.is_class && it.head.selector == selector) {
                let result = found.result.as_ref().map(|it| self.world.declared(it, None));
                return Some(result.unwrap_or_else(|| Type::dynamic(Reason::Return)));
            }
            next = declared
                .extending
                .as_ref()
                .and_then(|name| self.world.table.protocol(&name.text));
        }
        None
    }

    /// The types of the arguments; blocks are looked at with what the method hands to them.
    fn arguments(&mut self, candidates: &mut [Candidate<'a>], message: &Message, is_open: bool) -> Vec<Type> {
        let mut types: Vec<Option<Type>> = Vec::with_capacity(message.arguments.len());
        for (index, argument) in message.arguments.iter().enumerate() {
            if literal(argument).is_some() {
                types.push(None);
                continue;
            }
            let of = self.expression(argument);
            self.learn_from(candidates, index, &of);
            types.push(Some(of));
        }
        for (index, argument) in message.arguments.iter().enumerate() {
            let Some(block) = literal(argument) else { continue };
            let of = self.block_argument(candidates, message, index, block, is_open);
            if self.is_told() {
                self.out.types.push((argument.span, of.clone()));
            }
            if let Some(place) = types.get_mut(index) {
                *place = Some(of);
            }
        }
        types
            .into_iter()
            .map(|of| of.unwrap_or_else(|| Type::dynamic(Reason::Parameter)))
            .collect()
    }

    fn learn_from(&self, candidates: &mut [Candidate<'a>], index: usize, of: &Type) {
        for candidate in candidates {
            if let Some(Some(declared)) = candidate.signature.parameters.get(index) {
                let declared = declared.replace(&|name| bound(&candidate.class, name), candidate.is_declared);
                // Parameters of the class around the send are no unknowns of this one.
                let mut solved = std::mem::take(&mut candidate.solved);
                if let Some(Some(written)) = candidate.signature.parameters.get(index) {
                    let mut names = Vec::new();
                    parameters(written, &mut names);
                    if names.iter().any(|name| bound(&candidate.class, name).is_none()) {
                        self.world.solve(&declared, of, &mut solved);
                    }
                }
                candidate.solved = solved;
            }
        }
    }

    fn block_argument(
        &mut self,
        candidates: &mut [Candidate<'a>],
        message: &Message,
        index: usize,
        block: &ast::Block,
        is_open: bool,
    ) -> Type {
        let is_at_once =
            scan::runs_at_once(&message.selector) && !self.world.table.is_user_selector(&message.selector);
        if !Self::feeds_back(candidates, index) {
            let given = self.given(candidates, message, index, block, is_open);
            let of = self.block_once(block, &given, is_at_once);
            self.learn_from(candidates, index, &of);
            return of;
        }
        // What the block answers may come back to it: `inject:into:`. Looking twice at each of many inside each other would
        // take for ever.
        let rounds = if self.loops >= MAX_LOOPS { 0 } else { 2 };
        for _ in 0..rounds {
            let given = self.given(candidates, message, index, block, is_open);
            self.quiet += 1;
            self.loops += 1;
            let returns = self.returns.len();
            let of = self.block_once(block, &given, is_at_once);
            self.returns.truncate(returns);
            self.loops -= 1;
            self.quiet -= 1;
            self.learn_from(candidates, index, &of);
            if self.given(candidates, message, index, block, is_open) == given {
                let of = self.block_once(block, &given, is_at_once);
                return of;
            }
        }
        let names = Self::fed_back(candidates, index);
        for candidate in candidates.iter_mut() {
            for (name, of) in &mut candidate.solved {
                if names.contains(name) {
                    *of = Type::dynamic(Reason::Flow);
                }
            }
        }
        let given = self.given(candidates, message, index, block, is_open);
        self.block_once(block, &given, is_at_once)
    }

    fn block_once(&mut self, block: &ast::Block, given: &[Type], is_at_once: bool) -> Type {
        if is_at_once {
            let result = self.repeated(block, given);
            self.block_type(block, given, result)
        } else {
            self.later(block, given)
        }
    }

    /// Whether what a block answers says what it will be given.
    fn feeds_back(candidates: &[Candidate<'a>], index: usize) -> bool {
        !Self::fed_back(candidates, index).is_empty()
    }

    fn fed_back(candidates: &[Candidate<'a>], index: usize) -> Vec<EcoString> {
        let mut all = Vec::new();
        for candidate in candidates {
            let Some(Some(declared)) = candidate.signature.parameters.get(index) else {
                continue;
            };
            let Form::Block {
                parameters: taken,
                result,
            } = declared.form()
            else {
                continue;
            };
            let (mut taken_names, mut result_names) = (Vec::new(), Vec::new());
            taken.iter().for_each(|of| parameters(of, &mut taken_names));
            parameters(result, &mut result_names);
            all.extend(
                taken_names
                    .into_iter()
                    .filter(|name| result_names.contains(name) && bound(&candidate.class, name).is_none()),
            );
        }
        all
    }

    /// What the parameters of a block are given, when all methods that may be reached agree.
    fn given(
        &mut self,
        candidates: &[Candidate<'a>],
        message: &Message,
        index: usize,
        block: &ast::Block,
        is_open: bool,
    ) -> Vec<Type> {
        let unknown = || vec![Type::dynamic(Reason::Parameter); block.parameters.len()];
        if is_open || candidates.is_empty() {
            return unknown();
        }
        if let Some(of) = self.handler_parameter(message, index) {
            return vec![of];
        }
        let mut agreed: Option<Vec<Type>> = None;
        for candidate in candidates {
            let Some(wanted) = candidate.wanted(index) else {
                return unknown();
            };
            let Form::Block { parameters, .. } = wanted.form() else {
                return unknown();
            };
            let parameters: Vec<Type> = parameters
                .iter()
                // Handed over as Object, a thing may be anything.
                .map(|of| {
                    if of.is_class("Object") {
                        Type::dynamic(Reason::Declared)
                    } else {
                        of.clone()
                    }
                })
                .collect();
            match &agreed {
                Some(known) if *known != parameters => return unknown(),
                _ => agreed = Some(parameters),
            }
        }
        agreed.unwrap_or_else(unknown)
    }

    /// The exception that a handler gets is of the class it is for.
    fn handler_parameter(&self, message: &Message, index: usize) -> Option<Type> {
        if message.selector != "on:do:" || index != 1 {
            return None;
        }
        let class = message.arguments.first()?;
        match &unparenthesized(class).kind {
            ExpressionKind::ClassName(class) if self.world.table.class(&class.name.text).is_some() => {
                Some(Type::class(class.name.text.clone()))
            }
            _ => Some(Type::dynamic(Reason::Parameter)),
        }
    }

    /// What a method answers for these arguments.
    fn answer(
        &self,
        receiver: &Expression,
        candidate: &Candidate<'a>,
        message: &Message,
        arguments: &[Type],
    ) -> Type {
        let selector = message.selector.as_str();
        if let Some(of) = arithmetic(&candidate.member, selector, arguments) {
            return of;
        }
        let mut all = candidate.all();
        if let Form::ClassOf(name) = candidate.member.form() {
            let entry = self.world.table.class(name);
            let is_abstract = entry.is_some_and(|entry| entry.modifiers.is_abstract);
            let is_self = matches!(unparenthesized(receiver).kind, ExpressionKind::SelfReference);
            let made = if is_abstract && !is_self {
                Type::dynamic(Reason::Declared)
            } else {
                self.made(name, &all)
            };
            all.push(("Self".into(), made));
        }
        match &candidate.signature.result {
            Some(declared) => settled(
                declared,
                &all,
                candidate.is_declared || !declared.has_parameters(),
            ),
            None if is_maker(selector) && candidate.found.owner.origin == Origin::Library => {
                bound(&all, &"Self".into()).unwrap_or_else(|| Type::dynamic(Reason::Return))
            }
            None => self.undeclared(candidate, selector),
        }
    }

    /// An instance of a class, with what a constructor was told about its parameters.
    fn made(&self, class: &EcoString, solved: &Bindings) -> Type {
        let names = self.world.type_parameters(class);
        let arguments: Vec<Type> = names
            .iter()
            .map(|name| bound(solved, name).unwrap_or_else(|| Type::dynamic(Reason::Argument)))
            .collect();
        let arguments = if arguments.iter().all(Type::is_dynamic) {
            Vec::new()
        } else {
            arguments
        };
        Type::generic(class.clone(), arguments, false)
    }

    /// What the body says, and what the bodies of those say that override it.
    fn undeclared(&self, candidate: &Candidate<'a>, selector: &str) -> Type {
        let found = &candidate.found;
        let What::Method(_) = found.what else {
            return Type::dynamic(Reason::Return);
        };
        let class: EcoString = match candidate.member.form() {
            Form::ClassOf(name) if found.is_class => name.clone(),
            Form::ClassOf(_) => found.owner.name.clone(),
            _ => candidate.member.class_name().unwrap_or(&found.owner.name).into(),
        };
        let overriders = self.world.overriders(&class, found.is_class, selector);
        if overriders.len() > 4 {
            return Type::dynamic(Reason::Return);
        }
        let mut answers = vec![self.body_answer(&class, found, selector)];
        for entry in overriders {
            let Some(other) = self.world.find(&entry.name, found.is_class, selector) else {
                continue;
            };
            let signature = self.world.signature(&other, selector);
            answers.push(match &signature.result {
                Some(declared) if !declared.has_parameters() => declared.clone(),
                Some(_) => Type::dynamic(Reason::Return),
                None => self.body_answer(&entry.name, &other, selector),
            });
        }
        let of = match Type::union(answers) {
            // Why the body is not known is for who looks at that.
            of if matches!(of.form(), Form::Dynamic(reason) if *reason != Reason::Recursion) => {
                return Type::dynamic(Reason::Return);
            }
            of => of,
        };
        // Parameters of the other class mean nothing here.
        settled(&of, &candidate.all(), candidate.is_declared)
    }

    /// Messages whose answer depends on more than types.
    fn special(&mut self, receiver: &Expression, of: &Type, message: &Message) -> Option<Type> {
        let arguments = message.arguments.as_slice();
        if let Some(of) = self.erlang_module(of, message) {
            return Some(of);
        }
        match (message.selector.as_str(), arguments) {
            ("asType:", [class]) => {
                self.expression(class);
                match &unparenthesized(class).kind {
                    ExpressionKind::ClassName(class) => {
                        let name = &class.name.text;
                        if self.world.table.class(name).is_some() {
                            Some(Type::class(name.clone()))
                        } else if self.world.table.protocol(name).is_some() {
                            Some(Type::protocol(name.clone()))
                        } else {
                            Some(Type::dynamic(Reason::Declared))
                        }
                    }
                    _ => Some(Type::dynamic(Reason::Declared)),
                }
            }
            ("class", []) => match of.form() {
                Form::Class { name, .. } if self.world.is_known(name, false) && name != "Class" => {
                    Some(Type::class_of(name.clone()))
                }
                _ => None,
            },
            ("withTimeout:", [timeout])
                if of
                    .class_name()
                    .is_some_and(|name| self.world.table.inherits_from(name, "Actor")) =>
            {
                self.expression(timeout);
                Some(of.clone())
            }
            ("value" | "value:" | "value:value:" | "value:value:value:", _) => {
                let Form::Block { parameters, result } = of.form() else {
                    return None;
                };
                let given: Vec<Type> = arguments.iter().map(|it| self.expression(it)).collect();
                self.check_block_call(receiver, of, message, parameters, &given);
                self.forget_slots();
                Some(result.clone())
            }
            ("ensure:", [cleanup]) => {
                let Form::Block { result, .. } = of.form() else {
                    return None;
                };
                let result = result.clone();
                match literal(cleanup) {
                    Some(block) => {
                        self.repeated(block, &[]);
                    }
                    None => {
                        self.expression(cleanup);
                    }
                }
                Some(result)
            }
            ("on:do:", [class, handler]) => {
                let Form::Block { result, .. } = of.form() else {
                    return None;
                };
                let result = result.clone();
                self.expression(class);
                self.check_block_size(handler, 1);
                let given = self.handler_parameter(message, 1).into_iter().collect::<Vec<_>>();
                let handled = match literal(handler) {
                    Some(block) => self.repeated(block, &given),
                    None => match self.expression(handler).form() {
                        Form::Block { result, .. } => result.clone(),
                        _ => Type::dynamic(Reason::Flow),
                    },
                };
                Some(result.or(&handled))
            }
            ("at:", [index]) => {
                let Form::Tuple(parts) = of.form() else {
                    return None;
                };
                self.expression(index);
                match &unparenthesized(index).kind {
                    ExpressionKind::Integer(at) => {
                        let at = usize::try_from(at).ok()?.checked_sub(1)?;
                        Some(
                            parts
                                .get(at)
                                .cloned()
                                .unwrap_or_else(|| Type::dynamic(Reason::Argument)),
                        )
                    }
                    _ => Some(Type::union(parts.iter().cloned())),
                }
            }
            _ => None,
        }
    }
}

/// Messages to a class that make an instance of it.
fn is_maker(selector: &str) -> bool {
    matches!(selector, "new" | "new:" | "spawn" | "spawnWith:")
}

/// Arithmetic is exact about Integers (language reference 3.3).
fn arithmetic(receiver: &Type, selector: &str, arguments: &[Type]) -> Option<Type> {
    let [other] = arguments else { return None };
    let (is_integer, is_float) = (receiver.is_class("Integer"), receiver.is_class("Float"));
    if !(is_integer || is_float) {
        return None;
    }
    match selector {
        "+" | "-" | "*" if is_float || other.is_class("Float") => Some(Type::class("Float")),
        "+" | "-" | "*" if other.is_class("Integer") => Some(Type::class("Integer")),
        "/" => Some(Type::class("Float")),
        "%" | "div:" => Some(Type::class("Integer")),
        _ => None,
    }
}
