%% News from outside the image: what the daemon tells of a hosted loop and of agents, as announcements.
%%
%% Each subscription has a queue of its own: its handler hears of things in the order in which they happened, one after
%% the other, and however slow it is it delays nobody else. A queue that is full loses its oldest, which is said once.
-module(beamtalk_news).

-export([start_link/0, init/1, announce/1]).

-include_lib("kernel/include/logger.hrl").

-define(LIMIT, 10000).

-type item() :: {atom(), map()}.

-spec start_link() -> {ok, pid()}.
start_link() -> proc_lib:start_link(?MODULE, init, [self()]).

-spec init(pid()) -> no_return().
init(Parent) ->
    register(?MODULE, self()),
    %% What handlers print belongs to the Transcript.
    case whereis(beamtalk_workspace) of
        undefined -> ok;
        Workspace -> group_leader(Workspace, self())
    end,
    proc_lib:init_ack(Parent, {ok, self()}),
    loop(#{}).

-spec announce([item()]) -> ok.
announce(Items) ->
    case whereis(?MODULE) of
        undefined -> ok;
        Server ->
            Server ! {announce, Items},
            ok
    end.

%% Queues by the monitor of the handler that is running, and the monitors by subscription.
loop(Queues) ->
    receive
        {announce, Items} -> loop(lists:foldl(fun put/2, Queues, Items));
        {'DOWN', Monitor, process, _, _} when is_map_key(Monitor, Queues) -> loop(next(Monitor, Queues));
        _ -> loop(Queues)
    end.

put({Class, Fields}, Queues) ->
    Event = Fields#{'$beamtalk_class' => Class},
    lists:foldl(fun(Id, All) -> put(Id, Event, All) end, Queues, beamtalk_announcer:subscribed(Class)).

put(Id, Event, Queues) ->
    case Queues of
        #{Id := Monitor} ->
            #{Monitor := {Id, Queue, Size, Dropped}} = Queues,
            Queues#{Monitor := add(Event, Id, Queue, Size, Dropped)};
        _ -> run(Id, Event, queue:new(), 0, Queues)
    end.

add(Event, Id, Queue, Size, Dropped) when Size >= ?LIMIT ->
    Dropped =:= 0 andalso
        ?LOG_WARNING("A handler of announcements is slow: the oldest of ~b that wait for it are dropped", [?LIMIT]),
    {Id, queue:in(Event, queue:drop(Queue)), Size, Dropped + 1};
add(Event, Id, Queue, Size, Dropped) -> {Id, queue:in(Event, Queue), Size + 1, Dropped}.

%% A handler is done; the next event of its subscription, unless that has ended.
next(Monitor, Queues) ->
    {{Id, Queue, Size, _}, Rest} = maps:take(Monitor, Queues),
    case queue:out(Queue) of
        {{value, Event}, Left} -> run(Id, Event, Left, Size - 1, maps:remove(Id, Rest));
        {empty, _} -> maps:remove(Id, Rest)
    end.

run(Id, Event, Queue, Size, Queues) ->
    case beamtalk_announcer:hand(Id, Event) of
        {ok, Monitor} -> Queues#{Id => Monitor, Monitor => {Id, Queue, Size, 0}};
        none -> Queues
    end.
