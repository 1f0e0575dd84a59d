%% How the node did in the last quarter of an hour: a sample every five seconds, every second while somebody looks.
-module(beamtalk_vitals).
-behaviour(gen_server).

-export([start_link/0, since/1, fields/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(KEPT, 900000).
-define(SLOW, 5000).
-define(FAST, 1000).
%% Somebody looks for so long after having asked.
-define(ATTENTION, 3000).

-record(state, {samples = [] :: [{integer(), [number()]}],
                asked = none :: none | integer(),
                before :: {integer(), map()},
                timer :: reference()}).

-spec start_link() -> {ok, pid()} | {error, term()}.
start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% What the numbers of a sample are.
-spec fields() -> [binary()].
fields() ->
    [<<"at">>, <<"total">>, <<"processes_memory">>, <<"system">>, <<"atom">>, <<"binary">>, <<"code">>, <<"ets">>,
     <<"processes">>, <<"run_queue">>, <<"schedulers">>, <<"reductions">>, <<"input">>, <<"output">>].

%% Samples after a time in milliseconds since 1970, the oldest first.
-spec since(integer()) -> [[number()]].
since(Time) ->
    %% Only a workspace looks at itself.
    case whereis(?MODULE) of
        undefined -> [];
        Pid -> gen_server:call(Pid, {since, Time})
    end.

-spec init([]) -> {ok, #state{}}.
init([]) ->
    process_flag(priority, high),
    _ = erlang:system_flag(scheduler_wall_time, true),
    Counted = counted(),
    {ok, #state{before = {now_ms(), Counted}, timer = erlang:send_after(?FAST, self(), sample)}}.

-spec handle_call(term(), gen_server:from(), #state{}) -> {reply, term(), #state{}}.
handle_call({since, Time}, _, #state{samples = Samples, asked = Asked} = State) ->
    Found = lists:takewhile(fun({At, _}) -> At > Time end, Samples),
    %% The next one comes soon, now that somebody looks.
    Next = case is_watched(Asked) of
        true -> State;
        false ->
            _ = erlang:cancel_timer(State#state.timer),
            State#state{timer = erlang:send_after(?FAST, self(), sample)}
    end,
    {reply, [[At | Numbers] || {At, Numbers} <- lists:reverse(Found)], Next#state{asked = now_ms()}};
handle_call(_, _, State) -> {reply, ok, State}.

-spec handle_cast(term(), #state{}) -> {noreply, #state{}}.
handle_cast(_, State) -> {noreply, State}.

-spec handle_info(term(), #state{}) -> {noreply, #state{}}.
handle_info(sample, #state{samples = Samples, before = {Last, Before}} = State) ->
    Monotonic = now_ms(),
    At = erlang:system_time(millisecond),
    Counted = counted(),
    Numbers = numbers(Before, Counted, max(1, Monotonic - Last)),
    %% A clock that was set back begins anew: samples stay in the order of their times.
    Kept = lists:takewhile(fun({Old, _}) -> Old > At - ?KEPT end, [Sample || {Old, _} = Sample <- Samples, Old < At]),
    Wait = case is_watched(State#state.asked) of
        true -> ?FAST;
        false -> ?SLOW
    end,
    {noreply, State#state{samples = [{At, Numbers} | Kept], before = {Monotonic, Counted},
                          timer = erlang:send_after(Wait, self(), sample)}};
handle_info(_, State) -> {noreply, State}.

is_watched(none) -> false;
is_watched(Asked) -> now_ms() - Asked < ?ATTENTION.

now_ms() -> erlang:monotonic_time(millisecond).

%% What only grows.
counted() ->
    {{input, In}, {output, Out}} = erlang:statistics(io),
    {Reductions, _} = erlang:statistics(reductions),
    Online = erlang:system_info(schedulers_online),
    Walls = case erlang:statistics(scheduler_wall_time) of
        undefined -> [];
        All -> [{Active, Total} || {Id, Active, Total} <- All, Id =< Online]
    end,
    #{input => In, output => Out, reductions => Reductions, active => lists:sum([A || {A, _} <- Walls]),
      wall => lists:sum([T || {_, T} <- Walls])}.

numbers(Before, Now, Ms) ->
    Grown = fun(Key) -> max(0, map_get(Key, Now) - map_get(Key, Before)) end,
    Rate = fun(Key) -> Grown(Key) * 1000 div Ms end,
    Busy = case Grown(wall) of
        0 -> 0;
        Wall -> round(Grown(active) * 1000 / Wall) / 10
    end,
    Memory = maps:from_list(erlang:memory([total, processes, system, atom, binary, code, ets])),
    [map_get(Key, Memory) || Key <- [total, processes, system, atom, binary, code, ets]]
        ++ [erlang:system_info(process_count), erlang:statistics(run_queue), Busy, Rate(reductions), Rate(input), Rate(output)].
