//! Questions that tools ask about a parsed text: what a receiver is known to be, what a class, method, field or variable
//! looks like. One lookup may be asked many times; what it has read of other texts is kept.

use beamtalk_syntax::ast::Unit;
use ecow::EcoString;

use super::cursor::{self, Site};
use super::describe::{Classes, Known, Side};
use super::hover::{self, Hover};
use crate::table::ClassTable;

/// What a value is known to be: an instance of a class, or the class itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receiver {
    pub class: EcoString,
    pub is_class: bool,
}

impl Receiver {
    /// `Lamp`, or `Lamp class`.
    pub fn text(&self) -> EcoString {
        self.known().text()
    }

    fn known(&self) -> Known {
        if self.is_class {
            Known::class(self.class.clone())
        } else {
            Known::instance(self.class.clone())
        }
    }
}

impl From<Known> for Receiver {
    fn from(known: Known) -> Self {
        Self {
            is_class: known.side == Side::Class,
            class: known.class,
        }
    }
}

/// The method that answers a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answerer {
    /// The class that defines it, or that an extension adds it to.
    pub class: EcoString,
    pub is_class: bool,
    pub signature: EcoString,
    pub doc: Option<EcoString>,
}

pub struct Lookup<'a> {
    classes: Classes<'a>,
}

impl<'a> Lookup<'a> {
    pub fn new(table: &'a ClassTable) -> Self {
        Self {
            classes: Classes::new(table),
        }
    }

    /// What gets the message whose selector stands at the offset.
    pub fn receiver(&self, unit: &Unit, offset: u32) -> Option<Receiver> {
        let found = cursor::find(unit, offset as usize, &self.classes, &[])?;
        match &found.site {
            Site::Message { receiver, .. } => self.classes.infer(receiver, &found.scope).map(Receiver::from),
            Site::Variable(_) | Site::Field(_) | Site::Class(_) | Site::Type(_) => None,
        }
    }

    /// The method that a receiver answers a message with.
    pub fn answerer(&self, receiver: &Receiver, selector: &str) -> Option<Answerer> {
        let member = self.classes.member(&receiver.known(), selector)?;
        // What every class answers is defined on the instance side of Class and above.
        let has_own = |class: &&crate::ClassEntry| class.name == member.owner;
        let is_class = receiver.is_class && self.classes.table.chain(&receiver.class).iter().any(has_own);
        Some(Answerer {
            class: member.owner,
            is_class,
            signature: member.signature,
            doc: member.doc,
        })
    }

    /// The methods of a receiver whose selectors begin so, the exact one first.
    pub fn starting(&self, receiver: &Receiver, selector: &str) -> Vec<Answerer> {
        let members = self.classes.members(&receiver.known());
        let mut found: Vec<Answerer> = members
            .into_iter()
            .filter(|member| member.selector.starts_with(selector))
            .filter_map(|member| self.answerer(receiver, &member.selector))
            .collect();
        found.sort_by_key(|answerer| (answerer.signature.len(), answerer.signature.clone()));
        found
    }

    /// A class, protocol or alias.
    pub fn describe_class(&self, name: &str) -> Option<Hover> {
        hover::class(&self.classes, name).or_else(|| hover::alias(self.classes.table, name))
    }

    pub fn describe_method(&self, receiver: &Receiver, selector: &str) -> Option<Hover> {
        let member = self.classes.member(&receiver.known(), selector)?;
        Some(hover::method(&member))
    }

    /// A message to a receiver that nothing is known about.
    pub fn describe_message(&self, selector: &str) -> Option<Hover> {
        hover::implementors(self.classes.table, selector)
    }

    pub fn describe_field(&self, class: &Receiver, name: &str) -> Option<Hover> {
        hover::field_of(&self.classes, name, &class.known())
    }
}
