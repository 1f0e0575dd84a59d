-module(beamtalk_behaviour_tests).
-include("assertions.hrl").

-define(B, beamtalk_behaviour).

setup() ->
    beamtalk_support:start(),
    beamtalk_support:define(#{name => 'Shape', superclass => 'Value', kind => value, slots => [{w, "1"}],
        class_slots => [{made, "0"}],
        methods => [{area, 0, "fun(_) -> 1 end"}, {asString, 0, "fun(_) -> <<>> end"}],
        class_methods => [{unit, 0, "fun(_) -> 1 end"}]}),
    beamtalk_support:define(#{name => 'Disc', superclass => 'Shape', kind => value, slots => [{r, "1"}]}),
    {ok, _, Beam} = beamtalk_code:compile_forms(
        [{attribute, 1, module, bt@sized}, {attribute, 1, export, [{'__beamtalk_protocol', 0}]},
         {function, 1, '__beamtalk_protocol', 0, [{clause, 1, [], [],
            [erl_parse:abstract(#{name => 'Sized', extending => nil, required => [{instance, area}, {class, unit}],
                                  doc => nil, module => bt@sized, source_file => nil})]}]}]),
    {ok, bt@sized} = beamtalk_class:load(bt@sized, Beam).

class(N) -> beamtalk_class:named(N).
meta(N) -> beamtalk_dispatch:class_of(class(N)).

behaviour_test_() ->
    {setup, fun setup/0, [fun chains/0, fun selectors/0, fun compiled_methods/0, fun slots/0, fun docs/0,
                          fun protocols/0, fun compiling/0, fun packages/0]}.

chains() ->
    ?assertEqual(class('Shape'), ?B:superclass(class('Disc'))),
    ?assertEqual(nil, ?B:superclass(class('ProtoObject'))),
    ?assertEqual([class(N) || N <- ['Shape', 'Value', 'Object', 'ProtoObject']], ?B:allSuperclasses(class('Disc'))),
    ?assertEqual([class(N) || N <- ['Disc', 'Shape', 'Value', 'Object']], ?B:superclassChain(class('Disc'))),
    ?assertEqual([meta(N) || N <- ['Disc', 'Shape', 'Value', 'Object']], ?B:superclassChain(meta('Disc'))),
    ?assertEqual(meta('Value'), ?B:superclass(meta('Shape'))),
    ?assertEqual(class('Class'), ?B:superclass(meta('ProtoObject'))),
    ?assertEqual([class('Disc')], ?B:subclasses(class('Shape'))),
    ?assert(?B:'inheritsFrom:'(class('Disc'), class('Value'))),
    ?assertNot(?B:'inheritsFrom:'(class('Disc'), class('Disc'))),
    ?assert(?B:'includesBehaviour:'(class('Disc'), class('Disc'))),
    ?assertEqual('Disc class', ?B:name(meta('Disc'))),
    ?assert(beamtalk_object:'isKindOf:'(class('Disc'), class('Class'))),
    ?assert(beamtalk_object:'isKindOf:'(class('Disc'), meta('Shape'))),
    ?assertNot(beamtalk_object:'isKindOf:'(class('Disc'), class('Value'))).

selectors() ->
    ?assertEqual([area, asString], ?B:methods(class('Shape'))),
    ?assertEqual([unit], ?B:methods(meta('Shape'))),
    ?assert(?B:'canUnderstand:'(class('Disc'), area)),
    ?assert(?B:'canUnderstand:'(meta('Disc'), unit)),
    ?assertNot(?B:'includesSelector:'(class('Disc'), area)),
    ?assertEqual(class('Shape'), ?B:'whichClassIncludesSelector:'(class('Disc'), area)),
    ?assertEqual(nil, ?B:'whichClassIncludesSelector:'(class('Disc'), zork)),
    ?assert(lists:member(new, ?B:classMethods(meta('Disc')))),
    ?assertEqual([], ?B:localClassMethods(meta('Disc'))),
    E = beamtalk_support:catch_error(fun() -> ?B:'removeSelector:'(class('Disc'), area) end),
    ?assertEqual(selector_not_found, beamtalk_error:field(E, kind)),
    ?assertEqual(none, ?B:'removeSelector:ifAbsent:'(class('Disc'), area, fun() -> none end)).

compiled_methods() ->
    ?assertMatch(#{'$beamtalk_class' := 'CompiledMethod', selector := area, argumentCount := 0},
                 ?B:'>>'(class('Disc'), area)),
    ?assertMatch(#{selector := unit}, ?B:'>>'(meta('Disc'), unit)),
    ?assertEqual(nil, ?B:'>>'(class('Disc'), zork)),
    E = beamtalk_support:catch_error(fun() -> beamtalk_dispatch:send(3, '>>', area) end),
    ?assertEqual(type_error, beamtalk_error:field(E, kind)).

slots() ->
    ?assertEqual([r], ?B:fieldNames(class('Disc'))),
    ?assertEqual([w, r], ?B:allFieldNames(class('Disc'))),
    ?assertEqual([], ?B:classVarNames(class('Disc'))),
    ?assertEqual([made], ?B:allClassVarNames(class('Disc'))),
    Disc = beamtalk_value:'class new:'(class('Disc'), #{w => 5}),
    ?assertEqual([r, w], beamtalk_object:fieldNames(Disc)),
    ?assertEqual(5, beamtalk_object:'fieldAt:'(Disc, w)),
    ?assertEqual(nil, beamtalk_object:'fieldAt:'(Disc, zork)),
    ?assertEqual(1, beamtalk_value:missing_field(maps:remove(r, Disc), r)),
    E = beamtalk_support:catch_error(fun() -> beamtalk_value:'class new:'(class('Disc'), #{depth => 4}) end),
    ?assertEqual({<<"Unknown field 'depth' for Disc">>, <<"Declared fields: r, w">>},
                 {beamtalk_error:field(E, message), beamtalk_error:field(E, hint)}),
    I = beamtalk_support:catch_error(fun() -> beamtalk_value:'class new'(class('Integer')) end),
    ?assertEqual(instantiation_error, beamtalk_error:field(I, kind)).

docs() ->
    ?assertEqual(<<"A test class.">>, ?B:doc(class('Shape'))),
    ?B:'doc:'(class('Shape'), <<"New.">>),
    ?assertEqual(<<"New.">>, ?B:doc(class('Shape'))),
    ?assertEqual(nil, ?B:'docForMethod:'(class('Shape'), area)),
    ?B:'setDocForMethod:to:'(class('Shape'), area, <<"Its area.">>),
    ?assertEqual(<<"Its area.">>, ?B:'docForMethod:'(class('Disc'), area)),
    ?assertMatch(#{doc := <<"Its area.">>}, ?B:'>>'(class('Disc'), area)).

protocols() ->
    ?assert(?B:'conformsTo:'(class('Disc'), 'Sized')),
    ?assertNot(?B:'conformsTo:'(class('Integer'), 'Sized')),
    ?assertNot(?B:'conformsTo:'(class('Integer'), 'Zork')),
    ?assertEqual(['Sized'], ?B:protocols(class('Disc'))),
    Sized = class('Sized'),
    ?assertEqual([area, 'class unit'], beamtalk_dispatch:send(Sized, requiredMethods)),
    ?assertEqual(['Disc', 'Shape'], beamtalk_dispatch:send(Sized, conformingClasses)),
    ?assertEqual(class('Protocol'), ?B:superclass(Sized)),
    ?assertEqual([class('Disc'), class('Shape')], beamtalk_protocol:'class conformingClasses:'(nil, 'Sized')).

compiling() ->
    E = beamtalk_support:catch_error(fun() -> ?B:'compile:source:'(class('Disc'), a, <<"a => 1">>) end),
    ?assertEqual(unsupported, beamtalk_error:field(E, kind)),
    Me = self(),
    beamtalk_compiler_port:attach(fun(R) -> Me ! R, {ok, done} end),
    ?assertEqual(class('Disc'), ?B:'compile:source:'(class('Disc'), a, <<"a => 1">>)),
    receive {compile, durable, 'Disc', instance, a, <<"a => 1">>} -> ok after 0 -> error(not_asked) end,
    beamtalk_compiler_port:detach(),
    R = beamtalk_support:catch_error(fun() -> ?B:reload(class('Disc')) end),
    ?assertEqual(<<"Disc has no source file">>, beamtalk_error:field(R, message)).

packages() ->
    ?assertEqual(<<"stdlib">>, ?B:packageName(class('Integer'))),
    ?assert(lists:member(<<"stdlib">>, beamtalk_package:'class all'(nil))),
    ?assertMatch(#{name := <<"stdlib">>}, beamtalk_package:'class named:'(class('Object'), <<"stdlib">>)),
    E = beamtalk_support:catch_error(fun() -> beamtalk_package:'class named:'(class('Object'), <<"zork">>) end),
    ?assertEqual(package_not_found, beamtalk_error:field(E, kind)).
