//! Sandbox layers and how they merge: the most permissive wins.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What a path may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Access {
    Ro,
    Rox,
    Rw,
    Rwx,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct General {
    pub(crate) best_effort: bool,
    pub(crate) log_level: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Filesystem {
    ro: Vec<String>,
    rox: Vec<String>,
    rw: Vec<String>,
    rwx: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Text(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Network {
    enabled: bool,
    unrestricted: bool,
    bind_tcp: Vec<Port>,
    connect_tcp: Vec<Port>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Namespaces {
    mount: Option<bool>,
    pid: Option<bool>,
    ipc: Option<bool>,
    net: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Advanced {
    add_exec: Option<bool>,
    ldd: Option<bool>,
}

/// One layer as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Layer {
    pub(crate) general: General,
    pub(crate) filesystem: Filesystem,
    pub(crate) network: Network,
    pub(crate) env: Vec<String>,
    pub(crate) namespaces: Namespaces,
    pub(crate) advanced: Advanced,
}

/// Everything a session is to be given, before templates are filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) paths: BTreeMap<String, Access>,
    pub(crate) env: BTreeSet<String>,
    pub(crate) network: bool,
    pub(crate) unrestricted: bool,
    pub(crate) bind_tcp: BTreeSet<u16>,
    pub(crate) connect_tcp: BTreeSet<u16>,
    pub(crate) mount: bool,
    pub(crate) pid: bool,
    pub(crate) ipc: bool,
    pub(crate) net: bool,
    pub(crate) add_exec: bool,
    pub(crate) ldd: bool,
    pub(crate) best_effort: bool,
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl Layer {
    /// What every session gets.
    pub(crate) fn defaults() -> Self {
        Layer {
            filesystem: Filesystem {
                ro: words(
                    "/etc/passwd /etc/group /etc/localtime /etc/nsswitch.conf /etc/hosts /etc/resolv.conf \
                     /etc/services /etc/ssl/certs /etc/ld.so.cache /etc/os-release /etc/alternatives /proc",
                ),
                rox: words("/usr /lib /lib64 /bin /sbin"),
                rw: words("{SESSION_TMP} /dev/null /dev/zero /dev/random /dev/urandom /dev/tty"),
                rwx: Vec::new(),
            },
            env: words("HOME USER PATH LANG TERM"),
            ..Layer::default()
        }
    }

    pub(crate) fn shipped_profile(name: &str) -> Option<Self> {
        let filesystem = match name {
            "default" => Filesystem {
                rwx: words("{CWD}"),
                ro: words("{XDG_CONFIG_HOME}/git"),
                ..Filesystem::default()
            },
            "readonly" => Filesystem {
                rox: words("{CWD}"),
                ..Filesystem::default()
            },
            _ => return None,
        };
        Some(Layer {
            filesystem,
            ..Layer::default()
        })
    }
}

/// Layers to be merged.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    layers: Vec<Layer>,
}

impl Layers {
    pub(crate) fn new(layers: Vec<Layer>) -> Self {
        Layers { layers }
    }

    pub(crate) fn push(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    pub(crate) fn merge(&self, best_effort: bool) -> Wanted {
        let all = |pick: fn(&Namespaces) -> Option<bool>, otherwise: bool| {
            let said: Vec<bool> = self
                .layers
                .iter()
                .filter_map(|layer| pick(&layer.namespaces))
                .collect();
            if said.is_empty() {
                otherwise
            } else {
                said.iter().all(|yes| *yes)
            }
        };
        let last = |pick: fn(&Advanced) -> Option<bool>, otherwise: bool| {
            self.layers
                .iter()
                .rev()
                .find_map(|layer| pick(&layer.advanced))
                .unwrap_or(otherwise)
        };
        let mut wanted = Wanted {
            mount: all(|n| n.mount, true),
            pid: all(|n| n.pid, true),
            ipc: all(|n| n.ipc, true),
            add_exec: last(|a| a.add_exec, true),
            ldd: last(|a| a.ldd, false),
            best_effort,
            ..Wanted::default()
        };
        for layer in &self.layers {
            let files = &layer.filesystem;
            for (access, paths) in [
                (Access::Ro, &files.ro),
                (Access::Rox, &files.rox),
                (Access::Rw, &files.rw),
                (Access::Rwx, &files.rwx),
            ] {
                for path in paths {
                    let slot = wanted.paths.entry(path.clone()).or_insert(access);
                    *slot = join(*slot, access);
                }
            }
            wanted.env.extend(layer.env.iter().cloned());
            wanted.network |= layer.network.enabled;
            wanted.unrestricted |= layer.network.unrestricted;
            wanted
                .bind_tcp
                .extend(layer.network.bind_tcp.iter().filter_map(Port::number));
            wanted
                .connect_tcp
                .extend(layer.network.connect_tcp.iter().filter_map(Port::number));
        }
        let no_network = !wanted.unrestricted
            && (!wanted.network || (wanted.bind_tcp.is_empty() && wanted.connect_tcp.is_empty()));
        wanted.net = no_network && all(|n| n.net, true);
        if !wanted.network {
            wanted.bind_tcp.clear();
            wanted.connect_tcp.clear();
        }
        wanted
    }
}

/// The higher of two, in the order `ro < rox < rw < rwx`.
fn join(one: Access, other: Access) -> Access {
    one.max(other)
}

impl Port {
    fn number(&self) -> Option<u16> {
        match self {
            Port::Number(number) => Some(*number),
            Port::Text(text) => text.trim().parse().ok(),
        }
    }
}
