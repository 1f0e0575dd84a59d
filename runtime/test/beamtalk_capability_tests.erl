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

%%% Calls of Erlang

raised(Fun) ->
    try Fun() of
        Value -> {answered, Value}
    catch
        error:#{error := {beamtalk_error, Kind, Class, Selector, Message, Hint, Details}} ->
            {Kind, Class, Selector, Message, Hint, Details}
    end.

calls_of_erlang_are_refused_test() ->
    Proxy = beamtalk_erlang:proxy(lists),
    Calls = [fun() -> beamtalk_erlang:call(lists, reverse, [[1]]) end,
             fun() -> beamtalk_erlang:call(erlang, process_flag, [trap_exit, false]) end,
             fun() -> beamtalk_erlang:'class doesNotUnderstand:args:'(nil, lists, []) end,
             fun() -> beamtalk_erlang_module:'call:args:'(Proxy, reverse, {[1]}) end,
             fun() -> beamtalk_erlang_module:methods(Proxy) end],
    without([ffi], fun() -> [?assertMatch({capability_disabled, _, _, _, _, #{capability := ffi}}, raised(Call))
                             || Call <- Calls]
                   end),
    [?assertMatch({answered, _}, raised(Call)) || Call <- Calls].

a_refusal_says_what_and_how_to_allow_it_test() ->
    without([ffi], fun() ->
        ?assertEqual({capability_disabled, 'Erlang', lists,
                      <<"Erlang>>lists is switched off in this workspace (--no-ffi)">>,
                      <<"Restart the workspace without the flag to allow it">>, #{capability => ffi}},
                     raised(fun() -> beamtalk_erlang:call(lists, reverse, [[1]]) end))
    end).

%%% The hook

every_refusal_is_told_test() ->
    Test = self(),
    persistent_term:put({beamtalk_capability, refused},
                        fun(Capability, Class, Selector) -> Test ! {refused, Capability, Class, Selector} end),
    Path = <<"/tmp/beamtalk_capability_hook">>,
    without([subprocess, fs, http, ffi],
            fun() ->
                    beamtalk_system:'class runCommand:'(nil, <<"true">>),
                    beamtalk_file:'class mkdir:'(nil, Path),
                    beamtalk_http_client:'class get:'(nil, <<"http://127.0.0.1:1/">>),
                    beamtalk_http_client:'class download:to:'(nil, <<"http://127.0.0.1:1/">>, Path),
                    raised(fun() -> beamtalk_erlang:call(lists, reverse, [[1]]) end)
            end),
    persistent_term:erase({beamtalk_capability, refused}),
    ?assertEqual([{refused, subprocess, 'System', 'runCommand:'}, {refused, fs, 'File', 'mkdir:'},
                  {refused, http, 'HTTPClient', 'get:'}, {refused, http, 'HTTPClient', 'download:to:'},
                  {refused, ffi, 'Erlang', lists}], messages()).

%% A hook that fails does not let anything through.
a_failing_hook_changes_nothing_test() ->
    persistent_term:put({beamtalk_capability, refused}, fun(_, _, _) -> error(oops) end),
    without([fs], fun() ->
                          ?assertEqual({capability_disabled, #{capability => fs}},
                                       failure(beamtalk_file:'class mkdir:'(nil, <<"/tmp/beamtalk_capability_hook">>)))
                  end),
    persistent_term:erase({beamtalk_capability, refused}).

messages() ->
    receive {refused, _, _, _} = Message -> [Message | messages()] after 0 -> [] end.
