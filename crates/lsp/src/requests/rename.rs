//! Another name for a variable, slot, class or selector, everywhere.
//!
//! What cannot be exact is refused with the reason. Messages to receivers of unknown class are changes that a person
//! confirms one by one.

use beamtalk_syntax::ast::{ExpressionKind, Item, SlotKeyword};
use beamtalk_syntax::walk;
use ecow::EcoString;
use gen_lsp_types::{PrepareRenameParams, RenameParams};
use serde_json::{Value, json};

use crate::analysis::find;
use crate::analysis::names::{self, Meaning, Occurrence};
use crate::analysis::references::{self, Certainty, Reference, Subject};
use crate::analysis::words::Word;
use crate::edit::Edits;
use crate::fault::Fault;
use crate::library::Library;
use crate::state::{Snapshot, View};
use crate::uri;
use crate::world::{Access, File};

const WHY: &str = "it is not certain that this means the method";

pub(crate) fn prepare(snapshot: &Snapshot, params: PrepareRenameParams) -> Result<Value, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let (name, subject) = subject_at(&view, offset)?;
    check(&view, &subject)?;
    let placeholder = match &subject {
        Subject::Selector { selector, .. } => selector.to_string(),
        _ => name.span.text(view.text()).to_owned(),
    };
    Ok(json!({"range": view.range(name.span), "placeholder": placeholder}))
}

pub(crate) fn handle(snapshot: &Snapshot, params: RenameParams) -> Result<Value, Fault> {
    let (view, offset) = snapshot.at(&params.text_document_position_params)?;
    let (name, subject) = subject_at(&view, offset)?;
    check(&view, &subject)?;
    let new = params.new_name.trim();
    let mut edits = Edits::new(snapshot, WHY);
    match &subject {
        Subject::Inner(meaning) => inner(snapshot, &view, meaning, &subject, new, &mut edits)?,
        Subject::Class(class) => self::class(snapshot, &view, class, &subject, new, &mut edits)?,
        Subject::Slot {
            class,
            is_class,
            name,
        } => slot(
            snapshot,
            &view,
            (class, *is_class, name),
            &subject,
            new,
            &mut edits,
        )?,
        Subject::Selector { selector, .. } => {
            self::selector(snapshot, &view, &name, selector, &subject, new, &mut edits)?;
        }
    }
    edits.finish()
}

fn failed<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Failed(text.into()))
}

fn subject_at(view: &View, offset: u32) -> Result<(Occurrence, Subject), Fault> {
    let names = names::all(&view.file.source.unit);
    let name = names::at(&names, offset).cloned();
    let Some(name) = name.filter(|name| name.meaning != Meaning::Own) else {
        return failed("there is no name here that could be changed");
    };
    match references::subject(view, &name) {
        Some(subject) => Ok((name, subject)),
        None => failed("there is no name here that could be changed"),
    }
}

/// Whether the thing is ours to rename.
fn check(view: &View, subject: &Subject) -> Result<(), Fault> {
    let foreign =
        |what: &str, file: &str| failed(format!("{what} is declared in {file}, which is not changed"));
    if !view.world.is_complete {
        return failed("the project is still being read");
    }
    match subject {
        Subject::Inner(Meaning::Unbound(name)) => failed(format!("nothing declares '{name}'")),
        Subject::Inner(_) if view.file.access != Access::Own => {
            foreign("this name", view.file.source.path.as_str())
        }
        Subject::Inner(_) => Ok(()),
        Subject::Class(class) => {
            let mut declared = view
                .all_files()
                .filter(|file| find::named(file, class).next().is_some());
            match declared.next() {
                Some(file) if file.access != Access::Own => foreign(class, &file.source.path),
                Some(_) => Ok(()),
                None => failed(format!("no file declares '{class}'")),
            }
        }
        Subject::Slot { class, name, .. } => match find::class_file(view, class) {
            Some((file, _)) if file.access != Access::Own => foreign(name, &file.source.path),
            Some(_) => Ok(()),
            None => failed(format!("no file declares '{name}'")),
        },
        Subject::Selector { selector, family } => {
            let is_word = selector.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if !is_word {
                return failed("an operator keeps its name: its place in an expression depends on it");
            }
            let Some(family) = family else {
                let library = Library::get();
                let in_library = library
                    .files
                    .values()
                    .any(|file| find::methods(file).any(|found| found.method.head.selector == *selector));
                if in_library {
                    return failed(format!(
                        "the class of the receiver is not known, and the library has methods named '{selector}'"
                    ));
                }
                let is_defined = view.world.files.values().any(|file| {
                    file.access == Access::Own
                        && find::methods(file).any(|found| found.method.head.selector == *selector)
                });
                if !is_defined {
                    return failed(format!("no file of the project defines '{selector}'"));
                }
                return Ok(());
            };
            let mut foreign_files =
                view.all_files()
                    .filter(|file| file.access != Access::Own)
                    .filter(|file| {
                        find::methods(file).any(|found| {
                            found.method.head.selector == *selector
                                && found.method.is_class == family.is_class
                                && family.classes.contains(found.class)
                        })
                    });
            if let Some(file) = foreign_files.next() {
                return foreign(&format!("'{selector}'"), &file.source.path);
            }
            let mut own = view.world.files.values();
            let is_defined = own.any(|file| {
                find::methods(file).any(|found| {
                    found.method.head.selector == *selector && family.classes.contains(found.class)
                })
            });
            if !is_defined {
                return failed(format!(
                    "'{selector}' comes from a field: change the field instead"
                ));
            }
            Ok(())
        }
    }
}

fn is_lower(name: &str) -> bool {
    let reserved = ["self", "super", "nil", "true", "false", "_"];
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && is_word(name)
        && !reserved.contains(&name)
}

fn is_upper(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && is_word(name)
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A variable or a type parameter.
fn inner(
    snapshot: &Snapshot,
    view: &View,
    meaning: &Meaning,
    subject: &Subject,
    new: &str,
    edits: &mut Edits<'_>,
) -> Result<(), Fault> {
    let is_right = match meaning {
        Meaning::TypeParameter(_) => is_upper(new),
        _ => is_lower(new),
    };
    if !is_right {
        return failed(format!("'{new}' is not a name for this"));
    }
    let found = references::all(snapshot, view, subject)?;
    // Another variable of that name in the same method could become the same one, or hide it.
    if let Meaning::Local { declared, .. } = meaning {
        let around = references::method_around(&view.file, *declared).map(|found| found.method.span);
        let all = names::all(&view.file.source.unit);
        let clash = all.iter().find(|other| {
            let is_near = around.is_none_or(|span| span.start <= other.span.start && other.span.end <= span.end);
            is_near
                && matches!(&other.meaning, Meaning::Local { name, .. } | Meaning::Unbound(name) if name == new)
        });
        if let Some(clash) = clash {
            let line = view.range(clash.span).start.line + 1;
            return failed(format!("there is a '{new}' already (line {line})"));
        }
    }
    replace_all(&found, new, edits)
}

fn replace_all(found: &[Reference], new: &str, edits: &mut Edits<'_>) -> Result<(), Fault> {
    for reference in found {
        edits.replace(&reference.file, reference.name.span, new, reference.certainty)?;
    }
    Ok(())
}

/// A class, protocol or alias, and the file that is named after it.
fn class(
    snapshot: &Snapshot,
    view: &View,
    class: &EcoString,
    subject: &Subject,
    new: &str,
    edits: &mut Edits<'_>,
) -> Result<(), Fault> {
    if !is_upper(new) {
        return failed(format!("'{new}' is not a name for a class"));
    }
    if view
        .all_files()
        .any(|file| find::named(file, new).next().is_some())
    {
        return failed(format!("there is a '{new}' already"));
    }
    let found = references::all(snapshot, view, subject)?;
    let own: Vec<Reference> = found.into_iter().filter(references::is_own).collect();
    replace_all(&own, new, edits)?;
    let declaring = own.iter().find(|reference| references::is_declaration(reference));
    if let Some(path) = declaring.and_then(|reference| uri::to_path(&reference.file.uri.0))
        && path.file_stem().is_some_and(|stem| stem == class.as_str())
    {
        let renamed = path.with_file_name(format!("{new}.bt"));
        if renamed.exists() {
            return failed(format!("{} is there already", renamed.display()));
        }
        if let Some(reference) = declaring {
            edits.rename_file(&reference.file.uri, &uri::of_path(&renamed));
        }
    }
    Ok(())
}

fn slot(
    snapshot: &Snapshot,
    view: &View,
    (class, is_class, name): (&EcoString, bool, &EcoString),
    subject: &Subject,
    new: &str,
    edits: &mut Edits<'_>,
) -> Result<(), Fault> {
    if !is_lower(new) {
        return failed(format!("'{new}' is not a name for a slot"));
    }
    let table = &view.world.table;
    let related = |other: &str| table.inherits_from(other, class) || table.inherits_from(class, other);
    for file in view.all_files() {
        for item in &file.source.unit.items {
            if let Item::Class(other) = item
                && related(&other.name.text)
                && other.slots.iter().any(|slot| slot.name.text == new)
            {
                return failed(format!("{} has a slot '{new}' already", other.name.text));
            }
        }
    }
    let declared = find::class_file(view, class).and_then(|(_, found)| {
        let mut slots = found.slots.iter();
        slots
            .find(|slot| slot.name.text == *name)
            .map(|slot| slot.keyword)
    });
    if declared == Some(SlotKeyword::Field) {
        accessors(snapshot, view, class, name)?;
    }
    let found = references::all(snapshot, view, subject)?;
    replace_all(&found, new, edits)?;
    if !is_class {
        keys(view, class, name, new, edits)?;
    }
    Ok(())
}

/// A field of a value brings messages of its name. They may be sent anywhere, so a field whose messages are in use is
/// not renamed behind anybody's back.
fn accessors(snapshot: &Snapshot, view: &View, class: &str, name: &str) -> Result<(), Fault> {
    let mut chars = name.chars();
    let capital = chars.next().map(|first| first.to_ascii_uppercase());
    let setter: String = capital.into_iter().chain(chars).collect();
    let setter = format!("with{setter}:");
    let constructor = constructor(view, class).unwrap_or_default();
    let brought = [name, &setter, &constructor];
    let has_one = |file: &File| {
        brought
            .iter()
            .any(|selector| file.words().has(Word::Selector(selector)))
    };
    for file in view.world.files.values().filter(|file| has_one(file)) {
        snapshot.go_on()?;
        for used in names::all(&file.source.unit) {
            let Meaning::Message {
                selector, part: 0, ..
            } = &used.meaning
            else {
                continue;
            };
            if brought.contains(&selector.as_str()) {
                let line = file.lines.line(used.span.start) + 1;
                return failed(format!(
                    "the field brings '{selector}', which {}:{line} may send to it; change these first",
                    file.source.path
                ));
            }
        }
    }
    Ok(())
}

/// `x:y:` for the fields of a value.
fn constructor(view: &View, class: &str) -> Option<String> {
    let (_, class) = find::class_file(view, class)?;
    let fields = class
        .slots
        .iter()
        .filter(|slot| slot.keyword == SlotKeyword::Field);
    Some(fields.map(|slot| format!("{}:", slot.name.text)).collect())
}

/// Messages that take the slots of a new object as keys.
const MAKERS: [&str; 2] = ["new:", "spawnWith:"];

/// The keys of `new: #{#name => 1}` and `spawnWith:` for the class or one below.
fn keys(view: &View, class: &str, name: &str, new: &str, edits: &mut Edits<'_>) -> Result<(), Fault> {
    let table = &view.world.table;
    let mut places = Vec::new();
    for file in view
        .world
        .files
        .values()
        .filter(|file| file.access == Access::Own)
        .filter(|file| MAKERS.iter().any(|maker| file.words().has(Word::Selector(maker))))
    {
        for found in find::methods(file) {
            for statement in &found.method.body {
                walk::all(&statement.expression, &mut |node| {
                    let ExpressionKind::Send(send) = &node.kind else {
                        return;
                    };
                    let is_made = MAKERS.contains(&send.message.selector.as_str());
                    let ExpressionKind::ClassName(receiver) = &send.receiver.kind else {
                        return;
                    };
                    let Some(argument) = send.message.arguments.first().filter(|_| is_made) else {
                        return;
                    };
                    let ExpressionKind::Dictionary(pairs) = &argument.kind else {
                        return;
                    };
                    if !table.inherits_from(&receiver.name.text, class) {
                        return;
                    }
                    for (key, _) in pairs {
                        if matches!(&key.kind, ExpressionKind::Symbol(symbol) if symbol == name) {
                            places.push((file.clone(), key.span));
                        }
                    }
                });
            }
        }
    }
    for (file, span) in places {
        edits.replace(&file, span, format!("#{new}"), Certainty::Sure)?;
    }
    Ok(())
}

/// A selector keeps its number of parts. A new name for one part changes that part alone.
fn selector(
    snapshot: &Snapshot,
    view: &View,
    name: &Occurrence,
    selector: &EcoString,
    subject: &Subject,
    new: &str,
    edits: &mut Edits<'_>,
) -> Result<(), Fault> {
    let parts: Vec<&str> = selector.split_inclusive(':').collect();
    let given: Vec<&str> = new.split_inclusive(':').collect();
    let part = match &name.meaning {
        Meaning::Message { part, .. } | Meaning::Method { part, .. } => *part,
        _ => 0,
    };
    let is_keyword = selector.ends_with(':');
    let mut wanted: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
    if given.len() == parts.len() {
        wanted = given.iter().map(|part| (*part).to_owned()).collect();
    } else if let ([one], Some(place)) = (given.as_slice(), wanted.get_mut(part)) {
        (*one).clone_into(place);
    } else {
        return failed(format!(
            "'{new}' has {} parts, '{selector}' has {}; to change the arguments use 'add parameter' or 'remove parameter'",
            given.len(),
            parts.len()
        ));
    }
    for part in &mut wanted {
        if is_keyword && !part.ends_with(':') {
            part.push(':');
        }
        let word = part.strip_suffix(':').unwrap_or(part);
        if !is_lower(word) || part.ends_with(':') != is_keyword {
            return failed(format!("'{new}' is not a selector like '{selector}'"));
        }
    }
    let renamed = wanted.concat();
    if let Subject::Selector {
        family: Some(family), ..
    } = subject
    {
        let taken = family.classes.iter().find(|class| {
            let receiver = beamtalk_compiler::complete::Receiver {
                class: (*class).clone(),
                is_class: family.is_class,
            };
            beamtalk_compiler::complete::Lookup::new(&view.world.table)
                .answerer(&receiver, &renamed)
                .is_some()
        });
        if let Some(class) = taken {
            return failed(format!("{class} answers '{renamed}' already"));
        }
    }
    for reference in references::all(snapshot, view, subject)? {
        let part = match &reference.name.meaning {
            Meaning::Message { part, .. } | Meaning::Method { part, .. } => *part,
            _ => 0,
        };
        if reference.file.access != Access::Own {
            continue;
        }
        if let Some(text) = wanted.get(part) {
            edits.replace(
                &reference.file,
                reference.name.span,
                text.as_str(),
                reference.certainty,
            )?;
        }
    }
    Ok(())
}
