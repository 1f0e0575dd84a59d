//! How types relate: whether a value fits where it is put, and what is left of a type after a test.
//!
//! Judgements are about all values a type has: `Never` means that none of them fits, `Some` that members of a union do
//! not. Where anything is unknown the answer is `Always`, for then there is nothing to say.

use ecow::{EcoString, eco_format};
use rustc_hash::FxHashSet;

use super::form::{Form, Type};
use super::world::World;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    Always,
    /// Members of the union that do not fit.
    Some(Vec<Type>),
    /// Nothing fits; the hint says what is missing, if that helps.
    Never(Option<EcoString>),
}

impl Fit {
    pub(crate) fn is_never(&self) -> bool {
        matches!(self, Self::Never(_))
    }

    /// What is told about it; none when all may fit.
    pub(crate) fn clash(self, of: &Type) -> Option<Clash> {
        match self {
            Self::Always => None,
            Self::Never(hint) => Some(Clash {
                is_certain: true,
                hint,
                witness: eco_format!("{of}"),
            }),
            Self::Some(failing) => {
                let names: Vec<EcoString> = failing.iter().take(5).map(|of| eco_format!("`{of}`")).collect();
                let verb = if names.len() == 1 { "does" } else { "do" };
                Some(Clash {
                    is_certain: false,
                    hint: Some(eco_format!("{} {verb} not fit.", names.join(", "))),
                    witness: witness(&failing),
                })
            }
        }
    }
}

/// Values that do not fit where they are put.
pub(crate) struct Clash {
    /// All of them, not only some.
    pub(crate) is_certain: bool,
    /// What helps.
    pub(crate) hint: Option<EcoString>,
    pub(crate) witness: EcoString,
}

/// The types that cannot work.
pub(crate) fn witness(failing: &[Type]) -> EcoString {
    eco_format!("{}", Type::union(failing.iter().cloned()))
}

/// What is asked for, with its members ready to be found when they are many.
struct Wanted<'a> {
    members: &'a [Type],
    index: Option<FxHashSet<&'a Type>>,
}

impl<'a> Wanted<'a> {
    fn new(wanted: &'a Type) -> Self {
        let members = wanted.members();
        Self {
            members,
            index: (members.len() > 8).then(|| members.iter().collect()),
        }
    }
}

impl World<'_> {
    /// Whether the values of `given` are such as `wanted` asks for.
    pub(crate) fn fit(&self, given: &Type, wanted: &Type) -> Fit {
        if given == wanted {
            return Fit::Always;
        }
        let wanted = Wanted::new(wanted);
        let Form::Union(members) = given.form() else {
            return self.fit_any(given, &wanted);
        };
        let mut failing = Vec::new();
        let mut hint = None;
        for member in members {
            if let Fit::Never(why) = self.fit_any(member, &wanted) {
                failing.push(member.clone());
                hint = why;
            }
        }
        if failing.len() == members.len() {
            Fit::Never(hint)
        } else if failing.is_empty() {
            Fit::Always
        } else {
            Fit::Some(failing)
        }
    }

    /// The same for a type that is no union.
    fn fit_any(&self, given: &Type, wanted: &Wanted<'_>) -> Fit {
        let Some(index) = &wanted.index else {
            return match wanted.members {
                [only] => self.fit_one(given, only),
                members
                    if members
                        .iter()
                        .all(|member| self.fit_one(given, member).is_never()) =>
                {
                    Fit::Never(None)
                }
                _ => Fit::Always,
            };
        };
        let is_symbol = matches!(given.form(), Form::Symbol(_));
        let mut others = wanted
            .members
            .iter()
            .filter(|member| !is_symbol || !matches!(member.form(), Form::Symbol(_)));
        if index.contains(given) || !others.all(|member| self.fit_one(given, member).is_never()) {
            Fit::Always
        } else {
            Fit::Never(None)
        }
    }

    fn fit_one(&self, given: &Type, wanted: &Type) -> Fit {
        let decide = |fits: bool| if fits { Fit::Always } else { Fit::Never(None) };
        match (given.form(), wanted.form()) {
            (Form::Dynamic(_) | Form::Never | Form::Parameter(_), _)
            | (_, Form::Dynamic(_) | Form::Parameter(_)) => Fit::Always,
            (_, Form::Class { name, .. }) if matches!(name.as_str(), "Object" | "ProtoObject") => Fit::Always,
            (Form::Class { name, .. }, _) if matches!(name.as_str(), "Object" | "ProtoObject") => Fit::Always,
            // Nothing is what does not come back.
            (_, Form::Never) => Fit::Never(None),
            (Form::Intersection(members), _) => {
                decide(!members.iter().any(|member| self.fit(member, wanted).is_never()))
            }
            (_, Form::Intersection(members)) => {
                let failing = members
                    .iter()
                    .map(|member| self.fit(given, member))
                    .find(Fit::is_never);
                failing.unwrap_or(Fit::Always)
            }
            (_, Form::Without { base, removed }) => {
                let is_removed = removed.iter().any(|part| self.is_within(given, part));
                if is_removed {
                    Fit::Never(None)
                } else {
                    self.fit(given, base)
                }
            }
            (Form::Without { base, .. }, _) => {
                if let Form::Without { removed, .. } = given.form()
                    && removed.iter().any(|part| self.is_within(wanted, part))
                {
                    return Fit::Never(None);
                }
                self.fit(base, wanted)
            }
            (_, Form::Protocol(protocol)) => self.conforms(given, protocol),
            // Who has only a protocol's promise may have any class.
            (Form::Protocol(_), _) => Fit::Always,
            (Form::ClassOf(one), Form::ClassOf(two)) => decide(self.are_related(one, two)),
            (Form::ClassOf(_), Form::Class { name, .. }) | (Form::Class { name, .. }, Form::ClassOf(_)) => {
                decide(matches!(name.as_str(), "Class" | "Behaviour" | "Metaclass") || !self.is_certain(name))
            }
            (Form::ClassOf(_), _) | (_, Form::ClassOf(_)) => Fit::Never(None),
            (Form::Symbol(one), Form::Symbol(two)) => decide(one == two),
            (Form::Tuple(one), Form::Tuple(two)) => {
                let fits = one.len() == two.len()
                    && !one
                        .iter()
                        .zip(two)
                        .any(|(one, two)| self.fit(one, two).is_never());
                decide(fits)
            }
            // What a block answers is seen when it is evaluated, if it ever is.
            (
                Form::Block { parameters, .. },
                Form::Block {
                    parameters: wanted, ..
                },
            ) => decide(parameters.len() == wanted.len()),
            (
                Form::Class { name, arguments, .. },
                Form::Class {
                    name: wanted_name,
                    arguments: wanted_arguments,
                    ..
                },
            ) => {
                if !self.are_related(name, wanted_name) {
                    return Fit::Never(None);
                }
                let is_below = self.table.inherits_from(name, wanted_name);
                let (above, below, arguments) = if is_below {
                    (wanted_name, name, arguments)
                } else {
                    (name, wanted_name, wanted_arguments)
                };
                let seen = self.bindings(below, arguments, above);
                let others = if is_below {
                    wanted_arguments
                } else {
                    match given.form() {
                        Form::Class { arguments, .. } => arguments,
                        _ => wanted_arguments,
                    }
                };
                let clash = seen
                    .iter()
                    .zip(others)
                    .any(|((_, one), two)| self.are_disjoint(one, two));
                decide(!clash)
            }
            _ => match (given.class_name(), wanted.class_name()) {
                (Some(one), Some(two)) => decide(self.are_related(one, two)),
                _ => Fit::Always,
            },
        }
    }

    /// One class is above the other, or too little is known to tell.
    fn are_related(&self, one: &str, two: &str) -> bool {
        self.table.inherits_from(one, two)
            || self.table.inherits_from(two, one)
            || !self.is_certain(one)
            || !self.is_certain(two)
    }

    /// No value belongs to both.
    pub(crate) fn are_disjoint(&self, one: &Type, two: &Type) -> bool {
        self.fit(one, two).is_never() && self.fit(two, one).is_never()
    }

    /// Every value of `given` belongs to `wanted`, for certain.
    pub(crate) fn is_within(&self, given: &Type, wanted: &Type) -> bool {
        if given == wanted {
            return !given.is_dynamic();
        }
        match (given.form(), wanted.form()) {
            (Form::Union(members), _) => members.iter().all(|member| self.is_within(member, wanted)),
            (_, Form::Union(members)) => members.iter().any(|member| self.is_within(given, member)),
            (Form::Dynamic(_), _) | (_, Form::Dynamic(_)) => false,
            (Form::Never, _) => true,
            (Form::Intersection(members), _) => members.iter().any(|member| self.is_within(member, wanted)),
            (Form::Without { base, .. }, _) => self.is_within(base, wanted),
            (
                Form::Class { name, .. },
                Form::Class {
                    name: wanted,
                    arguments,
                    ..
                },
            ) => arguments.is_empty() && self.table.inherits_from(name, wanted),
            (Form::ClassOf(one), Form::ClassOf(two)) => self.table.inherits_from(one, two),
            (Form::ClassOf(_), Form::Class { name, .. }) => {
                matches!(name.as_str(), "Class" | "Behaviour" | "Object" | "ProtoObject")
            }
            (_, Form::Protocol(protocol)) => match given.form() {
                Form::ClassOf(name) => self.missing(name, true, protocol).is_some_and(|it| it.is_empty()),
                _ => given.class_name().is_some_and(|name| {
                    self.missing(name, false, protocol)
                        .is_some_and(|missing| missing.is_empty())
                }),
            },
            (_, Form::Class { name, arguments, .. }) => {
                arguments.is_empty()
                    && given
                        .class_name()
                        .is_some_and(|given| self.table.inherits_from(given, name))
            }
            _ => false,
        }
    }

    fn conforms(&self, given: &Type, protocol: &str) -> Fit {
        let (name, is_class) = match given.form() {
            Form::ClassOf(name) => (name.as_str(), true),
            Form::Protocol(_) => return Fit::Always,
            _ => match given.class_name() {
                Some(name) => (name, false),
                None => return Fit::Always,
            },
        };
        let Some(missing) = self
            .missing(name, is_class, protocol)
            .filter(|missing| !missing.is_empty())
        else {
            return Fit::Always;
        };
        let conforms_below = self.descendants(name).iter().any(|below| {
            self.missing(below, is_class, protocol)
                .is_none_or(|missing| missing.is_empty())
        });
        if conforms_below {
            return Fit::Always;
        }
        let names: Vec<EcoString> = missing
            .iter()
            .map(|selector| eco_format!("`{selector}`"))
            .collect();
        Fit::Never(Some(eco_format!("Missing: {}", names.join(", "))))
    }

    /// The values that belong to all.
    pub(crate) fn meet(&self, parts: Vec<Type>) -> Type {
        let mut kept: Vec<Type> = Vec::new();
        for part in parts {
            if part.is_never() {
                return part;
            }
            if part.is_dynamic() || kept.iter().any(|known| self.is_within(known, &part)) {
                continue;
            }
            if kept.iter().any(|known| self.are_disjoint(known, &part)) {
                return Type::never();
            }
            kept.retain(|known| !self.is_within(&part, known));
            kept.push(part);
        }
        Type::intersection(kept)
    }

    /// What a test for `wanted` leaves of a type when it succeeds.
    pub(crate) fn narrow(&self, of: &Type, wanted: &Type) -> Type {
        if of.is_dynamic() || self.is_within(wanted, of) && !matches!(of.form(), Form::Union(_)) {
            return wanted.clone();
        }
        Type::union(of.members().iter().map(|member| {
            if self.is_within(member, wanted) {
                member.clone()
            } else if self.fit(member, wanted).is_never() {
                Type::never()
            } else {
                wanted.clone()
            }
        }))
    }

    /// What is left of a type when a test for `removed` fails.
    pub(crate) fn subtract(&self, of: &Type, removed: &Type) -> Type {
        if of.is_dynamic() || removed.is_dynamic() {
            return of.clone();
        }
        let is_truth = |of: &Type| of.is_class("True") || of.is_class("False");
        Type::union(of.members().iter().map(|member| {
            if self.is_within(member, removed) {
                Type::never()
            } else if member.is_class("Boolean") && is_truth(removed) {
                Type::class(if removed.is_class("True") { "False" } else { "True" })
            } else if member.class_name() == Some("Symbol") && !matches!(member.form(), Form::Symbol(_)) {
                Self::without_symbol(member, removed)
            } else {
                member.clone()
            }
        }))
    }

    /// `Symbol \ #a`.
    fn without_symbol(of: &Type, removed: &Type) -> Type {
        let singles: Vec<Type> = removed
            .members()
            .iter()
            .filter(|part| matches!(part.form(), Form::Symbol(_)))
            .cloned()
            .collect();
        let (base, mut all) = match of.form() {
            Form::Without { base, removed } => (base.clone(), removed.to_vec()),
            _ => (of.clone(), Vec::new()),
        };
        for single in singles {
            if !all.contains(&single) {
                all.push(single);
            }
        }
        Type::without(base, all)
    }
}
