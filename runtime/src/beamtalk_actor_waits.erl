%% Who waits for whom, of those who do not get their answer soon.
%%
%% A chain of questions that comes back to who asked first is seen when it is asked (beamtalk_actor). Actors that were
%% asked by different people and wait for each other are seen here: whoever waits longer than a moment writes down for
%% whom, and looks whether that one waits for it in turn. What is answered at once pays nothing for this.
-module(beamtalk_actor_waits).

-export([tables/0, soon/1, wait/3]).

%% How soon answers mostly come.
-define(SOON, 20).
%% The longest time between two looks.
-define(PAUSE, 1000).
%% Rows of the killed are looked for when there are twice as many as last time, and more than this.
-define(FEW, 1000).
-define(SWEPT, swept).

-spec tables() -> [{atom(), list()}].
tables() -> [{?MODULE, [set, {write_concurrency, true}]}].

%% How long to wait for an answer before `wait/3'.
-spec soon(timeout()) -> non_neg_integer().
soon(Timeout) when Timeout > ?SOON -> ?SOON;
soon(Timeout) -> Timeout.

%% Wait on for the answer of a process, `soon/1' of the time being over.
-spec wait(pid(), reference(), timeout()) -> {answer, term()} | down | timeout | deadlock.
wait(Pid, Monitor, Timeout) when Timeout > ?SOON ->
    sweep(),
    ets:insert(?MODULE, {self(), Pid, Monitor}),
    try await(Pid, Monitor, deadline(Timeout), ?SOON)
    after ets:delete(?MODULE, self())
    end;
wait(_, _, _) -> timeout.

await(Pid, Monitor, Deadline, Pause) ->
    case is_waiting_for_me(Pid, []) of
        true -> deadlock;
        false ->
            Left = left(Deadline),
            receive
                {[alias | Monitor], Reply} -> {answer, Reply};
                {'DOWN', Monitor, _, _, _} -> down
            after min(Left, Pause) ->
                case Left > Pause of
                    true -> await(Pid, Monitor, Deadline, min(2 * Pause, ?PAUSE));
                    false -> timeout
                end
            end
    end.

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout - ?SOON.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%% Follows who waits for whom from this process on; `Seen' are those on the way.
is_waiting_for_me(Pid, Seen) ->
    case ets:lookup(?MODULE, Pid) of
        [{_, Next, _} = Row] ->
            case {Next =:= self(), lists:keymember(Pid, 1, Seen)} of
                {true, _} -> lists:all(fun is_stuck/1, [Row | Seen]);
                {false, true} -> false;
                {false, false} -> is_waiting_for_me(Next, [Row | Seen])
            end;
        [] -> false
    end.

%% One that has its answer already is about to run, and its row about to go.
is_stuck({Pid, _, _} = Row) ->
    process_info(Pid, status) =:= {status, waiting} andalso ets:lookup(?MODULE, Pid) =:= [Row].

%% Whoever is killed while waiting leaves its row.
sweep() ->
    Size = ets:info(?MODULE, size),
    Swept = case ets:lookup(?MODULE, ?SWEPT) of
        [{_, Kept}] -> Kept;
        [] -> 0
    end,
    case Size > ?FEW andalso Size > 2 * Swept of
        false -> ok;
        true ->
            [ets:delete(?MODULE, Pid) || [Pid] <- ets:match(?MODULE, {'$1', '_', '_'}), not is_process_alive(Pid)],
            ets:insert(?MODULE, {?SWEPT, ets:info(?MODULE, size)})
    end.
