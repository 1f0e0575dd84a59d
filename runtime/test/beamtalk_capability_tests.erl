-module(beamtalk_capability_tests).
-include("assertions.hrl").

%% Runs with capabilities switched off, as the start flags of a workspace do.
without(Capabilities, Fun) ->
    application:set_env(beamtalk, disabled_capabilities, Capabilities),
    try Fun() after application:unset_env(beamtalk, disabled_capabilities) end.

failure(#{isOk := false, errReason := #{error := {beamtalk_error, Kind, _, _, _, _, Details}}}) ->
    {Kind, Details}.

programs_are_refused_test() ->
    without([subprocess],
            fun() ->
                    Disabled = {capability_disabled, #{capability => subprocess}},
                    ?assertEqual(Disabled, failure(beamtalk_system:'class runCommand:'(nil, <<"true">>))),
                    Class = {beamtalk_object, 'Subprocess class', m, 'Subprocess'},
                    ?assertEqual(Disabled, failure(beamtalk_subprocess:'class open:args:'(Class, <<"cat">>, []))),
                    ?assertRaises(capability_disabled, beamtalk_system:os_run(nil, <<"true">>)),
                    ?assertRaises(type_error, beamtalk_system:'class runCommand:'(nil, 3))
            end).

writing_is_refused_and_reading_is_not_test() ->
    Path = <<"/tmp/beamtalk_capability_tests">>,
    #{isOk := true} = beamtalk_file:'class writeAll:contents:'(nil, Path, <<"x">>),
    without([fs],
            fun() ->
                    Disabled = {capability_disabled, #{capability => fs}},
                    [?assertEqual(Disabled, failure(Result))
                     || Result <- [beamtalk_file:'class writeAll:contents:'(nil, Path, <<"y">>),
                                   beamtalk_file:'class mkdir:'(nil, <<"/tmp/beamtalk_capability_dir">>),
                                   beamtalk_file:'class delete:'(nil, Path),
                                   beamtalk_file:'class deleteAll:'(nil, Path),
                                   beamtalk_file:'class rename:to:'(nil, Path, <<"/tmp/other">>),
                                   beamtalk_file_handle:'class open:mode:'(nil, Path, append)]],
                    ?assertMatch(#{isOk := true, okValue := <<"x">>}, beamtalk_file:'class readAll:'(nil, Path)),
                    #{okValue := Handle} = beamtalk_file_handle:'class open:mode:'(nil, Path, read),
                    beamtalk_file_handle:close(Handle)
            end),
    #{isOk := true} = beamtalk_file:'class delete:'(nil, Path).

requests_are_refused_test() ->
    without([http],
            fun() ->
                    ?assertEqual({capability_disabled, #{capability => http}},
                                 failure(beamtalk_http_client:'class get:'(nil, <<"http://127.0.0.1:1/">>)))
            end).
