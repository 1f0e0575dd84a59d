//! What is wrong with a source text, as data. Rendering lives with the command line.

use ecow::EcoString;

use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
    Hint,
    /// Shown by the linter only.
    Lint,
}

/// The key users name in `@expect` and `[diagnostics]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Category {
    Syntax,
    Dnu,
    Type,
    TypeAnnotation,
    Unused,
    EmptyBody,
    Lint,
    DeadAssignment,
    ExtensionConflict,
    Deprecation,
    ActorNew,
    Visibility,
    UnresolvedClass,
    UnresolvedFfi,
    ArityMismatch,
    ShadowedClass,
    Inheritance,
    Sendability,
    Dependency,
}

impl Category {
    /// The key as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Dnu => "dnu",
            Self::Type => "type",
            Self::TypeAnnotation => "type-annotation",
            Self::Unused => "unused",
            Self::EmptyBody => "empty-body",
            Self::Lint => "lint",
            Self::DeadAssignment => "dead-assignment",
            Self::ExtensionConflict => "extension-conflict",
            Self::Deprecation => "deprecation",
            Self::ActorNew => "actor-new",
            Self::Visibility => "visibility",
            Self::UnresolvedClass => "unresolved-class",
            Self::UnresolvedFfi => "unresolved-ffi",
            Self::ArityMismatch => "arity-mismatch",
            Self::ShadowedClass => "shadowed-class",
            Self::Inheritance => "inheritance",
            Self::Sendability => "sendability",
            Self::Dependency => "dependency",
        }
    }
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Hint => "hint",
            Self::Lint => "lint",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Such as `E0101`: belongs to one condition for ever.
    pub code: &'static str,
    pub severity: Severity,
    pub category: Option<Category>,
    pub message: EcoString,
    pub span: Span,
    pub hint: Option<EcoString>,
    /// What cannot work: a type, a member of one, a case that is left out.
    pub witness: Option<EcoString>,
    /// Other places that explain this one.
    pub notes: Vec<(Span, EcoString)>,
    /// What `lint --fix` changes; empty when only a person can decide. All of it or nothing.
    pub edits: Vec<Edit>,
}

/// One change of a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: &'static str,
}

impl Diagnostic {
    pub fn new(code: &'static str, severity: Severity, span: Span, message: impl Into<EcoString>) -> Self {
        Self {
            code,
            severity,
            // What the reader of source text complains about.
            category: code.starts_with("E01").then_some(Category::Syntax),
            message: message.into(),
            span,
            hint: None,
            witness: None,
            notes: Vec::new(),
            edits: Vec::new(),
        }
    }

    pub fn error(code: &'static str, span: Span, message: impl Into<EcoString>) -> Self {
        Self::new(code, Severity::Error, span, message)
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<EcoString>) -> Self {
        Self::new(code, Severity::Warning, span, message)
    }

    /// A finding of the linter, in the category of that name.
    pub fn lint(code: &'static str, span: Span, message: impl Into<EcoString>) -> Self {
        Self::new(code, Severity::Lint, span, message).with_category(Category::Lint)
    }

    #[must_use]
    pub fn with_category(mut self, category: Category) -> Self {
        self.category = Some(category);
        self
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<EcoString>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn with_witness(mut self, witness: impl Into<EcoString>) -> Self {
        self.witness = Some(witness.into());
        self
    }

    #[must_use]
    pub fn with_edits(mut self, edits: Vec<Edit>) -> Self {
        self.edits = edits;
        self
    }

    #[must_use]
    pub fn with_note(mut self, span: Span, text: impl Into<EcoString>) -> Self {
        self.notes.push((span, text.into()));
        self
    }
}
