//! Definitions given back to the image, or taken out of it, as the change log has them.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::definitions::{Key, Outline, class_changes, method_source, restore_class};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::changes::{change_image, drop_method, image_text, is_loaded, restore_method};
use super::eval::refuse_errors;
use super::load::install;
use super::save_method::shape;
use crate::changes::{Entry, Kind, Side};
use crate::compile::job::{Job, SourceText};
use crate::terms;
use crate::workspace::Workspace;

/// Give the image what it had before an entry.
pub(super) async fn put_back(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    previous: Option<String>,
) -> Result<(), ErrorBody> {
    match (entry.kind, &entry.selector, previous) {
        (Kind::RemoveClass, _, None) => Err(ErrorBody::new(
            ErrorKind::RevertNotPossible,
            format!("the source of {} is not known", entry.title()),
        )),
        (Kind::RemoveClass, _, Some(previous)) => put_class(workspace, entry, previous).await,
        (_, Some(selector), None) if entry.kind == Kind::RemoveMethod || !has_text(workspace, entry) => {
            let is_class_side = entry.side == Some(Side::Class);
            restore_method(workspace, &entry.class, selector, is_class_side).await
        }
        (_, _, previous) => put_definition(workspace, entry, previous).await,
    }
}

/// Whether the text of the class is known here; that of a class of the library is not, and a method that it lacks may be one
/// that its code has.
fn has_text(workspace: &Workspace, entry: &Entry) -> bool {
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    file.is_some_and(|file| image_text(workspace, file).is_some())
        || workspace
            .compiler
            .known
            .borrow()
            .session_class(&entry.class)
            .is_some()
}

/// Give the image what an entry gave it once.
pub(super) async fn put_again(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<String>,
) -> Result<(), ErrorBody> {
    if entry.kind == Kind::RemoveClass {
        return drop_class(workspace, &entry.class).await;
    }
    put_definition(workspace, entry, source).await
}

/// Give the image a definition, or take it out, where that definition stands.
async fn put_definition(
    workspace: &Rc<Workspace>,
    entry: &Entry,
    source: Option<String>,
) -> Result<(), ErrorBody> {
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    let image = file.and_then(|file| image_text(workspace, file));
    let is_class_side = entry.side == Some(Side::Class);
    match (&entry.selector, source, file, image) {
        (Some(selector), source, Some(file), Some(_)) => {
            let key = Key::method(&entry.class, is_class_side, selector);
            change_image(workspace, file, &[(key, source)]).await.map(drop)
        }
        (Some(selector), None, ..) => {
            if is_loaded(workspace, &entry.class).await {
                // A method that was added may have taken the place of one that is generated.
                if entry.kind == Kind::RemoveMethod {
                    let dropped = drop_method(workspace, &entry.class, selector, is_class_side).await;
                    // What is generated was there before the method that was removed.
                    dropped.or_else(|error| match error.kind {
                        ErrorKind::Forbidden => Ok(()),
                        _ => Err(error),
                    })?;
                } else {
                    restore_method(workspace, &entry.class, selector, is_class_side).await?;
                }
                let job = Job::RemoveMethod {
                    class: entry.class.clone(),
                    is_class_side,
                    selector: selector.clone(),
                };
                let compiled = workspace.compiler.run(job).await?;
                refuse_errors(&compiled)?;
                install(workspace, &compiled).await?;
            }
            Ok(())
        }
        (Some(selector), Some(source), ..) => {
            let job = Job::Method {
                class: entry.class.clone(),
                is_class_side,
                selector: selector.clone(),
                source: method_source(&source),
                shape: shape(workspace, &entry.class).await?,
            };
            let compiled = workspace.compiler.run(job).await?;
            refuse_errors(&compiled)?;
            install(workspace, &compiled).await.map(drop)
        }
        (None, None, Some(file), Some(image)) if entry.is_whole_file => {
            drop_file(workspace, file, image).await
        }
        (None, None, ..) => drop_class(workspace, &entry.class).await,
        (None, Some(source), Some(file), Some(image)) if !entry.is_whole_file => {
            let changes = class_changes(&entry.class, &image.text, &source);
            change_image(workspace, file, &changes).await.map(drop)
        }
        (None, Some(source), Some(file), _) => {
            let text = file_text(workspace, file, source);
            super::load::install_text(workspace, text).await.map(drop)
        }
        (None, Some(source), None, _) => define_class(workspace, &source).await,
    }
}

/// Give the image a class that was removed. What else its file defines stays as the image has it.
async fn put_class(workspace: &Rc<Workspace>, entry: &Entry, previous: String) -> Result<(), ErrorBody> {
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    let image = file.and_then(|file| image_text(workspace, file));
    let text = image.as_ref().map_or("", |image| &image.text);
    let (Some(file), None) = (file, Outline::of_file(text).class(&entry.class)) else {
        return put_definition(workspace, entry, Some(previous)).await;
    };
    let text = restore_class(text, &previous, &entry.class);
    let text = match image {
        Some(image) => SourceText { text, ..image },
        None => file_text(workspace, file, text),
    };
    super::load::install_text(workspace, text).await.map(drop)
}

/// A text as that of a file of which the image has nothing.
fn file_text(workspace: &Rc<Workspace>, file: &str, text: String) -> SourceText {
    match super::load::source_text(workspace, &workspace.root.join(file)) {
        Ok(known) => SourceText { text, ..known },
        Err(_) => super::load::new_source(workspace, file, &text),
    }
}

async fn drop_class(workspace: &Rc<Workspace>, class: &str) -> Result<(), ErrorBody> {
    if is_loaded(workspace, class).await {
        let arguments = terms::map([("class", Term::binary(class))]);
        workspace.image.call("", "remove-class", arguments).await?;
    }
    workspace.forget_class(class);
    Ok(())
}

/// Take everything that a file defines out of the image.
async fn drop_file(workspace: &Rc<Workspace>, file: &str, image: SourceText) -> Result<(), ErrorBody> {
    let outline = Outline::of_file(&image.text);
    let classes: Vec<String> = outline
        .classes()
        .map(|class| class.name.text.to_string())
        .collect();
    for class in classes {
        drop_class(workspace, &class).await?;
    }
    // Methods of classes of other files are left.
    if let Some(rest) = image_text(workspace, file) {
        let nothing = SourceText {
            text: String::new(),
            ..rest
        };
        super::load::install_text(workspace, nothing).await?;
    }
    Ok(())
}

/// Define a class that has no file.
async fn define_class(workspace: &Rc<Workspace>, source: &str) -> Result<(), ErrorBody> {
    let job = Job::Input {
        code: source.to_owned(),
        bound: Vec::new(),
        file: None,
        trace: false,
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    install(workspace, &compiled).await.map(drop)
}
