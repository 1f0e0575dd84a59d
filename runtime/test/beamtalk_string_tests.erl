-module(beamtalk_string_tests).

-include("assertions.hrl").

graphemes_are_what_a_reader_sees_test() ->
    Family = <<"👩‍👩‍👧"/utf8>>,
    ?assertEqual([Family, <<"a">>], beamtalk_string:graphemes(<<Family/binary, "a">>)),
    ?assertEqual([<<"\r\n">>], beamtalk_string:graphemes(<<"\r\n">>)),
    ?assertEqual([], beamtalk_string:graphemes(<<>>)).

position_counts_graphemes_test() ->
    ?assertEqual(3, beamtalk_string:'indexOf:'(<<"añb"/utf8>>, <<"b">>)),
    ?assertEqual(nil, beamtalk_string:'indexOf:'(<<"abc">>, <<>>)).

trimming_knows_unicode_spaces_test() ->
    ?assertEqual(<<"a">>, beamtalk_string:trim(<<16#A0/utf8, "a\r\n", 16#3000/utf8>>)),
    ?assert(beamtalk_string:isBlank(<<" \t\r\n">>)).

numbers_are_read_strictly_test() ->
    ?assertEqual(-12, beamtalk_string:asInteger(<<"-12">>)),
    ?assertEqual(2.5e3, beamtalk_string:asFloat(<<"2.5e3">>)),
    ?assertEqual(3.0, beamtalk_string:asFloat(<<"3">>)),
    [?assertRaises(argument_error, beamtalk_string:asFloat(Text))
     || Text <- [<<>>, <<"1.">>, <<".5">>, <<"1e">>, <<"1e999">>, <<"x">>]],
    [?assertRaises(argument_error, beamtalk_string:asInteger(Text))
     || Text <- [<<>>, <<"1.5">>, <<" 1">>, <<"0x1">>]].

percent_encoding_round_trips_test() ->
    Text = <<"a b/ü%"/utf8>>,
    ?assertEqual(Text, beamtalk_string:urlDecoded(beamtalk_string:urlEncoded(Text))),
    ?assertEqual(<<"50%">>, beamtalk_string:urlDecoded(<<"50%">>)),
    ?assertRaises(parse_error, beamtalk_string:urlDecoded(<<"%G1">>)).

base64_is_strict_test() ->
    Ok = fun(#{isOk := IsOk}) -> IsOk end,
    ?assert(Ok(beamtalk_binary:'class fromBase64:'(nil, <<"SGk=">>))),
    ?assertNot(Ok(beamtalk_binary:'class fromBase64:'(nil, <<"SGk">>))),
    ?assertNot(Ok(beamtalk_binary:'class fromBase64:'(nil, <<"SG k">>))),
    ?assert(Ok(beamtalk_binary:'class fromBase64Url:'(nil, <<"-_8">>))),
    ?assertNot(Ok(beamtalk_binary:'class fromBase64Url:'(nil, <<"+/8=">>))).

bytes_that_are_no_text_name_the_first_bad_one_test() ->
    #{errReason := #{error := {_, parse_error, _, _, _, _, Details}}} =
        beamtalk_binary:asString(<<"ab", 200, "c">>),
    ?assertEqual(2, maps:get(offset, Details)).

split_regex_leaves_groups_out_test() ->
    ?assertEqual([<<"a">>, <<"b">>], beamtalk_regex:'splitRegex:'(<<"a1b">>, <<"([0-9])">>)),
    ?assertEqual([], beamtalk_regex:'splitRegex:'(<<>>, <<",">>)).
