%% Who waits for whom, of those who do not get their answer soon.
%%
%% A chain of questions that comes back to who asked first is seen when it is asked (beamtalk_actor). Actors that were
%% asked by different people and wait for each other are seen here: whoever waits longer than a moment writes down for
%% whom, and looks whether that one waits for it in turn. What is answered at once pays nothing for this.
%%
%% Whoever waits for processes that it started itself (Parallel, announceAndWait:) writes that down and does not look:
%% a circle goes through a question of theirs. Who waits for the start of an actor is written down by that actor.
-module(beamtalk_actor_waits).

-export([tables/0, wait/4, wait_for_end/3, ask/4, enter/2, leave/0]).

%% How soon answers mostly come.
-define(SOON, 20).
%% The longest time between two looks.
-define(PAUSE, 1000).
%% Rows of the killed are looked for when there are twice as many as last time, and more than this.
-define(FEW, 1000).
-define(SWEPT, swept).

%% One process, all of some, any one of some, or whoever holds a lock.
-type awaited() :: pid() | {all | any, [pid()]} | {lock, term()}.
-type outcome() :: {answer, term()} | down | timeout | deadlock.

-spec tables() -> [{atom(), list()}].
tables() -> [{?MODULE, [set, {write_concurrency, true}]}].

%% Wait for the answer of this name, or the end of the process that is watched.
-spec wait(awaited(), reference(), reference(), timeout()) -> outcome().
wait(Awaited, Answer, Monitor, Timeout) ->
    case received(Answer, Monitor, min(Timeout, ?SOON), timeout) of
        timeout -> go_on(Awaited, Answer, Monitor, Timeout);
        Outcome -> Outcome
    end.

go_on(Awaited, Answer, Monitor, Timeout) when Timeout > ?SOON ->
    enter(Awaited, Answer),
    try await(Awaited, Answer, Monitor, deadline(Timeout), ?SOON)
    after leave()
    end;
go_on(_, _, _, _) -> timeout.

%% Wait for the end of the process that is watched alone.
-spec wait_for_end(pid(), reference(), timeout()) -> outcome().
wait_for_end(Pid, Monitor, Timeout) ->
    Outcome = wait(Pid, Monitor, Monitor, Timeout),
    erlang:demonitor(Monitor, [flush]),
    Outcome.

%% Ask a process that speaks as a gen_server; an answer that comes after this is dropped. The request may say which answer it
%% is that this process waits for.
-spec ask(pid(), fun((reference()) -> term()), awaited(), timeout()) -> outcome().
ask(Pid, Request, Awaited, Timeout) ->
    Monitor = erlang:monitor(process, Pid, [{alias, demonitor}]),
    Pid ! {'$gen_call', {self(), [alias | Monitor]}, Request(Monitor)},
    %% Here and not in `received/4', so that the VM looks only at messages that came after this.
    Outcome = receive
        {[alias | Monitor], Reply} -> {answer, Reply};
        {'DOWN', Monitor, _, _, _} -> down
    after min(Timeout, ?SOON) -> go_on(Awaited, Monitor, Monitor, Timeout)
    end,
    erlang:demonitor(Monitor, [flush]),
    receive {[alias | Monitor], _} -> ok after 0 -> ok end,
    Outcome.

%% This process waits, until it says `leave/0' or enters again; so do those who wait for its start.
-spec enter(awaited(), reference()) -> ok.
enter(Awaited, Id) ->
    sweep(),
    ets:insert(?MODULE, [{self(), Awaited, Id} | makers()]),
    ok.

-spec leave() -> ok.
leave() ->
    ets:delete(?MODULE, self()),
    [ets:delete(?MODULE, Maker) || {Maker, _, _} <- makers()],
    ok.

%% Who started this process and waits until it is initialized, and who waits for that one in the same way.
makers() -> makers(self(), get('$bt_chain')).

makers(Made, [{Maker, {start, _} = Wait} | Chain]) ->
    case process_info(Maker, dictionary) of
        {dictionary, Dictionary} ->
            case lists:keyfind('$bt_wait', 1, Dictionary) of
                {_, Wait} -> [{Maker, Made, Wait} | makers(Maker, Chain)];
                _ -> []
            end;
        undefined -> []
    end;
makers(_, _) -> [].

await(Awaited, Answer, Monitor, Deadline, Pause) ->
    case is_circle(Awaited) of
        %% One that got its answer meanwhile may be asked by who gave it.
        true -> received(Answer, Monitor, 0, deadlock);
        false ->
            Left = left(Deadline),
            case received(Answer, Monitor, min(Left, Pause), timeout) of
                timeout when Left > Pause -> await(Awaited, Answer, Monitor, Deadline, min(2 * Pause, ?PAUSE));
                Outcome -> Outcome
            end
    end.

%% An answer comes as an actor gives it at once, or as a gen_server does.
received(Answer, Monitor, Time, Otherwise) ->
    receive
        {Answer, Value} -> {answer, {ok, Value}};
        {[_ | Answer], Reply} -> {answer, Reply};
        {'DOWN', Monitor, _, _, _} -> down
    after Time -> Otherwise
    end.

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout - ?SOON.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

%%% Circles

%% Does it lead back to this process to follow who waits for whom, all on the way being stuck?
is_circle(Awaited) ->
    case processes(self(), Awaited) of
        [Pid] ->
            case follow(Pid, 1, #{self() => 0}) of
                {{0, Steps}, _} ->
                    lists:all(fun is_stuck/1, Steps) andalso processes(self(), Awaited) =:= [Pid];
                _ -> false
            end;
        [] -> false
    end.

%% `Seen' has those on the way here with their place on it, and those found free. Answers `free', or the first place on
%% the way that it leads back to, with the rows that say so and whom each means.
follow(Pid, Place, Seen) ->
    case Seen of
        #{Pid := free} -> {free, Seen};
        #{Pid := Before} -> {{Before, []}, Seen};
        _ ->
            case ets:lookup(?MODULE, Pid) of
                [] -> {free, Seen};
                [{_, Awaited, _} = Row] ->
                    Pids = processes(Pid, Awaited),
                    {Found, Known} = lists:mapfoldl(fun(Next, Acc) -> follow(Next, Place + 1, Acc) end,
                                                    Seen#{Pid => Place}, Pids),
                    case leads_back(Awaited, Found, Place) of
                        {Before, Steps} -> {{Before, [{Row, Pids} | Steps]}, maps:remove(Pid, Known)};
                        free -> {free, Known#{Pid := free}}
                    end
            end
    end.

%% Who waits for any one of some is free when one of them is. A circle that does not lead to before this place is for
%% those in it to see.
leads_back({any, _}, Found, Place) ->
    case lists:member(free, Found) of
        true -> free;
        false -> first(Place, [{lists:min([Before || {Before, _} <- Found]), lists:append([Steps || {_, Steps} <- Found])}])
    end;
leads_back(_, Found, Place) -> first(Place, Found).

first(Place, Found) ->
    case lists:sort([Back || {Before, _} = Back <- Found, Before < Place]) of
        [First | _] -> First;
        [] -> free
    end.

processes(_, {all, Pids}) -> Pids;
processes(_, {any, Pids}) -> Pids;
%% Whoever holds the lock that it waits for is just being told so.
processes(Pid, {lock, Key}) -> [Holder || Holder <- [beamtalk_registry:holder(Key)], Holder =/= none, Holder =/= Pid];
processes(_, Pid) -> [Pid].

%% One that has its answer already is about to run, and its row about to go.
is_stuck({{Pid, Awaited, _} = Row, Pids}) ->
    process_info(Pid, status) =:= {status, waiting} andalso ets:lookup(?MODULE, Pid) =:= [Row]
        andalso processes(Pid, Awaited) =:= Pids.

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
