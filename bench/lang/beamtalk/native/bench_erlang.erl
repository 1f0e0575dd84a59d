%% The rows in plain Erlang: what is made beforehand, and what is measured.
-module(bench_erlang).
-behaviour(gen_server).
-export([prepare/1, run/2, init/1, handle_call/3, handle_cast/2]).

prepare(Row) when Row =:= collect; Row =:= select; Row =:= inject; Row =:= chain -> lists:seq(1, 1000000);
prepare(sends) -> {{bench_square, #{side => 3}}, {bench_disc, #{radius => 3}}, {bench_strip, #{length => 3}}};
prepare(actor_send) ->
    {ok, Echo} = gen_server:start_link(?MODULE, echo, []),
    Echo;
prepare(sort_block) -> [I * 7919 rem 1000003 || I <- lists:seq(1, 200000)];
prepare(json) ->
    [#{<<"id">> => I, <<"name">> => iolist_to_binary([<<"item ">>, integer_to_binary(I)]),
       <<"tags">> => [<<"a">>, <<"b">>, <<"c">>], <<"price">> => I / 7, <<"note">> => nil}
     || I <- lists:seq(1, 9000)];
prepare(file_lines) ->
    {ok, Directory} = file:get_cwd(),
    filename:join(Directory, "_build/lines.txt");
prepare(_) -> none.

run(fib_class, _) -> fib(27);
run(fib_value, _) -> fib(27);
run(while_loop, _) -> count(0, 0, 10000000);
run(collect, Items) -> lists:map(fun(X) -> X + 1 end, Items);
run(select, Items) -> lists:filter(fun(X) -> X rem 2 == 0 end, Items);
run(inject, Items) -> lists:foldl(fun(X, Sum) -> Sum + X end, 0, Items);
run(chain, Items) -> chain(Items, 0);
run(sends, {A, B, C}) -> sends(5000000, A, B, C, 0);
run(actor_send, Echo) -> ask(Echo, 100000);
run(actor_spawn, _) -> spawn_many(50000);
run(many_actors, _) ->
    Pids = spawn_many(1000000),
    lists:foreach(fun(Pid) -> gen_server:call(Pid, get) end, Pids),
    Pids;
run(dictionary, _) -> add(1, 200000, fill(1, 200000, #{}), 0);
run(concatenation, _) ->
    Text = grow(1, 100000, []),
    pieces(1, 100000),
    byte_size(iolist_to_binary(Text));
run(sort_block, Numbers) -> length(lists:sort(fun(A, B) -> A =< B end, Numbers));
%% OTP 25 has no JSON library: the codec of the runtime, called directly.
run(json, Document) ->
    {ok, Value} = beamtalk_json:decode(beamtalk_json:'class generate:'(nil, Document)),
    length(Value);
run(file_lines, Path) -> lines(Path);
run(subprocess, _) -> run_true(200).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

count(I, Sum, N) when I < N ->
    Next = I + 1,
    count(Next, Sum + Next, N);
count(_, Sum, _) -> Sum.

chain([X | Items], Sum) when X rem 2 == 0 -> chain(Items, Sum + X * 3);
chain([_ | Items], Sum) -> chain(Items, Sum);
chain([], Sum) -> Sum.

sends(0, _, _, _, Sum) -> Sum;
sends(N, {Mod, X} = A, B, C, Sum) -> sends(N - 1, B, C, A, Sum + Mod:area(X)).

ask(_, 0) -> ok;
ask(Echo, N) ->
    gen_server:call(Echo, {echo, N}),
    ask(Echo, N - 1).

spawn_many(N) ->
    [begin {ok, Pid} = gen_server:start_link(?MODULE, {0, 0}, []), Pid end || _ <- lists:seq(1, N)].

fill(I, N, Table) when I =< N -> fill(I + 1, N, maps:put(I, I, Table));
fill(_, _, Table) -> Table.

add(I, N, Table, Sum) when I =< N -> add(I + 1, N, Table, Sum + maps:get(I, Table));
add(_, _, _, Sum) -> Sum.

%% Text grows as an iolist that is flattened once at the end.
grow(I, N, Text) when I =< N -> grow(I + 1, N, [Text, <<"piece">>]);
grow(_, _, Text) -> Text.

pieces(I, N) when I =< N ->
    iolist_to_binary([<<"piece ">>, integer_to_binary(I), <<" of ">>, integer_to_binary(N)]),
    pieces(I + 1, N);
pieces(_, _) -> ok.

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
handle_call({echo, X}, _From, State) -> {reply, X, State};
handle_call(get, _From, {Left, _} = State) -> {reply, Left, State}.
handle_cast(_, State) -> {noreply, State}.
