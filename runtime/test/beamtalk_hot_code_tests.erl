-module(beamtalk_hot_code_tests).
-include("assertions.hrl").

%% Every block and loop runs compiled from its first call.
run(Text) ->
    {value, Value} = beamtalk_walk_tests:hot(1, Text),
    Value.

%% A text whose value was made by compiled code: that of a block that is called.
compiled(Text) -> run("(fun() -> " ++ Text ++ " end)().").

names() -> [Module || {Module, _} <- code:all_loaded(), lists:prefix("bt@eval@", atom_to_list(Module))].

module_of(Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    Module.

blocks_are_compiled_test() ->
    ?assertEqual(beamtalk_walk, module_of(run("fun(X) -> X end."))),
    ?assertMatch("bt@eval@" ++ _, atom_to_list(module_of(compiled("fun(X) -> X end")))).

the_same_statement_finds_its_code_test() ->
    Text = "lists:map(fun(X) -> X + 1 end, [1, 2, 3]).",
    ok = beamtalk_hot_code:prepare(),
    ?assertEqual([2, 3, 4], run(Text)),
    Before = erlang:memory(code),
    [?assertEqual([2, 3, 4], run(Text)) || _ <- lists:seq(1, 50)],
    ?assertEqual(Before, erlang:memory(code)).

%% The statement and what it is compiled to differ for every number.
numbered(N) -> "lists:sum(lists:map(fun(X) -> X + " ++ integer_to_list(N) ++ " end, [1, 2, 3])).".

%% Most of them find their code; a thousand are compiled, each over code that was there before.
hundred_thousand_evaluations_leave_nothing_test_() ->
    {timeout, 600, fun() ->
        Evaluate = fun(Numbers, Times) ->
            [begin
                 Forms = beamtalk_walk_tests:forms(numbered(N)),
                 [?assertEqual({value, 6 + 3 * N}, beamtalk_eval:value(Forms)) || _ <- lists:seq(1, Times)]
             end || N <- Numbers],
            erlang:garbage_collect(),
            [code:soft_purge(Module) || Module <- names()],
            {erlang:system_info(atom_count), length(names()), erlang:memory(code)}
        end,
        ok = beamtalk_hot_code:prepare(),
        ok = beamtalk_walk:set_threshold({1, wait}),
        {Atoms, Names, Code} = Evaluate(lists:seq(1, 100), 1),
        {AtomsAfter, NamesAfter, CodeAfter} = Evaluate(lists:seq(1001, 2000), 100),
        beamtalk_walk:set_threshold(default),
        ?assertEqual(Atoms, AtomsAfter),
        ?assertEqual(32, Names),
        ?assertEqual(Names, NamesAfter),
        ?assert(abs(CodeAfter - Code) < Code div 100)
    end}.

%% Blocks that compiled code made, in a variable, a table and another process, outlive two hundred other statements.
living_blocks_keep_their_code_test_() ->
    {timeout, 120, fun() ->
        Made = [{N, compiled("fun(X) -> X + " ++ integer_to_list(N) ++ " end")} || N <- lists:seq(1, 8)],
        Bare = compiled("fun() -> bare end"),
        Table = ets:new(kept, []),
        ets:insert(Table, {block, compiled("Y = self(), fun() -> {kept, Y} end")}),
        Holder = compiled("F = fun(X) -> {held, X} end, spawn(fun() -> receive {go, P} -> P ! F(1) end end)"),
        Walked = run("fun(X) -> X * 2 end."),
        [run(numbered(N)) || N <- lists:seq(5000, 5200)],
        erlang:garbage_collect(),
        [?assertEqual(N + 1, Block(1)) || {N, Block} <- Made],
        ?assertEqual(bare, Bare()),
        [{_, Kept}] = ets:lookup(Table, block),
        ?assertEqual({kept, self()}, Kept()),
        Holder ! {go, self()},
        ?assertEqual({held, 1}, receive {held, _} = Held -> Held after 10000 -> lost end),
        ?assertEqual(8, Walked(4))
    end}.

%% A loop that compiled code runs for long is not taken away below it.
running_code_stays_test_() ->
    {timeout, 120, fun() ->
        Pid = compiled("spawn(fun() -> (fun Loop() -> receive {add, P, X} -> P ! {sum, X + 1}, Loop(); stop -> ok end end)() end)"),
        [run(numbered(N)) || N <- lists:seq(6000, 6200)],
        Pid ! {add, self(), 41},
        ?assertEqual(42, receive {sum, Sum} -> Sum after 10000 -> lost end),
        Pid ! stop
    end}.

%% With every name held by a living block of its old and of its new code, statements are walked, and compiled again when
%% blocks have gone.
without_room_statements_are_walked_test_() ->
    {timeout, 120, fun() ->
        Made = [compiled("fun() -> " ++ integer_to_list(N) ++ " end") || N <- lists:seq(1, 100)],
        Modules = [module_of(Block) || Block <- Made],
        ?assert(lists:member(beamtalk_walk, Modules)),
        ?assertEqual(lists:seq(1, 100), [Block() || Block <- Made]),
        ?assertEqual(6 + 3 * 7000, run(numbered(7000))),
        ?assert(length(names()) =< 32)
    end}.

room_comes_back_test_() ->
    {timeout, 120, fun() ->
        erlang:garbage_collect(),
        ?assertMatch("bt@eval@" ++ _, atom_to_list(module_of(compiled("fun() -> again end"))))
    end}.

%% What is hot when its code has gone asks for code again.
stale_code_is_asked_for_again_test_() ->
    {timeout, 120, fun() ->
        Block = run("fun(F) -> F(fun() -> made end) end."),
        Module = fun() -> Block(fun module_of/1) end,
        ok = beamtalk_walk:set_threshold({1, wait}),
        ?assertMatch("bt@eval@" ++ _, atom_to_list(Module())),
        [run(numbered(N)) || N <- lists:seq(8000, 8100)],
        ok = beamtalk_walk:set_threshold({1, wait}),
        Walked = Module(),
        ?assertMatch("bt@eval@" ++ _, atom_to_list(Module())),
        ?assertEqual(beamtalk_walk, Walked),
        beamtalk_walk:set_threshold(default)
    end}.

%% A server that starts anew does not load over code whose blocks it cannot count.
another_server_test_() ->
    {timeout, 120, fun() ->
        Made = [{N, compiled("fun(X) -> {server, X, " ++ integer_to_list(N) ++ "} end")} || N <- lists:seq(1, 10)],
        Former = whereis(beamtalk_hot_code),
        Monitor = monitor(process, Former),
        exit(Former, kill),
        receive {'DOWN', Monitor, process, _, _} -> ok end,
        [run(numbered(N)) || N <- lists:seq(9000, 9200)],
        [?assertEqual({server, 1, N}, Block(1)) || {N, Block} <- Made]
    end}.

statements_the_compiler_refuses_are_walked_test() ->
    Many = lists:append(lists:duplicate(150, "fun() -> 1 end, ")),
    ?assertEqual(last, run("(fun() -> {" ++ Many ++ "2}, last end)().")),
    Variables = lists:append(lists:join(", ", ["V" ++ integer_to_list(N) || N <- lists:seq(1, 240)])),
    Numbers = lists:append(lists:join(", ", [integer_to_list(N) || N <- lists:seq(1, 240)])),
    Wide = "{" ++ Variables ++ "} = {" ++ Numbers ++ "}, (fun() -> lists:sum([" ++ Variables ++ "]) end)().",
    ?assertEqual(28920, run(Wide)).

a_failing_block_can_be_called_again_test() ->
    Text = "(fun(N) -> 1 / N end)(0).",
    [?assertMatch({raised, #{error := {beamtalk_error, type_error, _, _, _, _, _}}}, beamtalk_walk_tests:hot(1, Text))
     || _ <- [1, 2]].

methods_run_compiled_test() ->
    Forms = fun(N) ->
        [{attribute, 1, module, sample}, {attribute, 1, export, [{method, 1}]}
         | [{function, 1, method, 1, [{clause, 1, [{var, 1, 'Self'}], [],
                                       [{op, 1, '+', {var, 1, 'Self'}, {integer, 1, N}}]}]}]]
    end,
    [?assertEqual(N + 1, beamtalk_hot_code:run_method(Forms(N), 1)) || N <- lists:seq(1, 60)].
