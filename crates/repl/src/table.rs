//! The commands of a session: one table for dispatch, completion and `:help`.

use beamtalk_syntax::nearest;

/// Declares the commands: variant, names (the first is the full one), argument, what it does.
macro_rules! commands {
    ($($variant:ident [$name:literal $(, $short:literal)*] $argument:ident $usage:literal $about:literal;)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Command {
            $($variant,)*
        }

        pub const COMMANDS: &[Entry] = &[
            $(Entry {
                command: Command::$variant,
                name: $name,
                shorts: &[$($short),*],
                argument: Argument::$argument,
                usage: $usage,
                about: $about,
            },)*
        ];
    };
}

/// What follows a command, for completion and for refusing what is missing or too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Argument {
    None,
    Class,
    OptionalClass,
    Expression,
    Path,
    Topic,
    Filter,
    /// A word that is neither code nor a path; those that stand small in the usage are offered.
    Word,
    /// A class, then perhaps a method of it.
    Method,
    Selector,
}

#[derive(Debug)]
pub struct Entry {
    pub(crate) command: Command,
    /// Without the colon.
    pub name: &'static str,
    pub(crate) shorts: &'static [&'static str],
    pub(crate) argument: Argument,
    /// How the argument is written in `:help`.
    pub(crate) usage: &'static str,
    pub about: &'static str,
}

commands! {
    Help ["help", "h", "?"] Topic "[topic]" "commands; or a command, a page (supervisors, data, …), an error code, classes, ~PATTERN, Class, a type alias, Class selector, Class class [selector], pkg@Class, Erlang module [function]";
    Exit ["exit", "quit", "q"] None "" "leave";
    Load ["load", "l"] Path "PATH" "load a file or directory";
    Reload ["reload", "r"] OptionalClass "[Class]" "load a class again; without a name: the last loaded path";
    Sync ["sync", "s"] None "" "load changed files of the project";
    Unload ["unload"] Class "Class" "remove a class from the image";
    Bindings ["bindings", "b"] None "" "variables and their values";
    Clear ["clear"] None "" "drop the variables of this session";
    Actors ["actors", "a"] None "" "list the running actors";
    Inspect ["inspect", "i"] Expression "EXPR" "fields of a value; again with a field name: look into it (`..` goes back)";
    Kill ["kill"] Word "PID" "stop an actor, after 5 s by force";
    Sessions ["sessions"] None "" "list the sessions";
    Test ["test", "t"] OptionalClass "[Class]" "load changed tests and run them";
    ShowCodegen ["show-codegen", "sc"] Expression "[core] EXPR" "generated Erlang, or Core Erlang";
    Trace ["trace"] Expression "EXPR" "value of each statement";
    Time ["time"] Expression "EXPR" "value and milliseconds";
    Approvals ["approvals"] Word "[approve|always|reject ID]" "calls of AI clients that wait for you, with what they would do";
    Interrupt ["interrupt", "int"] None "" "stop what this session evaluates";
    Changes ["changes"] Word "[all]" "changes of the image; `all`: earlier ones and those of earlier runs too";
    Dirty ["dirty"] None "" "methods that differ from their file";
    Diff ["diff"] OptionalClass "[Class]" "image against disk; in a conflict base, image and disk";
    Take ["take"] Word "image|disk [Class [selector]]" "settle a conflict in favour of one side";
    Discard ["discard"] Class "SEQ | Class | all" "set changes aside and load what is on disk for them (asks)";
    Flush ["flush"] Filter "[FILTER]" "write changes to files: all, Class, #'new-class', #{#file => \"p\"}";
    FlushDestructive ["flush-destructive"] Filter "[FILTER]" "the same, removed classes too (asks)";
    Revert ["revert"] Word "SEQ" "undo one change, or bring it back";
    Restore ["restore"] Word "SEQ | Class | all" "install changes of the last run that were not flushed";
    RemoveMethod ["remove-method"] Class "Class [class] selector" "remove a method from the image";
    RemoveClass ["remove-class"] Class "Class" "remove a class from the image (asks)";
    Recheck ["recheck"] Word "image" "check all classes of the image";
    Transcript ["transcript"] Word "on|off" "show the Transcript of other sessions";
    Error ["error"] None "" "the last error in full";
    Source ["source", "src"] Method "Class [class] [selector]" "source as it runs, with file and line";
    Senders ["senders"] Selector "selector" "methods that send it, as file:line Class>>selector";
    Implementors ["implementors"] Selector "selector" "methods of that name";
    References ["references"] Class "Class" "methods that name the class";
    Edit ["edit", "e"] Method "Class [class] [selector]" "the source in $VISUAL or $EDITOR; saving patches it";
    Top ["top"] None "" "live view of the actors; l m r c n sort, q leaves";
    Status ["status"] None "" "workspace, address, session, node, memory, capabilities, limits";
    Print ["print"] Word "all|short" "layout of results: everything, or cut to what can be looked at";
    Reconnect ["reconnect"] None "" "connect anew, to the same session if possible";
}

/// An input that starts with a colon, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    Command(Command, &'a str),
    /// Why the line is no command, as it is shown.
    Refused(String),
}

impl Entry {
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.shorts.iter().copied())
    }

    fn needs_argument(&self) -> bool {
        !self.usage.is_empty() && !self.usage.starts_with('[') || self.usage == "[core] EXPR"
    }
}

pub fn find(name: &str) -> Option<&'static Entry> {
    COMMANDS
        .iter()
        .find(|entry| entry.names().any(|known| known == name))
}

/// `None` when the input is no command but code.
pub(crate) fn parse(input: &str) -> Option<Parsed<'_>> {
    let line = input.trim().strip_prefix(':')?;
    let (name, argument) = split_word(line);
    let Some(entry) = find(name) else {
        return Some(Parsed::Refused(unknown(name)));
    };
    let usage = || format!("Usage: :{} {}", entry.name, entry.usage);
    Some(if entry.argument == Argument::None && !argument.is_empty() {
        Parsed::Refused(format!(":{} takes no argument", entry.name))
    } else if entry.needs_argument() && argument.is_empty() {
        Parsed::Refused(usage())
    } else {
        Parsed::Command(entry.command, argument)
    })
}

/// The first word and the rest, both without blanks around them.
pub(crate) fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim()),
        None => (text, ""),
    }
}

fn unknown(name: &str) -> String {
    let names = COMMANDS.iter().flat_map(Entry::names);
    match nearest(name, names, 1).first() {
        Some(near) => format!("Unknown command :{name}. Did you mean :{near}?"),
        None => format!("Unknown command :{name}. `:help` lists the commands."),
    }
}

/// What `:help` prints on so many columns.
pub(crate) fn overview(columns: usize) -> String {
    let heads: Vec<String> = COMMANDS
        .iter()
        .map(|entry| format!(":{} {}", entry.name, entry.usage).trim_end().to_owned())
        .collect();
    // A long one has its line for itself.
    let width = heads.iter().map(String::len).filter(|width| *width <= 28).max();
    let width = width.unwrap_or(0);
    let lines = COMMANDS.iter().zip(&heads).map(|(entry, head)| {
        let shorts: Vec<String> = entry.shorts.iter().map(|short| format!(":{short}")).collect();
        let shorts = if shorts.is_empty() {
            String::new()
        } else {
            format!(" ({})", shorts.join(", "))
        };
        let margin = format!("\n{}", " ".repeat(width + 4));
        let words = format!("{}{shorts}", entry.about);
        let room = columns.saturating_sub(width + 4).max(20);
        let about = wrapped(&words, room).join(&margin);
        if head.len() > width {
            format!("  {head}{margin}{about}\n")
        } else {
            format!("  {head:width$}  {about}\n")
        }
    });
    let mut text = String::from("Type an expression and press Enter. Commands:\n");
    text.extend(lines);
    let keys =
        "Tab completes, the up arrow and Ctrl-R find earlier input, Ctrl-C drops or stops, Ctrl-D leaves.";
    text.push_str(&wrapped(keys, columns.max(20)).join("\n"));
    text
}

/// The words of a text in lines of so many columns.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + 1 + word.len() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The words of a usage that are typed as they stand: `on` and `off` of `on|off`.
pub(crate) fn words(usage: &str) -> Vec<&str> {
    usage
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| word.starts_with(char::is_lowercase) && *word != "selector")
        .collect()
}

/// For each command the first of its names that begins with this, for completion.
pub(crate) fn completions(prefix: &str) -> Vec<&'static str> {
    let mut found: Vec<&str> = COMMANDS
        .iter()
        .filter_map(|entry| entry.names().find(|name| name.starts_with(prefix)))
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_offered_found_and_listed() {
        let help = overview(120);
        for entry in COMMANDS {
            for name in entry.names() {
                let offered = completions(name);
                assert!(
                    entry.names().any(|known| offered.contains(&known)),
                    "{name} is offered"
                );
                assert_eq!(
                    find(name).map(|found| found.command),
                    Some(entry.command),
                    "{name}"
                );
                assert!(
                    help.contains(&format!(":{name} "))
                        || help.contains(&format!(":{name}\n"))
                        || help.contains(&format!(":{name},"))
                        || help.contains(&format!(":{name})")),
                    "{name} is listed"
                );
            }
        }
    }

    #[test]
    fn no_two_commands_share_a_name() {
        let mut names: Vec<&str> = COMMANDS.iter().flat_map(Entry::names).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn lines_are_taken_apart() {
        assert_eq!(parse("1 + 2"), None);
        assert_eq!(parse(":b"), Some(Parsed::Command(Command::Bindings, "")));
        assert_eq!(
            parse("  :sc core  3 + 4 "),
            Some(Parsed::Command(Command::ShowCodegen, "core  3 + 4"))
        );
        assert_eq!(
            parse(":sync now"),
            Some(Parsed::Refused(":sync takes no argument".to_owned()))
        );
        assert_eq!(
            parse(":kill"),
            Some(Parsed::Refused("Usage: :kill PID".to_owned()))
        );
        assert_eq!(parse(":flush"), Some(Parsed::Command(Command::Flush, "")));
    }

    #[test]
    fn an_unknown_word_gets_the_nearest_command() {
        assert_eq!(
            parse(":bindigns"),
            Some(Parsed::Refused(
                "Unknown command :bindigns. Did you mean :bindings?".to_owned()
            ))
        );
        assert_eq!(
            parse(":zzzzzzzzzz"),
            Some(Parsed::Refused(
                "Unknown command :zzzzzzzzzz. `:help` lists the commands.".to_owned()
            ))
        );
    }

    #[test]
    fn the_overview_is_readable() {
        for columns in [80, 120] {
            let text = overview(columns);
            assert!(text.lines().all(|line| line.len() <= columns), "{text}");
            insta::assert_snapshot!(format!("the_overview_on_{columns}_columns"), text);
        }
    }
}
