//! Classes, extensions, protocols and aliases.

use beamtalk_syntax::ast::{self, ExpressionKind, SlotKeyword, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::Checker;
use super::annotation::{is_primitive, type_parameters};
use crate::codes;
use crate::live::class_of;
use crate::names::is_erlang_reserved;
use crate::suggest;
use crate::table::{Kind, Origin};

/// Type names that are no classes.
const BUILT_IN_TYPES: &[&str] = &["Nil", "Dynamic", "Never", "Self", "Object"];

impl Checker<'_> {
    fn error(&mut self, code: &'static str, span: Span, message: impl Into<EcoString>) -> &mut Diagnostic {
        self.diagnostics.push(Diagnostic::error(code, span, message));
        self.diagnostics.last_mut().expect("just pushed")
    }

    pub(super) fn is_library(&self) -> bool {
        self.file.origin == Origin::Library
    }

    pub(super) fn class(&mut self, class: &ast::Class) {
        self.class_name(class);
        self.superclass(class);
        self.slots(class);
        for method in &class.methods {
            self.method(class, method);
        }
        if class.native.is_some() {
            self.native(class);
        }
        self.class_annotations(class);
        self.handle_scope(class);
    }

    /// Only Object classes wrap handles.
    fn handle_scope(&mut self, class: &ast::Class) {
        if let Some(scope) = &class.handle_scope
            && self.table.kind(&class.name.text) != Kind::Object
        {
            let message = eco_format!(
                "'handleScope:' belongs to Object classes; `{}` is none",
                class.name.text
            );
            self.error(codes::HANDLE_SCOPE, scope.span, message);
        }
    }

    fn class_name(&mut self, class: &ast::Class) {
        let name = &class.name.text;
        if name == "Self" {
            self.error(
                codes::RESERVED_CLASS_NAME,
                class.name.span,
                "`Self` cannot name a class",
            );
        }
        if self
            .table
            .class(name)
            .is_some_and(|known| known.origin == Origin::Library)
            && !self.is_library()
        {
            let message = eco_format!(
                "`{name}` is a standard class and cannot be redefined; loading this will be refused"
            );
            self.diagnostics.push(
                Diagnostic::warning(codes::STDLIB_NAME, class.name.span, message)
                    .with_hint("Choose another name, or extend the class with `>>`."),
            );
        }
        self.name_clash(&class.name, "class");
    }

    /// Classes, protocols and aliases share one namespace. A session may define its own again, as the same kind of thing.
    fn name_clash(&mut self, name: &ast::Name, what: &str) {
        let is_session = self.file.origin == Origin::Session;
        let clashes = |kind: &str, path: &EcoString, span: Span| {
            kind != what || (!is_session && (*path != self.file.path || span != name.span))
        };
        let table = self.table;
        let clash = table
            .class(&name.text)
            // A class of that name has a warning of its own.
            .filter(|class| class.origin != Origin::Library || what != "class")
            .filter(|class| clashes("class", &class.path, class.span))
            .map(|class| ("class", class.path.clone()))
            .or_else(|| {
                let protocol = table.protocol(&name.text);
                let protocol = protocol.filter(|it| clashes("protocol", &it.path, it.span))?;
                Some(("protocol", protocol.path.clone()))
            })
            .or_else(|| {
                let alias = table.alias(&name.text);
                let alias = alias.filter(|it| clashes("type alias", &it.path, it.span))?;
                (alias.origin != Origin::Library).then(|| ("type alias", alias.path.clone()))
            });
        if let Some((kind, path)) = clash {
            let message = eco_format!("{what} `{}` has the name of a {kind} in {path}", name.text);
            self.error(codes::DUPLICATE_NAME, name.span, message).hint = Some("Rename one of them.".into());
        }
    }

    /// A protocol is a sealed class object too.
    fn sealed_superclass(&mut self, superclass: &ast::ClassRef) {
        let message = eco_format!("Cannot subclass sealed class `{}`", superclass.name.text);
        self.error(codes::SEALED_CLASS, superclass.span, message).category = Some(Category::Inheritance);
    }

    fn superclass(&mut self, class: &ast::Class) {
        let Some(superclass) = &class.superclass else {
            if !self.is_library() {
                let message = "`nil subclass:` is reserved for the root class of the library";
                self.error(codes::ROOT_CLASS, class.name.span, message).hint =
                    Some("Use `Object subclass:`, `Value subclass:` or `Actor subclass:`.".into());
            }
            return;
        };
        let name = &superclass.name.text;
        let Some(entry) = self.table.class(name) else {
            if self.table.protocol(name).is_none() {
                let nearest = suggest::nearest(name, self.table.class_names().map(EcoString::as_str));
                let mut diagnostic = Diagnostic::warning(
                    codes::UNRESOLVED_CLASS,
                    superclass.span,
                    eco_format!("Unresolved class `{name}`"),
                )
                .with_category(Category::UnresolvedClass);
                if let Some(nearest) = nearest {
                    diagnostic = diagnostic.with_hint(eco_format!("Did you mean `{nearest}`?"));
                }
                self.diagnostics.push(diagnostic);
            } else {
                self.sealed_superclass(superclass);
            }
            return;
        };
        if entry.modifiers.is_sealed && !(self.is_library() && entry.origin == Origin::Library) {
            self.sealed_superclass(superclass);
        }
        if self.comes_back(&class.name.text) {
            let message = eco_format!("Class `{}` inherits from itself", class.name.text);
            self.error(codes::INHERITS_FROM_ITSELF, class.name.span, message);
        }
    }

    fn comes_back(&self, name: &str) -> bool {
        let mut seen = vec![EcoString::from(name)];
        let mut next = self.table.class(name).and_then(|class| class.superclass.clone());
        while let Some(superclass) = next {
            if superclass == name {
                return true;
            }
            if seen.contains(&superclass) {
                return false;
            }
            next = self
                .table
                .class(&superclass)
                .and_then(|class| class.superclass.clone());
            seen.push(superclass);
        }
        false
    }

    fn slots(&mut self, class: &ast::Class) {
        let name = &class.name.text;
        let kind = self.table.kind(name);
        let closed = crate::class::is_closed(self.table, name);
        let mut seen: Vec<&ast::Slot> = Vec::new();
        for slot in &class.slots {
            let x = &slot.name.text;
            let span = slot.name.span;
            if class.native.is_some() && kind == Kind::Actor && slot.keyword == SlotKeyword::State {
                let native = class
                    .native
                    .as_ref()
                    .map(|native| native.text.clone())
                    .unwrap_or_default();
                let message = eco_format!(
                    "Native actor `{name}` keeps its state in the Erlang module `{native}`, so `state:` is not allowed here"
                );
                self.error(codes::NATIVE_ACTOR_STATE, span, message);
            } else if closed {
                self.slot_keyword(name, kind, slot);
            }
            let first_letter_case =
                |other: &EcoString| crate::class::setter_selector(other) == crate::class::setter_selector(x);
            let clashes = seen.iter().any(|other| {
                (other.keyword == SlotKeyword::ClassState) == (slot.keyword == SlotKeyword::ClassState)
                    && (other.name.text == *x || (kind == Kind::Value && first_letter_case(&other.name.text)))
            });
            if clashes {
                let setter = crate::class::setter_selector(x);
                let message = eco_format!("Duplicate slot `{x}` in class `{name}`");
                self.error(codes::DUPLICATE_SLOT, span, message).hint = Some(eco_format!(
                    "Slots need different names, also in their `{setter}` form."
                ));
            }
            seen.push(slot);
        }
    }

    fn slot_keyword(&mut self, class: &EcoString, kind: Kind, slot: &ast::Slot) {
        let x = &slot.name.text;
        let span = slot.name.span;
        match (slot.keyword, kind) {
            (SlotKeyword::State, Kind::Value) => {
                let message = eco_format!(
                    "Use 'field:' for Value subclass `{class}` data declarations, not 'state:' — `{x}` is immutable"
                );
                self.error(codes::STATE_IN_VALUE, span, message);
            }
            (SlotKeyword::Field, Kind::Actor) => {
                let message = eco_format!(
                    "Use 'state:' for Actor subclass `{class}` data declarations, not 'field:' — `{x}` is mutable process state"
                );
                self.error(codes::FIELD_IN_ACTOR, span, message);
            }
            (SlotKeyword::State | SlotKeyword::Field, Kind::Object) => {
                let message = eco_format!(
                    "Object subclass `{class}` holds no instance data: make it a 'Value subclass:' (immutable) or an 'Actor subclass:' (mutable)"
                );
                self.error(codes::DATA_IN_OBJECT, span, message);
            }
            (SlotKeyword::ClassState, _)
            | (SlotKeyword::Field, Kind::Value)
            | (SlotKeyword::State, Kind::Actor) => {}
        }
    }

    fn method(&mut self, class: &ast::Class, method: &ast::Method) {
        let parameters = type_parameters(class);
        self.any_method(&class.name.text, method, &parameters);
        if class.modifiers.is_typed && !self.is_library() {
            self.typed_method(&class.name.text, method);
        }
        let selector = &method.head.selector;
        let superclass = class
            .superclass
            .as_ref()
            .map(|superclass| superclass.name.text.as_str());
        self.sealed_override(superclass, method);
        if selector == "supervisionPolicy" && method.is_class {
            self.supervision_policy(method);
        }
        if class.native.is_some() && crate::meta::is_delegate(method) {
            if method.result.is_none() {
                let message = eco_format!("native method `{selector}` has no return annotation");
                self.diagnostics.push(
                    Diagnostic::warning(codes::UNANNOTATED_DELEGATE, method.head.span, message)
                        .with_category(Category::TypeAnnotation),
                );
            }
            let function = selector.split(':').next().unwrap_or_default();
            if is_erlang_reserved(function) && self.table.kind(&class.name.text) != Kind::Actor {
                let message =
                    eco_format!("`{function}` is an Erlang reserved word and cannot name a native function");
                self.error(codes::NATIVE_RESERVED_WORD, method.head.span, message);
            }
        }
    }

    fn any_method(&mut self, class: &str, method: &ast::Method, parameters: &[&str]) {
        let selector = &method.head.selector;
        if matches!(selector.as_str(), "==" | "/=" | "=:=" | "=/=") && !self.is_library() {
            let message = eco_format!(
                "`{selector}` is never dispatched; a method of that name would be dead code (define `equals:` instead)"
            );
            self.error(codes::EQUALITY_METHOD, method.head.span, message);
        }
        if !method.is_class && is_computed_in_place(class, selector) && !self.is_library() {
            let message =
                eco_format!("`{selector}` of {class} is computed where it is sent and cannot be replaced");
            let mut finding = Diagnostic::error(codes::COMPUTED_IN_PLACE, method.head.span, message)
                .with_hint("Give the method another name, or a class of your own the method.");
            // In a file the library's own method wins, whatever it is.
            if self.file.origin != Origin::Session {
                finding.severity = Severity::Warning;
            }
            self.diagnostics.push(finding);
        }
        if is_primitive(method) && !self.is_library() {
            let message = "Primitives can only be declared in the standard library";
            let hint = eco_format!("Write the body of `{class}>>{selector}` in Beamtalk, or use `native:`.");
            let mut finding = Diagnostic::error(codes::PRIMITIVE_OUTSIDE_LIBRARY, method.head.span, message)
                .with_hint(hint);
            if self.table.allows_primitives() {
                finding.severity = Severity::Warning;
            }
            self.diagnostics.push(finding);
        }
        for annotation in method
            .head
            .parameters
            .iter()
            .filter_map(|p| p.annotation.as_ref())
        {
            self.annotation(annotation, parameters);
            self.self_as_parameter(annotation);
        }
        method
            .result
            .iter()
            .for_each(|annotation| self.annotation(annotation, parameters));
        self.annotations_in(&method.body, parameters);
    }

    fn sealed_override(&mut self, superclass: Option<&str>, method: &ast::Method) {
        if self.is_library() {
            return;
        }
        let Some(superclass) = superclass else { return };
        let selector = &method.head.selector;
        // The class side ends in the protocol of class objects.
        let found = self
            .table
            .find_method(superclass, method.is_class, selector)
            .or_else(|| {
                if method.is_class {
                    self.table.find_method("Class", false, selector)
                } else {
                    None
                }
            });
        if let Some((definer, entry)) = found
            && entry.is_sealed
        {
            let message = eco_format!(
                "Cannot override sealed method `{selector}` from class `{}`",
                definer.name
            );
            self.error(codes::SEALED_METHOD, method.head.span, message)
                .category = Some(Category::Inheritance);
        }
    }

    fn supervision_policy(&mut self, method: &ast::Method) {
        let Some(last) = method.body.last() else { return };
        let value = match &last.expression.kind {
            ExpressionKind::Return(inner) => &inner.kind,
            kind => kind,
        };
        if let ExpressionKind::Symbol(policy) = value
            && !matches!(policy.as_str(), "permanent" | "transient" | "temporary")
        {
            let message = eco_format!(
                "supervisionPolicy must return #permanent, #transient, or #temporary; got #{policy}"
            );
            self.error(codes::SUPERVISION_POLICY, last.span, message);
        }
    }

    fn native(&mut self, class: &ast::Class) {
        let native = class
            .native
            .as_ref()
            .map(|native| native.text.as_str())
            .unwrap_or_default();
        if !self.table.allows_ffi(self.file.origin) {
            let message = eco_format!(
                "`{}` is backed by the Erlang module `{native}`, which is switched off in this workspace (--no-ffi)",
                class.name.text
            );
            self.error(codes::FFI_DISABLED, class.header, message);
        }
        if is_erlang_reserved(native) {
            let message = eco_format!("`{native}` is an Erlang reserved word and cannot name a module");
            self.error(codes::NATIVE_RESERVED_WORD, class.header, message);
        }
    }

    // ---- annotations ----

    fn class_annotations(&mut self, class: &ast::Class) {
        let parameters = type_parameters(class);
        for bound in class.type_parameters.iter().filter_map(|it| it.bound.as_ref()) {
            self.type_name(&bound.text, bound.span, &parameters);
        }
        for argument in &class.superclass_arguments {
            self.annotation(argument, &parameters);
        }
        for slot in &class.slots {
            slot.annotation
                .iter()
                .for_each(|annotation| self.annotation(annotation, &parameters));
            if class.modifiers.is_typed && !self.is_library() {
                self.typed_slot(&class.name.text, slot);
            }
        }
    }

    /// Every type name must be known; single capitals are type parameters.
    pub(super) fn annotation(&mut self, annotation: &ast::Type, parameters: &[&str]) {
        if let TypeKind::Named { class, .. } | TypeKind::ClassOf(class) = &annotation.kind
            && class.package.is_none()
        {
            self.type_name(&class.name.text, annotation.span, parameters);
        }
        walk::inner_types(annotation, &mut |inner| self.annotation(inner, parameters));
    }

    fn type_name(&mut self, name: &str, span: Span, parameters: &[&str]) {
        let is_known = name.len() == 1
            || BUILT_IN_TYPES.contains(&name)
            || parameters.contains(&name)
            || self.table.class(name).is_some()
            || self.table.protocol(name).is_some()
            || self.table.alias(name).is_some();
        if !is_known && !self.is_library() {
            let classes = self.table.class_names().map(EcoString::as_str);
            let protocols = self.table.protocol_names().map(EcoString::as_str);
            let nearest = suggest::nearest(name, classes.chain(protocols));
            let suffix = nearest.map(|nearest| eco_format!(" (did you mean `{nearest}`?)"));
            let message = eco_format!("unknown type `{name}`{}", suffix.unwrap_or_default());
            self.diagnostics.push(
                Diagnostic::warning(codes::UNKNOWN_TYPE, span, message)
                    .with_category(Category::UnresolvedClass),
            );
        }
    }

    // ---- extensions, protocols, aliases ----

    pub(super) fn extension(&mut self, extension: &ast::Extension) {
        let target = &extension.target.name.text;
        let method = &extension.method;
        let selector = &method.head.selector;
        let source = self.table.class(target).and_then(|entry| entry.source.clone());
        let parameters = source
            .as_deref()
            .and_then(|source| class_of(source, target))
            .map(type_parameters);
        self.any_method(target, method, &parameters.unwrap_or_default());
        if self.file.origin == Origin::Session {
            // It may replace a method of the class itself.
            let superclass = self
                .table
                .class(target)
                .and_then(|entry| entry.superclass.clone());
            self.sealed_override(superclass.as_deref(), method);
            return;
        }
        let Some(entry) = self.table.class(target) else {
            if self.table.protocol(target).is_none() {
                let message = eco_format!("Unresolved class `{target}`");
                self.diagnostics.push(
                    Diagnostic::warning(codes::UNRESOLVED_CLASS, extension.target.span, message)
                        .with_category(Category::UnresolvedClass),
                );
            }
            return;
        };
        let body = if method.is_class {
            &entry.class_methods
        } else {
            &entry.methods
        };
        // What the library has beyond its reference is no reason to refuse a program; its own method wins.
        let in_body = body.contains_key(selector) && entry.origin != Origin::Library;
        // One that a session made gives way.
        let all = self.table.extensions(target, method.is_class, selector).iter();
        let others = all.filter(|entry| entry.source.origin != Origin::Session).count() > 1;
        if in_body || others {
            let side = if method.is_class { " class" } else { "" };
            let message = eco_format!("extension conflict on {target}{side}>>{selector}");
            self.error(codes::EXTENSION_CONFLICT, extension.span, message)
                .category = Some(Category::ExtensionConflict);
        }
        let superclass = entry.superclass.clone();
        self.sealed_override(Some(target.as_str()).filter(|_| superclass.is_some()), method);
    }

    pub(super) fn protocol(&mut self, protocol: &ast::Protocol) {
        self.name_clash(&protocol.name, "protocol");
        if let Some(extending) = &protocol.extending
            && self.table.protocol(&extending.text).is_none()
        {
            let message = eco_format!("unknown protocol `{}` after extending:", extending.text);
            self.error(codes::UNKNOWN_PROTOCOL, extending.span, message);
        }
        let parameters: Vec<&str> = protocol
            .type_parameters
            .iter()
            .map(|it| it.name.text.as_str())
            .collect();
        for signature in &protocol.signatures {
            let annotations = signature
                .head
                .parameters
                .iter()
                .filter_map(|it| it.annotation.as_ref());
            for annotation in annotations.chain(&signature.result) {
                self.annotation(annotation, &parameters);
            }
        }
    }

    pub(super) fn alias(&mut self, alias: &ast::TypeAlias) {
        let name = &alias.name;
        if name.text.len() == 1 {
            let message = eco_format!(
                "type alias `{}` has a single letter, which names a type parameter",
                name.text
            );
            self.error(codes::ALIAS_NAME, name.span, message);
        }
        self.name_clash(name, "type alias");
        self.annotation(&alias.definition, &[]);
        let mut path = vec![name.text.clone()];
        if self.alias_cycle(&alias.definition, &mut path) {
            let shown: Vec<EcoString> = path.iter().map(|name| eco_format!("'{name}'")).collect();
            self.error(
                codes::ALIAS_CYCLE,
                name.span,
                eco_format!("type alias cycle: {}", shown.join(" → ")),
            );
        }
    }

    /// Follow alias names; leaves the circle in `path` when it comes back to the first.
    fn alias_cycle(&self, definition: &ast::Type, path: &mut Vec<EcoString>) -> bool {
        if let TypeKind::Named { class, .. } = &definition.kind {
            let name = &class.name.text;
            if path.first() == Some(name) {
                path.push(name.clone());
                return true;
            }
            if let Some(entry) = self.table.alias(name)
                && !path.contains(name)
            {
                path.push(name.clone());
                if self.alias_cycle(&entry.definition, path) {
                    return true;
                }
                path.pop();
            }
        }
        let mut found = false;
        walk::inner_types(definition, &mut |inner| {
            found = found || self.alias_cycle(inner, path);
        });
        found
    }
}

/// What `lower` computes in place without asking whether somebody replaced it.
pub(crate) fn is_computed_in_place(class: &str, selector: &str) -> bool {
    match class {
        "Number" | "Integer" | "Float" => {
            matches!(selector, "+" | "-" | "*" | "/" | "%" | "<" | ">" | "<=" | ">=")
        }
        "String" => matches!(selector, "++" | "<" | ">" | "<=" | ">="),
        "List" => selector == "++",
        "Dictionary" => matches!(selector, "at:" | "at:put:"),
        "Boolean" | "True" | "False" => selector == "not",
        "Block" => {
            selector == "value"
                || selector.split_terminator(':').all(|part| part == "value")
                || matches!(
                    selector,
                    "on:do:" | "ensure:" | "whileTrue:" | "whileFalse:" | "repeat"
                )
        }
        _ => false,
    }
}
