//! The figures of the image as files: methods, actors, the loop and agents as objects, followers. Through 9P where a
//! program would, through the mounted directory where a person would.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::daemon::Daemon;
use crate::wire::Wire;
use crate::{Row, print};

const CLASSES: usize = 500;
const METHODS: usize = 10;
const ACTORS: usize = 10_000;
const WRITES: usize = 200;
const STATES: usize = 1_000;
const CHANGES: usize = 20;
const READERS: usize = 50;
const FOLLOWERS: usize = 1_000;

const LOOP: &str = r#"startup_workflows = ["boot"]
[process.x]
command = ["sleep", "1000"]
[workflow.boot]
steps = [{ action = "log", message = "booted" }]
[watch.css]
paths = ["css/**"]
workflow = "boot"
"#;

fn row(work: &'static str, took: &[Duration], limits: &[Duration], wanted: &'static str) -> Row {
    let show = |time: &Duration| match time.as_secs_f64() {
        seconds if seconds >= 1.0 => format!("{seconds:.2} s"),
        seconds => format!("{:.2} ms", seconds * 1e3),
    };
    Row {
        work,
        ours: took.iter().map(show).collect::<Vec<_>>().join(", "),
        bare: "-".to_owned(),
        ratio: "-".to_owned(),
        wanted,
        met: took.iter().zip(limits).all(|(took, limit)| took <= limit),
    }
}

/// Median and 99th percentile.
fn quantiles(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    [at(50), at(99)]
}

const MS: Duration = Duration::from_millis(1);

/// All rows, on one daemon with one workspace.
pub(crate) fn measure() -> anyhow::Result<()> {
    let daemon = Daemon::with_image(&project())?;
    print(&[written(&daemon)?])?;
    print(&searched(&daemon)?)?;
    print(&listed(&daemon)?)?;
    print(&objects(&daemon)?)?;
    print(&announced(&daemon)?)?;
    print(&[followed(&daemon)?])
}

/// Files of a project by path.
fn project() -> Vec<(String, String)> {
    let mut files = vec![
        (
            "beamtalk.toml".to_owned(),
            "[package]\nname = \"house\"\nversion = \"0.1.0\"\n".to_owned(),
        ),
        ("devloop.toml".to_owned(), LOOP.to_owned()),
        (
            "src/Fan.bt".to_owned(),
            "Actor subclass: Fan\n  state: speed = 0\n\n  speed => 0\n".to_owned(),
        ),
    ];
    for class in 0..CLASSES {
        let methods: String = (0..METHODS)
            .map(|number| {
                format!("\n  /// Method {number}.\n  method{number}: n =>\n    n > 0 ifTrue: [n + {number}] ifFalse: [{class}]\n")
            })
            .collect();
        files.push((
            format!("src/Part{class}.bt"),
            format!("/// Part {class}.\nObject subclass: Part{class}\n{methods}"),
        ));
    }
    files
}

/// A request on an open rpc file and its answer.
fn ask(wire: &mut Wire, fid: u32, text: &str) -> anyhow::Result<String> {
    wire.write(fid, text.as_bytes())?;
    Ok(String::from_utf8(wire.read(fid, 0, 4096)?)?)
}

fn evaluate(daemon: &Daemon, text: &str) -> anyhow::Result<String> {
    let mut wire = Wire::attach(&daemon.socket())?;
    let fid = wire.open("eval", 2)?;
    ask(&mut wire, fid, &format!("//timeout 120000\n{text}"))
}

fn written(daemon: &Daemon) -> anyhow::Result<Row> {
    evaluate(daemon, "(Fan spawn) registerAs: #cooler. 1")?;
    let mut wire = Wire::attach(&daemon.socket())?;
    let send = wire.open("actors/cooler/send", 2)?;
    let mut times = Vec::new();
    for number in 0..WRITES {
        let method = wire.open("classes/Fan/speed", 0x11)?;
        let began = Instant::now();
        wire.write(method, format!("speed => {number}\n").as_bytes())?;
        let answer = ask(&mut wire, send, "speed")?;
        times.push(began.elapsed());
        anyhow::ensure!(answer.trim() == number.to_string(), "{answer}");
        wire.clunk(method)?;
    }
    Ok(row(
        "a method file written, a living actor answers with it (median, p99)",
        &quantiles(times),
        &[15 * MS, 30 * MS],
        "15 ms, 30 ms",
    ))
}

/// The tree as a directory, while it lasts.
struct Mounted<'a> {
    daemon: &'a Daemon,
    directory: PathBuf,
}

impl<'a> Mounted<'a> {
    fn new(daemon: &'a Daemon) -> anyhow::Result<Self> {
        let directory = daemon.path("mount");
        std::fs::create_dir_all(&directory)?;
        daemon.run(&["agents", "mount", &directory.display().to_string()])?;
        Ok(Mounted { daemon, directory })
    }

    /// How long a program takes over a directory in it, and how many lines it prints.
    fn timed(&self, words: &[&str], directory: &str) -> anyhow::Result<(Duration, usize)> {
        let (program, arguments) = words.split_first().context("no program")?;
        let began = Instant::now();
        let output = Command::new(program)
            .args(arguments)
            .arg(self.directory.join(directory))
            .stdin(Stdio::null())
            .output()?;
        let took = began.elapsed();
        let lines = String::from_utf8_lossy(&output.stdout).lines().count();
        Ok((took, lines))
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // It ends with the daemon at the latest.
        drop(
            self.daemon
                .run(&["agents", "umount", &self.directory.display().to_string()]),
        );
    }
}

fn searched(daemon: &Daemon) -> anyhow::Result<[Row; 2]> {
    // Nothing is known to either side at first.
    daemon.run(&["agents", "stop"])?;
    daemon.run(&["agents", "start"])?;
    let mounted = Mounted::new(daemon)?;
    let mut times = Vec::new();
    for _ in 0..2 {
        let (took, lines) = mounted.timed(&["grep", "-rn", "ifFalse: \\[4"], "classes")?;
        anyhow::ensure!(lines >= METHODS * 100, "{lines} lines found");
        times.push(took);
    }
    let [cold, warm] = [times.first(), times.last()].map(|time| time.copied().unwrap_or_default());
    Ok([
        row(
            "grep -r over 500 classes, mounted, cold",
            &[cold],
            &[3000 * MS],
            "3 s",
        ),
        row("the same again", &[warm], &[1000 * MS], "1 s"),
    ])
}

fn listed(daemon: &Daemon) -> anyhow::Result<[Row; 2]> {
    evaluate(daemon, &format!("{ACTORS} timesRepeat: [Fan spawn]. 1"))?;
    let mounted = Mounted::new(daemon)?;
    let mut times = Vec::new();
    for _ in 0..6 {
        let (took, lines) = mounted.timed(&["ls"], "actors")?;
        anyhow::ensure!(lines > ACTORS, "{lines} actors listed");
        times.push(took);
    }
    let (first, rest) = times.split_first().context("nothing measured")?;
    Ok([
        row(
            "ls of 10,000 actors, mounted, first",
            &[*first],
            &[150 * MS],
            "150 ms",
        ),
        row(
            "the same again (median of 5)",
            &quantiles(rest.to_vec())[..1],
            &[150 * MS],
            "150 ms",
        ),
    ])
}

/// The loop of the project, run by the workspace while this lives.
struct Hosted(Child);

impl Hosted {
    fn new(daemon: &Daemon) -> anyhow::Result<Self> {
        use std::io::BufRead;
        let mut command = daemon.command()?;
        command.args(["loop", "run", "--workspace", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().context("no output")?;
        let hosted = Hosted(child);
        let mut lines = std::io::BufReader::new(stdout).lines();
        let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains(r#""kind":"ready""#)));
        anyhow::ensure!(is_ready, "the loop did not become ready");
        std::thread::spawn(move || lines.for_each(drop));
        Ok(hosted)
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        // The command ends the loop when it is interrupted.
        drop(Command::new("kill").args(["-INT", &pid]).status());
        drop(self.0.wait());
    }
}

/// Microseconds of an expression inside the image: median and 99th percentile of many.
fn inside(daemon: &Daemon, before: &str, expression: &str) -> anyhow::Result<[Duration; 2]> {
    let (middle, high) = (STATES / 2, STATES * 99 / 100);
    let text = format!(
        "{before}
times := (1 to: {STATES}) collect: [:i |
  t := DateTime monotonicNow.
  {expression}.
  (DateTime monotonicNow - t) div: 1000
].
sorted := times sort.
(sorted at: {middle}) printString ++ \" \" ++ (sorted at: {high}) printString"
    );
    let said = evaluate(daemon, &text)?;
    let numbers: Vec<u64> = said
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers.as_slice() {
        [median, high] => Ok([Duration::from_micros(*median), Duration::from_micros(*high)]),
        _ => anyhow::bail!("{expression}: {said}"),
    }
}

fn objects(daemon: &Daemon) -> anyhow::Result<[Row; 2]> {
    let hosted = Hosted::new(daemon)?;
    let process = inside(daemon, "", "(Loop process: #x) state")?;
    drop(hosted);
    daemon.run(&["agents", "new", "echo", "/tmp", "--alias", "demo", "--wait"])?;
    let agent = inside(daemon, "a := (Agents at: \"demo\") unwrap.", "a state")?;
    Ok([
        row(
            "(Loop process: #x) state (median, p99)",
            &process,
            &[MS],
            "1 ms median",
        ),
        row("agent state (median, p99)", &agent, &[MS], "1 ms median"),
    ])
}

fn announced(daemon: &Daemon) -> anyhow::Result<[Row; 2]> {
    let mut told = Wire::attach(&daemon.socket())?;
    let transcript = told.open("transcript.follow", 0)?;
    // The session that listens lives as long as its file is open.
    let mut session = Wire::attach(&daemon.socket())?;
    let listening = session.open("eval", 2)?;
    ask(
        &mut session,
        listening,
        "SystemAnnouncer current when: AgentStateChanged do: [:e | Transcript showLine: e newState asString]. 1",
    )?;
    let mut readers = Wire::attach(&daemon.socket())?;
    let events: Vec<u32> = (0..READERS)
        .map(|_| readers.open("agents/events", 0))
        .collect::<anyhow::Result<_>>()?;
    let mut control = Wire::attach(&daemon.socket())?;
    let (mut announced, mut followed) = (Vec::new(), Vec::new());
    for _ in 0..CHANGES {
        // Back to rest it goes only when its output has settled, which is not measured.
        for (word, is_measured) in [("running", true), ("idle", false)] {
            for fid in &events {
                readers.start_read(*fid, 4096)?;
            }
            told.start_read(transcript, 4096)?;
            // Answered only after all reads above have been received.
            readers.list("agents/roles")?;
            told.list("agents/roles")?;
            let state = control.open("agents/demo/state", 0x11)?;
            let began = Instant::now();
            control.write(state, word.as_bytes())?;
            for _ in &events {
                readers.await_read()?;
            }
            let seen = began.elapsed();
            told.await_read()?;
            if is_measured {
                followed.push(seen);
                announced.push(began.elapsed());
            }
            control.clunk(state)?;
        }
    }
    Ok([
        row(
            "state change of an agent to its announcement in the image (median, p99)",
            &quantiles(announced),
            &[20 * MS, 20 * MS],
            "20 ms",
        ),
        row(
            "the same to 50 readers of events (median, p99)",
            &quantiles(followed),
            &[20 * MS, 20 * MS],
            "20 ms",
        ),
    ])
}

fn followed(daemon: &Daemon) -> anyhow::Result<Row> {
    const EACH: usize = 50;
    let mut wires = Vec::new();
    for _ in 0..FOLLOWERS / EACH {
        let mut wire = Wire::attach(&daemon.socket())?;
        for _ in 0..EACH {
            let fid = wire.open("changes/follow", 0)?;
            wire.start_read(fid, 4096)?;
        }
        // Answered only after all reads above have been received.
        wire.list("agents/roles")?;
        wires.push(wire);
    }
    let mut control = Wire::attach(&daemon.socket())?;
    let method = control.open("classes/Fan/speed", 0x11)?;
    let began = Instant::now();
    control.write(method, b"speed => 4711\n")?;
    for wire in &mut wires {
        for _ in 0..EACH {
            wire.await_read()?;
        }
    }
    Ok(row(
        "1,000 followers of changes/follow, one edit",
        &[began.elapsed()],
        &[200 * MS],
        "200 ms",
    ))
}
