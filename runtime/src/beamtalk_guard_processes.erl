%% Keeps the number of processes, and what runs before all others, within what the node can bear.
%%
%% Code of Erlang starts processes without asking. Asking a process what it is may wait for it, which is too late once they
%% are many; so a census asks every new one while there is time, and whoever watches only has to look at what it wrote down.
%% The one that watches goes before everything else in the node.
-module(beamtalk_guard_processes).

-export([start_link/1, wake/0, is_quiet/0, blamed/4]).

%% How often to look: while something is done, and while hardly anything is. In the longer time fewer processes can be started
%% than there may be more than now.
-define(LOOK, 50).
-define(QUIET, 250).
%% So many reductions between two looks are the work of the system itself.
-define(LITTLE, 20000).
%% Between two rounds of the census, and how much longer than a round itself that is at least.
-define(CENSUS, 250).
%% Walking the table of processes takes as long as it is large, however few there are.
-define(QUIET_CENSUS, 5000).
-define(RARITY, 20).
%% How long processes may take to say what they are while nothing else runs, in milliseconds of the processor: on a busy machine
%% the node may have had none of it. After so many times that on the clock it is not waited any longer.
-define(ANSWER, 300).
-define(PATIENCE, 10).
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
%% So many answers speak for those that do not answer.
-define(FEW, 20).
%% So many rounds of the census after some were ended what they started last is written down: the one under way may be past it.
-define(LATE, 2).
%% Looks after which the table is full for good.
-define(FULL, 20).
%% Words of memory that stopping takes for each process there is.
-define(ROOM, 64).

-define(RUNNING, beamtalk_running).
%% {Process, known | young | raw, group leader, parent}: those that Erlang code started are raw, actors and OTP's own are known.
%% A young one counts as raw and is asked again: an actor begins under the leader of the evaluation that makes it.
-define(WRITTEN, beamtalk_census).
-define(FIRST, {?MODULE, first}).
%% Processes that were ended lately.
-define(ENDED, beamtalk_guard_ended).
-define(WATCH, beamtalk_guard_watch).
%% Three numbers: how many rounds the census has made, whether hardly anything is done, and the reductions of the census.
-define(PACE, {?MODULE, pace}).
-define(ROUNDS, 1).
-define(IS_QUIET, 2).
-define(OWN, 3).

-record(seen, {
                %% How many looks in a row found about as many processes as there may be.
                full = 0 :: integer(),
                %% A process of the usual priority, what it was asked last, and how many looks ago.
                canary :: pid(),
                asked = none :: none | reference(),
                missed = 0 :: non_neg_integer(),
                %% Until which round of the census it is looked for what those that were ended started: one that was about to
                %% run may do so once more before it hears of its end.
                until = none :: none | non_neg_integer(),
                pace :: atomics:atomics_ref(),
                %% The reductions of the node at the last look, without those of the census.
                work = 0 :: integer(),
                %% Who looks more often from the moment something is done.
                sleepers :: [pid()]}).

%% Both processes end with the caller. From the moment something is done the sleepers get the message `busy`.
-spec start_link([pid()]) -> ok.
start_link(Sleepers) ->
    ?WRITTEN = ets:new(?WRITTEN, [named_table, public, {read_concurrency, true}]),
    %% Loading code waits for a process of the usual priority, which is too late when it is needed.
    ok = code:ensure_modules_loaded([beamtalk_guard, beamtalk_bridge, beamtalk_bridge_error, maps, lists, proplists]),
    %% What is there before any code of the user is the system's.
    persistent_term:get(?FIRST, none) =:= none
        andalso persistent_term:put(?FIRST, maps:from_keys(processes(), true)),
    Pace = atomics:new(3, []),
    persistent_term:put(?PACE, Pace),
    Census = spawn_opt(fun() -> census(Pace) end, [link, {priority, high}]),
    Canary = spawn_opt(fun answer/0, [link]),
    Watch = spawn_opt(fun() ->
                          true = register(?WATCH, self()),
                          ?ENDED = ets:new(?ENDED, [named_table, public]),
                          watch(#seen{canary = Canary, pace = Pace, sleepers = [Census | Sleepers]})
                      end, [link, {priority, max}]),
    %% They go on when those are ended that actors and timers started, whose leader is theirs.
    [ets:insert(?WRITTEN, {Pid, known, group_leader(), self()}) || Pid <- [Census, Canary, Watch | Sleepers]],
    ok.

%% Code of the user begins to run.
-spec wake() -> ok.
wake() ->
    case is_quiet() andalso whereis(?WATCH) of
        Watch when is_pid(Watch) ->
            Watch ! busy,
            ok;
        _ -> ok
    end.

%% Hardly anything is done in the node.
-spec is_quiet() -> boolean().
is_quiet() ->
    case persistent_term:get(?PACE, none) of
        none -> false;
        Pace -> atomics:get(Pace, ?IS_QUIET) =:= 1
    end.

%%% The census

-spec census(atomics:atomics_ref()) -> no_return().
census(Pace) ->
    {Microseconds, _} = timer:tc(fun count/0),
    atomics:add(Pace, ?ROUNDS, 1),
    {reductions, Own} = process_info(self(), reductions),
    atomics:put(Pace, ?OWN, Own),
    case is_quiet() of
        true -> receive busy -> ok after ?QUIET_CENSUS -> ok end;
        false -> receive after max(?CENSUS, ?RARITY * Microseconds div 1000) -> ok end
    end,
    census(Pace).

count() ->
    Living = processes(),
    Dead = maps:without(Living, maps:from_keys([Pid || {Pid, _, _, _} <- ets:tab2list(?WRITTEN)], true)),
    [ets:delete(?WRITTEN, Pid) || Pid <- maps:keys(Dead)],
    [write_down(Pid) || Pid <- unwritten(Living)],
    ok.

%% Those that were not asked, or may have become another kind since.
unwritten(Pids) -> [Pid || Pid <- Pids, is_unwritten(ets:lookup(?WRITTEN, Pid))].

is_unwritten([{_, Kind, _, _}]) -> Kind =:= young;
is_unwritten([]) -> true.

write_down(Pid) ->
    case process_info(Pid, [initial_call, group_leader, parent]) of
        [{_, {Module, _, _}}, {_, Leader}, {_, Parent}] ->
            ets:insert(?WRITTEN, {Pid, kind(Pid, Module, Leader), Leader, Parent});
        undefined -> ok
    end.

%% What an evaluation starts by way of OTP is its own as well, until it says otherwise as actors do.
kind(Pid, Module, Leader) ->
    case is_map_key(Pid, persistent_term:get(?FIRST)) of
        true -> known;
        false when Module =/= proc_lib -> raw;
        false ->
            case ets:member(beamtalk_keepers, Leader) of
                true -> young;
                false -> known
            end
    end.

%%% Watching

-spec watch(#seen{}) -> no_return().
watch(Seen) ->
    Looked = pace(priorities(number(Seen))),
    receive busy -> hurry(Looked)
    after case is_quiet() of true -> ?QUIET; false -> ?LOOK end -> ok
    end,
    watch(Looked).

%% What is far from its limit is looked at rarely while no evaluation runs and hardly anything else does.
pace(#seen{pace = Pace, work = Before, missed = Missed} = Seen) ->
    {Total, _} = erlang:statistics(reductions),
    Work = Total - atomics:get(Pace, ?OWN),
    case Work - Before < ?LITTLE andalso Missed =:= 0 andalso ets:info(?RUNNING, size) =:= 0
        andalso erlang:system_info(process_count) < beamtalk_guard:max_processes() div 4 of
        true -> atomics:put(Pace, ?IS_QUIET, 1);
        false -> is_quiet() andalso hurry(Seen)
    end,
    Seen#seen{work = Work}.

hurry(#seen{pace = Pace, sleepers = Sleepers}) ->
    atomics:put(Pace, ?IS_QUIET, 0),
    [Sleeper ! busy || Sleeper <- Sleepers],
    ok.

%% Far above the limit, or at it for a while: processes that start others as fast as they are refused.
number(#seen{full = Full} = Seen) ->
    Limit = beamtalk_guard:max_processes(),
    Count = erlang:system_info(process_count),
    if
        Count > Limit + Limit div ?SLACK ->
            %% Part of what is too much, even where several share it.
            stop(Limit div ?SLACK div ?SHARERS, Seen#seen{full = 0});
        Count < Limit - Limit div ?SLACK -> late(Seen#seen{full = 0});
        %% Stopping the world is rare where many processes are as it should be.
        Full >= ?FULL -> stop(Limit div 2, Seen#seen{full = -10 * ?FULL});
        true -> Seen#seen{full = Full + 1}
    end.

stop(Least, #seen{pace = Pace} = Seen) ->
    alone(fun() -> stop_spawners(Least) end),
    Seen#seen{until = atomics:get(Pace, ?ROUNDS) + ?LATE}.

%% What was started after it was looked who there is goes too. The census asks what is new; here nobody is waited for.
late(#seen{until = none} = Seen) -> Seen;
late(#seen{pace = Pace, until = Until} = Seen) ->
    case atomics:get(Pace, ?ROUNDS) >= Until of
        false -> Seen;
        true ->
            alone(fun end_late/0),
            ets:delete_all_objects(?ENDED),
            Seen#seen{until = none}
    end.

end_late() ->
    Serving = serving(),
    end_started([{Pid, Parent} || {Pid, raw, _, Parent} <- ets:tab2list(?WRITTEN), not is_map_key(Pid, Serving)]).

%% Those that the ended ones started, those that these started, and so on.
end_started(Rows) ->
    case [Pid || {Pid, Parent} <- Rows, ets:member(?ENDED, Parent), not ets:member(?ENDED, Pid)] of
        [] -> ok;
        Children ->
            stop_all(Children),
            end_started(Rows)
    end.

stop_all(Pids) ->
    [begin
         ets:insert(?ENDED, {Pid}),
         exit(Pid, kill)
     end || Pid <- Pids],
    ok.

%% Nothing else runs meanwhile, so that no process is added. Collecting the garbage of a large heap is left to another
%% thread while processes of any priority run: the work is done where there is room enough that none is collected.
alone(Work) ->
    _ = erlang:system_flag(multi_scheduling, block_normal),
    try in_one_go(Work)
    after erlang:system_flag(multi_scheduling, unblock_normal)
    end.

in_one_go(Work) ->
    Watch = self(),
    Room = ?ROOM * erlang:system_info(process_count),
    Done = make_ref(),
    try spawn_opt(fun() ->
                      Work(),
                      unlink(Watch),
                      Watch ! Done
                  end, [link, {priority, max}, {min_heap_size, Room}]) of
        _ -> receive Done -> ok end
    catch error:system_limit -> Work()
    end.

%% The largest group of processes that nobody was asked for ends, and whoever started it. Those that do not say what they are
%% go with it; where they are the most, nobody is blamed for them.
stop_spawners(Least) ->
    New = unwritten(processes()),
    _ = ask(New, fun write_down/1),
    {Groups, Silent} = lists:foldl(fun add/2, {#{}, []}, processes()),
    Serving = serving(),
    case blamed(Groups, [Row || Pid <- New, Row <- ets:lookup(?WRITTEN, Pid)], length(Silent), Least) of
        none -> ok;
        Leader -> stop_group(Leader, maps:get(Leader, Groups), Serving)
    end,
    Most = lists:max([0 | [length(Rows) || Rows <- maps:values(Groups)]]),
    case Most + length(Silent) >= Least of
        true -> stop_silent(Silent, lists:append(maps:values(Groups)), Serving);
        false -> ok
    end.

%% Whoever started the others may be among them: what it started goes too.
stop_silent(Silent, Rows, Serving) ->
    Ended = maps:without(maps:keys(Serving), maps:from_keys(Silent, true)),
    Children = [Pid || {Pid, _, _, Parent} <- Rows, is_map_key(Parent, Ended), not is_map_key(Pid, Serving)],
    stop_all(maps:keys(Ended) ++ Children).

%% Whose group is the largest. On a busy machine most of the new processes may be silent: they are what those are that did
%% answer, if these are more than a few.
-spec blamed(#{Leader => [tuple()]}, [tuple()], non_neg_integer(), pos_integer()) -> none | Leader.
blamed(Groups, Answered, Silent, Least) ->
    Share = fun(Leader) when length(Answered) >= ?FEW ->
                    Silent * length([Row || {_, Kind, Of, _} = Row <- Answered, Kind =/= known, Of =:= Leader])
                        div length(Answered);
               (_) -> 0
            end,
    Sizes = [{length(Rows) + Share(Leader), Silent - Share(Leader), Leader} || {Leader, Rows} <- maps:to_list(Groups)],
    case lists:max([{0, 0, none} | Sizes]) of
        {Size, Rest, Leader} when Size >= Least, Size >= Rest -> Leader;
        _ -> none
    end.

stop_group(Leader, Rows, Serving) ->
    stop_origin(Leader, Rows),
    %% What a keeper started itself, its evaluator, it ends itself: another evaluation may have begun in it.
    stop_all([Pid || {Pid, _, _, Parent} <- Rows, Parent =/= Leader, not is_map_key(Pid, Serving)]).

add(Pid, {Groups, Silent}) ->
    case ets:lookup(?WRITTEN, Pid) of
        [{_, known, _, _}] -> {Groups, Silent};
        [{_, _, Leader, _} = Row] ->
            {maps:update_with(Leader, fun(Rows) -> [Row | Rows] end, [Row], Groups), Silent};
        [] -> {Groups, [Pid | Silent]}
    end.

%% The evaluation is told. Without one, an actor that started half of them by itself goes with them.
stop_origin(Leader, Rows) ->
    case ets:match_object(?RUNNING, {'_', Leader, '_', '_'}) of
        [{Id, Keeper, _, _}] ->
            Keeper ! {exceeded, Id, beamtalk_guard:no_process()},
            ok;
        [] ->
            Half = length(Rows) div 2,
            Started = lists:foldl(fun({_, _, _, Parent}, Counts) ->
                                      maps:update_with(Parent, fun(Count) -> Count + 1 end, 1, Counts)
                                  end, #{}, Rows),
            stop_all([Parent || {Parent, Count} <- maps:to_list(Started), Count > Half,
                             is_pid(Parent), Parent =/= whereis(beamtalk_bridge),
                             [{_, Kind, Of, _}] <- [ets:lookup(?WRITTEN, Parent)],
                             Kind =:= young orelse Kind =:= known andalso Of =:= Leader])
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
    Answers = answers(length(Askers), Tag, []),
    [begin
         unlink(Asker),
         exit(Asker, kill)
     end || Asker <- Askers],
    flush(Tag),
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

answers(Left, Tag, Answers) ->
    {Before, _} = erlang:statistics(runtime),
    answers(Left, Tag, {Before, ?PATIENCE, alarm(Tag)}, Answers).

answers(0, _, {_, _, Alarm}, Answers) ->
    erlang:cancel_timer(Alarm),
    Answers;
answers(Left, Tag, {Before, Patience, Alarm} = Limit, Answers) ->
    receive
        {Tag, Some} -> answers(Left - 1, Tag, Limit, Some ++ Answers);
        {timeout, Alarm, Tag} ->
            case erlang:statistics(runtime) of
                {Now, _} when Now - Before < ?ANSWER, Patience > 1 ->
                    answers(Left, Tag, {Before, Patience - 1, alarm(Tag)}, Answers);
                _ -> Answers
            end
    end.

alarm(Tag) -> erlang:start_timer(?ANSWER, self(), Tag).

flush(Tag) ->
    receive
        {Tag, _} -> flush(Tag);
        {timeout, _, Tag} -> flush(Tag)
    after 0 -> ok
    end.
