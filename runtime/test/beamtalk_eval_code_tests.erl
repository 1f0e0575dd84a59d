-module(beamtalk_eval_code_tests).
-include("assertions.hrl").

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Forms} = erl_parse:parse_exprs(Tokens),
    Forms.

run(Text) -> beamtalk_eval_code:run(forms(Text)).

names() -> lists:sort([Module || {Module, _} <- code:all_loaded(), lists:prefix("bt@eval@", atom_to_list(Module))]).

the_same_expression_finds_its_module_test() ->
    Text = "F = fun Loop(0) -> done; Loop(N) -> Loop(N - 1) end, F(10).",
    ?assertEqual(done, run(Text)),
    Before = names(),
    ?assertEqual(done, run(Text)),
    ?assertEqual(Before, names()).

names_are_used_again_test_() ->
    {timeout, 60, fun() ->
        Numbered = fun(N) -> "(fun Loop(0) -> 0; Loop(N) -> Loop(N - 1) end)(" ++ integer_to_list(N) ++ ")." end,
        [run(Numbered(N)) || N <- lists:seq(1, 60)],
        erlang:garbage_collect(),
        Count = length(names()),
        [run(Numbered(N)) || N <- lists:seq(100, 200)],
        ?assert(length(names()) =< Count + 2)
    end}.

living_blocks_keep_their_code_test_() ->
    {timeout, 60, fun() ->
        Made = [{N, run("fun(X) -> X + " ++ integer_to_list(N) ++ " end.")} || N <- lists:seq(1, 40)],
        Bare = [run("fun() -> " ++ integer_to_list(N) ++ " end.") || N <- lists:seq(1, 40)],
        Table = ets:new(kept, []),
        ets:insert(Table, {block, run("Y = self(), fun() -> {kept, Y} end.")}),
        [run("lists:seq(1, " ++ integer_to_list(N) ++ ").") || N <- lists:seq(1, 100)],
        [?assertEqual(N + 1, Block(1)) || {N, Block} <- Made],
        ?assertEqual(lists:seq(1, 40), [Block() || Block <- Bare]),
        [{_, Kept}] = ets:lookup(Table, block),
        ?assertEqual({kept, self()}, Kept())
    end}.

running_code_stays_test() ->
    Self = self(),
    Text = "spawn(fun() -> receive {go, P} -> ok end, P ! {went, self()} end).",
    Pid = run(Text),
    erlang:garbage_collect(),
    [run("lists:seq(2, " ++ integer_to_list(N) ++ ").") || N <- lists:seq(1, 100)],
    Pid ! {go, Self},
    ?assertEqual(ok, receive {went, Pid} -> ok after 1000 -> lost end).

a_failing_expression_releases_its_module_test() ->
    ?assertError(badarith, run("(fun Loop(N) -> 1 / N end)(0).")),
    ?assertError(badarith, run("(fun Loop(N) -> 1 / N end)(0).")).
