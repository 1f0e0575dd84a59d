//! The tools row by row as they are specified: name, class, hints, whether it may become a task, input, output.

use serde_json::Value;

use super::{TOOLS, input_schema, output_schema};

/// `?` may be left out, `*` is data, `[a b]` words; outputs may have more.
const ROWS: &str = "
evaluate X rDiO T | code session? trace? timeout_ms? | value* text* class output* steps classes session ms
close_session X rdIo - | session | closed
bindings R RdIo - | session? | bindings
interrupt X rdIo - | session? | stopped
complete R RdIo - | code cursor? session? | completions start
check_code R RdIo - | code mode?[expression method class] | findings
docs R RdIo - | class? erlang_module? selector? side?[instance class] | markdown* signature
search_docs R RdIo - | query limit? kind?[topic class method example error] | hits
search_examples R RdIo - | query limit? | hits
search_classes R RdIo - | query limit? | hits
list_classes R RdIo - | filter? limit? cursor? | classes next_cursor
read_source R RdIo - | class selector? side?[instance class] | source* signature file line origin disk_differs
find_code R RdIo - | kind[senders implementors references] name limit? | sites total
list_packages R RdIo - | | packages
package_classes R RdIo - | package | classes
list_actors R RdIo - | class? limit? | actors total
inspect R RdIo - | actor? binding? session? path? page? | kind class fields total
supervision_tree R RdIo - | scope?[default system] | nodes
show_codegen R RdIo - | code? class? selector? form?[erlang core] | text*
read_transcript R RdIo - | lines? | text* dropped
describe R RdIo - | | policy toolsets capabilities limits versions workspace evaluate_note
lint R RdIo T | path? | findings
diagnostic_summary R RdIo T | path? | codes type_coverage
load_file X rdIO - | path | classes errors
load_project X rdIO T | path? include_tests? force? | classes errors summary*
reload_class X rdIo - | class | classes affected_actors migration_failures findings
unload XD rDIo - | class confirm? | class
kill_actor XD rDIo - | actor graceful? confirm? | stopped
precheck_method R RdIo - | class selector source side?[instance class] | findings checked not_checked
try_method X rdIo - | class selector source side?[instance class] | entry findings
save_method X rdIo - | class selector source side?[instance class] | entry findings
save_class X rdio - | source path | entry classes
remove_method X rdIo - | class selector side?[instance class] | entry
remove_class XD rDio - | class confirm? | entry actors_stopped
list_changes R RdIo - | all? author_kind?[human agent] limit? | entries
dirty_methods R RdIo - | | dirty
diff_change R RdIo - | seq? class? | diff* base* image* disk*
flush X rdIo - | class? file? kind? author_kind?[human agent] confirm_destructive? | flushed files merged new_classes removed_classes skipped conflicts
revert_change X rdio - | seq | entry
resolve_conflict XD rDio - | class selector? side?[instance class] take[image disk] confirm? | entries conflicts
recheck_image R RdIo T | | checked stale findings
list_tests R RdIo - | | tests
test X rdiO T | class? method? file? jobs? timeout_s? failed_only? | total passed failed skipped duration tests
enable_tracing X rdIo - | | enabled
disable_tracing X rdIo - | | enabled
get_traces R RdIo - | actor? selector? class? outcome? min_duration_ns? limit? | traces
actor_stats R RdIo - | actor? | stats
export_traces X rdio - | path? actor? selector? class? outcome? min_duration_ns? limit? | path count
loop_status R RdIo - | | processes* workflows* runs*
loop_graph R RdIo - | | text*
loop_state R RdIo - | key? | state*
loop_output R RdIo - | process lines? | text*
post_event X rdIO - | event value | changed
run_workflow X rDiO T | workflow changed? wait? | result ms error*
control_process X rDiO - | process command[start stop restart] | state*
list_sessions R RdIo - | state? | sessions
create_session X rdiO - | backend cwd sandbox? model? level? alias? context? worktree? | id* backend* state*
spawn_agent X rdiO - | backend role prompt? cwd? sandbox? model? level? alias? context? worktree? | id* backend* state*
control_session X rDiO - | session_id command[stop restart interrupt refresh clear compact resume] | state*
kill_agent XD rDIo - | session_id confirm? | killed
prompt_session X rdiO T | session_id text wait? queue? timeout? | output* turn queued
read_output R RdIo - | session_id tail? | text* state*
session_diff R RdIo - | session_id | diff* stat*
set_state X rdIo - | state[running idle] | state*
send_message X rdio - | to type subject body | id
check_inbox X rdio - | complete? | message* left
mail_history R RdIo - | agent_id date? pattern? | messages
mail_search R RdIo - | agent_id date? pattern? | messages
list_roles R RdIo - | | items
list_skills R RdIo - | | items
discover_skill R RdIo - | keyword | items
load_skill R RdIo - | name | text*
list_files R RdIo - | path | names
read_file R RdIo - | path | text*
write_file X rDiO - | path text | written
execute_code X rDiO T | code language? timeout? sandbox? | output* status
list_approvals R RdIo - | | approvals
ask_person X rdio T | question choices? timeout? | answer* note* no_answer
";

/// Every tool has the name, place, class, hints, arguments and results that the specification gives it, and no tool
/// is there that it does not name.
#[test]
fn the_tools_are_those_of_the_specification() {
    let rows: Vec<&str> = ROWS.trim().lines().collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(names, TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>());
    for (row, tool) in rows.iter().zip(TOOLS) {
        let [head, input, output] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let task = if tool.is_long() { "T" } else { "-" };
        let found = format!("{} {} {} {task}", tool.name, tool.class.name(), tool.hints);
        assert_eq!(head.trim(), found);
        let taken = input_schema(tool.name);
        let required = taken["required"].as_array().cloned().unwrap_or_default();
        // Words in brackets have blanks between them.
        let mut wanted = Vec::new();
        for part in input.split(']') {
            let (names, words) = part.split_once('[').unwrap_or((part, ""));
            let mut names: Vec<(&str, &str)> = names.split_whitespace().map(|name| (name, "")).collect();
            if let Some(last) = names.last_mut() {
                last.1 = words;
            }
            wanted.extend(names);
        }
        let known = taken["properties"].as_object().expect(tool.name);
        assert_eq!(known.len(), wanted.len(), "{}", tool.name);
        for (name, words) in wanted {
            let plain = name.trim_end_matches('?');
            let property = known
                .get(plain)
                .unwrap_or_else(|| panic!("{} {plain}", tool.name));
            assert_eq!(
                required.contains(&Value::from(plain)),
                plain == name,
                "{} {plain}",
                tool.name
            );
            if !words.is_empty() {
                let words: Vec<&str> = words.split(' ').collect();
                assert_eq!(property["enum"], Value::from(words), "{} {plain}", tool.name);
            }
        }
        for name in output.split_whitespace() {
            let plain = name.trim_end_matches('*');
            let property = &output_schema(tool.name)["properties"][plain];
            assert!(!property.is_null(), "{} gives {plain}", tool.name);
            let is_data = property["x-beamtalk-origin"] == "data";
            assert!(
                is_data || plain == name,
                "{} {plain} is not marked as data",
                tool.name
            );
        }
    }
}
