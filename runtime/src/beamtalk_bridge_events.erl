%% What happens in the image, as events for the daemon. Channels nobody watches cost a look-up.
-module(beamtalk_bridge_events).

-export([announced/2, class_registered/2, class_removed/2, state_changed/3, watch_supervision/1, log/2]).

%% The runtime's own supervisors are nobody's business.
-define(OWN, [{local, beamtalk_sup}, {local, beamtalk_workspace_sup}, {local, beamtalk_session_sup}]).

%% An announcement on the system's bus.
-spec announced(atom(), map()) -> ok.
announced('ActorSpawned', #{actorClass := Class, pid := Pid}) ->
    send(<<"actors">>, <<"spawned">>, fun() ->
        #{<<"pid">> => pid(Pid), <<"class">> => atom_to_binary(Class),
          <<"spawned_at">> => erlang:system_time(second)}
    end);
announced('ActorStopped', #{actorClass := Class, pid := Pid, reason := Reason}) ->
    send(<<"actors">>, <<"stopped">>, fun() ->
        #{<<"pid">> => pid(Pid), <<"class">> => atom_to_binary(Class), <<"reason">> => ending(Reason)}
    end);
announced('SupervisionChildAdded', #{supervisor := Supervisor} = Fields) ->
    send(<<"supervision">>, <<"child_added">>, fun() ->
        #{<<"supervisor">> => name(Supervisor), <<"child">> => name(maps:get(childClass, Fields, nil)),
          <<"pid">> => pid(maps:get(childPid, Fields, nil)), <<"reason">> => nil}
    end);
announced(_, _) -> ok.

ending(normal) -> <<"normal">>;
ending(shutdown) -> <<"shutdown">>;
ending(_) -> <<"crashed">>.

-spec class_registered(atom(), IsNew :: boolean()) -> ok.
class_registered(Class, IsNew) ->
    Name = case IsNew of
        true -> <<"loaded">>;
        false -> <<"changed">>
    end,
    send(<<"classes">>, Name, fun() ->
        File = case beamtalk_class:record(Class) of
            #{source_file := Known} -> Known;
            none -> nil
        end,
        #{<<"class">> => atom_to_binary(Class), <<"source_file">> => File}
    end).

-spec class_removed(atom(), binary() | nil) -> ok.
class_removed(Class, File) ->
    send(<<"classes">>, <<"removed">>, fun() -> #{<<"class">> => atom_to_binary(Class), <<"source_file">> => File} end).

%% An actor that is observed changed slots.
-spec state_changed(pid(), map(), map()) -> ok.
state_changed(Pid, Before, After) ->
    case [atom_to_binary(Slot) || {Slot, Value} <- maps:to_list(After),
                                  not is_map_key(Slot, Before) orelse map_get(Slot, Before) =/= Value] of
        [] -> ok;
        Slots ->
            send(<<"object">>, <<"changed">>, fun() -> #{<<"actor">> => pid(Pid), <<"fields">> => lists:sort(Slots)} end)
    end.

send(Channel, Name, Data) ->
    %% A packed program has no bridge.
    case beamtalk_workspace:is_live() andalso beamtalk_bridge:is_watched(Channel) of
        true -> beamtalk_bridge:event(Channel, Name, Data());
        false -> ok
    end.

%% The way every op writes them.
pid(Pid) when is_pid(Pid) -> beamtalk_plain:pid(Pid);
pid(_) -> nil.

name(nil) -> nil;
name(Name) when is_atom(Name) -> atom_to_binary(Name);
name(Name) -> beamtalk_display:native(Name).

%%% Supervisors say what they do in their reports to the logger.

-spec watch_supervision(boolean()) -> ok.
watch_supervision(true) ->
    _ = logger:add_handler(?MODULE, ?MODULE, #{level => info}),
    ok;
watch_supervision(false) ->
    _ = logger:remove_handler(?MODULE),
    ok.

-spec log(logger:log_event(), logger:handler_config()) -> ok.
log(#{msg := {report, #{label := {supervisor, Label}, report := Report}}}, _) when is_list(Report) ->
    case lists:member(proplists:get_value(supervisor, Report), ?OWN) of
        true -> ok;
        false -> report(Label, Report)
    end;
log(_, _) -> ok.

%% Handlers run in the supervisor's own process, which so remembers the children that ended.
report(child_terminated, Report) ->
    put({?MODULE, child(Report, offender)}, ended),
    supervision(<<"child_crashed">>, Report, offender);
report(shutdown, Report) -> supervision(<<"gave_up">>, Report, offender);
report(progress, Report) ->
    case erase({?MODULE, child(Report, started)}) of
        ended -> supervision(<<"child_restarted">>, Report, started);
        %% A child that somebody asks for is announced.
        undefined -> is_dynamic(Report) orelse supervision(<<"child_added">>, Report, started)
    end;
report(_, _) -> ok.

child(Report, Part) -> proplists:get_value(id, proplists:get_value(Part, Report, []), nil).

is_dynamic(Report) -> child(Report, started) =:= undefined.

supervision(Event, Report, Part) ->
    Child = proplists:get_value(Part, Report, []),
    send(<<"supervision">>, Event, fun() ->
        #{<<"supervisor">> => supervisor(proplists:get_value(supervisor, Report)),
          <<"child">> => name(proplists:get_value(id, Child, nil)),
          <<"pid">> => pid(proplists:get_value(pid, Child)),
          <<"reason">> => reason(proplists:get_value(reason, Report, nil))}
    end).

%% Supervisors are registered under the names of their classes.
supervisor({local, Name}) ->
    case atom_to_binary(Name) of
        <<"beamtalk_supervisor_", Class/binary>> -> Class;
        Other -> Other
    end;
supervisor({Pid, _}) when is_pid(Pid) -> pid(Pid);
supervisor(Pid) when is_pid(Pid) -> pid(Pid);
supervisor(Other) -> name(Other).

reason(nil) -> nil;
reason(Reason) -> element(1, beamtalk_bridge_value:cut(unicode:characters_to_binary(io_lib:format("~0tP", [Reason, 30])), 1024)).
