-module(beamtalk_bridge_value_tests).
-include("assertions.hrl").

json(Value) -> beamtalk_bridge_value:json(Value, text).

plain_values_test() ->
    [?assertEqual(Value, json(Value)) || Value <- [nil, true, 7, -7, 2.5, <<"a">>, [1, [2]]]],
    ?assertEqual(<<"sym">>, json(sym)),
    ?assertEqual(16#1FFFFFFFFFFFFF, json(16#1FFFFFFFFFFFFF)),
    ?assertEqual(<<"-9007199254740992">>, json(-16#20000000000000)),
    ?assertEqual([1, 2], json(#{'$beamtalk_class' => 'Array', data => #{1 => 1, 2 => 2}})),
    ?assertEqual(#{<<"a">> => 1, <<"b">> => nil}, json(#{a => 1, <<"b">> => nil})).

values_without_a_form_are_their_text_test() ->
    [?assertEqual(text, json(Value))
     || Value <- [#{1 => 2}, #{a => 1, <<"a">> => 2}, {1, 2}, self(), fun() -> ok end, <<255>>, [1 | 2],
                  #{'$beamtalk_class' => 'Lamp', on => true}]].

values_too_large_are_their_text_test() ->
    ?assertEqual(text, json(lists:seq(1, 200000))),
    ?assertEqual(text, json(binary:copy(<<"x">>, 1100000))),
    ?assertEqual(text, json(lists:foldl(fun(_, Inner) -> [Inner] end, 1, lists:seq(1, 100)))).

cut_test() ->
    ?assertEqual({<<"abc">>, false}, beamtalk_bridge_value:cut(<<"abc">>, 3)),
    ?assertEqual({<<"ab…"/utf8>>, true}, beamtalk_bridge_value:cut(<<"abüdefgh"/utf8>>, 6)).
