-module(beamtalk_number_tests).
-include("assertions.hrl").

powers_are_exact_for_integers_test() ->
    ?assertEqual(1 bsl 200, beamtalk_number:'raisedTo:'(2, 200)),
    ?assertEqual(1, beamtalk_number:'raisedTo:'(0, 0)),
    ?assertEqual(-27, beamtalk_number:'raisedTo:'(-3, 3)),
    ?assertEqual(0.25, beamtalk_number:'raisedTo:'(2, -2)),
    ?assertError(badarith, beamtalk_number:'raisedTo:'(0, -1)),
    ?assertError(badarith, beamtalk_number:'raisedTo:'(2, <<"x">>)).

rounding_goes_away_from_zero_test() ->
    Cases = [{18, 5, 20}, {17, 5, 15}, {-18, 5, -20}, {5, 2, 6}, {-5, 2, -6}, {18, -5, 20}, {0, 5, 0}],
    [?assertEqual(Expected, beamtalk_number:'roundTo:'(Number, Unit)) || {Number, Unit, Expected} <- Cases],
    ?assertError(badarith, beamtalk_number:'roundTo:'(18, 0)),
    ?assertEqual(3.5, beamtalk_number:'roundTo:'(3.7, 0.5)).

rounding_of_big_integers_is_exact_test() ->
    Big = 1 bsl 100,
    ?assertEqual(Big * 10, beamtalk_number:'roundTo:'(Big * 10 + 4, 10)),
    ?assertEqual(Big * 10 + 10, beamtalk_number:'roundTo:'(Big * 10 + 5, 10)).

divisors_and_multiples_are_never_negative_test() ->
    ?assertEqual(6, beamtalk_integer:'gcd:'(12, -18)),
    ?assertEqual(0, beamtalk_integer:'gcd:'(0, 0)),
    ?assertEqual(12, beamtalk_integer:'lcm:'(-4, 6)),
    ?assertEqual(0, beamtalk_integer:'lcm:'(0, 6)).

codepoint_predicates_refuse_what_is_no_codepoint_test() ->
    [?assertNot(beamtalk_integer:isLetter(C)) || C <- [-1, 16#D800, 16#110000, $1, $\s]],
    [?assert(beamtalk_integer:isLetter(C)) || C <- [$a, $Z, 233, 16#4E00]],
    ?assert(beamtalk_integer:isDigit(16#661)),
    ?assert(beamtalk_integer:isWhitespace(16#A0)),
    ?assertNot(beamtalk_integer:isUppercase($a)).
