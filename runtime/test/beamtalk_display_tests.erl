-module(beamtalk_display_tests).
-include("assertions.hrl").

display_test_() ->
    {setup, fun setup/0, [fun forms/0, fun floats/0, fun symbols/0, fun values/0, fun bounds/0, fun overrides/0]}.

setup() ->
    beamtalk_support:define(#{name => 'Node', superclass => 'Value', kind => value, slots => [{next, "nil"}]}),
    beamtalk_support:define(#{name => 'Loud', superclass => 'Value', kind => value,
                              methods => [{printString, 0, "fun(_) -> <<\"LOUD\">> end"}]}).

print(T) -> beamtalk_display:print(T).

forms() ->
    Cases = [{-7, <<"-7">>}, {<<"a \"b\"">>, <<"\"a \"\"b\"\"\"">>}, {<<255, 0>>, <<"<<FF 00>>">>},
             {[1, <<"a">>], <<"#(1, \"a\")">>}, {{1, a}, <<"{1, #a}">>}, {{}, <<"{}">>}, {[], <<"#()">>},
             {#{b => 2, a => 1}, <<"#{#a => 1, #b => 2}">>}, {#{}, <<"#{}">>}, {fun() -> 1 end, <<"Block">>},
             {nil, <<"nil">>}, {true, <<"true">>},
             {#{'$beamtalk_class' => 'Array', data => #{1 => a, 2 => b}}, <<"#[#a, #b]">>},
             {#{'$beamtalk_class' => 'Set', elements => [1, 2]}, <<"Set(1, 2)">>},
             {#{'$beamtalk_class' => 'Result', isOk => true, okValue => 4, errReason => nil}, <<"Result ok: 4">>},
             {#{'$beamtalk_class' => 'Result', isOk => false, okValue => nil, errReason => gone}, <<"Result error: #gone">>},
             {#{'$beamtalk_class' => 'ErlangModule', module => lists}, <<"#ErlangModule<lists>">>},
             {beamtalk_class:named('Node'), <<"Node">>},
             {beamtalk_dispatch:class_of(beamtalk_class:named('Node')), <<"Node class">>}],
    [?assertEqual({T, Text}, {T, print(T)}) || {T, Text} <- Cases],
    ?assertMatch(<<"#Pid<0.", _/binary>>, print(self())),
    ?assertMatch(<<"#Ref<0.", _/binary>>, print(make_ref())),
    ?assertMatch(<<"#Port<0.", _/binary>>, print(hd(erlang:ports()))),
    ?assertEqual(<<"say \"hi\"">>, beamtalk_display:display(<<"say \"hi\"">>)),
    ?assertEqual(<<"at:put:">>, beamtalk_display:display('at:put:')).

floats() ->
    Cases = [{2.5, <<"2.5">>}, {100.0, <<"100.0">>}, {1.0e3, <<"1.0e3">>}, {1234.0, <<"1234.0">>}, {1.0e-5, <<"1.0e-5">>},
             {0.1, <<"0.1">>}, {0.0, <<"0.0">>}, {-2.5, <<"-2.5">>}, {9007199254740992.0, <<"9.007199254740992e15">>},
             {123456.789, <<"123456.789">>}, {1.5e300, <<"1.5e300">>}, {0.001, <<"0.001">>}, {5.0e3, <<"5.0e3">>},
             {1.0e22, <<"1.0e22">>}, {0.5, <<"0.5">>}, {3.0, <<"3.0">>}],
    [?assertEqual({F, T}, {F, print(F)}) || {F, T} <- Cases],
    [?assertEqual(F, binary_to_float(print(F))) || F <- [1.1, 1.0e100, 123.456e-20, 4503599627370497.5]].

symbols() ->
    Cases = [{a, <<"#a">>}, {'at:put:', <<"#at:put:">>}, {'+', <<"#+">>}, {'odd one', <<"#'odd one'">>},
             {'Counter', <<"#Counter">>}, {'', <<"#''">>}, {'1a', <<"#'1a'">>}, {'at:put', <<"#'at:put'">>}],
    [?assertEqual(T, print(S)) || {S, T} <- Cases],
    ?assertEqual(<<"#'it''s'">>, print(list_to_atom("it's"))).

values() ->
    ?assertEqual(<<"Node(next: 3)">>, print(linked_node(3))),
    ?assertEqual(<<"Many(a: 1, b: 2)">>, print(#{'$beamtalk_class' => 'Many', b => 2, a => 1, '__secret' => 3})).

linked_node(Next) -> #{'$beamtalk_class' => 'Node', next => Next}.

bounds() ->
    Deep = lists:foldl(fun(_, N) -> linked_node(N) end, nil, lists:seq(1, 7)),
    ?assertEqual(<<"Node(next: Node(next: Node(next: Node(next: Node(next: Node(...))))))">>, print(Deep)),
    Wide = maps:from_list([{'$beamtalk_class', 'Node'} | [{list_to_atom("f" ++ integer_to_list(N)), N} || N <- lists:seq(100, 160)]]),
    Text = print(Wide),
    ?assertMatch({_, _}, binary:match(Text, <<", ...)">>)),
    ?assertEqual(nomatch, binary:match(Text, <<"f150">>)),
    Long = print(linked_node(binary:copy(<<"é"/utf8>>, 8000))),
    ?assertEqual(<<"...">>, binary:part(Long, byte_size(Long), -3)),
    ?assert(byte_size(Long) =< 10003),
    ?assert(beamtalk_dispatch:is_text(Long)),
    Tree = lists:foldl(fun(_, N) -> maps:from_list([{'$beamtalk_class', 'Node'} | [{list_to_atom("k" ++ integer_to_list(I)), N} || I <- lists:seq(1, 50)]]) end,
                       nil, lists:seq(1, 5)),
    ?assert(byte_size(print(Tree)) =< 10003),
    ?assertEqual(undefined, get('$bt_print')).

overrides() ->
    ?assertEqual(<<"#(LOUD)">>, print([#{'$beamtalk_class' => 'Loud'}])),
    ?assertEqual(<<"Node(next: LOUD)">>, print(linked_node(#{'$beamtalk_class' => 'Loud'}))).
