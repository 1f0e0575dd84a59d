%% Takes the samples: every contender in this one node, each sample in a fresh process with the same heap settings, the
%% contenders in turn and the turn drawn anew for each round, so that what else the machine does, and what the one before has
%% left behind, meets all of them alike.
-module(bench_samples).
-export([take/1]).

%% The blocks of Beamtalk by row: `{Prepare, Run}'. What to take comes by the environment:
%% BENCH_ROWS (names), BENCH_SAMPLES, BENCH_PATHS (of contenders' code, absent ones are left out).
take(Blocks) ->
    [code:add_pathz(Path) || Path <- words("BENCH_PATHS", ":")],
    Samples = list_to_integer(os:getenv("BENCH_SAMPLES", "15")),
    Rows = [list_to_existing_atom(Row) || Row <- words("BENCH_ROWS", " ")],
    [take(Row, Samples, alike(contenders(Row, Blocks))) || Row <- Rows],
    nil.

words(Name, Separators) -> string:lexemes(os:getenv(Name, ""), Separators).

%% Erlang stands twice: what its two columns differ by is what this run cannot tell apart.
contenders(Row, Blocks) ->
    [{"Erlang", module(bench_erlang, Row)},
     {"Beamtalk", maps:get(Row, Blocks)},
     {"Erlang again", module(bench_erlang, Row)}]
    ++ [{"Elixir", module('Elixir.Bench', Row)} || has('Elixir.Bench', Row)].

has(Module, Row) ->
    code:ensure_loaded(Module) =:= {module, Module} andalso lists:member(Row, Module:rows()).

module(Module, Row) ->
    {fun() -> Module:prepare(Row) end, fun(Input) -> Module:run(Row, Input) end}.

%% An input that is the same term as Erlang's is made by Erlang's program for all: what making it leaves in the allocators decides
%% how much memory the work gets that was never touched, and touching it takes the system longer than the work.
alike([{_, {Make, _}} = Erlang | Others]) ->
    [Erlang | [{Name, {case is_same(Make, Prepare) of true -> Make; false -> Prepare end, Run}}
               || {Name, {Prepare, Run}} <- Others]].

is_same(Make, Prepare) ->
    {_, Monitor} = spawn_monitor(fun() -> exit({is_same, Make() =:= Prepare()}) end),
    receive {'DOWN', Monitor, process, _, {is_same, Is}} -> Is end.

take(Row, Samples, Contenders) ->
    %% Code is loaded and tables have their size before the first sample that counts.
    [sample(Contender) || {_, Contender} <- Contenders],
    rand:seed(exsss, Samples),
    [round_of(Row, Contenders) || _ <- lists:seq(1, Samples)].

round_of(Row, Contenders) ->
    [begin
         {Time, Used, Reductions, Memory} = sample(Contender),
         io:format("~s\t~s\t~b\t~b\t~b\t~b~n", [Row, Name, Time, Used, Reductions, Memory])
     end || {_, {Name, Contender}} <- lists:sort([{rand:uniform(), Contender} || Contender <- Contenders])].

%% Nanoseconds, milliseconds of all cores together, reductions of the process, and bytes that the node has more at the
%% end. The cores' time says what the work costs even where others use the machine.
sample({Prepare, Run}) ->
    Processes = erlang:system_info(process_count),
    {_, Monitor} = spawn_opt(fun() -> prepared(Prepare(), Run) end, [monitor]),
    receive
        {'DOWN', Monitor, process, _, {sample, Sample}} ->
            %% What the sample started is linked to it and goes with it.
            wait_for(Processes),
            Sample;
        {'DOWN', Monitor, process, _, Reason} -> error({no_sample, Reason})
    end.

%% The work is done by a process that has nothing but its input: the heap of whoever made that has the size that making it
%% took, and the larger it is the fewer collections the work needs.
-spec prepared(term(), fun((term()) -> term())) -> no_return().
prepared(Input, Run) ->
    {_, Monitor} = spawn_opt(fun() -> measure(Input, Run) end, [monitor]),
    receive {'DOWN', Monitor, process, _, Reason} -> exit(Reason) end.

-spec measure(term(), fun((term()) -> term())) -> no_return().
measure(Input, Run) ->
    garbage_collect(),
    Memory = erlang:memory(total),
    {reductions, Before} = process_info(self(), reductions),
    {Busy, _} = statistics(runtime),
    Started = erlang:monotonic_time(nanosecond),
    _Kept = Run(Input),
    Elapsed = erlang:monotonic_time(nanosecond) - Started,
    {BusyAfter, _} = statistics(runtime),
    {reductions, After} = process_info(self(), reductions),
    Grown = max(0, erlang:memory(total) - Memory),
    exit({sample, {Elapsed, BusyAfter - Busy, After - Before, Grown}}).

wait_for(Processes) ->
    case erlang:system_info(process_count) > Processes of
        true ->
            receive after 1 -> wait_for(Processes) end;
        false -> ok
    end.
