//! Generated code as text, by a node that lives for one answer: what it reads makes atoms, and what it makes of it may
//! take much, so neither happens in a live image.

use std::process::Stdio;
use std::time::Duration;

use beamtalk_etf::{Limits, Term};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::{Erlang, Error, Runtime, launch};

/// Longest text.
const TEXT_LIMIT: usize = 32 * 1024 * 1024;

/// What a printer may take.
#[derive(Clone, Copy, Debug)]
pub struct PrinterLimits {
    pub memory_mib: u64,
    pub time: Duration,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    #[error("printing took more than {} s", .0.as_secs())]
    Time(Duration),
    #[error("printing took more than {0} MiB")]
    Memory(u64),
    #[error(transparent)]
    Node(#[from] Error),
}

/// Have the request printed. The node ends with the future.
pub async fn print_forms(
    erlang: &Erlang,
    runtime: &Runtime,
    request: &Term,
    limits: PrinterLimits,
) -> Result<String, PrintError> {
    match tokio::time::timeout(limits.time, exchange(erlang, runtime, request, limits)).await {
        Ok(text) => text,
        Err(_) => Err(PrintError::Time(limits.time)),
    }
}

async fn exchange(
    erlang: &Erlang,
    runtime: &Runtime,
    request: &Term,
    limits: PrinterLimits,
) -> Result<String, PrintError> {
    let broken = |cause| Error::ErlangBroken {
        program: erlang.program().to_owned(),
        cause,
    };
    let words = limits.memory_mib * 1024 * 1024 / 8;
    let mut child = Command::from(launch::printer_command(erlang, runtime, words))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(broken)?;
    let (Some(mut input), Some(mut output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Error::NodeGone { status: None }.into());
    };
    let frame = beamtalk_etf::encode(request);
    let length = u32::try_from(frame.len()).map_err(|_| Error::FrameTooLong {
        length: frame.len(),
        limit: u32::MAX as usize,
    })?;
    let answer = async {
        input.write_all(&length.to_be_bytes()).await?;
        input.write_all(&frame).await?;
        input.flush().await?;
        let length = output.read_u32().await? as usize;
        let mut answer = Vec::new();
        (&mut output)
            .take(length.min(TEXT_LIMIT) as u64)
            .read_to_end(&mut answer)
            .await?;
        std::io::Result::Ok(answer)
    };
    // A printer that ends without an answer was ended by the limit of its heap.
    let Ok(answer) = answer.await else {
        return Err(PrintError::Memory(limits.memory_mib));
    };
    let text = beamtalk_etf::decode(
        &answer,
        Limits {
            depth: 8,
            elements: 16,
            bytes: TEXT_LIMIT,
        },
    );
    match text {
        Ok(Term::Binary(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Err(Error::NodeGone { status: None }.into()),
    }
}
