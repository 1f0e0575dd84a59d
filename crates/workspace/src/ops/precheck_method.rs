//! A method that is compiled and installed nowhere.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::{Finding, PrecheckMethodAnswer};
use beamtalk_wire::requests::PrecheckMethod;

use super::eval::refuse_errors;
use super::save_method::compile_method;
use super::{Caller, check};
use crate::terms;
use crate::workspace::Workspace;

/// Findings of a method that is not installed, and those of its callers if it were.
pub(super) async fn precheck_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &PrecheckMethod,
) -> Result<PrecheckMethodAnswer, ErrorBody> {
    let compiled = compile_method(workspace, &request.into()).await?;
    if caller.connection.is_none() {
        refuse_errors(&compiled)?;
    }
    let mut checked = None;
    if !compiled.outcome.has_errors && compiled.outcome.definitions.iter().any(check::concerns_callers) {
        let texts = compiled.outcome.declares;
        checked = check::check(workspace, &request.class, Some(&request.selector), texts).await;
    }
    let mut findings: Vec<Finding> = compiled
        .outcome
        .diagnostics
        .into_iter()
        .map(Finding::Own)
        .collect();
    let (owners, not_checked) = match checked {
        Some(checked) => {
            findings.extend(checked.findings);
            (checked.owners, checked.skipped)
        }
        None => (Vec::new(), 0),
    };
    Ok(PrecheckMethodAnswer {
        findings,
        checked: owners.len() as u64,
        not_checked: not_checked as u64,
        total_candidates: (owners.len() + not_checked) as u64,
        cap_note: (not_checked > 0).then(|| format!("\u{2026} {not_checked} more not checked")),
        checked_owners: owners,
    })
}

/// The code of a method that is run once and installed nowhere (`Inspector evaluate:`).
pub(crate) async fn compile_evaluation(workspace: &Rc<Workspace>, args: &Term) -> Result<Term, ErrorBody> {
    let request: PrecheckMethod = terms::typed(terms::to_object(args))?;
    let compiled = compile_method(workspace, &(&request).into()).await?;
    refuse_errors(&compiled)?;
    let forms = compiled
        .outcome
        .modules
        .first()
        .map(|module| compiled.bytes(module.forms));
    let forms = Term::binary(forms.unwrap_or_default());
    Ok(terms::map([("forms", forms)]))
}
