//! `doc-cells`: where the inputs of a text are. The rule is the one scripts are run by.

use beamtalk_wire::answers::{DocCell, DocCellsAnswer, InputPlace};
use beamtalk_wire::requests::DocCells;

pub(super) fn doc_cells(request: &DocCells) -> DocCellsAnswer {
    let text = &request.text;
    let inputs = beamtalk_syntax::inputs(text).into_iter().map(|input| InputPlace {
        line: 1 + text[..input.start].matches('\n').count() as u64,
        start: input.start as u64,
        end: input.end as u64,
    });
    let cell = DocCell {
        index: 0,
        start: 0,
        end: text.len() as u64,
        inputs: inputs.collect(),
    };
    DocCellsAnswer { cells: vec![cell] }
}
