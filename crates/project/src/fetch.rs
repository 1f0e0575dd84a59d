//! Git dependencies: a mirror for each URL below the state directory, a checkout of one commit for each package.
//!
//! Fetching runs the system's `git` without prompts, hooks, filters or submodules and with few protocols; it
//! runs no code of the dependency. A checkout is plain files: it has no repository of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use beamtalk_storage::StateDirectory;

use crate::error::{At, Result};
use crate::fault::{Blame, Fault};
use crate::files;
use crate::lock::{self, is_commit};
use crate::manifest::Reference;
use crate::progress::{Network, Progress};

/// Where a dependency comes from, and what the lock file says about it.
pub(crate) struct Wanted<'a> {
    pub name: &'a str,
    pub url: &'a str,
    pub reference: &'a Reference,
    /// The commit it must be at; none when the pin may move.
    pub pinned: Option<&'a str>,
}

/// The directory and the commit of a git dependency, fetched if it is not there.
pub(crate) fn checkout(
    progress: &mut dyn Progress,
    build: &Path,
    wanted: &Wanted<'_>,
) -> Result<(PathBuf, String)> {
    let Wanted {
        name, url, reference, ..
    } = wanted;
    let target = |sha: &str| {
        let short: String = sha.chars().take(12).collect();
        build.join("deps").join(name).join(format!("source-{short}"))
    };
    if let Some(sha) = wanted.pinned
        && target(sha).is_dir()
    {
        return Ok((target(sha), sha.to_owned()));
    }
    let mirror = Mirror::open(url)?;
    let sha = match (progress.network(), wanted.pinned) {
        (Network::Refused, Some(sha)) if mirror.has(sha) => sha.to_owned(),
        (Network::Refused, _) => {
            let message = format!("dependency '{name}' must be fetched from {url}, but --offline is given");
            return Err(Fault::failure("offline", message).into());
        }
        (Network::Allowed, _) => {
            progress.status(&format!("Fetching {name} from {url}"));
            mirror.fetch(reference).map_err(|fault| blame(fault, name))?;
            choose(&mirror, wanted)?
        }
    };
    let target = target(&sha);
    if !target.is_dir() {
        mirror.extract(&sha, &target)?;
    }
    Ok((target, sha))
}

/// The commit to take, which is the pinned one if there is any.
fn choose(mirror: &Mirror, wanted: &Wanted<'_>) -> Result<String, Fault> {
    let Wanted {
        name,
        url,
        reference,
        pinned,
    } = wanted;
    let found = mirror.resolve(reference);
    let mismatch = |now: String| {
        let message = format!(
            "dependency '{name}': {now}, but {} pins {}",
            lock::FILE_NAME,
            pinned.unwrap_or_default()
        );
        Fault::failure("lock_mismatch", message).with_hint(format!(
            "find out why; `beamtalk deps update {name}` accepts what is there now"
        ))
    };
    match (pinned, found) {
        // A branch moves by its nature; the pin stays as long as its commit is there.
        (Some(pinned), _) if matches!(reference, Reference::Branch(_)) && mirror.has(pinned) => {
            Ok((*pinned).to_owned())
        }
        (Some(pinned), Some(found)) if found == *pinned => Ok(found),
        (None, Some(found)) => Ok(found),
        (Some(_), Some(found)) => Err(mismatch(format!("{} of {url} is now {found}", reference.shown()))),
        (Some(_), None) => Err(mismatch(format!("{url} has no {} any more", reference.shown()))),
        (None, None) => Err(Fault::failure(
            "reference_missing",
            format!("dependency '{name}': {url} has no {}", reference.shown()),
        )),
    }
}

fn blame(fault: Fault, name: &str) -> Fault {
    Fault {
        message: format!("dependency '{name}': {}", fault.message),
        ..fault
    }
}

/// A bare repository with everything a URL has, shared by all projects of the user.
struct Mirror {
    url: String,
    path: PathBuf,
    /// Two commands never work on one mirror at once.
    _lock: File,
}

impl Mirror {
    fn open(url: &str) -> Result<Self> {
        let cache = StateDirectory::open(None)?.directory("cache")?.path_of("git");
        std::fs::create_dir_all(&cache).at("cannot create", &cache)?;
        let key: String = files::hash(url.as_bytes()).chars().take(16).collect();
        let path = cache.join(&key);
        let lock_path = cache.join(format!("{key}.lock"));
        let lock = File::create(&lock_path).at("cannot write", &lock_path)?;
        lock.lock().at("cannot lock", &lock_path)?;
        let mirror = Self {
            url: url.to_owned(),
            path,
            _lock: lock,
        };
        // A git that was killed leaves locks of its own; nobody else works here now.
        if mirror.path.is_dir() {
            for stale in files::find(&mirror.path, &["lock"])? {
                std::fs::remove_file(&stale).at("cannot remove", &stale)?;
            }
        }
        mirror.git(&["init", "--quiet", "--bare", "--template=", "."])?;
        // The last word on attributes: what is checked out is what was committed, and no filter runs.
        let info = mirror.path.join("info");
        std::fs::create_dir_all(&info).at("cannot create", &info)?;
        files::write_atomic(
            &info.join("attributes"),
            b"* -text -eol -ident -filter -working-tree-encoding\n",
        )?;
        Ok(mirror)
    }

    fn fetch(&self, reference: &Reference) -> Result<(), Fault> {
        let fetch = [
            "fetch",
            "--quiet",
            "--prune",
            "--force",
            "--no-tags",
            "--no-write-fetch-head",
        ];
        let all = [
            "--",
            &self.url,
            "+refs/heads/*:refs/heads/*",
            "+refs/tags/*:refs/tags/*",
        ];
        self.git(&[fetch.as_slice(), &all].concat())?;
        // A commit that no branch and no tag leads to can be asked for by its whole name.
        if let Reference::Revision(revision) = reference
            && is_commit(revision)
            && !self.has(revision)
        {
            let one = ["--", &self.url, revision.as_str()];
            // A server may refuse; then the commit is missing, which is told as such.
            drop(self.git(&[fetch.as_slice(), &one].concat()));
        }
        Ok(())
    }

    fn has(&self, sha: &str) -> bool {
        self.git(&["cat-file", "-e", &format!("{sha}^{{commit}}")])
            .is_ok()
    }

    fn resolve(&self, reference: &Reference) -> Option<String> {
        let name = match reference {
            Reference::Tag(name) => format!("refs/tags/{name}^{{commit}}"),
            Reference::Branch(name) => format!("refs/heads/{name}^{{commit}}"),
            Reference::Revision(name) => format!("{name}^{{commit}}"),
        };
        self.git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
            .ok()
    }

    /// Write the files of a commit, so that the directory is there with all of them or not at all.
    fn extract(&self, sha: &str, target: &Path) -> Result<()> {
        let parent = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).at("cannot create", parent)?;
        let place = tempfile::Builder::new()
            .prefix(".fetch-")
            .tempdir_in(parent)
            .at("cannot write to", parent)?;
        let files = place.path().join("files");
        std::fs::create_dir(&files).at("cannot create", &files)?;
        let index = place.path().join("index");
        for arguments in [
            ["read-tree", sha].as_slice(),
            &["checkout-index", "--all", "--quiet"],
        ] {
            let mut command = self.command(arguments);
            command
                .env("GIT_WORK_TREE", &files)
                .env("GIT_INDEX_FILE", &index)
                .current_dir(&files);
            run(command)?;
        }
        std::fs::rename(&files, target).at("cannot create", target)
    }

    fn git(&self, arguments: &[&str]) -> Result<String, Fault> {
        std::fs::create_dir_all(&self.path).map_err(|cause| Fault {
            blame: Blame::Environment,
            kind: "storage",
            message: format!("cannot create {}: {cause}", self.path.display()),
            hint: None,
        })?;
        run(self.command(arguments))
    }

    /// `git` on this mirror, with nothing of the caller's own repository and nobody to ask.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = beamtalk_process::asked("git");
        for name in FOREIGN {
            command.env_remove(name);
        }
        for setting in [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "submodule.recurse=false",
            "fetch.recurseSubmodules=false",
            "gc.auto=0",
            "http.lowSpeedLimit=100",
            "http.lowSpeedTime=30",
        ] {
            command.args(["-c", setting]);
        }
        command
            .args(arguments)
            .current_dir(&self.path)
            .env("GIT_DIR", &self.path)
            .env("GIT_ALLOW_PROTOCOL", "https:ssh:file")
            .env("GIT_TERMINAL_PROMPT", "0")
            // Set and empty: no program is asked, not even the one for ssh.
            .env("GIT_ASKPASS", "")
            .env("SSH_ASKPASS_REQUIRE", "never");
        if std::env::var_os("GIT_SSH_COMMAND").is_none() && std::env::var_os("GIT_SSH").is_none() {
            command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        command
    }
}

/// Variables that would make git work on another repository: they are set when a hook of that repository calls us.
const FOREIGN: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ATTR_SOURCE",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_TEMPLATE_DIR",
    "GIT_WORK_TREE",
];

fn run(mut command: Command) -> Result<String, Fault> {
    let output = command.output().map_err(|cause| Fault {
        blame: Blame::Environment,
        kind: "git_missing",
        message: format!("cannot run git: {cause}"),
        hint: Some("install git to use git dependencies".to_owned()),
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(Fault::failure("git_failed", format!("git: {}", message.trim())))
    }
}
