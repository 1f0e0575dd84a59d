//! Text, collections and class names.

use ecow::{EcoString, eco_format};

use super::{Lowerer, send};
use crate::erl::{BinaryElement, Erl, ErlKind};
use crate::ir::{Node, TextPart};

impl Lowerer<'_> {
    pub(super) fn text(&mut self, parts: &[TextPart], line: u32) -> Erl {
        match parts {
            [] => return Erl::new(line, ErlKind::Binary(EcoString::new())),
            [TextPart::Text(text)] => return Erl::new(line, ErlKind::Binary(text.clone())),
            _ => {}
        }
        let nodes = parts.iter().filter_map(|part| match part {
            TextPart::Value(node) => Some(node),
            TextPart::Text(_) => None,
        });
        // Made in one step where it begins with text; beginning with a binary, Erlang would make room to append to it.
        // What the blocks of an input become is not looked for in there.
        let is_made_at_once = !self.target.is_expression
            && matches!(parts.first(), Some(TextPart::Text(text)) if !text.is_empty())
            && !nodes
                .clone()
                .any(|node| crate::resolve::is_static_character(node, self.variables));
        let mut values = self.operand_expressions(nodes).into_iter();
        let pieces: Vec<Erl> = parts
            .iter()
            .map(|part| match part {
                TextPart::Text(text) => Erl::new(line, ErlKind::Binary(text.clone())),
                TextPart::Value(node) => {
                    let value = values.next().expect("one value for each interpolation");
                    if crate::resolve::is_static_character(node, self.variables) {
                        return send::as_character(value, "displayString", Vec::new(), line);
                    }
                    Erl::call(value.line, "beamtalk_display", "display", vec![value])
                }
            })
            .collect();
        if !is_made_at_once {
            return Erl::call(line, "erlang", "iolist_to_binary", vec![Erl::list(line, pieces)]);
        }
        let elements = pieces.into_iter().map(BinaryElement::bytes).collect();
        Erl::new(line, ErlKind::BinaryPattern(elements))
    }

    pub(super) fn class_object(&self, name: &str, line: u32) -> Erl {
        let table = self.target.table;
        let module = table
            .class(name)
            .map(|class| class.module.clone())
            .or_else(|| table.protocol(name).map(|protocol| protocol.module.clone()));
        match module {
            Some(module) => Erl::tuple(
                line,
                vec![
                    Erl::atom(line, "beamtalk_object"),
                    Erl::atom(line, eco_format!("{name} class")),
                    Erl::atom(line, module),
                    Erl::atom(line, name),
                ],
            ),
            None => Erl::call(line, "beamtalk_class", "named", vec![Erl::atom(line, name)]),
        }
    }

    pub(super) fn list(&mut self, elements: &[Node], tail: Option<&Node>, line: u32) -> Erl {
        let mut values = self.operand_expressions(elements.iter().chain(tail));
        if tail.is_none() {
            Erl::list(line, values)
        } else {
            let rest = values.pop().expect("the tail is the last operand");
            Erl::call(
                line,
                "beamtalk_pattern",
                "cons",
                vec![Erl::list(line, values), rest],
            )
        }
    }

    pub(super) fn array(&mut self, elements: &[Node], line: u32) -> Erl {
        let values = self.operand_expressions(elements);
        let indexed = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| (Erl::integer(line, index + 1), value))
            .collect();
        let data = Erl::new(line, ErlKind::Map(indexed));
        Erl::new(
            line,
            ErlKind::Map(vec![
                (Erl::atom(line, "$beamtalk_class"), Erl::atom(line, "Array")),
                (Erl::atom(line, "data"), data),
            ]),
        )
    }

    pub(super) fn dictionary(&mut self, pairs: &[(Node, Node)], line: u32) -> Erl {
        let values = self.operand_expressions(pairs.iter().flat_map(|(key, value)| [key, value]));
        let mut values = values.into_iter();
        let mut out = Vec::new();
        while let (Some(key), Some(value)) = (values.next(), values.next()) {
            out.push((key, value));
        }
        Erl::new(line, ErlKind::Map(out))
    }
}
