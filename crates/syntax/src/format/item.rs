//! Classes, protocols, aliases and extensions.

use super::Formatter;
use super::comments::{Entry, Placement};
use super::document::{Document, concat, group, nest, text};
use super::pattern::{
    annotation, class_ref, head, symbol, type_arguments, type_parameters, type_text, union_member,
};
use crate::ast::{
    Class, Expect, Extension, Item, Method, Protocol, Signature, Slot, SlotKeyword, TypeAlias, TypeKind,
};
use crate::span::Span;

enum Member<'a> {
    Slot(&'a Slot),
    Method(&'a Method),
}

fn first_start(expects: &[Expect], span: Span) -> u32 {
    expects.first().map_or(span.start, |expect| expect.span.start)
}

impl Member<'_> {
    fn start(&self) -> u32 {
        match self {
            Member::Slot(slot) => first_start(&slot.expect, slot.span),
            Member::Method(method) => first_start(&method.expect, method.span),
        }
    }
}

fn item_start(item: &Item) -> u32 {
    match item {
        Item::Class(class) => first_start(&class.expect, class.span),
        Item::Protocol(protocol) => first_start(&protocol.expect, protocol.span),
        Item::TypeAlias(alias) => first_start(&alias.expect, alias.span),
        Item::Extension(extension) => first_start(&extension.method.expect, extension.span),
        Item::Statement(statement) => statement.span.start,
    }
}

fn is_large(item: &Item) -> bool {
    matches!(item, Item::Class(_) | Item::Protocol(_))
}

impl Formatter<'_> {
    pub(super) fn unit_document(&mut self) -> Document {
        let unit = self.unit;
        let mut follows_large = false;
        let end = self.source.len() as u32 + 1;
        let mut index = 0;
        let parts = self.lines(
            &unit.items,
            None,
            end,
            Placement::Above,
            item_start,
            |formatter, item, _| {
                index += 1;
                let next = unit.items.get(index).map_or(end, item_start);
                let mut entry = formatter.item(item, next);
                entry.wants_blank = follows_large || is_large(item);
                follows_large = is_large(item);
                entry
            },
        );
        concat(parts)
    }

    fn item(&mut self, item: &Item, next: u32) -> Entry {
        let (document, end) = match item {
            Item::Class(class) => (self.class(class, next), class.span.end),
            Item::Protocol(protocol) => (self.protocol(protocol, next), protocol.span.end),
            Item::TypeAlias(alias) => (self.alias(alias), alias.span.end),
            Item::Extension(extension) => (self.extension(extension, next), extension.span.end),
            Item::Statement(statement) => return self.statement(statement),
        };
        Entry {
            document,
            start: item_start(item),
            end,
            wants_blank: false,
        }
    }

    fn class(&mut self, class: &Class, next: u32) -> Document {
        let mut parts = self.expects(&class.expect, class.span.start);
        parts.push(self.or_verbatim(class.header, 2, |_| text(class_header(class))));
        let mut members: Vec<Member> = class.slots.iter().map(Member::Slot).collect();
        members.extend(class.methods.iter().map(Member::Method));
        members.sort_by_key(Member::start);
        let limit = self.inner_limit(class.span.start, class.span.end, next);
        let first = members.first().map_or(limit, Member::start);
        let (trailing, header_end) = self.trailing(class.header.end, first);
        parts.extend(trailing);
        let starts: Vec<u32> = members.iter().map(Member::start).collect();
        let mut index = 0;
        let body = self.lines(
            &members,
            Some(header_end),
            limit,
            Placement::Above,
            Member::start,
            |formatter, member, _| {
                index += 1;
                let next = starts.get(index).copied().unwrap_or(limit);
                match member {
                    Member::Slot(slot) => formatter.slot(slot),
                    Member::Method(method) => {
                        let mut parts = formatter.expects(&method.expect, method.span.start);
                        parts.push(formatter.method(method, method.span.start, next, ""));
                        Entry {
                            document: concat(parts),
                            start: member.start(),
                            end: method.span.end,
                            wants_blank: false,
                        }
                    }
                }
            },
        );
        parts.push(nest(concat(body)));
        concat(parts)
    }

    fn slot(&mut self, slot: &Slot) -> Entry {
        let mut parts = self.expects(&slot.expect, slot.span.start);
        parts.push(self.or_verbatim(slot.span, 2, |formatter| {
            let keyword = match slot.keyword {
                SlotKeyword::Field => "field:",
                SlotKeyword::State => "state:",
                SlotKeyword::ClassState => "classState:",
            };
            let kind = annotation(slot.annotation.as_ref());
            let mut parts = vec![text(format!("{keyword} {}{kind}", slot.name.text))];
            if let Some(default) = &slot.default {
                parts.push(text(" = "));
                parts.push(nest(formatter.expression(default)));
            }
            concat(parts)
        }));
        Entry {
            document: concat(parts),
            start: first_start(&slot.expect, slot.span),
            end: slot.span.end,
            wants_blank: false,
        }
    }

    /// A method from its modifiers on; `target` is what stands before them in an extension.
    fn method(&mut self, method: &Method, start: u32, next: u32, target: &str) -> Document {
        let first = method
            .body
            .first()
            .map_or(method.span.end, |statement| statement.span.start);
        let head_end = method
            .result
            .as_ref()
            .map_or(method.head.span.end, |result| result.span.end);
        if self.has_pending_before(head_end) {
            while self.has_pending_before(method.span.end) {
                self.next += 1;
            }
            return concat(vec![text(target), self.verbatim(method.span, 2)]);
        }
        let mut opening = String::from(target);
        for (flag, word) in [
            (method.is_class && target.is_empty(), "class "),
            (method.is_sealed, "sealed "),
            (method.is_internal, "internal "),
        ] {
            if flag {
                opening.push_str(word);
            }
        }
        opening.push_str(&head(&method.head, method.result.as_ref()));
        opening.push_str(" =>");
        let mut parts = vec![text(opening)];
        let (trailing, _) = self.trailing(head_end, first);
        let has_comment = !trailing.is_empty() || self.has_pending_before(first);
        parts.extend(trailing);
        let is_on_line = self.is_same_line(head_end, first) && !has_comment;
        if is_on_line && method.body.len() == 1 {
            let body = concat(self.statements(&method.body, None, method.span.end));
            parts.push(nest(concat(vec![Document::Line, body])));
            return group(concat(parts));
        }
        let limit = self.inner_limit(start, method.span.end, next);
        let body = self.statements(&method.body, None, limit);
        parts.push(nest(concat(vec![Document::HardLine, concat(body)])));
        concat(parts)
    }

    /// Comments below something that are indented deeper than `start` still belong to it.
    fn inner_limit(&self, start: u32, body_end: u32, next: u32) -> u32 {
        let column = self.column(start);
        let mut limit = body_end;
        let comments = self.unit.comments.get(self.next..).unwrap_or(&[]);
        let behind = comments.partition_point(|comment| comment.span.start < body_end);
        for comment in comments
            .iter()
            .skip(behind)
            .take_while(|comment| comment.span.start < next)
        {
            let is_own_line = !self.is_beside(limit, comment.span.start);
            let is_outside =
                self.column(comment.span.start) <= column || self.documents(comment.span.start, next);
            if is_own_line && is_outside {
                break;
            }
            limit = comment.span.end;
        }
        limit
    }

    /// Whether only lines of documentation stand between a place and the item that begins at `next`: however they are
    /// indented, they are that item's. An empty line detaches them.
    fn documents(&self, start: u32, next: u32) -> bool {
        let between = self.source.get(start as usize..next as usize).unwrap_or("");
        let Some((lines, indent)) = between.rsplit_once('\n') else {
            return false;
        };
        indent.trim().is_empty() && lines.split('\n').all(|line| line.trim_start().starts_with("///"))
    }

    fn column(&self, offset: u32) -> usize {
        let before = self.source.get(..offset as usize).unwrap_or("");
        before
            .get(before.rfind('\n').map_or(0, |at| at + 1)..)
            .unwrap_or("")
            .chars()
            .count()
    }

    fn extension(&mut self, extension: &Extension, next: u32) -> Document {
        let method = &extension.method;
        let mut parts = self.expects(&method.expect, extension.span.start);
        let side = if method.is_class { " class" } else { "" };
        let target = format!("{}{side} >> ", class_ref(&extension.target));
        if self.has_pending_before(method.span.start) {
            while self.has_pending_before(extension.span.end) {
                self.next += 1;
            }
            parts.push(self.verbatim(extension.span, 2));
        } else {
            parts.push(self.method(method, extension.span.start, next, &target));
        }
        concat(parts)
    }

    fn protocol(&mut self, protocol: &Protocol, next: u32) -> Document {
        let mut parts = self.expects(&protocol.expect, protocol.span.start);
        let mut header = format!("Protocol define: {}", protocol.name.text);
        header.push_str(&type_parameters(&protocol.type_parameters));
        let mut header_end = protocol.name.span.end;
        if let Some(bound) = protocol.type_parameters.last() {
            let last = bound.bound.as_ref().map_or(bound.name.span, |bound| bound.span);
            let close = self
                .gap(last.end, protocol.span.end)
                .find(')')
                .map_or(0, |at| at as u32 + 1);
            header_end = last.end + close;
        }
        if let Some(extending) = &protocol.extending {
            header.push_str(" extending: ");
            header.push_str(&extending.text);
            header_end = extending.span.end;
        }
        parts.push(self.or_verbatim(Span::new(protocol.span.start, header_end), 2, |_| text(header)));
        let limit = self.inner_limit(protocol.span.start, protocol.span.end, next);
        let first = protocol
            .signatures
            .first()
            .map_or(limit, |signature| signature.span.start);
        let (trailing, header_end) = self.trailing(header_end, first);
        parts.extend(trailing);
        let body = self.lines(
            &protocol.signatures,
            Some(header_end),
            limit,
            Placement::Above,
            |signature| signature.span.start,
            |formatter, signature, _| formatter.signature(signature),
        );
        parts.push(nest(concat(body)));
        concat(parts)
    }

    fn signature(&mut self, signature: &Signature) -> Entry {
        let document = self.or_verbatim(signature.span, 2, |_| {
            let side = if signature.is_class { "class " } else { "" };
            text(side.to_owned() + &head(&signature.head, signature.result.as_ref()))
        });
        Entry {
            document,
            start: signature.span.start,
            end: signature.span.end,
            wants_blank: false,
        }
    }

    fn alias(&mut self, alias: &TypeAlias) -> Document {
        let mut parts = self.expects(&alias.expect, alias.span.start);
        parts.push(self.or_verbatim(alias.span, 2, |_| {
            let internal = if alias.is_internal { "internal " } else { "" };
            let opening = text(format!("{internal}type {} = ", alias.name.text));
            let TypeKind::Union(members) = &alias.definition.kind else {
                return concat(vec![opening, text(type_text(&alias.definition))]);
            };
            let mut definition = Vec::new();
            for member in members {
                if !definition.is_empty() {
                    definition.push(text(" |"));
                    definition.push(Document::Line);
                }
                definition.push(text(union_member(member)));
            }
            group(concat(vec![opening, nest(concat(definition))]))
        }));
        concat(parts)
    }
}

fn class_header(class: &Class) -> String {
    let mut header = String::new();
    let modifiers = class.modifiers;
    for (flag, word) in [
        (modifiers.is_abstract, "abstract "),
        (modifiers.is_sealed, "sealed "),
        (modifiers.is_typed, "typed "),
        (modifiers.is_internal, "internal "),
    ] {
        if flag {
            header.push_str(word);
        }
    }
    header.push_str(&class.superclass.as_ref().map_or_else(|| "nil".into(), class_ref));
    header.push_str(&type_arguments(&class.superclass_arguments));
    header.push_str(" subclass: ");
    header.push_str(&class.name.text);
    header.push_str(&type_parameters(&class.type_parameters));
    if let Some(native) = &class.native {
        header.push_str(" native: ");
        header.push_str(&native.text);
    }
    if let Some(scope) = &class.handle_scope {
        header.push_str(" handleScope: ");
        header.push_str(&symbol(&scope.text));
    }
    header
}
