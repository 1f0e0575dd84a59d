use clap::CommandFactory;

use super::Arguments;

#[test]
fn arguments_are_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn help_of_every_command() {
    let mut command = Arguments::command().term_width(100);
    let mut text = command.render_long_help().to_string();
    let names: Vec<String> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .map(|sub| sub.get_name().to_owned())
        .collect();
    command.build();
    for name in names {
        if let Some(sub) = command.find_subcommand_mut(&name) {
            text.push_str("\n=== ");
            text.push_str(&name);
            text.push_str("\n\n");
            text.push_str(&sub.clone().term_width(100).render_long_help().to_string());
        }
    }
    insta::assert_snapshot!(text);
}
