//! The pool of compiler workers: started on demand, one job at a time each, killed and replaced when a limit is hit.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::Duration;

use beamtalk_process::{Child, Spec, Stdin};
use beamtalk_wire::{ErrorBody, ErrorKind};
use rustc_hash::FxHashMap;
use rustix::process::{Pid, Resource, Rlimit, Signal};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::frame;
use super::job::{Blob, Job, Outcome};
use super::known::{Known, Told};
use super::worker::Order;

/// A worker that died this often on the same source is not tried again with it.
const DEATHS: u32 = 2;
/// How many sources that killed a worker are remembered.
const REMEMBERED: usize = 1_000;
/// How many inputs are kept as they were compiled, and how many bytes of forms one of them may have.
const KEPT: usize = 128;
const KEPT_BYTES: usize = 8 * 1024;

#[derive(Clone, Copy, Debug)]
pub struct CompilerLimits {
    pub memory_mib: u64,
    pub time: Duration,
    pub cpu: Duration,
    pub workers: usize,
}

pub struct CompilerPool {
    program: PathBuf,
    directory: PathBuf,
    limits: CompilerLimits,
    turns: Semaphore,
    idle: RefCell<Vec<Worker>>,
    pub known: RefCell<Known>,
    no_ffi: bool,
    kept: RefCell<Kept>,
    deaths: RefCell<FxHashMap<[u8; 32], u32>>,
    killed: Cell<u64>,
}

/// The answer to a job, with the byte strings its places mean.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub outcome: Outcome,
    blobs: Vec<Vec<u8>>,
}

impl Compiled {
    pub fn bytes(&self, blob: Blob) -> &[u8] {
        self.blobs.get(blob.0).map_or(&[], Vec::as_slice)
    }
}

/// Inputs that define nothing, as they were compiled: the same input means the same as long as the image has the same
/// classes.
#[derive(Default)]
struct Kept {
    told: Told,
    inputs: FxHashMap<[u8; 32], Compiled>,
}

impl Kept {
    fn find(&self, told: Told, digest: &[u8; 32]) -> Option<Compiled> {
        self.inputs.get(digest).filter(|_| self.told == told).cloned()
    }

    fn keep(&mut self, told: Told, digest: [u8; 32], job: &Job, compiled: &Compiled) {
        let outcome = &compiled.outcome;
        let defines = !outcome.modules.is_empty() || !outcome.declares.is_empty();
        let bytes: usize = compiled.blobs.iter().map(Vec::len).sum();
        if !matches!(job, Job::Input { .. }) || defines || bytes > KEPT_BYTES {
            return;
        }
        if self.told != told || self.inputs.len() >= KEPT {
            self.inputs.clear();
            self.told = told;
        }
        self.inputs.insert(digest, compiled.clone());
    }
}

struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    errors: ChildStderr,
    told: Told,
}

/// Work nobody waits for any more ends with its worker.
impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill();
    }
}

/// Why a worker gave no answer.
enum Failure {
    Time,
    Died(String, Option<i32>),
    Broken(String),
}

impl Failure {
    fn is_cpu_limit(signal: Option<i32>) -> bool {
        signal == Some(Signal::XCPU.as_raw())
    }

    fn is_memory_limit(words: &str) -> bool {
        words.contains("memory allocation")
    }

    /// It ended by none of the limits.
    fn is_death(&self) -> bool {
        matches!(self, Self::Died(words, signal) if !Self::is_cpu_limit(*signal) && !Self::is_memory_limit(words))
    }
}

impl CompilerPool {
    /// `program` is this binary.
    pub fn new(program: PathBuf, directory: PathBuf, limits: CompilerLimits, no_ffi: bool) -> Self {
        Self {
            program,
            directory,
            turns: Semaphore::new(limits.workers.max(1)),
            limits,
            idle: RefCell::new(Vec::new()),
            known: RefCell::new(Known::default()),
            no_ffi,
            kept: RefCell::default(),
            deaths: RefCell::new(FxHashMap::default()),
            killed: Cell::new(0),
        }
    }

    /// Start the first worker ahead of the first job.
    pub fn warm_up(&self) -> Result<(), ErrorBody> {
        let worker = self.start()?;
        self.idle.borrow_mut().push(worker);
        Ok(())
    }

    /// How many workers had to be killed.
    pub fn killed(&self) -> u64 {
        self.killed.get()
    }

    pub async fn run(&self, job: Job) -> Result<Compiled, ErrorBody> {
        let digest = digest(&job);
        if self
            .deaths
            .borrow()
            .get(&digest)
            .is_some_and(|deaths| *deaths >= DEATHS)
        {
            return Err(ErrorBody::new(
                ErrorKind::CompilerCrash,
                "the compiler crashed on this source before; it is not tried again",
            )
            .hint("change the source, and please report it"));
        }
        let now = self.known.borrow().now();
        if let Some(compiled) = self.kept.borrow().find(now, &digest) {
            return Ok(compiled);
        }
        let turn = self.turns.acquire().await;
        let idle = self.idle.borrow_mut().pop();
        let was_idle = idle.is_some();
        let mut worker = idle.map_or_else(|| self.start(), Ok)?;
        let mut outcome = self.attempt(&mut worker, &job).await;
        // One that was idle may have ended before it got the job. Compiling changes nothing: a fresh one can do it.
        if was_idle && outcome.as_ref().is_err_and(Failure::is_death) {
            worker = self.start()?;
            outcome = self.attempt(&mut worker, &job).await;
        }
        let answer = match outcome {
            Ok(compiled) => {
                let told = worker.told;
                self.kept.borrow_mut().keep(told, digest, &job, &compiled);
                self.idle.borrow_mut().push(worker);
                Ok(compiled)
            }
            Err(failure) => {
                self.killed.set(self.killed.get() + 1);
                worker.child.kill();
                drop(worker.child.wait().await);
                Err(self.explain(failure, digest))
            }
        };
        drop(turn);
        answer
    }

    fn start(&self) -> Result<Worker, ErrorBody> {
        let failed = |cause: String| {
            ErrorBody::new(
                ErrorKind::InternalError,
                format!("the compiler did not start: {cause}"),
            )
        };
        let secretless: BTreeMap<OsString, Option<OsString>> = std::env::vars_os()
            .filter(|(name, _)| name.to_string_lossy().starts_with("BEAMTALK_"))
            .map(|(name, _)| (name, None))
            .collect();
        let mut child = beamtalk_process::spawn(&Spec {
            program: self.program.clone(),
            name: "beamtalk".into(),
            arguments: vec!["compiler-worker".into()],
            directory: self.directory.clone(),
            environment: secretless,
            stdin: Stdin::Piped,
        })
        .map_err(|cause| failed(cause.to_string()))?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let bytes = self.limits.memory_mib * 1024 * 1024;
        let limit = Rlimit {
            current: Some(bytes),
            maximum: Some(bytes),
        };
        #[cfg(target_os = "linux")]
        rustix::process::prlimit(pid, Resource::As, limit).map_err(|cause| failed(cause.to_string()))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.take_stdin(), child.take_stdout(), child.take_stderr())
        else {
            return Err(failed("it has no pipes".to_owned()));
        };
        Ok(Worker {
            child,
            input,
            output,
            errors,
            told: Told::default(),
        })
    }

    async fn attempt(&self, worker: &mut Worker, job: &Job) -> Result<Compiled, Failure> {
        let (mut knowledge, told) = self.known.borrow().since(worker.told);
        knowledge.no_ffi = self.no_ffi;
        let order = Order {
            knowledge,
            job: job.clone(),
            cpu_seconds: self.limits.cpu.as_secs(),
        };
        let broken = |cause: &dyn std::fmt::Display| Failure::Broken(cause.to_string());
        let json = serde_json::to_vec(&order).map_err(|cause| broken(&cause))?;
        let frame = frame::encode(&json, &[]).map_err(|cause| broken(&cause))?;
        match timeout(self.limits.time, exchange(worker, &frame)).await {
            Err(_) => Err(Failure::Time),
            Ok(Ok(answer)) => {
                worker.told = told;
                let (json, blobs) = frame::decode(&answer).map_err(|cause| broken(&cause))?;
                let outcome = serde_json::from_slice(json).map_err(|cause| broken(&cause))?;
                Ok(Compiled { outcome, blobs })
            }
            Ok(Err(_)) => {
                let mut last_words = String::new();
                let reading = worker.errors.read_to_string(&mut last_words);
                drop(timeout(Duration::from_secs(1), reading).await);
                let status = timeout(Duration::from_secs(1), worker.child.wait()).await;
                let signal = status
                    .ok()
                    .and_then(Result::ok)
                    .and_then(|status| status.signal());
                Err(Failure::Died(last_words, signal))
            }
        }
    }

    fn explain(&self, failure: Failure, digest: [u8; 32]) -> ErrorBody {
        let limit = |name: &str, amount: String| {
            ErrorBody::new(
                ErrorKind::CompilerLimit,
                format!("compiling took more than {amount}"),
            )
            .hint("split the source into smaller parts")
            .detail("limit", name)
        };
        match failure {
            Failure::Time => limit("time", format!("{} s", self.limits.time.as_secs())),
            Failure::Died(_, signal) if Failure::is_cpu_limit(signal) => limit(
                "cpu",
                format!("{} s of processor time", self.limits.cpu.as_secs()),
            ),
            Failure::Died(words, _) if Failure::is_memory_limit(&words) => {
                limit("memory", format!("{} MiB", self.limits.memory_mib))
            }
            Failure::Died(_, _) => {
                let mut deaths = self.deaths.borrow_mut();
                if deaths.len() >= REMEMBERED {
                    deaths.clear();
                }
                *deaths.entry(digest).or_default() += 1;
                ErrorBody::new(
                    ErrorKind::CompilerCrash,
                    "the compiler ended without an answer; another one is ready",
                )
                .hint("try again, or change the source; please report it")
            }
            Failure::Broken(reason) => {
                ErrorBody::new(ErrorKind::InternalError, "the compiler's answer is broken")
                    .detail("reason", reason)
            }
        }
    }
}

async fn exchange(worker: &mut Worker, frame: &[u8]) -> std::io::Result<Vec<u8>> {
    worker.input.write_all(frame).await?;
    worker.input.flush().await?;
    let total = worker.output.read_u32().await? as usize;
    if total > frame::FRAME_LIMIT {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut answer = vec![0; total];
    worker.output.read_exact(&mut answer).await?;
    Ok(answer)
}

fn digest(job: &Job) -> [u8; 32] {
    let json = serde_json::to_vec(job).unwrap_or_default();
    Sha256::digest(json).into()
}
