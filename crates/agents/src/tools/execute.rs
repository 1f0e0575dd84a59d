//! Programs in other languages: each in a session of the shell, in a sandbox, in a directory of its own that is gone
//! afterwards.

use std::fs;
use std::io::Write;
use std::time::Duration;

use beamtalk_mcp::{HostError, Program, TreeAct};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Tree;

/// What is kept of what a program says.
const OUTPUT_BYTES: usize = 64 * 1024;
const CODE: &str = "program";
const OUTPUT: &str = "output";
const STATUS: &str = "status";

fn failed(cause: impl ToString) -> HostError {
    Box::new(ErrorBody::new(ErrorKind::InternalError, cause.to_string()))
}

/// A session that is ended when nobody waits for its program any more.
struct Ends<'a> {
    tree: &'a Tree,
    id: String,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let (tree, path) = (self.tree.clone(), format!("agents/{}/ctl", self.id));
        tokio::task::spawn_local(async move {
            let text = "kill".to_owned();
            drop(tree.act(TreeAct::Write { path, text }).await);
        });
    }
}

/// Run a program: what it said, and how it ended.
pub async fn execute(tree: &Tree, program: Program) -> Result<(String, i64), HostError> {
    let directory = tempfile::Builder::new()
        .prefix("beamtalk-code-")
        .tempdir()
        .map_err(failed)?;
    let place = directory.path();
    let mut file = fs::File::create_new(place.join(CODE)).map_err(failed)?;
    file.write_all(program.code.as_bytes()).map_err(failed)?;
    let order = TreeAct::Ask {
        path: "agents/ctl".to_owned(),
        text: format!("new shell '{}' 'sandbox={}'", place.display(), program.sandbox),
    };
    let id = tree.act(order).await?.trim().to_owned();
    let session = Ends { tree, id };
    // A shell that has just been started is not ready yet.
    tree.act(TreeAct::Read(format!("agents/{}/wait", session.id)))
        .await?;
    let line = format!(
        "{} ./{CODE} >{OUTPUT} 2>&1 </dev/null; echo $? >{STATUS}",
        program.interpreter
    );
    let prompt = TreeAct::Ask {
        path: format!("agents/{}/prompt", session.id),
        text: line,
    };
    let limit = Duration::from_secs(program.seconds);
    let done = tokio::time::timeout(limit, tree.act(prompt)).await;
    drop(session);
    match done {
        Ok(said) => said?,
        Err(_) => {
            let message = format!("the program did not end within {} s", program.seconds);
            let body = ErrorBody::new(ErrorKind::EvalLimit, message).detail("limit", "time");
            return Err(Box::new(body));
        }
    };
    let text = |name: &str| {
        let bytes = fs::read(place.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let Ok(status) = text(STATUS).trim().parse() else {
        return Err(Box::new(ErrorBody::new(
            ErrorKind::from("agents"),
            "the session ended before its program",
        )));
    };
    let mut output = text(OUTPUT);
    output.truncate(output.floor_char_boundary(OUTPUT_BYTES));
    Ok((output, status))
}
