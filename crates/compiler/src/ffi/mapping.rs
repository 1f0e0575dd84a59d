//! Erlang's types as Beamtalk's.

use beamtalk_etf::Term;
use ecow::{EcoString, eco_format};
use rustc_hash::FxHashMap;

use super::Kinds;

/// Types name each other; what lies deeper is unknown.
const MAX_DEPTH: usize = 12;
/// A union of more members says nothing to people.
const MAX_MEMBERS: usize = 40;
const DYNAMIC: &str = "Dynamic";
/// Modules whose character lists arrive as Strings (10.3).
const TEXT_MODULES: &[&str] = &[
    "os", "file", "filename", "filelib", "calendar", "io_lib", "inet", "init", "code", "string", "unicode",
];

/// The types that a module declares: name and number of parameters, with the parameters and what it stands for.
#[derive(Debug, Default)]
pub(super) struct Types<'a> {
    declared: FxHashMap<(&'a str, usize), (Vec<&'a str>, &'a Term)>,
}

impl<'a> Types<'a> {
    /// `{Name, Type, Parameters}`.
    pub(super) fn declare(&mut self, declaration: &'a Term) {
        let Term::Tuple(parts) = declaration else { return };
        if let [Term::Atom(name), of, Term::List(parameters)] = parts.as_slice() {
            let names: Vec<&str> = parameters.iter().filter_map(variable).collect();
            self.declared
                .insert((name.as_str(), parameters.len()), (names, of));
        }
    }
}

/// What variables stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds<'a> {
    types: FxHashMap<&'a str, &'a Term>,
    /// The arguments of a type that is being looked into, already mapped.
    mapped: FxHashMap<&'a str, Vec<EcoString>>,
}

impl<'a> Bounds<'a> {
    /// `{type, _, constraint, [{atom, _, is_subtype}, [Variable, Type]]}`.
    pub(super) fn constrain(&mut self, constraint: &'a Term) {
        let Some((_, _, [_, Term::List(pair)])) = shape(constraint) else {
            return;
        };
        if let [name, of] = pair.as_slice()
            && let Some(name) = variable(name)
        {
            self.types.insert(name, of);
        }
    }

    /// What a variable is bound to, and what is left for the types in there: a variable is not looked up in itself.
    fn taken(&self, name: &str) -> Option<(&'a Term, Self)> {
        let of = self.types.get(name)?;
        let mut rest = self.clone();
        rest.types.remove(name);
        Some((of, rest))
    }
}

/// What may be given in one place.
pub(super) struct Taken {
    pub(super) kinds: Kinds,
    pub(super) atoms: Option<Vec<EcoString>>,
}

/// How types are read: as they are written, or as they arrive after the adjustments of a call.
pub(super) struct Mapping<'a> {
    types: &'a Types<'a>,
    is_adjusted: bool,
    /// Character lists may arrive as Strings.
    has_text: bool,
}

impl<'a> Mapping<'a> {
    pub(super) fn new(types: &'a Types<'a>) -> Self {
        Self {
            types,
            is_adjusted: false,
            has_text: false,
        }
    }

    /// As a send answers it. A call that was repeated with character lists may answer Strings, too.
    pub(super) fn adjusted(types: &'a Types<'a>, module: &str, takes_characters: bool) -> Self {
        Self {
            types,
            is_adjusted: true,
            has_text: takes_characters || TEXT_MODULES.contains(&module),
        }
    }

    /// What a call answers: tuples and atoms of success and failure arrive as a Result.
    pub(super) fn result(&self, of: &'a Term, bounds: &Bounds<'a>) -> Vec<EcoString> {
        let mut alternatives = Vec::new();
        self.alternatives(of, bounds, 0, &mut alternatives);
        let (mut ok, mut error) = (Vec::new(), Vec::new());
        let mut has_outcome = false;
        let mut others = Vec::new();
        for (of, bounds) in &alternatives {
            match outcome(of) {
                Some((is_ok, value)) => {
                    has_outcome = true;
                    let side = if is_ok { &mut ok } else { &mut error };
                    match value {
                        Some(value) => side.extend(self.inner(value, bounds, 1)),
                        None => side.push("Nil".into()),
                    }
                }
                None => others.extend(self.inner(of, bounds, 0)),
            }
        }
        if has_outcome {
            // The reason of a failure arrives as an exception that tells of it.
            let error = if self.is_adjusted { Vec::new() } else { error };
            let side = |members: Vec<EcoString>| {
                if members.is_empty() {
                    DYNAMIC.into()
                } else {
                    Self::text(members)
                }
            };
            others.insert(0, applied("Result", &[side(ok), side(error)]));
        }
        others
    }

    /// The members of a union, each with what its variables stand for; declared types are looked into.
    fn alternatives(
        &self,
        of: &'a Term,
        bounds: &Bounds<'a>,
        depth: usize,
        out: &mut Vec<(&'a Term, Bounds<'a>)>,
    ) {
        if depth > MAX_DEPTH || out.len() > MAX_MEMBERS {
            out.push((of, bounds.clone()));
            return;
        }
        if let Some((of, rest)) = variable(of).and_then(|name| bounds.taken(name)) {
            return self.alternatives(of, &rest, depth + 1, out);
        }
        match shape(of) {
            Some(("ann_type", _, [_, of])) => self.alternatives(of, bounds, depth, out),
            Some(("type", "union", members)) => {
                for member in members {
                    self.alternatives(member, bounds, depth + 1, out);
                }
            }
            Some(("user_type", name, arguments)) => match self.declared(name, arguments, bounds, depth) {
                Some((of, bounds)) => self.alternatives(of, &bounds, depth + 1, out),
                None => out.push((of, bounds.clone())),
            },
            _ => out.push((of, bounds.clone())),
        }
    }

    fn declared(
        &self,
        name: &str,
        arguments: &'a [Term],
        bounds: &Bounds<'a>,
        depth: usize,
    ) -> Option<(&'a Term, Bounds<'a>)> {
        let (names, of) = self.types.declared.get(&(name, arguments.len()))?;
        let mut inside = Bounds::default();
        for (name, argument) in names.iter().zip(arguments) {
            inside
                .mapped
                .insert(name, self.inner(argument, bounds, depth + 1));
        }
        Some((of, inside))
    }

    /// The members of the union that a type is.
    pub(super) fn members(&self, of: &'a Term, bounds: &Bounds<'a>) -> Vec<EcoString> {
        self.inner(of, bounds, 0)
    }

    fn inner(&self, of: &'a Term, bounds: &Bounds<'a>, depth: usize) -> Vec<EcoString> {
        let unknown = || vec![EcoString::from(DYNAMIC)];
        if depth > MAX_DEPTH {
            return unknown();
        }
        if let Some(name) = variable(of) {
            if let Some(members) = bounds.mapped.get(name) {
                return members.clone();
            }
            return match bounds.taken(name) {
                Some((of, rest)) => self.inner(of, &rest, depth + 1),
                None => unknown(),
            };
        }
        let text = |of: &'a Term| Self::text(self.inner(of, bounds, depth + 1));
        match shape(of) {
            Some(("ann_type", _, [_, of])) => self.inner(of, bounds, depth),
            Some(("atom", name, _)) => vec![symbol(name)],
            Some(("integer" | "char" | "op", ..)) => vec!["Integer".into()],
            Some(("user_type", name, arguments)) => match self.declared(name, arguments, bounds, depth) {
                Some((of, bounds)) => self.inner(of, &bounds, depth + 1),
                None => unknown(),
            },
            Some(("type", "union", members)) => {
                let mut all = Vec::new();
                for member in members {
                    all.extend(self.inner(member, bounds, depth + 1));
                    if all.len() > MAX_MEMBERS {
                        return unknown();
                    }
                }
                all
            }
            Some(("type", "tuple", [])) => vec!["Tuple".into()],
            Some(("type", "tuple", parts)) => {
                let parts: Vec<EcoString> = parts.iter().map(text).collect();
                vec![applied("Tuple", &parts)]
            }
            Some(("type", "list" | "nonempty_list", [element])) => {
                let element = text(element);
                if self.has_text && matches!(element.as_str(), "Integer" | DYNAMIC) {
                    unknown()
                } else {
                    vec![applied("List", &[element])]
                }
            }
            Some(("type", "list" | "nonempty_list" | "nil", [])) => {
                if self.has_text {
                    unknown()
                } else {
                    vec!["List".into()]
                }
            }
            Some(("type", "string" | "nonempty_string", _)) => {
                if self.has_text {
                    unknown()
                } else {
                    vec!["List(Integer)".into()]
                }
            }
            Some(("type", "fun", [product, result])) => match shape(product) {
                Some(("type", "product", parameters)) => {
                    let parts: Vec<EcoString> = parameters.iter().chain([result]).map(text).collect();
                    vec![applied("Block", &parts)]
                }
                _ => vec!["Block".into()],
            },
            // Bytes that are text have the class String, which understands all that a Binary understands.
            Some(("type", "binary" | "nonempty_binary", _)) if self.is_adjusted => vec!["String".into()],
            Some(("type", name, _)) => plain(name),
            _ => unknown(),
        }
    }

    /// What may be given for a parameter.
    pub(super) fn taken(&self, of: &'a Term, bounds: &Bounds<'a>) -> Taken {
        let mut taken = Taken {
            kinds: Kinds::NONE,
            atoms: Some(Vec::new()),
        };
        let mut alternatives = Vec::new();
        self.alternatives(of, bounds, 0, &mut alternatives);
        for (of, _) in &alternatives {
            let kinds = match shape(of) {
                Some(("atom", name, _)) => {
                    if let Some(atoms) = &mut taken.atoms {
                        atoms.push(name.into());
                    }
                    taken.kinds = taken.kinds.or(Kinds::ATOM);
                    continue;
                }
                Some(("integer" | "char" | "op", ..)) => Kinds::INTEGER,
                Some(("type", name, _)) => given(name),
                _ => Kinds::ANY,
            };
            if kinds.meets(Kinds::ATOM) {
                taken.atoms = None;
            }
            taken.kinds = taken.kinds.or(kinds);
        }
        // Strings become character lists, actors become pids.
        if taken.kinds.meets(Kinds::LIST) {
            taken.kinds = taken.kinds.or(Kinds::BINARY);
        }
        if taken.kinds.meets(Kinds::PID) {
            taken.kinds = taken.kinds.or(Kinds::TUPLE);
        }
        taken
    }

    /// Whether a list of characters is asked for.
    pub(super) fn is_characters(&self, of: &'a Term, bounds: &Bounds<'a>) -> bool {
        self.members(of, bounds)
            .iter()
            .any(|member| member == "List(Integer)")
    }

    /// A union names each member once; what may be anything is unknown.
    pub(super) fn text(members: Vec<EcoString>) -> EcoString {
        let mut found: Vec<EcoString> = Vec::new();
        for member in members {
            if member == DYNAMIC {
                return member;
            }
            if !found.contains(&member) {
                found.push(member);
            }
        }
        let is_both = ["true", "false"]
            .iter()
            .all(|name| found.iter().any(|member| member == name));
        if is_both {
            found.retain(|member| !matches!(member.as_str(), "true" | "false" | "Boolean"));
            found.insert(0, "Boolean".into());
        }
        // What does not return adds nothing to what does.
        if found.len() > 1 {
            found.retain(|member| member != "Never");
        }
        if found.is_empty() {
            DYNAMIC.into()
        } else {
            found.join(" | ").into()
        }
    }
}

/// `{ok, V}`, `{error, R}`, `ok`, `error`.
fn outcome(of: &Term) -> Option<(bool, Option<&Term>)> {
    let is_ok = |name: &str| match name {
        "ok" => Some(true),
        "error" => Some(false),
        _ => None,
    };
    match shape(of)? {
        ("atom", name, _) => Some((is_ok(name)?, None)),
        ("type", "tuple", [first, value]) => match shape(first)? {
            ("atom", name, _) => Some((is_ok(name)?, Some(value))),
            _ => None,
        },
        _ => None,
    }
}

/// `{var, Anno, Name}`.
fn variable(of: &Term) -> Option<&str> {
    let Term::Tuple(parts) = of else { return None };
    match parts.as_slice() {
        [Term::Atom(kind), _, Term::Atom(name)] if kind == "var" => Some(name),
        _ => None,
    }
}

/// The kind of a type, its name, and its parts: `{type, Anno, list, [Element]}`, `{atom, Anno, Name}`.
fn shape(of: &Term) -> Option<(&str, &str, &[Term])> {
    let Term::Tuple(parts) = of else { return None };
    match parts.as_slice() {
        [Term::Atom(kind), _, Term::Atom(name), Term::List(parts)] => Some((kind, name, parts)),
        // `any` stands for the parts of any tuple, map or function.
        [Term::Atom(kind), _, Term::Atom(name), _] | [Term::Atom(kind), _, Term::Atom(name)] => {
            Some((kind, name, &[]))
        }
        [Term::Atom(kind), _, Term::List(parts)] => Some((kind, "", parts)),
        [Term::Atom(kind), ..] => Some((kind, "", &[])),
        _ => None,
    }
}

fn applied(name: &str, arguments: &[EcoString]) -> EcoString {
    eco_format!("{name}({})", arguments.join(", "))
}

/// `true`, `false` and `nil` are types of their own; an atom that needs quotes is any Symbol.
fn symbol(name: &str) -> EcoString {
    match name {
        "true" | "false" => name.into(),
        "nil" => "Nil".into(),
        _ => {
            let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_plain {
                eco_format!("#{name}")
            } else {
                "Symbol".into()
            }
        }
    }
}

/// Types without parts.
fn plain(name: &str) -> Vec<EcoString> {
    let texts: &[&str] = match name {
        "atom" | "module" | "node" => &["Symbol"],
        "boolean" => &["Boolean"],
        "integer" | "non_neg_integer" | "pos_integer" | "neg_integer" | "arity" | "byte" | "char"
        | "range" => &["Integer"],
        "float" => &["Float"],
        "number" => &["Number"],
        "binary" | "nonempty_binary" => &["String", "Binary"],
        "bitstring" => &["Binary"],
        "map" => &["Dictionary"],
        "record" => &["Tuple"],
        "mfa" => &["Tuple(Symbol, Symbol, Integer)"],
        "fun" | "function" => &["Block"],
        "pid" => &["Pid"],
        "port" => &["Port"],
        "reference" => &["Reference"],
        "timeout" => &["Integer", "#infinity"],
        "no_return" | "none" => &["Never"],
        _ => &[DYNAMIC],
    };
    texts.iter().map(|text| EcoString::from(*text)).collect()
}

/// The kinds of terms that belong to a type.
fn given(name: &str) -> Kinds {
    match name {
        "atom" | "module" | "node" | "boolean" => Kinds::ATOM,
        "integer" | "non_neg_integer" | "pos_integer" | "neg_integer" | "arity" | "byte" | "char"
        | "range" => Kinds::INTEGER,
        "float" => Kinds::FLOAT,
        "number" => Kinds::INTEGER.or(Kinds::FLOAT),
        "binary" | "nonempty_binary" | "bitstring" => Kinds::BINARY,
        "list"
        | "nonempty_list"
        | "nil"
        | "string"
        | "nonempty_string"
        | "maybe_improper_list"
        | "nonempty_improper_list"
        | "nonempty_maybe_improper_list" => Kinds::LIST,
        "iolist" | "iodata" => Kinds::LIST.or(Kinds::BINARY),
        "tuple" | "record" | "mfa" => Kinds::TUPLE,
        "map" => Kinds::MAP,
        "fun" | "function" => Kinds::FUN,
        "pid" => Kinds::PID,
        "port" => Kinds::PORT,
        "reference" => Kinds::REFERENCE,
        "identifier" => Kinds::PID.or(Kinds::PORT).or(Kinds::REFERENCE),
        "timeout" => Kinds::INTEGER.or(Kinds::ATOM),
        _ => Kinds::ANY,
    }
}
