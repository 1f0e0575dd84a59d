%% `beamtalk run': one program in a node of its own, on the caller's standard streams.
%%
%% The job is a file in external term format that is removed once it is read. Modules that still have to be
%% compiled are compiled, written and loaded here, so that one start of the VM is enough.
-module(beamtalk_script).

-export([start/2, program/1]).

-define(HEAP_WORDS, 131072).

-spec start(file:filename(), file:filename()) -> no_return().
start(Image, File) ->
    {ok, Binary} = file:read_file(File),
    _ = file:delete(File),
    Job = binary_to_term(Binary),
    try run(Image, Job) of
        Status -> finish(Status)
    catch
        Class:Reason:Stack -> internal({Class, Reason, Stack})
    end.

run(Image, #{compile := Compile, load := Load, settle := Settle, paths := Paths, packages := Packages,
             applications := Applications} = Job) ->
    beamtalk_boot:prepare_streams(),
    beamtalk_boot:start([{image, Image}]),
    %% A program has the node for itself.
    beamtalk_guard:configure(#{<<"max_processes">> => erlang:system_info(process_limit) * 15 div 16}),
    code:add_pathsa([unicode:characters_to_list(Path) || Path <- Paths]),
    lists:foreach(fun beamtalk_package:describe/1, Packages),
    application:set_env(beamtalk, program, maps:get(program, Job)),
    application:set_env(beamtalk, owns_node, true),
    case prepare(Compile, Load) of
        {ok, Modules} ->
            ok = settle(Settle),
            _ = [application:ensure_all_started(App) || App <- Applications],
            case beamtalk_class:load_all(Modules) of
                ok -> program(Job);
                {error, Reason} -> refuse("cannot load the program", io_lib:format("~0tp", [Reason]))
            end;
        {error, Text} ->
            refuse("the Erlang compiler refused generated code", Text)
    end.

prepare(Compile, Load) ->
    Jobs = erlang:system_info(schedulers_online),
    put(prepared, []),
    beamtalk_forms:parallel(Compile ++ Load, {Jobs, fun module/1}, fun keep/2),
    case erase(prepared) of
        {error, Text} -> {error, Text};
        Modules -> {ok, Modules}
    end.

%% Forms to compile and write, or a module that is already on disk.
module({Forms, nil}) ->
    beamtalk_forms:compile(Forms);
module({Forms, Path}) ->
    %% The same bytes that a build writes.
    case beamtalk_forms:compile_with_summary(Forms) of
        {ok, Module, Beam} ->
            ok = filelib:ensure_dir(Path),
            ok = beamtalk_forms:write(Path, Beam),
            {ok, Module, Beam};
        {error, Text} -> {error, Text}
    end;
module(Path) ->
    case file:read_file(Path) of
        {ok, Beam} ->
            {ok, binary_to_atom(filename:basename(Path, <<".beam">>)), Beam};
        {error, Reason} ->
            {error, [Path, ": ", file:format_error(Reason)]}
    end.

keep(_, {ok, Module, Beam}) ->
    case get(prepared) of
        {error, _} -> ok;
        Modules -> put(prepared, [{Module, Beam} | Modules])
    end;
keep(_, {error, Text}) -> put(prepared, {error, Text}).

%% Files that describe the directory: put in place only after its modules are.
settle(Files) ->
    lists:foreach(fun({Path, Content}) -> ok = beamtalk_forms:write(Path, Content) end, Files).

%% The program runs in a process of its own, which traps no exits and may be killed by its links.
-spec program(map()) -> byte().
program(#{class := Class, selector := Selector, arguments := Arguments}) ->
    %% There is one such process: with room from the start it does not collect garbage every few hundred messages.
    {_, Monitor} = spawn_opt(fun() -> exit({status, send(Class, Selector, Arguments)}) end,
                             [monitor, {min_heap_size, ?HEAP_WORDS}]),
    receive
        {'DOWN', Monitor, process, _, {status, Status}} -> Status;
        {'DOWN', Monitor, process, _, Reason} ->
            report(beamtalk_report:caught(exit, Reason, []))
    end.

send(Class, Selector, Arguments) ->
    try beamtalk_dispatch:send_list(beamtalk_class:named(Class), Selector, Arguments) of
        _ -> 0
    catch
        throw:{'$bt_exit', Status} -> Status;
        Kind:Reason:Stack -> report(beamtalk_report:caught(Kind, Reason, Stack))
    end.

%% Message, hint and frames on standard error, as a session tells them.
report(#{told := Message, advice := Hint, frames := Frames}) ->
    say([<<"Error: ">>, Message]),
    _ = [say([<<"Hint: ">>, Hint]) || Hint =/= nil],
    _ = [say([<<"  at ">>, Frame]) || Frame <- lists:sublist(Frames, 10)],
    1.

refuse(What, Text) ->
    say(["Error: ", What, ": ", Text]),
    70.

say(Text) -> io:put_chars(standard_error, [Text, $\n]).

%% Halting flushes the streams.
-spec finish(byte()) -> no_return().
finish(Status) -> halt(Status).

-spec internal(term()) -> no_return().
internal(What) ->
    io:format(standard_error, "Error: internal error of Beamtalk: ~0tP~n", [What, 40]),
    halt(70).
