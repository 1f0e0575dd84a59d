-module(beamtalk_dispatch_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Rect', superclass => 'Value', kind => value,
        slots => [{w, "1"}, {h, "2"}],
        methods => [{area, 0, "fun(#{w := W, h := H}) -> W * H end"},
                    {'plus:', 1, "fun(#{w := W}, N) -> W + N end"},
                    {'a:b:c:d:e:', 5, "fun(_, A, B, C, D, E) -> [A, B, C, D, E] end"},
                    {'<', 1, "fun(#{w := W}, #{w := V}) -> W < V end"},
                    {describe, 0, "fun(_) -> rect end"}],
        class_methods => [{unit, 0, "fun({_, _, _, N}) -> {unit, N} end"}]}),
    beamtalk_support:define(#{name => 'Square', superclass => 'Rect', kind => value,
        methods => [{describe, 0, "fun(S) -> {square, beamtalk_dispatch:super(S, 'Square', instance, describe, [])} end"}],
        class_methods => [{unit, 0, "fun(S) -> {sub, beamtalk_dispatch:super(S, 'Square', class, unit, [])} end"}]}).

new(Name) -> ?D:send(beamtalk_class:named(Name), new).

dispatch_test_() ->
    {setup, fun setup/0,
     [{"methods, inherited methods and arities", fun methods/0},
      {"super on both sides", fun super/0},
      {"native terms", fun native/0},
      {"text and bytes", fun text/0},
      {"a miss sends doesNotUnderstand:args:", fun miss/0},
      {"metaclasses", fun metaclass/0},
      {"comparison", fun comparison/0},
      {"concatenation", fun concatenation/0},
      {"a Dictionary that grows is made on the heap", fun growing/0},
      {"extensions", fun extensions/0},
      {"cast needs an actor", fun cast/0}]}.

methods() ->
    R = new('Rect'),
    ?assertEqual(2, ?D:send(R, area)),
    ?assertEqual(5, ?D:send(R, 'plus:', 4)),
    ?assertEqual([1, 2, 3, 4, 5], ?D:send_list(R, 'a:b:c:d:e:', [1, 2, 3, 4, 5])),
    ?assertEqual(2, ?D:send(new('Square'), area)),
    Wrong = beamtalk_support:catch_error(fun() -> ?D:send_list(R, 'plus:', []) end),
    ?assertEqual(arity_mismatch, beamtalk_error:field(Wrong, kind)).

super() ->
    ?assertEqual({square, rect}, ?D:send(new('Square'), describe)),
    ?assertEqual({sub, {unit, 'Square'}}, ?D:send(beamtalk_class:named('Square'), unit)).

native() ->
    ?assertEqual(7, ?D:send(3, '+', 4)),
    ?assertEqual(true, ?D:send(nil, isNil)),
    ?assertEqual(false, ?D:send([], isNil)),
    ?assertEqual(2, ?D:send([a, b], size)),
    ?assertEqual(9, ?D:send(fun() -> 9 end, value)),
    Names = [?D:class_name(T) || T <- [1, 1.5, <<"a">>, <<255>>, a, nil, true, false, [], {}, #{},
                                       self(), make_ref(), fun() -> ok end]],
    ?assertEqual(['Integer', 'Float', 'String', 'Binary', 'Symbol', 'UndefinedObject', 'True', 'False',
                  'List', 'Tuple', 'Dictionary', 'Pid', 'Reference', 'Block'], Names).

text() ->
    ?assertEqual(1, ?D:send(<<"é"/utf8>>, size)),
    ?assertEqual(2, ?D:send(<<255, 254>>, size)),
    ?assert(?D:is_text(<<"plain ascii text, long">>)),
    ?assertNot(?D:is_text(<<"plain ascii text", 200>>)).

miss() ->
    E = beamtalk_support:catch_error(fun() -> ?D:send(3, fly) end),
    ?assertEqual(<<"Integer does not understand 'fly'">>, beamtalk_error:field(E, message)),
    ?assertEqual(<<"Check the spelling, or ask: Integer respondsTo: #fly">>, beamtalk_error:field(E, hint)),
    ClassSide = beamtalk_support:catch_error(fun() -> ?D:send(new('Rect'), unit) end),
    ?assertMatch({_, _}, binary:match(beamtalk_error:field(ClassSide, hint), <<"class-side">>)),
    New = beamtalk_support:catch_error(fun() -> ?D:send(beamtalk_class:named('Object'), new) end),
    ?assertEqual(<<"Cannot call 'new' on Object">>, beamtalk_error:field(New, message)),
    ?assert(?D:responds_to(new('Rect'), area)),
    ?assertNot(?D:responds_to(new('Rect'), '$info')),
    Removed = beamtalk_support:catch_error(fun() -> ?D:send_list(new('Rect'), '$info', []) end),
    ?assertEqual(does_not_understand, beamtalk_error:field(Removed, kind)).

metaclass() ->
    Rect = beamtalk_class:named('Rect'),
    Meta = ?D:class_of(Rect),
    ?assertEqual(Meta, ?D:class_of(Meta)),
    ?assertEqual(true, ?D:send(Meta, isMeta)),
    ?assertEqual({unit, 'Rect'}, ?D:send(Meta, unit)),
    ?assertEqual({unit, 'Rect'}, ?D:send(?D:send(Meta, class), unit)),
    ?assert(?D:is_kind_of(Rect, 'Class')),
    ?assert(?D:is_kind_of(Meta, 'Metaclass')),
    ?assertNot(?D:is_kind_of(Rect, 'Metaclass')).

comparison() ->
    ?assertEqual(true, ?D:compare('<', 1, a)),
    ?assertEqual(true, ?D:compare('<=', <<"Z">>, <<"a">>)),
    ?assertEqual(false, ?D:compare('<', new('Rect'), new('Rect'))),
    E = beamtalk_support:catch_error(fun() -> ?D:compare('>', new('Rect'), 1) end),
    ?assertEqual(does_not_understand, beamtalk_error:field(E, kind)).

%% A new key takes 30 words and more in a large Dictionary. Made in fragments beside the heap, most of them would be found there
%% by the collector.
growing() ->
    Count = 20000,
    Fill = fun Fill(Key, Table) when Key =< Count -> Fill(Key + 1, ?D:at_put(Table, Key, Key));
               Fill(_, Table) -> Count = map_size(Table)
           end,
    Pid = spawn(fun() -> receive go -> Fill(1, #{}) end end),
    Monitor = monitor(process, Pid),
    1 = erlang:trace(Pid, true, [garbage_collection]),
    Pid ! go,
    receive {'DOWN', Monitor, _, _, normal} -> ok end,
    Delivered = erlang:trace_delivered(all),
    receive {trace_delivered, all, Delivered} -> ok end,
    ?assert(beside_the_heap(0) < 5 * Count).

beside_the_heap(Words) ->
    receive
        {trace, _, Start, Facts} when Start =:= gc_minor_start; Start =:= gc_major_start ->
            beside_the_heap(Words + proplists:get_value(mbuf_size, Facts));
        {trace, _, _, _} -> beside_the_heap(Words)
    after 0 -> Words
    end.

concatenation() ->
    ?assertEqual(<<"ab">>, ?D:concat(<<"a">>, <<"b">>)),
    ?assertEqual([1, 2], ?D:concat([1], [2])).

extensions() ->
    beamtalk_support:start(),
    Spec = #{name => none, module => 'bt@rect_ext', only_extensions => true,
             extensions => [{'Object', instance, triple, 0, "fun(S) -> {S, S, S} end"},
                            {'Rect', instance, area, 0, "fun(_) -> hidden end"},
                            {'Rect', class, make, 0, "fun(S) -> beamtalk_dispatch:send(S, new) end"}]},
    ok = beamtalk_class:load_forms(beamtalk_support:forms(Spec)),
    ?assertEqual({3, 3, 3}, ?D:send(3, triple)),
    ?assertEqual({r, r, r}, ?D:send(r, triple)),
    ?assertEqual(2, ?D:send(new('Rect'), area)),
    ?assertEqual(new('Square'), ?D:send(beamtalk_class:named('Square'), make)),
    Fewer = Spec#{extensions => [{'Object', instance, triple, 0, "fun(S) -> {S, 3} end"}]},
    ok = beamtalk_class:load_forms(beamtalk_support:forms(Fewer)),
    ?assertEqual({3, 3}, ?D:send(3, triple)),
    ?assertNot(?D:responds_to(beamtalk_class:named('Rect'), make)),
    ok = beamtalk_class:load_forms(beamtalk_support:forms(Fewer#{extensions => [{'Rect', instance, other, 0, "fun(_) -> 1 end"}]})),
    ?assertNot(?D:responds_to(3, triple)).

cast() ->
    E = beamtalk_support:catch_error(fun() -> ?D:cast(3, go, []) end),
    ?assertEqual(type_error, beamtalk_error:field(E, kind)).
