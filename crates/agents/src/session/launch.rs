//! `launch.json`: everything the launcher needs, so that nothing shows in process listings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use beamtalk_ninep::Refusal;
use serde::{Deserialize, Serialize};

use super::record::{Record, SandboxReport};
use crate::config::{Access, Config, Templates};
use crate::error::refusal;
use crate::places::Places;
use crate::sandbox::Kernel;

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
    pub(crate) paths: BTreeMap<String, Access>,
    pub(crate) network_limited: bool,
    pub(crate) bind_tcp: Vec<u16>,
    pub(crate) connect_tcp: Vec<u16>,
    pub(crate) mount: bool,
    pub(crate) ipc: bool,
    pub(crate) net: bool,
    #[serde(default)]
    pub(crate) pid: bool,
    pub(crate) landlock: bool,
    pub(crate) best_effort: bool,
    pub(crate) namespace: PathBuf,
    pub(crate) state: PathBuf,
    pub(crate) tmp: PathBuf,
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
    if resume {
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
        ("NAMESPACE", places.namespace.display().to_string()),
        ("TMPDIR", tmp.display().to_string()),
    ] {
        environment.insert(name.to_owned(), value);
    }
    // The terminal is tmux, whatever the daemon was started in, unless the configuration says otherwise.
    let sets_term = wanted.env.iter().any(|entry| entry.starts_with("TERM="));
    if !sets_term && !backend.environment.contains_key("TERM") {
        environment.insert("TERM".to_owned(), "tmux-256color".to_owned());
    }

    let mut missing = Vec::new();
    let mut paths = BTreeMap::new();
    for (template, access) in &wanted.paths {
        let Ok(path) = templates.fill(template) else {
            continue;
        };
        if Path::new(&path).exists() {
            let slot = paths.entry(path).or_insert(*access);
            *slot = (*slot).max(*access);
        } else {
            missing.push(path);
        }
    }
    if wanted.add_exec {
        let file = std::fs::canonicalize(&program).unwrap_or_else(|_| program.clone());
        let slot = paths.entry(file.display().to_string()).or_insert(Access::Rox);
        *slot = (*slot).max(Access::Rox);
    }
    if wanted.ldd {
        for library in libraries(&program) {
            paths.entry(library).or_insert(Access::Rox);
        }
    }
    let limits_network = !wanted.unrestricted;
    let launch = Launch {
        id: record.id.clone(),
        number,
        program,
        argv,
        environment,
        cwd: record.cwd.clone(),
        network_limited: limits_network,
        bind_tcp: wanted.bind_tcp.iter().copied().collect(),
        connect_tcp: wanted.connect_tcp.iter().copied().collect(),
        mount: wanted.mount && kernel.mount_namespace,
        ipc: wanted.ipc && kernel.mount_namespace,
        net: wanted.net && kernel.net_namespace,
        pid: wanted.pid && kernel.pid_namespace,
        landlock: kernel.landlock_abi > 0,
        best_effort: wanted.best_effort,
        namespace: places.namespace.clone(),
        state: places.state.clone(),
        tmp,
        paths,
    };
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
    if !launch.mount
        && let Some(path) = launch.paths.keys().find(|path| {
            launch.namespace.starts_with(path)
                || (launch.state.starts_with(path) && Path::new(path) != launch.tmp)
        })
    {
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
    })
}

/// The shared libraries of a program, as its loader lists them.
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
            state: base.path().join("state"),
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
        assert_eq!(report.namespaces, ["mount", "ipc", "net"]);
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
        let inside = Record::new(
            "5e1fa0c2",
            "b",
            places.state.parent().unwrap().to_str().unwrap(),
            1,
        );
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
    }

    #[test]
    fn an_undefined_template_in_a_command_is_an_error() {
        let (_base, config, places) = setup("command: [/bin/sh, '{NO_SUCH_VARIABLE_HERE}']\n");
        let record = Record::new("5e1fa0c2", "b", "/tmp", 1);
        let refused = plan(&config, &places, kernel(7, true), &record, 1, "t", false).unwrap_err();
        assert_eq!(refused.text, "undefined template {NO_SUCH_VARIABLE_HERE}");
    }
}
