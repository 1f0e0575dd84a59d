//! What people do with a tree beyond single files: copy, follow, look through, edit.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use beamtalk_ninep::{Error, Stat};
use beamtalk_repl::harmless::Sink;
use regex::Regex;

use super::{Arguments, Failure, Remote, copy, print, reach};

/// A path of this machine: `-`, or one that says so by its beginning. With a server named, `/` begins a path there.
fn is_local(arguments: &Arguments, path: &str) -> bool {
    let is_rooted = path.starts_with('/') && arguments.address.is_none();
    path == "-" || path.starts_with("./") || path.starts_with("../") || is_rooted
}

pub(super) fn cp(arguments: &Arguments, from: &str, to: &str) -> Result<(), Failure> {
    let bytes = if is_local(arguments, from) {
        let mut bytes = Vec::new();
        if from == "-" {
            std::io::stdin().read_to_end(&mut bytes)?;
        } else {
            bytes = std::fs::read(from).map_err(|error| Failure::Failed(format!("read {from}: {error}")))?;
        }
        bytes
    } else {
        let remote = reach(arguments, from)?;
        let read = remote.tree.read(&remote.path);
        read.map_err(|error| remote.failed("read", &error))?
    };
    if to == "-" {
        return Ok(print(&bytes)?);
    }
    if is_local(arguments, to) {
        let made = std::fs::File::create(to).and_then(|mut file| file.write_all(&bytes));
        return made.map_err(|error| Failure::Failed(format!("write {to}: {error}")));
    }
    store(&reach(arguments, to)?, &bytes)
}

/// Write a whole file, which is made if it is not there.
fn store(remote: &Remote, bytes: &[u8]) -> Result<(), Failure> {
    let opened = match remote.tree.open(&remote.path, 0x11) {
        Err(Error::Refused(refused)) if refused.text == "not found" => {
            remote.tree.create(&remote.path, 0o600, 1)
        }
        outcome => outcome,
    };
    let mut file = opened.map_err(|error| remote.failed("open", &error))?;
    let written = file.write_document(bytes);
    written.map_err(|error| remote.failed("write", &error))?;
    file.close().map_err(|error| remote.failed("close", &error))
}

/// Where what is added to a file can be followed.
fn follower(path: &str) -> String {
    match path.strip_suffix("changes/log") {
        Some(front) => format!("{front}changes/follow"),
        None => format!("{path}.follow"),
    }
}

pub(super) fn cat(arguments: &Arguments, paths: &[String], follows: bool) -> Result<(), Failure> {
    for path in paths {
        let remote = reach(arguments, path)?;
        // Opened first: what comes between the two reads is in both or in one, never in none.
        let stream = follows.then(|| remote.tree.open(&follower(&remote.path), 0));
        let mut file = remote.open(0)?;
        if !follows || !is_live(&remote.stat()?) {
            copy(&remote, &mut file)?;
        }
        match stream {
            Some(Ok(mut stream)) => copy(&remote, &mut stream)?,
            Some(Err(_)) => copy(&remote, &mut file)?,
            None => {}
        }
    }
    Ok(())
}

/// A stream, a ctl or an rpc file: reading it would wait, or do something.
fn is_live(stat: &Stat) -> bool {
    stat.qid.version == 0 && !stat.is_directory()
}

/// Visit a directory and everything below it, in order, with the depth of each.
fn walk(
    remote: &Remote,
    path: &str,
    depth: usize,
    visit: &mut dyn FnMut(&str, &Stat, usize) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let listed = match remote.tree.list(path) {
        Ok(listed) => listed,
        // Gone meanwhile, or not ours to see: the rest is shown all the same.
        Err(Error::Refused(_)) if depth > 0 => return Ok(()),
        Err(error) => return Err(remote.failed("open", &error)),
    };
    for stat in listed {
        let inner = format!("{path}/{}", stat.name);
        if visit(&inner, &stat, depth)? && stat.is_directory() {
            walk(remote, &inner, depth + 1, visit)?;
        }
    }
    Ok(())
}

fn whole(remote: &Remote) -> &str {
    remote.path.trim_end_matches('/')
}

/// A path of the server as the user would write it.
fn shown(remote: &Remote, path: &str) -> String {
    let root = remote.shown.trim_end_matches('/');
    format!("{root}{}", path.strip_prefix(whole(remote)).unwrap_or(path))
}

pub(super) fn tree(arguments: &Arguments, path: &str, deepest: Option<usize>) -> Result<(), Failure> {
    let remote = reach(arguments, path)?;
    let mut out = Sink::stdout();
    out.piece(format!("{path}\n").as_bytes())?;
    walk(&remote, whole(&remote), 0, &mut |_, stat, depth| {
        let end = if stat.is_directory() { "/" } else { "" };
        out.piece(format!("{}{}{end}\n", "  ".repeat(depth + 1), stat.name).as_bytes())?;
        Ok(deepest.is_none_or(|deepest| depth + 1 < deepest))
    })?;
    Ok(out.end()?)
}

/// A pattern of names, with `*` and `?`, as an expression.
fn pattern(text: &str) -> Result<Regex, Failure> {
    let mut expression = String::from("^");
    for c in text.chars() {
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            c => expression.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
        }
    }
    expression.push('$');
    Regex::new(&expression).map_err(|error| Failure::Usage(error.to_string()))
}

pub(super) fn find(arguments: &Arguments, path: &str, name: &str) -> Result<(), Failure> {
    let wanted = pattern(name)?;
    let remote = reach(arguments, path)?;
    let mut out = Sink::stdout();
    walk(&remote, whole(&remote), 0, &mut |path, stat, _| {
        if wanted.is_match(&stat.name) {
            out.piece(format!("{}\n", shown(&remote, path)).as_bytes())?;
        }
        Ok(true)
    })?;
    Ok(out.end()?)
}

pub(super) fn grep(
    arguments: &Arguments,
    text: &str,
    paths: &[String],
    ignores_case: bool,
) -> Result<(), Failure> {
    let wanted = regex::RegexBuilder::new(text)
        .case_insensitive(ignores_case)
        .build()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let mut found = false;
    let mut out = Sink::stdout();
    for path in paths {
        let remote = reach(arguments, path)?;
        let mut search = |path: &str, stat: &Stat| -> Result<(), Failure> {
            if stat.is_directory() || is_live(stat) || stat.mode & 0o400 == 0 {
                return Ok(());
            }
            // Gone meanwhile.
            let bytes = remote.tree.read(path).unwrap_or_default();
            let content = String::from_utf8_lossy(&bytes);
            for (number, line) in (1..)
                .zip(content.lines())
                .filter(|(_, line)| wanted.is_match(line))
            {
                found = true;
                out.piece(format!("{}:{number}:{line}\n", shown(&remote, path)).as_bytes())?;
            }
            Ok(())
        };
        let stat = remote.stat()?;
        if stat.is_directory() {
            walk(&remote, whole(&remote), 0, &mut |path, stat, _| {
                search(path, stat)?;
                Ok(true)
            })?;
        } else {
            search(whole(&remote), &stat)?;
        }
    }
    out.end()?;
    if found {
        Ok(())
    } else {
        Err(Failure::Failed(format!("no line matches '{text}'")))
    }
}

/// Change a file with one's editor. A text that is refused is not lost.
pub(super) fn edit(arguments: &Arguments, path: &str) -> Result<(), Failure> {
    let remote = reach(arguments, path)?;
    let before = match remote.tree.read(&remote.path) {
        Ok(bytes) => bytes,
        Err(Error::Refused(refused)) if refused.text == "not found" => Vec::new(),
        Err(error) => return Err(remote.failed("read", &error)),
    };
    let name = remote.path.rsplit('/').next().unwrap_or("file").replace(':', "_");
    let copy: PathBuf = std::env::temp_dir().join(format!("beamtalk-{}-{name}.bt", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&copy)?;
    file.write_all(&before)?;
    drop(file);
    let chosen = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let editor = chosen.unwrap_or_else(|| "vi".to_owned());
    let line = format!("{editor} \"$1\"");
    let status = beamtalk_process::asked("sh")
        .args(["-c", &line, "sh"])
        .arg(&copy)
        .status()?;
    let after = std::fs::read(&copy)?;
    if after == before {
        std::fs::remove_file(&copy)?;
    }
    let kept = |failure: Failure| match failure {
        Failure::Failed(why) if after != before => {
            Failure::Failed(format!("{why}\nyour text is in {}", copy.display()))
        }
        other => other,
    };
    if !status.success() {
        let failed = format!("edit {path}: the editor failed ({status}), nothing was written");
        return Err(kept(Failure::Failed(failed)));
    }
    if after == before {
        return Ok(());
    }
    store(&remote, &after).map_err(kept)?;
    Ok(std::fs::remove_file(&copy)?)
}

/// The paths that begin so, one a line, directories with a slash.
pub(super) fn complete(arguments: &Arguments, begun: &str) -> Result<(), Failure> {
    let (directory, start) = begun.rsplit_once('/').unwrap_or(("agent", ""));
    let Ok(remote) = reach(arguments, directory) else {
        return Ok(());
    };
    let mut lines = String::new();
    for stat in remote.tree.list(&remote.path).unwrap_or_default() {
        if stat.name.starts_with(start) {
            let end = if stat.is_directory() { "/" } else { "" };
            lines.push_str(&format!("{directory}/{}{end}\n", stat.name));
        }
    }
    Ok(print(lines.as_bytes())?)
}
