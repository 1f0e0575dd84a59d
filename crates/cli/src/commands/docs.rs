//! `beamtalk docs`: the user guide in the terminal.

use std::io::Write;

use crate::exit::Exit;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The page to show; without one, the list of pages.
    topic: Option<String>,
}

/// The user pages: topic, one line about it, text.
const PAGES: &[(&str, &str, &str)] = &[(
    "agents",
    "Sessions in tmux, everything as files.",
    include_str!("../../../../docs/agents.md"),
)];

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut out = std::io::stdout().lock();
    match &arguments.topic {
        None => {
            for (topic, summary, _) in PAGES {
                writeln!(out, "{topic:<14} {summary}")?;
            }
            Ok(Exit::Success)
        }
        Some(topic) => match PAGES.iter().find(|(name, _, _)| name == topic) {
            Some((_, _, text)) => {
                out.write_all(text.as_bytes())?;
                Ok(Exit::Success)
            }
            None => anyhow::bail!("no page named `{topic}`; `beamtalk docs` lists the pages"),
        },
    }
}
