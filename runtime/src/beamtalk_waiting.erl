%% What a process that waits for an actor waits for, in words.
-module(beamtalk_waiting).

-export([describe/1]).

-define(PATIENCE, 200).
-define(FRAMES, 1).

%% Empty unless the process waits for an actor. A process in the middle of a long step is not waited for.
-spec describe(pid()) -> iodata().
describe(Pid) ->
    {Asker, Monitor} = spawn_monitor(fun() -> exit({said, said(Pid)}) end),
    receive
        {'DOWN', Monitor, process, Asker, {said, Text}} -> Text;
        {'DOWN', Monitor, process, Asker, _} -> ""
    after ?PATIENCE ->
        demonitor(Monitor, [flush]),
        exit(Asker, kill),
        ""
    end.

said(Pid) ->
    case waits_for(Pid) of
        {ok, Actor} -> [" while it waited for ", name(Actor), doing(Actor)];
        none -> ""
    end.

%% The answer a process waits for is under '$bt_wait'; only a process that watches another one waits.
waits_for(Pid) ->
    case process_info(Pid, [dictionary, monitors, current_function]) of
        [{_, Dictionary}, {_, Monitors}, {_, {Module, _, _}}]
          when Module =:= beamtalk_actor; Module =:= beamtalk_actor_waits ->
            case {lists:keyfind('$bt_wait', 1, Dictionary), [Actor || {process, Actor} <- Monitors, is_pid(Actor)]} of
                {{_, _}, [Actor | _]} -> {ok, Actor};
                _ -> none
            end;
        _ -> none
    end.

name(Pid) ->
    case beamtalk_actor_class:reference_of(Pid) of
        {ok, Reference} -> beamtalk_display:native(Reference);
        none -> beamtalk_display:native(Pid)
    end.

doing(Pid) ->
    case waits_for(Pid) of
        {ok, Other} -> [", which waits for ", name(Other), place(Other)];
        none -> place(Pid)
    end.

place(Pid) ->
    case process_info(Pid, [status, current_stacktrace]) of
        [{status, _}, {current_stacktrace, Stack}] ->
            case lists:sublist(beamtalk_stack:frames(Stack), ?FRAMES) of
                [Frame] -> [", which is in ", beamtalk_stack_frame:printString(Frame)];
                [] -> ", which is not in a method"
            end;
        _ -> ", which has ended"
    end.
