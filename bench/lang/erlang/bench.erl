%% The same programs in plain Erlang. Prints `name median-in-nanoseconds'.
-module(bench).
-behaviour(gen_server).
-export([main/0, init/1, handle_call/3, handle_cast/2]).

%% In a process of its own: the one that starts the node traps exits, which makes starting linked processes slow.
main() ->
    {_, Monitor} = spawn_monitor(fun run/0),
    receive {'DOWN', Monitor, process, _, normal} -> halt(0) end.

run() ->
    measure("fib_class", fun() -> fib(27) end),
    measure("fib_value", fun() -> fib(27) end),
    measure("while_loop", fun() -> count(0, 0, 10000000) end),
    Items = lists:seq(1, 1000000),
    measure("collect", fun() -> length(lists:map(fun(X) -> X + 1 end, Items)) end),
    measure("select", fun() -> length(lists:filter(fun(X) -> X rem 2 == 0 end, Items)) end),
    measure("inject", fun() -> lists:foldl(fun(X, Sum) -> Sum + X end, 0, Items) end),
    Shapes = {{bench_square, #{side => 3}}, {bench_disc, #{radius => 3}}, {bench_strip, #{length => 3}}},
    measure("sends", fun() -> sends(5000000, element(1, Shapes), element(2, Shapes), element(3, Shapes), 0) end),
    {ok, Echo} = gen_server:start_link(?MODULE, echo, []),
    measure("actor_send", fun() -> ask(Echo, 200000) end),
    measure("actor_spawn", fun() -> spawn_many(50000) end, fun(Pids) -> [gen_server:stop(Pid) || Pid <- Pids] end),
    measure("dictionary", fun() -> dictionary(200000) end),
    measure("concatenation", fun() -> concatenate(100000) end),
    Numbers = [I * 7919 rem 1000003 || I <- lists:seq(1, 200000)],
    measure("sort_block", fun() -> length(lists:sort(fun(A, B) -> A =< B end, Numbers)) end),
    Document = [#{<<"id">> => I, <<"name">> => iolist_to_binary([<<"item ">>, integer_to_binary(I)]),
                  <<"tags">> => [<<"a">>, <<"b">>, <<"c">>], <<"price">> => I / 7, <<"note">> => nil}
                || I <- lists:seq(1, 9000)],
    measure("json", fun() -> json(Document) end),
    Path = filename:join("/tmp", "erlang-bench-lines.txt"),
    Block = binary:copy(<<"a line of text that is neither long nor short, as they are\n">>, 1000),
    ok = file:write_file(Path, binary:copy(Block, 1700)),
    measure("file_lines", fun() -> lines(Path) end),
    ok = file:delete(Path),
    measure("subprocess", fun() -> run_true(200) end).

measure(Name, Fun) -> measure(Name, Fun, fun(_) -> ok end).

measure(Name, Fun, CleanUp) ->
    Times = [time_of(Fun, CleanUp) || _ <- lists:seq(1, 5)],
    io:format("~s ~p~n", [Name, lists:nth(3, lists:sort(Times))]).

time_of(Fun, CleanUp) ->
    Started = erlang:monotonic_time(nanosecond),
    Result = Fun(),
    Elapsed = erlang:monotonic_time(nanosecond) - Started,
    CleanUp(Result),
    Elapsed.

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

count(I, Sum, N) when I < N ->
    Next = I + 1,
    count(Next, Sum + Next, N);
count(_, Sum, _) -> Sum.

sends(0, _, _, _, Sum) -> Sum;
sends(N, {Mod, X} = A, B, C, Sum) -> sends(N - 1, B, C, A, Sum + Mod:area(X)).

ask(_, 0) -> ok;
ask(Echo, N) ->
    gen_server:call(Echo, {echo, N}),
    ask(Echo, N - 1).

spawn_many(N) ->
    [begin {ok, Pid} = gen_server:start_link(?MODULE, {0, 0}, []), Pid end || _ <- lists:seq(1, N)].

dictionary(N) ->
    Table = fill(1, N, #{}),
    add(1, N, Table, 0).

fill(I, N, Table) when I =< N -> fill(I + 1, N, maps:put(I, I, Table));
fill(_, _, Table) -> Table.

add(I, N, Table, Sum) when I =< N -> add(I + 1, N, Table, Sum + maps:get(I, Table));
add(_, _, _, Sum) -> Sum.

%% Text grows as an iolist that is flattened once at the end.
concatenate(N) ->
    Text = grow(1, N, []),
    pieces(1, N),
    byte_size(iolist_to_binary(Text)).

grow(I, N, Text) when I =< N -> grow(I + 1, N, [Text, <<"piece">>]);
grow(_, _, Text) -> Text.

pieces(I, N) when I =< N ->
    iolist_to_binary([<<"piece ">>, integer_to_binary(I), <<" of ">>, integer_to_binary(N)]),
    pieces(I + 1, N);
pieces(_, _) -> ok.

%% OTP 25 has no JSON library: the codec of the runtime, called directly.
json(Document) ->
    Text = beamtalk_json:'class generate:'(nil, Document),
    {ok, Value} = beamtalk_json:decode(Text),
    length(Value).

lines(Path) ->
    {ok, File} = file:open(Path, [raw, binary, read, {read_ahead, 65536}]),
    Count = lines(File, 0),
    ok = file:close(File),
    Count.

lines(File, Count) ->
    case file:read_line(File) of
        {ok, _} -> lines(File, Count + 1);
        eof -> Count
    end.

run_true(0) -> ok;
run_true(N) ->
    Port = open_port({spawn_executable, os:find_executable("true")}, [exit_status, binary]),
    receive {Port, {exit_status, 0}} -> ok end,
    run_true(N - 1).

init(State) -> {ok, State}.
handle_call({echo, X}, _From, State) -> {reply, X, State}.
handle_cast(_, State) -> {noreply, State}.
