-module(beamtalk_error_tests).
-include("assertions.hrl").

kind(E) -> beamtalk_error:field(E, kind).
message(E) -> beamtalk_error:field(E, message).

error_test_() ->
    {setup, fun beamtalk_support:start/0,
     [fun classification/0, fun classes/0, fun messages/0, fun handling/0, fun ensuring/0,
      fun returning/0, fun frames/0, fun signalling/0, fun conditions/0]}.

classification() ->
    Cases = [{badarith, type_error, <<"bad arithmetic operation">>},
             {{badkey, a}, key_error, <<"key not found: #a">>},
             {{badmap, 1}, type_error, <<"expected a Dictionary but got a non-map value">>},
             {badarg, argument_error, <<"invalid argument">>},
             {system_limit, resource_error, <<"a system limit was reached">>},
             {noproc, process_not_found, <<"the target process no longer exists">>},
             {{noproc, x}, process_not_found, <<"the target process no longer exists">>},
             {timeout, timeout_error, <<"the operation timed out">>},
             {{case_clause, 3}, internal_error, <<"internal error (case_clause) - this is a bug in Beamtalk">>},
             {function_clause, internal_error, <<"internal error (function_clause) - this is a bug in Beamtalk">>},
             {strange, runtime_error, <<"strange">>},
             {{strange, 1}, runtime_error, <<"{#strange, 1}">>}],
    [begin
         E = beamtalk_error:classify(Reason),
         ?assertEqual({Reason, Kind, Message}, {Reason, kind(E), message(E)}),
         ?assertEqual(Reason, maps:get(erlang_error, beamtalk_error:field(E, details)))
     end || {Reason, Kind, Message} <- Cases],
    Undef = beamtalk_support:catch_error(fun() -> no_such_module:f(1, 2) end),
    ?assertEqual(<<"Undefined function: no_such_module:f/2">>, message(Undef)),
    Arity = beamtalk_support:catch_error(fun() -> (fun(_) -> ok end)() end),
    ?assertEqual(arity_mismatch, kind(Arity)).

classes() ->
    ?assertEqual('TypeError', beamtalk_error:class_of_kind(type_error)),
    ?assertEqual('InstantiationError', beamtalk_error:class_of_kind(unknown_field)),
    ?assertEqual('RuntimeError', beamtalk_error:class_of_kind(key_error)),
    ?assertEqual('Error', beamtalk_error:class_of_kind(timeout)),
    ?assert(beamtalk_error:is_listed_kind(not_found)),
    ?assertNot(beamtalk_error:is_listed_kind(no_match)).

messages() ->
    Text = fun(Kind) -> beamtalk_error:standard_message(Kind, 'Shelf', 'find:') end,
    ?assertEqual(<<"'find:': not found in Shelf">>, Text(not_found)),
    ?assertEqual(<<"Type error in 'find:' on Shelf">>, Text(type_error)),
    ?assertEqual(<<"odd_kind error in 'find:' on Shelf">>, Text(odd_kind)).

on_do(Body, Name, Handler) ->
    Class = case Name of
        nil -> nil;
        _ -> beamtalk_class:named(Name)
    end,
    beamtalk_block:on_do(Body, Class, Handler).

handling() ->
    ?assertEqual(type_error, on_do(fun() -> 1 / zero() end, 'TypeError', fun(E) -> kind(E) end)),
    ?assertEqual(0, on_do(fun() -> 1 / zero() end, 'Error', fun() -> 0 end)),
    ?assertEqual(2, on_do(fun() -> on_do(fun() -> beamtalk_dispatch:send(nil, fly) end, 'TypeError', fun() -> 1 end) end,
                          'Error', fun() -> 2 end)),
    ?assertEqual({erlang_exit, <<"boom">>}, on_do(fun() -> exit(boom) end, 'ExitError', fun(E) -> {kind(E), message(E)} end)),
    ?assertEqual(erlang_throw, on_do(fun() -> throw(x) end, nil, fun(E) -> kind(E) end)),
    ?assertEqual({'EXIT', raw}, catch on_do(fun() -> exit(raw) end, 'TypeError', fun() -> 1 end)),
    ?assertEqual(raw, catch on_do(fun() -> throw(raw) end, 'TypeError', fun() -> 1 end)),
    NonBlock = beamtalk_support:catch_error(fun() -> on_do(fun() -> 1 / zero() end, 'Error', 7) end),
    ?assertEqual({does_not_understand, value}, {kind(NonBlock), beamtalk_error:field(NonBlock, selector)}).

zero() -> list_to_integer("0").

ensuring() ->
    Me = self(),
    ?assertEqual(7, beamtalk_block:ensure(fun() -> 7 end, fun() -> Me ! cleaned end)),
    ?assertEqual(caught, on_do(fun() -> beamtalk_block:ensure(fun() -> error(x) end, fun() -> Me ! cleaned end) end,
                               nil, fun() -> caught end)),
    [receive cleaned -> ok after 0 -> error(not_cleaned) end || _ <- [1, 2]],
    Replaced = beamtalk_support:catch_error(fun() ->
        beamtalk_block:ensure(fun() -> error(first) end, fun() -> beamtalk_error:signal('Error', <<"second">>) end) end),
    ?assertEqual(<<"second">>, message(Replaced)).

returning() ->
    Find = fun() -> beamtalk_return:run(fun(Home) ->
        lists:foreach(fun(I) when I > 5 -> beamtalk_return:return(Home, I); (_) -> ok end, [3, 8, 9]), nil end, 'find:') end,
    ?assertEqual(8, Find()),
    Me = self(),
    Through = beamtalk_return:run(fun(Home) ->
        on_do(fun() -> beamtalk_block:ensure(fun() -> beamtalk_return:return(Home, 1) end, fun() -> Me ! ensured end) end,
              nil, fun() -> 2 end) end, m),
    ?assertEqual(1, Through),
    receive ensured -> ok after 0 -> error(not_ensured) end,
    Leak = beamtalk_return:run(fun(Home) -> fun(V) -> beamtalk_return:return(Home, V) end end, leak),
    E = beamtalk_support:catch_error(fun() -> Leak(1) end),
    ?assertEqual(<<"BlockContext: cannot return from 'leak' — the method has already returned"/utf8>>, message(E)),
    Other = beamtalk_return:run(fun(Home) ->
        spawn_link(fun() -> Me ! {other, beamtalk_support:catch_error(fun() -> beamtalk_return:return(Home, 1) end)} end),
        receive {other, X} -> X end end, far),
    ?assertEqual(<<"BlockContext: cannot return from 'far' — belongs to another process"/utf8>>, message(Other)).

frames() ->
    beamtalk_support:define(#{name => 'Crash', superclass => 'Value', kind => value,
        methods => [{'divide:', 1, "fun(_, N) -> 1 / N end"},
                    {unknown, 0, "fun(S) -> beamtalk_dispatch:send(S, zork), ok end"},
                    {block, 0, "fun(S) -> lists:map(fun(X) -> X + S end, [1]) end"}]}),
    C = #{'$beamtalk_class' => 'Crash'},
    Frames = fun(F) -> beamtalk_exception:stackTrace(beamtalk_support:catch_error(F)) end,
    [First | _] = Frames(fun() -> beamtalk_dispatch:send(C, 'divide:', 0) end),
    ?assertMatch(#{method := 'divide:', receiverClass := 'Crash', arguments := 1, line := 1}, First),
    ?assertEqual(<<"Crash>>divide:/1 (bt@crash.bt:1)">>, beamtalk_stack_frame:printString(First)),
    ?assertMatch([#{method := unknown} | _], Frames(fun() -> beamtalk_dispatch:send(C, unknown) end)),
    ?assertMatch([#{method := block} | _], Frames(fun() -> beamtalk_dispatch:send(C, block) end)),
    ?assertEqual({instance, 'at:put:'}, beamtalk_stack:method_of('-at:put:/3-fun-0-')),
    ?assertEqual({instance, 'at:put:'}, beamtalk_stack:method_of('-at:put:/3-fun-0-/1-fun-2-')),
    ?assertEqual({class, 'make:'}, beamtalk_stack:method_of('class make: loop 2')),
    ?assertEqual({class, 'make:'}, beamtalk_stack:method_of('-class make: loop 2/3-fun-1-')),
    ?assertEqual({instance, '-'}, beamtalk_stack:method_of('-')),
    ?assertEqual({instance, '->'}, beamtalk_stack:method_of('->')),
    ?assertEqual({class, make}, beamtalk_stack:method_of('Rect class >> make')).

signalling() ->
    Error = beamtalk_class:named('Error'),
    E = beamtalk_support:catch_error(fun() -> beamtalk_exception:'class signal:'(Error, <<"late">>) end),
    ?assertEqual({signal, <<"late">>}, {kind(E), message(E)}),
    T = beamtalk_support:catch_error(fun() -> beamtalk_exception:'class signal'(beamtalk_class:named('TypeError')) end),
    ?assertEqual({type_error, <<"TypeError">>}, {kind(T), message(T)}),
    Again = beamtalk_support:catch_error(fun() -> beamtalk_exception:signal(E) end),
    ?assertEqual(E, Again),
    K = beamtalk_support:catch_error(fun() ->
        beamtalk_exception:'class signalKind:class:selector:hint:'(Error, not_found, 'Shelf', 'find:', <<"Look">>) end),
    ?assertEqual('RuntimeError', maps:get('$beamtalk_class', K)),
    ?assertEqual(<<"'find:': not found in Shelf\nHint: Look">>, beamtalk_display:exception(K)).

conditions() ->
    E = beamtalk_support:catch_error(fun() -> beamtalk_block:'whileTrue:'(fun() -> 3 end, fun() -> ok end) end),
    ?assertEqual(type_error, kind(E)),
    N = beamtalk_support:catch_error(fun() -> beamtalk_error:not_boolean(3, 'ifTrue:', [fun() -> 1 end]) end),
    ?assertEqual(does_not_understand, kind(N)),
    M = beamtalk_support:catch_error(fun() -> beamtalk_error:no_match([1]) end),
    ?assertEqual(<<"No pattern matches #(1)">>, message(M)).
