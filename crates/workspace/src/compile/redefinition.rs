//! Classes of the project that an input defines anew: they stay in their files.

use beamtalk_compiler::{ClassTable, Origin, SourceFile};
use beamtalk_syntax::ast::Item;
use beamtalk_syntax::definitions::{Dialect, class_source, replace_class};

use super::worker::class_in;

/// The files of those classes of an input that have one, each with the new definitions in place of the old ones.
pub(super) fn redefined_files(table: &ClassTable, input: &SourceFile) -> Vec<SourceFile> {
    let mut files: Vec<SourceFile> = Vec::new();
    for item in &input.unit.items {
        let Item::Class(class) = item else { continue };
        let name = &class.name.text;
        let Some(known) = table
            .source_of(name)
            .filter(|known| known.origin != Origin::Session)
        else {
            continue;
        };
        let earlier = files.iter().position(|file| file.module == known.module);
        let earlier = earlier.map(|at| files.swap_remove(at));
        let before = earlier.as_ref().map_or(&known.text, |file| &file.text);
        if let Some(text) = replace_class(before, Dialect::File, name, class_source(&input.text, class)) {
            files.push(SourceFile {
                unit: beamtalk_syntax::parse_file(&text).unit,
                text: text.into(),
                path: known.path.clone(),
                package: known.package.clone(),
                module: known.module.clone(),
                origin: known.origin,
            });
        }
    }
    files
}

/// An input without the classes that have files. What is left stands where it stood.
pub(super) fn without_redefined(input: &SourceFile, files: &[SourceFile]) -> SourceFile {
    let mut text = input.text.to_string();
    let mut rest = input.clone();
    rest.unit.items.retain(|item| match item {
        Item::Class(class)
            if files
                .iter()
                .any(|file| class_in(file, &class.name.text).is_some()) =>
        {
            let range = class.span.start as usize..class.span.end as usize;
            let blank = |c: char| {
                if c == '\n' {
                    "\n".to_owned()
                } else {
                    " ".repeat(c.len_utf8())
                }
            };
            let blanks: String = text
                .get(range.clone())
                .unwrap_or_default()
                .chars()
                .map(blank)
                .collect();
            text.replace_range(range, &blanks);
            false
        }
        _ => true,
    });
    rest.text = text.into();
    rest
}
