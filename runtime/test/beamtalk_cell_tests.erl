-module(beamtalk_cell_tests).
-include("assertions.hrl").

%% counter block: [:n | total := total + n]
adder(Cell) ->
    beamtalk_cell:block(fun(Env) -> fun(N) -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + N) end end, {Cell}).

reader(Cell) ->
    beamtalk_cell:block(fun(Env) -> fun() -> beamtalk_cell:read(Env, 1) end end, {Cell}).

%% Run each test in a process of its own, so cells of one do not meet another.
isolated(Test) ->
    fun() ->
        {Pid, Monitor} = spawn_monitor(Test),
        receive {'DOWN', Monitor, process, Pid, Reason} -> ?assertEqual(normal, Reason) end
    end.

cells_test_() ->
    beamtalk_support:start(),
    [{Name, isolated(Test)} || {Name, Test} <-
        [{"blocks share a variable during the message", fun sharing/0},
         {"a copy has the values of the moment", fun copy/0},
         {"copies of two blocks no longer share", fun no_sharing/0},
         {"a block that reaches itself", fun recursive/0},
         {"a plain fun that holds a block", fun plain/0},
         {"a nested block inside a block's body", fun nested/0},
         {"blocks inside data", fun inside_data/0},
         {"end of message fixes values and discards later ones", fun end_of_message/0},
         {"session variables are live here and copied elsewhere", fun session/0},
         {"interpreted blocks", fun interpreted/0},
         {"without live cells a term passes untouched", fun untouched/0},
         {"another process", fun crossing/0}]].

sharing() ->
    Total = beamtalk_cell:new(0),
    Add = adder(Total),
    lists:foreach(Add, [1, 2, 3]),
    10 = beamtalk_cell:write(Total, 10),
    12 = Add(2),
    12 = beamtalk_cell:read(Total).

copy() ->
    Total = beamtalk_cell:new(5),
    Add = adder(Total),
    Copy = beamtalk_cell:freeze(Add),
    6 = Add(1),
    7 = Copy(2),
    8 = Copy(1),
    6 = beamtalk_cell:read(Total).

no_sharing() ->
    Total = beamtalk_cell:new(1),
    #{a := Add, b := Read} = beamtalk_cell:freeze(#{a => adder(Total), b => reader(Total)}),
    11 = Add(10),
    1 = Read().

recursive() ->
    Fact = beamtalk_cell:new(nil),
    Block = beamtalk_cell:block(fun(Env) -> fun(0) -> 1; (N) -> N * (beamtalk_cell:read(Env, 1))(N - 1) end end, {Fact}),
    beamtalk_cell:write(Fact, Block),
    Copy = beamtalk_cell:freeze(Block),
    beamtalk_cell:write(Fact, broken),
    120 = Copy(5),
    720 = Copy(6).

plain() ->
    Total = beamtalk_cell:new(1),
    Add = adder(Total),
    Twice = fun(N) -> Add(N), Add(N) end,
    Copy = beamtalk_cell:freeze(Twice),
    11 = Twice(5),
    21 = Copy(10),
    11 = beamtalk_cell:read(Total).

nested() ->
    %% [:n | [total := total + n]]: the inner block uses the outer environment.
    Total = beamtalk_cell:new(1),
    Outer = beamtalk_cell:block(
        fun(Env) -> fun(N) -> fun() -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + N) end end end, {Total}),
    Inner = Outer(3),
    Copy = beamtalk_cell:freeze(Inner),
    4 = Inner(),
    4 = Copy(),
    7 = Copy(),
    4 = beamtalk_cell:read(Total).

inside_data() ->
    Total = beamtalk_cell:new(1),
    Data = {list, [#{k => [adder(Total)]}], <<"x">>},
    {list, [#{k := [Copy]}], <<"x">>} = beamtalk_cell:freeze(Data),
    3 = Copy(2),
    1 = beamtalk_cell:read(Total).

end_of_message() ->
    N = beamtalk_cell:new(10),
    Hook = adder(N),
    beamtalk_cell:write(N, 20),
    State = beamtalk_cell:end_message(#{hook => nil}, #{hook => Hook}),
    undefined = get('$bt_cells'),
    #{hook := Kept} = State,
    %% Two later messages, each starting from 20.
    [begin
         21 = Kept(1),
         22 = Kept(1),
         State = beamtalk_cell:end_message(State, State),
         State = beamtalk_cell:end_message(#{}, State)
     end || _ <- [1, 2]],
    %% What leaves the process takes the values of the moment.
    23 = Kept(3),
    Copy = beamtalk_cell:freeze(Kept),
    beamtalk_cell:end_message(State, State),
    24 = Copy(1),
    21 = Kept(1).

session() ->
    beamtalk_cell:start_session(test),
    X = beamtalk_cell:session(x),
    E = beamtalk_support:catch_error(fun() -> beamtalk_cell:read(X) end),
    undefined_variable = beamtalk_error:field(E, kind),
    beamtalk_cell:write(X, 1),
    Add = adder(X),
    2 = Add(1),
    Local = beamtalk_cell:new(7),
    beamtalk_cell:set_session(hook, adder(Local)),
    ok = beamtalk_cell:end_evaluation(),
    {ok, 2} = beamtalk_cell:session_value(x),
    {ok, Hook} = beamtalk_cell:session_value(hook),
    8 = Hook(1),
    3 = Add(1),
    Parent = self(),
    Copy = beamtalk_cell:freeze(Add),
    spawn_link(fun() -> Parent ! {answer, Copy(10), get('$bt_session')} end),
    receive {answer, 13, undefined} -> ok end,
    {ok, 3} = beamtalk_cell:session_value(x),
    [hook, x] = beamtalk_cell:session_names().

interpreted() ->
    Total = beamtalk_cell:new(1),
    Text = "beamtalk_cell:block(fun(Env) -> fun(N) -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + N) end end, {C}).",
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    [Form] = Exprs,
    {Add, _} = beamtalk_walk:statement(Form, term_to_binary(Exprs), 1, #{'C' => Total}),
    2 = Add(1),
    Copy = beamtalk_cell:freeze(Add),
    12 = Copy(10),
    2 = beamtalk_cell:read(Total),
    %% A fun that merely holds an interpreted block.
    Holder = fun() -> Add(1) end,
    HolderCopy = beamtalk_cell:freeze(Holder),
    3 = HolderCopy(),
    2 = beamtalk_cell:read(Total).

untouched() ->
    Fun = fun(X) -> X end,
    true = erts_debug:same(Fun, beamtalk_cell:freeze(Fun)).

crossing() ->
    Total = beamtalk_cell:new(100),
    Add = adder(Total),
    Parent = self(),
    Sent = beamtalk_cell:freeze(Add),
    spawn_link(fun() -> Parent ! {answer, Sent(1), Sent(1)} end),
    receive {answer, 101, 102} -> ok end,
    100 = beamtalk_cell:read(Total).

%% An operation that fails leaves the variables a loop held with their latest values.
held_variables_are_written_back_test() ->
    beamtalk_support:start(),
    Count = beamtalk_cell:new(1),
    Total = beamtalk_cell:new(2.5),
    ?assertEqual({1, 2.5}, beamtalk_cell:computed({Count, Total})),
    ?assertEqual(none, beamtalk_cell:computed({Count, beamtalk_cell:session('never assigned')})),
    ?assertEqual(3, beamtalk_cell:operate('+', 1, 2, {Count, Total}, {7, 8})),
    ?assertEqual(1, beamtalk_cell:read(Count)),
    ?assertError(badarith, beamtalk_cell:operate('/', 1, 0, {Count, Total}, {7, 8})),
    ?assertEqual({7, 8}, {beamtalk_cell:read(Count), beamtalk_cell:read(Total)}).
