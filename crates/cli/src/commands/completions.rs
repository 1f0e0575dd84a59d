//! `beamtalk completions`: a completion script for a shell.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell: bash, zsh or fish.
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Paths of the agents' tree after `beamtalk 9p COMMAND`.
const BASH_PATHS: &str = r#"
_beamtalk_or_path() {
    _beamtalk "$@"
    local word="${COMP_WORDS[COMP_CWORD]}"
    if [[ "${COMP_WORDS[1]}" == 9p && $COMP_CWORD -gt 2 && "$word" != -* ]]; then
        local IFS=$'\n'
        COMPREPLY=( $(beamtalk 9p complete "$word" 2>/dev/null) )
        compopt -o nospace 2>/dev/null
    fi
}
complete -F _beamtalk_or_path -o bashdefault -o default beamtalk
"#;
const ZSH_PATHS: &str = r#"
_beamtalk_or_path() {
    if [[ "${words[2]}" == 9p && $CURRENT -gt 3 && "${words[CURRENT]}" != -* ]]; then
        local -a paths
        paths=("${(@f)$(beamtalk 9p complete "${words[CURRENT]}" 2>/dev/null)}")
        compadd -S '' -- $paths
    else
        _beamtalk "$@"
    fi
}
(( $+functions[compdef] )) && compdef _beamtalk_or_path beamtalk
"#;
const FISH_PATHS: &str = "complete -c beamtalk -n '__fish_seen_subcommand_from 9p' -f -a '(beamtalk 9p complete (commandline -ct))'\n";

pub(crate) fn run(_terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let shell = match arguments.shell.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::Arguments::command(), "beamtalk", &mut script);
    match arguments.shell.as_str() {
        "bash" => script.extend_from_slice(BASH_PATHS.as_bytes()),
        "zsh" => script.extend_from_slice(ZSH_PATHS.as_bytes()),
        "fish" => script.extend_from_slice(FISH_PATHS.as_bytes()),
        _ => {}
    }
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Success)
}
