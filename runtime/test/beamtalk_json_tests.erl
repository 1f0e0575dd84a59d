-module(beamtalk_json_tests).
-include("assertions.hrl").

values_are_read_test() ->
    Cases = [{<<"null">>, nil}, {<<" true ">>, true}, {<<"-0">>, 0}, {<<"1e2">>, 100.0},
             {<<"1.5E-1">>, 0.15}, {<<"[]">>, []}, {<<"{}">>, #{}},
             {<<"{\"a\":[1,{\"b\":null}],\"a\":2}">>, #{<<"a">> => 2}},
             {<<"\"\\u00e9\\n\\ud83d\\ude00\"">>, <<"é\n😀"/utf8>>},
             {<<"123456789012345678901234567890">>, 123456789012345678901234567890}],
    [?assertEqual({ok, Value}, beamtalk_json:decode(Text)) || {Text, Value} <- Cases].

faults_name_their_place_test() ->
    Cases = [{<<>>, 0}, {<<"[1,]">>, 3}, {<<"01">>, 1}, {<<"[1] x">>, 4}, {<<"{\"a\" 1}">>, 5},
             {<<"\"a">>, 2}, {<<"1.">>, 2}, {<<"nul">>, 0}, {<<"{a:1}">>, 1}],
    [begin
         {error, Offset, _} = beamtalk_json:decode(Text),
         ?assertEqual({Text, Expected}, {Text, Offset})
     end || {Text, Expected} <- Cases].

bad_strings_are_refused_test() ->
    [?assertMatch({error, _, _}, beamtalk_json:decode(Text))
     || Text <- [<<"\"\\x\"">>, <<"\"\\ud83d\"">>, <<"\"\\ude00\"">>, <<"\"\n\"">>, <<"\"", 200, "\"">>,
                 <<"\"\\u12g4\"">>, <<"1e999">>]].

deep_nesting_is_a_fault_test() ->
    Deep = binary:copy(<<"[">>, 20000),
    ?assertMatch({error, _, "nested too deeply"}, beamtalk_json:decode(Deep)).

text_is_escaped_test() ->
    ?assertEqual(<<"\"a\\\"\\\\\\n\\u0001é\""/utf8>>,
                 beamtalk_json:'class generate:'(nil, <<"a\"\\\n", 1, "é"/utf8>>)),
    ?assertEqual(<<"[1,{\"a\":null}]">>, beamtalk_json:'class generate:'(nil, [1, #{<<"a">> => nil}])).
