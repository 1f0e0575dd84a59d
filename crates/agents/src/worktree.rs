//! A working copy of its own for a session, and what becomes of its work.
//!
//! The session's copy (`tree`) is a repository that borrows the owner's objects; everything in it, its configuration
//! too, may be written by the session. So git never runs with that configuration here: beside the copy lies a bare
//! repository of the daemon (`own.git`) which sees the objects of both and has settings of its own, and the files of the
//! copy are read through it. Filters, hooks and settings a session writes down are therefore never obeyed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use beamtalk_ninep::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::refusal;
use crate::files;

/// How long one command of git may take.
const LIMIT: Duration = Duration::from_mins(2);
/// As much of a diff as is shown.
const DIFF_LIMIT: usize = 8 << 20;
/// Settings that hold wherever git runs here.
const SETTINGS: [&str; 7] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "credential.helper=",
    "submodule.recurse=false",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// What a session's record says about its copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Worktree {
    /// The owner's checkout it was made from.
    pub(crate) repository: PathBuf,
    /// The owner's objects, which the session may read.
    pub(crate) objects: PathBuf,
    /// The directory of both repositories.
    pub(crate) root: PathBuf,
    pub(crate) branch: String,
    /// The branch it is merged into; none for a detached head.
    pub(crate) base: Option<String>,
    /// Where it began.
    pub(crate) commit: String,
    /// The ref in the owner's repository that keeps its objects.
    pub(crate) kept: String,
}

/// Whose settings apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    Owner,
    Nobody,
}

/// Whether something that git cannot take may be left out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    Everything,
    WhatCanBe,
}

struct Output {
    text: String,
    is_ok: bool,
    error: String,
}

async fn git(
    directory: &Path,
    whose: Whose,
    extra: &[(&str, &Path)],
    words: &[&str],
) -> Result<Output, Refusal> {
    #[expect(clippy::disallowed_methods, reason = "git, asked")]
    let mut command = tokio::process::Command::new("git");
    command.arg("-C").arg(directory);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.args(words).env_clear();
    let kept: &[&str] = match whose {
        Whose::Owner => &["PATH", "HOME", "USER", "LANG", "XDG_CONFIG_HOME"],
        Whose::Nobody => &["PATH"],
    };
    for name in kept {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    if whose == Whose::Nobody {
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HOME", "/nonexistent");
    }
    command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    for (name, value) in extra {
        command.env(name, value);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let failed = |reason: String| refusal(format!("git failed: {reason}"));
    let running = command.output();
    let output = match tokio::time::timeout(LIMIT, running).await {
        Ok(output) => output.map_err(|error| failed(error.to_string()))?,
        Err(_) => return Err(failed(format!("no answer in {} s", LIMIT.as_secs()))),
    };
    Ok(Output {
        text: String::from_utf8_lossy(&output.stdout).into_owned(),
        is_ok: output.status.success(),
        error: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

impl Output {
    /// The trimmed output of a command that must succeed.
    fn need(self) -> Result<String, Refusal> {
        if self.is_ok {
            return Ok(self.text.trim().to_owned());
        }
        let reason = self.error.lines().next().unwrap_or("no reason").to_owned();
        Err(refusal(format!("git failed: {reason}")))
    }

    fn when_ok(self) -> Option<String> {
        self.is_ok.then(|| self.text.trim().to_owned())
    }
}

/// A commit by its name: 40 or 64 hexadecimal digits.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What `HEAD` of the session's copy points to, read as text: nothing there is obeyed.
fn head(git_directory: &Path) -> Option<String> {
    let read = |name: &str| {
        let bytes = files::read_limited(&git_directory.join(name), 1 << 20).ok()?;
        String::from_utf8(bytes).ok()
    };
    let head = read("HEAD")?;
    let Some(name) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned()).filter(|text| is_commit(text));
    };
    let is_plain = name.starts_with("refs/") && !name.split('/').any(|part| part.is_empty() || part == "..");
    if !is_plain {
        return None;
    }
    let loose = read(name).map(|text| text.trim().to_owned());
    let packed = || {
        let text = read("packed-refs")?;
        let found = text
            .lines()
            .find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
        found.map(str::to_owned)
    };
    loose.or_else(packed).filter(|text| is_commit(text))
}

impl Worktree {
    /// Where the session works.
    pub(crate) fn path(&self) -> PathBuf {
        self.root.join("tree")
    }

    fn own(&self) -> PathBuf {
        self.root.join("own.git")
    }

    /// Make a copy for a session of the repository that `directory` is in.
    pub(crate) async fn create(
        directory: &Path,
        root: &Path,
        id: &str,
        name: &str,
        branch: Option<&str>,
        base: Option<&str>,
    ) -> Result<Self, Refusal> {
        let owner = |words: Vec<String>| async move {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            git(directory, Whose::Owner, &[], &words).await
        };
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let top = owner(words("rev-parse --show-toplevel")).await?;
        let Some(repository) = top.when_ok().filter(|path| !path.is_empty()) else {
            return Err(refusal("not a git repository"));
        };
        let common = owner(words("rev-parse --path-format=absolute --git-common-dir")).await?;
        let objects = PathBuf::from(common.need()?).join("objects");
        let format = owner(words("rev-parse --show-object-format")).await?.need()?;
        let current = owner(words("symbolic-ref -q --short HEAD")).await?.when_ok();
        let wanted = base.map_or_else(
            || current.clone().unwrap_or_else(|| "HEAD".to_owned()),
            str::to_owned,
        );
        let commit = owner(vec![
            "rev-parse".to_owned(),
            "--verify".to_owned(),
            "-q".to_owned(),
            "--end-of-options".to_owned(),
            format!("{wanted}^{{commit}}"),
        ])
        .await?
        .when_ok()
        .filter(|commit| is_commit(commit))
        .ok_or_else(|| refusal(format!("invalid base: {wanted} is no commit")))?;
        let has_branch = |name: &str| {
            owner(vec![
                "show-ref".to_owned(),
                "--verify".to_owned(),
                "--quiet".to_owned(),
                format!("refs/heads/{name}"),
            ])
        };
        let base = if has_branch(&wanted).await?.is_ok {
            Some(wanted)
        } else {
            None
        };
        let branch = branch.map_or_else(|| format!("agents/{name}"), str::to_owned);
        let checked = owner(vec![
            "check-ref-format".to_owned(),
            format!("refs/heads/{branch}"),
        ]);
        if branch.starts_with('-') || !checked.await?.is_ok {
            return Err(refusal(format!("invalid branch: {branch}")));
        }
        if has_branch(&branch).await?.is_ok {
            return Err(refusal(format!("branch exists: {branch}")));
        }
        let worktree = Self {
            repository: PathBuf::from(repository),
            objects,
            root: root.to_owned(),
            branch,
            base,
            commit,
            kept: format!("refs/agents/{id}"),
        };
        let made = worktree.make(&format, id, name).await;
        if made.is_err() {
            drop(files::remove_tree(root));
        }
        made.map(|()| worktree)
    }

    /// The copy a directory holds, by the note left there.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let bytes = files::read_limited(&root.join("worktree.json"), 1 << 16).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    async fn make(&self, format: &str, id: &str, name: &str) -> Result<(), Refusal> {
        let stored = |error: std::io::Error| refusal(format!("git failed: {error}"));
        files::make_directory(&self.root).map_err(stored)?;
        let note = serde_json::to_vec(self).map_err(|_| Refusal::INTERNAL)?;
        files::replace(&self.root.join("worktree.json"), &note).map_err(stored)?;
        let nobody = |words: Vec<String>| async move {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            git(&self.root, Whose::Nobody, &[], &words).await?.need()
        };
        let init = |more: &[&str]| {
            let mut words = vec!["init".to_owned(), "-q".to_owned(), "--template=".to_owned()];
            words.push(format!("--object-format={format}"));
            words.extend(more.iter().map(|word| (*word).to_owned()));
            words
        };
        let initial = format!("--initial-branch={}", self.branch);
        nobody(init(&[&initial, "tree"])).await?;
        nobody(init(&["--bare", "own.git"])).await?;
        let borrow = |directory: PathBuf, from: &[&Path]| {
            let lines: String = from.iter().map(|path| format!("{}\n", path.display())).collect();
            let info = directory.join("objects/info");
            std::fs::create_dir_all(&info)
                .and_then(|()| files::replace(&info.join("alternates"), lines.as_bytes()))
                .map_err(stored)
        };
        let copy = self.path().join(".git");
        borrow(copy.clone(), &[&self.objects])?;
        borrow(self.own(), &[&self.objects, &copy.join("objects")])?;
        let at = |words: &[&str]| {
            let mut all = vec!["-C".to_owned(), "tree".to_owned()];
            all.extend(words.iter().map(|word| (*word).to_owned()));
            all
        };
        let reference = format!("refs/heads/{}", self.branch);
        nobody(at(&["update-ref", &reference, &self.commit])).await?;
        nobody(at(&["reset", "-q", "--hard"])).await?;
        nobody(at(&["config", "user.name", name])).await?;
        nobody(at(&["config", "user.email", &format!("{id}@agents.localhost")])).await?;
        // From here on the owner's repository keeps what the copy borrows.
        let words = ["update-ref", &self.kept, &self.commit];
        git(&self.repository, Whose::Owner, &[], &words)
            .await?
            .need()
            .map(drop)
    }

    /// A command of the daemon's own repository over the files of the copy.
    async fn inside(&self, words: &[&str]) -> Result<Output, Refusal> {
        let (own, tree) = (self.own(), self.path());
        let index = own.join("index");
        let extra = [
            ("GIT_DIR", own.as_path()),
            ("GIT_WORK_TREE", tree.as_path()),
            ("GIT_INDEX_FILE", index.as_path()),
        ];
        git(&self.root, Whose::Nobody, &extra, words).await
    }

    async fn is_ancestor(&self, one: &str, other: &str) -> Result<bool, Refusal> {
        let words = ["merge-base", "--is-ancestor", one, other];
        Ok(self.inside(&words).await?.is_ok)
    }

    /// What the session has committed last; where the copy began if that is no commit.
    async fn tip(&self) -> Result<String, Refusal> {
        let Some(found) = head(&self.path().join(".git")) else {
            return Ok(self.commit.clone());
        };
        let name = format!("{found}^{{commit}}");
        let is_there = self.inside(&["cat-file", "-e", &name]).await?.is_ok;
        Ok(if is_there { found } else { self.commit.clone() })
    }

    /// A commit that holds what the copy holds now, committed there or not. Each follows the one before it.
    /// With `Care::Everything` what git cannot take, such as a repository without commits inside the copy, is an error.
    async fn snapshot(&self, author: &str, id: &str, care: Care) -> Result<String, Refusal> {
        let tip = self.tip().await?;
        let last = self
            .inside(&["rev-parse", "-q", "--verify", "refs/heads/work"])
            .await?
            .when_ok();
        let mut parents = vec![tip.clone()];
        if let Some(last) = last.filter(|last| *last != tip)
            && !self.is_ancestor(&last, &tip).await?
        {
            if self.is_ancestor(&tip, &last).await? {
                parents = vec![last];
            } else {
                parents.push(last);
            }
        }
        self.inside(&["read-tree", &tip]).await?.need()?;
        let added = self.inside(&["add", "-A", "--ignore-errors", "--", "."]).await?;
        if care == Care::Everything {
            added.need()?;
        }
        let tree = self.inside(&["write-tree"]).await?.need()?;
        let first = parents.first().cloned().unwrap_or_default();
        let before = self
            .inside(&["rev-parse", &format!("{first}^{{tree}}")])
            .await?
            .need()?;
        let commit = if tree == before && parents.len() == 1 {
            first
        } else {
            let (name, mail) = (
                format!("user.name={author}"),
                format!("user.email={id}@agents.localhost"),
            );
            let message = format!("Work of {author}");
            let mut words = vec!["-c", &name, "-c", &mail, "commit-tree", &tree, "-m", &message];
            for parent in &parents {
                words.extend(["-p", parent]);
            }
            self.inside(&words).await?.need()?
        };
        self.inside(&["update-ref", "refs/heads/work", &commit])
            .await?
            .need()?;
        Ok(commit)
    }

    /// The commit of the base branch as it is now; where the copy began without one.
    async fn base_commit(&self) -> Result<String, Refusal> {
        let Some(base) = &self.base else {
            return Ok(self.commit.clone());
        };
        let words = ["rev-parse", "-q", "--verify", &format!("refs/heads/{base}")];
        let found = git(&self.repository, Whose::Owner, &[], &words).await?;
        Ok(found.when_ok().unwrap_or_else(|| self.commit.clone()))
    }

    /// `diff` and `diff.stat`: everything against the base, committed or not.
    pub(crate) async fn diff(&self, author: &str, id: &str, stat: bool) -> Result<String, Refusal> {
        let work = self.snapshot(author, id, Care::WhatCanBe).await?;
        let base = self.base_commit().await?;
        let range = format!("{base}...{work}");
        let mut words = vec!["diff", "--no-color", "--no-ext-diff", "--no-textconv"];
        if stat {
            words.push("--stat");
        }
        words.push(&range);
        let mut text = self.inside(&words).await?.text;
        if text.len() > DIFF_LIMIT {
            let mut end = DIFF_LIMIT;
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            text.truncate(end);
            text.push_str("\n… the rest is left out\n");
        }
        Ok(text)
    }

    /// What `worktree` reads as.
    pub(crate) async fn describe(&self, author: &str, id: &str) -> Result<Value, Refusal> {
        let work = self.snapshot(author, id, Care::WhatCanBe).await?;
        let base = self.base_commit().await?;
        let range = format!("{base}...{work}");
        // What is open is no commit yet.
        let committed = format!("{base}...{}", self.tip().await?);
        let counts = self
            .inside(&["rev-list", "--left-right", "--count", &committed])
            .await?
            .need()?;
        let mut counts = counts
            .split_whitespace()
            .filter_map(|count| count.parse::<u64>().ok());
        let (behind, ahead) = (counts.next(), counts.next());
        let names = self
            .inside(&["diff", "--name-only", "--no-ext-diff", &range])
            .await?
            .need()?;
        let files = names.lines().count();
        Ok(json!({
            "path": self.path(), "branch": self.branch, "base": self.base, "ahead": ahead, "behind": behind,
            "files_changed": files, "clean": files == 0,
        }))
    }

    /// Whether both would bring the same branch into the same repository.
    pub(crate) fn has_branch_of(&self, other: &Self) -> bool {
        self.branch == other.branch && self.repository == other.repository
    }

    pub(crate) async fn is_clean(&self, author: &str, id: &str) -> Result<bool, Refusal> {
        Ok(self.describe(author, id).await?["clean"] == true)
    }

    /// Bring the work into the base branch, or change nothing.
    pub(crate) async fn merge(&self, author: &str, id: &str) -> Result<(), Refusal> {
        let Some(base) = &self.base else {
            return Err(refusal("invalid base: the copy was not made from a branch"));
        };
        let work = self.snapshot(author, id, Care::Everything).await?;
        let owner = |words: Vec<String>| async move {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            git(&self.repository, Whose::Owner, &[], &words).await
        };
        let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let own = self.own().display().to_string();
        let bring = format!("+refs/heads/work:{}", self.kept);
        owner(words(&[
            "-c",
            "fetch.fsckObjects=true",
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            &own,
            &bring,
        ]))
        .await?
        .need()?;
        let reference = format!("refs/heads/{base}");
        let old = owner(words(&["rev-parse", "-q", "--verify", &reference]))
            .await?
            .need()?;
        let is_ahead = owner(words(&["merge-base", "--is-ancestor", &old, &work]))
            .await?
            .is_ok;
        let new = if is_ahead {
            work.clone()
        } else if owner(words(&["merge-base", "--is-ancestor", &work, &old]))
            .await?
            .is_ok
        {
            return Ok(());
        } else {
            let merged = owner(words(&["merge-tree", "--write-tree", "--name-only", &old, &work])).await?;
            let mut lines = merged.text.lines();
            let tree = lines.next().unwrap_or_default().to_owned();
            if !merged.is_ok {
                let names: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
                return Err(refusal(format!("merge conflict: {}", names.join(", "))));
            }
            let message = format!("Merge the work of {author}");
            owner(words(&[
                "commit-tree",
                &tree,
                "-p",
                &old,
                "-p",
                &work,
                "-m",
                &message,
            ]))
            .await?
            .need()?
        };
        match self.checkout_of(&reference).await? {
            None => owner(words(&["update-ref", &reference, &new, &old]))
                .await?
                .need()
                .map(drop),
            Some(path) => {
                let at = |all: &[&str]| {
                    let mut all = words(all);
                    all.splice(0..0, ["-C".to_owned(), path.clone()]);
                    all
                };
                let state = owner(at(&["status", "--porcelain", "--ignore-submodules=none"])).await?;
                if !state.need()?.is_empty() {
                    return Err(refusal(format!("base is checked out with changes: {path}")));
                }
                let moved = owner(at(&[
                    "merge",
                    "-q",
                    "--ff-only",
                    "--no-edit",
                    "--end-of-options",
                    &new,
                ]));
                moved.await?.need().map(drop)
            }
        }
    }

    /// The checkout of the owner's in which a branch is.
    async fn checkout_of(&self, reference: &str) -> Result<Option<String>, Refusal> {
        let words = ["worktree", "list", "--porcelain"];
        let list = git(&self.repository, Whose::Owner, &[], &words).await?.need()?;
        let mut path = None;
        for line in list.lines() {
            if let Some(found) = line.strip_prefix("worktree ") {
                path = Some(found.to_owned());
            } else if line.strip_prefix("branch ") == Some(reference) {
                return Ok(path);
            }
        }
        Ok(None)
    }

    /// Remove the copy and what the owner's repository keeps for it.
    pub(crate) async fn remove(&self) -> Result<(), Refusal> {
        let words = ["update-ref", "-d", &self.kept];
        // A repository that is gone keeps nothing.
        drop(git(&self.repository, Whose::Owner, &[], &words).await);
        files::remove_tree(&self.root).map_err(|error| refusal(format!("git failed: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_read_as_text_only() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let commit = "a".repeat(40);
        let write = |name: &str, text: &str| {
            let path = place.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("HEAD", "ref: refs/heads/x\n");
        assert_eq!(head(place), None);
        write("packed-refs", &format!("# pack-refs\n{commit} refs/heads/x\n"));
        assert_eq!(head(place), Some(commit.clone()));
        write("refs/heads/x", &"b".repeat(40));
        assert_eq!(head(place), Some("b".repeat(40)));
        for bad in [
            "ref: refs/../../secret",
            "ref: /etc/passwd",
            "--upload-pack=x",
            "",
            "ref: refs//x",
        ] {
            write("HEAD", bad);
            assert_eq!(head(place), None, "{bad}");
        }
        write("HEAD", &commit);
        assert_eq!(head(place), Some(commit));
    }
}
