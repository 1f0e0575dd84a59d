//! `launch.json`: everything the launcher needs, so that nothing shows in process listings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use beamtalk_ninep::Refusal;
use serde::{Deserialize, Serialize};

use super::record::{Record, SandboxReport};
use crate::config::{Access, Config, Templates};
use crate::error::refusal;
use crate::places::{Places, own_program};
use crate::sandbox::{Kernel, hidden, view};
use crate::worktree::Worktree;

/// The next launch of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    pub(crate) id: String,
    /// Counts launches, so that the launcher and the tap find each other.
    pub(crate) number: u64,
    pub(crate) program: PathBuf,
    pub(crate) argv: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) cwd: String,
    /// The working directory without links, as it was when the session was made.
    pub(crate) place: PathBuf,
    pub(crate) paths: BTreeMap<String, Access>,
    /// Those of the paths that were granted as a part of the working directory.
    pub(crate) in_place: BTreeSet<String>,
    /// Never shown.
    pub(crate) hidden: Vec<PathBuf>,
    /// Shown where the configuration names them.
    pub(crate) stores: Vec<PathBuf>,
    pub(crate) network_limited: bool,
    pub(crate) bind_tcp: Vec<u16>,
    pub(crate) connect_tcp: Vec<u16>,
    pub(crate) mount: bool,
    pub(crate) ipc: bool,
    pub(crate) net: bool,
    pub(crate) pid: bool,
    pub(crate) landlock: bool,
    pub(crate) best_effort: bool,
    pub(crate) namespace: PathBuf,
    /// The directory of the door, which is put in the place of the namespace.
    pub(crate) door: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) tmp: PathBuf,
    /// Where a session with a copy of a repository works.
    #[serde(default)]
    pub(crate) worktree: Option<PathBuf>,
    /// How many files a program may have open, if the daemon may have more.
    pub(crate) open_files: Option<u64>,
}

impl Launch {
    /// Where the session finds its door.
    pub(crate) fn visible_namespace(&self) -> &Path {
        if self.mount { &self.namespace } else { &self.door }
    }
}

/// Build the launch of `record` from the current configuration.
pub(crate) fn plan(
    config: &Config,
    places: &Places,
    kernel: Kernel,
    record: &Record,
    number: u64,
    token: &str,
    resume: bool,
) -> Result<(Launch, SandboxReport), Refusal> {
    let backend = config.backend(&record.backend)?;
    let mut templates = Templates::new(places, &record.id, &record.cwd, record.model.as_deref());
    let program = backend.program(&templates)?;
    let wanted = config.sandbox(backend, &record.sandbox)?;
    templates.set("SELF", program.display().to_string());
    let mut words: Vec<&String> = backend.command.iter().collect();
    if record.model.is_some() {
        words.extend(&backend.model_args);
    }
    if let Some(conversation) = &record.conversation {
        templates.set("CONVERSATION", conversation.clone());
    }
    // Without a conversation to go on with it begins anew.
    let names_one = backend
        .resume_args
        .iter()
        .any(|word| word.contains("{CONVERSATION}"));
    if resume && (record.conversation.is_some() || !names_one) {
        words.extend(&backend.resume_args);
    }
    let argv = words
        .into_iter()
        .map(|word| templates.require(word))
        .collect::<Result<Vec<_>, _>>()?;

    let mut environment = BTreeMap::new();
    for entry in &wanted.env {
        match entry.split_once('=') {
            Some((name, value)) => {
                environment.insert(name.to_owned(), templates.require(value)?);
            }
            None => {
                if let Ok(value) = std::env::var(entry) {
                    environment.insert(entry.clone(), value);
                }
            }
        }
    }
    for (name, value) in &backend.environment {
        environment.insert(name.clone(), templates.require(value)?);
    }
    let tmp = places.session(&record.id).join("tmp");
    for (name, value) in [
        ("AGENT_ID", record.id.clone()),
        ("AGENT_BACKEND", record.backend.clone()),
        ("AGENT_TOKEN", token.to_owned()),
        ("TMPDIR", tmp.display().to_string()),
    ] {
        environment.insert(name.to_owned(), value);
    }
    let helpers = crate::helpers::directory(&tmp).display().to_string();
    let path = match environment.get("PATH").filter(|path| !path.is_empty()) {
        Some(path) => format!("{helpers}:{path}"),
        None => format!("{helpers}:/usr/local/bin:/usr/bin:/bin"),
    };
    environment.insert("PATH".to_owned(), path);
    // The terminal is tmux, whatever the daemon was started in, unless the configuration says otherwise.
    let sets_term = wanted.env.iter().any(|entry| entry.starts_with("TERM="));
    if !sets_term && !backend.environment.contains_key("TERM") {
        environment.insert("TERM".to_owned(), "tmux-256color".to_owned());
    }

    let mut missing = Vec::new();
    let mut paths = BTreeMap::new();
    let mut in_place = BTreeSet::new();
    let mut add = |path: String, access: Access| {
        let slot = paths.entry(path).or_insert(access);
        *slot = (*slot).max(access);
    };
    let place = record.place();
    let mut located = templates.clone();
    located.set("CWD", place.display().to_string());
    for (template, access) in &wanted.paths {
        let Ok(path) = located.fill(template) else {
            continue;
        };
        if Path::new(&path).exists() {
            if template.contains("{CWD}") {
                in_place.insert(path.clone());
            }
            add(path, *access);
        } else {
            missing.push(path);
        }
    }
    if wanted.add_exec {
        add(program.display().to_string(), Access::Rox);
    }
    // Its copy borrows objects of the owner's repository.
    if let Some(worktree) = &record.worktree {
        add(worktree.objects.display().to_string(), Access::Ro);
    }
    // Hooks and helpers of the session are this executable.
    if let Ok(own) = own_program() {
        add(own.display().to_string(), Access::Rox);
    }
    if wanted.ldd {
        for library in libraries(&program) {
            paths.entry(library).or_insert(Access::Rox);
        }
    }
    let limits_network = !wanted.unrestricted;
    let mount = wanted.mount && kernel.mount_namespace;
    let mut launch = Launch {
        id: record.id.clone(),
        number,
        program,
        argv,
        environment,
        cwd: record.cwd.clone(),
        hidden: hidden::state(places, &place),
        stores: hidden::stores(places),
        place,
        in_place,
        network_limited: limits_network,
        bind_tcp: wanted.bind_tcp.iter().copied().collect(),
        connect_tcp: wanted.connect_tcp.iter().copied().collect(),
        mount,
        ipc: wanted.ipc && kernel.mount_namespace,
        net: wanted.net && kernel.net_namespace,
        // What is hidden must not show in the `/proc` of others.
        pid: wanted.pid && kernel.pid_namespace && mount,
        landlock: kernel.landlock_abi > 0,
        best_effort: wanted.best_effort,
        namespace: places.namespace.clone(),
        door: places.door(&record.id),
        directory: places.session(&record.id),
        tmp,
        worktree: record.worktree.as_ref().map(Worktree::path),
        paths,
        open_files: None,
    };
    let namespace = launch.visible_namespace().display().to_string();
    launch.environment.insert("NAMESPACE".to_owned(), namespace);
    if wanted.pid && !launch.pid {
        missing.push("pid namespace".to_owned());
    }
    let report = check(&launch, kernel, missing)?;
    Ok((launch, report))
}

/// What the kernel cannot give: an error in strict mode, a line in the report otherwise.
fn check(launch: &Launch, kernel: Kernel, mut missing: Vec<String>) -> Result<SandboxReport, Refusal> {
    let mut weak: Vec<String> = Vec::new();
    if kernel.landlock_abi == 0 {
        weak.push("kernel has no Landlock".to_owned());
    }
    if launch.network_limited && kernel.landlock_abi < 4 && !launch.net {
        weak.push("network limits need Landlock ABI 4".to_owned());
    }
    if !launch.mount && kernel.landlock_abi < 9 {
        weak.push("cannot hide the tmux socket".to_owned());
    }
    if launch.mount {
        // A directory nobody may see is an error of its own, not a weakness of the kernel.
        view::view(launch, None).map_err(|reason| refusal(format!("sandbox: {reason}")))?;
    } else if let Some(path) = view::exposed(launch) {
        weak.push(format!("path {path} would expose the daemon's files"));
    }
    if let Some(reason) = weak.first()
        && !launch.best_effort
    {
        return Err(refusal(format!("sandbox: {reason}")));
    }
    for reason in &weak {
        tracing::warn!(session = %launch.id, reason, "sandbox is weaker than asked for");
    }
    missing.extend(weak);
    let used = [
        ("mount", launch.mount),
        ("pid", launch.pid),
        ("ipc", launch.ipc),
        ("net", launch.net),
    ];
    let namespaces = used
        .into_iter()
        .filter(|(_, used)| *used)
        .map(|(name, _)| name.to_owned())
        .collect();
    Ok(SandboxReport {
        landlock_abi: kernel.landlock_abi,
        namespaces,
        missing,
        open: open(launch, kernel),
    })
}

/// What nothing closes.
fn open(launch: &Launch, kernel: Kernel) -> Vec<String> {
    let abi = kernel.landlock_abi;
    [
        ("files", abi == 0),
        ("sockets", !launch.mount && abi < 9),
        ("abstract sockets", abi < 6 && !launch.net),
        ("signals", !launch.pid && abi < 6),
        ("processes", !launch.pid),
        ("tcp", launch.network_limited && !launch.net && abi < 4),
        ("udp", launch.network_limited && !launch.net),
    ]
    .into_iter()
    .filter(|(_, open)| *open)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// The shared libraries of a program, as its loader lists them.
#[expect(clippy::disallowed_methods, reason = "the loader, asked")]
fn libraries(program: &Path) -> Vec<String> {
    let output = std::process::Command::new("ldd")
        .arg(program)
        .stdin(std::process::Stdio::null())
        .output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::plan;
    use crate::config::{Access, Config};
    use crate::places::Places;
    use crate::sandbox::Kernel;
    use crate::session::record::Record;

    fn setup(backend: &str) -> (tempfile::TempDir, Config, Places) {
        let base = tempfile::tempdir().unwrap();
        let config = base.path().join("config");
        std::fs::create_dir_all(config.join("backends")).unwrap();
        std::fs::write(config.join("backends/b.yaml"), backend).unwrap();
        let places = Places {
            namespace: base.path().join("ns"),
            base: base.path().join("state"),
            state: base.path().join("state/agents/ns-0"),
            config: config.clone(),
            home: base.path().to_owned(),
        };
        let config = Config::load(&config).unwrap();
        (base, config, places)
    }

    fn kernel(abi: u32, mount: bool) -> Kernel {
        Kernel {
            landlock_abi: abi,
            mount_namespace: mount,
            net_namespace: mount,
            pid_namespace: mount,
        }
    }

    #[test]
    fn the_environment_is_filtered_and_templates_are_filled() {
        let (_base, config, places) = setup(
            "command: [/bin/sh, '{SESSION_ID}']\nenvironment: {WHERE: '{CWD}'}\nenv: ['MODE=strict']\n",
        );
        let record = Record::new("5e1fa0c2", "b", "/tmp", 1);
        let (launch, report) = plan(&config, &places, kernel(7, true), &record, 1, "bt9_x", false).unwrap();
        assert_eq!(launch.argv, ["/bin/sh", "5e1fa0c2"]);
        let value = |name: &str| launch.environment.get(name).map(String::as_str);
        assert_eq!(
            (value("WHERE"), value("MODE"), value("AGENT_ID")),
            (Some("/tmp"), Some("strict"), Some("5e1fa0c2"))
        );
        assert_eq!(value("TERM"), Some("tmux-256color"));
        assert!(
            !launch.environment.contains_key("SSH_AUTH_SOCK")
                && !launch.environment.contains_key("CARGO_MANIFEST_DIR")
        );
        assert_eq!(launch.paths.get("/tmp"), Some(&Access::Rwx));
        assert_eq!(report.namespaces, ["mount", "pid", "ipc", "net"]);
        assert!(report.open.is_empty(), "{report:?}");
    }

    #[test]
    fn strict_mode_refuses_what_the_kernel_lacks() {
        let (_base, config, places) = setup("command: [/bin/sh]\n");
        let record = Record::new("5e1fa0c2", "b", "/tmp", 1);
        for (kernel, reason) in [
            (kernel(0, true), "sandbox: kernel has no Landlock"),
            (kernel(3, false), "sandbox: network limits need Landlock ABI 4"),
            (kernel(7, false), "sandbox: cannot hide the tmux socket"),
        ] {
            let refused = plan(&config, &places, kernel, &record, 1, "t", false).unwrap_err();
            assert_eq!(refused.text, reason);
        }
        std::fs::create_dir_all(&places.base).unwrap();
        let inside = Record::new("5e1fa0c2", "b", places.base.to_str().unwrap(), 1);
        let refused = plan(&config, &places, kernel(9, false), &inside, 1, "t", false).unwrap_err();
        assert!(
            refused.text.ends_with("would expose the daemon's files"),
            "{}",
            refused.text
        );
    }

    #[test]
    fn best_effort_reports_instead() {
        let (_base, config, places) = setup("command: [/bin/sh]\nbest_effort: true\n");
        let record = Record::new("5e1fa0c2", "b", "/tmp", 1);
        let (_, report) = plan(&config, &places, kernel(0, false), &record, 1, "t", false).unwrap();
        assert!(
            report.missing.contains(&"kernel has no Landlock".to_owned()),
            "{report:?}"
        );
        let all = [
            "files",
            "sockets",
            "abstract sockets",
            "signals",
            "processes",
            "tcp",
            "udp",
        ];
        assert_eq!(report.open, all);
    }

    #[test]
    fn an_undefined_template_in_a_command_is_an_error() {
        let (_base, config, places) = setup("command: [/bin/sh, '{NO_SUCH_VARIABLE_HERE}']\n");
        let record = Record::new("5e1fa0c2", "b", "/tmp", 1);
        let refused = plan(&config, &places, kernel(7, true), &record, 1, "t", false).unwrap_err();
        assert_eq!(refused.text, "undefined template {NO_SUCH_VARIABLE_HERE}");
    }
}
