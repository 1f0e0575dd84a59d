//! `beamtalk web`: open the workspace in a browser. The one-time token goes through a private file, so that it appears
//! in no process list and no history of addresses.

use std::process::Stdio;

use beamtalk_client::control_answer;
use beamtalk_storage::SessionName;
use serde_json::json;

use crate::commands::workspace::defaults;
use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{find_or_start, find_place};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print the file to open instead of opening it.
    #[arg(long)]
    no_open: bool,
    /// Print an address with a one-time login, for a machine without a browser.
    #[arg(long, conflicts_with = "no_open")]
    print_url: bool,
    /// Log in as an observer, who may look and change nothing.
    #[arg(long)]
    observer: bool,
    /// Use 127.0.0.1, for a browser that does not resolve names below localhost.
    #[arg(long)]
    plain_host: bool,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let place = find_place(terminal, None)?;
    let options =
        StartFlags::of_environment()?.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    find_or_start(&place, terminal, &options)?;
    let (mut control, info) = place.require_control()?;
    let role = if arguments.observer { "observer" } else { "owner" };
    let request = json!({"op": "login-token", "role": role, "plain_host": arguments.plain_host});
    let answer = control_answer(control.call(&request)?)?;
    let token = answer["token"].as_str().unwrap_or_default();
    let site = answer["site"].as_str().unwrap_or_default();
    if arguments.plain_host {
        terminal.status(
            "warning: cookies ignore ports, so every other server on 127.0.0.1 that this browser visits is sent this login.",
        );
    }
    if arguments.print_url {
        terminal.status("Use it within 60 s; it works once.");
        let url = format!("{site}/#login={token}");
        if terminal.is_json() {
            terminal.print(json!({"url": url}))?;
        } else {
            terminal.print(url)?;
        }
        return Ok(Exit::Success);
    }
    let session = SessionName::parse(&info.session).map_err(Fault::from)?;
    let run = place.state.create_run_directory(&session).map_err(Fault::from)?;
    // Whatever earlier page is still there was used, or is too old.
    run.remove_login_pages().map_err(Fault::from)?;
    let file = run
        .write_login_page(page(site, token).as_bytes())
        .map_err(Fault::from)?;
    if arguments.no_open {
        terminal.status("Open this file in a browser within 60 s; it works once.");
        if terminal.is_json() {
            terminal.print(json!({"file": file}))?;
        } else {
            terminal.print(file.display())?;
        }
        return Ok(Exit::Success);
    }
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let opened = beamtalk_process::asked(opener)
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match opened {
        Ok(status) if status.success() => {
            terminal.status(format_args!("Opened {site}/ in a browser."));
            Ok(Exit::Success)
        }
        _ => {
            run.remove_login_pages().map_err(Fault::from)?;
            Err(Fault::failure("no_browser", "no browser could be opened")
                .with_hint("beamtalk web --print-url, or --no-open and open the file yourself")
                .into())
        }
    }
}

/// A form that posts the token; it holds nothing from outside that could be markup.
fn page(site: &str, token: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Beamtalk</title>\n<form method=\"post\" action=\"{site}/login\">\n\
         <input type=\"hidden\" name=\"token\" value=\"{token}\">\n\
         <button>Open the workspace</button>\n</form>\n<script>document.forms[0].submit()</script>\n"
    )
}
