//! The systemd unit, the doctor, and shell functions.

use std::path::{Path, PathBuf};

use beamtalk_agents::{Config, Instance, Kernel, Places, TMUX_MINIMUM, probe_instance, tmux_version};

use super::context::{Client, Failure, emit, say};
use crate::exit::Exit;

const HELPERS: &str = include_str!("helpers.sh");

fn unit_text(program: &Path) -> String {
    format!(
        "[Unit]\n\
         Description=Beamtalk agents (9P file server)\n\
         \n\
         [Service]\n\
         Type=notify\n\
         ExecStart={} agents serve\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         KillMode=process\n\
         Restart=on-failure\n\
         RestartSec=5s\n\
         UMask=0077\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        program.display()
    )
}

pub(super) fn unit(client: &Client, install: bool) -> Result<Exit, Failure> {
    let text = unit_text(&std::env::current_exe()?);
    if !install {
        emit(text.as_bytes())?;
        return Ok(Exit::Success);
    }
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .ok_or_else(|| Failure::plain("HOME is not set"))?;
    let config = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let directory = config.join("systemd/user");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("anvilsrv.service");
    let temporary = directory.join("anvilsrv.service.tmp");
    let mut file = std::fs::File::create(&temporary)?;
    std::io::Write::write_all(&mut file, text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, &path)?;
    if client.json {
        return client.done();
    }
    say(&format!("{} written", path.display()))?;
    Ok(Exit::Success)
}

pub(super) fn helpers() -> Result<Exit, Failure> {
    emit(HELPERS.as_bytes())?;
    Ok(Exit::Success)
}

pub(super) fn doctor(client: &Client) -> Result<Exit, Failure> {
    let namespace = client.namespace();
    let places = Places::of(&namespace);
    let mut lines: Vec<(&str, String)> = Vec::new();
    match std::fs::symlink_metadata(&namespace) {
        Err(_) => lines.push((
            "ok",
            format!("name space {} will be created", namespace.display()),
        )),
        Ok(metadata) => {
            use std::os::unix::fs::MetadataExt;
            let own = metadata.uid() == rustix::process::geteuid().as_raw();
            let word = match (metadata.is_dir() && own, metadata.mode() & 0o777) {
                (true, 0o700) => "ok",
                (true, _) => "warn",
                (false, _) => "fail",
            };
            let shown = format!(
                "name space {} mode {:04o}",
                namespace.display(),
                metadata.mode() & 0o7777
            );
            lines.push((word, shown));
        }
    }
    lines.push(match probe_instance(&namespace) {
        Instance::Running { pid } => ("ok", format!("daemon runs (PID {pid})")),
        Instance::Stale => ("warn", "stale PID file".to_owned()),
        Instance::Absent => ("ok", "daemon does not run".to_owned()),
    });
    lines.push(match tmux_version() {
        Some(version) => ("ok", format!("tmux {version}")),
        None => (
            "fail",
            format!("tmux not found (version {TMUX_MINIMUM} or later is needed)"),
        ),
    });
    let kernel = Kernel::probe();
    lines.push(match kernel.landlock_abi {
        0 => (
            "warn",
            "kernel has no Landlock; strict sandboxes are refused".to_owned(),
        ),
        abi => ("ok", format!("Landlock ABI {abi}")),
    });
    let or_warn = |got: bool, what: &str| {
        if got {
            ("ok", what.to_owned())
        } else {
            ("warn", format!("no {what}"))
        }
    };
    lines.push(or_warn(kernel.mount_namespace, "mount namespaces"));
    lines.push(or_warn(kernel.net_namespace, "network namespaces"));
    match Config::load(&places.config) {
        Ok(config) => {
            let problems = config.problems();
            if problems.is_empty() {
                lines.push(("ok", format!("configuration {}", places.config.display())));
            }
            lines.extend(problems.into_iter().map(|problem| ("fail", problem)));
        }
        Err(error) => lines.push(("fail", error.to_string())),
    }
    let failed = lines.iter().any(|(word, _)| *word == "fail");
    if client.json {
        let values: Vec<serde_json::Value> = lines
            .iter()
            .map(|(word, text)| serde_json::json!({"result": word, "what": text}))
            .collect();
        client.print(&serde_json::Value::Array(values))?;
    } else {
        for (word, text) in &lines {
            say(&format!("{word}\t{text}"))?;
        }
    }
    Ok(if failed { Exit::Failure } else { Exit::Success })
}
