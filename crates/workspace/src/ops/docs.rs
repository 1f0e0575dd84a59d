//! Documentation of what the image has; a type alias exists for the compiler only.

use std::rc::Rc;

use beamtalk_wire::answers::DocsAnswer;
use beamtalk_wire::requests::Docs;
use beamtalk_wire::{ErrorBody, ErrorKind};

use crate::compile::job::Job;
use crate::sessions::Session;
use crate::workspace::Workspace;

/// What the code of a finding stands for.
fn page(code: &str) -> Result<DocsAnswer, ErrorBody> {
    let mut all = beamtalk_syntax::codes::ALL
        .iter()
        .chain(beamtalk_compiler::codes::ALL);
    let Some((code, about)) = all.find(|(known, _)| known.eq_ignore_ascii_case(code)) else {
        return Err(ErrorBody::new(
            ErrorKind::NotFound,
            format!("there is no code '{code}'"),
        ));
    };
    let mut docs = format!("# {code}\n\n{}.\n", about.trim_end_matches('.'));
    if let Some(example) = beamtalk_compiler::codes::examples().find(|example| example.code == *code) {
        let [wrong, right] = [example.wrong, example.right].map(|text| format!("```beamtalk\n{text}\n```\n"));
        docs.push_str(&format!("\n## Wrong\n\n{wrong}\n## Right\n\n{right}"));
    }
    Ok(DocsAnswer { docs })
}

pub(super) async fn docs(
    workspace: &Rc<Workspace>,
    session: &Session,
    request: &Docs,
) -> Result<DocsAnswer, ErrorBody> {
    if let Some(code) = &request.code {
        return page(code);
    }
    workspace.enter_node(session).await?;
    let refused = match workspace.image.ask(&session.id, request).await {
        Err(error) if error.kind == ErrorKind::ClassNotFound => error,
        other => return other,
    };
    let is_alias = |name: &&String| name.starts_with(|c: char| c.is_ascii_uppercase());
    let name = request.class.as_ref().filter(is_alias);
    let (Some(name), None) = (name, &request.selector) else {
        return Err(refused);
    };
    let job = Job::Hover {
        cursor: name.len(),
        code: name.clone(),
        bound: Vec::new(),
    };
    let found = workspace.compiler.run(job).await?.outcome.hover;
    match found.contents {
        Some(docs) if found.kind.as_deref() == Some("alias") => Ok(DocsAnswer { docs }),
        _ => Err(refused),
    }
}
