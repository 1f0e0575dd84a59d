-module(beamtalk_beamtalk_interface_tests).
-include("assertions.hrl").

-define(SELF, #{'$beamtalk_class' => 'BeamtalkInterface'}).

classes_test() ->
    beamtalk_image_ops_fixture:start(),
    Lamp = beamtalk_class:named('Lamp'),
    ?assertEqual(Lamp, beamtalk_beamtalk_interface:'classNamed:'(?SELF, 'Lamp')),
    ?assertEqual(nil, beamtalk_beamtalk_interface:'classNamed:'(?SELF, 'Lmap')),
    ?assertRaises(type_error, beamtalk_beamtalk_interface:'classNamed:'(?SELF, <<"Lamp">>)),
    ?assertMatch(#{'Lamp' := Lamp}, beamtalk_beamtalk_interface:globals(?SELF)),
    ?assertMatch(<<_, _/binary>>, beamtalk_beamtalk_interface:version(?SELF)).

help_test() ->
    beamtalk_image_ops_fixture:start(),
    Help = fun(Class) -> beamtalk_beamtalk_interface:'help:'(?SELF, Class) end,
    Expected = Help(beamtalk_class:named('Lamp')),
    ?assertMatch(<<"# Lamp < Actor\n\nA lamp.", _/binary>>, Expected),
    [?assertEqual(Expected, Help(Name)) || Name <- ['Lamp', <<"Lamp">>]],
    ?assertMatch(<<"# Entry class", _/binary>>, Help(beamtalk_reflect:metaclass('Entry'))),
    ?assertMatch(<<"# Entry class", _/binary>>, Help(<<"Entry class">>)),
    ?assertRaises(class_not_found, Help('Lmap')),
    [?assertRaises(type_error, Help(Wrong)) || Wrong <- [3, nil, true, [], #{}]].

help_about_a_method_test() ->
    beamtalk_image_ops_fixture:start(),
    Help = fun(Selector) -> beamtalk_beamtalk_interface:'help:selector:'(?SELF, 'Lamp', Selector) end,
    ?assertMatch({_, _}, binary:match(Help(toggle), <<"The other way.">>)),
    ?assertRaises(does_not_understand, Help(frobnicate)),
    ?assertRaises(type_error, Help(<<"toggle">>)).

erlang_help_test() ->
    Help = fun(Module) -> beamtalk_beamtalk_interface:'erlangHelp:'(?SELF, Module) end,
    ?assertMatch(<<"# lists", _/binary>>, Help(<<"lists">>)),
    ?assertMatch(<<"# lists:seq", _/binary>>, beamtalk_beamtalk_interface:'erlangHelp:selector:'(?SELF, <<"lists">>, seq)),
    ?assertRaises(not_found, Help(<<"no_such_module">>)),
    ?assertRaises(not_found, beamtalk_beamtalk_interface:'erlangHelp:selector:'(?SELF, <<"lists">>, frob)),
    ?assertRaises(type_error, Help(lists)).

log_level_test() ->
    Before = beamtalk_beamtalk_interface:logLevel(?SELF),
    nil = beamtalk_beamtalk_interface:'logLevel:'(?SELF, debug),
    ?assertEqual(debug, beamtalk_beamtalk_interface:logLevel(?SELF)),
    ?assertRaises(argument_error, beamtalk_beamtalk_interface:'logLevel:'(?SELF, loud)),
    ?assertRaises(type_error, beamtalk_beamtalk_interface:'logLevel:'(?SELF, 3)),
    logger:set_primary_config(level, Before).
