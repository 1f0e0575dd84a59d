%% A node that serves one command of the binary.
%%
%% Requests come on descriptor 0 and answers go to descriptor 3, each a term in external format behind a
%% length of four bytes. One request is served at a time, in a process of its own, so that the end of
%% the pipe ends the node at any moment.
-module(beamtalk_worker).

-export([start/1, send/1, compiler/1, format_error/1]).

-spec start(file:filename()) -> no_return().
start(Image) ->
    process_flag(trap_exit, true),
    register(?MODULE, self()),
    beamtalk_boot:prepare_streams(),
    Port = open_port({fd, 0, 3}, [{packet, 4}, binary, eof]),
    persistent_term:put(?MODULE, Port),
    beamtalk_boot:start([{image, Image}]),
    beamtalk_compiler_port:attach(fun ?MODULE:compiler/1),
    loop(Port, queue:new(), idle).

%% Send an answer or an event; any process may.
-spec send(term()) -> ok.
send(Term) ->
    true = port_command(persistent_term:get(?MODULE), term_to_binary(Term)),
    ok.

loop(Port, Waiting, Current) ->
    receive
        {Port, {data, Frame}} ->
            case binary_to_term(Frame) of
                {answer, Number, Answer} ->
                    erase({asked, Number}) ! {?MODULE, Number, Answer},
                    loop(Port, Waiting, Current);
                Request ->
                    next(Port, queue:in(Request, Waiting), Current)
            end;
        {ask, From, Number, Question} ->
            put({asked, Number}, From),
            send({request, Number, Question}),
            loop(Port, Waiting, Current);
        {Port, eof} ->
            halt(0, [{flush, false}]);
        {'EXIT', Port, _} ->
            halt(0, [{flush, false}]);
        {'DOWN', Current, process, _, normal} ->
            next(Port, Waiting, idle);
        {'DOWN', Current, process, _, Reason} ->
            send({crashed, unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 60]))}),
            next(Port, Waiting, idle);
        _ ->
            loop(Port, Waiting, Current)
    end.

%% The compiler behind beamtalk_compiler_port: the binary at the other end of the pipe.
-spec compiler(tuple()) -> {ok, term()} | {error, map()} | ok.
compiler({compile, Mode, Class, Side, Selector, Source}) ->
    case ask_for_method(Class, Side, Selector, Source) of
        {ok, _} when Mode =:= precheck -> {ok, no_findings()};
        {ok, Modules} -> install(Class, Selector, Modules);
        {error, Text} -> {error, failed(compile_failed, Class, Selector, Text)}
    end;
compiler({evaluate, Class, Side, Selector, Source}) ->
    case ask_for_method(Class, Side, Selector, Source) of
        {ok, [Forms | _]} -> {ok, binary_to_term(Forms)};
        {error, Text} -> {error, failed(compile_failed, Class, Selector, Text)}
    end;
compiler({reload, Class, File}) ->
    case ask({reload, Class, File}) of
        {ok, Modules} -> install(Class, reload, Modules);
        {error, Text} -> {error, failed(reload_failed, Class, reload, Text)}
    end;
compiler({removed, Class, Side, Selector}) ->
    case ask({removed, Class, Side, Selector}) of
        {ok, Modules} ->
            _ = install(Class, Selector, Modules),
            ok;
        {error, _} -> ok
    end;
compiler(_Notice) ->
    ok.

ask_for_method(Class, Side, Selector, Source) ->
    #{superclass := Super, slots := Slots, class_slots := ClassSlots} = beamtalk_class:record(Class),
    Names = fun(All) -> [Name || #{name := Name} <- All] end,
    ask({compile, Class, Side, Selector, Source, Super, Names(Slots), Names(ClassSlots)}).

install(_Class, _Selector, []) -> {ok, nil};
install(Class, Selector, Modules) ->
    case beamtalk_class:load_forms([binary_to_term(Forms) || Forms <- Modules]) of
        ok -> {ok, nil};
        {error, #{error := _} = Exception} -> {error, Exception};
        {error, Reason} ->
            Text = unicode:characters_to_binary(io_lib:format("~0tp", [Reason])),
            {error, failed(compile_failed, Class, Selector, Text)}
    end.

failed(Kind, Class, Selector, Text) ->
    beamtalk_error:new(Kind, Class, Selector, Text, nil, #{}).

no_findings() ->
    #{findings => [], checked => 0, totalCandidates => 0, notChecked => 0, capNote => nil, checkedOwners => []}.

ask(Question) ->
    Number = erlang:unique_integer([positive]),
    ?MODULE ! {ask, self(), Number, Question},
    receive {?MODULE, Number, Answer} -> Answer end.

next(Port, Waiting, idle) ->
    case queue:out(Waiting) of
        {{value, Request}, Rest} ->
            {_, Monitor} = spawn_monitor(fun() -> serve(Request) end),
            loop(Port, Rest, Monitor);
        {empty, _} ->
            loop(Port, Waiting, idle)
    end;
next(Port, Waiting, Current) ->
    loop(Port, Waiting, Current).

%%% Requests

%% Compile modules and write them.
serve({compile, Jobs, Modules}) ->
    beamtalk_forms:parallel(
        Modules,
        {jobs(Jobs), fun({_, Forms, Path}) -> compile(Forms, Path) end},
        fun({Index, _, _}, Outcome) -> send({compiled, Index, Outcome}) end),
    send({done, compile});
%% Something will have to be compiled: the compiler is loaded while the binary finds out what.
serve({warm_up}) ->
    {ok, _, _} = compile:forms([{attribute, 1, module, ?MODULE}, {attribute, 1, export, [{warm, 1}]},
                                {function, 1, warm, 1, [{clause, 1, [{var, 1, 'X'}], [], [{var, 1, 'X'}]}]}], []),
    ok;
%% Compile native Erlang files.
serve({native, Files, Output, Includes}) ->
    Options = [return, debug_info, deterministic, {outdir, path(Output)} | [{i, path(Include)} || Include <- Includes]],
    Outcomes = [native(path(File), Options) || File <- Files],
    Failed = [failed || Outcome <- Outcomes, element(1, Outcome) =:= error],
    Lines = lists:append([beamtalk_forms:messages(Outcome) || Outcome <- Outcomes]),
    send({native, case Failed of [] -> ok; _ -> error end, Lines});
%% Directories of code, packages, and applications that code needs.
serve({prepare, Paths, Packages, Applications}) ->
    lists:foreach(fun beamtalk_package:describe/1, Packages),
    code:add_pathsa([path(Path) || Path <- Paths]),
    _ = [application:ensure_all_started(App) || App <- Applications],
    send({done, prepare});
%% Modules that are on disk already.
serve({load, Paths}) ->
    Modules = [begin
                   {ok, Beam} = file:read_file(Path),
                   {binary_to_atom(filename:basename(Path, <<".beam">>)), Beam}
               end || Path <- Paths],
    send({loaded, load(Modules)});
%% A run of tests; events follow.
serve({test, Options, Units}) ->
    beamtalk_test_job:run(Options, Units),
    send({done, test});
%% One executable file with the program in it.
serve({escript, Path, Code, Job, Time}) ->
    send({escript, beamtalk_escript:create(Path, Code, Job, Time)});
%% What a release needs of the installed Erlang.
serve({release, Beams, Applications}) ->
    case beamtalk_release_plan:plan([path(Beam) || Beam <- Beams], Applications) of
        {ok, {Root, Version, Found}} ->
            Text = fun unicode:characters_to_binary/1,
            Rows = [{atom_to_binary(Name), Text(Number), Text(Directory)} || {Name, Number, Directory} <- Found],
            send({release, {ok, {Text(Root), Text(Version), Rows}}});
        {error, Text} -> send({release, {error, Text}})
    end;
%% A sign of life: what `1 + 2' prints, and the ports that listen.
serve({ping}) ->
    Listening = [Port || Port <- erlang:ports(), {name, "tcp_inet"} <- [erlang:port_info(Port, name)]],
    Printed = beamtalk_display:print(beamtalk_dispatch:send(1, '+', 2)),
    send({pong, Printed, [unicode:characters_to_binary(io_lib:format("~p", [Port])) || Port <- Listening]}).

%% A module of OTP or of the runtime cannot be defined a second time.
native(File, Options) ->
    Module = filename:basename(File, ".erl"),
    Runtime = filename:dirname(code:which(?MODULE)),
    Taken = case code:where_is_file(Module ++ ".beam") of
        non_existing -> false;
        Path -> lists:prefix(code:lib_dir(), Path) orelse filename:dirname(Path) =:= Runtime
    end,
    case Taken of
        true -> {error, [{File, [{none, ?MODULE, {taken, Module}}]}], []};
        false -> compile:file(File, Options)
    end.

%% What is wrong with a native file, in words.
-spec format_error({taken, string()}) -> iolist().
format_error({taken, Module}) ->
    ["the module '", Module, "' exists already in Erlang or in Beamtalk; "
     "start its name with the name of the package"].

jobs(0) -> erlang:system_info(schedulers_online);
jobs(Jobs) -> Jobs.

compile(Forms, Path) ->
    case beamtalk_forms:compile_with_summary(Forms) of
        {ok, _, Beam} -> beamtalk_forms:write(Path, Beam);
        {error, Text} -> {error, Text}
    end.

load(Modules) ->
    case beamtalk_class:load_all(Modules) of
        ok -> ok;
        {error, Reason} -> {error, beamtalk_display:display(Reason)}
    end.

path(Path) -> unicode:characters_to_list(Path).
