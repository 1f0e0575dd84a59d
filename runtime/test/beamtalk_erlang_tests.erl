-module(beamtalk_erlang_tests).
-include("assertions.hrl").

-define(call(M, F, Args), beamtalk_erlang:call(M, F, Args)).

erlang_test_() ->
    {setup, fun beamtalk_support:start/0,
     [fun results/0, fun strings/0, fun failures/0, fun exceptions_pass/0, fun proxies/0]}.

ok(V) -> #{'$beamtalk_class' => 'Result', isOk => true, okValue => V, errReason => nil}.

results() ->
    ?assertEqual([2, 3, 4], ?call(lists, seq, [2, 4])),
    ?assertEqual(ok(1), ?call(maps, find, [a, #{a => 1}])),
    ?assertMatch(#{isOk := false, errReason := nil}, ?call(maps, find, [b, #{a => 1}])),
    ?assertMatch(#{isOk := false, errReason := #{error := {_, runtime_error, _, _, <<"enoent">>, _, #{reason := enoent}}}},
                 ?call(file, read_file, [<<"/no/such">>])),
    ?assertEqual({a, b, c}, beamtalk_erlang:convert_result({a, b, c})),
    ?assertEqual(ok(nil), beamtalk_erlang:convert_result(ok)).

strings() ->
    ?assertEqual(42, ?call(erlang, list_to_integer, [<<"42">>])),
    ?assertEqual(<<"ABC">>, ?call(string, uppercase, [<<"abc">>])),
    ?assertEqual([65, 66, 67], ?call(lists, seq, [65, 67])),
    ?assertEqual(<<"a/b">>, ?call(filename, join, [<<"a">>, <<"b">>])).

kind(Fun) -> beamtalk_error:field(beamtalk_support:catch_error(Fun), kind).
hint(Fun) -> beamtalk_error:field(beamtalk_support:catch_error(Fun), hint).

failures() ->
    ?assertEqual(does_not_understand, kind(fun() -> ?call(no_such_mod, f, []) end)),
    ?assertEqual(<<"Erlang module 'no_such_mod' is not loaded. Is it on the code path?">>,
                 hint(fun() -> ?call(no_such_mod, f, []) end)),
    ?assertEqual(<<"No such Erlang function; check its name and the number of arguments">>,
                 hint(fun() -> ?call(lists, zork, [1]) end)),
    ?assertEqual(<<"lists:reverse/1, 2 exists but was called with 3 arguments">>,
                 hint(fun() -> ?call(lists, reverse, [1, 2, 3]) end)),
    ?assertEqual(arity_mismatch, kind(fun() -> ?call(lists, nth, [9, [1]]) end)),
    ?assertEqual(type_error, kind(fun() -> ?call(erlang, binary_to_atom, [3]) end)),
    ?assertEqual(type_error, kind(fun() -> ?call(erlang, '+', [1, a]) end)),
    ?assertEqual(erlang_exit, kind(fun() -> ?call(erlang, exit, [gone]) end)),
    E = beamtalk_support:catch_error(fun() -> ?call(maps, get, [k, #{}]) end),
    ?assertEqual({key_error, 'ErlangModule', get}, {beamtalk_error:field(E, kind), beamtalk_error:field(E, errorClass), beamtalk_error:field(E, selector)}),
    ?assertMatch(#{erlang_error := {badkey, k}, erlang_stacktrace := [_ | _]}, beamtalk_error:field(E, details)).

exceptions_pass() ->
    E = beamtalk_support:catch_error(fun() ->
        ?call(lists, foreach, [fun(_) -> beamtalk_error:signal('Error', <<"mine">>) end, [1]]) end),
    ?assertEqual(<<"mine">>, beamtalk_error:field(E, message)).

proxies() ->
    Lists = beamtalk_erlang:'class doesNotUnderstand:args:'(beamtalk_class:named('Object'), lists, []),
    ?assertEqual(<<"#ErlangModule<lists>">>, beamtalk_display:native(Lists)),
    ?assertEqual([2, 1], beamtalk_erlang_module:'doesNotUnderstand:args:'(Lists, 'reverse:', [[1, 2]])),
    ?assertEqual(false, beamtalk_erlang_module:'doesNotUnderstand:args:'(Lists, isNil, [])),
    ?assertEqual([2, 1], beamtalk_erlang_module:'call:args:'(Lists, reverse, {[1, 2]})),
    ?assert(lists:member(<<"reverse/1">>, beamtalk_erlang_module:methods(Lists))).
