-module(beamtalk_log_tests).
-include("assertions.hrl").

line(Level, Message, Meta) ->
    Event = #{level => Level, msg => Message, meta => maps:merge(#{time => 1767604447221000, pid => self()}, Meta)},
    unicode:characters_to_binary(beamtalk_log:format(Event, #{})).

user_line_test() ->
    beamtalk_support:start(),
    ?assertEqual(<<"2026-01-05T09:14:07.221Z [info] [user] Lamp>>toggle switched on\n">>,
                 line(info, {string, "switched on"}, #{beamtalk_class => 'Lamp', beamtalk_selector => toggle})).

runtime_line_test() ->
    ?assertEqual(<<"2026-01-05T09:14:07.221Z [warning] [runtime] two\n    lines\n">>,
                 line(warning, {"~ts~nlines", ["two"]}, #{domain => [beamtalk]})).

secrets_in_reports_are_hidden_test() ->
    Report = #{state => [{cookie, <<"abc">>}, {nested, #{apiToken => <<"def">>, plain => 1}}]},
    Text = line(error, {report, Report}, #{}),
    [?assertEqual(nomatch, binary:match(Text, Secret)) || Secret <- [<<"abc">>, <<"def">>]],
    ?assertMatch({_, _}, binary:match(Text, <<"plain">>)).

json_test() ->
    beamtalk_support:start(),
    beamtalk_log:set_format(json),
    Text = line(error, {string, "bad \"news\""}, #{beamtalk => #{who => <<"ada">>}}),
    beamtalk_log:set_format(text),
    {ok, Json} = beamtalk_json:decode(string:trim(Text)),
    ?assertMatch(#{<<"level">> := <<"error">>, <<"msg">> := <<"bad \"news\"">>, <<"who">> := <<"ada">>}, Json).

passes(Level, Meta) -> beamtalk_log:filter(#{level => Level, msg => {string, ""}, meta => Meta}, none) =/= stop.

levels_and_targets_test() ->
    beamtalk_support:start(),
    beamtalk_log:set_level(info),
    ?assert(passes(warning, #{})),
    ?assertNot(passes(debug, #{beamtalk_class => 'Lamp'})),
    beamtalk_log:enable({class, 'Lamp'}),
    ?assert(passes(debug, #{beamtalk_class => 'Lamp'})),
    ?assertNot(passes(debug, #{beamtalk_class => 'Fan'})),
    Pid = spawn(fun() -> receive stop -> ok end end),
    beamtalk_log:enable({pid, Pid}),
    ?assert(passes(debug, #{pid => Pid})),
    exit(Pid, kill),
    timer:sleep(20),
    ?assertEqual([{class, 'Lamp'}], beamtalk_log:active()),
    beamtalk_log:disable_all(),
    ?assertNot(passes(debug, #{beamtalk_class => 'Lamp'})).

progress_only_for_supervisors_test() ->
    Progress = #{level => info, msg => {report, #{label => {supervisor, progress}}}, meta => #{}},
    ?assertEqual(stop, beamtalk_log:filter(Progress, none)),
    beamtalk_log:enable(supervisor),
    ?assertEqual(Progress, beamtalk_log:filter(Progress, none)),
    beamtalk_log:disable_all().
