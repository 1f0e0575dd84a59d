//! Classes and navigation.

use super::answer;
use crate::entry::Side;

answer! {
    ClassSummary {
        name: String,
        superclass: Option<String>,
        doc: Option<String>,
        sealed: bool,
        r#abstract: bool,
    }
}

answer! {
    ListClassesAnswer {
        class_list: Vec<ClassSummary>,
    }
}

answer! {
    MethodPlace {
        selector: String,
        side: Side,
        line: Option<u64>,
    }
}

answer! {
    MethodsAnswer {
        methods: Vec<MethodPlace>,
    }
}

answer! {
    ClassRow {
        name: String,
        superclass: Option<String>,
        category: Option<String>,
        comment: Option<String>,
        sealed: bool,
        r#abstract: bool,
        internal: bool,
        source_file: Option<String>,
        /// `both`, `static` or `runtime`.
        origin: String,
        is_test: bool,
        is_protocol: bool,
    }
}

answer! {
    BrowseClassesAnswer {
        rows: Vec<ClassRow>,
    }
}

answer! {
    ProtocolSelector {
        selector: String,
        line: Option<u64>,
        /// `indexed`, `synthetic` or `runtime`.
        source_status: String,
        origin: String,
    }
}

answer! {
    Protocol {
        name: String,
        selectors: Vec<ProtocolSelector>,
    }
}

answer! {
    BrowseProtocolsAnswer {
        protocols: Vec<Protocol>,
    }
}

answer! {
    BrowseMethodSourceAnswer {
        source: Option<String>,
        doc: Option<String>,
        signature: Option<String>,
        source_status: String,
        origin: String,
        /// `null` without a file.
        disk_differs: Option<bool>,
    }
}

answer! {
    StateField {
        name: String,
        r#type: Option<String>,
        default: Option<String>,
    }
}

answer! {
    BrowseClassDefinitionAnswer {
        definition: String,
        state: Vec<StateField>,
        comment: Option<String>,
        origin: String,
        disk_differs: Option<bool>,
    }
}

answer! {
    MethodText {
        selector: String,
        side: Side,
        /// As it was written; `null` for one without a text.
        source: Option<String>,
        doc: Option<String>,
        /// `indexed`, `synthetic` or `runtime`.
        source_status: String,
        /// In its file.
        line: Option<u64>,
    }
}

answer! {
    BrowseClassAnswer {
        definition: String,
        superclass: Option<String>,
        comment: Option<String>,
        /// `value`, `actor` or another kind of object.
        kind: String,
        package: Option<String>,
        source_file: Option<String>,
        /// In its file.
        line: Option<u64>,
        methods: Vec<MethodText>,
        ;
        /// A flush can write it to its file.
        flushable: bool,
    }
}

answer! {
    NativeClause {
        function: String,
        arity: u64,
        line: u64,
    }
}

answer! {
    BrowseNativeSourceAnswer {
        module: String,
        source: String,
        /// Functions and the lines of their clauses.
        clauses: Vec<NativeClause>,
    }
}

answer! {
    Site {
        class: String,
        class_side: bool,
        method: Option<String>,
        line: Option<u64>,
        source_file: Option<String>,
    }
}

answer! {
    NavQueryAnswer {
        sites: Vec<Site>,
    }
}

answer! {
    Symbol {
        name: String,
        source_file: Option<String>,
        line: Option<u64>,
        methods: Vec<MethodPlace>,
    }
}

answer! {
    NavSymbolsAnswer {
        classes: Vec<Symbol>,
    }
}
