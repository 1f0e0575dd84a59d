-module(beamtalk_class_builder_tests).
-include("assertions.hrl").

-define(D, beamtalk_dispatch).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'ClassBuilder', superclass => 'Actor', kind => actor,
        slots => [{className, "nil"}, {superclassRef, "nil"}, {fieldSpecs, "#{}"}, {methodSpecs, "#{}"},
                  {classMethodSpecs, "#{}"}, {classVarSpecs, "#{}"}, {metadata, "#{}"}],
        methods => [{'set:to:', 2, "fun(_, K, V) -> beamtalk_actor:put_field(K, V) end"},
                    {register, 0, "fun beamtalk_class_builder:register/1"}]}).

build(Super, Settings) ->
    Builder = beamtalk_class_builder:builder_for(beamtalk_class:named(Super)),
    [?D:send(Builder, 'set:to:', K, V) || {K, V} <- Settings],
    {Builder, ?D:send(Builder, register)}.

builder_test_() ->
    {setup, fun setup/0, [fun values/0, fun objects/0, fun class_side/0, fun errors/0]}.

values() ->
    {{_, _, _, Pid}, Coin} = build('Value', [{className, 'Coin'}, {fieldSpecs, #{cents => 0}},
        {methodSpecs, #{double => fun(C) -> beamtalk_object:'fieldAt:'(C, cents) * 2 end,
                        'plus:' => {'$bt_method', fun(#{cents := C}, N) -> C + N end, {[<<"n">>], <<"self.cents + n">>}}}}]),
    Instance = beamtalk_value:'class new:'(Coin, #{cents => 25}),
    ?assertEqual(50, ?D:send(Instance, double)),
    ?assertEqual(26, ?D:send(Instance, 'plus:', 1)),
    ?assertEqual(25, ?D:send(Instance, cents)),
    ?assertEqual(30, ?D:send(?D:send(Instance, 'withCents:', 30), cents)),
    ?assertEqual(<<"Coin(cents: 25)">>, beamtalk_display:print(Instance)),
    ?assertEqual(<<"plus: n => self.cents + n">>, maps:get(source, beamtalk_behaviour:'>>'(Coin, 'plus:'))),
    ?assertEqual(nil, maps:get(source, beamtalk_behaviour:'>>'(Coin, double))),
    Monitor = monitor(process, Pid),
    receive {'DOWN', Monitor, _, _, _} -> ok after 1000 -> error(builder_lives) end,
    %% What is generated belongs to the field; other methods go.
    [?assertEqual(generated, beamtalk_class:remove_method('Coin', instance, S)) || S <- [cents, 'withCents:']],
    E = beamtalk_support:catch_error(fun() -> beamtalk_behaviour:'removeSelector:'(Coin, cents) end),
    ?assertEqual(runtime_error, beamtalk_error:field(E, kind)),
    ?assertEqual(25, ?D:send(Instance, cents)),
    ok = beamtalk_class:remove_method('Coin', instance, double),
    ?assertEqual(not_found, beamtalk_class:remove_method('Coin', instance, double)).

objects() ->
    {_, Thing} = build('Object', [{className, 'Thing'}, {fieldSpecs, #{n => 3}}]),
    Instance = ?D:send(Thing, new),
    ?assertEqual(3, beamtalk_object:'fieldAt:'(Instance, n)),
    ?assertEqual(<<"Thing">>, beamtalk_display:print(Instance)).

class_side() ->
    {_, Mint} = build('Object', [{className, 'Mint'}, {classVarSpecs, #{made => 7}},
        {classMethodSpecs, #{made => fun(_, #{made := M}) -> M end,
                             next => {'$bt_method', fun(S) -> beamtalk_class_state:locked_put(S, made, 8) end, {[], <<"self.made := 8">>}}}}]),
    ?assertEqual(7, ?D:send(Mint, made)),
    ?assertEqual(8, ?D:send(Mint, next)),
    ?assertEqual(8, ?D:send(Mint, made)).

kind(Super, Settings) -> beamtalk_error:field(beamtalk_support:catch_error(fun() -> build(Super, Settings) end), kind).

errors() ->
    ?assertEqual(missing_parameter, kind('Value', [])),
    ?assertEqual(missing_parameter, kind('Value', [{className, 'X'}, {superclassRef, nil}])),
    ?assertEqual(stdlib_shadowing, kind('Value', [{className, 'Integer'}])),
    ?assertEqual(arity_mismatch, kind('Value', [{className, 'X'}, {classMethodSpecs, #{make => fun(_) -> 1 end}}])),
    beamtalk_support:define(#{name => 'Closed', superclass => 'Value', kind => value, modifiers => [sealed]}),
    ?assertEqual(instantiation_error, kind('Closed', [{className, 'X'}])).
