//! Every class name of a tree.

use beamtalk_syntax::ast::{
    Class, Expression, Head, Item, Method, Protocol, Statement, Type, TypeParameter, Unit,
};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::walk::{self, PartMut};

use super::View;

type Found = Vec<Diagnostic>;

impl View<'_> {
    pub(super) fn unit(&self, unit: &mut Unit, found: &mut Found) {
        for item in &mut unit.items {
            match item {
                Item::Class(class) => self.class_declaration(class, found),
                Item::Protocol(protocol) => self.protocol(protocol, found),
                Item::TypeAlias(alias) => {
                    found.extend(self.hiding(&alias.name.text, alias.name.span));
                    alias.name.text = self.declared(&alias.name.text);
                    self.annotation(&mut alias.definition, found);
                }
                Item::Extension(extension) => {
                    self.class(&mut extension.target, found);
                    self.method(&mut extension.method, found);
                }
                Item::Statement(statement) => self.expression(&mut statement.expression, found),
            }
        }
    }

    fn class_declaration(&self, class: &mut Class, found: &mut Found) {
        found.extend(self.hiding(&class.name.text, class.name.span));
        class.name.text = self.declared(&class.name.text);
        if let Some(superclass) = &mut class.superclass {
            self.class(superclass, found);
        }
        self.annotations(&mut class.superclass_arguments, found);
        self.bounds(&mut class.type_parameters, found);
        for slot in &mut class.slots {
            self.annotations(&mut slot.annotation, found);
            if let Some(default) = &mut slot.default {
                self.expression(default, found);
            }
        }
        for method in &mut class.methods {
            self.method(method, found);
        }
    }

    fn protocol(&self, protocol: &mut Protocol, found: &mut Found) {
        found.extend(self.hiding(&protocol.name.text, protocol.name.span));
        protocol.name.text = self.declared(&protocol.name.text);
        if let Some(extending) = &mut protocol.extending {
            self.plain(extending, found);
        }
        self.bounds(&mut protocol.type_parameters, found);
        for signature in &mut protocol.signatures {
            self.head(&mut signature.head, found);
            self.annotations(&mut signature.result, found);
        }
    }

    fn bounds(&self, parameters: &mut [TypeParameter], found: &mut Found) {
        for bound in parameters
            .iter_mut()
            .filter_map(|parameter| parameter.bound.as_mut())
        {
            self.plain(bound, found);
        }
    }

    fn method(&self, method: &mut Method, found: &mut Found) {
        self.head(&mut method.head, found);
        self.annotations(&mut method.result, found);
        self.statements(&mut method.body, found);
    }

    fn head(&self, head: &mut Head, found: &mut Found) {
        for parameter in &mut head.parameters {
            self.annotations(&mut parameter.annotation, found);
        }
    }

    fn annotations<'a>(&self, types: impl IntoIterator<Item = &'a mut Type>, found: &mut Found) {
        for annotation in types {
            self.annotation(annotation, found);
        }
    }

    fn annotation(&self, annotation: &mut Type, found: &mut Found) {
        walk::type_parts_mut(annotation, &mut |part| self.part(part, found));
    }

    fn statements(&self, statements: &mut [Statement], found: &mut Found) {
        for statement in statements {
            self.expression(&mut statement.expression, found);
        }
    }

    fn expression(&self, expression: &mut Expression, found: &mut Found) {
        walk::parts_mut(expression, &mut |part| self.part(part, found));
    }

    fn part(&self, part: PartMut<'_>, found: &mut Found) {
        match part {
            PartMut::Class(class) => self.class(class, found),
            PartMut::Type(annotation) => self.annotation(annotation, found),
            PartMut::Expression(inner) => self.expression(inner, found),
            PartMut::Statements(body) => self.statements(body, found),
            PartMut::Pattern(pattern) => {
                walk::pattern_parts_mut(pattern, &mut |part| self.part(part, found));
            }
            PartMut::Binding(_) => {}
        }
    }
}
