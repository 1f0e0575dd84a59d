%% A run of tests for `beamtalk test': test classes, scripts and native modules, several at once. Events
%% go to the command as they happen; order and judgement are its business.
-module(beamtalk_test_job).

-export([run/2]).

-type options() :: #{jobs := non_neg_integer(), timeout := timeout(), fail_fast := boolean(),
                     modules := [binary()]}.
-type unit() :: {class, integer(), atom(), [atom()]}
              | {script, integer(), boolean(), [binary()], [map() | skip]}
              | {native, integer(), binary()}.

-spec run(options(), [unit()]) -> ok.
run(#{jobs := Wanted, modules := Modules} = Options, Units) ->
    Jobs = case Wanted of
        0 -> erlang:system_info(schedulers_online);
        _ -> Wanted
    end,
    load(compile_all(Modules, Jobs)),
    Stop = atomics:new(1, []),
    {Alone, Together} = lists:partition(fun runs_alone/1, Units),
    Work = fun(Unit) -> run_unless_stopped(Unit, Options, Stop) end,
    Done = fun(Unit, Result) -> done(Unit, Result) end,
    beamtalk_forms:parallel(Together, {Jobs, Work}, Done),
    beamtalk_forms:parallel(Alone, {1, Work}, Done).

done(Unit, {error, Text}) ->
    beamtalk_worker:send({refused, element(2, Unit), Text}),
    beamtalk_worker:send({unit, element(2, Unit)});
done(Unit, _) ->
    beamtalk_worker:send({unit, element(2, Unit)}).

%% Serial classes, and scripts that define something.
runs_alone({class, _, Class, _}) -> beamtalk_class:exists(Class) andalso beamtalk_test:is_serial(Class);
runs_alone({script, _, IsExclusive, _, _}) -> IsExclusive;
runs_alone({native, _, _}) -> true.

run_unless_stopped(Unit, #{fail_fast := FailFast} = Options, Stop) ->
    case FailFast andalso atomics:get(Stop, 1) =:= 1 of
        true -> ok;
        false ->
            case run_unit(Unit, Options) of
                failed -> atomics:put(Stop, 1, 1);
                ok -> ok;
                {error, _} = Error -> Error
            end
    end.

%%% Code

compile_all(Modules, Jobs) ->
    put(compiled, []),
    beamtalk_forms:parallel(Modules, {Jobs, fun beamtalk_forms:compile/1}, fun
        (_, {ok, Module, Beam}) -> put(compiled, [{Module, Beam} | get(compiled)]);
        (_, {error, Text}) ->
            beamtalk_worker:send({warning, <<"the Erlang compiler refused generated code: ", Text/binary>>})
    end),
    erase(compiled).

%% All together; when one is refused, one by one, so that the others are there.
load(Modules) ->
    case try_load(Modules) of
        ok -> ok;
        {error, _} -> load_each(Modules, length(Modules))
    end.

try_load(Modules) ->
    try beamtalk_class:load_all(Modules)
    catch Class:Reason:Stack -> {error, beamtalk_error:from_caught(Class, Reason, Stack)}
    end.

load_each(Modules, Before) ->
    Refused = [{Module, Beam, Reason} || {Module, Beam} <- Modules,
                                         {error, Reason} <- [try_load([{Module, Beam}])]],
    case length(Refused) of
        0 -> ok;
        Count when Count < Before ->
            load_each([{Module, Beam} || {Module, Beam, _} <- Refused], Count);
        _ ->
            [beamtalk_worker:send({warning, text("cannot load ~ts: ~ts", [Module, beamtalk_display:display(Reason)])})
             || {Module, _, Reason} <- Refused],
            ok
    end.

text(Format, Arguments) ->
    unicode:characters_to_binary(io_lib:format(Format, Arguments)).

%%% Test classes

run_unit({class, Index, Class, Tests}, #{timeout := Timeout}) ->
    case beamtalk_class:exists(Class) of
        true ->
            Outcomes = beamtalk_test:run_class(Class, #{timeout => Timeout, only => Tests}),
            lists:foreach(fun(Outcome) -> send_outcome(Index, Outcome) end, Outcomes),
            verdict([Status || #{status := Status} <- Outcomes]);
        false ->
            {error, text("the class ~ts could not be loaded", [Class])}
    end;
%%% Scripts
run_unit({script, Index, IsExclusive, Preload, Inputs}, #{timeout := Timeout}) ->
    Started = erlang:monotonic_time(microsecond),
    case compile_script(Preload, Inputs) of
        {ok, Modules, Compiled} ->
            Restore = snapshot(IsExclusive),
            Output = beamtalk_test_output:start(),
            Results = run_script(Modules, Compiled, Timeout, Output),
            Text = beamtalk_test_output:stop(Output),
            Restore(),
            Micros = erlang:monotonic_time(microsecond) - Started,
            beamtalk_worker:send({script, Index, Results, Micros, Text}),
            ok;
        {error, Text} ->
            {error, <<"the Erlang compiler refused generated code: ", Text/binary>>}
    end;
%%% Native EUnit modules
run_unit({native, Index, Path}, _Options) ->
    Started = erlang:monotonic_time(microsecond),
    Output = beamtalk_test_output:start(),
    {Pid, Monitor} = spawn_monitor(fun() -> exit({status, run_native(Path, Output)}) end),
    Status = receive
        {'DOWN', Monitor, process, Pid, {status, Ended}} -> Ended;
        {'DOWN', Monitor, process, Pid, _} -> error
    end,
    Text = beamtalk_test_output:stop(Output),
    Micros = erlang:monotonic_time(microsecond) - Started,
    Report = #{kind => <<"eunit">>, message => <<"EUnit reports failures">>},
    Name = filename:basename(Path, <<".erl">>),
    beamtalk_worker:send({test, Index, Name, Status, Micros, Report, Text}),
    verdict([Status]).

verdict(Statuses) ->
    case [Status || Status <- Statuses, Status =:= fail orelse Status =:= error] of
        [] -> ok;
        _ -> failed
    end.

send_outcome(Index, #{name := Name, status := Status, duration := Seconds, error := Error,
                      output := Output}) ->
    beamtalk_worker:send({test, Index, atom_to_binary(Name), Status, round(Seconds * 1.0e6),
                          report(Error), Output}).

report(nil) -> nil;
report(#{kind := Kind, message := Message, selector := Selector, expected := Expected, actual := Actual,
         hint := Hint, frames := Frames}) ->
    #{kind => atom_to_binary(Kind), message => Message, selector => atom_to_binary(Selector), expected => printed(Expected),
      actual => printed(Actual), hint => printed(Hint), frames => [frame(Frame) || Frame <- Frames]}.

printed(Text) when is_binary(Text) -> Text;
printed(nil) -> nil;
printed(Other) -> beamtalk_display:native(Other).

frame({_File, _Line, Text}) -> Text.

compile_script(Preload, Inputs) ->
    case compile_each(Preload, []) of
        {ok, Modules} -> compile_inputs(Inputs, Modules, []);
        {error, _} = Error -> Error
    end.

compile_inputs([skip | Rest], Modules, Done) ->
    compile_inputs(Rest, Modules, [skip | Done]);
compile_inputs([#{modules := Forms} = Input | Rest], Modules, Done) ->
    case compile_each(Forms, []) of
        {ok, Compiled} -> compile_inputs(Rest, Modules, [Input#{modules := Compiled} | Done]);
        {error, _} = Error -> Error
    end;
compile_inputs([], Modules, Done) ->
    {ok, Modules, lists:reverse(Done)}.

compile_each([Forms | Rest], Done) ->
    case beamtalk_forms:compile(Forms) of
        {ok, Module, Beam} -> compile_each(Rest, [{Module, Beam} | Done]);
        {error, _} = Error -> Error
    end;
compile_each([], Done) -> {ok, lists:reverse(Done)}.

%% The script's evaluator is one process: its session variables live in it. Results come one by one, so that
%% those before a time-out are known.
run_script(Modules, Inputs, Timeout, Output) ->
    Caller = self(),
    Tag = make_ref(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        group_leader(Output, self()),
        process_flag(trap_exit, true),
        beamtalk_cell:start_session(Tag),
        case Modules of
            [] -> ok;
            _ -> ok = beamtalk_class:load_all(Modules)
        end,
        [Caller ! {Tag, evaluate(Input)} || Input <- Inputs],
        exit(shutdown)
    end),
    Deadline = erlang:monotonic_time(millisecond) + Timeout,
    collect(Pid, Monitor, Tag, Deadline, length(Inputs), []).

evaluate(skip) -> skip;
evaluate(Input) -> beamtalk_eval:input(Input).

collect(_Pid, Monitor, _Tag, _Deadline, 0, Results) ->
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    lists:reverse(Results);
collect(Pid, Monitor, Tag, Deadline, Missing, Results) ->
    Left = max(0, Deadline - erlang:monotonic_time(millisecond)),
    receive
        {Tag, Result} -> collect(Pid, Monitor, Tag, Deadline, Missing - 1, [Result | Results]);
        {'DOWN', Monitor, process, _, Reason} ->
            Report = beamtalk_report:caught(exit, Reason, []),
            lists:reverse(Results, [{raised, Report}])
    after Left ->
        erlang:demonitor(Monitor, [flush]),
        exit(Pid, kill),
        lists:reverse(Results, [timeout])
    end.

%% A script that defines classes or extensions leaves none behind.
snapshot(false) -> fun() -> ok end;
snapshot(true) ->
    Classes = beamtalk_class:all(),
    Extensions = extensions(),
    fun() ->
        _ = [beamtalk_class:remove_method(Class, Side, Selector)
             || {Class, Side, Selector} <- extensions() -- Extensions],
        _ = [beamtalk_class:remove_class(Class) || Class <- beamtalk_class:all() -- Classes],
        ok
    end.

extensions() ->
    [element(1, Entry) || Entry <- ets:tab2list(beamtalk_extensions)].

run_native(Path, Output) ->
    group_leader(Output, self()),
    case compile:file(unicode:characters_to_list(Path), [binary, return_errors, debug_info]) of
        {ok, Module, Beam} ->
            {module, Module} = code:load_binary(Module, unicode:characters_to_list(Path), Beam),
            case eunit:test(Module, []) of
                ok -> pass;
                _ -> fail
            end;
        {error, _, _} = Failed ->
            io:put_chars([[Line, $\n] || Line <- beamtalk_forms:messages(Failed)]),
            error
    end.
