//! Type parameters: what arguments say about them.

use crate::types::form::{Form, Reason, Type};
use crate::types::world::{Bindings, World, bound};

impl World<'_> {
    /// Learns from an argument what the parameters of a declared type stand for.
    pub(super) fn solve(&self, declared: &Type, given: &Type, solved: &mut Bindings) {
        if !declared.has_parameters() || given.is_never() {
            return;
        }
        match declared.form() {
            Form::Parameter(name) => {
                if matches!(name.as_str(), "Self" | "Self class") {
                    return;
                }
                match solved.iter_mut().find(|(known, _)| known == name) {
                    Some((_, of)) => *of = of.or(given),
                    None => solved.push((name.clone(), given.clone())),
                }
            }
            Form::Block { parameters, result } => {
                if let Form::Block {
                    parameters: given_parameters,
                    result: given_result,
                } = given.form()
                {
                    for (declared, given) in parameters.iter().zip(given_parameters) {
                        // What a block takes is what is handed to it, not what it asks for.
                        if let Form::Parameter(name) = declared.form()
                            && bound(solved, name).is_none()
                            && !given.is_dynamic()
                        {
                            solved.push((name.clone(), given.clone()));
                        }
                    }
                    self.solve(result, given_result, solved);
                } else {
                    Self::give_up(declared, solved);
                }
            }
            Form::Tuple(parts) => {
                if let Form::Tuple(given) = given.form() {
                    for (declared, given) in parts.iter().zip(given) {
                        self.solve(declared, given, solved);
                    }
                } else {
                    Self::give_up(declared, solved);
                }
            }
            Form::Class { name, arguments, .. } => {
                for member in given.members() {
                    match member.form() {
                        Form::Class {
                            name: given,
                            arguments: given_arguments,
                            ..
                        } if self.table.inherits_from(given, name) => {
                            let above = self.bindings(given, given_arguments, name);
                            for (declared, (_, given)) in arguments.iter().zip(&above) {
                                self.solve(declared, given, solved);
                            }
                        }
                        _ => Self::give_up(declared, solved),
                    }
                }
            }
            Form::Union(members) => {
                // What the plain members take is not what the parameter stands for.
                let plain = Type::union(members.iter().filter(|member| !member.has_parameters()).cloned());
                let rest = if plain.is_never() {
                    given.clone()
                } else {
                    self.subtract(given, &plain)
                };
                for member in members.iter().filter(|member| member.has_parameters()) {
                    self.solve(member, &rest, solved);
                }
            }
            Form::Intersection(members) => members
                .iter()
                .for_each(|member| self.solve(member, given, solved)),
            Form::Without { base, .. } => self.solve(base, given, solved),
            Form::Dynamic(_) | Form::Never | Form::ClassOf(_) | Form::Protocol(_) | Form::Symbol(_) => {}
        }
    }

    /// Nothing is known about the parameters of a declared type.
    fn give_up(declared: &Type, solved: &mut Bindings) {
        let unknown = Type::dynamic(Reason::Argument);
        let mut names = Vec::new();
        parameters(declared, &mut names);
        for name in names {
            match solved.iter_mut().find(|(known, _)| *known == name) {
                Some((_, of)) => *of = unknown.clone(),
                None => solved.push((name, unknown.clone())),
            }
        }
    }
}

/// The names of the parameters in a type.
pub(super) fn parameters(of: &Type, names: &mut Vec<ecow::EcoString>) {
    if !of.has_parameters() {
        return;
    }
    match of.form() {
        Form::Parameter(name) => {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Form::Class { arguments: parts, .. }
        | Form::Tuple(parts)
        | Form::Union(parts)
        | Form::Intersection(parts) => parts.iter().for_each(|part| parameters(part, names)),
        Form::Block {
            parameters: parts,
            result,
        } => {
            parts.iter().for_each(|part| parameters(part, names));
            parameters(result, names);
        }
        Form::Without { base, .. } => parameters(base, names),
        Form::Dynamic(_) | Form::Never | Form::ClassOf(_) | Form::Protocol(_) | Form::Symbol(_) => {}
    }
}

/// The type with what was learnt put in; what is still open is unknown.
pub(super) fn settled(of: &Type, bindings: &Bindings, is_declared: bool) -> Type {
    let put = |name: &ecow::EcoString| {
        Some(bound(bindings, name).unwrap_or_else(|| Type::dynamic(Reason::Argument)))
    };
    of.replace(&put, is_declared)
}
