//! Ways to look at something, and what is seen.

use super::answer;
use crate::requests::Step;

answer! {
    ViewName {
        name: String,
        title: String,
        /// `builtin`, or `method` for one that runs code.
        origin: String,
        ;
        class: String,
        selector: String,
        line: u64,
    }
}

answer! {
    ViewsAnswer {
        /// The first is the one to show.
        views: Vec<ViewName>,
    }
}

answer! {
    /// What a row opens: one of the first four, and the way from it.
    Opened {
        path: Vec<Step>,
        ;
        actor: String,
        binding: String,
        class: String,
        r#ref: String,
    }
}

answer! {
    ViewColumn {
        title: String,
        /// `text`, `number`, `time` or `object`.
        kind: String,
    }
}

answer! {
    ViewCell {
        text: String,
        class: Option<String>,
        drillable: bool,
    }
}

answer! {
    ViewRow {
        cells: Vec<ViewCell>,
        open: Option<Opened>,
    }
}

answer! {
    ViewNode {
        node: String,
        parent: Option<String>,
        text: String,
        class: Option<String>,
        has_children: bool,
        open: Option<Opened>,
    }
}

answer! {
    ViewSeries {
        name: String,
        x: Vec<f64>,
        y: Vec<f64>,
    }
}

answer! {
    ViewAxis {
        title: String,
        ;
        kind: String,
    }
}

answer! {
    ViewFigure {
        name: String,
        text: String,
        /// `ok`, `warn` or `danger`.
        state: Option<String>,
    }
}

answer! {
    /// Which fields there are depends on the kind.
    ShownView {
        id: String,
        /// `table`, `list`, `tree`, `text`, `chart`, `image` or `figures`.
        kind: String,
        title: String,
        /// `null` when nobody knows.
        total: Option<u64>,
        /// Code was run for it.
        computed: bool,
        ;
        columns: Vec<ViewColumn>,
        /// Where the rows, or the text, begin.
        from: u64,
        /// `sorted` or `unsorted`.
        order: String,
        rows: Vec<ViewRow>,
        nodes: Vec<ViewNode>,
        text: String,
        language: String,
        /// The text ends here.
        end: bool,
        mark: String,
        x: ViewAxis,
        y: ViewAxis,
        series: Vec<ViewSeries>,
        shown: u64,
        of: u64,
        mime: String,
        base64: String,
        alt: String,
        figures: Vec<ViewFigure>,
        /// What the view leaves out, and why.
        note: String,
    }
}

answer! {
    ViewAnswer {
        view: ShownView,
    }
}
