%% Running blocks in processes of their own: Parallel and `parallelCollect:'.
%%
%% The caller waits for its workers. A reaper process watches the caller and
%% ends the workers when it dies, so no worker outlives the send that made it.
-module(beamtalk_parallel).

-export(['class all:'/2, 'class all:timeout:'/3, 'class any:'/2]).
-export([map/3]).

-type outcome() :: {ok, term()} | {error, term()} | unfinished.

-spec 'class all:'(term(), term()) -> [map()].
'class all:'(_Class, Blocks) ->
    [to_result(Outcome, 'all:') || Outcome <- run(blocks(Blocks, 'all:'), infinity)].

-spec 'class all:timeout:'(term(), term(), term()) -> [map()].
'class all:timeout:'(_Class, Blocks, Timeout) ->
    Checked = blocks(Blocks, 'all:timeout:'),
    Limit = beamtalk_argument:milliseconds(Timeout, 'Parallel', 'all:timeout:'),
    [to_result(Outcome, 'all:timeout:') || Outcome <- run(Checked, Limit)].

-spec 'class any:'(term(), term()) -> map().
'class any:'(_Class, []) ->
    beamtalk_argument:fail('Parallel', 'any:', <<"Expected at least one block">>);
'class any:'(_Class, Blocks) ->
    with_workers(any, blocks(Blocks, 'any:'), fun await_any/1).

blocks(Blocks, Selector) ->
    beamtalk_argument:list_of(Blocks, fun(Block) -> is_function(Block, 0) end, 'Parallel', Selector).

to_result({ok, Value}, _) -> beamtalk_result:ok(Value);
to_result({error, Exception}, _) -> beamtalk_result:error(Exception);
to_result(unfinished, Selector) ->
    beamtalk_result:failure(timeout, 'Parallel', Selector, <<"The block did not finish in time">>, #{}).

%% The results of the block for all elements, at most `Limit' at once; the first
%% failure in element order is raised again.
-spec map(fun((term()) -> term()), list(), pos_integer()) -> list().
map(Block, Elements, Limit) when length(Elements) > Limit ->
    {Chunk, Rest} = lists:split(Limit, Elements),
    Results = map(Block, Chunk, Limit),
    Results ++ map(Block, Rest, Limit);
map(Block, Elements, _) ->
    Frozen = beamtalk_cell:freeze(Block),
    Outcomes = run([fun() -> Frozen(Element) end || Element <- Elements], infinity),
    [case Outcome of
         {ok, Value} -> Value;
         {error, Exception} -> error(Exception)
     end || Outcome <- Outcomes].

-spec run([fun(() -> term())], timeout()) -> [outcome()].
run(Blocks, Timeout) ->
    with_workers(all, Blocks, fun(Workers) -> await_all(Workers, deadline(Timeout)) end).

with_workers(_, [], Fun) ->
    Fun([]);
with_workers(Many, Blocks, Fun) ->
    %% What workers do is part of what the caller does: a question of theirs to one that waits for the caller would never be
    %% answered.
    Wait = make_ref(),
    put('$bt_wait', Wait),
    Chain = beamtalk_actor:chain(Wait),
    Workers = [start(beamtalk_cell:freeze(Block), Chain) || Block <- Blocks],
    Pids = [Pid || {Pid, _} <- Workers],
    Reaper = start_reaper(self(), Pids),
    beamtalk_actor_waits:enter({Many, Pids}, Wait),
    try
        Fun(Workers)
    after
        erase('$bt_wait'),
        beamtalk_actor_waits:leave(),
        stop_all(Workers),
        exit(Reaper, kill)
    end.

start(Block, Chain) ->
    beamtalk_guard:check_process('Parallel', 'all:'),
    spawn_monitor(fun() ->
                          put('$bt_chain', Chain),
                          Outcome = try {ok, beamtalk_cell:freeze(Block())}
                                    catch Class:Reason:Stack ->
                                            {error, beamtalk_error:from_caught(Class, Reason, Stack)}
                                    end,
                          beamtalk_tracing:flush(),
                          %% What the block made does not end with it, as with any process that did its work.
                          {links, Linked} = process_info(self(), links),
                          [unlink(Pid) || Pid <- Linked, is_pid(Pid)],
                          exit({?MODULE, Outcome})
                  end).

start_reaper(Caller, Pids) ->
    spawn(fun() ->
                  Monitor = monitor(process, Caller),
                  receive
                      {'DOWN', Monitor, process, Caller, _} ->
                          lists:foreach(fun(Pid) -> exit(Pid, kill) end, Pids)
                  end
          end).

deadline(infinity) -> infinity;
deadline(Ms) -> erlang:monotonic_time(millisecond) + Ms.

remaining(infinity) -> infinity;
remaining(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

await_all(Workers, Deadline) ->
    [await(Worker, Deadline) || Worker <- Workers].

await({Pid, Monitor}, Deadline) ->
    receive
        {'DOWN', Monitor, process, Pid, Reason} -> outcome(Reason)
    after remaining(Deadline) -> unfinished
    end.

%% `Pending' maps the monitors still running to their process and position.
await_any(Workers) ->
    Positions = [{Monitor, {Pid, Position}}
                 || {{Pid, Monitor}, Position} <- lists:zip(Workers, lists:seq(1, length(Workers)))],
    await_any(maps:from_list(Positions), #{}).

await_any(Pending, Failures) when map_size(Pending) =:= 0 ->
    beamtalk_result:error([Reason || {_, Reason} <- lists:sort(maps:to_list(Failures))]);
await_any(Pending, Failures) ->
    receive
        {'DOWN', Monitor, process, _, Reason} when is_map_key(Monitor, Pending) ->
            case outcome(Reason) of
                {ok, Value} ->
                    beamtalk_result:ok(Value);
                {error, Exception} ->
                    {{_, Position}, Left} = maps:take(Monitor, Pending),
                    beamtalk_actor_waits:enter({any, [Pid || {Pid, _} <- maps:values(Left)]}, get('$bt_wait')),
                    await_any(Left, Failures#{Position => Exception})
            end
    end.

outcome({?MODULE, Outcome}) -> Outcome;
outcome(Reason) -> {error, beamtalk_error:from_caught(exit, Reason, [])}.

%% Answers when every worker is dead and none of its messages is left behind.
stop_all(Workers) ->
    lists:foreach(fun({Pid, _}) -> exit(Pid, kill) end, Workers),
    lists:foreach(fun({Pid, Monitor}) ->
                          case is_process_alive(Pid) of
                              true -> receive {'DOWN', Monitor, process, Pid, _} -> ok end;
                              false -> demonitor(Monitor, [flush])
                          end
                  end, Workers).
