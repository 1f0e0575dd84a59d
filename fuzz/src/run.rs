//! The loop: choose, change, check, keep.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::coverage::Coverage;
use crate::grammar::{Entropy, Grammar};
use crate::mutate::{Numbers, mutate};

/// What is fuzzed.
pub struct Target {
    pub name: &'static str,
    /// Panics when something is wrong.
    pub check: fn(&[u8]),
    /// Directories of inputs to start from, seen from `fuzz/`.
    pub seeds: &'static [&'static str],
    /// Pieces that matter.
    pub words: &'static [&'static str],
    /// Makes whole inputs, so that deep places are reached.
    pub grammar: Option<Grammar>,
    /// Longer inputs take longer and reach little more.
    pub length: usize,
}

/// One input may take this long.
const TIME: Duration = Duration::from_secs(2);
/// So many seeds are kept even when they reach nothing new, as without counters.
const FEW: usize = 400;
/// The program may take this much memory, in pages of 4 KiB.
const PAGES: u64 = 2 << 18;

struct Options {
    seconds: u64,
    runs: u64,
    seed: u64,
    inputs: Vec<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        seconds: 60,
        runs: u64::MAX,
        seed: 1,
        inputs: Vec::new(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().unwrap_or_default();
            value
                .parse()
                .map_err(|_| format!("{word} wants a number, not '{value}'"))
        };
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--runs" => options.runs = number()?,
            "--seed" => options.seed = number()?,
            _ if word.starts_with('-') => {
                return Err(format!(
                    "unknown option {word}; there are --seconds, --runs and --seed"
                ));
            }
            _ => options.inputs.push(PathBuf::from(word)),
        }
    }
    Ok(options)
}

/// Fuzz the target as the command line says; files given there are checked once instead.
pub fn drive(target: &Target) -> ExitCode {
    match options().and_then(|options| fuzz(target, &options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{}: {message}", target.name);
            ExitCode::from(2)
        }
    }
}

static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

fn fuzz(target: &Target, options: &Options) -> Result<bool, String> {
    std::panic::set_hook(Box::new(|about| {
        if let Ok(mut last) = LAST_PANIC.lock() {
            *last = about.to_string();
        }
    }));
    if !options.inputs.is_empty() {
        let mut is_good = true;
        for path in &options.inputs {
            let bytes = std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
            is_good &= judge(target, &bytes).is_none_or(|fault| {
                eprintln!("{}: {fault}", path.display());
                false
            });
        }
        return Ok(is_good);
    }
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut fuzzer = Fuzzer {
        target,
        coverage: Coverage::new(),
        numbers: Numbers::new(options.seed),
        corpus: Vec::new(),
        kept: home.join("corpus").join(target.name),
        runs: 0,
    };
    std::fs::create_dir_all(&fuzzer.kept).map_err(|cause| format!("{}: {cause}", fuzzer.kept.display()))?;
    let started = Instant::now();
    let mut fault = fuzzer.start(home)?;
    let loaded = fuzzer.corpus.len();
    let end = started + Duration::from_secs(options.seconds);
    while fault.is_none() && fuzzer.runs < options.runs {
        if fuzzer.runs % 256 == 0 {
            if Instant::now() >= end {
                break;
            }
            check_memory()?;
        }
        let bytes = fuzzer.next();
        fault = fuzzer.look(bytes, Keep::New)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let (places, reached) = fuzzer.coverage.size();
    println!(
        "{}: {} inputs in {seconds:.1} s, {:.0} in each second of processor time, {loaded} at first and {} at last kept, \
         {reached} of {places} places",
        target.name,
        fuzzer.runs,
        fuzzer.runs as f64 / processor_seconds().unwrap_or(seconds).max(0.001),
        fuzzer.corpus.len(),
    );
    let Some((bytes, fault)) = fault else {
        return Ok(true);
    };
    let directory = home.join("artifacts");
    let path = directory.join(format!("{}-{:016x}", target.name, hash(&bytes)));
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::write(&path, &bytes))
        .map_err(|cause| format!("{}: {cause}", path.display()))?;
    eprintln!("{}: {fault}\ninput: {}", target.name, path.display());
    Ok(false)
}

/// Inputs are kept when they reach something new.
enum Keep {
    /// There is a file of it already.
    Known,
    New,
}

struct Fuzzer<'a> {
    target: &'a Target,
    coverage: Coverage,
    numbers: Numbers,
    corpus: Vec<Vec<u8>>,
    kept: PathBuf,
    runs: u64,
}

type Fault = Option<(Vec<u8>, String)>;

impl Fuzzer<'_> {
    /// The seeds, what earlier runs kept, and texts of the grammar.
    fn start(&mut self, home: &Path) -> Result<Fault, String> {
        let mut files = Vec::new();
        for seeds in self.target.seeds {
            collect(&home.join(seeds), &mut files)?;
        }
        let own = files.len();
        collect(&self.kept, &mut files)?;
        for (index, path) in files.iter().enumerate() {
            let bytes = std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
            for piece in pieces(&bytes, self.target.length) {
                let keep = if index < own { Keep::Known } else { Keep::New };
                if let Some(fault) = self.look(piece.to_vec(), keep)? {
                    return Ok(Some(fault));
                }
            }
        }
        if self.corpus.is_empty() {
            self.corpus.push(Vec::new());
        }
        Ok(None)
    }

    fn next(&mut self) -> Vec<u8> {
        if let Some(grammar) = &self.target.grammar
            && self.numbers.below(4) == 0
        {
            let choices: Vec<u8> = (0..self.numbers.below(200) + 1)
                .map(|_| self.numbers.below(256) as u8)
                .collect();
            return grammar.text(&mut Entropy::new(&choices)).into_bytes();
        }
        let words: Vec<&[u8]> = self.target.words.iter().map(|word| word.as_bytes()).collect();
        // What was found last reaches furthest.
        let count = self.corpus.len();
        let base = if self.numbers.below(2) == 0 {
            count - 1 - self.numbers.below(count.min(32))
        } else {
            self.numbers.below(count)
        };
        let other = self.numbers.below(count);
        let (base, other) = (&self.corpus[base], &self.corpus[other]);
        mutate(&mut self.numbers, base, other, &words, self.target.length)
    }

    fn look(&mut self, bytes: Vec<u8>, keep: Keep) -> Result<Fault, String> {
        self.runs += 1;
        self.coverage.clear();
        let fault = judge(self.target, &bytes);
        let is_new = self.coverage.is_new();
        if let Some(fault) = fault {
            return Ok(Some((bytes, fault)));
        }
        if is_new || (self.corpus.len() < FEW && matches!(keep, Keep::Known)) {
            let path = self.kept.join(format!("{:016x}", hash(&bytes)));
            if matches!(keep, Keep::New) && !path.exists() {
                let written = std::fs::File::create(&path).and_then(|mut file| file.write_all(&bytes));
                written.map_err(|cause| format!("{}: {cause}", path.display()))?;
            }
            self.corpus.push(bytes);
        }
        Ok(None)
    }
}

/// What is wrong with an input.
fn judge(target: &Target, bytes: &[u8]) -> Option<String> {
    let mut took = Duration::MAX;
    // What took long is tried once more: the machine may have been busy with something else.
    for _ in 0..2 {
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.check)(bytes)));
        took = took.min(started.elapsed());
        if outcome.is_err() {
            return Some(LAST_PANIC.lock().map(|text| text.clone()).unwrap_or_default());
        }
        if took <= TIME {
            return None;
        }
    }
    Some(format!("an input of {} bytes took {took:?}", bytes.len()))
}

/// A long text in pieces that end at an empty line where there is one.
fn pieces(bytes: &[u8], length: usize) -> Vec<&[u8]> {
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while rest.len() > length {
        let end = rest[..length]
            .windows(2)
            .rposition(|pair| pair == b"\n\n")
            .map_or(length, |at| at + 2);
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// What this process used of the processor, in seconds.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = text.rsplit(')').next()?.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

fn check_memory() -> Result<(), String> {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let resident: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    if resident > PAGES {
        return Err(format!("{resident} pages of memory are in use"));
    }
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let about = |cause: std::io::Error| format!("{}: {cause}", path.display());
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(path)
        .map_err(about)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(about)?;
    found.sort();
    for path in found {
        collect(&path, files)?;
    }
    Ok(())
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
