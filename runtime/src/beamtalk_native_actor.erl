%% The actors whose process is an Erlang module of its own (`native:'). Such a process knows nothing of its class, so
%% whoever starts it writes down what it is.
-module(beamtalk_native_actor).

-export([started/2, find/1, all/0]).

-define(TABLE, beamtalk_native_actors).

-spec started(atom(), pid()) -> ok.
started(Class, Pid) ->
    ets:insert(?TABLE, {Pid, Class, beamtalk_tracing:started(Pid, Class)}),
    beamtalk_registry:forget_at_end(?TABLE, Pid),
    beamtalk_announcer:native_started(Class, Pid).

%% Class and start, in native monotonic time.
-spec find(pid()) -> {atom(), integer()} | none.
find(Pid) ->
    case ets:lookup(?TABLE, Pid) of
        [{_, Class, Started}] -> {Class, Started};
        [] -> none
    end.

-spec all() -> [{pid(), atom()}].
all() -> [{Pid, Class} || {Pid, Class, _} <- ets:tab2list(?TABLE)].
