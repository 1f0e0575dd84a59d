%% Work that may take too much: a process of its own with limits on heap and time.
-module(beamtalk_limited).

-export([run/1, run/2, run/3, set_time/1]).

%% Limits of turning forms into code.
-define(WORDS, 67108864).
-define(MILLISECONDS, 30000).

-type outcome(Result) :: {ok, Result} | {limit, memory | time} | {crashed, term()}.

-spec run(fun(() -> Result)) -> outcome(Result).
run(Work) -> run(Work, 0).

%% With room for so many words from the start: work that makes much garbage need not move it around.
-spec run(fun(() -> Result), non_neg_integer()) -> outcome(Result).
run(Work, Room) -> run(Work, Room, ?WORDS, persistent_term:get(?MODULE, ?MILLISECONDS)).

-spec run(fun(() -> Result), pos_integer(), pos_integer()) -> outcome(Result).
run(Work, Words, Milliseconds) -> run(Work, 0, Words, Milliseconds).

%% How long turning forms into code may take from now on.
-spec set_time(pos_integer()) -> ok.
set_time(Milliseconds) -> persistent_term:put(?MODULE, Milliseconds).

%% Work ends with whoever waits for it.
run(Work, Room, Words, Milliseconds) ->
    Limit = #{size => Words, kill => true, error_logger => false},
    Caller = self(),
    {Pid, Monitor} = spawn_opt(fun() ->
                                   leash(Caller, self()),
                                   exit({finished, Work()})
                               end, [monitor, {min_heap_size, Room}, {max_heap_size, Limit}]),
    Alarm = erlang:start_timer(Milliseconds, self(), Pid),
    Outcome = receive
        {'DOWN', Monitor, process, Pid, {finished, Result}} -> {ok, Result};
        {'DOWN', Monitor, process, Pid, killed} -> {limit, memory};
        {'DOWN', Monitor, process, Pid, Reason} -> {crashed, Reason};
        {timeout, Alarm, Pid} ->
            demonitor(Monitor, [flush]),
            exit(Pid, kill),
            {limit, time}
    end,
    erlang:cancel_timer(Alarm),
    receive {timeout, Alarm, _} -> ok after 0 -> ok end,
    Outcome.

leash(Caller, Worker) ->
    spawn(fun() ->
        Waiting = monitor(process, Caller),
        Working = monitor(process, Worker),
        receive
            {'DOWN', Waiting, process, _, _} -> exit(Worker, kill);
            {'DOWN', Working, process, _, _} -> ok
        end
    end).
