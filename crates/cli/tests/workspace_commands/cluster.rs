//! Clustering: only when asked for, over TLS, with a secret of its own.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::desk::{Desk, Done, done};

/// Two workspaces of one user.
struct Pair {
    desk: Desk,
    /// Where a port mapper would be looked for.
    epmd_port: String,
    /// Names of nodes are the machine's, so they differ from those of other tests.
    names: [String; 2],
}

impl Pair {
    fn new(name: &str) -> Self {
        let desk = Desk::new(name);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = Self {
            desk,
            epmd_port: listener.local_addr().unwrap().port().to_string(),
            names: ["a", "b"].map(|letter| format!("{name}-{letter}@127.0.0.1")),
        };
        pair.desk.run(&["tls", "init"]).expect(0);
        for workspace in ["a", "b"] {
            let issue = [
                "tls",
                "issue",
                "server",
                "--workspace",
                workspace,
                "--host",
                "127.0.0.1",
            ];
            pair.desk.run(&issue).expect(0);
        }
        pair
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.desk.command(words);
        command.env("ERL_EPMD_PORT", &self.epmd_port);
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        done(&mut self.command(words))
    }

    fn file(&self, workspace: &str, name: &str) -> std::path::PathBuf {
        self.desk.state().join("workspaces").join(workspace).join(name)
    }

    fn secret(&self, workspace: &str, name: &str) -> String {
        fs::read_to_string(self.file(workspace, name))
            .unwrap()
            .trim()
            .to_owned()
    }

    /// Start both with the same secret of distribution.
    fn start_both(&self) {
        self.run(&["workspace", "start", "a", "--cluster", &self.names[0]])
            .expect(0);
        // Made now, so that the other's secret has a directory to be put into.
        self.run(&["workspace", "create", "b"]).expect(0);
        self.run(&["workspace", "stop", "b"]).expect(0);
        fs::copy(self.file("a", "dist.cookie"), self.file("b", "dist.cookie")).unwrap();
        self.run(&["workspace", "start", "b", "--cluster", &self.names[1]])
            .expect(0);
    }

    fn eval(&self, workspace: &str, code: &str) -> String {
        let done = self.run(&["--workspace", workspace, "eval", code]).expect(0);
        done.out.trim().to_owned()
    }

    /// Whether a node with workspace b's certificate and this secret gets a connection to workspace a.
    fn connects(&self, name: &str, cookie: &str) -> bool {
        self.joins(
            &format!("{name}@127.0.0.1"),
            cookie,
            "127.0.0.1",
            &self.file("b", "dist.config"),
        )
    }

    /// Whether a node of this name, with this secret and these certificates, coming from this address, gets in.
    fn joins(&self, name: &str, cookie: &str, from: &str, options: &Path) -> bool {
        let from = from.replace('.', ",");
        let program = format!(
            "application:set_env(kernel, inet_dist_connect_options, [{{ip, {{{from}}}}}]), \
             {{ok, _}} = net_kernel:start('{name}', #{{name_domain => longnames}}), \
             erlang:set_cookie(list_to_atom(os:getenv(\"STOLEN\"))), \
             io:format(\"~p\", [net_kernel:connect_node('{}')]), halt().",
            self.names[0]
        );
        let mut erl = Command::new("erl");
        erl.args(["-noshell", "-nocookie", "-start_epmd", "false"])
            .args(["-kernel", "net_setuptime", "60"])
            .args([
                "-proto_dist",
                "inet_tls",
                "-epmd_module",
                "beamtalk_epmd",
                "-beamtalk_ports",
            ])
            .arg(self.desk.state().join("cluster"))
            .args(["9100", "-ssl_dist_optfile"])
            .arg(options)
            .arg("-pa")
            .arg(crate::runtime::runtime().join("ebin"))
            .args(["-eval", &program])
            .env("STOLEN", cookie);
        let done = done(&mut erl).expect(0);
        done.out.ends_with("true")
    }
}

/// Processes whose command line names this test's directory, with what they were started with.
fn started_with(pair: &Pair) -> Vec<(Vec<u8>, Vec<u8>)> {
    let state = pair.desk.project().parent().unwrap().display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| {
            let read = |name: &str| fs::read(process.path().join(name)).ok();
            let (arguments, environment) = (read("cmdline")?, read("environ")?);
            let line = String::from_utf8_lossy(&arguments).into_owned();
            line.contains(&state).then_some((arguments, environment))
        })
        .collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn epmd_answers(pair: &Pair) -> bool {
    std::net::TcpStream::connect(format!("127.0.0.1:{}", pair.epmd_port)).is_ok()
}

#[test]
fn two_workspaces_on_loopback_are_one_cluster() {
    let pair = Pair::new("duo");
    pair.desk.write(
        "src/Counter.bt",
        "Actor subclass: Counter\n  state: count = 0\n  increment => self.count := self.count + 1\n  \
         place => Erlang erlang node\n",
    );
    pair.start_both();
    assert!(!epmd_answers(&pair), "the daemons know the ports");
    let [a, b] = &pair.names;
    assert_eq!(pair.eval("b", &format!("Erlang net_adm ping: #'{a}'")), "#pong");
    assert_eq!(pair.eval("a", "Erlang erlang nodes"), format!("#(#'{b}')"));
    // A message to an actor of the other workspace.
    pair.eval("a", "Erlang persistent_term put: #counter with: Counter spawn");
    let remote = format!("(Erlang rpc call: #'{a}' with: #persistent_term with: #get with: #(#counter))");
    assert_eq!(pair.eval("b", &format!("{remote} increment")), "1");
    assert_eq!(pair.eval("b", &format!("{remote} increment")), "2");
    assert_eq!(pair.eval("b", &format!("{remote} place")), format!("#'{a}'"));
    let status = pair.run(&["--json", "workspace", "status", "a"]).expect(0).json();
    assert_eq!(status["cluster"]["node"], a.as_str());
    assert_eq!(status["cluster"]["address"], "127.0.0.1");
    let port = status["cluster"]["port"].as_u64().unwrap();
    assert!((9100..=9199).contains(&port), "{port}");

    // One name, one node.
    pair.run(&["workspace", "create", "c"]).expect(0);
    let issue = [
        "tls",
        "issue",
        "server",
        "--workspace",
        "c",
        "--host",
        "127.0.0.1",
    ];
    pair.run(&issue).expect(0);
    let refused = pair.run(&["workspace", "start", "c", "--cluster", a]).expect(5);
    assert!(refused.err.contains("registered already"), "{refused:?}");

    // A name is free again with its node, and nothing of either stays.
    let record = pair.desk.state().join("cluster").join(a);
    assert_eq!(fs::read_to_string(&record).unwrap(), format!("{port}\n"));
    pair.run(&["workspace", "stop", "a"]).expect(0);
    assert!(!record.exists());
    pair.run(&["workspace", "start", "c", "--cluster", a]).expect(0);
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    pair.run(&["workspace", "stop", "--all"]).expect(0);
    assert!(
        fs::read_dir(pair.desk.state().join("cluster"))
            .unwrap()
            .next()
            .is_none()
    );
}

#[test]
fn the_two_secrets_open_only_their_own_door() {
    let pair = Pair::new("doors");
    pair.start_both();
    let (cookie, distribution) = (pair.secret("a", "cookie"), pair.secret("a", "dist.cookie"));
    assert_ne!(cookie, distribution);

    // Neither is in anybody's arguments or environment, and no file but its own holds the new one.
    let processes = started_with(&pair);
    assert!(processes.len() >= 4, "daemons and nodes");
    for (arguments, environment) in processes {
        for secret in [&cookie, &distribution] {
            assert!(!contains(&arguments, secret) && !contains(&environment, secret));
        }
    }
    for workspace in ["a", "b"] {
        for entry in fs::read_dir(pair.file(workspace, "")).unwrap().flatten() {
            let bytes = fs::read(entry.path()).unwrap_or_default();
            let is_holder = entry.file_name() == "dist.cookie";
            assert_eq!(
                contains(&bytes, &distribution),
                is_holder,
                "{}",
                entry.path().display()
            );
        }
    }

    assert!(pair.connects("doors-right", &distribution), "the right secret");
    assert!(!pair.connects("doors-cookie", &cookie), "the workspace's cookie");
    assert!(!pair.connects("doors-none", "nocookie"), "no secret at all");

    // The other way round: the secret of distribution is no cookie.
    let attach = pair.desk.state().join("stolen");
    fs::write(&attach, format!("{distribution}\n")).unwrap();
    fs::set_permissions(&attach, fs::Permissions::from_mode(0o600)).unwrap();
    let info = crate::desk::read_json(&pair.file("a", "node.info"));
    let port = info["port"].to_string();
    let words = ["workspace", "attach", "--port", &port, "--cookie-file"];
    let mut command = pair.command(&words);
    let refused = done(command.arg(&attach)).expect(4);
    assert!(!refused.err.contains(&distribution) && !refused.out.contains(&distribution));
}

#[test]
fn a_cluster_needs_certificates_and_an_address_that_is_meant() {
    let desk = Desk::new("lone");
    let start = |flags: &[&str]| {
        let mut words = vec!["workspace", "start", "a"];
        words.extend(flags);
        desk.run(&words).expect(2).err
    };
    assert!(start(&["--cluster", "lamp"]).contains("NAME@HOST"));
    assert!(start(&["--cluster", "lamp@127.0.0.1"]).contains("beamtalk tls issue server --workspace a"));
    assert!(start(&["--cluster", "lamp@10.0.0.7"]).contains("Add --confirm-network if that is meant"));
    assert!(start(&["--cluster", "lamp@nowhere.invalid"]).contains("nowhere.invalid"));
    let mut command = desk.command(&["workspace", "start", "a"]);
    let refused = done(command.env("BEAMTALK_NODE_NAME", "lamp")).expect(2);
    assert!(refused.err.contains("NAME@HOST"), "{refused:?}");
    desk.configure("[workspace]\ncluster = \"lamp\"\n");
    assert!(start(&[]).contains("config.toml:2: 'cluster' must be NAME@HOST"));
}

#[test]
fn a_certificate_carried_to_another_host_opens_nothing() {
    let pair = Pair::new("carried");
    pair.start_both();
    let secret = pair.secret("a", "dist.cookie");
    let own = pair.file("b", "dist.config");
    assert!(pair.joins("carried-own@127.0.0.1", &secret, "127.0.0.1", &own));
    // Certificate, key and secret of b, on a host that is not b's.
    assert!(!pair.joins("carried-away@127.0.0.1", &secret, "127.0.0.2", &own));
    // On its own host, under the name of another one.
    assert!(!pair.joins("carried-name@127.0.0.2", &secret, "127.0.0.1", &own));
    // A person's certificate names no host.
    pair.run(&["--workspace", "b", "tls", "issue", "client", "--name", "ada"])
        .expect(0);
    let person = pair.file("b", "person.config");
    let text = fs::read_to_string(&own).unwrap().replace("/node", "/client");
    fs::write(&person, text).unwrap();
    assert!(!pair.joins("carried-person@127.0.0.1", &secret, "127.0.0.1", &person));
    // One that names the other host does open it there.
    let issue = ["--workspace", "b", "tls", "issue", "node", "--host", "127.0.0.2"];
    pair.run(&issue).expect(0);
    assert!(pair.joins("carried-new@127.0.0.2", &secret, "127.0.0.2", &own));
    assert!(!pair.joins("carried-back@127.0.0.1", &secret, "127.0.0.1", &own));
    let log = fs::read_to_string(pair.file("a", "workspace.log")).unwrap();
    assert!(log.contains("does not name its host"), "{log}");
}

/// End the node as a fault of the machine would: with a dump, where one is written.
fn crash(pair: &Pair, workspace: &str) {
    let words = [
        "--workspace",
        workspace,
        "eval",
        "Erlang erlang halt: #(98, 111, 111, 109)",
    ];
    assert_ne!(pair.run(&words).code, 0);
}

#[test]
fn no_dump_holds_the_secret_of_distribution() {
    let pair = Pair::new("dump");
    // A node alone leaves a dump to read.
    pair.run(&["workspace", "start", "a"]).expect(0);
    crash(&pair, "a");
    let dump = pair.file("a", "crash.dump");
    assert!(fs::read(&dump).unwrap().starts_with(b"=erl_crash_dump"));
    pair.run(&["workspace", "stop", "a", "--force"]).expect(0);
    // One that has the secret leaves none, and an old one, which may hold it, goes.
    pair.run(&["workspace", "start", "a", "--cluster", &pair.names[0]])
        .expect(0);
    assert!(!dump.exists());
    let secret = pair.secret("a", "dist.cookie");
    crash(&pair, "a");
    let mut todo = vec![pair.desk.state(), pair.desk.project()];
    let mut looked_at = 0;
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                todo.push(entry.path());
            } else if kind.is_file() && entry.file_name() != "dist.cookie" {
                let bytes = fs::read(entry.path()).unwrap();
                assert!(!contains(&bytes, &secret), "{}", entry.path().display());
                assert!(
                    !bytes.starts_with(b"=erl_crash_dump"),
                    "{}",
                    entry.path().display()
                );
                looked_at += 1;
            }
        }
    }
    assert!(looked_at > 20);
}
