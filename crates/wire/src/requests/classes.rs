//! Classes and navigation.

use super::field::{request, words};
use crate::entry::Side;

request! {
    /// Classes by name.
    ListClasses {
        ;
        /// `stdlib`, `user`, or a superclass.
        filter: String,
    }
}

request! {
    /// The own methods of a class.
    Methods {
        class: String,
    }
}

request! {
    /// All classes, as a browser shows them.
    BrowseClasses {}
}

request! {
    /// The selectors of one side of a class, by protocol.
    BrowseProtocols {
        class: String,
        ;
        /// `instance` if absent.
        side: Side,
    }
}

request! {
    /// The source of a method.
    BrowseMethodSource {
        class: String,
        selector: String,
        ;
        /// `instance` if absent.
        side: Side,
    }
}

request! {
    /// The head of a class, with its state.
    BrowseClassDefinition {
        class: String,
    }
}

request! {
    /// Everything of a class that is text: its head, its own methods, where it comes from.
    BrowseClass {
        class: String,
    }
}

request! {
    /// The Erlang behind a class.
    BrowseNativeSource {
        class: String,
    }
}

words! {
    /// What is looked for.
    NavKind: "senders, implementors or references" {
        #[default]
        Senders "senders",
        Implementors "implementors",
        References "references",
    }
}

request! {
    /// Senders or implementors of a selector, references to a class.
    NavQuery {
        kind: NavKind,
        ;
        selector: String,
        class: String,
    }
}

words! {
    /// Which classes.
    SymbolScope: "user or all" {
        #[default]
        User "user",
        All "all",
    }
}

request! {
    /// Classes and their methods, sorted by name.
    NavSymbols {
        ;
        scope: SymbolScope,
    }
}
