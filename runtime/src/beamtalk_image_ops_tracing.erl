%% Requests about traces, logs and the health of the node.
-module(beamtalk_image_ops_tracing).

-export([enable/1, disable/1, clear/1, traces/1, stats/1, export/1, log_level/1, health/1, vitals/1, work/1]).

-import(beamtalk_image_ops_fields, [fail/2, fail/4]).

-type fields() :: beamtalk_image_ops_fields:fields().

-define(LEVELS, [emergency, alert, critical, error, warning, notice, info, debug]).

-spec enable(fields()) -> map().
enable(_) -> done(beamtalk_tracing:'class enable'(nil)).

-spec disable(fields()) -> map().
disable(_) -> done(beamtalk_tracing:'class disable'(nil)).

-spec clear(fields()) -> map().
clear(_) -> done(beamtalk_tracing:'class clear'(nil)).

done(_) -> #{}.

%%% Events

-spec traces(fields()) -> map().
traces(Fields) ->
    #{traces => lists:sublist(filtered(Fields), beamtalk_image_ops_fields:integer(Fields, <<"limit">>, 0, 100))}.

%% Newest first.
filtered(Fields) ->
    Keep = [equals(<<"actor">>, actor(Fields)),
            equals(<<"selector">>, beamtalk_image_ops_fields:text(Fields, <<"selector">>, none)),
            equals(<<"class">>, beamtalk_image_ops_fields:optional_class(Fields, <<"class">>)),
            equals(<<"outcome">>, outcome(Fields)),
            at_least(<<"duration_ns">>, beamtalk_image_ops_fields:integer(Fields, <<"min_duration_ns">>, 0, none))],
    [Event#{<<"actor">> => beamtalk_plain:pid(Pid)}
     || #{<<"actor">> := Pid} = Event <- beamtalk_tracing:'class traces'(nil),
        lists:all(fun(Test) -> Test(Event) end, Keep)].

equals(_, none) -> fun(_) -> true end;
equals(Key, Wanted) -> fun(#{Key := Value}) -> Value =:= Wanted end.

at_least(_, none) -> fun(_) -> true end;
at_least(Key, Least) -> fun(#{Key := Value}) -> Value >= Least end.

%% Events of actors that have ended are kept, so a dead one is fine here.
actor(Fields) ->
    case beamtalk_image_ops_fields:is_given(Fields, <<"actor">>) of
        true -> element(1, beamtalk_image_ops_actors:process(Fields));
        false -> none
    end.

outcome(Fields) ->
    case beamtalk_image_ops_fields:choice(Fields, <<"outcome">>, [ok, error, timeout, cast], none) of
        none -> none;
        Outcome -> atom_to_binary(Outcome)
    end.

%% Counters per actor and selector, most calls first.
-spec stats(fields()) -> map().
stats(Fields) ->
    Wanted = actor(Fields),
    #{stats => [Row#{<<"actor">> => beamtalk_plain:pid(Pid)}
                || #{<<"actor">> := Pid} = Row <- beamtalk_tracing:'class hotMethods:'(nil, 1 bsl 28),
                   Wanted =:= none orelse Pid =:= Wanted]}.

%% One event a line, oldest first.
-spec export(fields()) -> map().
export(Fields) ->
    beamtalk_capability:require(fs, 'Tracing', 'export:'),
    Path = beamtalk_image_ops_fields:text(Fields, <<"path">>, default_path()),
    Path =:= <<>> andalso fail(invalid_parameter, "the field 'path' must not be empty"),
    Events = lists:reverse(filtered(Fields)),
    Lines = [[beamtalk_json:'class generate:'(nil, Event), $\n] || Event <- Events],
    case write(Path, Lines) of
        ok -> #{path => filename:absname(Path), count => length(Events)};
        {error, eexist} ->
            fail(target_exists, [Path, " exists already, and an export replaces nothing"], nil, #{<<"path">> => Path});
        {error, Reason} ->
            fail(write_failed, ["cannot write ", Path, ": ", file:format_error(Reason)], nil, #{<<"path">> => Path})
    end.

default_path() ->
    Time = calendar:system_time_to_rfc3339(erlang:system_time(second), [{offset, "Z"}]),
    iolist_to_binary(["traces-", string:replace(Time, ":", "", all), ".jsonl"]).

%% Only a file that is new: the path may come from somebody who has not seen what is there.
write(Path, Lines) ->
    case file:open(Path, [write, exclusive, raw]) of
        {ok, File} ->
            Written = file:write(File, Lines),
            ok = file:close(File),
            Written =:= ok orelse file:delete(Path),
            Written;
        {error, _} = Error -> Error
    end.

%%% Logs and health

-spec log_level(fields()) -> map().
log_level(Fields) ->
    case beamtalk_image_ops_fields:choice(Fields, <<"level">>, ?LEVELS, none) of
        none -> ok;
        Level -> beamtalk_log:set_level(Level)
    end,
    #{level => beamtalk_log:level()}.

%% The node's part of `health'; sizes in bytes.
-spec health(fields()) -> map().
health(_) ->
    #{memory => maps:from_list(erlang:memory([total, processes, system, atom, binary, code, ets])),
      processes => erlang:system_info(process_count),
      run_queue => erlang:statistics(run_queue)}.

%% How the node did in the last 15 minutes.
-spec vitals(fields()) -> map().
vitals(Fields) ->
    #{fields => beamtalk_vitals:fields(),
      samples => beamtalk_vitals:since(beamtalk_image_ops_fields:integer(Fields, <<"since">>, 0, 0))}.

%% What the actors have done so far: a number that stays the same only while none of them runs.
-spec work(fields()) -> map().
work(_) ->
    #{reductions => lists:sum([Count || {_, _, _, Pid} <- beamtalk_actor_class:all(),
                                        {reductions, Count} <- [process_info(Pid, reductions)]])}.
