//! The functions of a module from its abstract forms.

use beamtalk_etf::Term;
use ecow::EcoString;
use rustc_hash::FxHashMap;

use super::mapping::{Bounds, Mapping, Types};
use super::{Function, Kinds, Parameter};

/// The exported functions in the order of their names, with the types that the forms say. A function without a
/// specification takes and answers anything.
pub fn functions(module: &str, exports: &[(EcoString, usize)], forms: Option<&Term>) -> Vec<Function> {
    let forms = match forms {
        Some(Term::List(forms)) => forms.as_slice(),
        _ => &[],
    };
    let mut types = Types::default();
    let mut specs: FxHashMap<(&str, usize), &[Term]> = FxHashMap::default();
    for form in forms {
        match attribute(form) {
            Some(("type", declared)) => types.declare(declared),
            Some(("spec", Term::Tuple(parts))) => {
                if let [key, Term::List(clauses)] = parts.as_slice()
                    && let Some(key) = name_and_arity(key)
                {
                    specs.insert(key, clauses);
                }
            }
            _ => {}
        }
    }
    let mut exports: Vec<&(EcoString, usize)> =
        exports.iter().filter(|(name, _)| name != "module_info").collect();
    exports.sort_unstable();
    exports.dedup();
    exports
        .into_iter()
        .map(|(name, arity)| match specs.get(&(name.as_str(), *arity)) {
            Some(clauses) => specified(module, name, *arity, clauses, &types),
            None => unspecified(name, *arity),
        })
        .collect()
}

/// `{attribute, Anno, Name, Value}`.
fn attribute(form: &Term) -> Option<(&str, &Term)> {
    match form {
        Term::Tuple(parts) => match parts.as_slice() {
            [Term::Atom(kind), _, Term::Atom(name), value] if kind == "attribute" => Some((name, value)),
            _ => None,
        },
        _ => None,
    }
}

/// `{Name, Arity}`, or with the module before them.
fn name_and_arity(key: &Term) -> Option<(&str, usize)> {
    let Term::Tuple(parts) = key else { return None };
    match parts.as_slice() {
        [Term::Atom(name), Term::Integer(arity)] | [_, Term::Atom(name), Term::Integer(arity)] => {
            Some((name, usize::try_from(*arity).ok()?))
        }
        _ => None,
    }
}

fn unspecified(name: &EcoString, arity: usize) -> Function {
    let parameter = Parameter {
        name: EcoString::new(),
        text: "Dynamic".into(),
        kinds: Kinds::ANY,
        atoms: None,
    };
    Function {
        name: name.clone(),
        parameters: vec![parameter; arity],
        result: "Dynamic".into(),
        answer: "Dynamic".into(),
    }
}

/// All clauses together: what any of them takes may be given, what any of them answers may come back.
fn specified(module: &str, name: &EcoString, arity: usize, clauses: &[Term], types: &Types) -> Function {
    let mut read = Vec::new();
    for clause in clauses {
        match parts(clause) {
            Some(parts) if parts.0.len() == arity => read.push(parts),
            _ => return unspecified(name, arity),
        }
    }
    let takes_characters = read.iter().any(|(parameters, _, bounds)| {
        parameters
            .iter()
            .any(|of| Mapping::new(types).is_characters(of, bounds))
    });
    let parameters = (0..arity)
        .map(|at| {
            let mut name = EcoString::new();
            let mut texts = Vec::new();
            let mut kinds = Kinds::NONE;
            let mut atoms: Option<Vec<EcoString>> = Some(Vec::new());
            for (parameters, _, bounds) in &read {
                let Some(of) = parameters.get(at) else { continue };
                if name.is_empty() {
                    name = parameter_name(of);
                }
                let mapping = Mapping::new(types);
                texts.extend(mapping.members(of, bounds));
                let taken = mapping.taken(of, bounds);
                kinds = kinds.or(taken.kinds);
                atoms = match (atoms, taken.atoms) {
                    (Some(mut all), Some(more)) => {
                        all.extend(more);
                        Some(all)
                    }
                    _ => None,
                };
            }
            Parameter {
                name,
                text: Mapping::text(texts),
                kinds,
                atoms,
            }
        })
        .collect();
    let mut results = Vec::new();
    let mut answers = Vec::new();
    for (_, result, bounds) in &read {
        results.extend(Mapping::new(types).result(result, bounds));
        answers.extend(Mapping::adjusted(types, module, takes_characters).result(result, bounds));
    }
    Function {
        name: name.clone(),
        parameters,
        result: Mapping::text(results),
        answer: Mapping::text(answers),
    }
}

/// Parameters and result of a clause, with what its constraints say about variables.
fn parts(clause: &Term) -> Option<(&[Term], &Term, Bounds<'_>)> {
    let Term::Tuple(parts) = clause else { return None };
    match parts.as_slice() {
        [_, _, Term::Atom(kind), Term::List(inner)] if kind == "bounded_fun" => match inner.as_slice() {
            [fun, Term::List(constraints)] => {
                let (parameters, result, mut bounds) = self::parts(fun)?;
                for constraint in constraints {
                    bounds.constrain(constraint);
                }
                Some((parameters, result, bounds))
            }
            _ => None,
        },
        [_, _, Term::Atom(kind), Term::List(inner)] if kind == "fun" => match inner.as_slice() {
            [Term::Tuple(product), result] => match product.as_slice() {
                [_, _, Term::Atom(kind), Term::List(parameters)] if kind == "product" => {
                    Some((parameters, result, Bounds::default()))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn parameter_name(of: &Term) -> EcoString {
    let Term::Tuple(parts) = of else {
        return EcoString::new();
    };
    match parts.as_slice() {
        [Term::Atom(kind), _, Term::Atom(name)] if kind == "var" => name.clone(),
        [Term::Atom(kind), _, Term::List(inner)] if kind == "ann_type" => {
            inner.first().map(parameter_name).unwrap_or_default()
        }
        _ => EcoString::new(),
    }
}
