//! `beamtalk loop run --workspace`: the workspace's daemon runs the loop, this command shows what it says.

use std::io::Write;
use std::path::Path;

use beamtalk_client::{Control, control_answer};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{find_or_start, find_place};

/// Ask the daemon for a loop and stay attached to it.
pub(super) fn run(terminal: &mut Terminal, mut request: Value) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let flags = StartFlags::of_environment()?;
    let options = flags.options(crate::commands::workspace::defaults(
        &place,
        Config::of(&place.state)?.start,
    )?)?;
    let found = find_or_start(&place, terminal, &options)?;
    let socket = found.info.socket;
    let mut control = Control::connect(socket.as_ref())?;
    control.wait_for_ever()?;
    request["op"] = json!("loop-run");
    let variables: serde_json::Map<String, Value> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?.into())))
        .collect();
    request["environment"] = variables.into();
    control.send(&request)?;
    pass_signals(socket)?;
    while let Some(frame) = control.receive()? {
        if frame["error"]["kind"] == "loop_running" {
            return Err(Fault {
                exit: Exit::Owned,
                kind: "loop_running",
                message: frame["error"]["message"].as_str().unwrap_or_default().to_owned(),
                hint: frame["error"]["hint"].as_str().map(str::to_owned),
            }
            .into());
        }
        let frame = control_answer(frame)?;
        if frame["done"] == true {
            let code = frame["exit"].as_u64().and_then(|code| u8::try_from(code).ok());
            return Ok(Exit::Code(code.unwrap_or(70)));
        }
        // Whoever reads our output may have gone; the loop goes on.
        if let Some(text) = frame["out"].as_str() {
            drop(std::io::stdout().write_all(text.as_bytes()));
            drop(std::io::stdout().flush());
        }
        if let Some(text) = frame["err"].as_str() {
            drop(std::io::stderr().write_all(text.as_bytes()));
        }
    }
    Err(Fault::failure(
        "loop_gone",
        "the workspace ended, and the loop with it".to_owned(),
    )
    .into())
}

/// A signal stops the loop, not the workspace; a second one forces its end. When this command is killed the daemon
/// sees that nobody is attached.
fn pass_signals(socket: String) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut interrupt, mut terminate, mut hangup) = {
        let _entered = runtime.enter();
        (
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        )
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        _ = interrupt.recv() => {}
                        _ = terminate.recv() => {}
                        _ = hangup.recv() => {}
                    }
                    let asked = Control::connect(Path::new(&socket))
                        .and_then(|mut control| control.call(&json!({"op": "loop-stop"})));
                    if asked.is_err() {
                        #[expect(
                            clippy::exit,
                            reason = "the daemon is gone, and the main thread waits for it"
                        )]
                        std::process::exit(i32::from(Exit::Failure.code()));
                    }
                }
            });
        })?;
    Ok(())
}
