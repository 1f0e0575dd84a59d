%% Owns the runtime's shared tables and arbitrates its locks.
%%
%% The tables hold classes, extensions, protocols and class state; they live as
%% long as this process, which never calls user code. A lock that nobody
%% contends is taken and released with one ETS operation each, without a
%% message; only a caller that has to wait talks to this process, which then
%% watches the holder and passes the lock on when it is released or its holder
%% dies.
-module(beamtalk_registry).
-behaviour(gen_server).

-export([start_link/0, ensure_started/0]).
-export([acquire/2, release/1, holder/1]).
-export([forget_at_end/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOCKS, beamtalk_locks).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Start the registry outside the application when nobody has started it yet.
-spec ensure_started() -> ok.
ensure_started() ->
    case whereis(?MODULE) of
        undefined ->
            case gen_server:start({local, ?MODULE}, ?MODULE, [], []) of
                {ok, _} -> ok;
                {error, {already_started, _}} -> ok
            end;
        _ -> ok
    end.

%% Take the lock `Key' for the calling process, waiting at most `Timeout' ms.
-spec acquire(term(), timeout()) -> ok | timeout.
acquire(Key, Timeout) ->
    Id = make_ref(),
    case ets:insert_new(?LOCKS, {Key, Id, self(), false}) of
        true -> ok;
        false -> wait(Key, Id, Timeout)
    end.

wait(Key, Id, Timeout) ->
    try gen_server:call(?MODULE, {wait, Key, Id, self()}, Timeout)
    catch exit:{timeout, _} -> gen_server:call(?MODULE, {cancel, Key, Id}, infinity)
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
    Options = [named_table, public, set, {read_concurrency, true}],
    [ets:new(Name, Options)
     || Name <- [?LOCKS, beamtalk_classes, beamtalk_modules, beamtalk_extensions,
                 beamtalk_protocols, beamtalk_class_state, beamtalk_former,
                 beamtalk_native_actors, beamtalk_probes]],
    {ok, #{queues => #{}, monitors => #{}, kept => #{}}}.

-spec handle_call(term(), gen_server:from(), map()) ->
          {reply, term(), map()} | {noreply, map()}.
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
