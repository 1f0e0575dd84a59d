//! Functions that were read before, in a file named by the hash of the `.beam` file.

use std::path::{Path, PathBuf};

use beamtalk_compiler::ffi::{Function, Kinds, Parameter};
use beamtalk_etf::{Limits, Term, decode, encode, read};
use ecow::EcoString;

use crate::files;

/// Changes with what is written, or how types are mapped.
const FORM: i64 = 1;

fn path(directory: &Path, hash: &str) -> PathBuf {
    directory.join(format!("{hash}.etf"))
}

/// A file of another form, or one that was damaged, is as good as none.
pub(super) fn read(directory: &Path, hash: &str) -> Option<Vec<Function>> {
    let bytes = files::read_kept(&path(directory, hash))?;
    let term = decode(&bytes, Limits::default()).ok()?;
    match read::tagged(&term)? {
        ("functions", [Term::Integer(FORM), Term::List(rows)]) => rows.iter().map(function).collect(),
        _ => None,
    }
}

/// Who may not write reads again the next time.
pub(super) fn write(directory: &Path, hash: &str, functions: &[Function]) {
    let rows = functions.iter().map(|function| {
        Term::tuple([
            Term::binary(&function.name),
            Term::list(function.parameters.iter().map(row)),
            Term::binary(&function.result),
            Term::binary(&function.answer),
        ])
    });
    let term = Term::tuple([Term::atom("functions"), Term::Integer(FORM), Term::list(rows)]);
    if std::fs::create_dir_all(directory).is_ok() {
        let _ = files::write_atomic(&path(directory, hash), &encode(&term));
    }
}

fn row(parameter: &Parameter) -> Term {
    let atoms = match &parameter.atoms {
        Some(atoms) => Term::list(atoms.iter().map(Term::binary)),
        None => Term::atom("any"),
    };
    Term::tuple([
        Term::binary(&parameter.name),
        Term::binary(&parameter.text),
        Term::Integer(i64::from(parameter.kinds.bits())),
        atoms,
    ])
}

fn text(term: &Term) -> EcoString {
    read::text(term).into()
}

fn function(row: &Term) -> Option<Function> {
    let Term::Tuple(parts) = row else { return None };
    let [name, Term::List(parameters), result, answer] = parts.as_slice() else {
        return None;
    };
    Some(Function {
        name: text(name),
        parameters: parameters.iter().map(parameter).collect::<Option<_>>()?,
        result: text(result),
        answer: text(answer),
    })
}

fn parameter(row: &Term) -> Option<Parameter> {
    let Term::Tuple(parts) = row else { return None };
    let [name, kind, Term::Integer(kinds), atoms] = parts.as_slice() else {
        return None;
    };
    Some(Parameter {
        name: text(name),
        text: text(kind),
        kinds: Kinds::from_bits(u16::try_from(*kinds).ok()?),
        atoms: match atoms {
            Term::List(atoms) => Some(atoms.iter().map(text).collect()),
            _ => None,
        },
    })
}
