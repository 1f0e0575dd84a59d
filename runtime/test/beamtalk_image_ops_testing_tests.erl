-module(beamtalk_image_ops_testing_tests).
-include("assertions.hrl").

-import(beamtalk_image_ops_fixture, [start/0, perform/2, failure/2]).

list_tests_test() ->
    start(),
    ?assertEqual(#{tests => [#{class => 'LampTest', methods => [testBad, testBroken, testGood, testLater],
                               file => <<"test/LampTest.bt">>}]}, perform(<<"list-tests">>, #{})).

results_test() ->
    start(),
    #{results := Results, failed := true} = perform(<<"test-all">>, #{<<"jobs">> => 2}),
    ?assertMatch(#{total := 4, passed := 1, failed := 2, skipped := 1, duration := _, seed := _}, Results),
    Tests = maps:get(tests, Results),
    Named = fun(Wanted) -> hd([T || #{name := Name} = T <- Tests, Name =:= Wanted]) end,
    ?assertMatch(#{class := 'LampTest', status := pass, file := <<"test/LampTest.bt">>, line := 4, output := <<"said">>},
                 Named(testGood)),
    ?assertNot(is_map_key(error, Named(testGood))),
    ?assertMatch(#{status := fail, line := 7, error := #{kind := assertion_failed, message := <<"differs">>,
                                                        expected := <<"1">>, actual := <<"2">>}}, Named(testBad)),
    ?assertMatch(#{status := error, error := #{kind := argument_error}}, Named(testBroken)),
    ?assertMatch(#{status := skip, error := #{message := <<"later">>}}, Named(testLater)).

selection_test() ->
    start(),
    Total = fun(Fields) -> maps:get(total, maps:get(results, perform(<<"test">>, Fields))) end,
    ?assertEqual(4, Total(#{})),
    ?assertEqual(4, Total(#{<<"class">> => <<"LampTest">>})),
    ?assertMatch(#{failed := false, results := #{total := 1}},
                 perform(<<"test">>, #{<<"class">> => <<"LampTest">>, <<"method">> => <<"testGood">>})),
    ?assertEqual(4, Total(#{<<"file">> => <<"test/LampTest.bt">>})),
    ?assertEqual(4, Total(#{<<"file">> => <<"/home/ada/lamp/test/LampTest.bt">>})),
    [?assertEqual({Fields, Kind}, {Fields, failure(<<"test">>, Fields)})
     || {Kind, Fields} <- [{file_not_found, #{<<"file">> => <<"test/FanTest.bt">>}},
                           {class_not_found, #{<<"class">> => <<"FanTest">>}},
                           {invalid_parameter, #{<<"class">> => <<"Lamp">>}},
                           {invalid_parameter, #{<<"jobs">> => <<"2">>}},
                           {missing_parameter, #{<<"method">> => <<"testGood">>}},
                           {selector_not_found, #{<<"class">> => <<"LampTest">>, <<"method">> => <<"setUp">>}}]].

run_entry_test() ->
    start(),
    Run = fun(Selector, Words) -> #{<<"class">> => <<"Entry">>, <<"selector">> => Selector, <<"args">> => Words} end,
    ?assertEqual(#{<<"value">> => 42, <<"text">> => <<"42">>, <<"class">> => <<"Integer">>, exit_code => 0},
                 perform(<<"run-entry">>, Run(<<"main">>, []))),
    ?assertMatch(#{<<"value">> := 2}, perform(<<"run-entry">>, Run(<<"main:">>, [<<"a">>, <<"b">>]))),
    ?assertEqual(#{value => nil, exit_code => 3}, perform(<<"run-entry">>, Run(<<"quit">>, []))),
    ?assertMatch({error, #{<<"kind">> := <<"type_error">>, <<"class">> := <<"Entry">>, <<"selector">> := <<"fail">>}},
                 beamtalk_image_ops:perform(<<"run-entry">>, Run(<<"fail">>, []), <<"s-1">>)),
    ?assertEqual(selector_not_found, failure(<<"run-entry">>, Run(<<"start">>, []))),
    [?assertEqual(invalid_parameter, failure(<<"run-entry">>, Fields))
     || Fields <- [Run(<<"main">>, [<<"a">>]), Run(<<"a:b:">>, []), Run(<<"main:">>, [1])]],
    ?assertEqual(class_not_found, failure(<<"run-entry">>, #{<<"class">> => <<"X">>, <<"selector">> => <<"main">>})).
