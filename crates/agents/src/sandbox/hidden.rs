//! The places no session is shown, whatever directory or profile it was given.

use std::path::{Path, PathBuf};

use crate::files;
use crate::places::{Places, variable};

/// Below the home directory: what other programs keep secrets in.
const STORES: [&str; 19] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/password-store",
    ".mozilla",
    ".config/google-chrome",
];

/// Below the configuration directory.
const CONFIGURED_STORES: [&str; 6] = ["gcloud", "gh", "git/credentials", "op", "rclone", "hub"];

/// The file in a state directory that says which namespace it belongs to.
pub(crate) const NAMESPACE: &str = "namespace";

/// State of workspaces, loops and agents, and what configures sandboxes: never shown.
pub(crate) fn state(places: &Places, cwd: &Path) -> Vec<PathBuf> {
    let config = places.config.parent().unwrap_or(&places.config);
    let mut hidden = vec![
        places.base.clone(),
        places.home.join(".beamtalk"),
        config.to_owned(),
        places.home.join(".config/beamtalk"),
        places.namespace.clone(),
    ];
    // The other daemons of this user.
    let agents = places.base.join("agents");
    for key in files::names(&agents) {
        let path = agents.join(key).join(NAMESPACE);
        let known = files::read_limited(&path, 4096).ok();
        hidden.extend(known.and_then(|bytes| String::from_utf8(bytes).ok().map(PathBuf::from)));
    }
    let uid = rustix::process::geteuid().as_raw();
    hidden.push(std::env::temp_dir().join(format!("beamtalk-{uid}")));
    hidden.extend(variable("XDG_RUNTIME_DIR").map(|path| PathBuf::from(path).join("beamtalk")));
    // A loop that watches the directory, or one around it, is told what to run by its socket.
    hidden.extend(cwd.ancestors().map(|directory| directory.join(".devloop")));
    hidden
}

/// The user's secret stores: shown only where the configuration names them.
pub(crate) fn stores(places: &Places) -> Vec<PathBuf> {
    let config = places.config.parent().and_then(Path::parent);
    let config = config.map_or_else(|| places.home.join(".config"), Path::to_owned);
    let elsewhere = [
        "GNUPGHOME",
        "PASSWORD_STORE_DIR",
        "AWS_SHARED_CREDENTIALS_FILE",
        "KUBECONFIG",
        "NETRC",
    ];
    let home = STORES.iter().map(|name| places.home.join(name));
    let configured = CONFIGURED_STORES
        .iter()
        .flat_map(|name| [config.join(name), places.home.join(".config").join(name)]);
    let named = elsewhere.into_iter().filter_map(variable).map(PathBuf::from);
    home.chain(configured)
        .chain(named.filter(|path| path.is_absolute()))
        .collect()
}
