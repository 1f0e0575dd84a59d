%% Names the runtime's shared tables and arbitrates its locks.
%%
%% The tables hold classes, extensions, protocols and class state; the supervisor
%% owns them. This process never calls user code. A lock that nobody
%% contends is taken and released with one ETS operation each, without a
%% message; only a caller that has to wait talks to this process, which then
%% watches the holder and passes the lock on when it is released or its holder
%% dies.
-module(beamtalk_registry).
-behaviour(gen_server).

-export([start_link/0, tables/0]).
-export([acquire/2, release/1, holder/1]).
-export([forget_at_end/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOCKS, beamtalk_locks).
%% Tables whose rows go with the process they are about.
-define(KEPT, [beamtalk_native_actors]).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Made by the supervisor, so that they outlive this process.
-spec tables() -> [{atom(), [term()]}].
tables() ->
    [{Name, [set, {read_concurrency, true}]}
     || Name <- [?LOCKS, beamtalk_classes, beamtalk_modules, beamtalk_extensions, beamtalk_protocols,
                 beamtalk_class_state, beamtalk_former, beamtalk_probes, beamtalk_sessions, beamtalk_running, beamtalk_keepers,
                 beamtalk_globals, beamtalk_requests | ?KEPT]]
        ++ [{beamtalk_attached_supervisors, [ordered_set]}].

%% Take the lock `Key' for the calling process, waiting at most `Timeout' ms, and not for one that waits for this process.
-spec acquire(term(), timeout()) -> ok | timeout | deadlock.
acquire(Key, Timeout) ->
    Deadline = case Timeout of
        infinity -> infinity;
        _ -> erlang:monotonic_time(millisecond) + Timeout
    end,
    acquire(Key, make_ref(), Deadline).

acquire(Key, Id, Deadline) ->
    case ets:insert_new(?LOCKS, {Key, Id, self(), false}) of
        true -> ok;
        false -> wait(Key, Id, Deadline)
    end.

%% A registry that ended took its queues with it: ask the one that follows.
wait(Key, Id, Deadline) ->
    Left = case Deadline of
        infinity -> infinity;
        _ -> max(0, Deadline - erlang:monotonic_time(millisecond))
    end,
    Asked = case whereis(?MODULE) of
        undefined -> down;
        Registry -> beamtalk_actor_waits:ask(Registry, fun(_) -> {wait, Key, Id, self()} end, {lock, Key}, Left)
    end,
    case Asked of
        {answer, ok} -> ok;
        down when Left =:= 0 -> timeout;
        down ->
            receive after 1 -> ok end,
            case ets:lookup(?LOCKS, Key) of
                [{_, Id, _, _}] -> ok;
                _ -> acquire(Key, Id, Deadline)
            end;
        GaveUp -> cancel(Key, Id, GaveUp)
    end.

cancel(Key, Id, GaveUp) ->
    try gen_server:call(?MODULE, {cancel, Key, Id}, infinity) of
        ok -> ok;
        timeout -> GaveUp
    catch exit:_ ->
        case ets:lookup(?LOCKS, Key) of
            [{_, Id, _, _}] -> ok;
            _ -> GaveUp
        end
    end.

-spec release(term()) -> ok.
release(Key) ->
    case ets:take(?LOCKS, Key) of
        [{_, _, _, true}] -> gen_server:cast(?MODULE, {released, Key});
        _ -> ok
    end.

-spec holder(term()) -> pid() | none.
holder(Key) ->
    case ets:lookup(?LOCKS, Key) of
        [{_, _, Pid, _}] -> Pid;
        [] -> none
    end.

%% The row of a process goes when the process does.
-spec forget_at_end(atom(), pid()) -> ok.
forget_at_end(Table, Pid) ->
    gen_server:cast(?MODULE, {forget_at_end, Table, Pid}).

%% State: waiters per key, the monitor watching the holder of each key
%% somebody waits for, and the table of each process that has a row.
-spec init([]) -> {ok, map()}.
init([]) ->
    process_flag(priority, high),
    Rows = [{Table, element(1, Row)} || Table <- ?KEPT, Row <- ets:tab2list(Table)],
    Kept = maps:from_list([{erlang:monitor(process, Pid), Table} || {Table, Pid} <- Rows, is_pid(Pid)]),
    {ok, #{queues => #{}, monitors => #{}, kept => Kept}}.

-spec handle_call(term(), gen_server:from(), map()) ->
          {reply, term(), map()} | {noreply, map()}.
handle_call(ping, _From, State) ->
    {reply, pong, State};
handle_call({wait, Key, Id, Pid}, From, #{queues := Queues} = State) ->
    Queue = maps:get(Key, Queues, []),
    {noreply, grant(Key, State#{queues := Queues#{Key => Queue ++ [{From, Id, Pid}]}})};
handle_call({cancel, Key, Id}, _From, #{queues := Queues} = State) ->
    case ets:lookup(?LOCKS, Key) of
        [{_, Id, _, _}] -> {reply, ok, State};
        _ ->
            Queue = lists:keydelete(Id, 2, maps:get(Key, Queues, [])),
            {reply, timeout, State#{queues := Queues#{Key => Queue}}}
    end.

-spec handle_cast(term(), map()) -> {noreply, map()}.
handle_cast({released, Key}, State) ->
    {noreply, grant(Key, State)};
handle_cast({forget_at_end, Table, Pid}, #{kept := Kept} = State) ->
    {noreply, State#{kept := Kept#{erlang:monitor(process, Pid) => Table}}}.

-spec handle_info(term(), map()) -> {noreply, map()}.
handle_info({'DOWN', Monitor, process, Pid, _}, #{kept := Kept} = State) when is_map_key(Monitor, Kept) ->
    {Table, Rest} = maps:take(Monitor, Kept),
    ets:delete(Table, Pid),
    {noreply, State#{kept := Rest}};
handle_info({'DOWN', Monitor, process, Pid, _}, #{monitors := Monitors} = State) ->
    case maps:to_list(maps:filter(fun(_, M) -> M =:= Monitor end, Monitors)) of
        [{Key, _}] ->
            ets:match_delete(?LOCKS, {Key, '_', Pid, '_'}),
            {noreply, grant(Key, State#{monitors := maps:remove(Key, Monitors)})};
        [] -> {noreply, State}
    end;
handle_info(_, State) ->
    {noreply, State}.

%% Give the lock to the first waiter, or watch whoever holds it now.
grant(Key, #{queues := Queues} = State) ->
    case maps:get(Key, Queues, []) of
        [] -> unwatch(Key, State#{queues := maps:remove(Key, Queues)});
        [{From, Id, Pid} | Rest] ->
            case ets:insert_new(?LOCKS, {Key, Id, Pid, Rest =/= []}) of
                true ->
                    gen_server:reply(From, ok),
                    case Rest of
                        [] -> unwatch(Key, State#{queues := maps:remove(Key, Queues)});
                        _ -> watch(Key, Pid, State#{queues := Queues#{Key => Rest}})
                    end;
                false ->
                    ets:update_element(?LOCKS, Key, {4, true}),
                    case ets:lookup(?LOCKS, Key) of
                        [{_, _, Holder, true}] -> watch(Key, Holder, State);
                        _ -> grant(Key, State)
                    end
            end
    end.

watch(Key, Pid, State) ->
    #{monitors := Monitors} = Unwatched = unwatch(Key, State),
    Unwatched#{monitors := Monitors#{Key => erlang:monitor(process, Pid)}}.

unwatch(Key, #{monitors := Monitors} = State) ->
    case Monitors of
        #{Key := Monitor} ->
            erlang:demonitor(Monitor, [flush]),
            State#{monitors := maps:remove(Key, Monitors)};
        _ -> State
    end.
