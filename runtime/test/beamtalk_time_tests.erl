-module(beamtalk_time_tests).

-include("assertions.hrl").

dates_print_and_read_test() ->
    Texts = [<<"2030-01-01T12:00:00+02:00">>, <<"1969-12-31T23:59:59Z">>, <<"2024-02-29T00:00:00-12:00">>],
    [?assertEqual(Text, beamtalk_date_time:asString(beamtalk_date_time:'class fromString:'(nil, Text)))
     || Text <- Texts].

bad_dates_are_refused_test() ->
    [?assertRaises(type_error, beamtalk_date_time:'class fromString:'(nil, Text))
     || Text <- [<<"2030-02-30T00:00:00Z">>, <<"2030-01-01T24:00:00Z">>, <<"2030-01-01T00:00:00+15:00">>,
                 <<"2030-01-01 00:00:00Z">>, <<"2030-01-01T00:00:00+01:99">>, <<"x">>]].

instants_ignore_the_clock_test() ->
    A = beamtalk_date_time:'class fromString:'(nil, <<"2030-01-01T10:00:00Z">>),
    B = beamtalk_date_time:'class fromString:'(nil, <<"2030-01-01T12:00:00+02:00">>),
    ?assert(beamtalk_date_time:'sameInstant:'(A, B)),
    ?assertEqual(A, beamtalk_date_time:toUtc(B)),
    ?assertEqual(B, beamtalk_date_time:'toOffset:'(A, 120)).

patterns_round_trip_test() ->
    Date = beamtalk_date_time:'class fromString:'(nil, <<"2030-02-05T07:08:09Z">>),
    [begin
         Text = beamtalk_date_time:'format:'(Date, Format),
         ?assertMatch(#{isOk := true, okValue := Date},
                      beamtalk_date_time:'class parse:format:'(nil, Text, Format))
     end || Format <- [<<"yyyy-MM-dd HH:mm:ss">>, <<"d.M.yy H:m:s">>, <<"ss mm HH dd MM yyyy">>]].

durations_print_and_read_test() ->
    [?assertEqual(Text, beamtalk_duration:asString(beamtalk_duration:'class fromString:'(nil, Text)))
     || Text <- [<<"PT0S">>, <<"PT1H30M">>, <<"P1DT2H">>, <<"PT0.250S">>, <<"-PT1.500S">>, <<"P3D">>]],
    [?assertRaises(type_error, beamtalk_duration:'class fromString:'(nil, Text))
     || Text <- [<<"P">>, <<"PT">>, <<"P1DT">>, <<"P1W">>, <<"1H">>, <<"PT1.S">>, <<"PT1.2345S">>]].
