//! Sizes and times of the protocol; those a user may change are defaults here.

use std::time::Duration;

/// First message of a connection.
pub const AUTH_FRAME: usize = 4 * 1024;
pub const AUTH_TIME: Duration = Duration::from_secs(5);
pub const INBOUND_FRAME: usize = 1024 * 1024;
pub const OUTBOUND_FRAME: usize = 4 * 1024 * 1024;
/// One frame of the control socket.
pub const CONTROL_FRAME: usize = 16 * 1024 * 1024;
pub const UNAUTHENTICATED_CONNECTIONS: usize = 64;
pub const AUTHENTICATED_CONNECTIONS: usize = 128;
pub const OPEN_REQUESTS: usize = 64;
/// Evaluations of a session that wait while one runs.
pub const WAITING_EVALUATIONS: usize = 16;
pub const QUEUE_BYTES: usize = 8 * 1024 * 1024;
pub const QUEUE_MESSAGES: usize = 1024;
pub const QUEUE_STALL: Duration = Duration::from_secs(30);
pub const PING: Duration = Duration::from_secs(30);
pub const DEAD: Duration = Duration::from_mins(1);
pub const SESSION_GRACE: Duration = Duration::from_mins(10);
pub const LOGIN_TOKEN: Duration = Duration::from_mins(1);
pub const BROWSER_LOGIN: Duration = Duration::from_hours(12);

/// Heap of an evaluation in MiB, its output and its printed value in bytes.
pub const EVAL_HEAP_MIB: u64 = 512;
/// Processes that code of users may have, half of what the VM has room for.
pub const MAX_PROCESSES: u64 = 250_000;
/// How long a question that changes nothing may take, whoever works on it.
pub const READ_TIME: Duration = Duration::from_secs(45);
pub const EVAL_OUTPUT: usize = 1024 * 1024;
pub const EVAL_TEXT: usize = 64 * 1024;
/// The same for whoever asks for everything in one line.
pub const EVAL_WHOLE_TEXT: usize = 2 * 1024 * 1024;
/// Time of an evaluation that an editor or an AI agent asked for.
pub const AGENT_EVAL_TIME: Duration = Duration::from_secs(30);
/// The longest an AI agent may ask for.
pub const AGENT_EVAL_CEILING: Duration = Duration::from_mins(10);

/// Handles of a principal, of a workspace; ended ones that are remembered.
pub const HANDLES: usize = 16;
pub const ALL_HANDLES: usize = 64;
pub const ENDED_HANDLES: usize = 256;
pub const HANDLE_IDLE: Duration = Duration::from_mins(30);
pub const HANDLE_AGE: Duration = Duration::from_hours(24);
/// Questions that wait for a person, of a principal; their size and time.
pub const QUESTIONS: usize = 4;
pub const QUESTION_BYTES: usize = 16 * 1024;
pub const QUESTION_TIME: Duration = Duration::from_mins(10);

pub const COMPILER_MEMORY_MIB: u64 = 2048;
pub const COMPILER_TIME: Duration = Duration::from_secs(30);
pub const COMPILER_CPU: Duration = Duration::from_mins(1);

pub const IDLE_STOP: Duration = Duration::from_hours(4);
pub const IDLE_CHECK: Duration = Duration::from_mins(10);
pub const START_TIME: Duration = Duration::from_secs(30);
