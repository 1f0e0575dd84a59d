//! The systemd unit, the doctor, and shell functions.

use std::path::{Path, PathBuf};

use beamtalk_agents::{
    Config, Instance, Kernel, Namespace, Places, TMUX_MINIMUM, closed_switches, is_tmux_new_enough,
    probe_instance, tmux_version,
};
use beamtalk_storage::{Disk, mode_of, replace_file};

use super::context::{Client, Failure, emit, say};
use crate::exit::Exit;

const HELPERS: &str = include_str!("helpers.sh");

fn unit_text(program: &Path) -> String {
    let program = unit_word(program);
    format!(
        "[Unit]\n\
         Description=Beamtalk agents (9P file server)\n\
         \n\
         [Service]\n\
         Type=notify\n\
         ExecStart={program} agents serve\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         KillMode=process\n\
         Restart=on-failure\n\
         RestartSec=5s\n\
         UMask=0077\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n"
    )
}

/// A path as one word of a unit file.
fn unit_word(path: &Path) -> String {
    let text = path.display().to_string().replace('%', "%%").replace('$', "$$");
    if text.contains(|letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '\\')) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text
    }
}

pub(super) fn unit(client: &Client, install: bool) -> Result<Exit, Failure> {
    let text = unit_text(&std::env::current_exe()?);
    if !install {
        if client.json {
            client.print(&serde_json::json!({ "unit": text }))?;
        } else {
            emit(text.as_bytes())?;
        }
        return Ok(Exit::Success);
    }
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .ok_or_else(|| Failure::plain("HOME is not set"))?;
    let config = std::env::var_os("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
    let directory = config.join("systemd/user");
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("anvilsrv.service");
    replace_file(&path, text.as_bytes(), mode_of(&path), Disk::Wait).map_err(std::io::Error::from)?;
    if client.json {
        return client.done();
    }
    say(&format!("{} written", path.display()))?;
    Ok(Exit::Success)
}

pub(super) fn helpers(client: &Client) -> Result<Exit, Failure> {
    if client.json {
        client.print(&serde_json::json!({ "helpers": HELPERS }))?;
    } else {
        emit(HELPERS.as_bytes())?;
    }
    Ok(Exit::Success)
}

pub(super) fn doctor(client: &Client) -> Result<Exit, Failure> {
    let namespace = client.namespace();
    let places = Places::of(&namespace);
    let mut lines: Vec<(&str, String)> = Vec::new();
    lines.push(match Namespace::check(&namespace) {
        Ok(None) => (
            "ok",
            format!("name space dir {} will be created", namespace.display()),
        ),
        Ok(Some(0o700)) => ("ok", format!("name space dir {}", namespace.display())),
        Ok(Some(mode)) => (
            "warn",
            format!(
                "name space dir {}: mode is {mode:04o}, start makes it 0700",
                namespace.display()
            ),
        ),
        Err(error) => ("fail", error.to_string()),
    });
    lines.push(match probe_instance(&namespace) {
        Instance::Running { pid } => ("ok", format!("daemon runs (PID {pid})")),
        Instance::Stale => ("warn", "stale PID file".to_owned()),
        Instance::Absent => ("ok", "daemon does not run".to_owned()),
    });
    lines.push(match tmux_version() {
        Some(version) if is_tmux_new_enough(&version) => ("ok", format!("tmux {version}")),
        Some(version) => (
            "fail",
            format!("tmux {version} is too old (version {TMUX_MINIMUM} or later is needed)"),
        ),
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
    lines.push(or_warn(
        kernel.pid_namespace,
        "process namespaces with their own /proc",
    ));
    if !kernel.mount_namespace || !kernel.pid_namespace {
        lines.extend(closed_switches().into_iter().map(|switch| ("warn", switch)));
    }
    lines.push(match places.exited_count() {
        0 => ("ok", "no ended session has a directory left".to_owned()),
        1 => (
            "ok",
            "1 ended session has a directory left; it goes after a day".to_owned(),
        ),
        count => (
            "ok",
            format!("{count} ended sessions have a directory left; each goes after a day"),
        ),
    });
    match Config::load(&places.config) {
        Ok(config) => {
            let problems = config.problems();
            if problems.is_empty() {
                lines.push(("ok", format!("configuration {}", places.config.display())));
            }
            lines.extend(problems.into_iter().map(|problem| ("fail", problem)));
            lines.extend(config.notices().into_iter().map(|notice| ("warn", notice)));
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
