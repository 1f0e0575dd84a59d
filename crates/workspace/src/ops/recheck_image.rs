//! What is wrong with the code of the image: `recheck-image`, `reload-findings`.

use std::rc::Rc;

use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::{Finding, FindingsAnswer};

use crate::compile::job::Job;
use crate::workspace::Workspace;

/// Check all live classes again: those of the project, and those that were made in sessions and have no file.
pub(super) async fn recheck_image(workspace: &Rc<Workspace>) -> Result<FindingsAnswer, ErrorBody> {
    let (files, texts) = {
        let known = workspace.compiler.known.borrow();
        (known.files(|_| true), known.session_texts())
    };
    let checked = (files.len() + texts.len()) as u64;
    let job = Job::Recheck {
        installed: Vec::new(),
        files,
        texts,
    };
    let compiled = workspace.compiler.run(job).await?;
    let findings = compiled.outcome.diagnostics.into_iter().map(Finding::Own);
    Ok(FindingsAnswer {
        checked,
        stale: 0,
        findings: findings.collect(),
    })
}

/// What the last checks found.
pub(super) fn reload_findings(workspace: &Workspace) -> FindingsAnswer {
    let findings = workspace.findings.borrow();
    let mut classes: Vec<&String> = findings.keys().collect();
    classes.sort_unstable();
    let all = classes.iter().filter_map(|class| findings.get(*class));
    FindingsAnswer {
        checked: findings.len() as u64,
        stale: 0,
        findings: all.flatten().cloned().collect(),
    }
}
