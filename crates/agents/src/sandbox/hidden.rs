//! The places no session is shown, whatever directory or profile it was given.

use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::config::Access;
use crate::files;
use crate::places::{Places, variable};
use crate::session::launch::Launch;

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
    let named: Vec<PathBuf> = elsewhere
        .into_iter()
        .filter_map(variable)
        .flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>())
        .collect();
    home.chain(configured)
        .chain(named.into_iter().filter(|path| path.is_absolute()))
        .collect()
}

/// The directory in which the first missing part of `path` would have to be made, without links;
/// `None` if nothing is missing.
fn missing_in(path: &Path) -> Option<PathBuf> {
    if std::fs::canonicalize(path).is_ok() {
        return None;
    }
    let mut above = path.ancestors().skip(1);
    above.find_map(|directory| std::fs::canonicalize(directory).ok().filter(|real| real.is_dir()))
}

/// Make the places of our own that are missing where the session works or may write: what is there
/// can be covered, also once a daemon or a loop keeps something in it.
pub(crate) fn make_own(launch: &Launch) {
    let granted: Vec<PathBuf> = launch
        .paths
        .iter()
        .filter(|(path, access)| **access >= Access::Rw || launch.in_place.contains(*path))
        .filter_map(|(path, _)| std::fs::canonicalize(path).ok())
        .collect();
    for path in &launch.hidden {
        if missing_in(path).is_some_and(|at| granted.iter().any(|path| at.starts_with(path))) {
            // Where it cannot be made its directory is closed instead, see `closed`.
            drop(
                std::fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(path),
            );
        }
    }
}

/// The directories in which a missing protected place would have to be made. Nothing can be mounted
/// over what is not there, so no session makes, removes or renames anything in these.
pub(crate) fn closed(launch: &Launch) -> BTreeSet<PathBuf> {
    // Without mounts our own places are not covered either, and `sandbox_report` says so.
    let own = launch.hidden.iter().filter(|_| launch.mount);
    own.chain(&launch.stores)
        .filter_map(|path| missing_in(path))
        .collect()
}
