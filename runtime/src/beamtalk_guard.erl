%% Keeps evaluations within what the node can bear: memory, binaries, and processes (see beamtalk_guard_processes).
%%
%% The VM ends a process whose heap is too large by itself. It does not count binaries (before OTP 27), knows no limit for
%% all evaluations together, and its limit of processes also stops those the workspace cannot do without. So this process
%% looks now and then, at a higher priority than any code of the user, and ends evaluations, the largest first. A node
%% whose memory does not go back even so ends itself before the system ends something.
-module(beamtalk_guard).
-behaviour(gen_server).

-export([start_link/0, configure/1, give_up/1]).
-export([check_process/2, no_process/0, max_processes/0]).
-export([outgrew_heap/1, heap_error/1, heap_flag/1, binaries/0, check_binaries/3, check_text/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% How often to look: while evaluations run, while something else is done, and otherwise.
-define(BUSY, 50).
-define(CALM, 250).
-define(QUIET, 1000).
%% How long the memory may stay above its limit once nothing is left to end.
-define(PATIENCE, 2000).
%% The same while the evaluation that was ended last is still there.
-define(LONG_PATIENCE, 10000).
%% How long the memory of an evaluation that was ended takes to come back.
-define(RELEASE, 500).
-define(SWEEP, 1000).
%% After so many quiet looks and so many reductions garbage is collected, and in which processes.
-define(TIDY, 2).
-define(MUCH, 1000000).
-define(SMALL, 100000).
-define(LARGE, 16 * ?MEGABYTE).
%% How long a report of the VM is waited for.
-define(REPORT, 1000).
%% How many may wait to be passed on.
-define(REPORTS, 1000).

-define(RUNNING, beamtalk_running).
-define(MEMORY, {?MODULE, memory}).
%% A name, not a tuple: it is looked up for every actor.
-define(PROCESSES, '$bt_max_processes').
-define(BINARIES, {?MODULE, binaries}).
%% Milliseconds in which nobody makes binaries worth counting.
-define(SHORT, 5).
-define(MAX_PROCESSES, 250000).
-define(MEGABYTE, 1048576).

%% What one look leaves for the next.
-record(seen, {
                %% When something was last done about memory above its limit.
                over = none :: none | integer(),
                %% Whom that ended: in the middle of a long step a process has its memory until that is done.
                ended = none :: none | pid(),
                %% Binaries of the node when evaluations were last looked at.
                binaries = 0 :: non_neg_integer(),
                swept = none :: none | integer(),
                %% How many looks in a row found hardly anything done.
                quiet = 0 :: non_neg_integer(),
                %% The reductions of the node when garbage was last collected.
                tidied = 0 :: non_neg_integer(),
                suspects = [] :: [beamtalk_bridge:id()]}).

-record(state, {heaps = [] :: [pid()],
                %% Who wants to know of a process the VM has not reported.
                waiting = #{} :: #{pid() => gen_server:from()}}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Limits of this start: memory of the node in MiB (0: none), processes.
-spec configure(map()) -> ok.
configure(Settings) ->
    case Settings of
        #{<<"memory_mb">> := Megabytes} when is_integer(Megabytes) ->
            persistent_term:put(?MEMORY, Megabytes * ?MEGABYTE);
        _ -> ok
    end,
    case Settings of
        #{<<"max_processes">> := Processes} when is_integer(Processes), Processes > 0 ->
            persistent_term:put(?PROCESSES, Processes);
        _ -> ok
    end.

%%% Processes

-spec max_processes() -> pos_integer().
max_processes() -> persistent_term:get(?PROCESSES, ?MAX_PROCESSES).

%% Called before a process is started for code of the user.
-spec check_process(atom(), atom()) -> ok.
check_process(Class, Selector) ->
    case erlang:system_info(process_count) < max_processes() of
        true -> ok;
        false ->
            beamtalk_error:raise(process_limit, Class, Selector, limit_text(), limit_hint(),
                                 #{limit => max_processes()})
    end.

limit_text() ->
    iolist_to_binary(["no more processes: the limit of ", integer_to_list(max_processes()), " is reached"]).

limit_hint() -> <<"stop actors that are not needed, or raise it with --max-processes">>.

%% Nothing can be done without a process.
-spec no_process() -> map().
no_process() ->
    beamtalk_bridge_error:new(<<"process_limit">>, limit_text(), limit_hint(), #{<<"limit">> => <<"processes">>}).

%%% Heaps

%% The limit of an evaluation's memory as the VM keeps it. The report tells a kill by the VM from any other.
-spec heap_flag(non_neg_integer()) -> 0 | map().
heap_flag(Words) ->
    case bounded(Words) of
        0 -> 0;
        Bounded -> limit_flag(Bounded)
    end.

%% No evaluation is given nearly as much as the node as a whole may have: ended by the VM while it grows, it never has it.
bounded(Words) ->
    case persistent_term:get(?MEMORY, 0) div 4 * 3 div erlang:system_info(wordsize) of
        0 -> Words;
        Node when Words =:= 0; Words > Node -> Node;
        _ -> Words
    end.

limit_flag(Words) ->
    Limit = #{size => Words, kill => true, error_logger => true},
    case list_to_integer(erlang:system_info(otp_release)) >= 27 of
        true -> Limit#{include_shared_binaries => true};
        false -> Limit
    end.

%% Was the process ended by the VM because of its heap? The VM's report may come a little later than the end.
-spec outgrew_heap(pid()) -> boolean().
outgrew_heap(Pid) ->
    try gen_server:call(?MODULE, {outgrew_heap, Pid}, 5000)
    catch exit:_ -> false
    end.

%% What an evaluation with this limit is told that the VM has ended.
-spec heap_error(non_neg_integer()) -> map().
heap_error(Words) ->
    case bounded(Words) of
        Words -> heap_limit(Words * erlang:system_info(wordsize));
        _ -> node_limit(persistent_term:get(?MEMORY))
    end.

-spec heap_limit(non_neg_integer()) -> map().
heap_limit(Bytes) ->
    beamtalk_bridge_error:new(<<"eval_limit">>, ["evaluation stopped: heap limit of ", megabytes(Bytes), " MiB reached"],
                              <<"raise it with --eval-max-heap-mb, or work on a lazy Stream">>,
                              #{<<"limit">> => <<"heap">>}).

node_limit(Bytes) ->
    beamtalk_bridge_error:new(<<"eval_limit">>,
                              ["evaluation stopped: the node's memory limit of ", megabytes(Bytes), " MiB reached"],
                              <<"raise it with --node-max-memory-mb, or hold less in variables and actors">>,
                              #{<<"limit">> => <<"memory">>}).

megabytes(Bytes) -> integer_to_binary(Bytes div ?MEGABYTE).

%% Binaries of the node when they were last looked at.
-spec binaries() -> non_neg_integer().
binaries() ->
    case persistent_term:get(?BINARIES, none) of
        none -> 0;
        Seen -> atomics:get(Seen, 1)
    end.

%% At the end of an evaluation: does the caller refer to more than it may? A short one cannot have made much, and one
%% during which the node's binaries did not grow made none.
-spec check_binaries(non_neg_integer(), non_neg_integer(), integer()) -> ok | {error, map()}.
check_binaries(0, _, _) -> ok;
check_binaries(Words, Before, Started) ->
    Limit = Words * erlang:system_info(wordsize),
    case erlang:monotonic_time(millisecond) - Started > ?SHORT
        andalso has_grown(erlang:memory(binary), Before, Limit) andalso is_larger(self(), Limit) of
        true -> {error, heap_limit(Limit)};
        false -> ok
    end.

%% Called before a long text is made of others: one that alone is more than its evaluation may have is not made. Looking now
%% and then would be too late, since a text that doubles takes all memory between two looks.
-spec check_text(non_neg_integer()) -> ok.
check_text(Bytes) ->
    Self = self(),
    case [Row || {_, _, Pid, Limit} = Row <- ets:tab2list(?RUNNING), Pid =:= Self, Limit > 0, Bytes > Limit] of
        [] -> ok;
        [{Id, Keeper, _, Limit} | _] ->
            exceed(Keeper, Id, heap_limit(Limit)),
            %% It ends here, whatever handlers it has.
            receive after infinity -> ok end
    end.

has_grown(Binaries, Before, Limit) -> Binaries > Limit andalso Binaries - Before > Limit div 4.

%% The VM knows what binaries a process refers to once it has collected its garbage.
is_larger(Pid, Limit) ->
    erlang:garbage_collect(Pid, [{type, minor}]),
    size_of(Pid) > Limit andalso begin
        erlang:garbage_collect(Pid),
        size_of(Pid) > Limit
    end.

size_of(Pid) ->
    case process_info(Pid, [memory, garbage_collection_info]) of
        [{_, Heap}, {_, Collection}] ->
            Words = proplists:get_value(bin_vheap_size, Collection, 0)
                + proplists:get_value(bin_old_vheap_size, Collection, 0),
            Heap + Words * erlang:system_info(wordsize);
        undefined -> 0
    end.

%%% Looking

-spec init([]) -> {ok, #state{}}.
init([]) ->
    process_flag(priority, high),
    %% Reports of the VM come here first.
    _ = erlang:system_flag(system_logger, self()),
    persistent_term:get(?BINARIES, none) =:= none
        andalso persistent_term:put(?BINARIES, atomics:new(1, [{signed, false}])),
    %% Looking may wait for the processes looked at, and must not wait for reports.
    Looking = spawn_opt(fun() -> look(#seen{}) end, [link, {priority, high}]),
    ok = beamtalk_guard_processes:start_link([Looking]),
    {ok, #state{}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, boolean(), #state{}} | {noreply, #state{}}.
handle_call({outgrew_heap, Pid}, From, #state{heaps = Heaps, waiting = Waiting} = State) ->
    case lists:member(Pid, Heaps) of
        true -> {reply, true, State#state{heaps = lists:delete(Pid, Heaps)}};
        false ->
            erlang:send_after(?REPORT, self(), {no_report, Pid}),
            {noreply, State#state{waiting = Waiting#{Pid => From}}}
    end;
handle_call(_, _From, State) ->
    {reply, false, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info({log, _, Format, [Pid | _], _} = Report, #state{heaps = Heaps} = State) when is_pid(Pid) ->
    case is_list(Format) andalso string:find(Format, "maximum heap size reached") =/= nomatch of
        true -> {noreply, reported(Pid, true, State#state{heaps = lists:sublist([Pid | Heaps], 100)})};
        false ->
            pass_on(Report),
            {noreply, State}
    end;
handle_info({no_report, Pid}, State) ->
    {noreply, reported(Pid, false, State)};
handle_info({log, _, _, _, _} = Report, State) ->
    pass_on(Report),
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.

reported(Pid, Outgrew, #state{waiting = Waiting} = State) ->
    case maps:take(Pid, Waiting) of
        {From, Left} ->
            gen_server:reply(From, Outgrew),
            State#state{waiting = Left};
        error -> State
    end.

%% A flood of reports is cut: who crashes ten thousand processes needs no ten thousand lines.
pass_on(Report) ->
    {_, Waiting} = process_info(self(), message_queue_len),
    [Logger ! Report || Waiting < ?REPORTS, Logger <- [whereis(logger_proxy)], is_pid(Logger)],
    ok.

-spec look(#seen{}) -> no_return().
look(Seen) ->
    Looked = tidy(sweep(memory(Seen))),
    Pause = case ets:info(?RUNNING, size) of
        0 ->
            case beamtalk_guard_processes:is_quiet() of
                true -> ?QUIET;
                false -> ?CALM
            end;
        _ -> ?BUSY
    end,
    receive busy -> ok after Pause -> ok end,
    look(Looked).

%% A process that was busy keeps the room it had until it is busy again: once the node is quiet, garbage is collected. Small
%% heaps are not worth it, and large ones take too long.
tidy(#seen{quiet = Quiet, tidied = Before} = Seen) ->
    {Work, _} = erlang:statistics(reductions),
    case beamtalk_guard_processes:is_quiet() of
        false -> Seen#seen{quiet = 0};
        true when Quiet >= ?TIDY, Work - Before > ?MUCH ->
            spawn(fun() ->
                [erlang:garbage_collect(Pid) || Pid <- processes(), {memory, Memory} <- [process_info(Pid, memory)],
                                                Memory > ?SMALL, Memory < ?LARGE]
            end),
            Seen#seen{tidied = Work};
        true -> Seen#seen{quiet = Quiet + 1}
    end.

%% Requests whose process was killed are answered.
sweep(#seen{swept = Last, suspects = Suspects} = Seen) ->
    case erlang:monotonic_time(millisecond) of
        Now when Last =:= none; Now - Last >= ?SWEEP ->
            Seen#seen{swept = Now, suspects = beamtalk_bridge_request:sweep(Suspects)};
        _ -> Seen
    end.

%%% Memory

memory(Seen) ->
    [{total, Total}, {binary, Binaries}] = erlang:memory([total, binary]),
    Looked = ended_for_binaries(Binaries, Seen),
    atomics:put(persistent_term:get(?BINARIES), 1, Binaries),
    case persistent_term:get(?MEMORY, 0) of
        Limit when Limit > 0, Total > Limit -> over(Limit, Looked);
        _ -> Looked#seen{over = none}
    end.

%% Collecting the garbage of an evaluation takes its time, so it is done only where binaries have grown.
ended_for_binaries(Binaries, #seen{binaries = Before} = Seen) ->
    case [Row || {_, _, _, Limit} = Row <- ets:tab2list(?RUNNING), Limit > 0, has_grown(Binaries, Before, Limit)] of
        [] -> Seen#seen{binaries = min(Before, Binaries)};
        Rows ->
            [exceed(Keeper, Id, heap_limit(Limit)) || {Id, Keeper, Pid, Limit} <- Rows, is_too_large(Pid, Limit)],
            Seen#seen{binaries = Binaries}
    end.

%% A process in the middle of a long step answers late: it is not waited for long.
is_too_large(Pid, Limit) ->
    beamtalk_limited:run(fun() -> is_larger(Pid, Limit) end, ?MEGABYTE, 2000) =:= {ok, true}.

exceed(Keeper, Id, Error) -> Keeper ! {exceeded, Id, Error}.

%% The largest evaluation goes, and the next only when the memory of that one had time to come back. With none left,
%% memory that nobody uses is given back, and then the node ends.
over(Limit, #seen{over = Since, ended = Ended} = Seen) ->
    Now = erlang:monotonic_time(millisecond),
    case Since =/= none andalso Now - Since < ?RELEASE of
        true -> Seen;
        false ->
            %% Asking the process itself would wait for it.
            IsLeaving = Since =/= none andalso Now - Since < ?LONG_PATIENCE
                andalso lists:member(Ended, erlang:processes()),
            case largest(Ended) of
                {Size, Id, Keeper, Pid} when not IsLeaving; Size > Limit div 4 ->
                    exceed(Keeper, Id, node_limit(Limit)),
                    Seen#seen{over = Now, ended = Pid};
                _ when IsLeaving -> Seen;
                none when Since =:= none ->
                    collect_largest(),
                    Seen#seen{over = Now};
                none when Now - Since < ?PATIENCE -> Seen;
                none -> give_up(memory)
            end
    end.

%% Of the evaluations that were not ended yet.
largest(Ended) ->
    case [{memory_of(Pid), Id, Keeper, Pid} || {Id, Keeper, Pid, _} <- ets:tab2list(?RUNNING), Pid =/= Ended] of
        [] -> none;
        Rows -> lists:max(Rows)
    end.

%% A process that does not answer is in the middle of a long step, as collecting the garbage of a large heap is one: it
%% counts as larger than any that can say its size (in the order of terms, an atom comes after all numbers).
memory_of(Pid) ->
    case beamtalk_limited:run(fun() -> size_of(Pid) end, ?MEGABYTE, 500) of
        {ok, Size} -> Size;
        _ -> unknown
    end.

collect_largest() ->
    Sizes = [{Memory, Pid} || Pid <- processes(), {memory, Memory} <- [process_info(Pid, memory)]],
    [erlang:garbage_collect(Pid, [{async, Pid}])
     || {_, Pid} <- lists:sublist(lists:reverse(lists:sort(Sizes)), 20), Pid =/= self()],
    ok.

%% The node ends. Its exit code tells the daemon why: a message might not get out any more.
-spec give_up(memory | priority) -> no_return().
give_up(memory) -> halt(71, [{flush, false}]);
give_up(priority) -> halt(72, [{flush, false}]).
