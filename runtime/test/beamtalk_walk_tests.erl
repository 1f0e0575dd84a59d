-module(beamtalk_walk_tests).
-include("assertions.hrl").
-export([forms/1, hot/2]).

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Forms} = erl_parse:parse_exprs(Tokens),
    term_to_binary(Forms).

%% The value of a text with code made after so many turns, and waited for.
hot(Threshold, Text) ->
    ok = beamtalk_walk:set_threshold({Threshold, wait}),
    try run(Text) after beamtalk_walk:set_threshold(default) end.

walked(Text) ->
    ok = beamtalk_walk:set_threshold(infinity),
    try run(Text) after beamtalk_walk:set_threshold(default) end.

run(Text) ->
    beamtalk_support:start(),
    beamtalk_eval:value(forms(Text)).

%% The same walked and with code from the first, second, … call on.
same(Expected, Text) ->
    ?assertEqual(Expected, walked(Text)),
    [?assertEqual(Expected, hot(Threshold, Text)) || Threshold <- [1, 2, 3, 7, 50, 101]].

loops_go_on_with_their_variables_test() ->
    same({value, 15150},
         "X = 3, (fun Loop(S, I) -> case I =< 100 of true -> Loop(S + I * X, I + 1); false -> S end end)(0, 1).").

nested_loops_test() ->
    same({value, {2500, 50}},
         "(fun Loop1(S, I) -> case I < 50 of"
         "   true -> S2 = (fun Loop2(T, J) -> case J < 50 of true -> Loop2(T + 1, J + 1); false -> T end end)(S, 0),"
         "           Loop1(S2, I + 1);"
         "   false -> {S, I} end end)(0, 0).").

blocks_over_blocks_test() ->
    same({value, [[11, 21], [12, 22], [13, 23]]},
         "Y = 1, lists:map(fun(A) -> lists:map(fun(B) -> A + B - Y + 1 end, [10, 20]) end, [1, 2, 3]).").

values_of_loops_that_make_blocks_test() ->
    same({value, [5, 4, 3, 2, 1]},
         "[F() || F <- (fun Loop(L, I) -> case I =< 5 of true -> Loop([fun() -> I end | L], I + 1); false -> L end end)([], 1)].").

recursion_through_a_cell_test() ->
    same({value, 610},
         "C = beamtalk_cell:new(nil),"
         "beamtalk_cell:write(C, beamtalk_cell:block(fun(Env) -> fun(N) -> case N < 2 of true -> N;"
         "  false -> F = beamtalk_cell:read(Env, 1), F(N - 1) + F(N - 2) end end end, {C})),"
         "(beamtalk_cell:read(C))(15).").

clauses_and_guards_test() ->
    same({value, [zero, {neg, 3}, pos]}, "lists:map(fun(0) -> zero; (N) when N < 0 -> {neg, -N}; (_) -> pos end, [0, -3, 5]).").

patterns_use_what_is_outside_test() ->
    same({value, [2, none]},
         "K = b, lists:map(fun(M) -> case M of #{K := V} -> V; _ -> none end end, [#{a => 1, b => 2}, #{a => 1}]).").

exceptions_test() ->
    Text = "lists:foldl(fun(X, A) -> try 10 div X of D -> A + D catch error:badarith -> A + 100 end end, 0, [1, 0, 2]).",
    same({value, 115}, Text).

faults_are_the_same_test() ->
    %% The details hold the block itself. What failed stands first in the stack, where messages take the operands from.
    Shape = fun({raised, #{error := Error, stacktrace := [{Module, Function, Args, _} | _]}}) ->
                {setelement(7, Error, nil), [{Function, Args} || Module =:= erlang]}
            end,
    Texts = ["lists:map(fun(_) -> 1 / 0 end, [1, 2]).",
             "lists:map(fun(_) -> 7 div 0 + 1 end, [1, 2]).",
             "lists:map(fun(X) -> Y = a, X * Y end, [1, 2]).",
             "lists:map(fun(X) -> case is_number(X) of true -> X - nil; false -> no end end, [1, 2]).",
             "lists:map(fun(X) -> 10 div X end, [2, 1, 0]).",
             "lists:map(fun(X) -> X + a end, [1, 2]).",
             "lists:map(fun(X) -> beamtalk_dispatch:send(X, frobnicate) end, [1, 2]).",
             "lists:map(fun(X) -> beamtalk_nowhere:f(X) end, [1, 2]).",
             "lists:map(fun(X) -> X(1) end, [fun() -> 1 end]).",
             "lists:map(fun(X) -> {ok, X} = X end, [1, 2]).",
             "lists:map(fun(1) -> 1 end, [1, 2])."],
    [?assertEqual(Shape(walked(Text)), Shape(hot(Threshold, Text))) || Text <- Texts, Threshold <- [1, 2]].

%% The line of a fault is that of its statement, walked and compiled.
lines_test() ->
    Line = fun(Setting) ->
        ok = beamtalk_walk:set_threshold(Setting),
        {raised, _} = run("1,\n2,\nlists:map(fun(X) -> 10 div X end,\n[2, 1, 0])."),
        beamtalk_walk:set_threshold(default),
        beamtalk_eval:failed_line()
    end,
    [?assertEqual(3, Line(Setting)) || Setting <- [infinity, {1, wait}, {3, wait}]].

%% Twenty, as many as the interpreter of Erlang has, and loops have any number of variables.
parameters_test() ->
    Names = fun(Count) -> lists:append(lists:join(", ", ["V" ++ integer_to_list(N) || N <- lists:seq(1, Count)])) end,
    Numbers = fun(Count) -> lists:append(lists:join(", ", [integer_to_list(N) || N <- lists:seq(1, Count)])) end,
    [same({value, Count * (Count + 1) div 2},
          "(fun(" ++ Names(Count) ++ ") -> lists:sum([" ++ Names(Count) ++ "]) end)(" ++ Numbers(Count) ++ ").")
     || Count <- lists:seq(0, 20)],
    Loop = "(fun Loop(I, " ++ Names(40) ++ ") -> case I > 60 of true -> lists:sum([" ++ Names(40) ++ "]);"
           " false -> Loop(I + 1, " ++ Names(40) ++ ") end end)(1, " ++ Numbers(40) ++ ").",
    same({value, 820}, Loop),
    ?assertMatch({raised, #{error := {_, argument_error, 'Block', _, _, _, _}}}, run("fun(" ++ Names(21) ++ ") -> 1 end.")).

%% A loop that gets no code still needs no stack.
walking_needs_no_stack_test() ->
    ok = beamtalk_walk:set_threshold(infinity),
    Forms = forms("(fun Loop(I) -> case I < 100000 of true -> Loop(I + 1); false -> process_info(self(), stack_size) end end)(0)."),
    {value, {stack_size, Words}} = beamtalk_eval:value(Forms),
    beamtalk_walk:set_threshold(default),
    ?assert(Words < 1000).

%% Without waiting: the evaluation goes on meanwhile, and ends in compiled code.
changes_while_it_runs_test() ->
    beamtalk_support:start(),
    Forms = forms("(fun Loop(I) -> {current_function, {M, _, _}} = process_info(self(), current_function),"
                  " F = fun() -> I end, {module, At} = erlang:fun_info(F, module),"
                  " case At of beamtalk_walk -> Loop(I + 1); _ -> {M, At, I > 500} end end)(0)."),
    {value, {_, At, IsLater}} = beamtalk_eval:value(Forms),
    ?assertMatch("bt@eval@" ++ _, atom_to_list(At)),
    ?assert(IsLater).

%% Interrupting is ending the process, in the middle of code that never waits.
a_hot_loop_can_be_ended_test() ->
    Parent = self(),
    ok = beamtalk_walk:set_threshold({2, wait}),
    Forms = forms("P = list_to_pid(\"" ++ pid_to_list(Parent) ++ "\"),"
                  "(fun Loop(I) -> case I of 1000 -> P ! going; _ -> ok end, Loop(I + 1) end)(0)."),
    {Pid, Monitor} = spawn_monitor(fun() -> beamtalk_eval:value(Forms) end),
    receive going -> ok end,
    beamtalk_walk:set_threshold(default),
    exit(Pid, kill),
    ?assertEqual(killed, receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end).

a_hot_loop_stays_within_its_heap_test() ->
    ok = beamtalk_walk:set_threshold({2, wait}),
    Forms = forms("(fun Loop(L, I) -> Loop([I | L], I + 1) end)([], 0)."),
    Limit = {max_heap_size, #{size => 1000000, kill => true, error_logger => false}},
    {Pid, Monitor} = spawn_opt(fun() -> beamtalk_eval:value(Forms) end, [monitor, Limit]),
    ?assertEqual(killed, receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end),
    beamtalk_walk:set_threshold(default).

%% A block of another node: it comes with heat that is not of this node, and is walked.
blocks_from_elsewhere_test() ->
    ok = beamtalk_hot_code:prepare(),
    {value, Block} = hot(1, "Y = 2, fun(X) -> X * Y end."),
    ?assertEqual(6, Block(3)),
    {env, [{Slot, _, Index, Variables, {site, Unit, _, Free, Loop, Clauses}}]} = erlang:fun_info(Block, env),
    Heat = binary_to_term(<<131, 90, 3:16, 119, 1, "n", 1:32, 1:32, 2:32, 3:32>>),
    Elsewhere = setelement(3, setelement(2, Unit, 17), Heat),
    Foreign = beamtalk_walk:block({site, Elsewhere, Index, Free, Loop, Clauses}, Variables),
    ?assert(is_integer(Slot)),
    ?assertEqual(8, Foreign(4)).

%% A block in a variable keeps its captured variables when it is frozen, whether its maker was walked or compiled.
frozen_blocks_test() ->
    beamtalk_support:start(),
    Text = "C = beamtalk_cell:new(1),"
           "B = beamtalk_cell:block(fun(Env) -> fun(N) -> beamtalk_cell:write(Env, 1, beamtalk_cell:read(Env, 1) + N) end end, {C}),"
           "lists:foreach(B, [1, 2, 3]),"
           "Copy = beamtalk_cell:freeze(B),"
           "lists:foreach(B, [10, 20]),"
           "{Copy(1), Copy(1), beamtalk_cell:read(C), lists:map(fun(F) -> F(5) end, [Copy, B])}.",
    same({value, {8, 9, 37, [14, 42]}}, Text).
