%% Keeps the number of processes, and what runs before all others, within what the node can bear.
%%
%% Code of Erlang starts processes without asking. Asking a process what it is may wait for it, which is too late once they
%% are many; so a census asks every new one while there is time, and whoever watches only has to look at what it wrote down.
%% The one that watches goes before everything else in the node.
-module(beamtalk_guard_processes).

-export([start_link/0]).

%% How often to look.
-define(LOOK, 50).
%% Between two rounds of the census, and how much longer than a round itself that is at least.
-define(CENSUS, 250).
-define(RARITY, 20).
%% How long processes may take to say what they are while nothing else runs.
-define(ANSWER, 300).
%% So many thereby share the asking: one that does not answer holds up only a few others.
-define(ASKERS, 50).
%% So many looks may pass before a process of the usual priority gets to run; then whoever holds it up is looked for, and given
%% so many looks more without finding any, the node is given up. Looks, not time: a machine that slept has not looked.
-define(HELD_UP, 20).
-define(HELPLESS, 40).
%% How long it is watched what they do, and how much is more than a process that pauses does.
-define(SAMPLE, 200).
-define(MUCH, 20000).
%% A run queue that is so long keeps a process waiting by itself.
-define(LONG_QUEUE, 500).
%% So far above the limit (a tenth) somebody is stopped.
-define(SLACK, 10).
-define(SHARERS, 4).
%% Looks after which the table is full for good.
-define(FULL, 20).

-define(RUNNING, beamtalk_running).
%% {Process, known | raw, group leader, parent}: those that Erlang code started are raw, actors and OTP's own are known.
-define(WRITTEN, beamtalk_census).
-define(FIRST, {?MODULE, first}).

-record(seen, {
                %% How many looks in a row found about as many processes as there may be.
                full = 0 :: integer(),
                %% A process of the usual priority, what it was asked last, and how many looks ago.
                canary :: pid(),
                asked = none :: none | reference(),
                missed = 0 :: non_neg_integer()}).

%% Both processes end with the caller.
-spec start_link() -> ok.
start_link() ->
    ?WRITTEN = ets:new(?WRITTEN, [named_table, public, {read_concurrency, true}]),
    %% Loading code waits for a process of the usual priority, which is too late when it is needed.
    ok = code:ensure_modules_loaded([beamtalk_guard, beamtalk_bridge, beamtalk_bridge_error, maps, lists, proplists]),
    %% What is there before any code of the user is the system's.
    persistent_term:get(?FIRST, none) =:= none
        andalso persistent_term:put(?FIRST, maps:from_keys(processes(), true)),
    _ = spawn_opt(fun census/0, [link, {priority, high}]),
    _ = spawn_opt(fun() ->
                      watch(#seen{canary = spawn_opt(fun answer/0, [link])})
                  end, [link, {priority, max}]),
    ok.

%%% The census

-spec census() -> no_return().
census() ->
    {Microseconds, _} = timer:tc(fun count/0),
    receive after max(?CENSUS, ?RARITY * Microseconds div 1000) -> ok end,
    census().

count() ->
    Living = processes(),
    Dead = maps:without(Living, maps:from_keys([Pid || {Pid, _, _, _} <- ets:tab2list(?WRITTEN)], true)),
    [ets:delete(?WRITTEN, Pid) || Pid <- maps:keys(Dead)],
    [write_down(Pid) || Pid <- unwritten(Living)],
    ok.

unwritten(Pids) -> [Pid || Pid <- Pids, not ets:member(?WRITTEN, Pid)].

write_down(Pid) ->
    case process_info(Pid, [initial_call, group_leader, parent]) of
        [{_, {Module, _, _}}, {_, Leader}, {_, Parent}] ->
            ets:insert(?WRITTEN, {Pid, kind(Pid, Module, Leader), Leader, Parent});
        undefined -> ok
    end.

%% What an evaluation starts by way of OTP is its own as well, until it says otherwise as actors do.
kind(Pid, Module, Leader) ->
    IsKnown = is_map_key(Pid, persistent_term:get(?FIRST))
        orelse Module =:= proc_lib andalso not ets:member(beamtalk_keepers, Leader),
    case IsKnown of
        true -> known;
        false -> raw
    end.

%%% Watching

-spec watch(#seen{}) -> no_return().
watch(Seen) ->
    Looked = priorities(number(Seen)),
    receive after ?LOOK -> ok end,
    watch(Looked).

%% Far above the limit, or at it for a while: processes that start others as fast as they are refused.
number(#seen{full = Full} = Seen) ->
    Limit = beamtalk_guard:max_processes(),
    Count = erlang:system_info(process_count),
    if
        Count > Limit + Limit div ?SLACK ->
            %% Part of what is too much, even where several share it.
            alone(fun() -> stop_spawners(Limit div ?SLACK div ?SHARERS) end),
            Seen#seen{full = 0};
        Count < Limit - Limit div ?SLACK -> Seen#seen{full = 0};
        Full >= ?FULL ->
            alone(fun() -> stop_spawners(Limit div 2) end),
            %% Stopping the world is rare where many processes are as it should be.
            Seen#seen{full = -10 * ?FULL};
        true -> Seen#seen{full = Full + 1}
    end.

%% Nothing else runs meanwhile, so that no process is added.
alone(Work) ->
    _ = erlang:system_flag(multi_scheduling, block_normal),
    try Work()
    after erlang:system_flag(multi_scheduling, unblock_normal)
    end.

%% The largest group of processes that nobody was asked for ends, and whoever started it. Those that do not say what they are
%% go with it; where they are the most, nobody is blamed for them.
stop_spawners(Least) ->
    _ = ask(unwritten(processes()), fun write_down/1),
    {Groups, Silent} = lists:foldl(fun add/2, {#{}, []}, processes()),
    {Count, Leader, Rows} =
        lists:max([{0, none, []} | [{length(Rows), Leader, Rows} || {Leader, Rows} <- maps:to_list(Groups)]]),
    Serving = serving(),
    Count >= max(Least, length(Silent)) andalso stop_group(Leader, Rows, Serving),
    [exit(Pid, kill) || Count + length(Silent) >= Least, Pid <- Silent, not is_map_key(Pid, Serving)].

stop_group(Leader, Rows, Serving) ->
    stop_origin(Leader, Rows),
    %% What a keeper started itself, its evaluator, it ends itself: another evaluation may have begun in it.
    [exit(Pid, kill) || {Pid, _, _, Parent} <- Rows, Parent =/= Leader, not is_map_key(Pid, Serving)].

add(Pid, {Groups, Silent}) ->
    case ets:lookup(?WRITTEN, Pid) of
        [{_, known, _, _}] -> {Groups, Silent};
        [{_, raw, Leader, _} = Row] ->
            {maps:update_with(Leader, fun(Rows) -> [Row | Rows] end, [Row], Groups), Silent};
        [] -> {Groups, [Pid | Silent]}
    end.

%% The evaluation is told. Without one, an actor that started half of them by itself goes with them.
stop_origin(Leader, Rows) ->
    case ets:match_object(?RUNNING, {'_', Leader, '_', '_'}) of
        [{Id, Keeper, _, _}] -> Keeper ! {exceeded, Id, beamtalk_guard:no_process()};
        [] ->
            Started = lists:foldl(fun({_, _, _, Parent}, Counts) ->
                                      maps:update_with(Parent, fun(Count) -> Count + 1 end, 1, Counts)
                                  end, #{}, Rows),
            [exit(Parent, kill) || {Parent, Count} <- maps:to_list(Started), Count * 2 > length(Rows),
                                   is_pid(Parent), Parent =/= whereis(beamtalk_bridge),
                                   [{_, known, Of, _}] <- [ets:lookup(?WRITTEN, Parent)], Of =:= Leader]
    end.

%% The processes that work on a request, keep a session or have a name, as servers of OTP do that start late: perhaps made
%% since the census. Killed a few times in a row, such a server takes the node with it.
serving() ->
    Named = [whereis(Name) || Name <- registered()],
    Keepers = [element(1, Row) || Row <- ets:tab2list(beamtalk_keepers)],
    Evaluators = [Pid || {_, _, Pid, _} <- ets:tab2list(?RUNNING)],
    Workers = [Pid || {_, Pid} <- ets:tab2list(beamtalk_requests)],
    maps:from_keys([self() | Named ++ Keepers ++ Evaluators ++ Workers], true).

%%% Priorities

%% Code that runs at a high priority and never pauses stops everything of the usual one.
priorities(#seen{asked = none, canary = Canary} = Seen) ->
    Canary ! {self(), Question = make_ref()},
    Seen#seen{asked = Question, missed = 0};
priorities(#seen{asked = Question, missed = Missed} = Seen) ->
    receive {Question, here} -> Seen#seen{asked = none}
    after 0 -> Seen#seen{missed = missed(Missed + 1)}
    end.

missed(Missed) when Missed < ?HELD_UP -> Missed;
missed(Missed) ->
    case erlang:statistics(total_run_queue_lengths) > ?LONG_QUEUE orelse is_hog_ended() of
        true -> ?HELD_UP;
        false when Missed > ?HELPLESS -> give_up();
        false -> Missed
    end.

answer() ->
    receive {From, Question} -> From ! {Question, here} end,
    answer().

give_up() -> beamtalk_guard:give_up(priority).

%% Those that did most since they were asked first. Processes of the runtime go before others too, and pause.
is_hog_ended() ->
    Before = ask(shuffled(processes()), fun work_done/1),
    receive after ?SAMPLE -> ok end,
    Later = maps:from_list(ask([Pid || {Pid, _} <- Before], fun work_done/1)),
    Gains = [{maps:get(Pid, Later, Done) - Done, Pid} || {Pid, Done} <- Before],
    {Most, _} = lists:max([{0, none} | Gains]),
    Hogs = [Pid || {Gain, Pid} <- Gains, Gain > ?MUCH, Gain * 2 > Most],
    [end_hog(Pid) || Pid <- Hogs],
    Hogs =/= [].

%% Who is asked behind one that does not answer is asked before it the next time.
shuffled(Pids) ->
    Salt = make_ref(),
    [Pid || {_, Pid} <- lists:sort([{erlang:phash2({Salt, Pid}), Pid} || Pid <- Pids])].

work_done(Pid) ->
    case process_info(Pid, [priority, reductions]) of
        [{_, Priority}, {_, Reductions}] when Priority =:= high; Priority =:= max ->
            is_map_key(Pid, persistent_term:get(?FIRST)) orelse serves_at_once(Pid) orelse {Pid, Reductions};
        _ -> true
    end.

serves_at_once(Pid) ->
    ets:member(beamtalk_keepers, Pid)
        orelse lists:member(Pid, [whereis(Name) || Name <- [beamtalk_bridge, beamtalk_bridge_writer, beamtalk_guard,
                                                            beamtalk_workspace, beamtalk_session_sup]]).

end_hog(Pid) ->
    case ets:match_object(?RUNNING, {'_', '_', Pid, '_'}) of
        [{Id, Keeper, _, _}] -> Keeper ! {exceeded, Id, held_up()};
        [] -> ok
    end,
    exit(Pid, kill).

held_up() ->
    beamtalk_bridge_error:new(<<"eval_limit">>, "evaluation stopped: at its high priority nothing else could run",
                              <<"leave the priority as it is">>, #{<<"limit">> => <<"priority">>}).

%%% Asking

%% What the processes say, as far as they say it in time. The answers are pairs; all else is left out.
ask(Pids, Question) ->
    Watch = self(),
    Tag = make_ref(),
    Shares = shares(Pids, #{}, 0),
    Askers = [Asker || Share <- Shares, Asker <- asker(fun() -> Watch ! {Tag, [Question(Pid) || Pid <- Share]} end)],
    Alarm = erlang:start_timer(?ANSWER, self(), Tag),
    Answers = answers(length(Askers), Tag, Alarm, []),
    erlang:cancel_timer(Alarm),
    [begin
         unlink(Asker),
         exit(Asker, kill)
     end || Asker <- Askers],
    flush(Tag, Alarm),
    [Pair || {_, _} = Pair <- Answers].

%% With no process to be had nobody is asked.
asker(Work) ->
    try [spawn_opt(Work, [link, {priority, max}])]
    catch error:system_limit -> []
    end.

shares([], Shares, _) -> maps:values(Shares);
shares([Pid | Rest], Shares, Number) ->
    Share = Number rem ?ASKERS,
    shares(Rest, Shares#{Share => [Pid | maps:get(Share, Shares, [])]}, Number + 1).

answers(0, _, _, Answers) -> Answers;
answers(Left, Tag, Alarm, Answers) ->
    receive
        {Tag, Some} -> answers(Left - 1, Tag, Alarm, Some ++ Answers);
        {timeout, Alarm, Tag} -> Answers
    end.

flush(Tag, Alarm) ->
    receive
        {Tag, _} -> flush(Tag, Alarm);
        {timeout, Alarm, _} -> flush(Tag, Alarm)
    after 0 -> ok
    end.
