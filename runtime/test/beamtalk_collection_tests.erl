-module(beamtalk_collection_tests).

-include("assertions.hrl").

elements_follow_the_representation_test() ->
    ?assertEqual([1, 2], beamtalk_collection:elements([1, 2])),
    ?assertEqual([1, 2], beamtalk_collection:elements({1, 2})),
    ?assertEqual([<<"a">>, <<"é"/utf8>>], beamtalk_collection:elements(<<"aé"/utf8>>)),
    ?assertEqual([200, 201], beamtalk_collection:elements(<<200, 201>>)),
    ?assertEqual([7], beamtalk_collection:elements(#{a => 7})),
    ?assertEqual([1, 3, 5], beamtalk_collection:elements(beamtalk_interval:make(1, 5, 2))).

arrays_keep_their_order_beyond_small_maps_test() ->
    List = lists:seq(1, 100),
    Array = beamtalk_array:from_list(List),
    ?assertEqual(List, beamtalk_array:asList(Array)),
    ?assertEqual(100, beamtalk_array:size(Array)),
    ?assertEqual(Array, beamtalk_array:'++'(beamtalk_array:from_list(lists:seq(1, 60)),
                                            beamtalk_array:from_list(lists:seq(61, 100)))).

sets_are_equal_however_they_were_built_test() ->
    Left = beamtalk_set:from_list([1.0, 1, {2.0}, {2}]),
    Right = beamtalk_set:'add:'(beamtalk_set:'add:'(beamtalk_set:from_list([{2}, 1]), 1.0), {2.0}),
    ?assertEqual(Left, Right),
    ?assertEqual([1, 1.0, {2}, {2.0}], beamtalk_set:asList(Left)).

unique_orders_mixed_numbers_inside_runs_test() ->
    ?assertEqual([1, 1.0, 2, 3], beamtalk_set:sort_unique([3, 1.0, 2, 3, 1])),
    ?assertEqual([[1, a], [1.0, a]], beamtalk_set:sort_unique([[1.0, a], [1, a], [1.0, a]])).

set_algebra_is_strict_test() ->
    Set = fun beamtalk_set:from_list/1,
    ?assertEqual(Set([1]), beamtalk_set:'intersection:'(Set([1, 2.0]), Set([1, 2]))),
    ?assertEqual(Set([2.0]), beamtalk_set:'difference:'(Set([1, 2.0]), Set([1, 2]))),
    ?assertNot(beamtalk_set:'isSubsetOf:'(Set([1.0]), Set([1]))).

a_wrong_block_raises_with_the_receivers_class_test() ->
    ?assertRaises(type_error, beamtalk_collection:'inject:into:'({1}, 0, fun(X) -> X end)),
    ?assertRaises(type_error, beamtalk_list:'select:'([1], fun(_) -> 3 end)),
    ?assertRaises(not_found, beamtalk_collection:'detect:'([], fun(_) -> true end)).

intervals_never_overrun_test() ->
    ?assertEqual(0, beamtalk_interval:size(beamtalk_interval:make(1, 0, 1))),
    ?assertEqual(0, beamtalk_interval:size(beamtalk_interval:make(1, 5, 0))),
    ?assertEqual([], beamtalk_interval:asList(beamtalk_interval:make(1, 5, -1))),
    ?assertEqual(9, beamtalk_interval:last(beamtalk_interval:make(1, 10, 4))).
