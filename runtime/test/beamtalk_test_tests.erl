-module(beamtalk_test_tests).
-include("assertions.hrl").

output_is_collected_test() ->
    Output = beamtalk_test_output:start(),
    Leader = group_leader(),
    group_leader(Output, self()),
    io:format("one ~ts~n", [<<"é"/utf8>>]),
    ?assertEqual(eof, io:get_line("")),
    group_leader(Leader, self()),
    ?assertEqual(<<"one é\n"/utf8>>, beamtalk_test_output:stop(Output)).

fields_assigned_outside_of_a_run_stay_with_the_instance_test() ->
    Instance = #{'$beamtalk_class' => 'SomeTest', x => 1, y => 2},
    ?assertEqual(5, beamtalk_test:put_field(Instance, x, 5)),
    ?assertEqual(5, beamtalk_test:get_field(Instance, x)),
    ?assertEqual(2, beamtalk_test:get_field(Instance, y)),
    ?assertMatch(#{x := 5, y := 7}, beamtalk_test:with_field(Instance, y, 7)).
