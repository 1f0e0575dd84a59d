//! Commands about sessions: each a few file operations.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use beamtalk_agents::client::{Order, absolute, create, parse, quote};
use beamtalk_agents::{Config, Places, clean, clean_path, directory_alias};
use beamtalk_ninep::{Attachment, File};
use serde_json::{Value, json};

use super::NewArguments;
use super::context::{Client, Ending, Failure, emit, emit_raw, say};
use super::daemon::ensure_started;
use crate::exit::Exit;
use crate::terminal::aligned;

/// `@FILE` stands for the content of a file.
fn text_or_file(text: &str) -> Result<String, Failure> {
    match text.strip_prefix('@') {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|error| Failure::plain(format!("{file}: {error}")))
        }
        None => Ok(text.to_owned()),
    }
}

pub(super) fn new(client: &Client, options: NewArguments) -> Result<Exit, Failure> {
    ensure_started(client, options.no_start)?;
    let order = Order {
        directory: options.directory.as_deref().map(absolute).transpose()?,
        context: options.context.as_deref().map(text_or_file).transpose()?,
        backend: options.backend,
        sandbox: options.sandbox,
        model: options.model,
        level: options.level,
        alias: options.alias,
        role: options.role,
        worktree: options.worktree,
        base: options.base,
    };
    let tree = client.tree()?;
    let backend = order.backend.clone();
    let id = order.place(&tree)?;
    warn_about(client, &backend)?;
    if options.wait {
        let state = wait_state(client, &tree, &id, "")?;
        if state != "idle" {
            let record = parse(&tree.read_text(&format!("{id}/info"))?)?;
            let reason = record
                .get("last_error")
                .and_then(Value::as_str)
                .unwrap_or(&state)
                .to_owned();
            return Err(Failure::plain(format!("session failed: {reason}")));
        }
    }
    if client.json {
        client.print(&parse(&tree.read_text(&format!("{id}/info"))?)?)?;
    } else {
        say(&id)?;
    }
    Ok(Exit::Success)
}

/// Tell what sessions of a backend may do that their sandbox does not stop.
fn warn_about(client: &Client, backend: &str) -> Result<(), Failure> {
    // A configuration that cannot be read made no session.
    let config = Config::load(&Places::of(&client.living_namespace()).config).ok();
    if let Some(notice) = config.and_then(|config| config.notice_about(backend)) {
        writeln!(std::io::stderr(), "beamtalk agents: note: {notice}")?;
    }
    Ok(())
}

pub(super) fn spawn(
    client: &Client,
    backend: &str,
    role: &str,
    directory: Option<String>,
    no_start: bool,
) -> Result<Exit, Failure> {
    ensure_started(client, no_start)?;
    let directory = clean_path(&absolute(&directory.unwrap_or_else(|| ".".to_owned()))?);
    let alias = directory_alias(&directory, role);
    let tree = client.tree()?;
    let line = format!(
        "new {} {} role={} alias={alias}",
        quote(backend),
        quote(&directory),
        quote(role)
    );
    let id = create(&tree, &line)?;
    warn_about(client, backend)?;
    if client.json {
        client.print(&parse(&tree.read_text(&format!("{id}/info"))?)?)?;
    } else {
        say(&format!("{id} (alias: {alias})"))?;
    }
    Ok(Exit::Success)
}

pub(super) fn list(client: &Client) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    if client.json {
        client.print(&parse(&tree.read_text("list.json")?)?)?;
        return Ok(Exit::Success);
    }
    let text = tree.read_text("list")?;
    let mut rows = vec![vec!["ID", "BACKEND", "STATE", "ALIAS", "ROLE", "CWD"]];
    rows.extend(text.lines().map(|line| line.split('\t').collect()));
    table(&rows)
}

fn table(rows: &[Vec<&str>]) -> Result<Exit, Failure> {
    for line in aligned(rows) {
        say(&line)?;
    }
    Ok(Exit::Success)
}

pub(super) fn show(client: &Client, name: &str) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    let record = parse(&tree.read_text(&format!("{id}/info"))?)?;
    if client.json {
        client.print(&record)?;
        return Ok(Exit::Success);
    }
    if let Value::Object(map) = &record {
        for (key, value) in map {
            match value {
                Value::String(text) => say(&format!("{key}: {text}"))?,
                Value::Null => say(&format!("{key}: -"))?,
                other => say(&format!("{key}: {other}"))?,
            }
        }
    }
    Ok(Exit::Success)
}

/// Queue a prompt and tell its place.
fn queue(client: &Client, tree: &Attachment, id: &str, text: &[u8]) -> Result<Exit, Failure> {
    tree.write(&format!("{id}/queue"), text)?;
    let lines = tree.read_text(&format!("{id}/queue"))?;
    let waiting = lines.lines().filter(|line| line.contains(r#""state":"waiting""#));
    let before = waiting.count().saturating_sub(1);
    if client.json {
        client.print(&json!({"queued": true, "before": before}))?;
    } else {
        say(&format!("queued ({before} before it)"))?;
    }
    Ok(Exit::Success)
}

pub(super) fn prompt(
    client: &Client,
    name: &str,
    text: Option<String>,
    wait: bool,
    now: bool,
) -> Result<Exit, Failure> {
    let text = match text {
        Some(text) if text != "-" => text.into_bytes(),
        _ => {
            let mut bytes = Vec::new();
            std::io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    };
    let (tree, id) = client.session(name)?;
    let began = Instant::now();
    let mut file: File = loop {
        // Whoever waits for the answer waits for the turn before it too.
        if wait && !now {
            wait_state(client, &tree, &id, "idle stopped error exited")?;
        }
        let mut file = tree.open(&format!("{id}/prompt"), 2)?;
        match file.write_document(&text).map_err(Failure::from) {
            // Somebody else was faster.
            Err(failure) if wait && !now && failure.is_busy() => {}
            Err(failure) if !now && failure.is_busy() => return queue(client, &tree, &id, &text),
            outcome => {
                outcome?;
                break file;
            }
        }
    };
    if !wait {
        return client.done();
    }
    let limit = client.timeout.map(|limit| limit.saturating_sub(began.elapsed()));
    let mut output = file.read_next(limit)?.as_ref().to_vec();
    if output.is_empty() {
        // A turn without output, unless the daemon ended instead of the turn.
        tree.read(&format!("{id}/state")).map_err(|_| daemon_stopped())?;
    } else {
        output.extend(file.read_to_end()?);
    }
    if client.json {
        let record = parse(&tree.read_text(&format!("{id}/info"))?)?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let turn = record.get("turns").cloned().unwrap_or_default();
        client.print(
            &json!({"id": id, "turn": turn, "output": output, "ms": began.elapsed().as_millis() as u64}),
        )?;
    } else {
        emit(&output)?;
    }
    Ok(Exit::Success)
}

/// Wait on the `wait` file, for the words if there are any.
pub(super) fn wait_state(
    client: &Client,
    tree: &Attachment,
    id: &str,
    words: &str,
) -> Result<String, Failure> {
    let mut file = tree.open(&format!("{id}/wait"), 2)?;
    if !words.is_empty() {
        file.write_document(words.as_bytes())?;
    }
    let state = file.read_next(client.timeout)?;
    if state.is_empty() {
        return Err(daemon_stopped());
    }
    Ok(String::from_utf8_lossy(state.as_ref()).trim().to_owned())
}

/// What somebody waited for will not come.
fn daemon_stopped() -> Failure {
    Failure::new(Ending::Unreachable, "the daemon stopped")
}

pub(super) fn wait(client: &Client, name: &str, states: Option<String>) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    let words = states.unwrap_or_default().replace(',', " ");
    let state = wait_state(client, &tree, &id, &words)?;
    if client.json {
        client.print(&json!({"id": id, "state": state}))?;
    } else {
        say(&state)?;
    }
    Ok(Exit::Success)
}

pub(super) fn output(
    client: &Client,
    name: &str,
    follow: bool,
    raw: bool,
    tail: Option<u64>,
) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    if !follow {
        let mut bytes = tree.read(&format!("{id}/output"))?;
        if let Some(tail) = tail {
            let excess = bytes
                .len()
                .saturating_sub(usize::try_from(tail).unwrap_or(usize::MAX));
            bytes.drain(..excess);
        }
        let bytes = if raw { bytes } else { clean(&bytes).into_bytes() };
        if client.json {
            client.print(&json!({"output": String::from_utf8_lossy(&bytes)}))?;
        } else if raw {
            emit_raw(&bytes)?;
        } else {
            emit(&bytes)?;
        }
        return Ok(Exit::Success);
    }
    let mut file = tree.open(&format!("{id}/output.follow"), 2)?;
    if let Some(tail) = tail {
        file.write_at(0, format!("tail {tail}").as_bytes())?;
    }
    let mut waiting: Vec<u8> = Vec::new();
    loop {
        let piece = file.read_next(client.timeout)?;
        if piece.is_empty() {
            emit(clean(&waiting).as_bytes())?;
            return Ok(Exit::Success);
        }
        if raw {
            emit_raw(piece.as_ref())?;
            continue;
        }
        waiting.extend_from_slice(piece.as_ref());
        // Whole lines only: the rest of a line may change what came before.
        if let Some(end) = waiting.iter().rposition(|byte| *byte == b'\n') {
            let lines: Vec<u8> = waiting.drain(..=end).collect();
            emit(clean(&lines).as_bytes())?;
        }
    }
}

pub(super) fn log(client: &Client, name: &str, follow: bool) -> Result<Exit, Failure> {
    if !follow {
        return print_file(client, name, "log");
    }
    let (tree, id) = client.session(name)?;
    let mut file = tree.open(&format!("{id}/log.follow"), 2)?;
    copy_stream(client, &mut file)
}

/// Print a stream until it ends.
pub(super) fn copy_stream(client: &Client, file: &mut File) -> Result<Exit, Failure> {
    loop {
        let piece = file.read_next(client.timeout)?;
        if piece.is_empty() {
            return Ok(Exit::Success);
        }
        emit(piece.as_ref())?;
    }
}

pub(super) fn print_file(client: &Client, name: &str, file: &str) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    let bytes = tree.read(&format!("{id}/{file}"))?;
    if client.json {
        let text = String::from_utf8_lossy(&bytes);
        // A word is a value, not a line.
        let text = if file == "state" { text.trim_end() } else { &text };
        client.print(&json!({ file: text }))?;
    } else {
        emit(&bytes)?;
    }
    Ok(Exit::Success)
}

pub(super) fn write_file(client: &Client, name: &str, file: &str, text: &str) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    tree.write(&format!("{id}/{file}"), text.as_bytes())?;
    client.done()
}

pub(super) fn state(client: &Client, name: &str, state: Option<String>) -> Result<Exit, Failure> {
    match state {
        None => print_file(client, name, "state"),
        Some(state) => write_file(client, name, "state", &state),
    }
}

pub(super) fn context(
    client: &Client,
    name: &str,
    text: Option<String>,
    clear: bool,
) -> Result<Exit, Failure> {
    match text {
        _ if clear => write_file(client, name, "context", ""),
        None => print_file(client, name, "context"),
        Some(text) => write_file(client, name, "context", &text_or_file(&text)?),
    }
}

pub(super) fn acl(client: &Client, name: &str, file: Option<String>) -> Result<Exit, Failure> {
    match file {
        None => print_file(client, name, "acl"),
        Some(file) => write_file(client, name, "acl", &text_or_file(&file)?),
    }
}

/// Words as a line of a ctl file. A single one is a line already; of several each stays what it is.
pub(super) fn command_line(words: &[String]) -> String {
    let plain = |word: &String| {
        !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"')
    };
    match words {
        [line] => line.clone(),
        words => words
            .iter()
            .map(|word| {
                if plain(word) {
                    word.clone()
                } else {
                    format!("'{}'", word.replace('\'', "''"))
                }
            })
            .collect::<Vec<_>>()
            .join(" "),
    }
}

pub(super) fn ctl(client: &Client, name: &str, line: &str) -> Result<Exit, Failure> {
    let (tree, id) = client.session(name)?;
    emit(&tree.rpc(&format!("{id}/ctl"), line.as_bytes())?)?;
    client.done()
}

pub(super) fn prune(client: &Client) -> Result<Exit, Failure> {
    let lines = client.tree()?.rpc("ctl", b"prune")?;
    emit(&lines)?;
    Ok(Exit::Success)
}

pub(super) fn kill(client: &Client, names: &[String]) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    let mut failed = None;
    for name in names {
        let killed = client
            .resolve(&tree, name)
            .and_then(|id| Ok(tree.rpc(&format!("{id}/ctl"), b"kill")?))
            // A copy of a repository that holds changes is left, and where.
            .and_then(|answer| emit(&answer));
        // The others are killed all the same; the first failure is told.
        failed = failed.or(killed.err());
    }
    match failed {
        Some(failure) => Err(failure),
        None => client.done(),
    }
}

pub(super) fn events(
    client: &Client,
    since: Option<u64>,
    types: Option<&str>,
    source: Option<&str>,
    no_follow: bool,
) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    if no_follow {
        let wanted: Vec<&str> = types.map(|types| types.split(',').collect()).unwrap_or_default();
        let source = source.map(|name| client.resolve(&tree, name).unwrap_or_else(|_| name.to_owned()));
        for line in tree.read_text("events.json")?.lines() {
            let event = parse(line)?;
            let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
            let newer = event.get("seq").and_then(Value::as_u64).unwrap_or(0) > since.unwrap_or(0);
            let of_type = wanted.is_empty() || wanted.contains(&text("type"));
            let from = source.as_ref().is_none_or(|source| text("source") == source);
            if newer && of_type && from {
                say(line)?;
            }
        }
        return Ok(Exit::Success);
    }
    let mut commands = Vec::new();
    if let Some(seq) = since {
        commands.push(format!("since {seq}"));
    }
    if let Some(types) = types {
        commands.push(format!("type {types}"));
    }
    if let Some(source) = source {
        commands.push(format!("source {source}"));
    }
    let mut file = tree.open("events", 2)?;
    if !commands.is_empty() {
        file.write_at(0, commands.join(";").as_bytes())?;
    }
    copy_stream(client, &mut file)
}

pub(super) fn backends(client: &Client) -> Result<Exit, Failure> {
    let text = client.tree()?.read_text("backends")?;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, '\t').collect()).collect();
    if client.json {
        let objects: Vec<Value> = rows
            .iter()
            .map(|row| json!({"name": row.first(), "status": row.get(1), "description": row.get(2)}))
            .collect();
        client.print(&Value::Array(objects))?;
        return Ok(Exit::Success);
    }
    table(&rows)
}

pub(super) fn shelf(client: &Client, shelf: &str) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    let mut names: Vec<String> = Vec::new();
    for stat in tree.list(shelf)? {
        names.push(
            stat.name
                .trim_end_matches(".md")
                .trim_end_matches(".sh")
                .to_owned(),
        );
    }
    if client.json {
        client.print(&json!(names))?;
    } else {
        for name in names {
            say(&name)?;
        }
    }
    Ok(Exit::Success)
}

pub(super) fn recover(client: &Client) -> Result<Exit, Failure> {
    let answer = client.tree()?.rpc("ctl", b"recover")?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    if client.json {
        client.print(&json!(text.lines().collect::<Vec<_>>()))?;
    } else {
        emit(text.as_bytes())?;
    }
    Ok(Exit::Success)
}

/// How often files are looked at that cannot be followed.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(300);
