//! `token` and `audit`.

use clap::Subcommand;
use serde_json::{Value, json};

use super::context::{Client, Failure, emit};
use super::sessions::LOOK_AGAIN;
use crate::exit::Exit;

#[derive(Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token and print it, once.
    Mint {
        name: String,
        /// read, control or session.
        level: String,
        id: Option<String>,
        /// Seconds until it expires.
        #[arg(long)]
        ttl: Option<u64>,
    },
    /// List the tokens.
    List,
    /// Make a token void and end its connections.
    Revoke { name: String },
}

pub(super) fn run(client: &Client, command: TokenCommand) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    let line = match &command {
        TokenCommand::Mint { name, level, id, ttl } => {
            let mut line = format!("mint '{}' {level}", name.replace('\'', "''"));
            if let Some(id) = id {
                line.push_str(&format!(" {}", client.resolve(&tree, id)?));
            }
            if let Some(ttl) = ttl {
                line.push_str(&format!(" ttl={ttl}"));
            }
            line
        }
        TokenCommand::List => "list".to_owned(),
        TokenCommand::Revoke { name } => format!("revoke '{}'", name.replace('\'', "''")),
    };
    let answer = String::from_utf8_lossy(&tree.rpc("tokens", line.as_bytes())?).into_owned();
    if !client.json {
        emit(answer.as_bytes())?;
        return Ok(Exit::Success);
    }
    match command {
        TokenCommand::Mint { .. } => client.print(&json!({"token": answer.trim()}))?,
        TokenCommand::Revoke { .. } => client.print(&json!({"ok": true}))?,
        TokenCommand::List => {
            let rows: Vec<Value> = answer
                .lines()
                .map(|line| {
                    let cells: Vec<&str> = line.split('\t').collect();
                    json!({"name": cells.first(), "level": cells.get(1), "expires": cells.get(2), "last_use": cells.get(3)})
                })
                .collect();
            client.print(&Value::Array(rows))?;
        }
    }
    Ok(Exit::Success)
}

pub(super) fn audit(client: &Client, follow: bool) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    let mut seen = 0;
    loop {
        let length = tree.stat("audit")?.length;
        // A rotated log starts again.
        seen = if seen > length { 0 } else { seen };
        if length > seen || !follow {
            let mut file = tree.open("audit", 0)?;
            file.seek(seen);
            let bytes = file.read_to_end()?;
            seen += bytes.len() as u64;
            emit(&bytes)?;
        }
        if !follow {
            return Ok(Exit::Success);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
