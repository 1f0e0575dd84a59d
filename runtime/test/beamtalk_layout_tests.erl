-module(beamtalk_layout_tests).
-include("assertions.hrl").

layout_test_() ->
    {setup, fun setup/0, [fun one_line/0, fun lines/0, fun cuts/0, fun nested/0, fun own_print_strings/0, fun large/0]}.

%% Classes of the library, as far as their printString tells that it is the library's.
setup() ->
    beamtalk_support:define(#{name => 'Rect', superclass => 'Value', kind => value, slots => [{w, "3"}, {h, "2"}]}),
    beamtalk_support:define(#{name => 'Loud', superclass => 'Value', kind => value,
                              methods => [{printString, 0, "fun(_) -> <<\"LOUD\">> end"}]}),
    [standard(Class, Module) || {Class, Module} <- [{'List', 'bt@stdlib@list'}, {'Tuple', 'bt@stdlib@tuple'},
                                                    {'Set', 'bt@stdlib@set'}, {'Array', 'bt@stdlib@array'},
                                                    {'Dictionary', 'bt@stdlib@dictionary'},
                                                    {'Result', 'bt@stdlib@result'}, {'Rect', 'bt@stdlib@value'}]].

standard(Class, Module) ->
    Table = beamtalk_dispatch:table(Class),
    beamtalk_table:put(Class, Table#{printString => fun Module:printString/1}, []).

text(Value, Width) -> beamtalk_layout:text(Value, Width, 65536).

rect() -> #{'$beamtalk_class' => 'Rect', w => 3, h => 2}.

one_line() ->
    Cases = [{3, <<"3">>}, {<<"a\nb">>, <<"\"a\nb\"">>}, {[<<"a\nb\t\"c\"">>], <<"#(\"a\\nb\\t\"\"c\"\"\")">>},
             {[<<27>>], <<"#(\"\\x1B\")">>}, {[], <<"#()">>}, {{1, a}, <<"{1, #a}">>}, {rect(), <<"Rect(w: 3, h: 2)">>},
             {#{b => 2, a => rect()}, <<"#{#a => Rect(w: 3, h: 2), #b => 2}">>},
             {#{'$beamtalk_class' => 'Result', isOk => true, okValue => [1], errReason => nil}, <<"Result ok: #(1)">>}],
    [?assertEqual({Width, Text}, {Width, text(Value, Width)}) || {Value, Text} <- Cases, Width <- [0, 80]].

lines() ->
    ?assertEqual(<<"#(1, 2, 3)">>, text([1, 2, 3], 10)),
    ?assertEqual(<<"#(\n  1,\n  2,\n  3\n)">>, text([1, 2, 3], 9)),
    ?assertEqual(<<"#(\n  \"äöü\",\n  \"xyz\"\n)"/utf8>>, text([<<"äöü"/utf8>>, <<"xyz">>], 12)),
    ?assertEqual(<<"Rect(\n  w: 3,\n  h: 2\n)">>, text(rect(), 10)),
    ?assertEqual(<<"Result ok: #(\n  1,\n  2\n)">>,
                 text(#{'$beamtalk_class' => 'Result', isOk => true, okValue => [1, 2], errReason => nil}, 8)).

cuts() ->
    Text = text(lists:seq(1, 100000), 80),
    ?assertMatch({_, _}, binary:match(Text, <<"\n  50,\n  … 99,950 more (_ inspect)\n)"/utf8>>)),
    ?assertEqual(nomatch, binary:match(Text, <<"\n  51,">>)),
    ?assertEqual(50, length(binary:matches(text(lists:seq(1, 50), 20), <<"\n  ">>))).

nested() ->
    Inner = lists:seq(1, 100),
    Text = text([Inner || _ <- lists:seq(1, 60)], 40),
    %% 40 lines for what is inside, and at most two for each of the elements and the whole.
    ?assert(length(binary:matches(Text, <<"\n">>)) =< 40 + 2 * 50 + 3),
    ?assertMatch({_, _}, binary:match(Text, <<"… 10 more (_ inspect)"/utf8>>)),
    Deep = lists:foldl(fun(_, Value) -> [Value] end, 1, lists:seq(1, 100000)),
    ?assert(byte_size(text(Deep, 80)) < 100000),
    ?assert(byte_size(text(Deep, 0)) < 100000).

own_print_strings() ->
    Loud = #{'$beamtalk_class' => 'Loud'},
    ?assertEqual(<<"LOUD">>, text(Loud, 80)),
    ?assertEqual(<<"#(LOUD, LOUD)">>, text([Loud, Loud], 80)).

%% What is not shown is not printed: within a number of reductions that printing it all would exceed by far.
large() ->
    List = lists:seq(1, 1000000),
    {reductions, Before} = process_info(self(), reductions),
    _ = text(List, 80),
    {reductions, After} = process_info(self(), reductions),
    ?assert(After - Before < 200000),
    Map = maps:from_list([{N, N} || N <- lists:seq(1, 200000)]),
    ?assertMatch({_, _}, binary:match(text(Map, 80), <<"… 199,950 more (_ inspect)"/utf8>>)),
    ?assert(byte_size(text(List, 0)) =< 65536 + 4096),
    ?assert(byte_size(text([binary:copy(<<"x">>, 10000000)], 80)) =< 65536 + 4096).
